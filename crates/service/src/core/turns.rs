//! What takes longer than a turn and is looked into one after another: what waits, and what is under way.

use std::collections::VecDeque;

/// Things of one lane, in the order in which they came.
#[derive(Debug)]
pub(super) struct Turns<T> {
    waiting: VecDeque<T>,
    /// The number of the study that is under way, and what it is about.
    under_way: Option<(u64, T)>,
}

impl<T> Default for Turns<T> {
    fn default() -> Self {
        Turns { waiting: VecDeque::new(), under_way: None }
    }
}

impl<T> Turns<T> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.waiting.len() + usize::from(self.under_way.is_some())
    }

    /// One more waits.
    pub fn wait(&mut self, one: T) {
        self.waiting.push_back(one);
    }

    /// Only these go on waiting.
    pub fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        self.waiting.retain(keep);
    }

    /// The next, if none is under way.
    pub fn next(&mut self) -> Option<T> {
        if self.under_way.is_some() { None } else { self.waiting.pop_front() }
    }

    /// One is under way as the study of this number.
    pub fn begin(&mut self, study: u64, one: T) {
        self.under_way = Some((study, one));
    }

    /// What the study of this number was about, if it is under way here.
    pub fn found(&mut self, study: u64) -> Option<T> {
        self.under_way.take_if(|(number, _)| *number == study).map(|(_, one)| one)
    }

    /// All of them. None waits any more, and what is found is of no use.
    pub fn take_all(&mut self) -> impl Iterator<Item = T> + use<T> {
        let under_way = self.under_way.take().map(|(_, one)| one);
        under_way.into_iter().chain(std::mem::take(&mut self.waiting))
    }
}
