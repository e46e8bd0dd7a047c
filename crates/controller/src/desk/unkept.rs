//! What decisions put into the ledger that are not kept any more. A block goes on counting until telemetry shows it,
//! however many are placed meanwhile: else the placers of a busy second would herd like those that know nothing of each
//! other. Nobody can say any more when its work ends, so it ends by itself.

use std::collections::VecDeque;

use leeward_fabric::Nanos;
use leeward_ledger::{EntryId, LedgerSettings};

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

/// What decisions hold that are not kept, those decided first in front.
#[derive(Debug)]
pub(crate) struct Unkept {
    decided: VecDeque<(Nanos, Over)>,
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
        Unkept { decided: VecDeque::new(), lasts, most, early: 0 }
    }

    /// How many had to end before their time, because there were too many.
    pub fn early(&self) -> u64 {
        self.early
    }

    /// Takes what a decision made at a time not before the last one's holds. Returns what is to be released for it.
    pub fn hold(&mut self, decided: Nanos, held: Over) -> Option<Over> {
        if held.entries.is_empty() {
            return Some(held);
        }
        self.decided.push_back((decided, held));
        if self.decided.len() <= self.most {
            return None;
        }
        self.early += 1;
        self.decided.pop_front().map(|(_, held)| held)
    }

    /// What ends by now, or the first of it where that is much.
    pub fn over(&mut self, now: Nanos) -> Vec<Over> {
        let over = self.decided.partition_point(|&(decided, _)| decided.plus(self.lasts) <= now);
        self.decided.drain(..over.min(AT_ONCE)).map(|(_, held)| held).collect()
    }
}
