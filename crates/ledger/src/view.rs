//! What a policy reads: the ledger, and a private what-if on top of it.
//!
//! A policy moves only its view: the next block of a batch, the next transfer of an app, its own load taken out
//! for a re-placement. The what-if is kept in a [`Scratch`] that is used again and again; starting a new one
//! costs as much as the last one touched.

use leeward_fabric::{DomainId, Load, Nanos, ResourceId};

use crate::Ledger;
use crate::entry::{Entry, Fade, Owner};
use crate::numbers::{Sums, expected_capacity, whole};
use crate::state::{Promise, Source};
use crate::transact::{Share, Stage, face};

/// Reusable memory for the what-ifs of views.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    /// For each resource, 1 + its position in `deltas`, or 0.
    slots: Vec<u32>,
    deltas: Vec<Delta>,
}

#[derive(Clone, Copy, Debug)]
struct Delta {
    resource: ResourceId,
    pressure: i64,
    pending: i64,
    flows: i64,
    inelastic: i64,
    reserved_mean: i64,
    reserved_rate: i64,
}

/// A rate cannot be promised on this resource, because it serves first come, first served.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("resource {} is first come, first served: nothing can be promised on it", .0.0)]
pub struct FifoError(pub ResourceId);

/// The ledger at a moment, with a private what-if.
#[derive(Debug)]
pub struct View<'a> {
    ledger: &'a Ledger,
    now: Nanos,
    scratch: &'a mut Scratch,
}

impl<'a> View<'a> {
    pub(crate) fn new(ledger: &'a Ledger, now: Nanos, scratch: &'a mut Scratch) -> Self {
        scratch.slots.resize(ledger.gauges.len(), 0);
        for delta in scratch.deltas.drain(..) {
            scratch.slots[delta.resource.index()] = 0;
        }
        View { ledger, now, scratch }
    }

    /// The moment it shows.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// The state of the ledger it shows.
    pub fn epoch(&self) -> u64 {
        self.ledger.epoch
    }

    /// The fabric it is about.
    pub fn fabric(&self) -> &'a leeward_fabric::Fabric {
        &self.ledger.fabric
    }

    // ---- the what-if ----------------------------------------------------------------------------------

    /// Shows the world with `entry` in it too.
    pub fn add(&mut self, entry: &Entry) {
        let face = face(entry, |resource, flows| self.share_exact(resource, flows));
        for hop in &entry.hops {
            let share = Share::of(entry, face, hop.work);
            let d = self.time_to_report(hop.resource);
            let pressure = share.pressure(d);
            let delta = self.delta(hop.resource);
            delta.pressure += pressure;
            delta.pending += share.rate;
            delta.flows += share.flows;
            delta.inelastic += share.inelastic;
            delta.reserved_mean += share.reserved_mean;
            delta.reserved_rate += share.reserved_rate;
        }
    }

    /// Shows the world without what `owner` has in it: its own load is not in its way.
    pub fn without(&mut self, owner: &Owner) {
        let ledger = self.ledger;
        for id in ledger.owners.get(owner).into_iter().flatten() {
            let stored = &ledger.entries[id];
            for hop in &stored.entry.hops {
                let share = Share::of(&stored.entry, stored.face, hop.work);
                let pending = ledger.commitments[hop.resource.index()].until_window.iter();
                let waiting = pending
                    .filter(|item| item.entry == *id)
                    .fold((0, 0), |(pressure, rate), item| (pressure + item.pressure, rate + item.rate));
                let at_next_window = stored.entry.fade == Fade::AtNextWindow;
                let delta = self.delta(hop.resource);
                delta.pressure -= waiting.0;
                delta.pending -= match stored.stage {
                    Stage::Held if at_next_window => waiting.1,
                    Stage::Held | Stage::Started => share.rate,
                    Stage::Gone => 0,
                };
                delta.flows -= share.flows;
                delta.inelastic -= share.inelastic;
                delta.reserved_mean -= share.reserved_mean;
                delta.reserved_rate -= share.reserved_rate;
            }
        }
    }

    fn delta(&mut self, resource: ResourceId) -> &mut Delta {
        let scratch = &mut *self.scratch;
        if scratch.slots[resource.index()] == 0 {
            scratch.deltas.push(Delta {
                resource,
                pressure: 0,
                pending: 0,
                flows: 0,
                inelastic: 0,
                reserved_mean: 0,
                reserved_rate: 0,
            });
            scratch.slots[resource.index()] = scratch.deltas.len() as u32;
        }
        &mut scratch.deltas[scratch.slots[resource.index()] as usize - 1]
    }

    fn sums(&self, resource: ResourceId) -> Sums {
        let mut sums = self.ledger.sums(resource, self.now);
        if let Some(slot) = self.scratch.slots[resource.index()].checked_sub(1) {
            let delta = &self.scratch.deltas[slot as usize];
            sums.pending += delta.pending as f64;
            sums.flows += delta.flows;
            sums.inelastic += delta.inelastic;
            sums.reserved_mean += delta.reserved_mean;
            sums.reserved_rate += delta.reserved_rate;
        }
        sums
    }

    // ---- facts ----------------------------------------------------------------------------------------

    /// What a resource is believed to carry at most.
    pub fn capacity(&self, resource: ResourceId) -> Load {
        Load(self.ledger.gauges[resource.index()].capacity)
    }

    /// What telemetry shows; `None` where it cannot be seen.
    pub fn measured(&self, resource: ResourceId) -> Option<Load> {
        self.ledger.measured(resource, self.now).map(whole)
    }

    /// End of the last window that was taken in; zero if none was.
    pub fn measured_until(&self, resource: ResourceId) -> Nanos {
        self.ledger.gauges[resource.index()].until
    }

    /// Whether what is measured is a sum over the hosts below, and so includes traffic inside the rack.
    pub fn is_derived(&self, resource: ResourceId) -> bool {
        self.ledger.gauges[resource.index()].source == Source::Derived
    }

    /// d: the time to the next report of a resource.
    pub fn time_to_report(&self, resource: ResourceId) -> Nanos {
        self.ledger.next_window(resource, self.now).since(self.now)
    }

    /// Since when every window of a resource was hot.
    pub fn hot_since(&self, resource: ResourceId) -> Option<Nanos> {
        self.ledger.commitments[resource.index()].hot_since
    }

    /// The version of the reservations on a resource, for [`crate::Transaction::expect`].
    pub fn version(&self, resource: ResourceId) -> u32 {
        self.ledger.commitments[resource.index()].version
    }

    /// The links out of and into a domain, if it has any.
    pub fn domain_links(&self, domain: DomainId) -> (Option<ResourceId>, Option<ResourceId>) {
        (self.ledger.fabric.out_of_domain(domain), self.ledger.fabric.into_domain(domain))
    }

    // ---- numbers --------------------------------------------------------------------------------------

    /// C - min(C, M + pressure) (Sinbad pseudocode 2, line 30); `None` where M cannot be seen.
    pub fn expected_capacity(&self, resource: ResourceId) -> Option<Load> {
        // Read for every candidate of every block, so it reads the gauge alone.
        let gauge = &self.ledger.gauges[resource.index()];
        let slot = self.scratch.slots[resource.index()].checked_sub(1);
        let extra = slot.map_or(0, |slot| self.scratch.deltas[slot as usize].pressure);
        let measured = self.ledger.measured(resource, self.now)?;
        Some(whole(expected_capacity(gauge.capacity as f64, measured, gauge.pressure + extra)))
    }

    /// max(0, limit C - L): what best-effort work may still use. Zero where it cannot be seen.
    pub fn residual(&self, resource: ResourceId) -> Load {
        whole(self.sums(resource).residual(self.ledger.settings.limit))
    }

    /// What `flows` new elastic flows would get beside those there, together (Choreo section 3.2).
    pub fn share(&self, resource: ResourceId, flows: u32) -> Load {
        whole(self.share_exact(resource, flows))
    }

    fn share_exact(&self, resource: ResourceId, flows: u32) -> f64 {
        self.sums(resource).share(flows, self.ledger.settings.limit)
    }

    /// (L + extra) / C (Hotspots section 5.1). `None` where L cannot be seen.
    pub fn utilization_with(&self, resource: ResourceId, extra: Load) -> Option<f64> {
        self.sums(resource).utilization_with(extra.0 as f64)
    }

    /// What may still be promised; telemetry plays no part.
    pub fn unreserved(&self, resource: ResourceId) -> Result<Load, FifoError> {
        self.enforced(resource)?;
        Ok(whole(self.sums(resource).unreserved(self.ledger.settings.reservable)))
    }

    /// Every envelope promised at a resource.
    pub fn envelopes(&self, resource: ResourceId) -> Result<&'a [Promise], FifoError> {
        self.enforced(resource)?;
        Ok(&self.ledger.commitments[resource.index()].envelopes)
    }

    fn enforced(&self, resource: ResourceId) -> Result<(), FifoError> {
        match self.ledger.fabric.discipline(resource) {
            leeward_fabric::Discipline::Fifo => Err(FifoError(resource)),
            leeward_fabric::Discipline::StrictPriority { .. } => Ok(()),
        }
    }
}
