//! Which tasks leave a hot rack, and where they go (Hotspots section 5.1, the reactive part).
//!
//! A request lists what runs and what each job can still bear; the answer lists moves in the order in which they are
//! to be made, and for each hot link the tasks that stay though they would help, with the reason. Cooldowns and budgets
//! are the engine's; a policy sees only what is left of them.

mod cool;
mod file;
mod reactive;

use leeward_fabric::{HostId, ResourceId};

pub use file::{Fleet, FleetFile};
pub use reactive::{Reactive, ReactiveSettings};

use crate::tasks::{Task, TaskId, Traffic};
use crate::{Policy, PolicyError, Registration, Request};

/// A cell after a report.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct MoveRequest {
    /// Tells requests apart, and seeds their ties.
    pub id: u64,
    /// The tasks that run, in any order: at least those of racks with a hot link that may be moved now.
    pub running: Vec<Running>,
    /// What each job can still bear, by position.
    pub budgets: Vec<Budget>,
}

/// A task that runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Running {
    /// Which.
    pub task: TaskId,
    /// Where it is.
    pub host: HostId,
    /// The position of its job in [`MoveRequest::budgets`].
    pub job: u32,
    /// What it demands.
    pub demand: Task,
    /// What it sends out of its rack now, in bit/s.
    pub egress_bps: u64,
    /// What it receives from outside its rack now, in bit/s.
    pub ingress_bps: u64,
    /// Tags that its host must have, as [`leeward_fabric::Fabric::tag_mask`] gives them.
    pub tags: u64,
    /// Whether it was moved so recently that it must stay.
    pub cooling: bool,
}

impl Running {
    /// What it sends out of its rack and receives from outside now.
    pub fn measured(&self) -> [Traffic; 2] {
        [Traffic::steady(self.egress_bps), Traffic::steady(self.ingress_bps)]
    }

    /// What it is taken to demand where it goes: what is stated, or where that is more what is measured. A decision has
    /// as many entries for it as this has.
    pub fn bears(&self) -> Task {
        self.demand.raised(self.measured())
    }
}

/// What a job can still bear.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budget {
    /// Which job.
    pub job: u64,
    /// How many of its tasks may be moved now.
    pub moves: u32,
}

/// Who moves, and who does not.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Moves {
    /// In the order in which they are to be made.
    pub moves: Vec<Move>,
    /// Tasks of hot links that stay, where the link is still hot after the moves.
    pub kept: Vec<Kept>,
}

/// A task goes to another host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Move {
    /// Its position in [`MoveRequest::running`].
    pub at: u32,
    /// Where it goes.
    pub to: HostId,
    /// The hot link that it leaves.
    pub link: ResourceId,
}

/// A task stays on a hot link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kept {
    /// Its position in [`MoveRequest::running`].
    pub at: u32,
    /// The hot link.
    pub link: ResourceId,
    /// Why.
    pub why: Stays,
}

/// Why a task stays.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Stays {
    /// It is sensitive to latency.
    Sensitive,
    /// It was moved a short time ago.
    Cooling,
    /// Its job's budget is spent.
    Budget,
    /// No host elsewhere has room for it without its rack's becoming hot.
    NoHost,
    /// Hosts elsewhere have room for it, but the load of none of their racks is known.
    Unseen,
}

impl Stays {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Stays::Sensitive => "it is sensitive to latency",
            Stays::Cooling => "it was moved a short time ago",
            Stays::Budget => "its job's budget is spent",
            Stays::NoHost => "no rack that stays cool has room for it",
            Stays::Unseen => "the load of no other rack with room for it is known",
        }
    }
}

impl Request for MoveRequest {
    type Choice = Moves;
    const KIND: &'static str = "moves";
}

/// Every policy for moves there is, under the name of the policy for tasks that it belongs to.
pub const REGISTRY: &[Registration<MoveRequest>] =
    &[reactive::UTP_REACTIVE, reactive::UTP, reactive::LEEWARD];

/// Makes a policy by name; `settings` is a YAML or JSON mapping, empty for the defaults.
pub fn make(name: &str, settings: &str) -> Result<Box<dyn Policy<MoveRequest>>, PolicyError> {
    crate::policy::make(REGISTRY, name, settings)
}
