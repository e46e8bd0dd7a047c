//! What can be wrong with a model.

use crate::shown::shown;

/// A chain has at most this many states; the fit of the thesis uses up to ten.
pub const MAX_STATES: usize = 16;

/// Numbers that make no model.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum ModelError {
    /// An invalid step.
    #[error("step of {} s: must be positive and finite", shown(*.0))]
    Step(f64),
    /// None, or more than [`MAX_STATES`].
    #[error("a chain of {0} states: must be 1 to {MAX_STATES}")]
    States(usize),
    /// The matrix is not as wide and high as there are states.
    #[error("{rows} rows of transitions for {states} states, the widest of {columns}: must be square")]
    Shape {
        /// States given.
        states: usize,
        /// Rows given.
        rows: usize,
        /// The length of the first row of the wrong length, or of the first.
        columns: usize,
    },
    /// An invalid probability.
    #[error("transition from state {from} to {to} with probability {}: must be in [0, 1]", shown(*.value))]
    Probability {
        /// State left.
        from: usize,
        /// State entered.
        to: usize,
        /// What was given.
        value: f64,
    },
    /// A row that is no distribution.
    #[error("transitions from state {from} sum to {}: must sum to 1", shown(*.sum))]
    Row {
        /// State left.
        from: usize,
        /// What the row sums to.
        sum: f64,
    },
    /// Invalid requests of a state.
    #[error(
        "state {state}: {requests} requests a step: must be finite, not negative, and at most 1 if Bernoulli"
    )]
    Requests {
        /// Which state.
        state: usize,
        /// What was given.
        requests: f64,
    },
    /// Invalid sizes of a state.
    #[error("state {state}: {fault}")]
    Sizes {
        /// Which state.
        state: usize,
        /// What is wrong.
        fault: String,
    },
    /// A chain without one stationary law.
    #[error(
        "state {from} never leads to state {to}: sigma of a stationary start needs a chain whose states all reach \
         one another"
    )]
    Reducible {
        /// A state.
        from: usize,
        /// One it does not reach.
        to: usize,
    },
}
