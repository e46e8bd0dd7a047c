//! Runs of a scenario: one per policy and seed, several in parallel.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use leeward_engine::Policies;
use leeward_fabric::input::InputError;

use crate::driver::{Progress, RunError, apps, cell, coflows, replicas};
use crate::record::Record;
use crate::scenario::{Arrivals, Kind, PolicySpec, Scenario};

/// A run to perform.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Task {
    /// Policy of the run.
    pub policy: PolicySpec,
    /// Seed of the run.
    pub seed: u64,
}

/// A finished run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Policy of the run.
    pub policy: PolicySpec,
    /// Seed of the run.
    pub seed: u64,
    /// Provenance of the arrivals, by source.
    pub provenance: Vec<String>,
    /// Records of the run.
    pub record: Record,
}

/// Performs all `tasks`, up to `jobs` in parallel, and returns the runs in order. `progress` receives the
/// number of a task and its finished share. The first error ends all runs.
///
/// # Errors
/// Returns the first error in the order of the tasks: invalid input, an invalid policy, or
/// [`RunError::Stopped`].
pub fn run_all(
    scenario: &Scenario,
    tasks: &[Task],
    jobs: usize,
    progress: &(dyn Fn(usize, f64) -> bool + Sync),
) -> Result<Vec<Run>, RunError> {
    run_all_by(scenario, tasks, jobs, progress, &|task| Ok(scenario.kind().policies(&task.policy)?))
}

/// Creates the policies of a run.
pub type MakePolicies<'a> = &'a (dyn Fn(&Task) -> Result<Policies, RunError> + Sync);

/// Performs all `tasks` as [`run_all`] does, with policies that `make` creates for each of them, once and in the thread
/// of the run. A task's own policy is then its label. Coflows are served by the policy of the task all the same.
///
/// # Errors
/// Returns the first error in the order of the tasks: of `make`, or as [`run_all`].
pub fn run_all_by(
    scenario: &Scenario,
    tasks: &[Task],
    jobs: usize,
    progress: &(dyn Fn(usize, f64) -> bool + Sync),
    make: MakePolicies<'_>,
) -> Result<Vec<Run>, RunError> {
    // Arrivals depend only on the seed, so policies are compared on the same arrivals.
    let mut arrivals: BTreeMap<u64, Mutex<SharedArrivals>> = BTreeMap::new();
    for task in tasks {
        arrivals.entry(task.seed).or_default().get_mut().expect("no thread has it yet").runs_left += 1;
    }
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let results: Mutex<Vec<Option<Result<Run, RunError>>>> = Mutex::new(tasks.iter().map(|_| None).collect());
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(task) = tasks.get(index) else { return };
            let run_progress = |share: f64| !failed.load(Ordering::Relaxed) && progress(index, share);
            let result = arrivals_of(scenario, task.seed, &arrivals[&task.seed])
                .and_then(|arrivals| run(scenario, task, &arrivals, &run_progress, make));
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            results.lock().expect("no thread panics while it holds the lock")[index] = Some(result);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..jobs.clamp(1, tasks.len().max(1)) {
            scope.spawn(work);
        }
        work();
    });
    let results = results.into_inner().expect("no thread panics while it holds the lock");
    let mut runs = Vec::with_capacity(tasks.len());
    let mut stopped = None;
    for result in results.into_iter().flatten() {
        match result {
            Ok(run) => runs.push(run),
            // The error of another run may have stopped this run; the loop then finds that error too.
            Err(RunError::Stopped) => stopped = Some(RunError::Stopped),
            Err(error) => return Err(error),
        }
    }
    stopped.map_or(Ok(runs), Err)
}

/// Arrivals of a seed, kept while runs need them.
#[derive(Default)]
struct SharedArrivals {
    arrivals: Option<Result<Arc<Arrivals>, InputError>>,
    /// Number of runs that have not yet taken the arrivals.
    runs_left: usize,
}

/// Returns the arrivals of a seed. The first run creates them, and the last one removes them.
fn arrivals_of(
    scenario: &Scenario,
    seed: u64,
    shared: &Mutex<SharedArrivals>,
) -> Result<Arc<Arrivals>, RunError> {
    let mut shared = shared.lock().expect("no thread panics while it holds the lock");
    shared.runs_left -= 1;
    let arrivals = shared.arrivals.take().unwrap_or_else(|| scenario.arrivals(seed).map(Arc::new));
    if shared.runs_left > 0 {
        shared.arrivals = Some(arrivals.clone());
    }
    Ok(arrivals?)
}

fn run(
    scenario: &Scenario,
    task: &Task,
    arrivals: &Arrivals,
    progress: Progress<'_>,
    make: MakePolicies<'_>,
) -> Result<Run, RunError> {
    let (workload, seed) = (&*arrivals.workload, task.seed);
    let record = match scenario.kind() {
        Kind::Replicas => replicas::run(scenario, workload, make(task)?, seed, progress)?,
        Kind::Cell => cell::run(scenario, workload, make(task)?, seed, progress)?,
        Kind::Apps => apps::run(scenario, workload, make(task)?, seed, progress)?,
        Kind::Coflows => coflows::run(scenario, workload, &task.policy, seed, progress)?,
    };
    let (policy, provenance) = (task.policy.clone(), arrivals.provenance.clone());
    Ok(Run { policy, seed: task.seed, provenance, record })
}
