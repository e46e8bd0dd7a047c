//! The jobs of the coordinator: new ones to run, and queues of which at most one entry runs while the others wait.

use std::collections::VecDeque;

use leeward_fabric::Nanos;

use super::error::PlaceError;
use super::job::{Job, JobKind, JobOutput, JobResult, Panicked};
use super::{Addresses, Coordinator};

/// Jobs of all queues that have not been taken yet.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    new: Vec<Job>,
    /// Number of the next job.
    next: u64,
}

impl Jobs {
    /// Adds a job and returns its number.
    pub fn add(&mut self, kind: JobKind) -> u64 {
        let number = self.next;
        self.next += 1;
        self.new.push(Job { number, kind });
        number
    }
}

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

impl<A: Addresses> Coordinator<A> {
    /// Drains the new jobs, whose results go to [`Coordinator::finish_job`].
    pub fn jobs(&mut self) -> std::vec::Drain<'_, Job> {
        self.jobs.new.drain(..)
    }

    /// Handles the result of a job.
    pub fn finish_job(&mut self, now: Nanos, result: JobResult) {
        self.wake(now);
        let JobResult { number, output } = result;
        match output {
            JobOutput::Promise(output) => {
                let Some(admission) = self.promises.admissions.finish(number) else { return };
                match output {
                    Ok(result) => self.finish_admission(admission, result),
                    Err(Panicked) => self.reject(admission.id, &PlaceError::Panicked),
                }
                self.start_next_admission();
            }
            JobOutput::App(output) => {
                let Some(app) = self.apps.finish(number) else { return };
                self.finish_app(app, output);
                self.start_next_app();
            }
            JobOutput::WhatIf(output) => {
                let Some(what_if) = self.what_ifs.finish(number) else { return };
                self.finish_what_if(what_if, output);
                self.start_next_what_if();
            }
            JobOutput::Compare(output) => {
                let Some(comparison) = self.comparisons.finish(number) else { return };
                self.finish_comparison(comparison, output);
                self.start_next_comparison();
            }
            JobOutput::Score(output) => {
                let Some(query) = self.scores.finish(number) else { return };
                self.finish_score(query, output);
                self.start_next_score();
            }
        }
    }
}
