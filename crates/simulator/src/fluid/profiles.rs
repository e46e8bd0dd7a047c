//! Background that is a rate on a link and not flows: what it has carried, for telemetry to show.

use leeward_fabric::{Capacities, ResourceId};

/// The inelastic load of every resource over time.
#[derive(Debug)]
pub(super) struct Profiles {
    by_resource: Vec<Profile>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Profile {
    /// What is offered, in native units per second.
    offered: f64,
    /// What the resource takes of it.
    taken: f64,
    since: f64,
    carried: f64,
}

impl Profiles {
    /// No background anywhere.
    pub fn new(resources: usize) -> Profiles {
        Profiles { by_resource: vec![Profile::default(); resources] }
    }

    /// From `now` on, `resource` is offered `rate`.
    pub fn offer(&mut self, now: f64, resource: ResourceId, rate: f64, truth: &Capacities) {
        self.by_resource[resource.index()].offered = rate;
        self.capacity_changed(now, resource, truth);
    }

    /// A resource takes what it can carry of what it is offered.
    pub fn capacity_changed(&mut self, now: f64, resource: ResourceId, truth: &Capacities) {
        let profile = &mut self.by_resource[resource.index()];
        profile.carried += profile.taken * (now - profile.since);
        profile.since = now;
        profile.taken = profile.offered.min(truth.get(resource).0 as f64);
    }

    /// The work that background has brought to a resource until `now`.
    pub fn carried(&self, resource: ResourceId, now: f64) -> f64 {
        let profile = &self.by_resource[resource.index()];
        profile.carried + profile.taken * (now - profile.since)
    }
}
