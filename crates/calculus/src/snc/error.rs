//! Errors for invalid expressions and invalid networks.

use crate::number_format::format_number;

/// Invalid numbers in an expression.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum SncError {
    /// An invalid step.
    #[error("step of {} s: must be positive and finite", format_number(*.0))]
    Step(f64),
    /// A model whose step differs from the step of the arena.
    #[error("a model in steps of {} s, others in steps of {} s: all steps must be the same", format_number(*.found), format_number(*.expected))]
    StepMismatch {
        /// The step of the model.
        found: f64,
        /// The step of the arena.
        expected: f64,
    },
    /// An invalid server.
    #[error("server of {} work a second: must be positive and finite", format_number(*.0))]
    Rate(f64),
    /// An invalid amount of initial work of a server.
    #[error("server with initial work {}: must be finite and not negative", format_number(*.0))]
    Whole(f64),
    /// A group number beyond the number of groups of the arena.
    #[error("no workload group {group}: there are {groups}")]
    Group {
        /// The group.
        group: usize,
        /// Number of groups.
        groups: usize,
    },
    /// An invalid percentile.
    #[error("percentile {}: must be above 0 and below 100", format_number(*.0))]
    Percentile(f64),
}

/// A network that cannot be analysed.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum NetworkError {
    /// Two queues or two workloads with one name.
    #[error("duplicate {kind} {name}")]
    DuplicateName {
        /// `queue` or `workload`.
        kind: &'static str,
        /// The duplicate name.
        name: String,
    },
    /// A queue with an invalid rate.
    #[error("queue {queue}: {} work a second: must be positive and finite", format_number(*.rate))]
    Rate {
        /// Name of the queue.
        queue: String,
        /// The rejected rate.
        rate: f64,
    },
    /// Invalid work in service.
    #[error("queue {queue}: {} of work in service: must be finite and not negative", format_number(*.work))]
    InService {
        /// Name of the queue.
        queue: String,
        /// The rejected amount.
        work: f64,
    },
    /// An invalid latency.
    #[error("queue {queue}: a latency of {} s: must be finite and not negative", format_number(*.latency))]
    Latency {
        /// Name of the queue.
        queue: String,
        /// The rejected latency, in seconds.
        latency: f64,
    },
    /// An invalid packet.
    #[error("workload {workload}, stage {stage}: a packet of {}: must be finite and not negative", format_number(*.packet))]
    Packet {
        /// Name of the workload.
        workload: String,
        /// Index of the stage, from 0.
        stage: usize,
        /// The rejected size.
        packet: f64,
    },
    /// An invalid percentile.
    #[error("workload {workload}: percentile {}: must be above 0 and below 100", format_number(*.percentile))]
    Percentile {
        /// Name of the workload.
        workload: String,
        /// The rejected percentile.
        percentile: f64,
    },
    /// A workload without stages.
    #[error("workload {workload}: no stage: must have at least one")]
    NoStage {
        /// Name of the workload.
        workload: String,
    },
    /// An invalid path.
    #[error("workload {workload}, stage {stage}: {queues} queues: must be one or more, and none twice")]
    Path {
        /// Name of the workload.
        workload: String,
        /// Index of the stage, from 0.
        stage: usize,
        /// Number of queues of its path.
        queues: usize,
    },
    /// A queue that does not exist.
    #[error("workload {workload}, stage {stage}: queue {queue} is not in the network")]
    UnknownQueue {
        /// Name of the workload.
        workload: String,
        /// Index of the stage, from 0.
        stage: usize,
        /// Name of the unknown queue.
        queue: String,
    },
    /// Paths that form a cycle.
    #[error("the paths form a cycle through queue {queue}: they must all follow one order of queues")]
    Cycle {
        /// A queue on the cycle, or a queue after the cycle.
        queue: String,
    },
    /// An expression that is too large, because too many routes lead to the queues of a path.
    #[error(
        "workload {workload}: the expression has more than {most} terms: too many routes lead to the queues of its \
         path"
    )]
    Size {
        /// Index of the workload, from 0.
        workload: usize,
        /// The limit.
        most: usize,
    },
    /// A dependency on a workload that does not exist.
    #[error("workload {workload}: depends on {dependency}, which is not in the network")]
    UnknownDependency {
        /// Name of the workload.
        workload: String,
        /// Name of the unknown workload.
        dependency: String,
    },
    /// A workload that lists itself as a dependency; this dependency is always implied.
    #[error("workload {workload}: depends on itself: list other workloads only")]
    OwnDependency {
        /// Name of the workload.
        workload: String,
    },
    /// A stage whose model does not match the others.
    #[error("workload {workload}, stage {stage}: {fault}")]
    Model {
        /// Name of the workload.
        workload: String,
        /// Index of the stage, from 0.
        stage: usize,
        /// The problem with the model.
        fault: SncError,
    },
    /// A query for a stage that does not exist.
    #[error("workload {workload} has no stage {stage}: it has {count}")]
    NoSuchStage {
        /// Index of the workload, from 0.
        workload: usize,
        /// Index of the requested stage, from 0.
        stage: usize,
        /// Number of stages of the workload.
        count: usize,
    },
    /// A query for a workload that does not exist.
    #[error("no workload {index}: there are {count}")]
    NoWorkload {
        /// The requested index, from 0.
        index: usize,
        /// Number of workloads.
        count: usize,
    },
}
