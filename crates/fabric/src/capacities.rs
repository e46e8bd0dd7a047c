//! Capacity of each resource. Capacities change, so they are separate from the fabric. In a simulation, the true
//! capacities may also differ from the capacities that a ledger assumes.

use crate::{Load, ResourceId};

/// Capacity by resource, in the resource's native work per second.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Capacities {
    by_resource: Vec<Load>,
}

impl Capacities {
    /// Capacities in order of resource id.
    pub fn new(by_resource: Vec<Load>) -> Self {
        Capacities { by_resource }
    }

    /// The capacity of `resource`.
    pub fn get(&self, resource: ResourceId) -> Load {
        self.by_resource[resource.index()]
    }

    /// Sets the capacity of `resource`; a negative capacity becomes zero.
    pub fn set(&mut self, resource: ResourceId, capacity: Load) {
        self.by_resource[resource.index()] = Load(capacity.0.max(0));
    }

    /// All capacities, in order of resource id.
    pub fn as_slice(&self) -> &[Load] {
        &self.by_resource
    }
}
