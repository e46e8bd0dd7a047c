//! Background load as rates of resources instead of flows. Telemetry counts the work that each resource carries for the
//! background.

use leeward_fabric::{Capacities, ResourceId};

/// The inelastic load of every resource over time.
#[derive(Debug)]
pub(super) struct Profiles {
    by_resource: Vec<Profile>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Profile {
    /// Offered load, in native units per second.
    offered: f64,
    /// Part of the offered load that the resource carries.
    rate: f64,
    /// Time of the last update of the rate, in seconds.
    since: f64,
    /// Work carried until `since`, in native units.
    carried: f64,
}

impl Profiles {
    /// Creates profiles without background.
    pub fn new(resources: usize) -> Profiles {
        Profiles { by_resource: vec![Profile::default(); resources] }
    }

    /// Sets the offered rate of `resource` from `now` on.
    pub fn offer(&mut self, now: f64, resource: ResourceId, rate: f64, truth: &Capacities) {
        self.by_resource[resource.index()].offered = rate;
        self.update_capacity(now, resource, truth);
    }

    /// Updates the carried load after a change of capacity.
    pub fn update_capacity(&mut self, now: f64, resource: ResourceId, truth: &Capacities) {
        let profile = &mut self.by_resource[resource.index()];
        profile.carried += profile.rate * (now - profile.since);
        profile.since = now;
        profile.rate = profile.offered.min(truth.get(resource).0 as f64);
    }

    /// Returns the background work that a resource has carried until `now`.
    pub fn carried(&self, resource: ResourceId, now: f64) -> f64 {
        let profile = &self.by_resource[resource.index()];
        profile.carried + profile.rate * (now - profile.since)
    }
}
