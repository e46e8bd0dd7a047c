//! Where tasks go.
//!
//! One kind of request serves both kinds of placer: a scheduler's stream asks for one task at a time, with its peak
//! demand (Hotspots section 5.1); a tenant asks for an app, tasks that come together with a traffic matrix (Choreo
//! section 5). A policy answers with a host for each task, or refuses all of them.

mod again;
mod borg;
mod change;
mod choreo;
mod completion;
mod exact;
mod file;
mod leeward;
mod minimum_machines;
mod random;
mod rate;
mod rates;
mod round_robin;
mod score;
mod search;
mod seats;
mod square;

use leeward_fabric::{Bytes, Cpus, HostId};

pub use again::{Again, Worth, again};
pub(crate) use borg::rack_links;
pub use borg::{Borg, BorgSettings};
pub(crate) use change::streams;
pub use choreo::{Choreo, ChoreoSettings, Ties};
pub use completion::{Carried, Completion, completion};
pub use exact::{Exact, ExactSettings};
pub use file::{App, AppFile, TaskFile};
pub use leeward::{Leeward, LeewardSettings};
pub use rates::Estimate;
pub(crate) use seats::Taken;
pub use seats::still_fits;

use crate::{Constraints, Policy, PolicyError, Registration, Request};

/// Tasks that are placed together.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct AppRequest {
    /// Tells requests apart, and seeds their ties.
    pub id: u64,
    /// The job that they belong to: its tasks are spread over racks.
    pub job: u64,
    /// At least one.
    pub tasks: Vec<Task>,
    /// The traffic matrix: what one task sends to another. A pair of tasks stands there once, and no task sends to
    /// itself.
    pub transfers: Vec<Transfer>,
    /// What the hosts must satisfy besides having room.
    pub constraints: Constraints,
}

impl AppRequest {
    /// Whether its tasks send each other anything.
    pub(super) fn has_traffic(&self) -> bool {
        self.transfers.iter().any(|transfer| transfer.bytes > Bytes(0))
    }
}

/// A task of a request that was placed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TaskId {
    /// The request, [`AppRequest::id`].
    pub app: u64,
    /// The task's position in it.
    pub index: u32,
}

/// A unit of compute.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Task {
    /// Processors.
    pub cpus: Cpus,
    /// Memory.
    pub memory: Bytes,
    /// What it sends out of its rack, by class of service.
    pub egress: [Traffic; Class::COUNT],
    /// What it receives from outside its rack, by class of service.
    pub ingress: [Traffic; Class::COUNT],
    /// Whether it may be moved: a batch task, say.
    pub tolerant: bool,
}

impl Task {
    /// What it sends out of its rack, all classes together.
    pub fn egress_in_all(&self) -> Traffic {
        Traffic::sum(&self.egress)
    }

    /// What it receives from outside its rack, all classes together.
    pub fn ingress_in_all(&self) -> Traffic {
        Traffic::sum(&self.ingress)
    }

    /// The same, but of each direction the larger of what is stated and what was seen, out of its rack and into it. What
    /// is more counts as best effort.
    pub fn raised(&self, [egress, ingress]: [Traffic; 2]) -> Task {
        let mut task = *self;
        let directions = [
            (&mut task.egress, self.egress_in_all(), egress),
            (&mut task.ingress, self.ingress_in_all(), ingress),
        ];
        for (classes, stated, seen) in directions {
            let rest = &mut classes[Class::BestEffort as usize];
            rest.mean_bps = rest.mean_bps.saturating_add(seen.mean_bps.saturating_sub(stated.mean_bps));
            rest.peak_bps = rest.peak_bps.saturating_add(seen.peak_bps.saturating_sub(stated.peak_bps));
        }
        task
    }

    /// How many entries of a decision are its own: one for each direction in which it has traffic. They are the last,
    /// in the order of tasks, after those of transfers.
    pub fn entries(&self) -> usize {
        let some = |traffic: Traffic| usize::from(traffic != Traffic::default());
        some(self.egress_in_all()) + some(self.ingress_in_all())
    }
}

/// What a task sends or receives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// In the mean, in bit/s.
    pub mean_bps: u64,
    /// At its peak, in bit/s.
    pub peak_bps: u64,
}

impl Traffic {
    /// So much all the time, in bit/s.
    pub fn steady(bps: u64) -> Traffic {
        Traffic { mean_bps: bps, peak_bps: bps }
    }

    fn sum(of: &[Traffic]) -> Traffic {
        let sum = |rate: fn(&Traffic) -> u64| of.iter().map(rate).fold(0, u64::saturating_add);
        Traffic { mean_bps: sum(|traffic| traffic.mean_bps), peak_bps: sum(|traffic| traffic.peak_bps) }
    }
}

/// Classes of service, the first served first (Hotspots section 4.1).
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
    /// How many there are.
    pub const COUNT: usize = 3;
}

/// An element of a traffic matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// The position of the task that sends.
    pub from: u32,
    /// The position of the task that receives.
    pub to: u32,
    /// How much.
    pub bytes: Bytes,
}

/// The host of each task, in the order of the request.
pub type Assignment = Vec<HostId>;

impl Request for AppRequest {
    type Choice = Assignment;
    const KIND: &'static str = "tasks";
}

/// Every policy for tasks there is.
pub const REGISTRY: &[Registration<AppRequest>] = &[
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
];

/// Makes a policy by name; `settings` is a YAML or JSON mapping, empty for the defaults.
pub fn make(name: &str, settings: &str) -> Result<Box<dyn Policy<AppRequest>>, PolicyError> {
    crate::policy::make(REGISTRY, name, settings)
}
