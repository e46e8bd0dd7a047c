//! Requests to the coordinator. Times are the engine's, and names are resolved.

use std::sync::Arc;

use leeward_agreements::Form;
use leeward_engine::Rates;
use leeward_fabric::{Bytes, HostId, Nanos, ResourceId};
use leeward_ledger::Sample;
use leeward_placement::tasks::{AppRequest, Peer, TaskId};
use leeward_readings::{HostReport, Reading, ReportedDiskName};
use leeward_records::{Caller, DecisionId, MigrationState, PlacementSpec, TraceSource};
use leeward_registry::splitmix;

use super::measured::PodRates;

/// A task to score hosts for.
#[derive(Clone, PartialEq, Debug)]
pub struct Score {
    /// A request with only this task; the coordinator assigns its ids.
    pub request: AppRequest,
    /// Name of the task's job, if any.
    pub job: Option<String>,
    /// Peers that the task communicates with.
    pub peers: Vec<Peer>,
    /// Hosts to score.
    pub hosts: Vec<HostId>,
}

/// Telemetry over a window of time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Report {
    /// Start and end of the window.
    pub window: (Nanos, Nanos),
    /// Mean loads of links over the window.
    pub loads: Vec<Sample>,
    /// Mean utilization of devices over the window.
    pub devices: Vec<Sample>,
    /// Further state of links and devices at the end of the window.
    pub readings: Vec<(ResourceId, Reading)>,
    /// Reported disks that may be the only device of their host, by name. Such a disk counts if it has the name of the
    /// first report. The samples of these devices are in `devices`.
    pub disks: Vec<(ResourceId, ReportedDiskName)>,
    /// Reported devices that the cluster does not have. The reply lists them; otherwise they are ignored.
    pub unknown_devices: Vec<String>,
    /// States of hosts.
    pub hosts: Vec<HostReport>,
    /// Current rates of tasks across the links of their racks.
    pub tasks: Vec<(TaskId, Rates)>,
    /// Rates of pods, each on a host.
    pub pods: Vec<PodRates>,
    /// Latencies of workloads, at the percentiles of their SLOs, in seconds.
    pub workloads: Vec<(String, f64)>,
}

/// A placement request.
#[derive(Clone, PartialEq, Debug)]
pub struct Placement {
    /// The request. Its names are names of the current cluster.
    pub spec: PlacementSpec,
    /// Client or key, if given.
    pub caller: Option<Caller>,
    /// Time after which the decision expires, unless its end is reported earlier.
    pub lasts: Option<Nanos>,
    /// Name of the placed thing in the client's words; `None` without one.
    pub reference: Option<Arc<str>>,
    /// Digest of the request ([`Placement::with_digest`]); `None` without a caller, because such a request is not
    /// repeated.
    pub digest: Option<u64>,
}

impl Placement {
    /// The placement with its digest. For a large app this takes milliseconds, so it does not run on the actor's loop.
    pub fn with_digest(self) -> Placement {
        let digest =
            self.caller.as_ref().map(|_| self.spec.digest(self.lasts, self.reference.as_deref(), &[]));
        Placement { digest, ..self }
    }
}

/// A placement request whose decision may be held for a short time only.
#[derive(Clone, PartialEq, Debug)]
pub struct Reservation {
    /// The request.
    pub placement: Placement,
    /// Time after which the decision ends unless it is confirmed; `None` for a decision that needs no confirmation.
    pub reserve: Option<Nanos>,
}

impl Reservation {
    /// A reservation of a placement with its digest, which then includes the time.
    pub fn of(mut placement: Placement, reserve: Option<Nanos>) -> Reservation {
        if let (Some(digest), Some(Nanos(reserve))) = (&mut placement.digest, reserve) {
            *digest = splitmix(*digest ^ splitmix(reserve));
        }
        Reservation { placement, reserve }
    }
}

/// A placement that the caller decided itself.
#[derive(Clone, PartialEq, Debug)]
pub struct Commitment {
    /// The request.
    pub placement: Placement,
    /// Names of the chosen hosts: in the order of the chain, or of the tasks.
    pub hosts: Vec<String>,
    /// Time of the choice; `None` for now. The decision's duration starts at this time.
    pub chosen: Option<Nanos>,
}

impl Commitment {
    /// The commitment with its digest, which includes the hosts.
    pub fn with_digest(mut self) -> Commitment {
        let placement = &self.placement;
        let digest = placement
            .caller
            .as_ref()
            .map(|_| placement.spec.digest(placement.lasts, placement.reference.as_deref(), &self.hosts));
        self.placement.digest = digest;
        self
    }
}

/// A workload with a promise whose requests have changed.
#[derive(Clone, PartialEq, Debug)]
pub struct ChangeWorkload {
    /// All fields of the workload, with its name. The server is that of the promise, unless one is named here.
    pub workload: Form,
    /// Trace that curves and models were computed from.
    pub trace: Option<TraceSource>,
    /// Size of the volume; `None` if unknown.
    pub bytes: Option<Bytes>,
}

/// Page of a list of decisions, in descending order of their ids.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DecisionQuery {
    /// Kind of the request; `None` for all kinds.
    pub kind: Option<&'static str>,
    /// Only ids below this one.
    pub before: Option<DecisionId>,
    /// Largest number of decisions.
    pub limit: usize,
    /// Only decisions that are not released.
    pub holding: bool,
}

/// Page of a list of task moves, in descending order of their ids.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MigrationQuery {
    /// State of the moves; `None` for all states.
    pub state: Option<MigrationState>,
    /// Only ids below this one.
    pub before: Option<u64>,
    /// Largest number of moves.
    pub limit: usize,
}
