//! Errors of setups and of workloads' requests.

use leeward_traces::Stage;

/// Error that prevents or ends a run.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum RequestsError {
    /// Number of sources differs from the number of workloads.
    #[error("{sources} sources for {workloads} workloads: there must be one for each, in the same order")]
    Sources {
        /// Number of sources.
        sources: usize,
        /// Number of workloads.
        workloads: usize,
    },
    /// An invalid server.
    #[error("server {server}: {problem}")]
    Server {
        /// Name of the server.
        server: String,
        /// The problem, and the expected value.
        problem: String,
    },
    /// An invalid workload.
    #[error("workload {workload}: {problem}")]
    Workload {
        /// Name of the workload.
        workload: String,
        /// The problem, and the expected value.
        problem: String,
    },
    /// Invalid limits of a workload at a stage.
    #[error("workload {workload} at {stage}: {problem}")]
    Limits {
        /// Name of the workload.
        workload: String,
        /// Stage of the limits.
        stage: Stage,
        /// The problem, and the expected value.
        problem: String,
    },
    /// Invalid setting of the whole run.
    #[error("{setting}: {problem}")]
    Setting {
        /// Name of the setting.
        setting: &'static str,
        /// The problem, and the expected value.
        problem: String,
    },
    /// An invalid request.
    #[error("workload {workload}, request {index}: {problem}")]
    Request {
        /// Name of the workload.
        workload: String,
        /// Index of the request, from 0.
        index: u64,
        /// The problem, and the expected value.
        problem: String,
    },
    /// The run exceeds the range of the clock.
    #[error("{what} lasts past {} years: expected less work, or higher capacities and rates", LATEST / (365 * 86_400 * 1_000_000_000))]
    TooLong {
        /// Description of the event past the range.
        what: String,
    },
}

/// Latest time of any event, in nanoseconds: 146 years.
pub(super) const LATEST: u64 = 1 << 62;
