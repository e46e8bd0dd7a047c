//! State of the network from telemetry, by names, for a new coordinator, which may have another cluster.

use leeward_engine::Input;
use leeward_fabric::{Bytes, Load, Nanos};
use leeward_ledger::Sample;

use super::{Addresses, Coordinator, Reading, ReportedDiskName};

/// State of links, devices and hosts from telemetry.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct TelemetryState {
    /// Loads of devices and of links with counters of their own, and the ends of their windows.
    loads: Vec<(String, Load, Nanos)>,
    /// Readings of resources, with their times.
    readings: Vec<(String, Nanos, Reading)>,
    /// Reported names of the only disks of hosts, by device.
    disks: Vec<(String, ReportedDiskName)>,
    /// Hosts with their up and draining states and stored bytes.
    hosts: Vec<(String, bool, bool, Bytes)>,
    now: Nanos,
}

impl<A: Addresses> Coordinator<A> {
    /// Returns the state that telemetry has reported.
    pub fn telemetry_state(&mut self) -> TelemetryState {
        let ledger = self.engine.ledger();
        let fabric = ledger.fabric().clone();
        let view = ledger.view(self.now, &mut self.scratch);
        let load = |resource| {
            let measured = view.measured(resource).filter(|_| !view.is_derived(resource))?;
            Some((fabric.resource_name(resource), measured, view.measured_until(resource)))
        };
        let loads = fabric.all_resources().filter_map(load).collect();
        let named = |(resource, until, reading)| (fabric.resource_name(resource), until, reading);
        let readings = self.readings.all().map(named).collect();
        let disk = |(device, disk): (_, &ReportedDiskName)| (fabric.resource_name(device), disk.clone());
        let disks = self.disks.all().map(disk).collect();
        let pool = self.engine.pool();
        let host = |host| {
            let name = fabric.host_name(host).to_owned();
            (name, pool.is_up(host), pool.is_draining(host), pool.stored(host))
        };
        TelemetryState {
            loads,
            readings,
            disks,
            hosts: fabric.all_hosts().map(host).collect(),
            now: self.now,
        }
    }

    /// Restores the state of another coordinator, as far as the cluster has the names. Call this after
    /// [`Coordinator::resume`] and before any operation, so that no load from telemetry is lost.
    pub fn set_telemetry_state(&mut self, state: TelemetryState) {
        self.now = self.now.max(state.now);
        let fabric = self.engine.ledger().fabric().clone();
        let interval = self.engine.ledger().settings().interval;
        let mut outputs = Vec::new();
        for (name, up, draining, stored) in state.hosts {
            let Some(host) = fabric.host(&name) else { continue };
            for input in [Input::Health(host, up), Input::Drain(host, draining), Input::Stored(host, stored)]
            {
                self.engine.handle(self.now, input, &mut outputs);
            }
        }
        for (name, disk) in state.disks {
            let device = fabric.resource(&name);
            let host = device.and_then(|device| fabric.host_of(device));
            if let Some(device) = device.filter(|_| host.is_some_and(|host| fabric.devices(host).len() == 1))
            {
                self.disks.is_device(device, &disk);
            }
        }
        for (name, until, reading) in state.readings {
            if let Some(resource) = fabric.resource(&name) {
                self.apply_reading(resource, until, reading);
            }
        }
        for (name, load, until) in state.loads {
            let Some(resource) = fabric.resource(&name) else { continue };
            let window = (until.since(interval), until);
            if window.0 < window.1 {
                let sample = Sample { resource, window: (Nanos(window.0.0), until), load, guaranteed: None };
                self.engine.report(self.now, &[sample], &mut outputs);
            }
        }
    }
}
