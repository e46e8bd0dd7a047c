//! Whether the requests of a trace come as a Poisson process: then one state without batches is the model. Several states
//! would be fitted to the noise of the counts, and a batch would bring forward requests that do not come together.

use super::fit_settings::FitSettings;
use super::request::{Request, merge};

/// Least number of requests that tell a Poisson process from another.
const LEAST_REQUESTS: usize = 1000;
/// Least number of windows at a time scale.
const LEAST_WINDOWS: usize = 32;
/// Standard deviations within which a statistic is that of a Poisson process.
const DEVIATIONS: f64 = 4.0;

/// True if neither the number of batches nor the dispersion of counts, at any time scale from an interval to a part of the
/// trace, differs from that of a Poisson process by more than chance.
pub(super) fn is_poisson(trace: &[Request], settings: &FitSettings) -> bool {
    let end = trace[trace.len() - 1].at;
    if trace.len() < LEAST_REQUESTS || end <= 0.0 {
        return false;
    }
    let gap = end / trace.len() as f64;
    // Batches are a renewal process: a batch, and an exponential time to the next request.
    let cycle = settings.batch + gap;
    let (expected, variance) = (end / cycle, end * gap * gap / cycle.powi(3));
    let batches = merge(trace, settings.batch).len() as f64;
    if settings.batch > 0.0 && (batches - expected).abs() > DEVIATIONS * variance.sqrt() + 1.0 {
        return false;
    }
    let mut window = settings.interval;
    while end / window >= LEAST_WINDOWS as f64 {
        if !is_dispersed_as_poisson(trace, window, (end / window) as usize) {
            return false;
        }
        window *= 2.0;
    }
    window > settings.interval
}

/// True if the counts of `windows` windows have a variance over mean that is 1 but for chance.
fn is_dispersed_as_poisson(trace: &[Request], window: f64, windows: usize) -> bool {
    let mut counts = vec![0.0; windows];
    for request in trace {
        if let Some(count) = counts.get_mut((request.at / window) as usize) {
            *count += 1.0;
        }
    }
    let mean = counts.iter().sum::<f64>() / windows as f64;
    let free = (windows - 1) as f64;
    // The dispersion, of chi-square distribution for large means, and its variance for any mean.
    let dispersion = counts.iter().map(|count| (count - mean) * (count - mean)).sum::<f64>() / mean;
    mean > 0.0 && (dispersion - free).abs() <= DEVIATIONS * (free * (2.0 + 1.0 / mean)).sqrt()
}
