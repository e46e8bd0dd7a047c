//! Names of jobs, and their numbers in the engine. The coordinator knows a name while a request of the job waits, one
//! of its tasks runs, the job has a limit on evictions, or its observed traffic counts. These conditions bound the memory.

use std::collections::{BTreeMap, VecDeque};

use leeward_engine::{Availability, Input};
use leeward_fabric::Nanos;
use leeward_placement::JobId;
use leeward_records::{Change, DecisionId, PlacementSpec};

use super::error::TooManyJobs;
use super::{Addresses, Coordinator};

/// Largest number of jobs with a limit on evictions.
const MAX_BOUNDED: usize = 100_000;
/// Largest number of jobs without tasks whose observed traffic counts.
const MAX_REMEMBERED: usize = 100_000;
/// Numbers of unnamed jobs have this bit; numbers of named jobs do not.
const UNNAMED: u64 = 1 << 63;

/// The known names.
#[derive(Debug, Default)]
pub(super) struct JobNames {
    by_name: BTreeMap<String, NamedJob>,
    /// Number of jobs with limits.
    bounded: usize,
    /// Names of jobs whose last task ended, with the time until which their observed traffic counts, the earliest first.
    remembered: VecDeque<(Nanos, String)>,
    /// Number of the next job.
    next: JobId,
}

#[derive(Debug)]
struct NamedJob {
    number: JobId,
    /// Waiting requests and running decisions.
    uses: usize,
    /// True if the job has a limit on evictions.
    bounded: bool,
    /// Time until which the observed traffic of its ended tasks counts; zero without any.
    remembered_until: Nanos,
}

impl JobNames {
    /// Number of the job of a request that is decided under `id`, if known.
    pub fn number(&self, name: Option<&String>, id: DecisionId) -> Option<JobId> {
        if name.is_none() { Some(JobId(UNNAMED | id.0)) } else { self.named(name) }
    }

    /// Number of the job of a name, if known.
    pub fn named(&self, name: Option<&String>) -> Option<JobId> {
        self.by_name.get(name?).map(|job| job.number)
    }

    fn get_or_insert(&mut self, name: &str) -> &mut NamedJob {
        if !self.by_name.contains_key(name) {
            let named = NamedJob { number: self.next, uses: 0, bounded: false, remembered_until: Nanos(0) };
            self.by_name.insert(name.to_owned(), named);
            self.next.0 += 1;
        }
        self.by_name.get_mut(name).expect("the name was inserted above")
    }

    /// Drops a name that has no use, no limit and no observed traffic.
    fn drop_unused(&mut self, name: &str) {
        let is_unused = |job: &NamedJob| job.uses == 0 && !job.bounded && job.remembered_until == Nanos(0);
        if self.by_name.get(name).is_some_and(is_unused) {
            self.by_name.remove(name);
        }
    }

    /// Remembers a job without tasks until its observed traffic no longer counts.
    fn remember(&mut self, name: &str, until: Nanos) {
        if let Some(job) = self.by_name.get_mut(name) {
            job.remembered_until = until;
            self.remembered.push_back((until, name.to_owned()));
        }
    }

    /// Forgets jobs whose observed traffic no longer counts, and the oldest ones beyond the limit.
    fn forget(&mut self, now: Nanos) {
        while let Some((until, _)) = self.remembered.front()
            && (*until <= now || self.remembered.len() > MAX_REMEMBERED)
            && let Some((until, name)) = self.remembered.pop_front()
        {
            // A job that ran again has a later entry.
            if let Some(job) = self.by_name.get_mut(&name).filter(|job| job.remembered_until <= until) {
                job.remembered_until = Nanos(0);
                self.drop_unused(&name);
            }
        }
    }

    #[cfg(test)]
    pub fn names(&self) -> Vec<&String> {
        self.by_name.keys().collect()
    }
}

/// Name of a request's job.
pub(super) fn job_of(spec: &PlacementSpec) -> Option<&String> {
    match spec {
        PlacementSpec::Tasks(tasks) => tasks.job.as_ref(),
        PlacementSpec::Replicas(_) | PlacementSpec::Workload(_) | PlacementSpec::Volumes(_) => None,
    }
}

impl<A: Addresses> Coordinator<A> {
    /// Number of the job of a request that is decided under `id`. The name stays known until
    /// [`Coordinator::release_job`] was called the same number of times.
    pub(super) fn hold_job(&mut self, spec: &PlacementSpec, id: DecisionId) -> JobId {
        let Some(name) = job_of(spec) else { return JobId(UNNAMED | id.0) };
        let job = self.job_names.get_or_insert(name);
        job.uses += 1;
        job.number
    }

    /// Drops one use of the request's job.
    pub(super) fn release_job(&mut self, spec: &PlacementSpec) {
        let Some(name) = job_of(spec) else { return };
        if let Some(job) = self.job_names.by_name.get_mut(name) {
            job.uses = job.uses.saturating_sub(1);
            let window = self.engine.history_of(job.number).filter(|_| job.uses == 0);
            if let Some(window) = window {
                self.job_names.remember(name, self.now.plus(window));
            }
        }
        self.job_names.drop_unused(name);
        self.job_names.forget(self.now);
    }

    /// Sets the number of evictions that a job tolerates. By default, a job tolerates any number, and needs no entry.
    ///
    /// # Errors
    /// Too many jobs already have a limit.
    pub fn set_job(
        &mut self,
        now: Nanos,
        name: String,
        availability: Availability,
    ) -> Result<(), TooManyJobs> {
        self.wake(now);
        let is_bounded = self.job_names.by_name.get(&name).is_some_and(|job| job.bounded);
        let has_limit = availability != Availability::default();
        if has_limit && !is_bounded && self.job_names.bounded >= MAX_BOUNDED {
            return Err(TooManyJobs(MAX_BOUNDED));
        }
        if has_limit || is_bounded {
            self.set_job_limits(&name, availability);
            self.changes.push(if has_limit {
                Change::Job(name, availability)
            } else {
                Change::JobOver(name)
            });
        }
        Ok(())
    }

    /// Sets the limits of a job in the engine.
    pub(super) fn set_job_limits(&mut self, name: &str, availability: Availability) {
        let has_limit = availability != Availability::default();
        let job = self.job_names.get_or_insert(name);
        let (number, had_limit) = (job.number, std::mem::replace(&mut job.bounded, has_limit));
        self.job_names.bounded += usize::from(has_limit);
        self.job_names.bounded -= usize::from(had_limit);
        self.job_names.drop_unused(name);
        self.apply(Input::Job(number, availability));
    }
}
