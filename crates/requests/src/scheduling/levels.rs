//! Strict priorities: a list for each level, and a bit for each list that is not empty.

use crate::live::{List, NONE, Pool};

#[derive(Clone, Debug)]
pub(crate) struct Levels {
    lists: Vec<List>,
    /// Bitmap of non-empty lists, 64 per word.
    filled: Vec<u64>,
}

impl Levels {
    pub(super) fn new(levels: usize) -> Levels {
        Levels { lists: vec![List::EMPTY; levels.max(1)], filled: vec![0; levels.max(1).div_ceil(64)] }
    }

    #[inline]
    fn first(&self) -> Option<usize> {
        let word = self.filled.iter().position(|&word| word != 0)?;
        Some(word * 64 + self.filled[word].trailing_zeros() as usize)
    }

    #[inline]
    pub(super) fn push(&mut self, pool: &mut Pool, id: u32) {
        let level = pool.get(id).level as usize;
        self.lists[level].push(pool, id);
        self.filled[level / 64] |= 1 << (level % 64);
    }

    #[inline]
    pub(super) fn put_back(&mut self, pool: &mut Pool, id: u32) {
        let level = pool.get(id).level as usize;
        self.lists[level].push_front(pool, id);
        self.filled[level / 64] |= 1 << (level % 64);
    }

    #[inline]
    pub(super) fn peek(&self) -> u32 {
        self.first().map_or(NONE, |level| self.lists[level].head)
    }

    #[inline]
    pub(super) fn pop(&mut self, pool: &Pool) -> u32 {
        let Some(level) = self.first() else { return NONE };
        let id = self.lists[level].pop(pool);
        if self.lists[level].is_empty() {
            self.filled[level / 64] &= !(1 << (level % 64));
        }
        id
    }
}
