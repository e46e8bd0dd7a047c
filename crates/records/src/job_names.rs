//! Names of jobs, and their numbers in an engine. A name is known while a request of the job waits, one of its tasks or
//! reported pods runs, the job has a limit on evictions, or its observed traffic counts. These conditions bound the
//! memory.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use leeward_fabric::Nanos;
use leeward_placement::JobId;

use crate::DecisionId;

/// Largest number of jobs without tasks whose observed traffic counts.
const MAX_REMEMBERED: usize = 100_000;
/// Numbers of unnamed jobs have this bit; numbers of named jobs do not.
const UNNAMED: u64 = 1 << 63;

/// The known names.
#[derive(Debug, Default)]
pub struct JobNames {
    by_name: BTreeMap<String, NamedJob>,
    /// Number of jobs with limits.
    bounded: usize,
    /// Jobs without tasks, by the time until which their observed traffic counts.
    remembered: BTreeSet<(Nanos, String)>,
    /// Number of the next job.
    next: JobId,
}

#[derive(Debug)]
struct NamedJob {
    number: JobId,
    /// Waiting requests, running decisions and reported pods.
    uses: usize,
    /// True if the job has a limit on evictions.
    bounded: bool,
    /// Time until which the observed traffic of its ended tasks counts; `None` without any.
    remembered_until: Option<Nanos>,
}

impl JobNames {
    /// Number of the job of a request without a name that is decided under `id`.
    pub fn unnamed(id: DecisionId) -> JobId {
        JobId(UNNAMED | id.0)
    }

    /// Number of the job of a name, if known.
    pub fn named(&self, name: &str) -> Option<JobId> {
        self.by_name.get(name).map(|job| job.number)
    }

    /// Known names after a bound, with the numbers of their jobs.
    pub fn after(&self, after: Bound<String>) -> impl Iterator<Item = (&String, JobId)> {
        self.by_name.range((after, Bound::Unbounded)).map(|(name, job)| (name, job.number))
    }

    /// The known names and their numbers, in the order of the names.
    pub fn all(&self) -> impl Iterator<Item = (&String, JobId)> {
        self.by_name.iter().map(|(name, job)| (name, job.number))
    }

    /// Names of jobs without tasks whose observed traffic counts, with the time until which it does.
    pub fn remembered(&self) -> impl Iterator<Item = (&String, Nanos)> {
        self.remembered.iter().map(|(until, name)| (name, *until))
    }

    /// Adds a use of a name. Returns the number of its job.
    pub fn hold(&mut self, name: &str) -> JobId {
        let job = self.get_or_insert(name);
        job.uses += 1;
        let number = job.number;
        self.recall(name);
        number
    }

    /// Drops a use of a name. Returns the number of its job if no use is left.
    pub fn release(&mut self, name: &str) -> Option<JobId> {
        let job = self.by_name.get_mut(name)?;
        job.uses = job.uses.saturating_sub(1);
        (job.uses == 0).then_some(job.number)
    }

    /// Number of jobs with a limit on evictions.
    pub fn bounded(&self) -> usize {
        self.bounded
    }

    /// True if a job has a limit on evictions.
    pub fn is_bounded(&self, name: &str) -> bool {
        self.by_name.get(name).is_some_and(|job| job.bounded)
    }

    /// Records that a job has a limit on evictions, or none. Returns its number.
    pub fn set_bounded(&mut self, name: &str, has_limit: bool) -> JobId {
        let job = self.get_or_insert(name);
        let (number, had_limit) = (job.number, std::mem::replace(&mut job.bounded, has_limit));
        self.bounded += usize::from(has_limit);
        self.bounded -= usize::from(had_limit);
        number
    }

    /// Remembers a job without tasks until its observed traffic no longer counts. Returns its number.
    pub fn remember(&mut self, name: &str, until: Nanos) -> JobId {
        self.recall(name);
        let job = self.get_or_insert(name);
        job.remembered_until = Some(until);
        let number = job.number;
        self.remembered.insert((until, name.to_owned()));
        number
    }

    /// Ends the remembrance of a job.
    fn recall(&mut self, name: &str) {
        let job = self.by_name.get_mut(name);
        if let Some(until) = job.and_then(|job| job.remembered_until.take()) {
            self.remembered.remove(&(until, name.to_owned()));
        }
    }

    /// Drops a name that has no use, no limit and no observed traffic.
    pub fn drop_unused(&mut self, name: &str) {
        let is_unused = |job: &NamedJob| job.uses == 0 && !job.bounded && job.remembered_until.is_none();
        if self.by_name.get(name).is_some_and(is_unused) {
            self.by_name.remove(name);
        }
    }

    /// Drops the observed traffic of jobs for which it no longer counts at the time `now`, the one that counts shortest
    /// beyond a limit. Returns their numbers.
    pub fn forget(&mut self, now: Nanos) -> Vec<JobId> {
        let mut forgotten = Vec::new();
        while let Some((until, _)) = self.remembered.first()
            && (*until <= now || self.remembered.len() > MAX_REMEMBERED)
            && let Some((_, name)) = self.remembered.pop_first()
        {
            if let Some(job) = self.by_name.get_mut(&name) {
                job.remembered_until = None;
                forgotten.push(job.number);
            }
            self.drop_unused(&name);
        }
        forgotten
    }

    fn get_or_insert(&mut self, name: &str) -> &mut NamedJob {
        if !self.by_name.contains_key(name) {
            let named = NamedJob { number: self.next, uses: 0, bounded: false, remembered_until: None };
            self.by_name.insert(name.to_owned(), named);
            self.next.0 += 1;
        }
        self.by_name.get_mut(name).expect("the name was inserted above")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A job of this name starts and ends at a time, and its observed traffic counts until another time.
    fn run(names: &mut JobNames, name: &str, until: u64) {
        names.hold(name);
        assert!(names.release(name).is_some());
        names.remember(name, Nanos(until));
        names.drop_unused(name);
    }

    #[test]
    fn a_job_that_ends_often_displaces_no_other() {
        let mut names = JobNames::default();
        run(&mut names, "daily", 500_000);
        for end in 0..200_000 {
            run(&mut names, "often", 400_000 + end);
            assert_eq!(names.forget(Nanos(end)), []);
        }
        assert!(names.named("daily").is_some() && names.remembered().count() == 2);
        // Many jobs displace those that count shortest.
        for number in 0..MAX_REMEMBERED {
            run(&mut names, &number.to_string(), 1_000_000);
        }
        assert_eq!(names.forget(Nanos(200_000)).len(), 2);
        assert_eq!((names.named("daily"), names.named("often")), (None, None));
        assert_eq!(names.all().count(), MAX_REMEMBERED);
    }

    #[test]
    fn a_job_that_counts_for_a_shorter_window_is_not_behind_one_with_a_longer_window() {
        let mut names = JobNames::default();
        run(&mut names, "long", 1_000);
        run(&mut names, "short", 10);
        assert_eq!(names.forget(Nanos(10)).len(), 1);
        assert_eq!(names.all().map(|(name, _)| name).collect::<Vec<_>>(), ["long"]);
    }

    proptest! {
        #[test]
        fn a_name_is_known_while_it_has_a_use_a_limit_or_observed_traffic(
            steps in prop::collection::vec((0_u8..3, 0_u8..4, 0_u64..20), 0..80),
        ) {
            let mut names = JobNames::default();
            let mut expected: BTreeMap<String, (usize, bool, Option<u64>)> = BTreeMap::new();
            for (now, (name, step, time)) in (0..).zip(steps) {
                let name = name.to_string();
                let known = expected.entry(name.clone()).or_default();
                match step {
                    0 => {
                        names.hold(&name);
                        *known = (known.0 + 1, known.1, None);
                    }
                    1 if known.0 > 0 => {
                        known.0 -= 1;
                        prop_assert_eq!(names.release(&name).is_some(), known.0 == 0);
                        if known.0 == 0 && time > 5 {
                            names.remember(&name, Nanos(now + time));
                            known.2 = Some(now + time);
                        }
                    }
                    _ => {
                        known.1 = step == 2;
                        names.set_bounded(&name, known.1);
                    }
                }
                names.drop_unused(&name);
                names.forget(Nanos(now));
                for known in expected.values_mut() {
                    known.2 = known.2.filter(|&until| until > now);
                }
                expected.retain(|_, known| *known != (0, false, None));
                prop_assert!(names.all().map(|(name, _)| name).eq(expected.keys()));
                let bounded = expected.values().filter(|known| known.1).count();
                prop_assert_eq!(names.bounded(), bounded);
                prop_assert!(expected.keys().all(|name| names.is_bounded(name) == expected[name].1));
                let remembered = expected.values().filter(|known| known.2.is_some()).count();
                prop_assert_eq!(names.remembered().count(), remembered);
            }
        }
    }
}
