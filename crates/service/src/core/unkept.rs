//! Decisions that are not kept any more. What they put into the ledger goes on counting until telemetry shows it, however
//! many are placed meanwhile: else the placers of a busy second would herd like those that know nothing of each other. If
//! nobody says before that its work ended, it ends by itself. What they were, the store knows.

use std::collections::{BTreeMap, BTreeSet};

use leeward_engine::Input;
use leeward_fabric::Nanos;
use leeward_ledger::{EntryId, LedgerSettings};
use leeward_records::Change;

use super::error::ReleaseError;
use super::{Addresses, Coordinator};

/// Of new load, how much the estimator has yet to take in when telemetry counts as showing it.
const UNSEEN: f64 = 0.01;
/// So many decisions end at once; after a busy time the others end with the next messages, and none waits long.
pub(super) const AT_ONCE: usize = 1000;

/// What a decision that is not kept holds.
#[derive(Debug)]
pub(crate) struct Over {
    /// The decision's number.
    pub id: u64,
    /// Its entries.
    pub entries: Vec<EntryId>,
}

/// What decisions hold that are not kept.
#[derive(Debug)]
pub(crate) struct Unkept {
    /// When each was decided, and its entries.
    held: BTreeMap<u64, (Nanos, Vec<EntryId>)>,
    /// The same by time.
    decided: BTreeSet<(Nanos, u64)>,
    /// How long after its decision an entry ends.
    lasts: Nanos,
    most: usize,
    early: u64,
}

impl Unkept {
    /// Holds the entries of at most `most` decisions, for the time after which a ledger with these settings needs them
    /// no more: the windows that were missing have come, or the links are not seen, and the filter has taken in 99 % of
    /// what is new.
    pub fn new(settings: &LedgerSettings, most: usize) -> Unkept {
        let windows = (UNSEEN.ln() / (1.0 - settings.alpha).ln()).ceil().max(settings.unknown_after.ceil());
        let lasts = Nanos((windows * settings.interval.0 as f64) as u64);
        Unkept { held: BTreeMap::new(), decided: BTreeSet::new(), lasts, most, early: 0 }
    }

    /// How many had to end before their time, because there were too many.
    pub fn early(&self) -> u64 {
        self.early
    }

    /// Takes what a decision made at a time holds. Returns what is to be released for it.
    pub fn hold(&mut self, decided: Nanos, held: Over) -> Option<Over> {
        if held.entries.is_empty() {
            return Some(held);
        }
        self.held.insert(held.id, (decided, held.entries));
        self.decided.insert((decided, held.id));
        if self.held.len() <= self.most {
            return None;
        }
        self.early += 1;
        self.decided.first().copied().and_then(|(_, first)| self.take(first))
    }

    /// What a decision holds; `None` if it holds nothing.
    pub fn take(&mut self, id: u64) -> Option<Over> {
        let (decided, entries) = self.held.remove(&id)?;
        self.decided.remove(&(decided, id));
        Some(Over { id, entries })
    }

    /// What ends by now, or the first of it where that is much.
    pub fn over(&mut self, now: Nanos) -> Vec<Over> {
        let over = self.decided.iter().take_while(|(decided, _)| decided.plus(self.lasts) <= now);
        let over: Vec<u64> = over.take(AT_ONCE).map(|&(_, id)| id).collect();
        over.into_iter().filter_map(|id| self.take(id)).collect()
    }
}

impl<A: Addresses> Coordinator<A> {
    /// Returns true if a decision that is not in memory may be in the store: an id was given to it.
    pub(super) fn is_evicted(&self, id: u64) -> bool {
        id < self.next
    }

    /// Ends a decision that is not in memory. Only the store knows whether it had ended before.
    ///
    /// # Errors
    /// No decision has this id.
    pub(super) fn end_evicted(&mut self, id: u64) -> Result<(), ReleaseError> {
        if !self.is_evicted(id) {
            return Err(ReleaseError::NotFound(id));
        }
        self.changes.push(Change::Ended { id, released: Some(self.now) });
        if let Some(over) = self.unkept.take(id) {
            self.tell(Input::Release(&over.entries));
        }
        Ok(())
    }
}
