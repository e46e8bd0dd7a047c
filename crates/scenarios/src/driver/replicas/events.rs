//! Events of the cluster: links lose capacity, hosts and racks fail. The engine is informed of announced events.

use leeward_engine::Input;
use leeward_fabric::HostId;

use super::{ActiveBlock, Driver};
use crate::driver::error::RunError;
use crate::scenario::{Change, Event, HostState};

impl Driver<'_> {
    pub(super) fn apply_event(&mut self, now: f64, event: Event) -> Result<(), RunError> {
        let mut changed = Vec::new();
        let mut hosts = Vec::new();
        let state = match event.change {
            Change::Capacity(resource, capacity) => {
                self.outages.set_capacity(resource, capacity, &mut changed);
                None
            }
            Change::Host(host, state) => {
                hosts.push(host);
                Some(state)
            }
            Change::Domain(domain, state) => {
                hosts.extend(self.fabric.hosts(domain).map(HostId));
                if matches!(state, HostState::Down | HostState::Up) {
                    self.outages.set_domain_up(domain, state == HostState::Up, &mut changed);
                }
                Some(state)
            }
        };
        for host in hosts {
            match state {
                Some(up @ (HostState::Down | HostState::Up)) => {
                    let up = up == HostState::Up;
                    self.outages.set_host_up(host, up, &mut changed);
                    if event.announced {
                        self.notify(now, Input::Health(host, up));
                    }
                }
                Some(drain) if event.announced => {
                    self.notify(now, Input::Drain(host, drain == HostState::Draining))
                }
                _ => {}
            }
        }
        for (resource, capacity) in changed {
            self.network.set_capacity(now, resource, capacity.0 as f64)?;
            self.profiles.update_capacity(now, resource, self.outages.truth());
            let is_link_of_host = self.fabric.host_of(resource).is_some();
            if event.announced && (state.is_none() || !is_link_of_host) {
                self.notify(now, Input::SetCapacity(resource, capacity));
            }
        }
        self.handle_failures(now)
    }

    /// Handles failed hosts. Unfinished blocks on a failed host are placed again, elsewhere. Blocks of a failed writer
    /// are abandoned, and so are tasks that fetch on a failed host. Reads from a failed host continue from another one.
    fn handle_failures(&mut self, now: f64) -> Result<(), RunError> {
        let failed_host = |block: &u32| {
            let record = &self.record.blocks[*block as usize];
            let hosts = record.copies.iter().chain([&record.writer]);
            hosts.copied().find(|&host| !self.outages.is_up(host))
        };
        let broken: Vec<(u32, HostId)> =
            self.blocks.keys().filter_map(|block| Some((*block, failed_host(block)?))).collect();
        for (block, host) in broken {
            let ActiveBlock { flows, entries } =
                self.blocks.remove(&block).expect("the list has active blocks only");
            for flow in flows {
                self.network.cancel(now, flow)?;
                self.purposes.remove(&flow);
            }
            let copies = std::mem::take(&mut self.record.blocks[block as usize].copies);
            self.undo(now, block, &copies, &entries);
            self.exclude(block, host);
        }
        self.abandon_fetches(now)?;
        self.abandon_reads(now)
    }
}
