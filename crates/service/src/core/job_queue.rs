//! A queue of jobs: at most one runs, and the others wait.

use std::collections::VecDeque;

/// Entries of one queue, in order of arrival.
#[derive(Debug)]
pub(super) struct JobQueue<T> {
    waiting: VecDeque<T>,
    /// Number of the running job, and its entry.
    under_way: Option<(u64, T)>,
}

impl<T> Default for JobQueue<T> {
    fn default() -> Self {
        JobQueue { waiting: VecDeque::new(), under_way: None }
    }
}

impl<T> JobQueue<T> {
    /// Number of entries, waiting and running.
    pub fn len(&self) -> usize {
        self.waiting.len() + usize::from(self.under_way.is_some())
    }

    /// Adds an entry.
    pub fn wait(&mut self, one: T) {
        self.waiting.push_back(one);
    }

    /// Keeps only the waiting entries that satisfy `keep`.
    pub fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        self.waiting.retain(keep);
    }

    /// Takes the next entry if none runs.
    pub fn next(&mut self) -> Option<T> {
        if self.under_way.is_some() { None } else { self.waiting.pop_front() }
    }

    /// Marks an entry as running, under the number of its job.
    pub fn begin(&mut self, job: u64, one: T) {
        self.under_way = Some((job, one));
    }

    /// Takes the entry of a finished job, if the job is of this queue.
    pub fn finish(&mut self, job: u64) -> Option<T> {
        self.under_way.take_if(|(number, _)| *number == job).map(|(_, one)| one)
    }

    /// Removes all entries. A job result that comes later has no entry any more.
    pub fn take_all(&mut self) -> impl Iterator<Item = T> + use<T> {
        let under_way = self.under_way.take().map(|(_, one)| one);
        under_way.into_iter().chain(std::mem::take(&mut self.waiting))
    }
}
