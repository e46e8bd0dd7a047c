//! State of the network from telemetry, for a new coordinator, which may have another cluster: after a failure of the
//! store, a change of the cluster or of the leader, and a restart.
//!
//! A coordinator gives its state in pieces with ids ([`TelemetryPiece`]), so that it decides between them. A
//! [`TelemetryState`] has names instead.

use leeward_engine::Input;
use leeward_fabric::{Bytes, Fabric, HostId, Load, Nanos, ResourceId};
use leeward_ledger::{Estimate, EstimateValues};
use leeward_readings::{KnownReading, ReportedDiskName};

use super::{Addresses, Coordinator};

/// State of links, devices and hosts from telemetry.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TelemetryState {
    /// Time of the state.
    pub at: Nanos,
    /// Estimated loads of links and devices, by name.
    pub estimates: Vec<(String, EstimateValues)>,
    /// Other reported state of links and devices, by name.
    pub readings: Vec<(String, KnownReading)>,
    /// Reported names of the only disks of hosts, by name of the device.
    pub disks: Vec<(String, ReportedDiskName)>,
    /// State of hosts, by name.
    pub hosts: Vec<(String, KnownHost)>,
}

/// State of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KnownHost {
    /// True if the host is up.
    pub up: bool,
    /// True if the host is draining.
    pub draining: bool,
    /// Stored bytes.
    pub stored: Bytes,
    /// Reported storage; `None` without a report of it.
    pub storage: Option<Bytes>,
    /// Ends of the windows of the three states; zero before the first report.
    pub windows: [Nanos; 3],
}

/// A request for a piece of the telemetry state: resources and hosts with numbers from `first` on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReadTelemetry {
    /// First number.
    pub first: u32,
    /// Largest count of numbers.
    pub most: u32,
}

/// A piece of the telemetry state, by ids of the coordinator's fabric.
#[derive(Clone, PartialEq, Debug)]
pub struct TelemetryPiece {
    at: Nanos,
    estimates: Vec<Estimate>,
    readings: Vec<(ResourceId, KnownReading)>,
    disks: Vec<(ResourceId, ReportedDiskName)>,
    hosts: Vec<(HostId, KnownHost)>,
    /// First number of the next piece; `None` after the last one.
    pub next: Option<u32>,
}

/// Numbers of links, devices and hosts whose state a coordinator took over.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct KeptTelemetry {
    /// Links, without those whose load is a sum.
    pub links: usize,
    /// Devices.
    pub devices: usize,
    /// Hosts.
    pub hosts: usize,
}

impl TelemetryState {
    /// Adds a piece of the state of a coordinator with this fabric.
    pub fn add(&mut self, fabric: &Fabric, piece: TelemetryPiece) {
        let TelemetryPiece { at, estimates, readings, disks, hosts, next: _ } = piece;
        // Copies placed after the first piece may be missing in it.
        self.at = if self.at == Nanos(0) { at } else { self.at };
        let name = |resource| fabric.resource_name(resource);
        self.estimates.extend(estimates.into_iter().map(|one| (name(one.resource), one.values)));
        self.readings.extend(readings.into_iter().map(|(resource, reading)| (name(resource), reading)));
        self.disks.extend(disks.into_iter().map(|(device, disk)| (name(device), disk)));
        self.hosts.extend(hosts.into_iter().map(|(host, state)| (fabric.host_name(host).to_owned(), state)));
    }

    /// Drops what is older than `max_age` at the time `now`. A state from the future, by more than `max_age`, is dropped
    /// as a whole: the clock was set back.
    pub fn drop_stale(&mut self, now: Nanos, max_age: Nanos) {
        if self.at > now.plus(max_age) {
            *self = TelemetryState::default();
        }
        let is_fresh = |at: Nanos| now <= at.plus(max_age);
        if !is_fresh(self.at) {
            self.hosts.clear();
            self.disks.clear();
        }
        self.at = self.at.min(now);
        self.estimates.retain(|(_, values)| is_fresh(values.window.1));
        self.readings.retain(|(_, reading)| is_fresh(reading.until));
    }
}

impl<A: Addresses> Coordinator<A> {
    /// Returns the state that telemetry has reported.
    pub fn telemetry_state(&mut self) -> TelemetryState {
        let (mut state, mut first) = (TelemetryState::default(), Some(0));
        while let Some(number) = first {
            let piece = self.telemetry_piece(ReadTelemetry { first: number, most: u32::MAX });
            first = piece.next;
            state.add(&self.fabric().clone(), piece);
        }
        state
    }

    /// Returns a piece of the state that telemetry has reported.
    pub fn telemetry_piece(&self, ReadTelemetry { first, most }: ReadTelemetry) -> TelemetryPiece {
        let ledger = self.engine.ledger();
        let (fabric, pool) = (ledger.fabric(), self.engine.pool());
        let (resources, hosts) = (fabric.resource_count() as u32, fabric.host_count() as u32);
        let last = resources.max(hosts);
        let end = first.saturating_add(most.max(1)).min(last);
        let reading = |resource| Some((resource, self.readings.known(resource)?));
        let of_resources = || (first..end.min(resources)).map(ResourceId);
        let host = |host| {
            let (up, draining, stored) = (pool.is_up(host), pool.is_draining(host), pool.stored(host));
            let (storage, windows) = (self.hosts.storage(host), self.hosts.windows(host));
            (host, KnownHost { up, draining, stored, storage, windows })
        };
        let disks = self.disks.between(ResourceId(first), ResourceId(end.max(first)));
        TelemetryPiece {
            at: self.now,
            estimates: of_resources().filter_map(|resource| ledger.estimate(resource)).collect(),
            readings: of_resources().filter_map(reading).collect(),
            disks: disks.map(|(device, disk)| (device, disk.clone())).collect(),
            hosts: (first..end.min(hosts)).map(HostId).map(host).collect(),
            next: Some(end).filter(|&end| end < last),
        }
    }

    /// Continues with the state of another coordinator, as far as the cluster has the names. Call this after
    /// [`Coordinator::resume`] and before any operation, so that no load from telemetry is lost.
    pub fn set_telemetry_state(&mut self, state: TelemetryState) -> KeptTelemetry {
        let TelemetryState { at, estimates, readings, disks, hosts } = state;
        self.now = self.now.max(at);
        let fabric = self.engine.ledger().fabric().clone();
        let mut kept = KeptTelemetry::default();
        let mut outputs = Vec::new();
        for (name, known) in hosts {
            let Some(host) = fabric.host(&name) else { continue };
            let later = self.hosts.restore(host, known, self.now, at);
            let stored = known.stored.0.saturating_add(later.0);
            let limits = [fabric.storage(host), known.storage].into_iter().flatten();
            let stored = limits.fold(Bytes(stored), Bytes::min);
            let inputs = [
                known.storage.map(|storage| Input::Storage(host, storage)),
                Some(Input::Health(host, known.up)),
                Some(Input::Drain(host, known.draining)),
                Some(Input::Stored(host, stored)),
            ];
            for input in inputs.into_iter().flatten() {
                self.engine.handle(self.now, input, &mut outputs);
            }
            kept.hosts += usize::from(known.windows != [Nanos(0); 3]);
        }
        for (name, disk) in disks {
            let device = fabric.resource(&name);
            let host = device.and_then(|device| fabric.host_of(device));
            if let Some(device) = device.filter(|_| host.is_some_and(|host| fabric.devices(host).len() == 1))
            {
                self.disks.is_device(device, &disk);
            }
        }
        for (name, reading) in readings {
            let Some(resource) = fabric.resource(&name) else { continue };
            let full = self.full_capacity(resource);
            if let Some(capacity) = self.readings.restore(resource, &reading, full) {
                self.engine.handle(self.now, Input::SetCapacity(resource, capacity), &mut outputs);
            }
        }
        let bounded = |(name, values): (String, EstimateValues)| {
            let resource = fabric.resource(&name)?;
            let most = self.full_capacity(resource).0;
            let measured = values.measured.min(most as f64);
            let guaranteed = values.guaranteed.map(|load| load.min(measured));
            let values = EstimateValues { measured, guaranteed, latest: values.latest.min(most), ..values };
            Some(Estimate { resource, values })
        };
        let estimates: Vec<Estimate> = estimates.into_iter().filter_map(bounded).collect();
        // Without estimates, the epoch of a new ledger does not change.
        if estimates.is_empty() {
            return kept;
        }
        let restored = self.engine.restore_estimates(self.now, &estimates);
        let view = self.engine.ledger().view(self.now, &mut self.scratch);
        for resource in restored.into_iter().filter(|&resource| !view.is_derived(resource)) {
            let is_link = resource.index() < fabric.link_count();
            *(if is_link { &mut kept.links } else { &mut kept.devices }) += 1;
        }
        kept
    }

    /// The cluster's capacity of a resource.
    fn full_capacity(&mut self, resource: ResourceId) -> Load {
        let capacity = self.engine.ledger().view(self.now, &mut self.scratch).capacity(resource);
        let lost = || self.engine.capacity_before_loss(resource);
        self.readings.full(resource).or_else(lost).unwrap_or(capacity)
    }
}
