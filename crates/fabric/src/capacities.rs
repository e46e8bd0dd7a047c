//! What each resource can carry. Kept apart from the fabric, because it changes, and because what is true (a
//! plant's) and what is believed (a ledger's) may differ.

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

    /// What `resource` can carry.
    pub fn get(&self, resource: ResourceId) -> Load {
        self.by_resource[resource.index()]
    }

    /// Changes what `resource` can carry; a negative capacity counts as none.
    pub fn set(&mut self, resource: ResourceId, capacity: Load) {
        self.by_resource[resource.index()] = Load(capacity.0.max(0));
    }

    /// All capacities, in order of resource id.
    pub fn as_slice(&self) -> &[Load] {
        &self.by_resource
    }
}
