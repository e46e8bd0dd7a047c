//! Decisions that are not kept any more. What they put into the ledger goes on counting until telemetry shows it, however
//! many are placed meanwhile: else the placers of a busy second would herd like those that know nothing of each other. If
//! nobody says before that its work ended, it ends by itself. What they were, the store knows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use leeward_engine::Input;
use leeward_fabric::Nanos;
use leeward_ledger::{EntryId, LedgerSettings};

use super::message::{Refused, Reply};
use super::record::Record;
use super::{Desk, Replies};
use crate::store::Change;

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

/// What is asked of a decision that the desk does not keep any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Left {
    /// What it is.
    Decision(u64),
    /// The same, by who sends again what it was made for.
    Placed(u64),
    /// The same, by who said that its work ended.
    Ended(u64),
}

impl Left {
    /// The decision's number.
    pub fn id(self) -> u64 {
        match self {
            Left::Decision(id) | Left::Placed(id) | Left::Ended(id) => id,
        }
    }

    /// The answer, by what the store has of it.
    ///
    /// # Errors
    /// It has nothing of it.
    pub fn answer(self, found: Option<Arc<Record>>) -> Result<Reply, Refused> {
        match (self, found) {
            (Left::Decision(_) | Left::Ended(_), Some(record)) => Ok(Reply::Decision(record)),
            (Left::Decision(id) | Left::Ended(id), None) => Err(Refused::NoDecision(id)),
            (Left::Placed(_), Some(record)) => Ok(Reply::Placed { record, repeated: true }),
            (Left::Placed(id), None) => Err(Refused::Forgotten(id)),
        }
    }

    /// The answer where the store cannot be read, and what changed is kept.
    pub fn unread(self, problem: String) -> Refused {
        match self {
            Left::Decision(_) | Left::Placed(_) => Refused::Unread(problem),
            Left::Ended(_) => Refused::EndedUnread(problem),
        }
    }

    /// Whether something is to be kept before it is answered.
    pub fn commits(self) -> bool {
        matches!(self, Left::Ended(_))
    }
}

impl<R> Desk<R> {
    /// Where a decision is that is not kept: with the store, if it ever was.
    pub(super) fn left(&self, left: Left) -> Result<Reply, Refused> {
        let id = left.id();
        if id < self.next { Ok(Reply::Left(left)) } else { Err(Refused::NoDecision(id)) }
    }

    /// The work of a decision ended that is not kept. Whether it had ended before, the store knows.
    pub(super) fn end_left(&mut self, id: u64, out: &mut Replies<R>) -> Result<Reply, Refused> {
        let left = self.left(Left::Ended(id))?;
        self.changes.push(Change::Ended { id, released: Some(self.now) });
        if let Some(over) = self.unkept.take(id) {
            self.tell(Input::Release(&over.entries), out);
        }
        Ok(left)
    }
}
