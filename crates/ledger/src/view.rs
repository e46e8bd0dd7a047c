//! The view of a policy: the ledger, with a private what-if on top.
//!
//! A policy changes only its view: the next block of a batch, the next transfer of an app, or a re-placement without
//! its own load. A reusable [`Scratch`] holds the what-if. Resetting it costs as much as its last use.

use leeward_fabric::{Load, Nanos, ResourceId};

use crate::Ledger;
use crate::entry::{Entry, Fade, Owner};
use crate::epoch::Epoch;
use crate::numbers::{Numbers, Sums, expected_capacity, whole};
use crate::share::{Rates, Share};
use crate::state::{Promise, Source};
use crate::stored::Stage;

/// Reusable memory for the what-ifs of views.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    /// For each resource, 1 + its position in `deltas`, or 0 if unchanged.
    slots: Vec<u32>,
    deltas: Vec<(ResourceId, Delta)>,
    /// Earlier values of changed deltas, oldest first.
    log: Vec<(u32, Delta)>,
}

/// A state of the what-if to roll back to.
#[derive(Clone, Copy, Debug)]
pub struct Checkpoint(usize);

#[derive(Clone, Copy, Debug, Default)]
struct Delta {
    pressure: i64,
    /// Held rates: best effort, and promised.
    held: [i64; 2],
    settling: [i64; 2],
    flows: i64,
    inelastic: i64,
    reserved_mean: i64,
    reserved_rate: i64,
    /// Rate that only the last window lacks.
    window: i64,
}

impl Delta {
    /// Adds (1) or removes (-1) the sums that stay until release.
    fn count(&mut self, share: &Share, times: i64) {
        self.flows += share.flows * times;
        self.inelastic += share.inelastic * times;
        self.reserved_mean += share.reserved_mean * times;
        self.reserved_rate += share.reserved_rate * times;
    }

    /// Adds (1) or removes (-1) a rate that has not started. Leaving rates count at once.
    fn hold(&mut self, promised: bool, rate: i64, times: i64) {
        let part = if rate < 0 { &mut self.settling } else { &mut self.held };
        part[usize::from(promised)] += rate * times;
    }

    /// Adds (1) or removes (-1) a started rate: its fading part and its lasting part.
    fn start(&mut self, promised: bool, (fading, lasting): (i64, i64), times: i64) {
        self.settling[usize::from(promised)] += fading * times;
        self.held[usize::from(promised)] += lasting * times;
    }
}

/// No rate can be promised on this resource: its queue is first in, first out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("resource {} is first in, first out: no rate can be promised on it", .0.0)]
pub struct FifoError(pub ResourceId);

/// The ledger at one time, with a private what-if. Resource and domain ids must belong to the ledger's fabric. Other
/// ids are a bug of the caller and cause a panic.
#[derive(Debug)]
pub struct View<'a> {
    ledger: &'a Ledger,
    now: Nanos,
    scratch: &'a mut Scratch,
}

impl Ledger {
    /// A borrow of the ledger with a private what-if, stored in `scratch`.
    pub fn view<'a>(&'a self, now: Nanos, scratch: &'a mut Scratch) -> View<'a> {
        View::new(self, now, scratch)
    }
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

    /// The time that the view shows.
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// The ledger's epoch in this view.
    pub fn epoch(&self) -> Epoch {
        self.ledger.epoch
    }

    /// Fabric of the ledger.
    pub fn fabric(&self) -> &'a leeward_fabric::Fabric {
        &self.ledger.fabric
    }

    // ---- the what-if ----------------------------------------------------------------------------------

    /// Adds `entry` to the what-if. [`Ledger::commit`] must accept the entry.
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

    /// Adds `entry` to the last windows alone ([`View::window_utilization`]): the estimates know its load, and the windows do
    /// not show it. [`Ledger::commit`] must accept the entry.
    pub fn add_to_windows(&mut self, entry: &Entry) {
        let rates = Rates::of(entry, self.ledger.settings.hold_peak, |r, flows| self.share_exact(r, flows));
        for hop in &entry.hops {
            self.delta(hop.resource).window += Share::of(entry, &rates, hop.work).rate;
        }
    }

    /// Removes all load of `owner` from the what-if, so that it does not count against the owner. The removed load
    /// includes the part that telemetry already shows.
    pub fn without(&mut self, owner: &Owner) {
        let ledger = self.ledger;
        for id in ledger.owners.get(owner).into_iter().flatten() {
            let stored = &ledger.entries[id];
            let (hops, promised) = (&stored.entry.hops, stored.entry.is_promised());
            for (index, hop) in hops.iter().enumerate() {
                let share = Share::of(&stored.entry, &stored.rates, hop.work);
                let delta = self.delta(hop.resource);
                delta.count(&share, -1);
                match stored.stage {
                    Stage::Held if stored.entry.fade == Fade::AtNextWindow => {}
                    Stage::Held => delta.hold(promised, share.rate, -1),
                    Stage::Started(_) => delta.start(promised, stored.rates.parts(hop.work), -1),
                    Stage::Gone => {}
                }
                if hops[..index].iter().any(|before| before.resource == hop.resource) {
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

    /// The current state of the what-if, for [`View::rollback`].
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint(self.scratch.log.len())
    }

    /// Reverts all changes to the what-if since `checkpoint`.
    pub fn rollback(&mut self, checkpoint: Checkpoint) {
        let scratch = &mut *self.scratch;
        for (slot, before) in scratch.log.drain(checkpoint.0.min(scratch.log.len())..).rev() {
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
            for (class, pending) in [&mut sums.pending, &mut sums.pending_guaranteed].into_iter().enumerate()
            {
                pending.held += delta.held[class] as f64;
                pending.settling += delta.settling[class] as f64;
            }
            sums.flows += delta.flows as f64;
            sums.inelastic += delta.inelastic;
            sums.reserved_mean += delta.reserved_mean;
            sums.reserved_rate += delta.reserved_rate;
        }
        sums
    }

    // ---- facts ----------------------------------------------------------------------------------------

    /// Assumed capacity of a resource.
    pub fn capacity(&self, resource: ResourceId) -> Load {
        Load(self.ledger.gauges[resource.index()].capacity)
    }

    /// Measured load of a resource; `None` where it is unknown.
    pub fn measured(&self, resource: ResourceId) -> Option<Load> {
        self.ledger.measured(resource, self.now).map(whole)
    }

    /// End of the last accepted window; `None` if the load, known or not, comes from no window. The load of a rack is known
    /// without a window if one of its hosts is known to be down.
    pub fn window_end(&self, resource: ResourceId) -> Option<Nanos> {
        Some(self.measured_until(resource)).filter(|&until| until > Nanos(0))
    }

    /// Start of the last accepted window, and the mean load over it; `None` where [`View::window_end`] is `None`. In
    /// contrast to [`View::measured`], earlier windows do not count.
    pub fn latest(&self, resource: ResourceId) -> Option<(Nanos, Load)> {
        let commitments = &self.ledger.commitments[resource.index()];
        self.window_end(resource).map(|_| (commitments.from, Load(commitments.latest)))
    }

    /// End of the last accepted window. Zero if no window was accepted, or none since the resource's host came up. If
    /// [`View::measured`] is `None`, the load has been unknown since then.
    pub fn measured_until(&self, resource: ResourceId) -> Nanos {
        let gauge = &self.ledger.gauges[resource.index()];
        match (gauge.source, self.ledger.fabric.host_of(resource)) {
            // The host came up, and no window has arrived after that.
            (Source::None, Some(_)) => Nanos(0),
            _ => gauge.until,
        }
    }

    /// True if the measured load is a sum over the hosts below. The sum includes traffic inside the rack.
    pub fn is_derived(&self, resource: ResourceId) -> bool {
        self.ledger.gauges[resource.index()].source == Source::Derived
    }

    /// d: time to the next report of a resource.
    pub fn time_to_report(&self, resource: ResourceId) -> Nanos {
        self.ledger.next_window(resource, self.now).since(self.now)
    }

    /// The part of [`View::measured`] in guaranteed classes; `None` where counters do not separate classes. A value
    /// above [`View::reserved`] is a reason for an alarm; the ledger adjusts nothing.
    pub fn measured_guaranteed(&self, resource: ResourceId) -> Option<Load> {
        self.ledger.commitments[resource.index()].measured_guaranteed.map(whole)
    }

    /// R: the sum of the rates promised at a resource.
    pub fn reserved(&self, resource: ResourceId) -> Load {
        Load(self.sums(resource).reserved_rate)
    }

    /// N: elastic flows committed at a resource, plus measured cross traffic. Choreo's estimate for one more flow is
    /// capacity / (N + 1) (Choreo section 3.2).
    pub fn flows(&self, resource: ResourceId) -> f64 {
        self.sums(resource).flows
    }

    /// Time at which a resource became hot, if it was hot in every window since then. `None` if it is not hot, or if
    /// its load is unknown now.
    pub fn hot_since(&self, resource: ResourceId) -> Option<Nanos> {
        let since = self.ledger.commitments[resource.index()].hot_since?;
        self.ledger.measured(resource, self.now).map(|_| since)
    }

    /// Time for which a resource has been hot in every window; `None` if it is not hot, or if its load is unknown now.
    pub fn hot_for(&self, resource: ResourceId) -> Option<Nanos> {
        let since = self.hot_since(resource)?;
        Some(self.ledger.commitments[resource.index()].hot_until.since(since))
    }

    /// Time between reports.
    pub fn interval(&self) -> Nanos {
        self.ledger.settings.interval
    }

    /// The last window with a report of a resource; `None` without one.
    pub fn last_window(&self, resource: ResourceId) -> Option<(Nanos, Nanos)> {
        let until = self.window_end(resource)?;
        Some((self.ledger.commitments[resource.index()].from, until))
    }

    /// Utilization of a resource in its last window with a report, as an average over the window, with the changes of load
    /// that the window does not show (Hotspots section 3.1). `None` where the load is unknown; infinite without capacity.
    pub fn window_utilization(&self, resource: ResourceId) -> Option<f64> {
        self.ledger.measured(resource, self.now)?;
        let commitments = &self.ledger.commitments[resource.index()];
        // Windows that count as full under `missing: sinbad` have no load of their own, and show no start.
        let window = (commitments.from, self.measured_until(resource));
        let mut changes = 0.0;
        for pending in [&commitments.pending, &commitments.pending_guaranteed] {
            changes += pending.unseen(window) + (pending.held + pending.leaving) as f64;
        }
        if let Some(delta) = self.changed(resource) {
            let sums = delta.held.iter().chain(&delta.settling).chain([&delta.window]);
            changes += sums.map(|&load| load as f64).sum::<f64>();
        }
        let load = (commitments.latest as f64 + changes).max(0.0);
        let capacity = self.ledger.gauges[resource.index()].capacity as f64;
        Some(if capacity > 0.0 { load / capacity } else { f64::INFINITY })
    }

    /// Utilization above which a resource is hot, as an average over a whole window.
    pub fn hot_above(&self) -> f64 {
        self.ledger.settings.hot
    }

    /// Version of the promises and the capacity of a resource, for [`crate::Transaction::expect`].
    pub fn version(&self, resource: ResourceId) -> u32 {
        self.ledger.commitments[resource.index()].version
    }

    // ---- numbers --------------------------------------------------------------------------------------

    /// C - min(C, M + pressure) (Sinbad pseudocode 2, line 30); `None` where M is unknown.
    pub fn expected_capacity(&self, resource: ResourceId) -> Option<Load> {
        // Policies read this number for every candidate of every block, so it uses the gauge alone.
        let gauge = &self.ledger.gauges[resource.index()];
        let extra = self.changed(resource).map_or(0, |delta| delta.pressure);
        let measured = self.ledger.measured(resource, self.now)?;
        Some(whole(expected_capacity(gauge.capacity as f64, measured, gauge.pressure + extra)))
    }

    /// The displayed numbers of a resource, from one look-up.
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

    /// max(0, limit C - L): the rate left for best-effort work. Zero where L is unknown.
    pub fn residual(&self, resource: ResourceId) -> Load {
        whole(self.sums(resource).residual(self.ledger.settings.limit))
    }

    /// Rate that `flows` new elastic flows together would get beside the present ones (Choreo section 3.2).
    pub fn share(&self, resource: ResourceId, flows: u32) -> Load {
        whole(self.share_exact(resource, flows))
    }

    fn share_exact(&self, resource: ResourceId, flows: u32) -> f64 {
        self.sums(resource).share(flows, self.ledger.settings.limit)
    }

    /// (L + extra) / C (Hotspots section 5.1). `None` where L is unknown; infinite without capacity.
    pub fn utilization_with(&self, resource: ResourceId, extra: Load) -> Option<f64> {
        self.sums(resource).utilization_with(extra.0 as f64)
    }

    /// limit C - R: the rate that may still be promised. Telemetry has no effect. Negative if the promised rates exceed
    /// the assumed capacity.
    ///
    /// # Errors
    ///
    /// Fails if the resource's queue is first in, first out: no rate can be promised on it.
    pub fn unreserved(&self, resource: ResourceId) -> Result<Load, FifoError> {
        self.check_reservable(resource)?;
        Ok(whole(self.sums(resource).unreserved(self.ledger.settings.reservable)))
    }

    /// All envelopes promised at a resource.
    ///
    /// # Errors
    ///
    /// Fails if the resource's queue is first in, first out: nothing can be promised on it.
    pub fn envelopes(&self, resource: ResourceId) -> Result<&'a [Promise], FifoError> {
        self.check_reservable(resource)?;
        Ok(&self.ledger.commitments[resource.index()].envelopes)
    }

    fn check_reservable(&self, resource: ResourceId) -> Result<(), FifoError> {
        match self.ledger.fabric.discipline(resource) {
            leeward_fabric::Discipline::Fifo => Err(FifoError(resource)),
            leeward_fabric::Discipline::StrictPriority { .. } => Ok(()),
        }
    }
}
