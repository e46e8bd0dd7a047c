//! Commits and releases. A transaction is checked completely before anything changes.

use std::collections::hash_map;

use leeward_fabric::{Discipline, Hop, Nanos};

use crate::Ledger;
use crate::entry::{CommitError, Demand, Entry, EntryId, Fade, Sign, Transaction};
use crate::ledger::Due;
use crate::pending::Pending;
use crate::settings::Missing;
use crate::share::{Rates, Share};
use crate::state::{Promise, UntilWindow};
use crate::stored::{Stage, Stored};

impl Ledger {
    /// Applies a transaction completely or not at all. Returns the ids of the added entries, in order.
    ///
    /// # Errors
    ///
    /// Fails if a read version is out of date, if an entry or resource does not exist, if work is negative or not
    /// finite, if a rate cannot be reserved, or if the client's request was already counted.
    pub fn commit(&mut self, transaction: Transaction, now: Nanos) -> Result<Vec<EntryId>, CommitError> {
        self.advance(now);
        self.check(&transaction)?;
        for id in transaction.release {
            self.remove(id, now);
        }
        let added = transaction.add.into_iter().map(|entry| self.insert(entry, now)).collect();
        if let Some((client, sequence)) = transaction.client {
            self.clients.insert(client, sequence);
        }
        self.epoch.0 += 1;
        Ok(added)
    }

    fn check(&self, transaction: &Transaction) -> Result<(), CommitError> {
        // Checked first: a client that repeats a counted request need not decide again.
        if let Some((client, sequence)) = transaction.client
            && self.clients.get(&client).is_some_and(|&last| sequence <= last)
        {
            return Err(CommitError::Repeated { client, sequence });
        }
        for &(resource, expected) in &transaction.expect {
            let found = self.commitments.get(resource.index()).map(|c| c.version);
            let found = found.ok_or(CommitError::NoResource(resource))?;
            if found != expected {
                return Err(CommitError::Conflict { resource, expected, found });
            }
        }
        if let Some(&id) = transaction.release.iter().find(|id| !self.entries.contains_key(id)) {
            return Err(CommitError::NoEntry(id));
        }
        for entry in &transaction.add {
            for hop in &entry.hops {
                if hop.resource.index() >= self.gauges.len() {
                    return Err(CommitError::NoResource(hop.resource));
                }
                if !hop.work.is_finite() || hop.work < 0.0 {
                    return Err(CommitError::InvalidWork(hop.resource));
                }
                let reserves = entry.is_promised() && entry.sign == Sign::Adds;
                if reserves && self.fabric.discipline(hop.resource) == Discipline::Fifo {
                    return Err(CommitError::CannotReserve(hop.resource));
                }
            }
        }
        Ok(())
    }

    /// A committed entry of the ledger.
    pub fn entry(&self, id: EntryId) -> Option<&Entry> {
        self.entries.get(&id).map(|stored| &stored.entry)
    }

    /// Releases entries whose work ended. Ids that are not in the ledger are ignored.
    pub fn release(&mut self, ids: &[EntryId], now: Nanos) {
        self.advance(now);
        ids.iter().for_each(|&id| self.remove(id, now));
        self.epoch.0 += 1;
    }

    /// Marks the work of an entry as started at `at`: from then on it fades into telemetry. Nothing changes if the
    /// work had already started, has ended, starts too late ([`Fade::After`]), or does not fade.
    pub fn mark_started(&mut self, id: EntryId, at: Nanos) {
        let Some(mut stored) = self.entries.remove(&id) else { return };
        let in_time = stored.deadline.is_none_or(|deadline| at < deadline);
        if stored.stage == Stage::Held && stored.entry.fades() && in_time {
            for hop in &stored.entry.hops {
                self.retire(&stored, hop, at);
                self.start(&stored, hop, at, 1, at);
            }
            stored.stage = Stage::Started(at);
            let deadline = stored.transfer_end(at);
            self.set_deadline(id, &mut stored, deadline);
            self.epoch.0 += 1;
        }
        self.entries.insert(id, stored);
    }

    fn insert(&mut self, entry: Entry, now: Nanos) -> EntryId {
        let id = EntryId(self.next_entry);
        self.next_entry += 1;
        let share = |resource, flows| self.sums(resource, now).share(flows, self.settings.limit);
        let rates = Rates::of(&entry, self.settings.hold_peak, share);
        let starts = entry.fades_from();
        let stage = starts.map_or(Stage::Held, Stage::Started);
        let mut stored = Box::new(Stored { entry, stage, rates, deadline: None });
        for hop in &stored.entry.hops {
            let share = Share::of(&stored.entry, &stored.rates, hop.work);
            self.count(id, &stored.entry, hop, &share, 1);
            match starts {
                Some(at) => self.start(&stored, hop, at, 1, now),
                None => self.pending(&stored, hop).hold(share.rate),
            }
            self.record_pressure(id, &stored.entry, hop, &share, now);
        }
        let deadline = match (stored.entry.fade, starts) {
            (Fade::After(ttl), None) => Some(now.plus(ttl)),
            (_, Some(at)) => stored.transfer_end(at),
            _ => None,
        };
        self.set_deadline(id, &mut stored, deadline);
        self.owners.entry(stored.entry.owner).or_default().push(id);
        self.entries.insert(id, stored);
        id
    }

    fn remove(&mut self, id: EntryId, now: Nanos) {
        let Some(mut stored) = self.entries.remove(&id) else { return };
        self.set_deadline(id, &mut stored, None);
        for hop in &stored.entry.hops {
            let share = Share::of(&stored.entry, &stored.rates, hop.work);
            self.count(id, &stored.entry, hop, &share, -1);
            self.retire(&stored, hop, now);
            let gauge = &mut self.gauges[hop.resource.index()];
            self.commitments[hop.resource.index()].drop_entry(gauge, id);
        }
        if let hash_map::Entry::Occupied(mut owned) = self.owners.entry(stored.entry.owner) {
            owned.get_mut().retain(|&other| other != id);
            if owned.get().is_empty() {
                owned.remove();
            }
        }
    }

    /// Ends an entry at its deadline: its work never started, or its transfer is over.
    pub(crate) fn expire(&mut self, id: EntryId, at: Nanos) {
        let Some(mut stored) = self.entries.remove(&id) else { return };
        let started = matches!(stored.stage, Stage::Started(_));
        if started {
            stored.entry.hops.iter().for_each(|hop| self.retire(&stored, hop, at));
            (stored.stage, stored.deadline) = (Stage::Gone, None);
        }
        self.entries.insert(id, stored);
        if !started {
            self.remove(id, at);
        }
    }

    fn set_deadline(&mut self, id: EntryId, stored: &mut Stored, deadline: Option<Nanos>) {
        if let Some(before) = std::mem::replace(&mut stored.deadline, deadline) {
            self.agenda.remove(&(before, Due::Entry(id)));
        }
        if let Some(at) = deadline {
            self.agenda.insert((at, Due::Entry(id)));
        }
    }

    // ---- at each hop ----------------------------------------------------------------------------------

    fn pending(&mut self, stored: &Stored, hop: &Hop) -> &mut Pending {
        self.commitments[hop.resource.index()].pending(stored.entry.is_promised())
    }

    /// Starts (1) or ends (-1) an entry's rate at `at`. Each later window takes over the part that it covers. Reports
    /// that count as missing by `now` no longer affect the entry: the estimate already contains them.
    fn start(&mut self, stored: &Stored, hop: &Hop, at: Nanos, times: i64, now: Nanos) {
        let missed = self.missed(&self.gauges[hop.resource.index()], now);
        let at = missed.map_or(at, |missed| at.max(missed.last_window().1));
        let (fading, lasting) = stored.rates.parts(hop.work);
        let pending = self.pending(stored, hop);
        pending.held += lasting * times;
        pending.start(at, fading * times);
    }

    /// Ends the contribution of an entry's rate.
    fn retire(&mut self, stored: &Stored, hop: &Hop, at: Nanos) {
        match stored.stage {
            // Removal of the pressure also removes a rate that leaves with the next window.
            Stage::Held if stored.entry.fade == Fade::AtNextWindow => {}
            Stage::Held => {
                let rate = Share::of(&stored.entry, &stored.rates, hop.work).rate;
                self.pending(stored, hop).cancel_hold(rate);
            }
            // Work that ends before its start never shows.
            Stage::Started(started) => self.start(stored, hop, at.max(started), -1, at),
            Stage::Gone => {}
        }
    }

    /// Adds (1) or removes (-1) the sums that stay until release.
    fn count(&mut self, id: EntryId, entry: &Entry, hop: &Hop, share: &Share, times: i64) {
        let commitments = &mut self.commitments[hop.resource.index()];
        commitments.flows += share.flows * times;
        commitments.inelastic += share.inelastic * times;
        commitments.reserved_mean += share.reserved_mean * times;
        commitments.reserved_rate += share.reserved_rate * times;
        if let (Demand::Envelope { buckets, priority, .. }, Sign::Adds) = (&entry.demand, entry.sign) {
            commitments.version = commitments.version.wrapping_add(1);
            if times > 0 {
                let (priority, buckets, work) = (*priority, buckets.clone(), hop.work);
                commitments.envelopes.push(Promise { entry: id, priority, buckets, work });
            } else {
                commitments.envelopes.retain(|promise| promise.entry != id);
            }
        }
    }

    /// Records the pressure, and a rate that fades `AtNextWindow`, for removal by the next window's report.
    fn record_pressure(&mut self, id: EntryId, entry: &Entry, hop: &Hop, share: &Share, now: Nanos) {
        let rate = if entry.fade == Fade::AtNextWindow { share.rate } else { 0 };
        if share.pressing == 0.0 && rate == 0 {
            return;
        }
        let awaited = self.next_window(hop.resource, now);
        let pressure = share.pressure(awaited.since(now));
        self.gauges[hop.resource.index()].pressure += pressure;
        let guaranteed = entry.is_promised();
        let item = UntilWindow { entry: id, committed: now, awaited, pressure, rate, guaranteed };
        self.commitments[hop.resource.index()].until_window.push_back(item);
        if self.settings.missing == Missing::Sinbad {
            self.agenda.insert((awaited.plus(self.settings.grace()), Due::Window(hop.resource)));
        }
    }
}
