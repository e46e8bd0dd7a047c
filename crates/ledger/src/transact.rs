//! Commits and releases. A transaction is checked whole before anything changes.

use leeward_fabric::{BITS_PER_BYTE, Discipline, Nanos, ResourceId};

use crate::Ledger;
use crate::entry::{CommitError, Demand, Entry, EntryId, Fade, Sign, Transaction};
use crate::pending::Pending;
use crate::settings::Missing;
use crate::state::{Promise, UntilWindow};

/// An entry in the ledger, and what was derived from it at commit.
#[derive(Clone, Debug)]
pub(crate) struct Stored {
    pub entry: Entry,
    pub stage: Stage,
    /// Its rate in payload bytes per second, negative if it relieves.
    pub face: f64,
    /// When it stops being pending by itself.
    pub deadline: Option<Nanos>,
}

/// How far an entry is on its way into telemetry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stage {
    /// At face value, until it starts, is released, or the next window comes.
    Held,
    /// Started, and fading into telemetry.
    Started,
    /// Its rate plays no part any more; flows and reservations stay until release.
    Gone,
}

/// The rate at which an entry's work counts as pending, in payload bytes per second: what it asks for, or for
/// elastic work what `share` (resource, flows; native units per second) says it would get on its whole path.
pub(crate) fn face(entry: &Entry, share: impl Fn(ResourceId, u32) -> f64) -> f64 {
    let bytes = |bps: u64| bps as f64 / BITS_PER_BYTE;
    let rate = match entry.demand {
        Demand::Stream { peak_bps, .. } => bytes(peak_bps),
        Demand::Envelope { mean_bps, .. } => bytes(mean_bps),
        Demand::Elastic { flows, cap_bps, .. } => {
            let hops = entry.hops.iter().filter(|hop| hop.work > 0.0);
            let least = hops.map(|hop| share(hop.resource, flows) / hop.work).fold(f64::INFINITY, f64::min);
            Some(least.min(cap_bps.map_or(f64::INFINITY, bytes))).filter(|r| r.is_finite()).unwrap_or(0.0)
        }
    };
    if entry.sign == Sign::Relieves { -rate } else { rate }
}

/// What one entry adds to one resource's sums, in native units per second.
pub(crate) struct Share {
    pub rate: i64,
    pub flows: i64,
    pub inelastic: i64,
    pub reserved_mean: i64,
    pub reserved_rate: i64,
    /// Bytes of work that Sinbad's pressure spreads over the time to the next report.
    pub pressing: f64,
}

impl Share {
    /// The share of an entry of rate `face` (bytes per second, signed) at a hop with `work` units a byte.
    pub fn of(entry: &Entry, face: f64, work: f64) -> Share {
        let rate = (face * work).round() as i64;
        let none = Share { rate, flows: 0, inelastic: 0, reserved_mean: 0, reserved_rate: 0, pressing: 0.0 };
        match &entry.demand {
            Demand::Elastic { bytes, flows, .. } if entry.sign == Sign::Adds => {
                Share { flows: i64::from(*flows), pressing: bytes.0 as f64 * work, ..none }
            }
            Demand::Elastic { .. } => none,
            Demand::Stream { .. } => Share { inelastic: rate, ..none },
            Demand::Envelope { rate_bps, .. } => {
                let reserved = *rate_bps as f64 / BITS_PER_BYTE * work;
                Share { inelastic: rate, reserved_mean: rate, reserved_rate: reserved.round() as i64, ..none }
            }
        }
    }

    /// Placement pressure: the work spread over the `d` to the next report.
    pub fn pressure(&self, d: Nanos) -> i64 {
        (self.pressing / d.as_secs_f64().max(1e-9)).round() as i64
    }
}

impl Stored {
    /// When a transfer that started at `started` is over at face value, and so stops being pending.
    fn over_at(&self, started: Nanos) -> Option<Nanos> {
        match self.entry.demand {
            Demand::Elastic { bytes, .. } if self.face > 0.0 => {
                Some(started.plus(Nanos::from_secs_f64(bytes.0 as f64 / self.face)))
            }
            _ => None,
        }
    }
}

impl Ledger {
    /// Makes a transaction, whole or not at all. Returns the ids of the entries added, in order.
    pub fn commit(&mut self, transaction: Transaction, now: Nanos) -> Result<Vec<EntryId>, CommitError> {
        self.check(&transaction)?;
        for id in transaction.release {
            self.remove(id, now);
        }
        let added = transaction.add.into_iter().map(|entry| self.insert(entry, now)).collect();
        if let Some((client, sequence)) = transaction.client {
            self.clients.insert(client, sequence);
        }
        self.epoch += 1;
        Ok(added)
    }

    fn check(&self, transaction: &Transaction) -> Result<(), CommitError> {
        for &(resource, expected) in &transaction.expect {
            let found = self.commitments.get(resource.index()).map(|c| c.version);
            let found = found.ok_or(CommitError::NoResource(resource))?;
            if found != expected {
                return Err(CommitError::Conflict { resource, expected, found });
            }
        }
        if let Some((client, sequence)) = transaction.client
            && self.clients.get(&client).is_some_and(|&last| sequence <= last)
        {
            return Err(CommitError::Repeated { client, sequence });
        }
        if let Some(&id) = transaction.release.iter().find(|id| !self.entries.contains_key(id)) {
            return Err(CommitError::NoEntry(id));
        }
        for entry in &transaction.add {
            for hop in &entry.hops {
                if hop.resource.index() >= self.gauges.len() {
                    return Err(CommitError::NoResource(hop.resource));
                }
                let promised = matches!(entry.demand, Demand::Envelope { .. });
                if promised && self.fabric.discipline(hop.resource) == Discipline::Fifo {
                    return Err(CommitError::CannotReserve(hop.resource));
                }
            }
        }
        Ok(())
    }

    /// Releases entries whose work ended; those not in the ledger (any more) are passed over.
    pub fn release(&mut self, ids: &[EntryId], now: Nanos) {
        for &id in ids {
            if self.entries.contains_key(&id) {
                self.remove(id, now);
            }
        }
        self.epoch += 1;
    }

    /// The work of an entry started: from here on it fades into telemetry.
    pub fn started(&mut self, id: EntryId, at: Nanos) {
        let Some(mut stored) = self.entries.remove(&id) else { return };
        let fades = matches!(stored.entry.fade, Fade::WithEstimator | Fade::After(_));
        if stored.stage == Stage::Held && fades {
            self.hold(&stored, -1);
            self.start(&stored, at, 1);
            stored.stage = Stage::Started;
            let deadline = stored.over_at(at);
            self.set_deadline(id, &mut stored, deadline);
        }
        self.entries.insert(id, stored);
        self.epoch += 1;
    }

    fn insert(&mut self, entry: Entry, now: Nanos) -> EntryId {
        let id = EntryId(self.next_entry);
        self.next_entry += 1;
        let face = face(&entry, |r, flows| self.sums(r, now).share(flows, self.settings.limit));
        let fades = matches!(entry.fade, Fade::WithEstimator | Fade::After(_));
        let starts = entry.starts.filter(|_| fades);
        let stage = if starts.is_some() { Stage::Started } else { Stage::Held };
        let mut stored = Stored { entry, stage, face, deadline: None };
        match starts {
            Some(at) => self.start(&stored, at, 1),
            None => self.hold(&stored, 1),
        }
        self.count(id, &stored, 1);
        self.press(id, &stored, now);
        let deadline = match (stored.entry.fade, starts) {
            (Fade::After(ttl), None) => Some(now.plus(ttl)),
            (_, Some(at)) => stored.over_at(at),
            _ => None,
        };
        self.set_deadline(id, &mut stored, deadline);
        self.owners.entry(stored.entry.owner).or_default().push(id);
        self.entries.insert(id, stored);
        id
    }

    fn remove(&mut self, id: EntryId, now: Nanos) {
        let mut stored = self.entries.remove(&id).expect("callers checked that the entry is there");
        self.set_deadline(id, &mut stored, None);
        self.retire(&stored, now);
        self.count(id, &stored, -1);
        for hop in &stored.entry.hops {
            let commitments = &mut self.commitments[hop.resource.index()];
            let gauge = &mut self.gauges[hop.resource.index()];
            commitments.until_window.retain(|item| {
                if item.entry == id {
                    gauge.pressure -= item.pressure;
                    commitments.pending.held -= item.rate;
                }
                item.entry != id
            });
        }
        let owned = self.owners.get_mut(&stored.entry.owner).expect("every entry is listed under its owner");
        owned.retain(|&entry| entry != id);
        if owned.is_empty() {
            self.owners.remove(&stored.entry.owner);
        }
    }

    /// An entry ends by itself: it never started, or its transfer is over by now.
    pub(crate) fn expire(&mut self, id: EntryId, at: Nanos) {
        let Some(mut stored) = self.entries.remove(&id) else { return };
        let started = stored.stage == Stage::Started;
        stored.deadline = None;
        if !started {
            self.entries.insert(id, stored);
            return self.remove(id, at);
        }
        self.retire(&stored, at);
        stored.stage = Stage::Gone;
        self.entries.insert(id, stored);
    }

    /// Ends the part that an entry's rate plays.
    fn retire(&mut self, stored: &Stored, at: Nanos) {
        match stored.stage {
            // What leaves with the next window is undone together with its pressure.
            Stage::Held if stored.entry.fade == Fade::AtNextWindow => {}
            Stage::Held => self.hold(stored, -1),
            Stage::Started => self.start(stored, at, -1),
            Stage::Gone => {}
        }
    }

    fn set_deadline(&mut self, id: EntryId, stored: &mut Stored, deadline: Option<Nanos>) {
        if let Some(before) = std::mem::replace(&mut stored.deadline, deadline) {
            self.deadlines.remove(&(before, id));
        }
        if let Some(at) = deadline {
            self.deadlines.insert((at, id));
        }
    }

    /// Adds (1) or takes away (-1) an entry's rate at face value.
    fn hold(&mut self, stored: &Stored, times: i64) {
        for hop in &stored.entry.hops {
            let rate = Share::of(&stored.entry, stored.face, hop.work).rate * times;
            self.pending(stored, hop.resource).held += rate;
        }
    }

    /// Starts (1) or ends (-1) an entry's rate at a time, from when telemetry takes over.
    fn start(&mut self, stored: &Stored, at: Nanos, times: i64) {
        for hop in &stored.entry.hops {
            let rate = Share::of(&stored.entry, stored.face, hop.work).rate * times;
            self.pending(stored, hop.resource).start(at, rate);
        }
    }

    fn pending(&mut self, stored: &Stored, resource: ResourceId) -> &mut Pending {
        let commitments = &mut self.commitments[resource.index()];
        match stored.entry.demand {
            Demand::Envelope { .. } => &mut commitments.pending_guaranteed,
            _ => &mut commitments.pending,
        }
    }

    /// Adds (1) or takes away (-1) what stays until release.
    fn count(&mut self, id: EntryId, stored: &Stored, times: i64) {
        for hop in &stored.entry.hops {
            let share = Share::of(&stored.entry, stored.face, hop.work);
            let commitments = &mut self.commitments[hop.resource.index()];
            commitments.flows += share.flows * times;
            commitments.inelastic += share.inelastic * times;
            commitments.reserved_mean += share.reserved_mean * times;
            commitments.reserved_rate += share.reserved_rate * times;
            if let Demand::Envelope { buckets, priority, .. } = &stored.entry.demand {
                commitments.version += 1;
                commitments.envelopes.retain(|promise| promise.entry != id);
                if times > 0 {
                    let (priority, buckets, work) = (*priority, buckets.clone(), hop.work);
                    commitments.envelopes.push(Promise { entry: id, priority, buckets, work });
                }
            }
        }
    }

    /// Notes what the next window's report takes away: pressure, and rates that fade `AtNextWindow`.
    fn press(&mut self, id: EntryId, stored: &Stored, now: Nanos) {
        let leaves = stored.entry.fade == Fade::AtNextWindow;
        for hop in &stored.entry.hops {
            let share = Share::of(&stored.entry, stored.face, hop.work);
            let window = self.next_window(hop.resource, now);
            let pressure = share.pressure(window.since(now));
            let rate = if leaves { share.rate } else { 0 };
            if pressure == 0 && rate == 0 {
                continue;
            }
            self.gauges[hop.resource.index()].pressure += pressure;
            let item = UntilWindow { entry: id, committed: now, pressure, rate };
            self.commitments[hop.resource.index()].until_window.push(item);
            if self.settings.missing == Missing::Sinbad {
                self.pressure_due.insert((window.plus(self.settings.grace()), hop.resource));
            }
        }
    }
}
