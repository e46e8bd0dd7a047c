//! Errors of experiments.

use leeward_fabric::input::InputError;
use leeward_registry::RegistryError;
use leeward_requests::RequestsError;
use leeward_slo::bound::SystemError;
use leeward_slo::pack::SiteError;

/// Error of an experiment.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum ExperimentError {
    /// An invalid file or setting.
    #[error(transparent)]
    Input(#[from] InputError),
    /// An unknown policy, or invalid settings of it.
    #[error(transparent)]
    Policy(#[from] RegistryError),
    /// An invalid site.
    #[error(transparent)]
    Site(#[from] SiteError),
    /// An invalid system.
    #[error(transparent)]
    System(#[from] SystemError),
    /// An invalid replay.
    #[error(transparent)]
    Requests(#[from] RequestsError),
    /// A trace without a usable workload.
    #[error("trace {trace}: {problem}")]
    Trace {
        /// File of the trace.
        trace: String,
        /// The problem.
        problem: String,
    },
    /// An invalid draw, or list of them.
    #[error("{what}: {problem}")]
    Draw {
        /// Name of the draw.
        what: String,
        /// The problem, and the expected value.
        problem: String,
    },
}

impl ExperimentError {
    pub(super) fn draw(what: impl Into<String>, problem: impl Into<String>) -> ExperimentError {
        ExperimentError::Draw { what: what.into(), problem: problem.into() }
    }
}
