//! Test of a trace for a Poisson process. The model of such a trace is one state without batches: several states would be
//! fitted to the noise of the counts, and a batch would bring forward requests that do not come together.
//!
//! At each time scale, windows must have the variance of a Poisson process, and the heaviest of them may not have more
//! than such a process brings. Both hold for numbers of requests and for their work: sizes that are large at some times
//! are no independent sizes.

use super::request::{Request, merge};
use super::settings::FitSettings;

/// Least number of requests that tell a Poisson process from another.
const LEAST_REQUESTS: usize = 1000;
/// Least number of windows at a time scale.
const LEAST_WINDOWS: usize = 32;
/// Least mean number of requests of a window at the shortest time scale.
const LEAST_COUNT: f64 = 0.25;
/// Standard deviations within which a statistic is that of a Poisson process.
const DEVIATIONS: f64 = 4.0;
/// Least probability of the heaviest window, by an upper bound.
const RARE: f64 = 1e-3;

/// True if neither the number of batches, nor numbers and work of requests at any time scale, differ from those of a Poisson
/// process by more than chance.
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
    let (counts, work) =
        (Weights::new(trace, end, |_| 1.0), Weights::new(trace, end, |request| request.work));
    let mut window = settings.batch.max(LEAST_COUNT * gap);
    while end / window >= LEAST_WINDOWS as f64 {
        let windows = (end / window) as usize;
        if !(counts.are_poisson(trace, window, windows) && work.are_poisson(trace, window, windows)) {
            return false;
        }
        window *= 2.0;
    }
    true
}

/// Weights of requests, and their moments.
struct Weights<W> {
    of: W,
    /// Sums of the weights to the first, second and fourth power, per second.
    moments: [f64; 3],
    largest: f64,
}

impl<W: Fn(&Request) -> f64> Weights<W> {
    fn new(trace: &[Request], end: f64, of: W) -> Weights<W> {
        let sum = |power| trace.iter().map(|request| of(request).powi(power)).sum::<f64>() / end;
        let moments = [sum(1), sum(2), sum(4)];
        let largest = trace.iter().map(&of).fold(0.0, f64::max);
        Weights { of, moments, largest }
    }

    /// True if the sums of windows are those of a compound Poisson process but for chance.
    fn are_poisson(&self, trace: &[Request], window: f64, windows: usize) -> bool {
        let mut sums = vec![0.0; windows];
        for request in trace {
            if let Some(sum) = sums.get_mut((request.at / window) as usize) {
                *sum += (self.of)(request);
            }
        }
        let [mean, variance, fourth] = self.moments.map(|moment| moment * window);
        if variance <= 0.0 {
            // Requests without work.
            return true;
        }
        let free = (windows - 1) as f64;
        let dispersion = sums.iter().map(|sum| (sum - mean) * (sum - mean)).sum::<f64>() / variance;
        // The fourth cumulant of a sum is the fourth moment of the weights.
        let deviation = (free * (2.0 + fourth / (variance * variance))).sqrt();
        // Windows of twice the length begin at each window, so that none divides a burst into halves.
        let pairs = sums.windows(2).map(|pair| pair[0] + pair[1]).fold(0.0, f64::max);
        let rare = |excess: f64, variance: f64| {
            // Bennett's inequality: P(sum - mean >= t) <= exp(-variance / b^2 h(b t / variance)) for weights of at most b.
            let step = (self.largest * excess / variance).max(0.0);
            let exponent = variance / (self.largest * self.largest) * ((1.0 + step) * step.ln_1p() - step);
            windows as f64 * (-exponent).exp() < RARE
        };
        (dispersion - free).abs() <= DEVIATIONS * deviation
            && !rare(sums.iter().copied().fold(0.0, f64::max) - mean, variance)
            && !rare(pairs - 2.0 * mean, 2.0 * variance)
    }
}
