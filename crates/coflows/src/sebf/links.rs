//! Links: capacity, free capacity, the flows on each link, and the work it has carried.

use leeward_fabric::{Hop, ResourceId};
use leeward_fluid::FluidError;

/// Free capacity below this share of a link's capacity is a rounding error.
const ROUNDING: f64 = 1e-9;

#[derive(Clone, Debug)]
pub(super) struct Links {
    links: Vec<Link>,
}

#[derive(Clone, Debug, Default)]
struct Link {
    capacity: f64,
    background: f64,
    /// Capacity without the background that no flow uses.
    free: f64,
    /// Slots of the flows on it at the last decision, in order. Some may have ended.
    members: Vec<u32>,
    /// Work of ended flows.
    carried: f64,
}

impl Link {
    /// Capacity for flows.
    fn available(&self) -> f64 {
        let rest = self.capacity - self.background;
        if rest > ROUNDING * self.capacity { rest } else { 0.0 }
    }
}

impl Links {
    pub fn new(capacities: &[f64]) -> Result<Links, FluidError> {
        let mut links = Links { links: vec![Link::default(); capacities.len()] };
        for (r, &capacity) in (0..).zip(capacities) {
            links.set_capacity(ResourceId(r), capacity)?;
        }
        links.reset();
        Ok(links)
    }

    /// Checks the hops of a flow.
    pub fn check(&self, hops: &[Hop]) -> Result<(), FluidError> {
        for &Hop { resource, work } in hops {
            self.known(resource)?;
            if work != 0.0 && !in_range(work) {
                return Err(FluidError::Work { resource, value: work });
            }
        }
        Ok(())
    }

    fn known(&self, resource: ResourceId) -> Result<(), FluidError> {
        if resource.index() < self.links.len() {
            return Ok(());
        }
        Err(FluidError::UnknownResource { resource, last: self.links.len() as i64 - 1 })
    }

    fn checked(&mut self, resource: ResourceId, value: f64) -> Result<&mut Link, FluidError> {
        self.known(resource)?;
        if value != 0.0 && !in_range(value) {
            return Err(FluidError::Capacity { resource, value });
        }
        Ok(&mut self.links[resource.index()])
    }

    pub fn set_capacity(&mut self, resource: ResourceId, capacity: f64) -> Result<(), FluidError> {
        self.checked(resource, capacity)?.capacity = capacity;
        Ok(())
    }

    pub fn set_background(&mut self, resource: ResourceId, load: f64) -> Result<(), FluidError> {
        self.checked(resource, load)?.background = load;
        Ok(())
    }

    /// Frees all capacity, and removes all flows.
    pub fn reset(&mut self) {
        for link in &mut self.links {
            link.free = link.available();
            link.members.clear();
        }
    }

    /// Number of links.
    pub fn count(&self) -> usize {
        self.links.len()
    }

    pub fn available(&self, r: u32) -> f64 {
        self.links[r as usize].available()
    }

    pub fn free(&self, r: u32) -> f64 {
        self.links[r as usize].free
    }

    /// Takes free capacity of a link.
    pub fn take(&mut self, r: u32, load: f64) {
        let link = &mut self.links[r as usize];
        let rest = link.free - load;
        link.free = if rest > ROUNDING * link.capacity { rest } else { 0.0 };
    }

    /// Returns the rate by which a flow can be faster, in bytes per second.
    pub fn headroom(&self, hops: &[Hop]) -> f64 {
        hops.iter().map(|hop| self.free(hop.resource.0) / hop.work).fold(f64::INFINITY, f64::min)
    }

    /// Returns the capacity of an ended flow with this rate.
    pub fn release(&mut self, hops: &[Hop], rate: f64) {
        for hop in hops {
            let link = &mut self.links[hop.resource.index()];
            link.free = (link.free + rate * hop.work).min(link.available());
        }
    }

    /// Adds a flow to its links.
    pub fn enter(&mut self, hops: &[Hop], slot: u32) {
        for hop in hops {
            self.links[hop.resource.index()].members.push(slot);
        }
    }

    pub fn members(&self, resource: ResourceId) -> &[u32] {
        self.links.get(resource.index()).map_or(&[], |link| &link.members)
    }

    /// Counts the work of an ended flow.
    pub fn account(&mut self, hops: &[Hop], bytes: f64) {
        for hop in hops {
            self.links[hop.resource.index()].carried += bytes * hop.work;
        }
    }

    /// Returns the work of ended flows.
    pub fn carried(&self, resource: ResourceId) -> f64 {
        self.links.get(resource.index()).map_or(0.0, |link| link.carried)
    }
}

/// Range of numbers, as in the fluid simulator.
fn in_range(value: f64) -> bool {
    (1e-30..=1e30).contains(&value)
}
