//! What can be wrong with a trace, and with a question about its curve.

use crate::shown::shown;

/// A trace that has no r-b curve.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
pub enum TraceError {
    /// No arrival at all.
    #[error("the trace has no arrivals: an r-b curve needs at least one")]
    Empty,
    /// An invalid time.
    #[error("arrival {index} at {} seconds: times must be finite and not negative", shown(*.at))]
    Time {
        /// Which arrival, from 0.
        index: usize,
        /// Its time in seconds.
        at: f64,
    },
    /// An arrival before the one that precedes it.
    #[error("arrival {index} at {} seconds comes after one at {}: sort the trace by time", shown(*.at), shown(*.previous))]
    Order {
        /// Which arrival, from 0.
        index: usize,
        /// Its time in seconds.
        at: f64,
        /// The time of the one before, in seconds.
        previous: f64,
    },
    /// An invalid amount of work.
    #[error("arrival {index} of work {}: must be finite and not negative", shown(*.work))]
    Work {
        /// Which arrival, from 0.
        index: usize,
        /// Its work.
        work: f64,
    },
    /// More work in all than a number holds.
    #[error("the work up to arrival {index} is more than a number holds: count in a larger unit")]
    Total {
        /// Which arrival, from 0.
        index: usize,
    },
}

/// A question that a curve has no answer to.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
pub enum CurveError {
    /// An invalid rate.
    #[error("rate {}: must be finite and not negative", shown(*.0))]
    Rate(f64),
    /// A burst that no rate goes with.
    #[error("burst {}: the largest work at one moment is {}, and no rate makes do with less", shown(*.burst), shown(*.largest))]
    Burst {
        /// The burst asked for.
        burst: f64,
        /// The largest work at one moment.
        largest: f64,
    },
    /// An invalid factor, such as a margin, or one that leads out of the range of numbers.
    #[error("factor {}: must be above 0, finite, and keep the curve finite", shown(*.0))]
    Factor(f64),
    /// An invalid deadline.
    #[error("deadline of {} seconds: must be finite and above 0", shown(*.0))]
    Deadline(f64),
    /// A multiple of the mean rate that is below it, or beyond numbers.
    #[error("{} times the mean rate: must be finite and at least 1, or the queue grows without end", shown(*.0))]
    Multiple(f64),
    /// A mean rate asked of a trace whose arrivals all come at one moment.
    #[error("all arrivals come at one moment, so there is no mean rate")]
    NoMean,
    /// A pruned curve of no buckets.
    #[error("0 buckets: a pruned curve has at least 1")]
    NoBuckets,
    /// An invalid tolerance.
    #[error("relative error {}: must be finite and not negative", shown(*.0))]
    Tolerance(f64),
}
