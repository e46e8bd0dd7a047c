//! Evicted decisions with ledger entries. Their entries count until telemetry shows their load. Otherwise the
//! placements of a busy second would not see each other, and would all choose the same hosts. Entries expire on their
//! own if no end is reported earlier. The decisions themselves are in the store.

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
pub(super) const MAX_ENDS: usize = 1000;

/// Entries of an evicted decision, to release at their expiry.
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
    entries: BTreeMap<DecisionId, (Nanos, Vec<EntryId>)>,
    /// The same decisions, ordered by time.
    by_time: BTreeSet<(Nanos, DecisionId)>,
    /// Lifetime of an entry after its decision.
    lifetime: Nanos,
    /// Largest number of decisions.
    limit: usize,
    /// Number of decisions released early because of the limit.
    early: u64,
}

impl EvictedDecisions {
    /// Holds the entries of at most `limit` decisions, for as long as a ledger with these settings needs them. After
    /// that time, the estimator includes 99 % of new load, or the links count as unseen because windows are missing.
    pub fn new(settings: &LedgerSettings, limit: usize) -> EvictedDecisions {
        let windows = (UNSEEN.ln() / (1.0 - settings.alpha).ln()).ceil().max(settings.unknown_after.ceil());
        let lifetime = Nanos((windows * settings.interval.0 as f64) as u64);
        EvictedDecisions { entries: BTreeMap::new(), by_time: BTreeSet::new(), lifetime, limit, early: 0 }
    }

    /// Lifetime of an entry after its decision.
    pub fn lifetime(&self) -> Nanos {
        self.lifetime
    }

    /// Number of decisions released early because of the limit.
    pub fn early(&self) -> u64 {
        self.early
    }

    /// Adds the entries of a decision made at time `decided`. Returns the entries to release, if any.
    pub fn hold(&mut self, decided: Nanos, evicted: ExpiredEntries) -> Option<ExpiredEntries> {
        if evicted.entries.is_empty() {
            return Some(evicted);
        }
        self.entries.insert(evicted.id, (decided, evicted.entries));
        self.by_time.insert((decided, evicted.id));
        if self.entries.len() <= self.limit {
            return None;
        }
        self.early += 1;
        self.by_time.first().copied().and_then(|(_, oldest)| self.take(oldest))
    }

    /// Removes the entries of a decision; `None` if it has none.
    pub fn take(&mut self, id: DecisionId) -> Option<ExpiredEntries> {
        let (decided, entries) = self.entries.remove(&id)?;
        self.by_time.remove(&(decided, id));
        Some(ExpiredEntries { id, entries })
    }

    /// Removes entries that expire by `now`, up to a limit per call.
    pub fn take_expired(&mut self, now: Nanos) -> Vec<ExpiredEntries> {
        let expired = self.by_time.iter().take_while(|(decided, _)| decided.plus(self.lifetime) <= now);
        let expired: Vec<DecisionId> = expired.take(MAX_ENDS).map(|&(_, id)| id).collect();
        expired.into_iter().filter_map(|id| self.take(id)).collect()
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
        if let Some(evicted) = self.evicted.take(id) {
            self.apply(Input::Release(&evicted.entries));
        }
        Ok(())
    }
}
