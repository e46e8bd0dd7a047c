//! Mean, standard deviation and quantiles of samples.
//!
//! Hand-written: three formulas do not justify a statistics crate.

/// Mean; `None` without samples.
pub fn mean(samples: &[f64]) -> Option<f64> {
    (!samples.is_empty()).then(|| samples.iter().sum::<f64>() / samples.len() as f64)
}

/// Sample standard deviation; `None` for fewer than two samples.
pub fn deviation(samples: &[f64]) -> Option<f64> {
    let mean = mean(samples).filter(|_| samples.len() >= 2)?;
    let squares = samples.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>();
    Some((squares / (samples.len() - 1) as f64).sqrt())
}

/// Smallest sample that a given share of all samples does not exceed (nearest rank); `None` without samples.
pub fn quantile(samples: &[f64], share: f64) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (share.clamp(0.0, 1.0) * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_samples_have_partial_statistics() {
        assert_eq!((mean(&[]), deviation(&[1.0]), quantile(&[], 0.5)), (None, None, None));
        assert_eq!((mean(&[1.0, 3.0]), deviation(&[1.0, 3.0])), (Some(2.0), Some(2_f64.sqrt())));
        let five = [5.0, 1.0, 4.0, 2.0, 3.0];
        let quantiles = [0.0, 0.2, 0.21, 0.5, 0.95, 1.0].map(|share| quantile(&five, share).unwrap());
        assert_eq!(quantiles, [1.0, 1.0, 2.0, 3.0, 5.0, 5.0]);
    }
}
