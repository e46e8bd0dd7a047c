//! Requests to the coordinator. Times are the engine's, and names are resolved.

use leeward_engine::Rates;
use leeward_fabric::{Bytes, HostId, Nanos, ResourceId};
use leeward_ledger::Sample;
use leeward_placement::Peer;
use leeward_placement::replicas::ReplicaRequest;
use leeward_placement::tasks::{AppRequest, TaskId};
use leeward_records::{Caller, MigrationState, Wish};

use super::disks::Called;
use super::readings::Reading;

/// A task that a scheduler seeks a host for.
#[derive(Clone, PartialEq, Debug)]
pub struct Score {
    /// A request of the one task; the coordinator numbers it.
    pub request: AppRequest,
    /// Its job, where it has one with a name.
    pub job: Option<String>,
    /// What it talks to.
    pub peers: Vec<Peer>,
    /// The hosts.
    pub hosts: Vec<HostId>,
}

/// What was seen over a window of time.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Report {
    /// Beginning and end.
    pub window: (Nanos, Nanos),
    /// Mean loads of links over the window.
    pub loads: Vec<Sample>,
    /// Mean utilization of devices over the window.
    pub devices: Vec<Sample>,
    /// What is said of links and devices beside, at the end of the window.
    pub readings: Vec<(ResourceId, Reading)>,
    /// What disks are called that are taken for the only device of their host, if they are what they were called before;
    /// they are among the devices.
    pub disks: Vec<(ResourceId, Called)>,
    /// Devices that are named and the cluster does not have. They are passed over, and told of.
    pub unknown_devices: Vec<String>,
    /// What hosts say of themselves.
    pub hosts: Vec<HostReport>,
    /// What tasks carry across the links of their racks now.
    pub tasks: Vec<(TaskId, Rates)>,
    /// What requests of workloads took, at the percentile of their SLOs, in seconds.
    pub workloads: Vec<(String, f64)>,
}

/// What is to be known of a host; `None` leaves things as they are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostReport {
    /// Which one.
    pub host: HostId,
    /// Whether it is known to be up, or down.
    pub up: Option<bool>,
    /// Whether it is being emptied.
    pub draining: Option<bool>,
    /// What it stores.
    pub stored: Option<Bytes>,
}

/// Something to be placed.
#[derive(Clone, PartialEq, Debug)]
pub struct Placement {
    /// The request. The coordinator numbers requests itself, and takes each block for a file of its own.
    pub request: Request,
    /// The same as it is kept and shown.
    pub wish: Wish,
    /// Who asks, where that is said.
    pub caller: Option<Caller>,
    /// After how long it ends by itself, if nobody says before that its work ended.
    pub lasts: Option<Nanos>,
}

/// What is to be placed.
#[derive(Clone, PartialEq, Debug)]
pub enum Request {
    /// Copies of a block.
    Replicas(ReplicaRequest),
    /// Tasks. Their job is that of the wish.
    Tasks(AppRequest),
    /// The workload of the wish.
    Workload,
}

/// Page of a list of decisions, in falling order of their ids.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DecisionQuery {
    /// Kind of the request; `None` for all kinds.
    pub kind: Option<&'static str>,
    /// Only ids below this one.
    pub before: Option<u64>,
    /// Number of decisions at most.
    pub limit: usize,
    /// Only decisions that are not released.
    pub holding: bool,
}

/// Page of a list of task moves, in falling order of their ids.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MigrationQuery {
    /// State of the moves; `None` for all states.
    pub state: Option<MigrationState>,
    /// Only ids below this one.
    pub before: Option<u64>,
    /// Number of moves at most.
    pub limit: usize,
}
