//! What can be wrong with a setup, or with what workloads send.

use leeward_traces::Stage;

/// Why a run does not begin, or does not go on.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum RequestsError {
    /// Workloads and sources that do not match.
    #[error("{sources} sources for {workloads} workloads: there must be one for each, in the same order")]
    Sources {
        /// How many sources.
        sources: usize,
        /// How many workloads.
        workloads: usize,
    },
    /// An invalid server.
    #[error("server {server}: {problem}")]
    Server {
        /// Its name.
        server: String,
        /// What is wrong, and what was expected.
        problem: String,
    },
    /// An invalid workload.
    #[error("workload {workload}: {problem}")]
    Workload {
        /// Its name.
        workload: String,
        /// What is wrong, and what was expected.
        problem: String,
    },
    /// What is enforced for a workload at a stage cannot be.
    #[error("workload {workload} at {stage}: {problem}")]
    Limits {
        /// Its name.
        workload: String,
        /// Where.
        stage: Stage,
        /// What is wrong, and what was expected.
        problem: String,
    },
    /// A setting of the whole run.
    #[error("{setting}: {problem}")]
    Setting {
        /// Which.
        setting: &'static str,
        /// What is wrong, and what was expected.
        problem: String,
    },
    /// An invalid request.
    #[error("workload {workload}, request {index}: {problem}")]
    Request {
        /// Its workload.
        workload: String,
        /// Which one, from 0.
        index: u64,
        /// What is wrong, and what was expected.
        problem: String,
    },
    /// A clock that would run past its end.
    #[error("{what} lasts past {} years: expected less work, or higher capacities and rates", LATEST / (365 * 86_400 * 1_000_000_000))]
    TooLong {
        /// What would end so late.
        what: String,
    },
}

/// The last time at which anything happens, in nanoseconds: 146 years.
pub(super) const LATEST: u64 = 1 << 62;
