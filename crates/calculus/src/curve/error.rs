//! Errors for invalid traces, and for values that a curve does not have.

use crate::number_format::format_number;

/// A trace that has no r-b curve.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
pub enum TraceError {
    /// No arrival at all.
    #[error("the trace has no arrivals: an r-b curve needs at least one")]
    Empty,
    /// An invalid time.
    #[error("arrival {index} at {} seconds: times must be finite and not negative", format_number(*.at))]
    Time {
        /// Index of the arrival, from 0.
        index: usize,
        /// Its time in seconds.
        at: f64,
    },
    /// An arrival with an earlier time than the previous one.
    #[error("arrival {index} at {} seconds comes after one at {}: sort the trace by time", format_number(*.at), format_number(*.previous))]
    Order {
        /// Index of the arrival, from 0.
        index: usize,
        /// Its time in seconds.
        at: f64,
        /// Time of the previous arrival, in seconds.
        previous: f64,
    },
    /// An invalid amount of work.
    #[error("arrival {index} of work {}: must be finite and not negative", format_number(*.work))]
    Work {
        /// Index of the arrival, from 0.
        index: usize,
        /// Its work.
        work: f64,
    },
    /// A total of work that overflows.
    #[error("the work up to arrival {index} overflows: count in a larger unit")]
    Total {
        /// Index of the arrival, from 0.
        index: usize,
    },
}

/// A value that a curve does not have.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
pub enum CurveError {
    /// An invalid rate.
    #[error("rate {}: must be finite and not negative", format_number(*.0))]
    Rate(f64),
    /// A factor, such as a margin, that is invalid or makes the work overflow.
    #[error("factor {}: must be above 0, finite, and keep the curve finite", format_number(*.0))]
    Factor(f64),
    /// An invalid deadline.
    #[error("deadline of {} seconds: must be finite and above 0", format_number(*.0))]
    Deadline(f64),
    /// A multiple of the mean rate that is below 1 or not finite.
    #[error("{} times the mean rate: must be finite and at least 1, or the queue grows without end", format_number(*.0))]
    Multiple(f64),
    /// No mean rate: all arrivals of the trace come at one moment.
    #[error("all arrivals come at one moment, so there is no mean rate")]
    NoMean,
    /// A pruned curve without buckets.
    #[error("0 buckets: a pruned curve has at least 1")]
    NoBuckets,
    /// An invalid tolerance.
    #[error("relative error {}: must be finite and not negative", format_number(*.0))]
    Tolerance(f64),
}
