//! Why a promise has no bound.

use leeward_calculus::{Overload, snc};
use leeward_solver::SolverError;
use leeward_traces::Stage;

use super::SystemError;
use crate::volumes::words::{self, time};

/// A promise without a bound.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Unbounded {
    /// More than a queue has is promised to the workload's priority and those before, on its way or on the way of what it meets.
    #[error("{workload}, {stage}: queue {queue}: {}", words::overload(*.stage, .overload.asked, .overload.served))]
    Overload {
        /// Which workload.
        workload: String,
        /// At which stage.
        stage: Stage,
        /// The queue.
        queue: String,
        /// Work a second, asked and there.
        overload: Overload,
    },
    /// The limits let less pass than the workload brings.
    #[error("{workload}, {stage}: its limits: {}", words::overload(*.stage, .overload.asked, .overload.served))]
    Limits {
        /// Which workload.
        workload: String,
        /// At which stage.
        stage: Stage,
        /// Work a second that it brings, and that they let pass.
        overload: Overload,
    },
    /// The paths of what the workload meets lead in a circle.
    #[error(
        "{workload}, {stage}: paths lead in a circle through queue {queue}: they must all follow one order of queues"
    )]
    Circle {
        /// Which workload.
        workload: String,
        /// At which stage.
        stage: Stage,
        /// A queue of the circle, or behind one.
        queue: String,
    },
    /// The linear program, or the expression of a stochastic bound, would be larger than is solved: one part for each way to each queue.
    #[error("{workload}, {stage}: more than {most} ways lead to its queues and those of what it meets")]
    Size {
        /// Which workload.
        workload: String,
        /// At which stage.
        stage: Stage,
        /// The most there may be.
        most: usize,
    },
    /// The solver gave up.
    #[error("{workload}, {stage}: {error}")]
    Solver {
        /// Which workload.
        workload: String,
        /// At which stage.
        stage: Stage,
        /// What it says.
        error: SolverError,
    },
    /// What is known only of requests in order of arrival was asked for, and they may be in another.
    #[error(
        "{workload}, {stage}: requests of one priority may overtake one another there, and `plp` is for those in order of arrival"
    )]
    Order {
        /// Which workload.
        workload: String,
        /// At which stage.
        stage: Stage,
    },
    /// There is no percentile to bound.
    #[error("{workload}: best effort has no percentile, so no stochastic bound")]
    NoSlo {
        /// Which workload.
        workload: String,
    },
    /// A model is missing: the workload's own, or of one that it meets.
    #[error("{workload}, {stage}: {of} has no model of arrivals there, so there is no stochastic bound")]
    NoModel {
        /// Which workload.
        workload: String,
        /// At which stage.
        stage: Stage,
        /// Which workload has none.
        of: String,
    },
    /// Limits change the arrivals that a model describes: the workload's own, or of one that it meets.
    #[error(
        "{workload}, {stage}: limits hold {of} back there by up to {}, so that its model does not hold",
        time(*.seconds)
    )]
    Held {
        /// Which workload.
        workload: String,
        /// At which stage.
        stage: Stage,
        /// Which workload is held back.
        of: String,
        /// By how much, at most.
        seconds: f64,
    },
    /// Models that do not go together.
    #[error("{workload}, {stage}: {fault}")]
    Models {
        /// Which workload.
        workload: String,
        /// At which stage.
        stage: Stage,
        /// What is wrong.
        fault: snc::NetworkError,
    },
    /// The mean load leaves no service.
    #[error(
        "{workload}, {stage}: of models, {}",
        words::overload(*.stage, .unstable.load, .unstable.service)
    )]
    Unstable {
        /// Which workload.
        workload: String,
        /// At which stage.
        stage: Stage,
        /// Work a second.
        unstable: snc::Unstable,
    },
    /// Numbers too large.
    #[error("{workload}: a bound larger than numbers go")]
    NotFinite {
        /// Which workload.
        workload: String,
    },
    /// Who asks for bounds no longer wants them.
    #[error("{workload}: no bound was made, as it was no longer asked for")]
    Stopped {
        /// Which workload.
        workload: String,
    },
    /// An invalid system.
    #[error(transparent)]
    System(#[from] SystemError),
}

/// An SLO that a request misses without any other.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error(
    "{workload}: an SLO of {}, but up to {stage} its requests take {} without any load",
    time(*.slo),
    time(*.unloaded)
)]
pub struct SloBelowUnloaded {
    /// Which workload.
    pub workload: String,
    /// The first stage by which the time is up.
    pub stage: Stage,
    /// The SLO, in seconds.
    pub slo: f64,
    /// Unloaded tails up to and with the stage, in seconds.
    pub unloaded: f64,
}
