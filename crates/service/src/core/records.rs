//! Decisions in memory, for explanations, retries and releases. Memory is bounded: beyond the limit, the oldest
//! decision is evicted, and readable only from the store. Its ledger entries stay (`evicted`). Decisions about running
//! tasks and guaranteed workloads stay in memory until their end, and reserved ones until their confirmation.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use leeward_fabric::Nanos;
use leeward_ledger::EntryId;
use leeward_records::{DecisionId, DecisionRecord, PlacementSpec};

/// The last decisions.
#[derive(Debug)]
pub(crate) struct Records {
    kept: BTreeMap<DecisionId, Arc<DecisionRecord>>,
    /// Ids in the order of the decisions. A request that waited got its id long before its decision.
    order: VecDeque<DecisionId>,
    /// Decisions about running tasks and guaranteed workloads, which stay beyond the limit.
    running: BTreeMap<DecisionId, Arc<DecisionRecord>>,
    limit: usize,
}

impl Records {
    /// Creates a list of at most `limit` decisions.
    pub fn new(limit: usize) -> Records {
        Records { kept: BTreeMap::new(), order: VecDeque::new(), running: BTreeMap::new(), limit }
    }

    /// Number of decisions that count towards the limit.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Decision of an id.
    pub fn get(&self, id: DecisionId) -> Option<&Arc<DecisionRecord>> {
        self.kept.get(&id).or_else(|| self.running.get(&id))
    }

    /// Decisions with ids below `before` (or all), in descending order of ids.
    pub fn last(&self, before: Option<DecisionId>) -> impl Iterator<Item = &Arc<DecisionRecord>> {
        let end = before.map_or(Bound::Unbounded, Bound::Excluded);
        let below = (Bound::Unbounded, end);
        // A request that waited is decided after requests with higher ids, so ids of both maps may alternate.
        let mut running = self.running.range(below).rev().peekable();
        let mut kept = self.kept.range(below).rev().peekable();
        std::iter::from_fn(move || match (running.peek(), kept.peek()) {
            (Some((first, _)), Some((second, _))) if first < second => kept.next(),
            (None, _) => kept.next(),
            _ => running.next(),
        })
        .map(|(_, record)| record)
    }

    /// Adds a decision. Returns the decision that is evicted for it, if any.
    pub fn keep(&mut self, record: Arc<DecisionRecord>) -> Option<Arc<DecisionRecord>> {
        self.order.push_back(record.id);
        self.kept.insert(record.id, record);
        if self.kept.len() <= self.limit {
            return None;
        }
        let oldest = self.order.pop_front().and_then(|id| self.kept.remove(&id))?;
        let stays = !matches!(oldest.details.spec, PlacementSpec::Replicas(_))
            || oldest.details.reserved_until.is_some();
        if stays && oldest.released.is_none() {
            self.running.insert(oldest.id, oldest);
            return None;
        }
        Some(oldest)
    }

    /// Removes a confirmed block that stayed in memory for its confirmation only; `None` for any other decision.
    pub fn drop_confirmed(&mut self, id: DecisionId) -> Option<Arc<DecisionRecord>> {
        let is_block =
            |record: &Arc<DecisionRecord>| matches!(record.details.spec, PlacementSpec::Replicas(_));
        self.running.get(&id).is_some_and(is_block).then(|| self.running.remove(&id)).flatten()
    }

    /// Changes the decision of an id.
    pub fn change(
        &mut self,
        id: DecisionId,
        change: impl FnOnce(&mut DecisionRecord),
    ) -> Option<&Arc<DecisionRecord>> {
        let kept = match self.kept.get_mut(&id) {
            Some(kept) => kept,
            None => self.running.get_mut(&id)?,
        };
        change(Arc::make_mut(kept));
        Some(kept)
    }

    /// Records the end of a decision. Returns the decision with the entries to release, or with `None` if the decision
    /// had already ended.
    pub fn release(
        &mut self,
        id: DecisionId,
        now: Nanos,
    ) -> Option<(Arc<DecisionRecord>, Option<Vec<EntryId>>)> {
        let mut running = self.running.remove(&id);
        let record = self.kept.get_mut(&id).or(running.as_mut())?;
        let entries = record.released.is_none().then(|| {
            let record = Arc::make_mut(record);
            record.released = Some(now);
            std::mem::take(&mut record.entries)
        });
        Some((record.clone(), entries))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use leeward_records::{DecisionDetails, ReplicasSpec, TasksSpec};

    fn record(id: DecisionId, runs: bool) -> Arc<DecisionRecord> {
        let spec = if runs {
            PlacementSpec::Tasks(TasksSpec::default())
        } else {
            PlacementSpec::Replicas(ReplicasSpec::default())
        };
        let (details, entries) = (DecisionDetails::empty(spec), Vec::new());
        let (at, caller, expires, released) = (Nanos(0), None, None, None);
        Arc::new(DecisionRecord { id, at, caller, details, entries, expires, released })
    }

    proptest! {
        /// Arbitrary late decisions and running tasks: the pages contain every decision once, in descending order.
        #[test]
        fn pages_contain_every_decision_once(
            ids in prop::collection::btree_set(0_u64..60, 0..40), order in any::<u64>(),
            limit in 1_usize..12, page in 1_usize..7, ended in prop::collection::vec(0_u64..60, 0..10),
        ) {
            let mut records = Records::new(limit);
            let mut expected = BTreeSet::new();
            let mut ids: Vec<u64> = ids.into_iter().collect();
            ids.sort_by_key(|id| (id ^ order).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            for id in ids {
                expected.insert(id);
                if let Some(evicted) = records.keep(record(DecisionId(id), id % 3 == 0)) {
                    expected.remove(&evicted.id.0);
                }
            }
            for id in ended {
                if records.release(DecisionId(id), Nanos(1)).is_some() && records.get(DecisionId(id)).is_none() {
                    expected.remove(&id);
                }
            }
            let (mut paged, mut before) = (Vec::new(), None);
            loop {
                let ids: Vec<u64> = records.last(before).take(page).map(|record| record.id.0).collect();
                let Some(&last) = ids.last() else { break };
                (before, paged) = (Some(DecisionId(last)), [paged, ids].concat());
            }
            prop_assert_eq!(paged, expected.into_iter().rev().collect::<Vec<_>>());
        }
    }
}
