//! Candidates of one level of the tree, best first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use leeward_fabric::Nanos;

use crate::Candidate;

/// Rank of a link: expected capacity, tie-breaking hash, candidate.
pub type Ranked = (i64, u64, Reverse<Candidate>);

/// Number of linear scans for the best before the rest is put into a heap.
const SCANS: u32 = 4;

/// Links of one level of the tree.
#[derive(Default)]
pub struct Level {
    /// Remaining links, until `SCANS` were taken; then the heap holds them.
    ranked: Vec<Ranked>,
    taken: u32,
    heap: BinaryHeap<Ranked>,
    /// Number of links with known load.
    seen: u32,
    /// Links with unknown load, and the end of their newest window.
    unseen: Vec<Candidate>,
    newest: Nanos,
}

impl Level {
    /// Adds a link with known load.
    pub fn add(&mut self, ranked: Ranked) {
        self.ranked.push(ranked);
        self.seen += 1;
    }

    /// Adds a link with unknown load; `until` is the time until which the load was known, 0 for never known.
    pub fn add_unseen(&mut self, candidate: Candidate, until: Nanos) {
        self.unseen.push(candidate);
        self.newest = self.newest.max(until);
    }

    /// Adds a link that takes part despite unknown load.
    pub fn add_without_load(&mut self, ranked: Ranked) {
        self.ranked.push(ranked);
    }

    /// Links with unknown load, which take no part.
    pub fn unseen(&self) -> &[Candidate] {
        &self.unseen
    }

    /// True if there are links and none was ever reported.
    pub fn never_seen(&self) -> bool {
        self.seen == 0 && !self.unseen.is_empty() && self.newest == Nanos(0)
    }

    /// Prepares for more links after all were taken. Counts of known and unknown links stay.
    pub fn reopen(&mut self) {
        self.taken = 0;
    }

    /// Removes and returns the best remaining link. The best link nearly always wins, so sorting in advance does not
    /// pay.
    pub fn pop_best(&mut self) -> Option<Ranked> {
        if self.taken == SCANS {
            self.heap = BinaryHeap::from(std::mem::take(&mut self.ranked));
        }
        self.taken += 1;
        if self.taken > SCANS {
            return self.heap.pop();
        }
        let mut best = 0;
        for (index, ranked) in self.ranked.iter().enumerate() {
            // The value alone outranks most links.
            if ranked.0 >= self.ranked[best].0 && *ranked > self.ranked[best] {
                best = index;
            }
        }
        (!self.ranked.is_empty()).then(|| self.ranked.swap_remove(best))
    }
}

/// Reason for which no candidate of a level was chosen.
#[derive(Clone, Copy)]
pub enum Failure {
    /// No load is known; holds the end of the newest window.
    Unseen(Nanos),
    /// No candidate with known load is eligible.
    NoneEligible,
}

impl Failure {
    /// Failure of an exhausted level.
    pub fn of(level: &Level) -> Failure {
        match level.seen == 0 && !level.unseen.is_empty() {
            true => Failure::Unseen(level.newest),
            false => Failure::NoneEligible,
        }
    }
}
