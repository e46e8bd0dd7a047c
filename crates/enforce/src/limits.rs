//! Token buckets as HTB keeps them: in whole bytes, at most seven of a workload, and none longer than HTB's memory.

use leeward_calculus::{ArrivalCurve, TokenBucket};
use leeward_slo::percent;

use crate::promises::Bucket;

/// Largest number of buckets of a workload: HTB nests eight levels (`TC_HTB_MAXDEPTH`), of which the link is one.
pub const MOST_BUCKETS: usize = 7;
/// Time in seconds after which HTB counts no further tokens of an idle class (`mbuffer` in `sch_htb.c`). A bucket that
/// takes longer to fill would delay a workload within its limits.
const MEMORY_S: f64 = 60.0;
/// Largest burst in bytes that `tc` takes.
const MOST_BURST: f64 = u32::MAX as f64;
/// Largest rate in bytes per second: above every link, and exact in a double.
const MOST_RATE: f64 = 1e12;

/// A token bucket in whole bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limit {
    /// Rate in bytes per second, at least 1.
    pub rate: u64,
    /// Burst in bytes, at least 1.
    pub burst: u32,
}

/// The curve that buckets allow together; `None` without buckets.
///
/// # Errors
/// A message for a bucket that is negative or not finite.
pub fn curve(buckets: &[Bucket]) -> Result<Option<ArrivalCurve>, String> {
    let all = buckets.iter().map(|bucket| TokenBucket::new(bucket.rate, bucket.burst));
    let all: Vec<TokenBucket> = all.collect::<Result<_, _>>().map_err(|error| error.to_string())?;
    Ok(ArrivalCurve::new(&all))
}

/// Limits for a curve, and notes about buckets that HTB enforces less tightly than they are. A limit is never below the
/// curve.
///
/// # Errors
/// A message for a bucket that `tc` does not take: without it, the workload would have a part of its limits.
pub fn limits(curve: &ArrivalCurve) -> Result<(Vec<Limit>, Vec<String>), String> {
    let mut notes = Vec::new();
    let pruned = curve.prune_to(MOST_BUCKETS).expect("the count is not 0");
    if pruned.error > 0.0 {
        notes.push(format!(
            "{} buckets: HTB nests {MOST_BUCKETS}, whose curve is at most {} higher",
            curve.buckets().len(),
            percent(pruned.error)
        ));
    }
    let mut limits = Vec::with_capacity(pruned.curve.buckets().len());
    for bucket in pruned.curve.buckets() {
        let (rate, burst) = (bucket.rate(), bucket.burst());
        if burst > MOST_BURST {
            return Err(format!("a burst of {burst:.0} bytes: tc takes at most 4 GiB"));
        }
        let least = burst / MEMORY_S;
        if rate < least {
            notes.push(format!(
                "a rate of {:.0} bytes/s is enforced as {:.0}: HTB fills a burst in at most a minute",
                rate.ceil(),
                least.ceil()
            ));
        }
        // Rounded up, so that a workload within its limits never waits.
        let rate = rate.max(least).ceil().clamp(1.0, MOST_RATE) as u64;
        limits.push(Limit { rate, burst: burst.ceil().max(1.0) as u32 });
    }
    Ok((limits, notes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn limits_of(buckets: &[(f64, f64)]) -> (Vec<Limit>, Vec<String>) {
        let buckets: Vec<Bucket> = buckets.iter().map(|&(rate, burst)| Bucket { rate, burst }).collect();
        limits(&curve(&buckets).expect("valid").expect("a bucket")).expect("bursts within 4 GiB")
    }

    #[test]
    fn limits_are_whole_bytes_rounded_up() {
        let (limits, notes) = limits_of(&[(1e6 + 0.5, 2000.25), (0.25, 0.0)]);
        assert_eq!(limits, [Limit { rate: 1, burst: 1 }]);
        assert_eq!(notes, [""; 0]);
        let (limits, notes) = limits_of(&[(1e6 + 0.5, 2000.25), (1e5, 64e3)]);
        assert_eq!(limits, [Limit { rate: 1_000_001, burst: 2001 }, Limit { rate: 100_000, burst: 64_000 }]);
        assert_eq!(notes, [""; 0]);
    }

    #[test]
    fn buckets_that_htb_cannot_keep_are_loosened_with_a_note() {
        let (limits, notes) = limits_of(&[(1e6, 300e6)]);
        assert_eq!(limits, [Limit { rate: 5_000_000, burst: 300_000_000 }]);
        assert_eq!(notes.len(), 1, "{notes:?}");
        let many: Vec<(f64, f64)> =
            (1..=20).map(|at| (1e9 / f64::from(at), f64::from(at * at) * 1e3)).collect();
        let (limits, notes) = limits_of(&many);
        assert!(limits.len() <= MOST_BUCKETS && notes.len() == 1, "{limits:?} {notes:?}");
        assert!(notes[0].starts_with("20 buckets: HTB nests 7, whose curve is at most "), "{notes:?}");
    }

    #[test]
    fn a_burst_that_tc_does_not_take_is_an_error_and_no_missing_limit() {
        for buckets in [&[(1e9, 5e9)][..], &[(1e9, 1e6), (1e8, 5e9)]] {
            let buckets: Vec<Bucket> = buckets.iter().map(|&(rate, burst)| Bucket { rate, burst }).collect();
            let error = limits(&curve(&buckets).expect("valid").expect("a bucket")).expect_err("too long");
            assert_eq!(error, "a burst of 5000000000 bytes: tc takes at most 4 GiB");
        }
    }

    #[test]
    fn invalid_buckets_are_errors() {
        for (rate, burst) in [(f64::NAN, 1.0), (-1.0, 1.0), (1.0, f64::INFINITY)] {
            assert!(curve(&[Bucket { rate, burst }]).is_err(), "{rate} {burst}");
        }
        assert_eq!(curve(&[]), Ok(None));
    }

    proptest! {
        #[test]
        fn a_limit_is_never_below_the_promise(
            buckets in proptest::collection::vec((0.0..1e13, 0.0..1e10), 1..20), seconds in 0.0..100.0,
        ) {
            let buckets: Vec<Bucket> =
                buckets.into_iter().map(|(rate, burst)| Bucket { rate, burst }).collect();
            let curve = curve(&buckets).expect("valid").expect("a bucket");
            let Ok((limits, _)) = limits(&curve) else {
                prop_assert!(curve.buckets().iter().any(|bucket| bucket.burst() > MOST_BURST));
                return Ok(());
            };
            prop_assert!(limits.len() <= MOST_BUCKETS);
            for limit in limits {
                let allowed = f64::from(limit.burst) + limit.rate as f64 * seconds;
                let promised = curve.arrivals(seconds).min(MOST_RATE * seconds);
                prop_assert!(allowed >= promised * (1.0 - 1e-9), "{allowed} {promised}");
            }
        }
    }
}
