//! Results of a latency query.

use crate::number_format::format_number;

/// The reason for a missing bound: mean arrivals reach or exceed the service.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
#[error("unstable: arrivals of {} work/s, service of {} work/s", format_number(*.load), format_number(*.service))]
pub struct Unstable {
    /// Mean arrivals, in work per second.
    pub load: f64,
    /// Service left for them, in work per second.
    pub service: f64,
}

/// A bound on a percentile of latency.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tail {
    /// The bound.
    pub seconds: f64,
    /// The theta of this bound, per unit of work.
    pub theta: f64,
}

/// Result of a latency query.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Latency {
    /// An upper bound on the percentile.
    Bounded(Tail),
    /// No bound exists.
    Unstable(Unstable),
}

impl Latency {
    /// The bound in seconds, if there is one.
    pub fn seconds(&self) -> Option<f64> {
        match self {
            Latency::Bounded(tail) => Some(tail.seconds),
            Latency::Unstable(_) => None,
        }
    }
}
