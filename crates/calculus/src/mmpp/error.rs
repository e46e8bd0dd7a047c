//! Errors for invalid models.

use crate::number_format::format_number;

/// Maximum number of states of a chain; the fit of the thesis uses up to ten.
pub const MAX_STATES: usize = 16;

/// An invalid model.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum ModelError {
    /// An invalid step.
    #[error("step of {} s: must be positive and finite", format_number(*.0))]
    Step(f64),
    /// No states, or more than [`MAX_STATES`].
    #[error("a chain of {0} states: must be 1 to {MAX_STATES}")]
    States(usize),
    /// A matrix whose size does not match the number of states.
    #[error(
        "{rows} rows of transitions for {states} states, with a row of {columns} entries: the matrix must be square"
    )]
    Shape {
        /// Number of states.
        states: usize,
        /// Number of rows.
        rows: usize,
        /// Length of the first row with the wrong length; if all are right, of the first row.
        columns: usize,
    },
    /// An invalid probability.
    #[error("transition from state {from} to {to} with probability {}: must be in [0, 1]", format_number(*.value))]
    Probability {
        /// Origin of the transition.
        from: usize,
        /// Target of the transition.
        to: usize,
        /// The rejected probability.
        value: f64,
    },
    /// A row that is not a probability distribution.
    #[error("transitions from state {from} sum to {}: must sum to 1", format_number(*.sum))]
    Row {
        /// Origin of the transitions.
        from: usize,
        /// Sum of the row.
        sum: f64,
    },
    /// Invalid requests of a state.
    #[error(
        "state {state}: {requests} requests a step: must be finite, not negative, and at most 1 if Bernoulli"
    )]
    Requests {
        /// Index of the state.
        state: usize,
        /// The rejected number.
        requests: f64,
    },
    /// Invalid sizes of a state.
    #[error("state {state}: {fault}")]
    Sizes {
        /// Index of the state.
        state: usize,
        /// The problem.
        fault: String,
    },
    /// A chain without a unique stationary distribution.
    #[error(
        "state {from} never leads to state {to}: sigma of a stationary start needs a chain whose states all reach \
         one another"
    )]
    Reducible {
        /// A state.
        from: usize,
        /// A state that is not reachable from it.
        to: usize,
    },
}
