//! What was seen of the network, by names: what a coordinator of another cluster begins with.

use leeward_engine::Input;
use leeward_fabric::{Bytes, Load, Nanos};
use leeward_ledger::Sample;

use super::{Addresses, Called, Coordinator, Reading};

/// What was seen of links, devices and hosts.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Seen {
    /// Loads of links with counters of their own and of devices, and when they were last seen.
    loads: Vec<(String, Load, Nanos)>,
    /// What was said of them beside, and when.
    readings: Vec<(String, Nanos, Reading)>,
    /// What disks of hosts with one device are called, by the device.
    disks: Vec<(String, Called)>,
    /// Hosts that are down or being emptied, and what hosts store.
    hosts: Vec<(String, bool, bool, Bytes)>,
    now: Nanos,
}

impl<A: Addresses> Coordinator<A> {
    /// What it has seen.
    pub fn seen(&mut self) -> Seen {
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
        let called = |(device, called): (_, &Called)| (fabric.resource_name(device), called.clone());
        let disks = self.disks.all().map(called).collect();
        let pool = self.engine.pool();
        let host = |host| {
            let name = fabric.host_name(host).to_owned();
            (name, pool.is_up(host), pool.is_draining(host), pool.stored(host))
        };
        Seen { loads, readings, disks, hosts: fabric.all_hosts().map(host).collect(), now: self.now }
    }

    /// Takes up what another coordinator has seen, as far as the cluster has it. To be called after
    /// [`Coordinator::resume`] and before anything else: what telemetry had shown of decisions shows again.
    pub fn see(&mut self, seen: Seen) {
        self.now = self.now.max(seen.now);
        let fabric = self.engine.ledger().fabric().clone();
        let interval = self.engine.ledger().settings().interval;
        let mut outputs = Vec::new();
        for (name, up, draining, stored) in seen.hosts {
            let Some(host) = fabric.host(&name) else { continue };
            for input in [Input::Health(host, up), Input::Drain(host, draining), Input::Stored(host, stored)]
            {
                self.engine.handle(self.now, input, &mut outputs);
            }
        }
        for (name, called) in seen.disks {
            let device = fabric.resource(&name);
            let of = device.and_then(|device| fabric.host_of(device));
            if let Some(device) = device.filter(|_| of.is_some_and(|host| fabric.devices(host).len() == 1)) {
                self.disks.is(device, &called);
            }
        }
        for (name, until, reading) in seen.readings {
            if let Some(resource) = fabric.resource(&name) {
                self.take_reading(resource, until, reading);
            }
        }
        for (name, load, until) in seen.loads {
            let Some(resource) = fabric.resource(&name) else { continue };
            let window = (until.since(interval), until);
            if window.0 < window.1 {
                let sample = Sample { resource, window: (Nanos(window.0.0), until), load, guaranteed: None };
                self.engine.handle(self.now, Input::Report(&[sample]), &mut outputs);
            }
        }
    }
}
