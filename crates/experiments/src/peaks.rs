//! Ratio of peaks to means, for single traces and for all traces together (SLO figures 4.2 and 4.9).

use leeward_fabric::Nanos;
use leeward_traces::Stage;

use super::traces::{Part, Traces};
use super::{Draw, ExperimentError};

/// Largest and mean load of windows of the same length.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Peak {
    /// Number of requests in the window with the most requests.
    pub requests: f64,
    /// Mean number of requests per window.
    pub mean_requests: f64,
    /// Payload of the window with the most bytes, in bytes.
    pub bytes: f64,
    /// Mean payload per window, in bytes.
    pub mean_bytes: f64,
}

/// Returns the peak of each draw, and the peak of the sum of all draws, over windows of length `window`. The windows of
/// a draw start at its first request.
///
/// # Errors
/// Returns an error for a draw without a trace, or an invalid window.
pub fn peaks(
    traces: &Traces,
    part: Part,
    draws: &[Draw],
    window: Nanos,
) -> Result<(Vec<Peak>, Peak), ExperimentError> {
    if window < Nanos(1_000_000) {
        let problem = format!("{} s: expected at least a millisecond", window.as_secs_f64());
        return Err(ExperimentError::draw("window", problem));
    }
    let mut all: Vec<(f64, f64)> = Vec::new();
    let mut each = Vec::with_capacity(draws.len());
    for draw in draws {
        let arrivals = traces.arrivals(draw, part, &[Stage::NetworkOut])?;
        let first = arrivals.first().map_or(Nanos(0), |arrival| arrival.at);
        let mut windows: Vec<(f64, f64)> = Vec::new();
        for arrival in arrivals {
            let index = (arrival.at.since(first).0 / window.0) as usize;
            windows.resize(windows.len().max(index + 1), (0.0, 0.0));
            windows[index].0 += 1.0;
            windows[index].1 += arrival.size as f64;
        }
        all.resize(all.len().max(windows.len()), (0.0, 0.0));
        all.iter_mut().zip(&windows).for_each(|(sum, window)| *sum = (sum.0 + window.0, sum.1 + window.1));
        each.push(peak(&windows));
    }
    Ok((each, peak(&all)))
}

fn peak(windows: &[(f64, f64)]) -> Peak {
    let count = windows.len().max(1) as f64;
    let largest_and_mean = |pick: fn(&(f64, f64)) -> f64| {
        let values = windows.iter().map(pick);
        (values.clone().fold(0.0, f64::max), values.sum::<f64>() / count)
    };
    let ((requests, mean_requests), (bytes, mean_bytes)) =
        (largest_and_mean(|window| window.0), largest_and_mean(|window| window.1));
    Peak { requests, mean_requests, bytes, mean_bytes }
}
