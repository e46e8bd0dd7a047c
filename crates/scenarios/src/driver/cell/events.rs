//! Events of the cell: links lose capacity, hosts and racks fail. The engine is informed of announced events.

use leeward_engine::Input;
use leeward_fabric::{HostId, Nanos};
use leeward_workloads::{CapacityChange, Workload};

use super::Driver;
use crate::scenario::{Change, Event, HostState, Scenario};

/// Returns the events of a scenario and the capacity changes of its workload, by time. At equal times, the scenario's
/// events come last, so that they decide.
pub(super) fn by_time(scenario: &Scenario, workload: &Workload) -> Vec<Event> {
    let event = |&CapacityChange { at, resource, capacity, announced }: &CapacityChange| Event {
        at: Nanos::from_secs_f64(at),
        change: Change::Capacity(resource, capacity),
        announced,
    };
    let of_workload = workload.capacities.iter().map(event);
    let mut events: Vec<Event> = of_workload.chain(scenario.events.iter().copied()).collect();
    events.sort_by_key(|event| event.at);
    events
}

impl Driver<'_> {
    /// Applies all events that are due.
    pub(super) fn apply_events(&mut self, now: Nanos) {
        while let Some(&event) = self.events.get(self.applied).filter(|event| event.at <= now) {
            self.applied += 1;
            self.apply_event(now, event);
        }
    }

    fn apply_event(&mut self, now: Nanos, event: Event) {
        let effects = self.outages.apply(event);
        for &host in &effects.hosts {
            if let Some(input) = effects.input(host, &mut self.waiting_tasks.detected_failures) {
                self.notify(now, input);
            }
            if effects.state == Some(HostState::Down) {
                self.fail_host(now, host);
            }
        }
        for &(resource, capacity) in effects.changed.nominal.iter().filter(|_| event.announced) {
            // Interfaces are not modeled, so their failures have no effect.
            if effects.state.is_none() || self.fabric.domain_of_link(resource).is_some() {
                self.notify(now, Input::SetCapacity(resource, capacity));
            }
        }
    }

    /// Removes the tasks of a failed host, which wait for other hosts, where they continue. Its disk server is silent.
    fn fail_host(&mut self, now: Nanos, host: HostId) {
        self.disk_servers.stop(host, &mut self.loads);
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
