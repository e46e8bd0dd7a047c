//! Strict priorities: a list for each, and a bit for each list that is not empty.

use crate::pool::{List, NONE, Pool, WAITING};

#[derive(Clone, Debug)]
pub(crate) struct Levels {
    /// Lists by rank.
    lists: Vec<List<WAITING>>,
    filled: Ranks,
}

impl Levels {
    pub(super) fn new() -> Levels {
        Levels { lists: Vec::new(), filled: Ranks::new(0) }
    }

    pub(super) fn set_priorities(&mut self, old: &[u32], new: &[u32]) {
        let mut lists = vec![List::EMPTY; new.len()];
        for (priority, list) in old.iter().zip(&self.lists) {
            if let Ok(rank) = new.binary_search(priority) {
                lists[rank] = *list;
            }
        }
        self.filled = Ranks::new(lists.len());
        for (rank, _) in lists.iter().enumerate().filter(|(_, list)| !list.is_empty()) {
            self.filled.insert(rank);
        }
        self.lists = lists;
    }

    pub(super) fn move_flow(&mut self, pool: &mut Pool, flow: u32, from: u32, to: u32) {
        let of_flow = |id: &u32| pool.get(*id).flow == flow;
        let ids: Vec<u32> = self.lists[from as usize].iter(pool).filter(of_flow).collect();
        for &id in &ids {
            self.remove(pool, from, id);
        }
        if !ids.is_empty() {
            self.lists[to as usize].merge(pool, &ids);
            self.filled.insert(to as usize);
        }
    }

    #[inline]
    pub(super) fn push(&mut self, pool: &mut Pool, rank: u32, id: u32) {
        self.lists[rank as usize].push_back(pool, id);
        self.filled.insert(rank as usize);
    }

    /// A started request was the first of its list, and is the first again unless the priority of its workload has
    /// changed.
    #[inline]
    pub(super) fn put_back(&mut self, pool: &mut Pool, rank: u32, id: u32) {
        self.lists[rank as usize].merge(pool, &[id]);
        self.filled.insert(rank as usize);
    }

    #[inline]
    pub(super) fn peek(&self) -> u32 {
        self.filled.first().map_or(NONE, |rank| self.lists[rank].head())
    }

    #[inline]
    pub(super) fn remove(&mut self, pool: &mut Pool, rank: u32, id: u32) {
        let list = &mut self.lists[rank as usize];
        list.remove(pool, id);
        if list.is_empty() {
            self.filled.remove(rank as usize);
        }
    }
}

/// A set of ranks: a bit for each, and a bit for each word of 64 that is not zero.
#[derive(Clone, Debug)]
struct Ranks {
    words: Vec<u64>,
    filled: Vec<u64>,
}

impl Ranks {
    /// Creates the empty set of ranks below `count`.
    fn new(count: usize) -> Ranks {
        let words = count.div_ceil(64);
        Ranks { words: vec![0; words], filled: vec![0; words.div_ceil(64)] }
    }

    #[inline]
    fn insert(&mut self, rank: usize) {
        self.words[rank / 64] |= 1 << (rank % 64);
        self.filled[rank / 4096] |= 1 << (rank / 64 % 64);
    }

    #[inline]
    fn remove(&mut self, rank: usize) {
        self.words[rank / 64] &= !(1 << (rank % 64));
        if self.words[rank / 64] == 0 {
            self.filled[rank / 4096] &= !(1 << (rank / 64 % 64));
        }
    }

    /// The lowest rank.
    #[inline]
    fn first(&self) -> Option<usize> {
        let word = first_bit(&self.filled)?;
        Some(word * 64 + self.words[word].trailing_zeros() as usize)
    }
}

#[inline]
fn first_bit(words: &[u64]) -> Option<usize> {
    let word = words.iter().position(|&word| word != 0)?;
    Some(word * 64 + words[word].trailing_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_rank_is_the_least_of_the_set(
            changes in prop::collection::vec((prop_oneof![0usize..130, 4090usize..4200], any::<bool>()), 0..200),
        ) {
            let (mut ranks, mut set) = (Ranks::new(4200), BTreeSet::new());
            for (rank, is_in) in changes {
                if is_in {
                    ranks.insert(rank);
                    set.insert(rank);
                } else {
                    ranks.remove(rank);
                    set.remove(&rank);
                }
                prop_assert_eq!(ranks.first(), set.first().copied());
            }
        }
    }
}
