//! Whether a workload has no chance at a device, found without a linear program.
//!
//! For one priority p at one device, equation 5.1 is: the sum of b up to and with p, plus D times the sum of r before p, is at most C D,
//! where D is what the SLO leaves for the device. The least of the left side over all (r, b) on their curves whose rates fit
//! the device is found by giving rate where it takes most away. If that is too much, so is any choice; the linear program has this row
//! and others. What else the SLO pays for counts with the least bursts there are.

use leeward_calculus::ArrivalCurve;

/// A workload at a device.
pub(super) struct Seat<'a> {
    pub level: u64,
    pub arrivals: &'a ArrivalCurve,
    /// What its SLO leaves for this device at most, in seconds.
    pub budget: f64,
}

/// Which of these workloads at a device of this capacity, by index, has an SLO that no limits keep together with those of all before it: the
/// one that can wait least of the first priority that has such. None if no SLO is known to be one.
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
            // Rate given to those before is taken from this one.
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
        // Nothing near the limit is ruled out by rounding.
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
        // Behind one of a priority before: 0.2 + 0.5 D of the device, which D must be.
        assert_eq!(hopeless(1.0, &[seat(0, 0.2), seat(1, 0.5)]), None);
        assert_eq!(hopeless(1.0, &[seat(1, 0.39), seat(0, 0.2)]), Some(0));
        // The rate of a third leaves the first two too little, whatever that one asks for.
        assert_eq!(hopeless(1.0, &[seat(1, 0.3), seat(0, 0.2), seat(0, 0.2)]), Some(1));
    }
}
