//! Random draws of workloads, links and visits by a seed.

use leeward_registry::random::{Kind, stream};
use rand::RngExt;

use super::ExperimentError;

const TRACE: Kind = Kind::named("study-trace");
const START: Kind = Kind::named("study-start");
const ROUTE: Kind = Kind::named("study-route");
const VISIT: Kind = Kind::named("study-visit");

/// A drawn workload.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Draw {
    /// Index of its trace.
    pub trace: usize,
    /// Start within the trace, as a share of its length from 0 to below 1; the trace is replayed once and
    /// wraps around its end.
    pub start: f64,
    /// Guaranteed latency, in seconds.
    pub slo: f64,
}

/// Draws `count` workloads. Each has one of `from` (trace, SLO), with replacement, and a random start. A larger count
/// begins with the draws of a smaller one.
///
/// # Errors
/// Returns an error if `from` is empty.
pub fn draws(seed: u64, count: usize, from: &[(usize, f64)]) -> Result<Vec<Draw>, ExperimentError> {
    if from.is_empty() && count > 0 {
        return Err(ExperimentError::draw("from", "no trace to draw from: expected at least one"));
    }
    let draw = |index: u64| {
        let (trace, slo) = from[stream(seed, TRACE, index).random_range(0..from.len())];
        Draw { trace, start: stream(seed, START, index).random(), slo }
    };
    Ok((0..count as u64).map(draw).collect())
}

/// Draws a client and a server by index for each of `count` workloads, uniformly.
///
/// # Errors
/// Returns an error without clients or without servers.
pub fn links(
    seed: u64,
    count: usize,
    clients: usize,
    servers: usize,
) -> Result<Vec<(usize, usize)>, ExperimentError> {
    if clients == 0 || servers == 0 {
        let problem = format!("{clients} clients and {servers} servers: expected at least one of each");
        return Err(ExperimentError::draw("site", problem));
    }
    let route = |index: u64| {
        let mut random = stream(seed, ROUTE, index);
        (random.random_range(0..clients), random.random_range(0..servers))
    };
    Ok((0..count as u64).map(route).collect())
}

/// Draws arrivals and departures (SLO figure 5.10) of `count` workloads, as a list of (workload, true for an arrival)
/// in order. Each arrives at a uniform time in a span of 1, and stays for an exponential time with mean `stay`.
///
/// # Errors
/// Returns an error for an invalid stay.
pub fn visits(seed: u64, count: usize, stay: f64) -> Result<Vec<(usize, bool)>, ExperimentError> {
    if !stay.is_finite() || stay <= 0.0 {
        return Err(ExperimentError::draw("stay", format!("{stay}: expected a share above 0")));
    }
    let mut events: Vec<(f64, usize, bool)> = Vec::with_capacity(2 * count);
    for index in 0..count {
        let mut random = stream(seed, VISIT, index as u64);
        let (arrival, share): (f64, f64) = (random.random(), random.random());
        events.push((arrival, index, true));
        events.push((arrival - stay * (1.0 - share).ln(), index, false));
    }
    // If both have the same time, the arrival precedes the departure.
    events.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.2.cmp(&a.2)).then(a.1.cmp(&b.1)));
    Ok(events.into_iter().map(|(_, index, arrives)| (index, arrives)).collect())
}
