//! Placement of tasks.
//!
//! One kind of request serves two kinds of clients. A scheduler sends one task at a time, with its peak
//! demand (Hotspots section 5.1). A tenant sends an app: tasks that arrive together with a traffic matrix
//! (Choreo section 5). A policy answers with a host for each task, or refuses the request.

mod answer;
mod app;
mod borg;
mod capacity_check;
mod choreo;
mod completion;
mod exact;
mod exact_program;
mod file;
mod file_reader;
mod gain;
mod given;
mod host_scores;
mod leeward;
mod matrix;
mod minimum_machines;
mod policy;
mod random;
mod rank;
mod rates;
mod reevaluate;
mod round_robin;
mod score;
mod search;
mod transaction;

use leeward_fabric::{Bytes, Cpus, HostId};
use leeward_registry::Registry;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::estimate::Estimate;
pub use answer::{best_by_scores, check_answer, eligible};
pub use app::App;
pub use borg::{Borg, BorgSettings};
pub use capacity_check::{Taken, still_fits};
pub use choreo::{Choreo, ChoreoSettings, Ties};
pub use completion::{Bottleneck, Completion, completion};
pub use exact::{Exact, ExactSettings};
pub use file::{AppFile, TaskFile};
pub use gain::{Gain, Use};
pub use given::{given, objections};
pub use leeward::{Leeward, LeewardSettings};
pub use policy::{HostRating, Peer, TaskPolicy};
pub use reevaluate::{Alternative, ReevaluationRecord, TaskMove, Worth, reevaluate};
pub use score::{Balance, rack_links};
pub use transaction::{streams, traffic};

use crate::{Constraints, JobId, Request};

/// Tasks to place together.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct AppRequest {
    /// Number of the request; it seeds the tie-breaking hash.
    pub id: u64,
    /// Job of the tasks; policies spread the tasks of a job over racks.
    pub job: JobId,
    /// Tasks, at least one.
    pub tasks: Vec<Task>,
    /// Traffic matrix of each phase: bytes from one task to another. Each pair of tasks appears at most once in a phase,
    /// and no task sends to itself.
    pub transfers: Vec<Transfer>,
    /// Constraints on the hosts besides capacity.
    pub constraints: Constraints,
    /// Goal that comes first; the other one decides between equals.
    pub goal: Goal,
}

/// Goal of a placement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// The shortest completion time.
    #[default]
    Time,
    /// The least cost of the hosts together.
    Cost,
}

impl AppRequest {
    /// Number of phases of its transfers, at least one.
    pub fn phases(&self) -> usize {
        phases(&self.transfers)
    }

    /// True if its tasks exchange any data.
    pub(super) fn has_traffic(&self) -> bool {
        self.transfers.iter().any(|transfer| transfer.bytes > Bytes(0))
    }
}

/// A task of a placed request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TaskId {
    /// Id of the request, [`AppRequest::id`].
    pub app: u64,
    /// Position of the task in the request.
    pub index: u32,
}

/// Demand of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Task {
    /// Processors.
    pub cpus: Cpus,
    /// Memory.
    pub memory: Bytes,
    /// Traffic out of its rack, by class of service.
    pub egress: [Traffic; Class::COUNT],
    /// Traffic into its rack, by class of service.
    pub ingress: [Traffic; Class::COUNT],
    /// True if the task may be moved; a batch task, for example.
    pub tolerant: bool,
}

impl Task {
    /// Traffic out of its rack, all classes together.
    pub fn total_egress(&self) -> Traffic {
        Traffic::sum(&self.egress)
    }

    /// Traffic into its rack, all classes together.
    pub fn total_ingress(&self) -> Traffic {
        Traffic::sum(&self.ingress)
    }

    /// The task with the larger of its stated and its measured traffic in each direction: out of its rack, and into it.
    /// The excess of the measured traffic counts as best effort.
    pub fn with_measured(&self, [egress, ingress]: [Traffic; 2]) -> Task {
        let mut task = *self;
        let directions = [
            (&mut task.egress, self.total_egress(), egress),
            (&mut task.ingress, self.total_ingress(), ingress),
        ];
        for (classes, stated, measured) in directions {
            let best_effort = &mut classes[Class::BestEffort as usize];
            let excess_mean = measured.mean_bps.saturating_sub(stated.mean_bps);
            let excess_peak = measured.peak_bps.saturating_sub(stated.peak_bps);
            best_effort.mean_bps = best_effort.mean_bps.saturating_add(excess_mean);
            best_effort.peak_bps = best_effort.peak_bps.saturating_add(excess_peak);
        }
        task
    }

    /// Number of a decision's entries for this task: one for each direction with traffic. These entries come
    /// last, in the order of tasks, after the entries of transfers.
    pub fn entry_count(&self) -> usize {
        let count = |traffic: Traffic| usize::from(traffic != Traffic::default());
        count(self.total_egress()) + count(self.total_ingress())
    }
}

/// Traffic of a task in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Average rate, in bit/s.
    pub mean_bps: u64,
    /// Peak rate, in bit/s.
    pub peak_bps: u64,
}

impl Traffic {
    /// A constant rate, in bit/s.
    pub fn steady(bps: u64) -> Traffic {
        Traffic { mean_bps: bps, peak_bps: bps }
    }

    fn sum(classes: &[Traffic]) -> Traffic {
        let sum = |rate: fn(&Traffic) -> u64| classes.iter().map(rate).fold(0, u64::saturating_add);
        Traffic { mean_bps: sum(|traffic| traffic.mean_bps), peak_bps: sum(|traffic| traffic.peak_bps) }
    }
}

/// Classes of service, highest priority first (Hotspots section 4.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Class {
    /// Performance-critical.
    Critical,
    /// Not critical.
    NonCritical,
    /// Best effort.
    BestEffort,
}

impl Class {
    /// Number of classes.
    pub const COUNT: usize = 3;
}

/// An element of the traffic matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// Position of the sending task.
    pub from: u32,
    /// Position of the receiving task.
    pub to: u32,
    /// Bytes to send.
    pub bytes: Bytes,
    /// Phase of the app, from 0. The transfers of a phase begin when all those of earlier phases have ended.
    pub phase: u32,
}

/// Number of phases of some transfers, at least one.
pub(crate) fn phases(transfers: &[Transfer]) -> usize {
    transfers.iter().map(|transfer| transfer.phase as usize + 1).max().unwrap_or(1)
}

/// Host of each task, in the order of the request.
pub type Assignment = Vec<HostId>;

impl Request for AppRequest {
    type Choice = Assignment;
    const KIND: &'static str = "tasks";
}

/// All policies for tasks.
pub const REGISTRY: Registry<dyn TaskPolicy> = Registry {
    noun: "policy",
    kind: Some(AppRequest::KIND),
    entries: &[
        random::REGISTRATION,
        round_robin::REGISTRATION,
        minimum_machines::REGISTRATION,
        choreo::REGISTRATION,
        exact::REGISTRATION,
        borg::BORG,
        borg::UTP_REACTIVE,
        borg::UTP_PROACTIVE,
        borg::UTP,
        leeward::REGISTRATION,
    ],
};
