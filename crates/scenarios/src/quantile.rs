//! Quantiles of sorted values.

/// Returns the `p` quantile of sorted values, linear between ranks.
pub(crate) fn quantile(sorted: &[f64], p: f64) -> f64 {
    let rank = p * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[rank.floor() as usize], sorted[rank.ceil() as usize]);
    below + (above - below) * rank.fract()
}
