//! What is no expression, and what no network.

use crate::shown::shown;

/// Numbers that make no expression.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum SncError {
    /// An invalid step.
    #[error("step of {} s: must be positive and finite", shown(*.0))]
    Step(f64),
    /// A model in other steps than the rest.
    #[error("a model in steps of {} s among others of {} s: all must be the same", shown(*.found), shown(*.expected))]
    OtherStep {
        /// Its step.
        found: f64,
        /// That of the arena.
        expected: f64,
    },
    /// An invalid server.
    #[error("server of {} work a second: must be positive and finite", shown(*.0))]
    Rate(f64),
    /// Invalid work before a service.
    #[error("server after {} of work: must be finite and not negative", shown(*.0))]
    Whole(f64),
    /// A group beyond those the arena was made for.
    #[error("workload group {group} of {groups}")]
    Group {
        /// Which.
        group: usize,
        /// How many there are.
        groups: usize,
    },
    /// An invalid percentile.
    #[error("percentile {}: must be above 0 and below 100", shown(*.0))]
    Percentile(f64),
}

/// A network that cannot be analysed.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum NetworkError {
    /// Two of one name.
    #[error("{kind} {name}: given twice")]
    Twice {
        /// Queue or workload.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// A queue that serves nothing.
    #[error("queue {queue}: {} work a second: must be positive and finite", shown(*.rate))]
    Rate {
        /// Which.
        queue: String,
        /// What was given.
        rate: f64,
    },
    /// Invalid work in service.
    #[error("queue {queue}: {} of work in service: must be finite and not negative", shown(*.work))]
    InService {
        /// Which queue.
        queue: String,
        /// What was given.
        work: f64,
    },
    /// An invalid packet.
    #[error("workload {workload}, stage {stage}: a packet of {}: must be finite and not negative", shown(*.packet))]
    Packet {
        /// Which workload.
        workload: String,
        /// Which stage, from 0.
        stage: usize,
        /// What was given.
        packet: f64,
    },
    /// An invalid percentile.
    #[error("workload {workload}: percentile {}: must be above 0 and below 100", shown(*.percentile))]
    Percentile {
        /// Which.
        workload: String,
        /// What was given.
        percentile: f64,
    },
    /// Nothing to bound.
    #[error("workload {workload}: no stage: must have at least one")]
    NoStage {
        /// Which.
        workload: String,
    },
    /// An invalid path.
    #[error("workload {workload}, stage {stage}: {queues} queues: must be one or more, and none twice")]
    Path {
        /// Which.
        workload: String,
        /// Which stage, from 0.
        stage: usize,
        /// How many it passes.
        queues: usize,
    },
    /// A queue that is not there.
    #[error("workload {workload}, stage {stage}: queue {queue} is not in the network")]
    UnknownQueue {
        /// Which.
        workload: String,
        /// Which stage, from 0.
        stage: usize,
        /// What was given.
        queue: String,
    },
    /// Paths that lead in a circle.
    #[error("the paths lead in a circle through queue {queue}: they must all follow one order of queues")]
    Circle {
        /// A queue of the circle, or behind one.
        queue: String,
    },
    /// So many ways lead to the queues of a path that they are not written down.
    #[error(
        "workload {workload}: more than {most} terms, one for each way to each queue that it or others pass"
    )]
    Size {
        /// Which workload, from 0.
        workload: usize,
        /// The most there may be.
        most: usize,
    },
    /// A workload that is not there.
    #[error("workload {workload}: depends on {dependency}, which is not in the network")]
    UnknownDependency {
        /// Which.
        workload: String,
        /// What was given.
        dependency: String,
    },
    /// A workload said to depend on itself, which it always does.
    #[error("workload {workload}: depends on itself: name others only")]
    OwnDependency {
        /// Which.
        workload: String,
    },
    /// A model of a stage that does not go with the others.
    #[error("workload {workload}, stage {stage}: {fault}")]
    Model {
        /// Which.
        workload: String,
        /// Which stage, from 0.
        stage: usize,
        /// What is wrong.
        fault: SncError,
    },
    /// A question for a stage that is not there.
    #[error("workload {workload}: stage {stage} of {count}")]
    NoSuchStage {
        /// Which workload, from 0.
        workload: usize,
        /// What was asked for, from 0.
        stage: usize,
        /// How many it has.
        count: usize,
    },
    /// A question for a workload that is not there.
    #[error("workload {index} of {count}")]
    NoWorkload {
        /// What was asked for, from 0.
        index: usize,
        /// How many there are.
        count: usize,
    },
}
