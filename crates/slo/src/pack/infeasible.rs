//! Quick test that a workload cannot keep its SLO at a device, without a linear program.
//!
//! For one priority p at one device, equation 5.1 is: the sum of b up to and including p, plus D times the sum of r
//! before p, is at most C D. D is the part of the SLO that is available to the device. A greedy choice gives the
//! smallest left side over all (r, b) on the curves with rates that fit the device. It gives rate to the curve where
//! rate reduces the sum most. If even this smallest sum exceeds C D, so does any choice; the linear program has this
//! row and others. Other stages of the SLO count with their smallest bursts.

use leeward_calculus::ArrivalCurve;

/// A workload at a device.
pub(super) struct Seat<'a> {
    pub level: u64,
    pub arrivals: &'a ArrivalCurve,
    /// Largest part of its SLO that is available at this device, in seconds.
    pub budget: f64,
}

/// Index of a workload with an SLO that cannot be kept together with the higher priorities under any limits. The result
/// is the tightest workload of the first priority with such a violation. `None` if the test finds no violation.
pub(super) fn hopeless(capacity: f64, seats: &[Seat<'_>]) -> Option<usize> {
    let least: f64 = seats.iter().map(|seat| seat.arrivals.rate()).sum();
    let mut levels: Vec<u64> = seats.iter().map(|seat| seat.level).collect();
    levels.sort_unstable();
    levels.dedup();
    let mut gains = Vec::new();
    levels.into_iter().find_map(|level| {
        let own = seats.iter().enumerate().filter(|(_, seat)| seat.level == level);
        let (tightest, budget) =
            own.map(|(at, seat)| (at, seat.budget)).min_by(|a, b| a.1.total_cmp(&b.1))?;
        let mut left = capacity - least;
        let mut sum = 0.0;
        gains.clear();
        for seat in seats.iter().filter(|seat| seat.level <= level) {
            // Rate for higher priorities reduces the service of this priority.
            let price = if seat.level < level { budget } else { 0.0 };
            let buckets = seat.arrivals.buckets();
            sum += buckets[buckets.len() - 1].burst() + price * seat.arrivals.rate();
            gains.extend(buckets.windows(2).map(|pair| {
                let length = pair[0].rate() - pair[1].rate();
                ((pair[1].burst() - pair[0].burst()) / length - price, length)
            }));
        }
        gains.sort_by(|a, b| b.0.total_cmp(&a.0));
        for &(gain, length) in gains.iter().take_while(|(gain, _)| *gain > 0.0) {
            let given = length.min(left.max(0.0));
            sum -= gain * given;
            left -= given;
        }
        // A relative tolerance prevents rounding from excluding a feasible place.
        (budget <= 0.0 || sum > capacity * budget * (1.0 + 1e-9) + 1e-12).then_some(tightest)
    })
}

#[cfg(test)]
mod tests {
    use leeward_calculus::TokenBucket;

    use super::*;

    #[test]
    fn a_device_is_hopeless_only_where_rate_cannot_buy_enough_burst() {
        let bucket = |rate, burst| TokenBucket::new(rate, burst).unwrap();
        // b falls from 1.0 at r = 0.1 to 0.1 at r = 0.5.
        let curve = ArrivalCurve::new(&[bucket(0.5, 0.1), bucket(0.1, 1.0)]).unwrap();
        let seat = |level, budget| Seat { level, arrivals: &curve, budget };
        assert_eq!(hopeless(1.0, &[seat(0, 0.2), seat(0, 0.2)]), None);
        assert_eq!(hopeless(1.0, &[seat(0, 0.2), seat(0, 0.19)]), Some(1));
        // After one higher priority, the device needs 0.2 + 0.5 D, and D must be at least this sum.
        assert_eq!(hopeless(1.0, &[seat(0, 0.2), seat(1, 0.5)]), None);
        assert_eq!(hopeless(1.0, &[seat(1, 0.39), seat(0, 0.2)]), Some(0));
        // A third workload's rate leaves the first two too little, independently of its own needs.
        assert_eq!(hopeless(1.0, &[seat(1, 0.3), seat(0, 0.2), seat(0, 0.2)]), Some(1));
    }
}
