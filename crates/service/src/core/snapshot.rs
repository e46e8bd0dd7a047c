//! Snapshots for readers: the network at one time, copied once and shared.

use std::sync::Arc;

use leeward_fabric::{Bytes, DomainId, Fabric, HostId, Load, Nanos, ResourceId};
use leeward_ledger::{EntryId, Epoch, Numbers, View};
use leeward_moves::Running;
use leeward_promises::PromisesTable;
use leeward_readings::{LastReading, Reading};
use leeward_records::{ClusterVersion, DecisionId, DecisionRecord, Modes, PlacementSpec};

use super::{Addresses, Coordinator, RackContent, TaskState};

/// The network at one time.
#[derive(Clone, Debug)]
pub struct NetworkSnapshot {
    /// Hosts and links that the ids refer to.
    pub fabric: Arc<Fabric>,
    /// Version of the cluster.
    pub version: ClusterVersion,
    /// Number of the publication, from 1; 0 before it.
    pub number: u64,
    /// Time of the snapshot.
    pub at: Nanos,
    /// Epoch of the ledger.
    pub epoch: Epoch,
    /// Utilization above which a link is hot.
    pub hot_above: f64,
    /// Modes in force.
    pub modes: Modes,
    /// All links, in order of ids. Devices are listed separately.
    pub links: Vec<LinkState>,
    /// Devices with at least one report, in order of ids.
    pub devices: Vec<DeviceState>,
    /// All hosts, in order of ids.
    pub hosts: Vec<HostState>,
    /// For each client, the highest sequence number up to which no request waits.
    pub clients: Vec<(Arc<str>, u64)>,
    /// Promises in force, and the numbers of enforcers.
    pub promises: Arc<PromisesTable>,
    /// Counts of the coordinator.
    pub counts: Counts,
}

/// Counts of the coordinator.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Decisions in memory.
    pub decisions: usize,
    /// Decisions since this coordinator was created: at a start, or a change of the cluster or of the leader.
    pub decided: u64,
    /// Requests that wait for their decision.
    pub waiting: usize,
    /// Accepted samples of links and devices since this coordinator was created.
    pub samples: u64,
    /// Decisions released because of the limit, before telemetry showed their load.
    pub released_early: u64,
    /// Pods with reported rates.
    pub pods: usize,
    /// Pods with reported rates and without a job.
    pub unnamed_pods: usize,
}

/// State of a link in the ledger.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinkState {
    /// The link.
    pub link: ResourceId,
    /// Capacity used for decisions.
    pub capacity: Load,
    /// Measured load; `None` if the link is unseen.
    pub measured: Option<Load>,
    /// End of the last accepted window; `None` without an accepted window, or if no window was accepted since the
    /// link's host came up.
    pub until: Option<Nanos>,
    /// Start of that window, and the mean load over it.
    pub latest: Option<(Nanos, Load)>,
    /// True if the measured load is a sum over the hosts below.
    pub derived: bool,
    /// Placed load that telemetry does not show yet.
    pub pending: Load,
    /// Reserved rate.
    pub reserved: Load,
    /// Rate left for best-effort work.
    pub residual: Load,
    /// Expected load by Sinbad; `None` if the link is unseen.
    pub expected: Option<Load>,
    /// Start of the link's hot period.
    pub hot_since: Option<Nanos>,
    /// Capacity in the cluster, if decisions use a lower one.
    pub full: Option<Load>,
    /// Reported speed of the link's interfaces.
    pub speed: Option<Load>,
    /// Reported bytes waiting to be sent.
    pub queue: Option<f64>,
}

/// State of a device in the ledger, as shares of its time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DeviceState {
    /// The device.
    pub device: ResourceId,
    /// Measured utilization; `None` if the device is unseen.
    pub busy: Option<f64>,
    /// End of the last accepted window.
    pub until: Option<Nanos>,
    /// Reserved share.
    pub reserved: f64,
    /// Share left for best-effort work.
    pub residual: f64,
    /// Start of the device's hot period.
    pub hot_since: Option<Nanos>,
    /// Other reported state, if the device is seen.
    pub reading: Option<Reading>,
}

impl DeviceState {
    fn of(view: &View<'_>, device: ResourceId, reading: Option<Reading>) -> DeviceState {
        let share = |load: Load| load.0 as f64 / 1e9;
        let Numbers { measured, reserved, residual, .. } = view.numbers(device);
        DeviceState {
            device,
            busy: measured.map(share),
            until: view.window_end(device),
            reserved: share(reserved),
            residual: share(residual),
            hot_since: view.hot_since(device),
            reading,
        }
    }

    /// Average number of requests at the device, if reported.
    pub fn queue(&self) -> Option<f64> {
        self.reading.and_then(|reading| reading.queue)
    }
}

impl LinkState {
    /// State of a link in a view. `full` is the cluster's capacity if decisions use a lower one.
    fn of(view: &View<'_>, link: ResourceId, full: Option<Load>, reading: Reading) -> LinkState {
        let Numbers { measured, load, reserved, residual, expected } = view.numbers(link);
        let pending = load.zip(measured).map(|(load, measured)| Load(load.0 - measured.0));
        LinkState {
            link,
            capacity: view.capacity(link),
            measured,
            until: view.window_end(link),
            latest: view.latest(link),
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

    /// True if the link is seen, and decisions use less than the cluster's capacity.
    pub fn is_slow(&self) -> bool {
        self.full.is_some() && self.measured.is_some()
    }

    /// Measured load as a share of the capacity; `None` if the link is unseen or has no capacity.
    pub fn utilization(&self) -> Option<f64> {
        let measured = self.measured.filter(|_| self.capacity > Load(0))?;
        Some(measured.0 as f64 / self.capacity.0 as f64)
    }
}

/// State of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostState {
    /// The host.
    pub host: HostId,
    /// True if the host is up, according to the last report.
    pub up: bool,
    /// True if the host is draining.
    pub draining: bool,
    /// Stored bytes.
    pub stored: Bytes,
    /// Storage; `None` for no limit.
    pub storage: Option<Bytes>,
    /// Number of tasks.
    pub tasks: u32,
    /// Copies from decisions in memory that have not ended.
    pub replicas: u32,
}

impl NetworkSnapshot {
    /// State of a link; `None` for devices and unknown ids.
    pub fn link(&self, link: ResourceId) -> Option<&LinkState> {
        self.links.get(self.position(link))
    }

    /// Index of a link in the list; past the end for devices and unknown ids.
    pub fn position(&self, link: ResourceId) -> usize {
        self.links.binary_search_by_key(&link, |state| state.link).unwrap_or(usize::MAX)
    }

    /// State of a device; `None` without a report.
    pub fn device(&self, device: ResourceId) -> Option<&DeviceState> {
        let at = self.devices.binary_search_by_key(&device, |state| state.device).ok()?;
        self.devices.get(at)
    }

    /// Hosts of a rack or pod.
    pub fn hosts_of(&self, domain: DomainId) -> &[HostState] {
        let hosts = self.fabric.hosts(domain);
        self.hosts.get(hosts.start as usize..hosts.end as usize).unwrap_or_default()
    }
}

impl<A: Addresses> Coordinator<A> {
    /// A snapshot of the present state.
    pub fn snapshot(&mut self) -> NetworkSnapshot {
        self.snapshot_in(None)
    }

    /// A snapshot in the memory of the snapshot `past`. Reuse is faster than new memory, which the system clears page
    /// by page on the first write.
    pub fn snapshot_in(&mut self, past: Option<NetworkSnapshot>) -> NetworkSnapshot {
        let mut snapshot = self.begin_snapshot(past);
        while !self.extend_snapshot(&mut snapshot, usize::MAX) {}
        snapshot
    }

    /// Begins a snapshot in the memory of the snapshot `past`: everything but the links, devices and hosts.
    pub fn begin_snapshot(&mut self, past: Option<NetworkSnapshot>) -> NetworkSnapshot {
        let (mut links, mut devices, mut hosts, mut clients) = match past {
            Some(NetworkSnapshot { links, devices, hosts, clients, .. }) => (links, devices, hosts, clients),
            None => Default::default(),
        };
        links.clear();
        devices.clear();
        hosts.clear();
        clients.clear();
        clients.extend(self.clients.completed_sequences());
        let promises = Arc::new(self.promises_table());
        let ledger = self.engine.ledger();
        NetworkSnapshot {
            promises,
            number: 0,
            at: self.now,
            epoch: ledger.epoch(),
            version: self.version,
            hot_above: ledger.view(self.now, &mut self.scratch).hot_above(),
            modes: self.modes_in_force(),
            links,
            devices,
            hosts,
            clients,
            counts: Counts {
                decisions: self.records.len(),
                decided: self.decided,
                waiting: self.waiting.len(),
                samples: self.samples,
                released_early: self.evicted.early(),
                pods: self.pods.counts().0,
                unnamed_pods: self.pods.counts().1,
            },
            fabric: ledger.fabric().clone(),
        }
    }

    /// Copies the state of at most `most` further links, devices or hosts. Returns true when the snapshot is complete.
    ///
    /// Commands may run between two calls. The snapshot includes everything before its begin, and may include a part of
    /// later changes. Its epoch, time, counts and clients are those of the begin.
    pub fn extend_snapshot(&mut self, snapshot: &mut NetworkSnapshot, most: usize) -> bool {
        let ledger = self.engine.ledger();
        let fabric = ledger.fabric();
        let view = ledger.view(self.now, &mut self.scratch);
        let max_age = ledger.settings().known_for();
        let recent = |last: &LastReading| last.recent(self.now, max_age);
        let NetworkSnapshot { links, devices, hosts, .. } = snapshot;
        let first = fabric.link_count();
        let link = |id| {
            let link = ResourceId(id);
            let reading = self.readings.get(link).and_then(recent).unwrap_or_default();
            let full = self.readings.full(link).or_else(|| self.engine.capacity_before_loss(link));
            LinkState::of(&view, link, full, reading)
        };
        let (from, to) = (links.len(), links.len().saturating_add(most).min(first));
        links.extend((from as u32..to as u32).map(link));
        let left = most - (to - from);
        if links.len() < first {
            return false;
        }
        let devices_before = devices.len();
        if hosts.is_empty() {
            let next = devices.last().map_or(first as u32, |last| last.device.0 + 1);
            let reported = self.readings.from(ResourceId(next)).take(left);
            devices.extend(reported.map(|(device, last)| DeviceState::of(&view, device, recent(last))));
        }
        let left = left - (devices.len() - devices_before);
        let pool = self.engine.pool();
        let host = |host: HostId| HostState {
            host,
            up: pool.is_up(host),
            draining: pool.is_draining(host),
            stored: pool.stored(host),
            storage: pool.storage_of(host),
            tasks: self.engine.tasks_on(host),
            replicas: self.replicas.get(host.index()).copied().unwrap_or(0),
        };
        hosts.extend(fabric.all_hosts().skip(hosts.len()).take(left).map(host));
        hosts.len() == fabric.host_count()
    }
}

impl<A: Addresses> Coordinator<A> {
    /// Decisions with entries on a link, newest first.
    pub fn holding(&mut self, now: Nanos, link: ResourceId, limit: usize) -> Vec<Arc<DecisionRecord>> {
        self.wake(now);
        let ledger = self.engine.ledger();
        let crosses = |entry: &EntryId| {
            ledger.entry(*entry).is_some_and(|entry| entry.hops.iter().any(|hop| hop.resource == link))
        };
        let holds =
            |record: &&Arc<DecisionRecord>| record.released.is_none() && record.entries.iter().any(crosses);
        self.records.last(None).filter(holds).take(limit).cloned().collect()
    }

    /// Content of a rack.
    pub fn rack(&mut self, now: Nanos, rack: DomainId) -> RackContent {
        self.wake(now);
        let fabric = self.engine.ledger().fabric();
        let task = |running: Running| {
            let record = self.records.get(DecisionId(running.task.app))?;
            let PlacementSpec::Tasks(spec) = &record.details.spec else { return None };
            Some(TaskState {
                decision: record.id,
                name: spec.tasks.get(running.task.index as usize)?.name.clone(),
                job: spec.job.clone(),
                host: running.host,
                tolerant: running.demand.tolerant,
                stays: self.engine.stays(running.task),
                egress_bps: running.egress_bps,
                ingress_bps: running.ingress_bps,
            })
        };
        let is_in_rack = |name: &&String| fabric.host(name).is_some_and(|host| fabric.rack_of(host) == rack);
        let copies = self.records.last(None).filter(|record| record.released.is_none()).flat_map(|record| {
            let size = match &record.details.spec {
                PlacementSpec::Replicas(spec) => Some(spec.piece()),
                PlacementSpec::Tasks(_) | PlacementSpec::Workload(_) | PlacementSpec::Volumes(_) => None,
            };
            let hosts = record.details.hosts.iter().filter(is_in_rack);
            size.into_iter()
                .flat_map(move |size| hosts.clone().map(move |host| (record.id, host.clone(), size)))
        });
        RackContent {
            tasks: self.engine.tasks_in(rack).filter_map(task).collect(),
            replicas: copies.collect(),
            reservations: self.reservations(rack),
        }
    }
}
