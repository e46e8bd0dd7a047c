//! Stability of a path: the error of using earlier measurements as predictions of later ones (Choreo, section 4.1,
//! figure 7).

use serde::{Deserialize, Serialize};

use crate::numbers::{mean, quantile};

/// One measurement of a path.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Sample {
    /// Time in nanoseconds from any origin.
    pub at_ns: u64,
    /// Rate in bits per second.
    pub rate_bps: f64,
}

/// Errors of a path's earlier rates relative to later ones.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Stability {
    /// Time between the measurements, in nanoseconds.
    pub lag_ns: u64,
    /// Number of pairs of measurements with this lag.
    pub pairs: usize,
    /// Median error.
    pub median: f64,
    /// Mean error.
    pub mean: f64,
    /// 95th percentile of the errors.
    pub p95: f64,
}

/// Computes `|x(t) - x(t - s)| / x(t)` for each measurement with an earlier measurement at the lag `s`. The lag may
/// differ from `lag_ns` by at most `within_ns`; among several earlier measurements, the one with the nearest lag
/// counts. Measurements are in order of time. A rate of 0 has no relative error and is left out.
pub fn errors(samples: &[Sample], lag_ns: u64, within_ns: u64) -> Vec<f64> {
    let before = |now: &Sample| {
        let then = now.at_ns.checked_sub(lag_ns)?;
        let nearest = samples.iter().min_by_key(|sample| sample.at_ns.abs_diff(then))?;
        let fits = nearest.at_ns.abs_diff(then) <= within_ns && nearest.at_ns < now.at_ns;
        (fits && now.rate_bps > 0.0).then(|| (now.rate_bps - nearest.rate_bps).abs() / now.rate_bps)
    };
    samples.iter().filter_map(before).collect()
}

/// Summarizes the errors of a lag; `None` if no two measurements have this lag.
pub fn stability(samples: &[Sample], lag_ns: u64, within_ns: u64) -> Option<Stability> {
    let errors = errors(samples, lag_ns, within_ns);
    Some(Stability {
        lag_ns,
        pairs: errors.len(),
        median: quantile(&errors, 0.5)?,
        mean: mean(&errors)?,
        p95: quantile(&errors, 0.95)?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_steady_path_has_no_error_and_scale_does_not_matter(
            rates in prop::collection::vec(1e3..1e10, 2..50), lag in 1..10_u64, scale in 0.1..10.0,
        ) {
            let samples = |rate: &dyn Fn(usize) -> f64| {
                (0..rates.len()).map(|i| Sample { at_ns: i as u64 * 1000, rate_bps: rate(i) }).collect::<Vec<_>>()
            };
            let steady = samples(&|_| 5e8);
            prop_assert!(errors(&steady, lag * 1000, 10).iter().all(|&error| error == 0.0));
            let (one, other) = (samples(&|i| rates[i]), samples(&|i| rates[i] * scale));
            let (one, other) = (errors(&one, lag * 1000, 10), errors(&other, lag * 1000, 10));
            prop_assert_eq!(one.len(), rates.len().saturating_sub(lag as usize));
            for (one, other) in one.iter().zip(other) {
                prop_assert!((one - other).abs() <= 1e-9 * one.max(1.0));
            }
        }
    }

    #[test]
    fn the_error_is_relative_to_the_current_rate() {
        let samples = [(0, 8e8), (10, 1e9), (21, 5e8)].map(|(at_ns, rate_bps)| Sample { at_ns, rate_bps });
        assert_eq!(errors(&samples, 10, 1), [0.2, 1.0]);
        assert_eq!(errors(&samples, 10, 0), [0.2]);
        let errors = stability(&samples, 10, 1).unwrap();
        assert_eq!((errors.pairs, errors.median, errors.mean, errors.p95), (2, 0.2, 0.6, 1.0));
        assert_eq!(stability(&samples, 100, 1), None);
    }
}
