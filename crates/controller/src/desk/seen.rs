//! What was seen of the network, by names: what a desk of another cluster begins with.

use leeward_engine::Input;
use leeward_fabric::{Bytes, Load, Nanos, ResourceKind};
use leeward_ledger::Sample;

use super::Desk;

/// What was seen of links and hosts.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Seen {
    /// Loads of links with counters of their own, and when they were last seen.
    links: Vec<(String, Load, Nanos)>,
    /// Hosts that are down or being emptied, and what hosts store.
    hosts: Vec<(String, bool, bool, Bytes)>,
    now: Nanos,
}

impl<R> Desk<R> {
    /// What it has seen.
    pub fn seen(&mut self) -> Seen {
        let ledger = self.engine.ledger();
        let fabric = ledger.fabric().clone();
        let view = ledger.view(self.now, &mut self.scratch);
        let links = fabric.all_resources().filter(|&link| fabric.kind(link) != ResourceKind::Device);
        let link = |link| {
            let measured = view.measured(link).filter(|_| !view.is_derived(link))?;
            Some((fabric.resource_name(link), measured, view.measured_until(link)))
        };
        let links = links.filter_map(link).collect();
        let pool = self.engine.pool();
        let host = |host| {
            let name = fabric.host_name(host).to_owned();
            (name, pool.is_up(host), pool.is_draining(host), pool.stored(host))
        };
        Seen { links, hosts: fabric.all_hosts().map(host).collect(), now: self.now }
    }

    /// Takes up what another desk has seen, as far as the cluster has it. To be called after
    /// [`Desk::resume`] and before anything else: what telemetry had shown of decisions shows again.
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
        for (name, load, until) in seen.links {
            let Some(resource) = fabric.resource(&name) else { continue };
            let window = (until.since(interval), until);
            if window.0 < window.1 {
                let sample = Sample { resource, window: (Nanos(window.0.0), until), load, guaranteed: None };
                self.engine.handle(self.now, Input::Report(&[sample]), &mut outputs);
            }
        }
    }
}
