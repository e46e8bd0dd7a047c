//! Statistics of the gaps between the requests of a trace: their C^2, which SLO table 3.1 states, and their correlation.

use leeward_fabric::Nanos;

use super::traces::{Part, Traces};
use super::{Draw, ExperimentError};

/// Statistics of gaps. Independent gaps have a correlation of 0, and a dispersion of their C^2 in long windows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Gaps {
    /// Number of requests.
    pub requests: usize,
    /// C^2, the variance over the squared mean.
    pub c2: f64,
    /// Correlation of a gap with the next one; 0 if all gaps are equal.
    pub correlation: f64,
    /// Variance over mean of the number of requests in a window.
    pub dispersion: f64,
    /// Median over mean. It is ln 2 for a Poisson stream.
    pub median: f64,
}

/// Computes the statistics of the gaps of a trace. `window` is the length of the windows for the dispersion.
///
/// # Errors
/// Returns an error if there is no such trace, if the window is below a millisecond or beyond half of the trace, or if
/// the trace has fewer than three requests.
pub fn gaps(traces: &Traces, trace: usize, window: Nanos) -> Result<Gaps, ExperimentError> {
    let from_start = Draw { trace, start: 0.0, slo: 1.0 };
    let arrivals = traces.arrivals(&from_start, Part::Whole, &[])?;
    let times: Vec<u64> = arrivals.iter().map(|arrival| arrival.at.0).collect();
    let mut gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
    let span = times.last().copied().unwrap_or(0);
    if gaps.len() < 2 || window < Nanos(1_000_000) || window.0 > span / 2 {
        let problem = format!(
            "{} requests over {}, windows of {window}: expected at least three requests, windows of at least a \
             millisecond, and at least two windows",
            times.len(),
            Nanos(span)
        );
        return Err(ExperimentError::draw(format!("trace {trace}"), problem));
    }
    let (mean, variance) = moments(&gaps);
    let products: f64 = gaps.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    let correlation = if variance > 0.0 { products / (gaps.len() - 1) as f64 / variance } else { 0.0 };
    // The last window has only begun.
    let mut counts = vec![0.0; (span / window.0) as usize];
    for time in &times {
        if let Some(count) = counts.get_mut((time / window.0) as usize) {
            *count += 1.0;
        }
    }
    let (mean_count, count_variance) = moments(&counts);
    let middle = gaps.len() / 2;
    let median = *gaps.select_nth_unstable_by(middle, f64::total_cmp).1;
    Ok(Gaps {
        requests: times.len(),
        c2: variance / (mean * mean),
        correlation,
        dispersion: count_variance / mean_count,
        median: median / mean,
    })
}

/// Mean and variance.
fn moments(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    (mean, values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / count)
}
