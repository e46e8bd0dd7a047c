//! Evicted decisions with ledger entries. Their entries count until telemetry shows their load, even after later
//! placements. Otherwise the placements of a busy second would herd, because they would not see each other. Entries
//! expire on their own if no end is reported before. The decisions themselves are in the store.

use std::collections::{BTreeMap, BTreeSet};

use leeward_engine::Input;
use leeward_fabric::Nanos;
use leeward_ledger::{EntryId, LedgerSettings};
use leeward_records::{Change, DecisionId};

use super::error::ReleaseError;
use super::{Addresses, Coordinator};

/// Share of new load that the estimator may still miss when an entry ends.
const UNSEEN: f64 = 0.01;
/// Limit on decisions that end in one operation. After a busy time, further operations end the rest.
pub(super) const AT_ONCE: usize = 1000;

/// Entries of an evicted decision.
#[derive(Debug)]
pub(crate) struct ExpiredEntries {
    /// Id of the decision.
    pub id: DecisionId,
    /// Ledger entries of the decision.
    pub entries: Vec<EntryId>,
}

/// Entries of evicted decisions.
#[derive(Debug)]
pub(crate) struct EvictedDecisions {
    /// Time and entries by decision.
    held: BTreeMap<DecisionId, (Nanos, Vec<EntryId>)>,
    /// The same entries, ordered by time.
    decided: BTreeSet<(Nanos, DecisionId)>,
    /// Lifetime of an entry after its decision.
    lasts: Nanos,
    most: usize,
    early: u64,
}

impl EvictedDecisions {
    /// Holds the entries of at most `most` decisions, for as long as a ledger with these settings needs them. After
    /// that time, the estimator includes 99 % of new load, or the links count as unseen because windows are missing.
    pub fn new(settings: &LedgerSettings, most: usize) -> EvictedDecisions {
        let windows = (UNSEEN.ln() / (1.0 - settings.alpha).ln()).ceil().max(settings.unknown_after.ceil());
        let lasts = Nanos((windows * settings.interval.0 as f64) as u64);
        EvictedDecisions { held: BTreeMap::new(), decided: BTreeSet::new(), lasts, most, early: 0 }
    }

    /// Number of decisions released early because of the limit.
    pub fn early(&self) -> u64 {
        self.early
    }

    /// Adds the entries of a decision of time `decided`. Returns the entries to release, if any.
    pub fn hold(&mut self, decided: Nanos, held: ExpiredEntries) -> Option<ExpiredEntries> {
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

    /// Removes the entries of a decision; `None` if it has none.
    pub fn take(&mut self, id: DecisionId) -> Option<ExpiredEntries> {
        let (decided, entries) = self.held.remove(&id)?;
        self.decided.remove(&(decided, id));
        Some(ExpiredEntries { id, entries })
    }

    /// Removes entries that expire by `now`, up to a limit per call.
    pub fn over(&mut self, now: Nanos) -> Vec<ExpiredEntries> {
        let over = self.decided.iter().take_while(|(decided, _)| decided.plus(self.lasts) <= now);
        let over: Vec<DecisionId> = over.take(AT_ONCE).map(|&(_, id)| id).collect();
        over.into_iter().filter_map(|id| self.take(id)).collect()
    }
}

impl<A: Addresses> Coordinator<A> {
    /// Returns true if a decision that is not in memory may be in the store: its id was assigned.
    pub(super) fn is_evicted(&self, id: DecisionId) -> bool {
        id < self.next
    }

    /// Ends a decision that is not in memory. Only the store knows if it had ended before.
    ///
    /// # Errors
    /// No decision has this id.
    pub(super) fn end_evicted(&mut self, id: DecisionId) -> Result<(), ReleaseError> {
        if !self.is_evicted(id) {
            return Err(ReleaseError::NotFound(id));
        }
        self.changes.push(Change::Ended { id, released: Some(self.now) });
        if let Some(over) = self.evicted.take(id) {
            self.tell(Input::Release(&over.entries));
        }
        Ok(())
    }
}
