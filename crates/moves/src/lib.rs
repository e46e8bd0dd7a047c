//! Moves of tasks from hot racks to cool ones (Hotspots section 5.1, the reactive part).
//!
//! A request lists the running tasks and the remaining budget of each job. The answer lists moves in the order of
//! execution. For each hot link it also lists the tasks that would help but stay, with the reason. The engine manages
//! cooldowns and budgets; a policy sees only the remainder.

mod cooling;
mod file;
mod hot_test;
mod reactive;

use std::sync::Arc;

use leeward_fabric::{HostId, ResourceId};
use leeward_registry::Registry;

pub use file::{Fleet, FleetFile};
pub use hot_test::{HotLoad, HotTest};
pub use reactive::{Reactive, ReactiveSettings, traffic};

use leeward_placement::tasks::{Task, TaskId, Traffic};
use leeward_placement::{Constraints, JobId, Policy, Request};

/// State of a cell after a report.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct MoveRequest {
    /// Number of the request. It seeds the tie-breaking hash.
    pub id: u64,
    /// Running tasks, in any order. Contains at least the movable tasks of every rack with a hot link.
    pub running: Vec<Running>,
    /// Remaining budget of each job, by position.
    pub budgets: Vec<Budget>,
    /// Constraints of tasks on their hosts, for tasks that have others than tags.
    pub constraints: Vec<Arc<Constraints>>,
    /// Test for hot links.
    pub test: HotTest,
}

/// A running task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Running {
    /// Id of the task.
    pub task: TaskId,
    /// Host of the task.
    pub host: HostId,
    /// Position of its job in [`MoveRequest::budgets`].
    pub job: u32,
    /// Stated demand.
    pub demand: Task,
    /// Measured traffic out of its rack, in bit/s.
    pub egress_bps: u64,
    /// Measured traffic into its rack, in bit/s.
    pub ingress_bps: u64,
    /// Tags that its host must have, as a [`leeward_fabric::Fabric::tag_mask`].
    pub tags: u64,
    /// Position of its constraints in [`MoveRequest::constraints`]; `None` if it has none but tags.
    pub constraints: Option<u32>,
    /// True if the task was moved recently and must stay.
    pub cooling: bool,
}

impl Running {
    /// Measured traffic out of its rack and into it.
    pub fn measured(&self) -> [Traffic; 2] {
        [Traffic::steady(self.egress_bps), Traffic::steady(self.ingress_bps)]
    }

    /// Demand assumed at the task's destination: in each direction, the larger of the stated and the measured traffic.
    /// A decision has one ledger entry for each direction in which this demand has traffic.
    pub fn assumed_demand(&self) -> Task {
        self.demand.with_measured(self.measured())
    }

    /// Traffic of the assumed demand, out of its rack and into it.
    pub fn assumed_traffic(&self) -> [Traffic; 2] {
        let demand = self.assumed_demand();
        [demand.total_egress(), demand.total_ingress()]
    }
}

/// Remaining budget of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// Id of the job.
    pub job: JobId,
    /// Number of its tasks that may be moved now.
    pub moves: u32,
}

/// Moves, and tasks that stay.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Moves {
    /// Moves in the order of execution.
    pub moves: Vec<Move>,
    /// Tasks that stay on links that are still hot after the moves.
    pub kept: Vec<Kept>,
}

/// A move of a task to another host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Move {
    /// Position of the task in [`MoveRequest::running`].
    pub at: u32,
    /// Destination host.
    pub to: HostId,
    /// Hot link that the task leaves.
    pub link: ResourceId,
}

/// A task that stays on a hot link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kept {
    /// Position of the task in [`MoveRequest::running`].
    pub at: u32,
    /// The hot link.
    pub link: ResourceId,
    /// Reason.
    pub why: Stays,
}

/// Reason for which a task stays.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Stays {
    /// The task is sensitive to latency.
    Sensitive,
    /// The task stays apart from other tasks. A move would have to check every job that names its job.
    Apart,
    /// A bound on round-trip times ties the task to other tasks.
    Latency,
    /// A constraint of its request is no longer known: it was too long to store, or the cluster lost a tag or a label.
    Forgotten,
    /// Its last move is not carried out yet.
    Moving,
    /// The task was moved recently.
    Cooling,
    /// The budget of its job is spent.
    Budget,
    /// No host outside the rack has room for the task, or each rack with room would become hot.
    NoHost,
    /// Hosts outside the rack have room for the task, but the loads of their racks are unknown.
    Unseen,
}

impl Stays {
    /// All reasons.
    pub const ALL: [Stays; 9] = [
        Stays::Sensitive,
        Stays::Apart,
        Stays::Latency,
        Stays::Forgotten,
        Stays::Moving,
        Stays::Cooling,
        Stays::Budget,
        Stays::NoHost,
        Stays::Unseen,
    ];

    /// Reason for which a task with these constraints never moves; `None` if a move can keep to them.
    pub fn bound(constraints: &Constraints) -> Option<Stays> {
        let Constraints { apart, apart_groups, latency, occupied_hosts, occupied_racks, .. } = constraints;
        let Constraints { avoids_jobs, incomplete, .. } = constraints;
        let lists_empty = apart_groups.is_empty() && occupied_hosts.is_empty() && occupied_racks.is_empty();
        if apart.is_some() || *avoids_jobs || !lists_empty {
            Some(Stays::Apart)
        } else if latency.is_empty() {
            incomplete.then_some(Stays::Forgotten)
        } else {
            Some(Stays::Latency)
        }
    }

    /// Reason as a word.
    pub fn word(self) -> &'static str {
        match self {
            Stays::Sensitive => "sensitive",
            Stays::Apart => "apart",
            Stays::Latency => "latency",
            Stays::Forgotten => "forgotten",
            Stays::Moving => "moving",
            Stays::Cooling => "cooling",
            Stays::Budget => "budget",
            Stays::NoHost => "no-host",
            Stays::Unseen => "unseen",
        }
    }

    /// Reason as text.
    pub fn text(self) -> &'static str {
        match self {
            Stays::Sensitive => "it is sensitive to latency",
            Stays::Apart => "it stays apart from other tasks",
            Stays::Latency => "a bound on round-trip times ties it to other tasks",
            Stays::Forgotten => "a constraint of its request is no longer known",
            Stays::Moving => "its last move is not carried out yet",
            Stays::Cooling => "it was moved a short time ago",
            Stays::Budget => "its job's budget is spent",
            Stays::NoHost => "no rack that stays cool has room for it",
            Stays::Unseen => "the loads of all other racks with room for it are unknown",
        }
    }
}

impl Request for MoveRequest {
    type Choice = Moves;
    const KIND: &'static str = "moves";
}

/// All policies for moves. A task policy names its move policy in [`leeward_placement::tasks::TaskPolicy::move_policy`].
pub const REGISTRY: Registry<dyn Policy<MoveRequest>> = Registry {
    noun: "policy",
    kind: Some(MoveRequest::KIND),
    entries: &[reactive::UTP_REACTIVE, reactive::UTP, reactive::LEEWARD],
};
