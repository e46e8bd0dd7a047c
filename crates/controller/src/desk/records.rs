//! The decisions that are kept, so that they can be explained, repeated and released. Memory is bounded: the one that
//! was made first leaves when there are too many. What it put into the ledger stays (`unkept`); and tasks run and workloads
//! are promised their SLOs until somebody says that they ended, so theirs stay until then.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use leeward_fabric::Nanos;
use leeward_ledger::EntryId;

use super::record::{Record, Wish};

/// The last decisions.
#[derive(Debug)]
pub(crate) struct Records {
    kept: BTreeMap<u64, Arc<Record>>,
    /// Their numbers in the order in which they were decided; one that waited was numbered long before.
    order: VecDeque<u64>,
    /// Older ones, of tasks and workloads that run.
    running: BTreeMap<u64, Arc<Record>>,
    most: usize,
}

impl Records {
    /// Keeps at most `most`.
    pub fn new(most: usize) -> Records {
        Records { kept: BTreeMap::new(), order: VecDeque::new(), running: BTreeMap::new(), most }
    }

    /// How many are kept, older ones of tasks and workloads that run aside.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// The decision of that number.
    pub fn get(&self, id: u64) -> Option<&Arc<Record>> {
        self.kept.get(&id).or_else(|| self.running.get(&id))
    }

    /// All of them, in order of their numbers.
    pub fn all(&self) -> impl DoubleEndedIterator<Item = &Arc<Record>> {
        // Those that run are older than all that are kept.
        self.running.values().chain(self.kept.values())
    }

    /// Keeps one more. Returns the one that leaves for it.
    pub fn keep(&mut self, record: Arc<Record>) -> Option<Arc<Record>> {
        self.order.push_back(record.id);
        self.kept.insert(record.id, record);
        if self.kept.len() <= self.most {
            return None;
        }
        let first = self.order.pop_front().and_then(|first| self.kept.remove(&first))?;
        if !matches!(first.shown.wish, Wish::Replicas(_)) && first.released.is_none() {
            self.running.insert(first.id, first);
            return None;
        }
        Some(first)
    }

    /// Changes the decision of a number.
    pub fn change(&mut self, id: u64, change: impl FnOnce(&mut Record)) -> Option<&Arc<Record>> {
        let kept = match self.kept.get_mut(&id) {
            Some(kept) => kept,
            None => self.running.get_mut(&id)?,
        };
        change(Arc::make_mut(kept));
        Some(kept)
    }

    /// Notes that the work of a decision ended. Returns the entries to release, and `None` for them if it had ended
    /// before.
    pub fn release(&mut self, id: u64, now: Nanos) -> Option<(Arc<Record>, Option<Vec<EntryId>>)> {
        let mut ran = self.running.remove(&id);
        let record = self.kept.get_mut(&id).or(ran.as_mut())?;
        let entries = record.released.is_none().then(|| {
            let record = Arc::make_mut(record);
            record.released = Some(now);
            std::mem::take(&mut record.entries)
        });
        Some((record.clone(), entries))
    }
}
