//! Reasons for which a promise has no bound.

use leeward_calculus::{Overload, snc};
use leeward_solver::SolverError;
use leeward_traces::Stage;

use super::SystemError;
use crate::format::{self, time};

/// A promise without a bound.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Unbounded {
    /// A queue on the path of the workload, or on the path of a flow that shares a queue with it, is overloaded. The
    /// load counts the workload's priority and higher priorities.
    #[error("{workload}, {stage}: queue {queue}: {}", format::overload(*.stage, .overload.load, .overload.service))]
    Overload {
        /// Name of the workload.
        workload: String,
        /// Stage of the path.
        stage: Stage,
        /// Name of the queue.
        queue: String,
        /// Work per second: arriving, and served by the queue.
        overload: Overload,
    },
    /// In the long run, the limits pass less work than the workload sends.
    #[error("{workload}, {stage}: its limits: {}", format::overload(*.stage, .overload.load, .overload.service))]
    Limits {
        /// Name of the workload.
        workload: String,
        /// Stage of the limits.
        stage: Stage,
        /// Work per second: sent by the workload, and passed by its limits.
        overload: Overload,
    },
    /// The paths of the flows that share queues with the workload form a cycle.
    #[error(
        "{workload}, {stage}: the paths form a cycle through queue {queue}: all paths must follow one order of queues"
    )]
    Cycle {
        /// Name of the workload.
        workload: String,
        /// Stage of the paths.
        stage: Stage,
        /// Name of a queue on the cycle, or downstream of it.
        queue: String,
    },
    /// The linear program or the stochastic expression is too large: it has one term for each path to each
    /// queue.
    #[error(
        "{workload}, {stage}: more than {most} paths lead to its queues and to the queues of workloads on its path"
    )]
    Size {
        /// Name of the workload.
        workload: String,
        /// Stage of the paths.
        stage: Stage,
        /// Largest number of terms.
        most: usize,
    },
    /// The solver failed.
    #[error("{workload}, {stage}: {error}")]
    Solver {
        /// Name of the workload.
        workload: String,
        /// Stage of the program.
        stage: Stage,
        /// Error of the solver.
        error: SolverError,
    },
    /// The method needs requests served in order of arrival, and this order is not guaranteed here.
    #[error(
        "{workload}, {stage}: `plp` needs requests of one priority in order of arrival, and they may overtake one another there"
    )]
    Order {
        /// Name of the workload.
        workload: String,
        /// Stage without order of arrival.
        stage: Stage,
    },
    /// The workload has no SLO, so there is no percentile to bound.
    #[error("{workload}: best effort has no percentile, so no stochastic bound")]
    NoSlo {
        /// Name of the workload.
        workload: String,
    },
    /// A model of arrivals is missing, either of the workload itself or of a workload that shares a queue with it.
    #[error("{workload}, {stage}: {of} has no model of arrivals there, so there is no stochastic bound")]
    NoModel {
        /// Name of the workload.
        workload: String,
        /// Stage of the missing model.
        stage: Stage,
        /// Name of the workload without a model.
        of: String,
    },
    /// Limits change the arrivals that a model describes, either of the workload itself or of a workload that shares a
    /// queue with it.
    #[error(
        "{workload}, {stage}: limits delay {of} there by up to {}, so its model does not apply",
        time(*.seconds)
    )]
    Held {
        /// Name of the workload.
        workload: String,
        /// Stage of the limits.
        stage: Stage,
        /// Name of the workload that the limits delay.
        of: String,
        /// Longest delay by the limits, in seconds.
        seconds: f64,
    },
    /// The models cannot be analysed together.
    #[error("{workload}, {stage}: {fault}")]
    Models {
        /// Name of the workload.
        workload: String,
        /// Stage of the models.
        stage: Stage,
        /// Error of the analysis.
        fault: snc::NetworkError,
    },
    /// The average load exceeds the service.
    #[error(
        "{workload}, {stage}: by the average load of models, {}",
        format::overload(*.stage, .unstable.load, .unstable.service)
    )]
    Unstable {
        /// Name of the workload.
        workload: String,
        /// Stage of the load.
        stage: Stage,
        /// Load and service, in work per second.
        unstable: snc::Unstable,
    },
    /// The bound exceeds the range of floating-point numbers.
    #[error("{workload}: a bound beyond the range of floating-point numbers")]
    NotFinite {
        /// Name of the workload.
        workload: String,
    },
    /// The caller cancelled the analysis.
    #[error("{workload}: the analysis was cancelled")]
    Stopped {
        /// Name of the workload.
        workload: String,
    },
    /// Invalid system.
    #[error(transparent)]
    System(#[from] SystemError),
}

/// An SLO below the unloaded latency: requests miss it without any other load.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error(
    "{workload}: an SLO of {}, but up to {stage} its requests take {} without any load",
    time(*.slo),
    time(*.unloaded)
)]
pub struct SloBelowUnloaded {
    /// Name of the workload.
    pub workload: String,
    /// The stage at which the sum of unloaded latencies reaches the SLO.
    pub stage: Stage,
    /// The SLO, in seconds.
    pub slo: f64,
    /// Sum of the unloaded tails up to and including the stage, in seconds.
    pub unloaded: f64,
}
