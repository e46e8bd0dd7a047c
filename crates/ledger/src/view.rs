//! What a policy reads: the ledger, and a private what-if on top of it.
//!
//! A policy moves only its view: the next block of a batch, the next transfer of an app, its own load taken out
//! for a re-placement. The what-if is kept in a [`Scratch`] that is used again and again; starting a new one
//! costs as much as the last one touched.

use leeward_fabric::{Load, Nanos, ResourceId};

use crate::Ledger;
use crate::entry::{Entry, Fade, Owner};
use crate::numbers::{Numbers, Sums, expected_capacity, whole};
use crate::share::{Rates, Share};
use crate::state::{Promise, Source};
use crate::transact::Stage;

/// Reusable memory for the what-ifs of views.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    /// For each resource, 1 + its position in `deltas`, or 0.
    slots: Vec<u32>,
    deltas: Vec<(ResourceId, Delta)>,
    /// What deltas were before they changed, oldest first.
    log: Vec<(u32, Delta)>,
}

/// A state of the what-if to go back to.
#[derive(Clone, Copy, Debug)]
pub struct Mark(usize);

#[derive(Clone, Copy, Debug, Default)]
struct Delta {
    pressure: i64,
    /// Best effort, and what was promised.
    held: [i64; 2],
    settling: [i64; 2],
    flows: i64,
    inelastic: i64,
    reserved_mean: i64,
    reserved_rate: i64,
}

impl Delta {
    /// Adds (1) or takes away (-1) what stays until release.
    fn count(&mut self, share: &Share, times: i64) {
        self.flows += share.flows * times;
        self.inelastic += share.inelastic * times;
        self.reserved_mean += share.reserved_mean * times;
        self.reserved_rate += share.reserved_rate * times;
    }

    /// Adds (1) or takes away (-1) a rate that has not started; what leaves counts at once.
    fn hold(&mut self, promised: bool, rate: i64, times: i64) {
        let part = if rate < 0 { &mut self.settling } else { &mut self.held };
        part[usize::from(promised)] += rate * times;
    }

    /// Adds (1) or takes away (-1) a rate that has started: what fades, and what lasts.
    fn start(&mut self, promised: bool, (fading, lasting): (i64, i64), times: i64) {
        self.settling[usize::from(promised)] += fading * times;
        self.held[usize::from(promised)] += lasting * times;
    }
}

/// A rate cannot be promised on this resource, because it serves first come, first served.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("resource {} is first come, first served: nothing can be promised on it", .0.0)]
pub struct FifoError(pub ResourceId);

/// The ledger at a moment, with a private what-if. Resource and domain ids are those of its fabric; any other is a
/// bug of the caller and panics.
#[derive(Debug)]
pub struct View<'a> {
    ledger: &'a Ledger,
    now: Nanos,
    scratch: &'a mut Scratch,
}

impl<'a> View<'a> {
    pub(crate) fn new(ledger: &'a Ledger, now: Nanos, scratch: &'a mut Scratch) -> Self {
        for (resource, _) in scratch.deltas.drain(..) {
            scratch.slots[resource.index()] = 0;
        }
        scratch.slots.resize(ledger.gauges.len(), 0);
        scratch.log.clear();
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

    /// Shows the world with `entry` in it too. It is one that [`Ledger::commit`] would take.
    pub fn add(&mut self, entry: &Entry) {
        let rates = Rates::of(entry, self.ledger.settings.hold_peak, |r, flows| self.share_exact(r, flows));
        let promised = entry.is_promised();
        for hop in &entry.hops {
            let share = Share::of(entry, &rates, hop.work);
            let pressure = share.pressure(self.time_to_report(hop.resource));
            let delta = self.delta(hop.resource);
            delta.pressure += pressure;
            delta.count(&share, 1);
            match entry.fades_from() {
                Some(_) => delta.start(promised, rates.parts(hop.work), 1),
                None => delta.hold(promised, share.rate, 1),
            }
        }
    }

    /// Shows the world without what `owner` has in it: its own load is not in its way. What telemetry shows of it
    /// counts as gone too.
    pub fn without(&mut self, owner: &Owner) {
        let ledger = self.ledger;
        for id in ledger.owners.get(owner).into_iter().flatten() {
            let stored = &ledger.entries[id];
            let (hops, promised) = (&stored.entry.hops, stored.entry.is_promised());
            for (at, hop) in hops.iter().enumerate() {
                let share = Share::of(&stored.entry, &stored.rates, hop.work);
                let delta = self.delta(hop.resource);
                delta.count(&share, -1);
                match stored.stage {
                    Stage::Held if stored.entry.fade == Fade::AtNextWindow => {}
                    Stage::Held => delta.hold(promised, share.rate, -1),
                    Stage::Started(_) => delta.start(promised, stored.rates.parts(hop.work), -1),
                    Stage::Gone => {}
                }
                if hops[..at].iter().any(|before| before.resource == hop.resource) {
                    continue;
                }
                let waiting = &ledger.commitments[hop.resource.index()].until_window;
                for item in waiting.iter().filter(|item| item.entry == *id) {
                    delta.pressure -= item.pressure;
                    delta.hold(promised, item.rate, -1);
                }
            }
        }
    }

    fn delta(&mut self, resource: ResourceId) -> &mut Delta {
        let scratch = &mut *self.scratch;
        if scratch.slots[resource.index()] == 0 {
            scratch.deltas.push((resource, Delta::default()));
            scratch.slots[resource.index()] = scratch.deltas.len() as u32;
        }
        let slot = scratch.slots[resource.index()] - 1;
        let delta = &mut scratch.deltas[slot as usize].1;
        scratch.log.push((slot, *delta));
        delta
    }

    /// The what-if as it is now, for [`View::back_to`].
    pub fn mark(&self) -> Mark {
        Mark(self.scratch.log.len())
    }

    /// Takes back what was added or taken out since `mark`.
    pub fn back_to(&mut self, mark: Mark) {
        let scratch = &mut *self.scratch;
        for (slot, before) in scratch.log.drain(mark.0.min(scratch.log.len())..).rev() {
            scratch.deltas[slot as usize].1 = before;
        }
    }

    fn changed(&self, resource: ResourceId) -> Option<&Delta> {
        let slot = self.scratch.slots[resource.index()].checked_sub(1)?;
        Some(&self.scratch.deltas[slot as usize].1)
    }

    #[inline]
    fn sums(&self, resource: ResourceId) -> Sums {
        let mut sums = self.ledger.sums(resource, self.now);
        if let Some(delta) = self.changed(resource) {
            for (at, pending) in [&mut sums.pending, &mut sums.pending_guaranteed].into_iter().enumerate() {
                pending.held += delta.held[at] as f64;
                pending.settling += delta.settling[at] as f64;
            }
            sums.flows += delta.flows as f64;
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

    /// End of the last window that was taken in; zero if none was, or none since its host came up. Where
    /// [`View::measured`] is `None`, the resource is unknown since then.
    pub fn measured_until(&self, resource: ResourceId) -> Nanos {
        let gauge = &self.ledger.gauges[resource.index()];
        match (gauge.source, self.ledger.fabric.host_of(resource)) {
            // Its windows count from when the host came up, and none of them has come yet.
            (Source::None, Some(_)) => Nanos(0),
            _ => gauge.until,
        }
    }

    /// Whether what is measured is a sum over the hosts below, and so includes traffic inside the rack.
    pub fn is_derived(&self, resource: ResourceId) -> bool {
        self.ledger.gauges[resource.index()].source == Source::Derived
    }

    /// d: the time to the next report of a resource.
    pub fn time_to_report(&self, resource: ResourceId) -> Nanos {
        self.ledger.next_window(resource, self.now).since(self.now)
    }

    /// The part of [`View::measured`] in classes with a promise; `None` where counters do not tell. More than
    /// [`View::reserved`] is a reason for an alarm, and adjusts nothing.
    pub fn measured_guaranteed(&self, resource: ResourceId) -> Option<Load> {
        self.ledger.commitments[resource.index()].measured_guaranteed.map(whole)
    }

    /// R: the sum of the rates promised at a resource.
    pub fn reserved(&self, resource: ResourceId) -> Load {
        Load(self.sums(resource).reserved_rate)
    }

    /// N: elastic flows committed at a resource, and those measured beside them. Choreo's own estimate for one more
    /// is capacity / (N + 1) (Choreo section 3.2).
    pub fn flows(&self, resource: ResourceId) -> f64 {
        self.sums(resource).flows
    }

    /// Since when a resource was hot in every window, without a gap; `None` too where it cannot be seen now.
    pub fn hot_since(&self, resource: ResourceId) -> Option<Nanos> {
        let since = self.ledger.commitments[resource.index()].hot_since?;
        self.ledger.measured(resource, self.now).map(|_| since)
    }

    /// The utilization above which a resource is hot, for a whole window.
    pub fn hot_above(&self) -> f64 {
        self.ledger.settings.hot
    }

    /// The version of what may be promised on a resource, for [`crate::Transaction::expect`].
    pub fn version(&self, resource: ResourceId) -> u32 {
        self.ledger.commitments[resource.index()].version
    }

    // ---- numbers --------------------------------------------------------------------------------------

    /// C - min(C, M + pressure) (Sinbad pseudocode 2, line 30); `None` where M cannot be seen.
    pub fn expected_capacity(&self, resource: ResourceId) -> Option<Load> {
        // Read for every candidate of every block, so it reads the gauge alone.
        let gauge = &self.ledger.gauges[resource.index()];
        let extra = self.changed(resource).map_or(0, |delta| delta.pressure);
        let measured = self.ledger.measured(resource, self.now)?;
        Some(whole(expected_capacity(gauge.capacity as f64, measured, gauge.pressure + extra)))
    }

    /// What readers are shown of a resource, from one look at it.
    pub fn numbers(&self, resource: ResourceId) -> Numbers {
        let (sums, gauge) = (self.sums(resource), &self.ledger.gauges[resource.index()]);
        let pressure = gauge.pressure + self.changed(resource).map_or(0, |delta| delta.pressure);
        let expected = |measured| whole(expected_capacity(sums.capacity, measured, pressure));
        Numbers {
            measured: sums.measured.map(whole),
            load: sums.load().map(whole),
            reserved: Load(sums.reserved_rate),
            residual: whole(sums.residual(self.ledger.settings.limit)),
            expected: sums.measured.map(expected),
        }
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

    /// (L + extra) / C (Hotspots section 5.1). `None` where L cannot be seen; infinite without capacity.
    pub fn utilization_with(&self, resource: ResourceId, extra: Load) -> Option<f64> {
        self.sums(resource).utilization_with(extra.0 as f64)
    }

    /// limit C - R: what may still be promised; telemetry plays no part. Negative where more is promised than the
    /// resource is now believed to carry.
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
