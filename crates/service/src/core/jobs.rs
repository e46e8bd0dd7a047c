//! Names of jobs, and the numbers by which the engine knows them. A name is known as long as it stands for something: a
//! request of the job waits, tasks of it run, or somebody said what it can bear. So memory is bounded by these.

use std::collections::BTreeMap;

use leeward_engine::{Availability, Input};
use leeward_fabric::Nanos;
use leeward_records::{Change, Wish};

use super::error::TooManyJobs;
use super::{Addresses, Coordinator};

/// Jobs of which it is known what they can bear.
const BOUNDED: usize = 100_000;
/// Numbers of jobs that have no name are apart from those of jobs that have one.
const UNNAMED: u64 = 1 << 63;

/// The names that stand for something.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    by_name: BTreeMap<String, Job>,
    /// How many are bounded.
    bounded: usize,
    /// The number of the next.
    next: u64,
}

#[derive(Debug)]
struct Job {
    number: u64,
    /// Requests that wait, and decisions that run.
    uses: usize,
    /// Whether it cannot bear everything.
    bounded: bool,
}

impl Jobs {
    /// The number of the job of a wish that is decided under `id`, if it is known.
    pub fn number(&self, name: Option<&String>, id: u64) -> Option<u64> {
        name.map_or(Some(UNNAMED | id), |name| self.by_name.get(name).map(|job| job.number))
    }

    fn known(&mut self, name: &str) -> &mut Job {
        if !self.by_name.contains_key(name) {
            self.by_name.insert(name.to_owned(), Job { number: self.next, uses: 0, bounded: false });
            self.next += 1;
        }
        self.by_name.get_mut(name).expect("it is there now")
    }

    /// Forgets a name that stands for nothing.
    fn tidy(&mut self, name: &str) {
        if self.by_name.get(name).is_some_and(|job| job.uses == 0 && !job.bounded) {
            self.by_name.remove(name);
        }
    }

    #[cfg(test)]
    pub fn names(&self) -> Vec<&String> {
        self.by_name.keys().collect()
    }
}

/// The job that a wish names.
pub(super) fn job_of(wish: &Wish) -> Option<&String> {
    match wish {
        Wish::Tasks(tasks) => tasks.job.as_ref(),
        Wish::Replicas(_) | Wish::Workload(_) | Wish::Volumes(_) => None,
    }
}

impl<A: Addresses> Coordinator<A> {
    /// The number of the job of a wish that is decided under `id`: it is known until as often [`Coordinator::let_go`] is called.
    pub(super) fn hold_job(&mut self, wish: &Wish, id: u64) -> u64 {
        let Some(name) = job_of(wish) else { return UNNAMED | id };
        let job = self.jobs.known(name);
        job.uses += 1;
        job.number
    }

    /// What was asked waits and runs no more.
    pub(super) fn let_go(&mut self, wish: &Wish) {
        let Some(name) = job_of(wish) else { return };
        if let Some(job) = self.jobs.by_name.get_mut(name) {
            job.uses = job.uses.saturating_sub(1);
        }
        self.jobs.tidy(name);
    }

    /// Sets the evictions that a job tolerates; the default is any number, and then the job needs no entry.
    ///
    /// # Errors
    /// Too many jobs have a limit already.
    pub fn set_job(
        &mut self,
        now: Nanos,
        name: String,
        availability: Availability,
    ) -> Result<(), TooManyJobs> {
        self.wake(now);
        let is_bounded = self.jobs.by_name.get(&name).is_some_and(|job| job.bounded);
        let bounds = availability != Availability::default();
        if bounds && !is_bounded && self.jobs.bounded >= BOUNDED {
            return Err(TooManyJobs(BOUNDED));
        }
        if bounds || is_bounded {
            self.bound_job(&name, availability);
            self.changes.push(if bounds { Change::Job(name, availability) } else { Change::JobOver(name) });
        }
        Ok(())
    }

    /// A job can bear this from now on.
    pub(super) fn bound_job(&mut self, name: &str, availability: Availability) {
        let bounds = availability != Availability::default();
        let job = self.jobs.known(name);
        let (number, was) = (job.number, std::mem::replace(&mut job.bounded, bounds));
        self.jobs.bounded += usize::from(bounds);
        self.jobs.bounded -= usize::from(was);
        self.jobs.tidy(name);
        self.tell(Input::Job(number, availability));
    }
}
