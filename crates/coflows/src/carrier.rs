//! Networks that carry the flows of a run: [`Network`] shares links fairly, [`Sebf`] serves coflows.

use leeward_fabric::{Hop, ResourceId};
use leeward_fluid::{Finished, FlowId, FluidError, Network};

use super::Sebf;

/// A network of links whose flows share them by some rule.
pub trait Carrier: Sized {
    /// Creates a network without flows that counts the work of its links.
    ///
    /// # Errors
    /// Returns an error for an invalid capacity.
    fn with_capacities(capacities: &[f64]) -> Result<Self, FluidError>;

    /// Starts a flow of a coflow. Flows of one class have equal paths.
    ///
    /// # Errors
    /// Returns an error for a time in the past, an invalid size, or an unknown resource.
    fn start_flow(
        &mut self,
        now: f64,
        hops: &[Hop],
        bytes: f64,
        class: Option<u64>,
        coflow: Option<u32>,
    ) -> Result<FlowId, FluidError>;

    /// Returns the time of the next completion.
    fn next_completion(&mut self) -> Option<f64>;

    /// Advances to a time, and appends the flows that ended until then.
    ///
    /// # Errors
    /// Returns an error for a time in the past, or one that is not finite.
    fn advance(&mut self, to: f64, finished: &mut Vec<Finished>) -> Result<(), FluidError>;

    /// Sets the capacity of a link.
    ///
    /// # Errors
    /// Returns an error for a time in the past, an unknown resource or an invalid capacity.
    fn set_capacity(&mut self, now: f64, resource: ResourceId, capacity: f64) -> Result<(), FluidError>;

    /// Sets the inelastic load of a link.
    ///
    /// # Errors
    /// Returns an error for a time in the past, an unknown resource or an invalid load.
    fn set_background(&mut self, now: f64, resource: ResourceId, load: f64) -> Result<(), FluidError>;

    /// Returns the work of flows that a link has served until `now`, the time of the last call.
    fn carried(&self, resource: ResourceId, now: f64) -> f64;
}

impl Carrier for Network {
    fn with_capacities(capacities: &[f64]) -> Result<Network, FluidError> {
        Ok(Network::new(capacities)?.observed())
    }

    fn start_flow(
        &mut self,
        now: f64,
        hops: &[Hop],
        bytes: f64,
        class: Option<u64>,
        _: Option<u32>,
    ) -> Result<FlowId, FluidError> {
        self.start(now, hops, bytes, 1.0, f64::INFINITY, class)
    }

    fn next_completion(&mut self) -> Option<f64> {
        self.next_completion()
    }

    fn advance(&mut self, to: f64, finished: &mut Vec<Finished>) -> Result<(), FluidError> {
        self.advance(to, finished)
    }

    fn set_capacity(&mut self, now: f64, resource: ResourceId, capacity: f64) -> Result<(), FluidError> {
        self.set_capacity(now, resource, capacity)
    }

    fn set_background(&mut self, now: f64, resource: ResourceId, load: f64) -> Result<(), FluidError> {
        self.set_background(now, resource, load)
    }

    fn carried(&self, resource: ResourceId, now: f64) -> f64 {
        self.carried(resource, now)
    }
}

impl Carrier for Sebf {
    fn with_capacities(capacities: &[f64]) -> Result<Sebf, FluidError> {
        Sebf::new(capacities)
    }

    fn start_flow(
        &mut self,
        now: f64,
        hops: &[Hop],
        bytes: f64,
        _: Option<u64>,
        coflow: Option<u32>,
    ) -> Result<FlowId, FluidError> {
        self.start(now, hops, bytes, coflow)
    }

    fn next_completion(&mut self) -> Option<f64> {
        self.next_completion()
    }

    fn advance(&mut self, to: f64, finished: &mut Vec<Finished>) -> Result<(), FluidError> {
        self.advance(to, finished)
    }

    fn set_capacity(&mut self, now: f64, resource: ResourceId, capacity: f64) -> Result<(), FluidError> {
        self.set_capacity(now, resource, capacity)
    }

    fn set_background(&mut self, now: f64, resource: ResourceId, load: f64) -> Result<(), FluidError> {
        self.set_background(now, resource, load)
    }

    fn carried(&self, resource: ResourceId, _: f64) -> f64 {
        self.carried(resource)
    }
}
