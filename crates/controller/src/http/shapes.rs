//! What clients are told about the network, by names and with times as texts.

use leeward_fabric::{Bytes, DomainId, HostId, Nanos, ResourceId};
use schemars::JsonSchema;
use serde::Serialize;

use super::decisions::Kind;
use crate::clock::Clock;
use crate::described::{Id, Time};
use crate::desk::{HostState, LinkState, ReservationState, TaskState, World};

/// A link.
#[derive(Serialize, JsonSchema)]
pub struct Link {
    /// Its name.
    pub link: String,
    /// What it is believed to carry at most.
    pub capacity_bps: i64,
    /// Whether its load is known.
    pub seen: bool,
    /// Whether that is the sum of the hosts below, for want of a counter.
    pub derived: bool,
    /// What telemetry shows; null if not seen.
    pub measured_bps: Option<i64>,
    /// The same as a share of the capacity.
    pub utilization: Option<f64>,
    /// End of the last window that was taken in.
    #[schemars(with = "Option<Time>")]
    pub until: Option<String>,
    /// What was placed and telemetry does not show yet.
    pub pending_bps: i64,
    /// What was promised.
    pub reserved_bps: i64,
    /// What best-effort work may still use; 0 if not seen.
    pub residual_bps: i64,
    /// What `sinbad` expects it to have left, recent placements taken off; null if not seen.
    pub expected_capacity_bps: Option<i64>,
    /// Since when it is hot, without a gap; null if it is not.
    #[schemars(with = "Option<Time>")]
    pub hot_since: Option<String>,
    /// What the cluster says that it carries, where less is believed; else null.
    pub full_bps: Option<i64>,
    /// What its interfaces are said to carry at most; null if nobody says.
    pub speed_bps: Option<i64>,
    /// Bytes that are said to wait to be sent; null if nobody says.
    pub queue_bytes: Option<u64>,
}

impl Link {
    /// A link of a world.
    pub fn of(world: &World, clock: &Clock, state: &LinkState) -> Link {
        Link {
            link: world.fabric.resource_name(state.link),
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

    /// The same by number, where there is such a link.
    pub fn at(world: &World, clock: &Clock, link: Option<ResourceId>) -> Option<Link> {
        link.and_then(|link| world.link(link)).map(|state| Link::of(world, clock, state))
    }
}

/// A link, with who holds something of it.
#[derive(Serialize, JsonSchema)]
pub struct LinkPage {
    /// The link.
    #[serde(flatten)]
    pub link: Link,
    /// Decisions that are kept and hold something of it, the last ones first; 1,000 at most.
    pub holds: Vec<Hold>,
}

/// A decision that holds something.
#[derive(Serialize, JsonSchema)]
pub struct Hold {
    /// The decision.
    #[schemars(with = "Id")]
    pub decision: String,
    /// What was asked for.
    #[schemars(with = "Kind")]
    pub kind: &'static str,
    /// When it was made.
    #[schemars(with = "Time")]
    pub time: String,
}

/// A host.
#[derive(Serialize, JsonSchema)]
pub struct Host {
    /// Its name.
    pub host: String,
    /// Its rack.
    pub rack: String,
    /// Whether it is up, as far as it was told.
    pub up: bool,
    /// Whether it is being emptied.
    pub draining: bool,
    /// What it stores.
    pub stored: Bytes,
    /// What it can store; null if it has no device with a capacity.
    pub storage: Option<Bytes>,
    /// Tasks on it.
    pub tasks: u32,
    /// Copies that kept decisions put there.
    pub replicas: u32,
    /// What it sends; null where the network has no such link.
    pub egress: Option<Link>,
    /// What it receives.
    pub ingress: Option<Link>,
    /// Its devices.
    pub devices: Vec<Device>,
}

/// A device of a host.
#[derive(Serialize, JsonSchema)]
pub struct Device {
    /// Its name.
    pub device: String,
    /// What it can store; null if that is not said.
    pub capacity: Option<Bytes>,
    /// Whether its load is known.
    pub seen: bool,
    /// The share of its time in which it is busy, as telemetry shows it; null if not seen.
    pub busy: Option<f64>,
    /// End of the last window that was taken in.
    pub until: Option<String>,
    /// The share of its time that was promised.
    pub reserved: f64,
    /// The share of its time that best-effort work may still use; 0 if not seen.
    pub residual: f64,
    /// Since when it is hot, without a gap; null if it is not.
    pub hot_since: Option<String>,
    /// Bits read in a second; null if nobody says.
    pub read_bps: Option<f64>,
    /// Bits written in a second; null if nobody says.
    pub write_bps: Option<f64>,
    /// Requests that were with it in the mean; null if nobody says.
    pub queue: Option<f64>,
    /// Requests that were with it at last; null if nobody says.
    pub in_flight: Option<u64>,
}

impl Device {
    /// A device of a world; of one of which nothing was ever said, what the cluster says.
    fn of(world: &World, clock: &Clock, id: ResourceId, device: &leeward_fabric::Device) -> Device {
        let state = world.device(id);
        let requests = state.and_then(|state| state.reading).and_then(|reading| reading.requests);
        Device {
            device: world.fabric.resource_name(id),
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
    /// A host of a world.
    pub fn of(world: &World, clock: &Clock, state: &HostState) -> Host {
        let (fabric, host) = (&world.fabric, state.host);
        let device = |(index, device): (usize, &leeward_fabric::Device)| {
            fabric.device(host, index as u16).map(|id| Device::of(world, clock, id, device))
        };
        Host {
            host: fabric.host_name(host).to_owned(),
            rack: fabric.domain_name(fabric.rack_of(host)).to_owned(),
            up: state.up,
            draining: state.draining,
            stored: state.stored,
            storage: fabric.storage(host),
            tasks: state.tasks,
            replicas: state.replicas,
            egress: Link::at(world, clock, fabric.egress(host)),
            ingress: Link::at(world, clock, fabric.ingress(host)),
            devices: fabric.devices(host).iter().enumerate().filter_map(device).collect(),
        }
    }
}

/// A rack, as one of many.
#[derive(Serialize, JsonSchema)]
pub struct Rack {
    /// Its name.
    pub rack: String,
    /// Its pod, where the network has pods.
    pub pod: Option<String>,
    /// How many hosts it has.
    pub hosts: u32,
    /// Its uplink; null where the network has none.
    pub up: Option<Link>,
    /// Its downlink.
    pub down: Option<Link>,
    /// Tasks that run in it.
    pub tasks: u32,
    /// Copies that kept decisions put there.
    pub replicas: u32,
}

impl Rack {
    /// A rack of a world.
    pub fn of(world: &World, clock: &Clock, rack: DomainId) -> Rack {
        let (fabric, hosts) = (&world.fabric, world.hosts_of(rack));
        Rack {
            rack: fabric.domain_name(rack).to_owned(),
            pod: fabric.parent(rack).map(|pod| fabric.domain_name(pod).to_owned()),
            hosts: hosts.len() as u32,
            up: Link::at(world, clock, fabric.out_of_domain(rack)),
            down: Link::at(world, clock, fabric.into_domain(rack)),
            tasks: hosts.iter().map(|host| host.tasks).sum(),
            replicas: hosts.iter().map(|host| host.replicas).sum(),
        }
    }
}

/// A task that runs.
#[derive(Serialize, JsonSchema)]
pub struct Task {
    /// What it is called.
    pub task: String,
    /// The decision that placed it.
    #[schemars(with = "Id")]
    pub decision: String,
    /// Its job; null if it is one by itself.
    pub job: Option<String>,
    /// Where it runs.
    pub host: String,
    /// Whether it may be moved.
    pub tolerant: bool,
    /// What it was last seen to send out of its rack, or else demands in the mean.
    pub egress_bps: u64,
    /// What it receives from outside.
    pub ingress_bps: u64,
}

impl Task {
    /// A task of a world.
    pub fn of(world: &World, state: TaskState) -> Task {
        let host = |host: HostId| world.fabric.host_name(host).to_owned();
        Task {
            host: host(state.host),
            task: state.name,
            decision: state.decision.to_string(),
            job: state.job,
            tolerant: state.tolerant,
            egress_bps: state.egress_bps,
            ingress_bps: state.ingress_bps,
        }
    }
}

/// A copy that a decision put somewhere.
#[derive(Serialize, JsonSchema)]
pub struct Replica {
    /// The decision.
    #[schemars(with = "Id")]
    pub decision: String,
    /// Where it is.
    pub host: String,
    /// Its size.
    pub size: Bytes,
}

/// A rate that was promised on a link.
#[derive(Serialize, JsonSchema)]
pub struct Reservation {
    /// To which workload.
    pub workload: String,
    /// Where.
    pub link: String,
    /// How much.
    pub rate_bps: u64,
    /// At which priority, 0 first.
    pub priority: u8,
}

impl From<ReservationState> for Reservation {
    fn from(state: ReservationState) -> Reservation {
        let ReservationState { workload, link, rate_bps, priority } = state;
        Reservation { workload, link, rate_bps, priority }
    }
}

/// A rack, with what is in it.
#[derive(Serialize, JsonSchema)]
pub struct RackPage {
    /// Its name.
    pub rack: String,
    /// Its pod, where the network has pods.
    pub pod: Option<String>,
    /// Its uplink and downlink.
    pub links: Vec<Link>,
    /// Its hosts.
    pub hosts: Vec<Host>,
    /// Tasks that run in it.
    pub tasks: Vec<Task>,
    /// Copies that kept decisions put there.
    pub replicas: Vec<Replica>,
    /// Rates that were promised on its links and those of its hosts.
    pub reservations: Vec<Reservation>,
}

/// Part of a list.
#[derive(Serialize, JsonSchema)]
pub struct Page<T> {
    /// What is there.
    pub items: Vec<T>,
    /// What to give as `after` for more; null at the end.
    #[schemars(with = "Option<Id>")]
    pub next: Option<String>,
}

/// Every link at a moment, small: what a placer keeps beside itself.
#[derive(Serialize, JsonSchema)]
pub struct Snapshot {
    /// The state of the ledger.
    pub epoch: u64,
    /// The moment.
    #[schemars(with = "Time")]
    pub time: String,
    /// What stands in a row.
    pub columns: [&'static str; 6],
    /// For each link a row. What is not seen is null.
    pub rows: Vec<Row>,
    /// Up to which of its requests the placements of each client are counted in. A client of which the first request is
    /// still to be decided is not in it.
    pub clients: Vec<Client>,
}

/// A link of a snapshot.
#[derive(Serialize, JsonSchema)]
pub struct Row(String, i64, Option<i64>, Option<String>, i64, Option<i64>);

/// A client of a snapshot.
#[derive(Serialize, JsonSchema)]
pub struct Client {
    /// Its name.
    pub client: String,
    /// The last of its requests that is counted in.
    pub sequence: u64,
}

impl Snapshot {
    /// A world, small.
    pub fn of(world: &World, clock: &Clock) -> Snapshot {
        let row = |state: &LinkState| {
            Row(
                world.fabric.resource_name(state.link),
                state.capacity.0,
                state.measured.map(|load| load.0),
                state.until.map(|at: Nanos| clock.text(at)),
                state.residual.0,
                state.expected.map(|load| load.0),
            )
        };
        let client = |(client, sequence): &(std::sync::Arc<str>, u64)| Client {
            client: client.to_string(),
            sequence: *sequence,
        };
        Snapshot {
            epoch: world.epoch,
            time: clock.text(world.at),
            columns: [
                "link",
                "capacity_bps",
                "measured_bps",
                "until",
                "residual_bps",
                "expected_capacity_bps",
            ],
            rows: world.links.iter().map(row).collect(),
            clients: world.clients.iter().map(client).collect(),
        }
    }
}
