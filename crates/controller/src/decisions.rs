//! The decisions that are kept, so that they can be explained, repeated and released. Memory is bounded: the one that
//! was made first leaves when there are too many. What it put into the ledger stays (`unkept`).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use leeward_fabric::{Load, Nanos};
use leeward_ledger::EntryId;
use leeward_placement::replicas::{Chain, ReplicaRequest};
use leeward_placement::{Considered, Decision, Verdict};

use crate::message::Caller;

/// A decision, with what was asked and what became of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Record {
    /// What was asked; its id is the decision's. Of its constraints nothing is kept: what they kept out is told with
    /// the candidates, and they may be as long as the cluster has hosts.
    pub request: ReplicaRequest,
    /// Who asked.
    pub caller: Option<Caller>,
    /// When it was decided.
    pub at: Nanos,
    /// What was decided, on what grounds, from which candidates.
    pub decision: Decision<Chain>,
    /// What of it is in the ledger.
    pub entries: Vec<EntryId>,
    /// When its work ended.
    pub released: Option<Nanos>,
}

impl Record {
    /// The chosen candidate with the least of what ranked it: where the chain is narrowest. `None` if the policy looked
    /// at no load.
    pub fn limit(&self) -> Option<(&Considered, Load)> {
        let chosen = self.decision.why.iter().filter(|considered| considered.verdict == Verdict::Chosen);
        chosen.filter_map(|considered| Some((considered, considered.value?))).min_by_key(|&(_, value)| value)
    }

    /// How old the oldest telemetry was that played a part.
    pub fn age(&self) -> Option<Nanos> {
        self.decision.basis.oldest.map(|oldest| self.at.since(oldest))
    }
}

/// The last decisions.
#[derive(Debug)]
pub(crate) struct Decisions {
    kept: BTreeMap<u64, Arc<Record>>,
    /// Their numbers in the order in which they were decided; one that waited was numbered long before.
    order: VecDeque<u64>,
    most: usize,
}

impl Decisions {
    /// Keeps at most `most`.
    pub fn new(most: usize) -> Decisions {
        Decisions { kept: BTreeMap::new(), order: VecDeque::new(), most }
    }

    /// How many are kept.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// The decision of that number.
    pub fn get(&self, id: u64) -> Option<&Arc<Record>> {
        self.kept.get(&id)
    }

    /// Keeps one more. Returns the one that leaves for it.
    pub fn keep(&mut self, record: Arc<Record>) -> Option<Arc<Record>> {
        self.order.push_back(record.request.id);
        self.kept.insert(record.request.id, record);
        let first = if self.kept.len() > self.most { self.order.pop_front() } else { None };
        first.and_then(|first| self.kept.remove(&first))
    }

    /// Notes that the work of a decision ended. Returns the entries to release, none if it had ended before.
    pub fn release(&mut self, id: u64, now: Nanos) -> Option<(Arc<Record>, Vec<EntryId>)> {
        let kept = self.kept.get_mut(&id)?;
        let mut entries = Vec::new();
        if kept.released.is_none() {
            let record = Arc::make_mut(kept);
            (record.released, entries) = (Some(now), std::mem::take(&mut record.entries));
        }
        Some((kept.clone(), entries))
    }
}
