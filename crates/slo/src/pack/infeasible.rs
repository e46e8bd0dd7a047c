//! Quick test that a workload cannot keep its SLO at a device, without a linear program.
//!
//! For one priority p at one device, equation 5.1 says: the sum of b up to and including p, plus D times the sum of r
//! before p, is at most C (D - T), where C is the capacity and T the latency. D is the part of the SLO that is available
//! to the device. A greedy choice finds the smallest such sum over all (r, b) on the curves with rates that fit the
//! device. It gives rate first to the curve where rate reduces the sum most. If even the smallest sum exceeds C (D - T),
//! the sum of any other choice exceeds it too. The linear program also has this row, so it would have no solution. Other
//! stages of the SLO count with their smallest bursts.

use leeward_calculus::ArrivalCurve;

use super::super::system::Queue;

/// A workload at a device.
pub(super) struct DeviceFlow<'a> {
    pub level: u64,
    pub arrivals: &'a ArrivalCurve,
    /// Largest part of its SLO that is available at this device, in seconds.
    pub budget: f64,
}

/// Index of a workload with an SLO that cannot be kept together with the higher priorities under any limits. The result
/// is the tightest workload of the first priority with such a violation. `None` if the test finds no violation.
pub(super) fn find_infeasible(queue: &Queue, flows: &[DeviceFlow<'_>]) -> Option<usize> {
    let &Queue { capacity, latency, .. } = queue;
    let least: f64 = flows.iter().map(|flow| flow.arrivals.rate()).sum();
    let mut levels: Vec<u64> = flows.iter().map(|flow| flow.level).collect();
    levels.sort_unstable();
    levels.dedup();
    let mut gains = Vec::new();
    levels.into_iter().find_map(|level| {
        let own = flows.iter().enumerate().filter(|(_, flow)| flow.level == level);
        let (tightest, budget) =
            own.map(|(at, flow)| (at, flow.budget)).min_by(|a, b| a.1.total_cmp(&b.1))?;
        let mut free_rate = capacity - least;
        let mut sum = 0.0;
        gains.clear();
        for flow in flows.iter().filter(|flow| flow.level <= level) {
            // Rate for higher priorities reduces the service of this priority.
            let price = if flow.level < level { budget } else { 0.0 };
            let buckets = flow.arrivals.buckets();
            sum += buckets[buckets.len() - 1].burst() + price * flow.arrivals.rate();
            gains.extend(buckets.windows(2).map(|pair| {
                let length = pair[0].rate() - pair[1].rate();
                ((pair[1].burst() - pair[0].burst()) / length - price, length)
            }));
        }
        gains.sort_by(|a, b| b.0.total_cmp(&a.0));
        for &(gain, length) in gains.iter().take_while(|(gain, _)| *gain > 0.0) {
            let given = length.min(free_rate.max(0.0));
            sum -= gain * given;
            free_rate -= given;
        }
        // A relative tolerance prevents rounding from excluding a feasible place.
        let served = capacity * (budget - latency);
        (budget <= latency || sum > served * (1.0 + 1e-9) + 1e-12).then_some(tightest)
    })
}

#[cfg(test)]
mod tests {
    use leeward_calculus::TokenBucket;

    use super::*;

    #[test]
    fn a_device_is_infeasible_only_where_rate_cannot_buy_enough_burst() {
        let bucket = |rate, burst| TokenBucket::new(rate, burst).unwrap();
        // b falls from 1.0 at r = 0.1 to 0.1 at r = 0.5.
        let curve = ArrivalCurve::new(&[bucket(0.5, 0.1), bucket(0.1, 1.0)]).unwrap();
        let device = |latency| Queue { name: String::new(), capacity: 1.0, latency, resource: None };
        let flow = |level, budget| DeviceFlow { level, arrivals: &curve, budget };
        assert_eq!(find_infeasible(&device(0.0), &[flow(0, 0.2), flow(0, 0.2)]), None);
        assert_eq!(find_infeasible(&device(0.0), &[flow(0, 0.2), flow(0, 0.19)]), Some(1));
        assert_eq!(find_infeasible(&device(0.1), &[flow(0, 0.3), flow(0, 0.3)]), None);
        assert_eq!(find_infeasible(&device(0.1), &[flow(0, 0.3), flow(0, 0.29)]), Some(1));
        // After one higher priority, the device needs 0.2 + 0.5 D, and D must be at least this sum.
        assert_eq!(find_infeasible(&device(0.0), &[flow(0, 0.2), flow(1, 0.5)]), None);
        assert_eq!(find_infeasible(&device(0.0), &[flow(1, 0.39), flow(0, 0.2)]), Some(0));
        // A third workload's rate leaves the first two too little, independently of its own needs.
        assert_eq!(find_infeasible(&device(0.0), &[flow(1, 0.3), flow(0, 0.2), flow(0, 0.2)]), Some(1));
    }
}
