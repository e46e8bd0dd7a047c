//! Errors of a fit.

use crate::mmpp::ModelError;
use crate::number_format::format_number;

/// A trace or settings that give no model.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum FitError {
    /// No request.
    #[error("a trace without a request: there is nothing to fit")]
    Empty,
    /// A request that is invalid or earlier than the previous request.
    #[error(
        "request {index} at {} s with work {}: times must rise from 0, work must be finite and not negative", format_number(*.at), format_number(*.work)
    )]
    Request {
        /// Index of the request, from 0.
        index: usize,
        /// Time of the request.
        at: f64,
        /// Work of the request.
        work: f64,
    },
    /// A setting out of range.
    #[error("{name} {}: must be {expected}", format_number(*.value))]
    Setting {
        /// Name of the setting.
        name: &'static str,
        /// The rejected value.
        value: f64,
        /// Description of valid values.
        expected: &'static str,
    },
    /// More intervals than the limit.
    #[error("{} intervals: at most 1e7; use longer intervals, or a trace whose clock begins near 0", format_number(*.0))]
    Long(f64),
    /// The numbers give an invalid model: a Bernoulli step with more than one request, for example.
    #[error(transparent)]
    Model(#[from] ModelError),
}
