//! Response types about the network, with names and with times as texts.

use leeward_fabric::{Bytes, DomainId, HostId, ResourceId};
use leeward_moves::Stays;
use leeward_records::Clock;
use leeward_records::schema::{Id, Time};
use leeward_service::{HostState, LinkState, NetworkSnapshot, ReservationState, TaskState};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A link.
#[derive(Serialize, JsonSchema)]
pub struct Link {
    /// Name of the link.
    pub link: String,
    /// Capacity in the ledger, in bit/s.
    pub capacity_bps: i64,
    /// True if its load is known.
    pub seen: bool,
    /// True if the load is the sum over the hosts below, because the link has no counter.
    pub derived: bool,
    /// Measured load in bit/s; null if unknown.
    pub measured_bps: Option<i64>,
    /// Measured load as a share of the capacity.
    pub utilization: Option<f64>,
    /// End of the last accepted window.
    #[schemars(with = "Option<Time>")]
    pub until: Option<String>,
    /// Placed load that telemetry does not show yet, in bit/s.
    pub pending_bps: i64,
    /// Reserved rate, in bit/s.
    pub reserved_bps: i64,
    /// Capacity left for best-effort work, in bit/s; 0 if the load is unknown.
    pub residual_bps: i64,
    /// Remaining capacity that `sinbad` expects in bit/s, reduced by recent placements; null if the load is
    /// unknown.
    pub expected_capacity_bps: Option<i64>,
    /// Time since which the link is hot without a gap; null if it is not.
    #[schemars(with = "Option<Time>")]
    pub hot_since: Option<String>,
    /// Capacity from the cluster file in bit/s, if the ledger's capacity is lower; otherwise null.
    pub full_bps: Option<i64>,
    /// Reported speed of its interfaces in bit/s; null without a report.
    pub speed_bps: Option<i64>,
    /// Reported bytes waiting to be sent; null without a report.
    pub queue_bytes: Option<u64>,
}

impl Link {
    /// Converts a link of a snapshot.
    pub fn of(snapshot: &NetworkSnapshot, clock: &Clock, state: &LinkState) -> Link {
        Link {
            link: snapshot.fabric.resource_name(state.link),
            capacity_bps: state.capacity.0,
            seen: state.measured.is_some(),
            derived: state.derived,
            measured_bps: state.measured.map(|load| load.0),
            utilization: state.utilization(),
            until: state.until.map(|at| clock.text(at)),
            pending_bps: state.pending.0,
            reserved_bps: state.reserved.0,
            residual_bps: state.residual.0,
            expected_capacity_bps: state.expected.map(|load| load.0),
            hot_since: state.hot_since.map(|at| clock.text(at)),
            full_bps: state.full.map(|load| load.0),
            speed_bps: state.speed.map(|load| load.0),
            queue_bytes: state.queue.map(|bytes| bytes as u64),
        }
    }

    /// Converts a link of a snapshot by id, if it exists.
    pub fn at(snapshot: &NetworkSnapshot, clock: &Clock, link: Option<ResourceId>) -> Option<Link> {
        link.and_then(|link| snapshot.link(link)).map(|state| Link::of(snapshot, clock, state))
    }
}

/// A link with the decisions that hold resources of it.
#[derive(Serialize, JsonSchema)]
pub struct LinkPage {
    /// The link.
    #[serde(flatten)]
    pub link: Link,
    /// Decisions in memory that hold resources of the link, the newest first; at most 1,000.
    pub holds: Vec<Hold>,
}

/// Kind of a request.
#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Replicas,
    Tasks,
    Workload,
    Volumes,
}

impl Kind {
    /// Name of the kind.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Replicas => "replicas",
            Kind::Tasks => "tasks",
            Kind::Workload => "workload",
            Kind::Volumes => "volumes",
        }
    }
}

/// A decision that holds resources.
#[derive(Serialize, JsonSchema)]
pub struct Hold {
    /// Id of the decision.
    #[schemars(with = "Id")]
    pub decision: String,
    /// Kind of the request.
    #[schemars(with = "Kind")]
    pub kind: &'static str,
    /// Time of the decision.
    #[schemars(with = "Time")]
    pub time: String,
}

/// A host.
#[derive(Serialize, JsonSchema)]
pub struct Host {
    /// Name of the host.
    pub host: String,
    /// Name of its rack.
    pub rack: String,
    /// True if the host is up, according to the last report.
    pub up: bool,
    /// True if the host is being drained.
    pub draining: bool,
    /// Bytes stored.
    pub stored: Bytes,
    /// Storage in bytes: the capacity of its devices in the cluster file, or less if the host reports less. Null if neither is
    /// known.
    pub storage: Option<Bytes>,
    /// Number of tasks on the host.
    pub tasks: u32,
    /// Number of copies that decisions in memory placed on the host.
    pub replicas: u32,
    /// Outbound link; null if the network has no such link.
    pub egress: Option<Link>,
    /// Inbound link; null if the network has no such link.
    pub ingress: Option<Link>,
    /// Devices of the host.
    pub devices: Vec<Device>,
}

/// A device of a host.
#[derive(Serialize, JsonSchema)]
pub struct Device {
    /// Name of the device.
    pub device: String,
    /// Storage in bytes; null if unknown.
    pub capacity: Option<Bytes>,
    /// True if its load is known.
    pub seen: bool,
    /// Measured share of time in which it is busy; null if unknown.
    pub busy: Option<f64>,
    /// End of the last accepted window.
    pub until: Option<String>,
    /// Reserved share of its time.
    pub reserved: f64,
    /// Share of its time left for best-effort work; 0 if its load is unknown.
    pub residual: f64,
    /// Time since which the device is hot without a gap; null if it is not.
    pub hot_since: Option<String>,
    /// Read rate in bit/s; null without a report.
    pub read_bps: Option<f64>,
    /// Write rate in bit/s; null without a report.
    pub write_bps: Option<f64>,
    /// Average number of requests at the device; null without a report.
    pub queue: Option<f64>,
    /// Last reported number of requests at the device; null without a report.
    pub in_flight: Option<u64>,
}

impl Device {
    /// Converts a device of a snapshot; without any report, from the cluster file.
    fn of(
        snapshot: &NetworkSnapshot,
        clock: &Clock,
        id: ResourceId,
        device: &leeward_fabric::Device,
    ) -> Device {
        let state = snapshot.device(id);
        let requests = state.and_then(|state| state.reading).and_then(|reading| reading.requests);
        Device {
            device: snapshot.fabric.resource_name(id),
            capacity: device.capacity,
            seen: state.is_some_and(|state| state.busy.is_some()),
            busy: state.and_then(|state| state.busy),
            until: state.and_then(|state| state.until).map(|at| clock.text(at)),
            reserved: state.map_or(0.0, |state| state.reserved),
            residual: state.map_or(0.0, |state| state.residual),
            hot_since: state.and_then(|state| state.hot_since).map(|at| clock.text(at)),
            read_bps: requests.and_then(|requests| requests.read_bps),
            write_bps: requests.and_then(|requests| requests.write_bps),
            queue: state.and_then(|state| state.queue()),
            in_flight: requests.and_then(|requests| requests.in_flight),
        }
    }
}

impl Host {
    /// Converts a host of a snapshot.
    pub fn of(snapshot: &NetworkSnapshot, clock: &Clock, state: &HostState) -> Host {
        let (fabric, host) = (&snapshot.fabric, state.host);
        let device = |(index, device): (usize, &leeward_fabric::Device)| {
            fabric.device(host, index as u16).map(|id| Device::of(snapshot, clock, id, device))
        };
        Host {
            host: fabric.host_name(host).to_owned(),
            rack: fabric.domain_name(fabric.rack_of(host)).to_owned(),
            up: state.up,
            draining: state.draining,
            stored: state.stored,
            storage: state.storage,
            tasks: state.tasks,
            replicas: state.replicas,
            egress: Link::at(snapshot, clock, fabric.egress(host)),
            ingress: Link::at(snapshot, clock, fabric.ingress(host)),
            devices: fabric.devices(host).iter().enumerate().filter_map(device).collect(),
        }
    }
}

/// A rack in a list.
#[derive(Serialize, JsonSchema)]
pub struct Rack {
    /// Name of the rack.
    pub rack: String,
    /// Name of its pod; null without pods.
    pub pod: Option<String>,
    /// Number of hosts.
    pub hosts: u32,
    /// Uplink; null if the network has none.
    pub up: Option<Link>,
    /// Downlink; null if the network has none.
    pub down: Option<Link>,
    /// Number of tasks that run in it.
    pub tasks: u32,
    /// Number of copies that decisions in memory placed in the rack.
    pub replicas: u32,
}

impl Rack {
    /// Converts a rack of a snapshot.
    pub fn of(snapshot: &NetworkSnapshot, clock: &Clock, rack: DomainId) -> Rack {
        let (fabric, hosts) = (&snapshot.fabric, snapshot.hosts_of(rack));
        Rack {
            rack: fabric.domain_name(rack).to_owned(),
            pod: fabric.parent(rack).map(|pod| fabric.domain_name(pod).to_owned()),
            hosts: hosts.len() as u32,
            up: Link::at(snapshot, clock, fabric.out_of_domain(rack)),
            down: Link::at(snapshot, clock, fabric.into_domain(rack)),
            tasks: hosts.iter().map(|host| host.tasks).sum(),
            replicas: hosts.iter().map(|host| host.replicas).sum(),
        }
    }
}

/// Values of the reason for which a task stays, and null.
pub fn stays_values() -> Vec<Option<&'static str>> {
    Stays::ALL.into_iter().map(|stays| Some(stays.word())).chain([None]).collect()
}

/// A running task.
#[derive(Serialize, JsonSchema)]
pub struct Task {
    /// Name of the task.
    pub task: String,
    /// Decision that placed the task.
    #[schemars(with = "Id")]
    pub decision: String,
    /// Job of the task; null for a task without a job.
    pub job: Option<String>,
    /// Host of the task.
    pub host: String,
    /// True if the task may be moved.
    pub tolerant: bool,
    /// Reason for which the task may not be moved now; null if it may.
    #[schemars(extend("enum" = stays_values()))]
    pub stays: Option<&'static str>,
    /// Last measured traffic out of its rack in bit/s; without a measurement, the average of its demand.
    pub egress_bps: u64,
    /// Last measured traffic into its rack in bit/s; without a measurement, the average of its demand.
    pub ingress_bps: u64,
}

impl Task {
    /// Converts a task of a snapshot.
    pub fn of(snapshot: &NetworkSnapshot, state: TaskState) -> Task {
        let host = |host: HostId| snapshot.fabric.host_name(host).to_owned();
        Task {
            host: host(state.host),
            task: state.name,
            decision: state.decision.to_string(),
            job: state.job,
            tolerant: state.tolerant,
            stays: state.stays.map(Stays::word),
            egress_bps: state.egress_bps,
            ingress_bps: state.ingress_bps,
        }
    }
}

/// A copy placed by a decision.
#[derive(Serialize, JsonSchema)]
pub struct Replica {
    /// Id of the decision.
    #[schemars(with = "Id")]
    pub decision: String,
    /// Host of the copy.
    pub host: String,
    /// Size of the copy.
    pub size: Bytes,
}

/// A reserved rate on a link.
#[derive(Serialize, JsonSchema)]
pub struct Reservation {
    /// Name of the workload.
    pub workload: String,
    /// Name of the link.
    pub link: String,
    /// Reserved rate, in bit/s.
    pub rate_bps: u64,
    /// Priority; 0 is served first.
    pub priority: u8,
}

impl From<ReservationState> for Reservation {
    fn from(state: ReservationState) -> Reservation {
        let ReservationState { workload, link, rate_bps, priority } = state;
        Reservation { workload, link, rate_bps, priority }
    }
}

/// A rack with its contents.
#[derive(Serialize, JsonSchema)]
pub struct RackPage {
    /// Name of the rack.
    pub rack: String,
    /// Name of its pod; null without pods.
    pub pod: Option<String>,
    /// Uplink and downlink.
    pub links: Vec<Link>,
    /// Hosts of the rack.
    pub hosts: Vec<Host>,
    /// Tasks that run in it.
    pub tasks: Vec<Task>,
    /// Copies that decisions in memory placed in the rack.
    pub replicas: Vec<Replica>,
    /// Reserved rates on its links and on the links of its hosts.
    pub reservations: Vec<Reservation>,
}
