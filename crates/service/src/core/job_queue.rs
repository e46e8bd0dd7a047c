//! A queue of jobs: at most one runs, and the others wait.

use std::collections::VecDeque;

/// Entries of one queue, in order of arrival.
#[derive(Debug)]
pub(super) struct JobQueue<T> {
    waiting: VecDeque<T>,
    /// Number of the running job, and its entry.
    running: Option<(u64, T)>,
}

impl<T> Default for JobQueue<T> {
    fn default() -> Self {
        JobQueue { waiting: VecDeque::new(), running: None }
    }
}

impl<T> JobQueue<T> {
    /// Number of entries, waiting and running.
    pub fn len(&self) -> usize {
        self.waiting.len() + usize::from(self.running.is_some())
    }

    /// Adds an entry.
    pub fn push(&mut self, entry: T) {
        self.waiting.push_back(entry);
    }

    /// Keeps only the waiting entries that satisfy `keep`.
    pub fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        self.waiting.retain(keep);
    }

    /// Takes the next entry if none runs.
    pub fn next(&mut self) -> Option<T> {
        if self.running.is_some() { None } else { self.waiting.pop_front() }
    }

    /// Marks an entry as running, under the number of its job.
    pub fn start(&mut self, job: u64, entry: T) {
        self.running = Some((job, entry));
    }

    /// Takes the entry of a finished job, if the job is of this queue.
    pub fn finish(&mut self, job: u64) -> Option<T> {
        self.running.take_if(|(number, _)| *number == job).map(|(_, entry)| entry)
    }

    /// Removes all entries. A job result that comes later has no entry any more.
    pub fn take_all(&mut self) -> impl Iterator<Item = T> + use<T> {
        let running = self.running.take().map(|(_, entry)| entry);
        running.into_iter().chain(std::mem::take(&mut self.waiting))
    }
}
