//! Jobs of requests: their numbers, their limits on evictions, and their observed traffic.

use leeward_engine::{Availability, Input, JobHistory};
use leeward_fabric::Nanos;
use leeward_placement::JobId;
use leeward_records::{Change, DecisionId, JobNames, PlacementSpec};

use super::error::TooManyJobs;
use super::{Addresses, Coordinator};

/// Largest number of jobs with a limit on evictions.
const MAX_BOUNDED: usize = 100_000;

/// Observed traffic of a job, for another coordinator.
#[derive(Debug)]
pub struct ObservedJob {
    name: String,
    /// Time until which it counts if no task of the job runs.
    until: Nanos,
    history: JobHistory,
}

/// Name of a request's job.
pub(super) fn job_of(spec: &PlacementSpec) -> Option<&String> {
    match spec {
        PlacementSpec::Tasks(tasks) => tasks.job.as_ref(),
        PlacementSpec::Replicas(_) | PlacementSpec::Workload(_) | PlacementSpec::Volumes(_) => None,
    }
}

impl<A: Addresses> Coordinator<A> {
    /// Number of the job of a request that is decided under `id`, if known.
    pub(super) fn job_number(&self, spec: &PlacementSpec, id: DecisionId) -> Option<JobId> {
        job_of(spec).map_or(Some(JobNames::unnamed(id)), |name| self.job_names.named(name))
    }

    /// Number of the job of a name; [`JobId::NONE`] without a known name.
    pub(super) fn named_job(&self, name: Option<&String>) -> JobId {
        name.and_then(|name| self.job_names.named(name)).unwrap_or(JobId::NONE)
    }

    /// Number of the job of a request that is decided under `id`. The name stays known until
    /// [`Coordinator::release_job`] was called the same number of times.
    pub(super) fn hold_job(&mut self, spec: &PlacementSpec, id: DecisionId) -> JobId {
        job_of(spec).map_or(JobNames::unnamed(id), |name| self.job_names.hold(name))
    }

    /// Drops one use of the job of a request that was decided under `id`. Observed traffic of a job without a name ends
    /// with it, because no later request can be of this job.
    pub(super) fn release_job(&mut self, spec: &PlacementSpec, id: DecisionId) {
        match job_of(spec) {
            Some(name) => self.release_name(name),
            None => drop(self.engine.take_history(JobNames::unnamed(id))),
        }
    }

    /// Drops one use of a job's name.
    pub(super) fn release_name(&mut self, name: &str) {
        let unused = self.job_names.release(name);
        if let Some(window) = unused.and_then(|number| self.engine.history_of(number)) {
            self.job_names.remember(name, self.now.plus(window));
        }
        self.job_names.drop_unused(name);
        self.forget_jobs();
    }

    /// Drops observed traffic that no longer counts.
    fn forget_jobs(&mut self) {
        for number in self.job_names.forget(self.now) {
            self.engine.take_history(number);
        }
    }

    /// Takes the observed traffic of the named jobs, for another coordinator.
    pub fn take_observed_jobs(&mut self) -> Vec<ObservedJob> {
        let Coordinator { job_names, engine, now, .. } = self;
        let observed = job_names.all().filter_map(|(name, number)| {
            let window = engine.history_of(number)?;
            let (name, until, history) = (name.clone(), now.plus(window), engine.take_history(number)?);
            Some(ObservedJob { name, until, history })
        });
        observed.collect()
    }

    /// Continues with the observed traffic of another coordinator's jobs.
    pub fn set_observed_jobs(&mut self, observed: Vec<ObservedJob>) {
        for ObservedJob { name, until, history } in observed {
            let number = self.job_names.remember(&name, until);
            self.engine.restore_history(number, history);
        }
        self.forget_jobs();
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
        let is_bounded = self.job_names.is_bounded(&name);
        let has_limit = availability != Availability::default();
        if has_limit && !is_bounded && self.job_names.bounded() >= MAX_BOUNDED {
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
        let number = self.job_names.set_bounded(name, availability != Availability::default());
        self.job_names.drop_unused(name);
        self.apply(Input::Job(number, availability));
    }
}
