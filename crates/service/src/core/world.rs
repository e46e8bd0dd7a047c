//! What readers see: the network at a moment, copied once and shared by all of them.

use std::sync::Arc;

use leeward_fabric::{Bytes, DomainId, Fabric, HostId, Load, Nanos, ResourceId};
use leeward_ledger::{EntryId, Numbers, View};
use leeward_placement::moves::Running;
use leeward_records::{Record, ReplicasWish, Wish};

use super::readings::Known;
use super::{Addresses, Coordinator, RackContent, Reading, TaskState};

/// The network at a moment.
#[derive(Clone, Debug)]
pub struct World {
    /// What names and numbers mean.
    pub fabric: Arc<Fabric>,
    /// The version of the cluster.
    pub version: u64,
    /// The moment.
    pub at: Nanos,
    /// The state of the ledger.
    pub epoch: u64,
    /// From which utilization on a link is hot.
    pub hot_above: f64,
    /// Every link, in order of ids; devices are not in it.
    pub links: Vec<LinkState>,
    /// Every device of which something was ever said, in order of ids.
    pub devices: Vec<DeviceState>,
    /// Every host, in order of ids.
    pub hosts: Vec<HostState>,
    /// For each client, the sequence up to which its placements are counted in.
    pub clients: Vec<(Arc<str>, u64)>,
    /// How much the coordinator has.
    pub counts: Counts,
}

/// How much the coordinator has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Decisions that are kept.
    pub decisions: usize,
    /// Decisions that were made since the coordinator was made: at a start, a change of the cluster or of who leads.
    pub decided: u64,
    /// Requests that wait to be decided.
    pub waiting: usize,
    /// Samples of links and devices ever taken in.
    pub samples: u64,
    /// Decisions that had to stop counting before telemetry showed them, because there were too many.
    pub released_early: u64,
}

/// What the ledger says of a link.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinkState {
    /// Which one.
    pub link: ResourceId,
    /// What it is believed to carry at most.
    pub capacity: Load,
    /// What telemetry shows; `None` where the link is not seen.
    pub measured: Option<Load>,
    /// End of the last window that was taken in; `None` if none was, or none since its host came up.
    pub until: Option<Nanos>,
    /// Whether what is measured is a sum over the hosts below.
    pub derived: bool,
    /// What was placed and telemetry does not show yet.
    pub pending: Load,
    /// What was promised.
    pub reserved: Load,
    /// What best-effort work may still use.
    pub residual: Load,
    /// Sinbad's number; `None` where the link is not seen.
    pub expected: Option<Load>,
    /// Since when it is hot.
    pub hot_since: Option<Nanos>,
    /// What the cluster says that it carries, where less is believed.
    pub full: Option<Load>,
    /// What its interfaces are said to carry at most.
    pub speed: Option<Load>,
    /// Bytes that are said to wait to be sent.
    pub queue: Option<f64>,
}

/// What the ledger says of a device, in shares of its time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DeviceState {
    /// Which one.
    pub device: ResourceId,
    /// How busy it was seen to be; `None` where it is not seen.
    pub busy: Option<f64>,
    /// End of the last window that was taken in.
    pub until: Option<Nanos>,
    /// What was promised of it.
    pub reserved: f64,
    /// What best-effort work may still use.
    pub residual: f64,
    /// Since when it is hot.
    pub hot_since: Option<Nanos>,
    /// What is said of it beside, where it is seen.
    pub reading: Option<Reading>,
}

impl DeviceState {
    fn of(view: &View<'_>, device: ResourceId, reading: Option<Reading>) -> DeviceState {
        let share = |load: Load| load.0 as f64 / 1e9;
        let Numbers { measured, reserved, residual, .. } = view.numbers(device);
        DeviceState {
            device,
            busy: measured.map(share),
            until: Some(view.measured_until(device)).filter(|&until| until > Nanos(0)),
            reserved: share(reserved),
            residual: share(residual),
            hot_since: view.hot_since(device),
            reading,
        }
    }

    /// How many requests were with it in the mean, where that is said.
    pub fn queue(&self) -> Option<f64> {
        self.reading.and_then(|reading| reading.queue)
    }
}

impl LinkState {
    /// Of a link in a view, with what the cluster says that it carries where less is believed, and what is said of it.
    fn of(view: &View<'_>, link: ResourceId, full: Option<Load>, reading: Reading) -> LinkState {
        let Numbers { measured, load, reserved, residual, expected } = view.numbers(link);
        let pending = load.zip(measured).map(|(load, measured)| Load(load.0 - measured.0));
        LinkState {
            link,
            capacity: view.capacity(link),
            measured,
            until: Some(view.measured_until(link)).filter(|&until| until > Nanos(0)),
            derived: view.is_derived(link),
            pending: pending.unwrap_or_default(),
            reserved,
            residual,
            expected,
            hot_since: view.hot_since(link),
            full,
            speed: reading.speed,
            queue: reading.queue,
        }
    }

    /// Whether it is seen, and believed to carry less than the cluster says.
    pub fn is_slow(&self) -> bool {
        self.full.is_some() && self.measured.is_some()
    }

    /// Measured load as a share of the capacity; `None` where it is not seen, or nothing can be carried.
    pub fn utilization(&self) -> Option<f64> {
        let measured = self.measured.filter(|_| self.capacity > Load(0))?;
        Some(measured.0 as f64 / self.capacity.0 as f64)
    }
}

/// What is known of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostState {
    /// Which one.
    pub host: HostId,
    /// Whether it is up, as far as it was told.
    pub up: bool,
    /// Whether it is being emptied.
    pub draining: bool,
    /// What it stores.
    pub stored: Bytes,
    /// Tasks on it.
    pub tasks: u32,
    /// Copies that decisions put there and nobody said the end of.
    pub replicas: u32,
}

impl World {
    /// A link's state; `None` if it is a device, or not of the fabric.
    pub fn link(&self, link: ResourceId) -> Option<&LinkState> {
        self.links.get(self.position(link))
    }

    /// Where a link stands among the links; past all of them if it is none.
    pub fn position(&self, link: ResourceId) -> usize {
        self.links.binary_search_by_key(&link, |state| state.link).unwrap_or(usize::MAX)
    }

    /// A device's state; `None` if nothing was ever said of it.
    pub fn device(&self, device: ResourceId) -> Option<&DeviceState> {
        let at = self.devices.binary_search_by_key(&device, |state| state.device).ok()?;
        self.devices.get(at)
    }

    /// The hosts of a rack or pod.
    pub fn hosts_of(&self, domain: DomainId) -> &[HostState] {
        let hosts = self.fabric.hosts(domain);
        self.hosts.get(hosts.start as usize..hosts.end as usize).unwrap_or_default()
    }
}

impl<A: Addresses> Coordinator<A> {
    /// The network as it is now.
    pub fn world(&mut self) -> World {
        self.world_in(None)
    }

    /// The same, made in the memory of one that nobody looks at any more. Memory that the system has just given is cleared
    /// page by page when it is first written to, and that takes long.
    pub fn world_in(&mut self, past: Option<World>) -> World {
        let (mut links, mut devices, mut hosts, mut clients) = match past {
            Some(World { links, devices, hosts, clients, .. }) => (links, devices, hosts, clients),
            None => Default::default(),
        };
        links.clear();
        devices.clear();
        hosts.clear();
        clients.clear();
        let ledger = self.engine.ledger();
        let fabric = ledger.fabric().clone();
        let view = ledger.view(self.now, &mut self.scratch);
        let seen = ledger.settings().interval.0 as f64 * ledger.settings().unknown_after;
        let last = |known: &Known| known.last(self.now, Nanos(seen as u64));
        let link = |link| {
            let reading = self.readings.of(link).and_then(last).unwrap_or_default();
            LinkState::of(&view, link, self.readings.full(link), reading)
        };
        // Links come before all devices.
        let end = ResourceId(fabric.resource_count() as u32);
        let first = fabric.all_hosts().find_map(|host| fabric.device(host, 0)).unwrap_or(end);
        links.extend((0..first.0).map(|id| link(ResourceId(id))));
        let known = self.readings.from(first);
        devices.extend(known.map(|(device, known)| DeviceState::of(&view, device, last(known))));
        let (hot_above, pool) = (view.hot_above(), self.engine.pool());
        let host = |host: HostId| HostState {
            host,
            up: pool.is_up(host),
            draining: pool.is_draining(host),
            stored: pool.stored(host),
            tasks: self.engine.tasks_on(host),
            replicas: self.replicas.get(host.index()).copied().unwrap_or(0),
        };
        hosts.extend(fabric.all_hosts().map(host));
        clients.extend(self.clients.counted());
        World {
            at: self.now,
            epoch: ledger.epoch(),
            version: self.version,
            hot_above,
            links,
            devices,
            hosts,
            clients,
            counts: Counts {
                decisions: self.records.len(),
                decided: self.decided,
                waiting: self.waiting.len(),
                samples: self.samples,
                released_early: self.unkept.early(),
            },
            fabric,
        }
    }
}

impl<A: Addresses> Coordinator<A> {
    /// Decisions that hold something of a link, the last ones first.
    pub fn holding(&mut self, now: Nanos, link: ResourceId, limit: usize) -> Vec<Arc<Record>> {
        self.wake(now);
        let ledger = self.engine.ledger();
        let crosses = |entry: &EntryId| {
            ledger.entry(*entry).is_some_and(|entry| entry.hops.iter().any(|hop| hop.resource == link))
        };
        let holds = |record: &&Arc<Record>| record.released.is_none() && record.entries.iter().any(crosses);
        self.records.last(None).filter(holds).take(limit).cloned().collect()
    }

    /// What is in a rack.
    pub fn rack(&mut self, now: Nanos, rack: DomainId) -> RackContent {
        self.wake(now);
        let fabric = self.engine.ledger().fabric();
        let task = |running: Running| {
            let record = self.records.get(running.task.app)?;
            let Wish::Tasks(wish) = &record.shown.wish else { return None };
            Some(TaskState {
                decision: record.id,
                name: wish.tasks.get(running.task.index as usize)?.name.clone(),
                job: wish.job.clone(),
                host: running.host,
                tolerant: running.demand.tolerant,
                egress_bps: running.egress_bps,
                ingress_bps: running.ingress_bps,
            })
        };
        let is_here = |name: &&String| fabric.host(name).is_some_and(|host| fabric.rack_of(host) == rack);
        let copies = self.records.last(None).filter(|record| record.released.is_none()).flat_map(|record| {
            let size = match record.shown.wish {
                Wish::Replicas(ReplicasWish { size, .. }) => Some(size),
                Wish::Tasks(_) | Wish::Workload(_) | Wish::Volumes(_) => None,
            };
            let here = record.shown.hosts.iter().filter(is_here);
            size.into_iter()
                .flat_map(move |size| here.clone().map(move |host| (record.id, host.clone(), size)))
        });
        RackContent {
            tasks: self.engine.tasks_in(rack).filter_map(task).collect(),
            replicas: copies.collect(),
            reservations: self.reservations(rack),
        }
    }
}
