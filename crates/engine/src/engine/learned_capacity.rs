//! Capacity of racks' links that is learned from their loads, if the policy for tasks learns it.

use leeward_fabric::{Load, ResourceId, ResourceKind};
use leeward_ledger::Sample;

use super::Engine;
use crate::lost_capacity::KnownCapacity;

impl Engine {
    /// True if the policy for tasks learns the capacity that links lost.
    pub(super) fn learns_capacity(&self) -> bool {
        self.tasks.own.as_ref().is_some_and(|policy| policy.learns_capacity())
    }

    /// True if a capacity can be learned for a resource: it is the link of a rack.
    fn is_of_rack(&self, resource: ResourceId) -> bool {
        let fabric = self.ledger.fabric();
        let kind = || fabric.kind(resource);
        resource.index() < fabric.link_count()
            && matches!(kind(), ResourceKind::RackUplink | ResourceKind::RackDownlink)
    }

    /// Records the queues of links at the ends of their next windows.
    pub(super) fn record_queues(&mut self, queues: &[(ResourceId, f64)]) {
        if !self.learns_capacity() {
            return;
        }
        for &(resource, queue) in queues {
            if self.is_of_rack(resource) {
                self.lost_capacity.set_queue(resource, queue);
            }
        }
    }

    /// New windows of racks' links in a report, the earliest first, if the policy for tasks learns lost capacity.
    pub(super) fn windows_to_learn_from(&self, samples: &[Sample]) -> Vec<Sample> {
        if !self.learns_capacity() {
            return Vec::new();
        }
        let is_new =
            |sample: &&Sample| self.is_of_rack(sample.resource) && self.ledger.is_news(sample, self.now);
        let mut windows: Vec<Sample> = samples.iter().filter(is_new).copied().collect();
        windows.sort_by_key(|sample| sample.window.1);
        windows
    }

    /// Learns the capacity of a link from a window.
    pub(super) fn learn_capacity(&mut self, sample: &Sample) {
        let capacity = self.capacity(sample.resource);
        let interval = self.ledger.settings().interval;
        if let Some(capacity) = self.lost_capacity.observe(sample, capacity, interval) {
            self.ledger.set_capacity(sample.resource, capacity, self.now);
        }
    }

    /// Capacity of a resource that decisions use.
    pub fn capacity(&mut self, resource: ResourceId) -> Load {
        self.ledger.view(self.now, &mut self.scratch).capacity(resource)
    }

    /// Believed capacity of a link, if decisions use a lower one that was learned from its loads.
    pub fn capacity_before_loss(&self, resource: ResourceId) -> Option<Load> {
        self.lost_capacity.full(resource)
    }

    /// Knowledge about the capacities of links from `first` on and before `end`, for another engine.
    pub fn known_capacities(
        &self,
        first: ResourceId,
        end: ResourceId,
    ) -> impl Iterator<Item = (ResourceId, KnownCapacity)> {
        self.lost_capacity.known(first, end)
    }

    /// Continues with the knowledge of another engine about a link, if the policy for tasks learns lost capacity.
    pub fn restore_capacity(&mut self, resource: ResourceId, known: KnownCapacity) {
        if !self.learns_capacity() || !self.is_of_rack(resource) {
            return;
        }
        let (capacity, interval) = (self.capacity(resource), self.ledger.settings().interval);
        if let Some(learned) = self.lost_capacity.restore(resource, known, capacity, (self.now, interval)) {
            self.ledger.set_capacity(resource, learned, self.now);
        }
    }
}
