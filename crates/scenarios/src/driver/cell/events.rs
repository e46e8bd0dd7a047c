//! Events of the cell: links lose capacity, hosts and racks fail. The engine is informed of announced events.

use leeward_engine::Input;
use leeward_fabric::{HostId, Nanos};

use super::Driver;
use crate::scenario::{Change, Event, HostState};

impl Driver<'_> {
    /// Applies all events that are due.
    pub(super) fn apply_events(&mut self, now: Nanos) {
        while let Some(event) = self.scenario.events.get(self.events).filter(|event| event.at <= now) {
            self.events += 1;
            self.apply_event(now, *event);
        }
    }

    fn apply_event(&mut self, now: Nanos, event: Event) {
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
        for &host in &hosts {
            match state {
                Some(up @ (HostState::Down | HostState::Up)) => {
                    let up = up == HostState::Up;
                    // Interfaces are not modeled, so their capacities have no effect.
                    self.outages.set_host_up(host, up, &mut Vec::new());
                    // A host that was detected as failed is detected as up again.
                    let was_detected = self.waiting_tasks.detected_failures.remove(&host);
                    if event.announced || (up && was_detected) {
                        self.notify(now, Input::Health(host, up));
                    }
                    if !up {
                        self.fail_host(now, host);
                    }
                }
                Some(drain) if event.announced => {
                    self.notify(now, Input::Drain(host, drain == HostState::Draining))
                }
                _ => {}
            }
        }
        for (resource, capacity) in changed {
            if event.announced {
                self.believed.set(resource, capacity);
                self.notify(now, Input::SetCapacity(resource, capacity));
            }
        }
    }

    /// Removes the tasks of a failed host. They wait for other hosts, where they continue.
    fn fail_host(&mut self, now: Nanos, host: HostId) {
        for task in self.running.of_host(&self.fabric, host) {
            self.requeue(now, task);
        }
    }

    /// Removes a task from its host; the task then waits for another host.
    pub(super) fn requeue(&mut self, now: Nanos, task: u32) {
        let Some(ends) = self.running.remove(task, self.workload, &mut self.loads) else { return };
        self.notify(now, Input::Ended(u64::from(task)));
        self.waiting_tasks.requeue(task, (ends - now.as_secs_f64()).max(0.0));
    }
}
