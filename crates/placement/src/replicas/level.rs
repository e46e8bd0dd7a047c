//! The links of one level of the tree, best first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use leeward_fabric::Nanos;

use crate::Candidate;

/// A link of a level, as ranked: by expected capacity, ties by hash.
pub type Ranked = (i64, u64, Reverse<Candidate>);

/// How many of the best are looked for one by one before the rest is put in order.
const SCANS: u32 = 4;

/// The links of one level of the tree.
#[derive(Default)]
pub struct Level {
    /// Those left; a heap after `SCANS` were taken.
    ranked: Vec<Ranked>,
    taken: u32,
    heap: BinaryHeap<Ranked>,
    seen: u32,
    /// Those that cannot be seen, and the end of their newest window.
    unseen: Vec<Candidate>,
    newest: Nanos,
}

impl Level {
    /// A link whose load is seen.
    pub fn add(&mut self, ranked: Ranked) {
        self.ranked.push(ranked);
        self.seen += 1;
    }

    /// A link that cannot be seen since `until`, zero for never.
    pub fn add_unseen(&mut self, candidate: Candidate, until: Nanos) {
        self.unseen.push(candidate);
        self.newest = self.newest.max(until);
    }

    /// A link that takes part although it cannot be seen.
    pub fn add_blind(&mut self, ranked: Ranked) {
        self.ranked.push(ranked);
    }

    /// The links that cannot be seen, and so take no part.
    pub fn unseen(&self) -> &[Candidate] {
        &self.unseen
    }

    /// Whether there are links, and none of them was ever reported.
    pub fn never_seen(&self) -> bool {
        self.seen == 0 && !self.unseen.is_empty() && self.newest == Nanos(0)
    }

    /// Makes it ready for more links after all were taken; how the others were seen still counts.
    pub fn go_on(&mut self) {
        self.taken = 0;
    }

    /// Takes the best of those left. The first is nearly always the one chosen, so no order is made before it.
    pub fn best(&mut self) -> Option<Ranked> {
        if self.taken == SCANS {
            self.heap = BinaryHeap::from(std::mem::take(&mut self.ranked));
        }
        self.taken += 1;
        if self.taken > SCANS {
            return self.heap.pop();
        }
        let mut best = 0;
        for (at, ranked) in self.ranked.iter().enumerate() {
            // Most are outranked by their value alone.
            if ranked.0 >= self.ranked[best].0 && *ranked > self.ranked[best] {
                best = at;
            }
        }
        (!self.ranked.is_empty()).then(|| self.ranked.swap_remove(best))
    }
}

/// Why nothing at a level was chosen.
#[derive(Clone, Copy)]
pub enum Failure {
    /// No load was seen; the end of the newest window.
    Unseen(Nanos),
    /// None of those seen may.
    Nobody,
}

impl Failure {
    /// What a level that is used up says.
    pub fn of(level: &Level) -> Failure {
        match level.seen == 0 && !level.unseen.is_empty() {
            true => Failure::Unseen(level.newest),
            false => Failure::Nobody,
        }
    }
}
