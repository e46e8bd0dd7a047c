//! What can be wrong with a study.

use leeward_fabric::input::InputError;
use leeward_placement::PolicyError;
use leeward_placement::volumes::bound::SystemError;
use leeward_placement::volumes::pack::SiteError;

use crate::requests::RequestsError;

/// Why an experiment is not made.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum StudyError {
    /// A file or a setting.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A policy that there is not.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// An invalid site.
    #[error(transparent)]
    Site(#[from] SiteError),
    /// An invalid system.
    #[error(transparent)]
    System(#[from] SystemError),
    /// An invalid replay.
    #[error(transparent)]
    Requests(#[from] RequestsError),
    /// A trace that no workload can be made of.
    #[error("trace {trace}: {problem}")]
    Trace {
        /// Its file.
        trace: String,
        /// What is wrong.
        problem: String,
    },
    /// An invalid draw, or list of them.
    #[error("{what}: {problem}")]
    Draw {
        /// Which.
        what: String,
        /// What is wrong, and what was expected.
        problem: String,
    },
}

impl StudyError {
    pub(super) fn draw(what: impl Into<String>, problem: impl Into<String>) -> StudyError {
        StudyError::Draw { what: what.into(), problem: problem.into() }
    }
}
