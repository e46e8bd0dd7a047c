//! What is drawn by a seed.

use rand::RngExt;

use super::StudyError;
use crate::stage::random::{Kind, stream};

const TRACE: Kind = Kind::named("study-trace");
const START: Kind = Kind::named("study-start");
const ROUTE: Kind = Kind::named("study-route");
const VISIT: Kind = Kind::named("study-visit");

/// A workload that is drawn.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Draw {
    /// Which trace, by index.
    pub trace: usize,
    /// The share of its length it is begun at, from 0 to below 1; it is gone through once, around its end.
    pub start: f64,
    /// The latency it is promised, in seconds.
    pub slo: f64,
}

/// So many workloads, each one of `from` (trace, SLO) with replacement and begun anywhere. Those of a larger count begin with those of a
/// smaller one.
///
/// # Errors
/// Nothing to draw from.
pub fn draws(seed: u64, count: usize, from: &[(usize, f64)]) -> Result<Vec<Draw>, StudyError> {
    if from.is_empty() && count > 0 {
        return Err(StudyError::draw("from", "no trace to draw from: expected at least one"));
    }
    let draw = |index: u64| {
        let (trace, slo) = from[stream(seed, TRACE, index).random_range(0..from.len())];
        Draw { trace, start: stream(seed, START, index).random(), slo }
    };
    Ok((0..count as u64).map(draw).collect())
}

/// For each of so many workloads a client and a server, by index, each evenly.
///
/// # Errors
/// No client or no server.
pub fn links(
    seed: u64,
    count: usize,
    clients: usize,
    servers: usize,
) -> Result<Vec<(usize, usize)>, StudyError> {
    if clients == 0 || servers == 0 {
        let problem = format!("{clients} clients and {servers} servers: expected at least one of each");
        return Err(StudyError::draw("site", problem));
    }
    let route = |index: u64| {
        let mut random = stream(seed, ROUTE, index);
        (random.random_range(0..clients), random.random_range(0..servers))
    };
    Ok((0..count as u64).map(route).collect())
}

/// Arrivals and departures (SLO figure 5.10): when each of `count` workloads comes and goes, as a list of (workload, whether it
/// comes) in order. Each comes at any time of a span of 1 and stays for an exponential time of mean `stay`.
///
/// # Errors
/// An invalid stay.
pub fn visits(seed: u64, count: usize, stay: f64) -> Result<Vec<(usize, bool)>, StudyError> {
    if !stay.is_finite() || stay <= 0.0 {
        return Err(StudyError::draw("stay", format!("{stay}: expected a share above 0")));
    }
    let mut events: Vec<(f64, usize, bool)> = Vec::with_capacity(2 * count);
    for index in 0..count {
        let mut random = stream(seed, VISIT, index as u64);
        let (comes, share): (f64, f64) = (random.random(), random.random());
        events.push((comes, index, true));
        events.push((comes - stay * (1.0 - share).ln(), index, false));
    }
    // A stay of no time at all still comes before it goes.
    events.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.2.cmp(&a.2)).then(a.1.cmp(&b.1)));
    Ok(events.into_iter().map(|(_, index, comes)| (index, comes)).collect())
}
