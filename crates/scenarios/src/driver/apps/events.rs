//! Events of the cluster: links lose capacity, hosts and racks fail. The engine is informed of announced events.

use leeward_engine::Input;
use leeward_fabric::HostId;

use super::Driver;
use super::running::Running;
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
                    // A host that was detected as failed is detected as up again.
                    let was_detected = self.detected_failures.remove(&host);
                    if event.announced || (up && was_detected) {
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
        // Hosts may be up again, or may have more capacity.
        self.freed = true;
        self.restart_failed_apps(now)
    }

    /// Restarts apps with a task on a failed host, elsewhere.
    fn restart_failed_apps(&mut self, now: f64) -> Result<(), RunError> {
        let has_failed = |running: &Running| running.hosts.iter().any(|&host| !self.outages.is_up(host));
        let failed: Vec<u32> =
            self.running.iter().filter(|(_, running)| has_failed(running)).map(|(&app, _)| app).collect();
        failed.into_iter().try_for_each(|app| self.restart(now, app))
    }
}
