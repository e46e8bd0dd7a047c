//! Runs of a scenario: one for each policy and seed, several at once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use leeward_fabric::input::InputError;
use leeward_ledger::SettingsError;
use leeward_placement::PolicyError;

use crate::cell;
use crate::fluid::{self, FluidError};
use crate::stage::record::Record;
use crate::stage::scenario::{Arrivals, Kind, PolicySpec, Scenario};

/// Told now and then what share of a run is done; answers whether to go on.
pub type Progress<'a> = &'a (dyn Fn(f64) -> bool + Sync);

/// One run to be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Task {
    /// Which policy.
    pub policy: PolicySpec,
    /// Under which seed.
    pub seed: u64,
}

/// One run that was made.
#[derive(Clone, Debug)]
pub struct Run {
    /// Which policy.
    pub policy: PolicySpec,
    /// Under which seed.
    pub seed: u64,
    /// What arrived, by source.
    pub provenance: Vec<String>,
    /// What happened.
    pub record: Record,
}

/// Why a run was not made, or not to its end.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum RunError {
    /// A file or setting is wrong.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The policy cannot be made.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The ledger's settings are wrong.
    #[error("ledger: {0}")]
    Ledger(#[from] SettingsError),
    /// The arrivals make no sense to the network.
    #[error(transparent)]
    Fluid(#[from] FluidError),
    /// It was told to stop.
    #[error("stopped")]
    Stopped,
}

/// Makes all `tasks`, up to `jobs` at once, and returns them in order. `progress` is told the number of a task and what
/// share of it is done. The first error ends all runs.
pub fn run_all(
    scenario: &Scenario,
    tasks: &[Task],
    jobs: usize,
    progress: &(dyn Fn(usize, f64) -> bool + Sync),
) -> Result<Vec<Run>, RunError> {
    // Arrivals depend on the seed alone, so that policies are compared on the same ones.
    let mut arrivals: BTreeMap<u64, Mutex<Shared>> = BTreeMap::new();
    for task in tasks {
        arrivals.entry(task.seed).or_default().get_mut().expect("no thread has it yet").left += 1;
    }
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let results: Mutex<Vec<Option<Result<Run, RunError>>>> = Mutex::new(tasks.iter().map(|_| None).collect());
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(task) = tasks.get(at) else { return };
            let goes_on = |share: f64| !failed.load(Ordering::Relaxed) && progress(at, share);
            let result = shared(scenario, task.seed, &arrivals[&task.seed])
                .and_then(|arrivals| run(scenario, task, &arrivals, &goes_on));
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            results.lock().expect("no thread panics while it holds the lock")[at] = Some(result);
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
            // Runs that another's failure stopped say nothing of why.
            Err(RunError::Stopped) => stopped = Some(RunError::Stopped),
            Err(error) => return Err(error),
        }
    }
    stopped.map_or(Ok(runs), Err)
}

/// The arrivals of a seed, while runs are left that need them.
#[derive(Default)]
struct Shared {
    arrivals: Option<Result<Arc<Arrivals>, InputError>>,
    left: usize,
}

/// The arrivals of a seed; the first run to ask makes them, the last takes them away.
fn shared(scenario: &Scenario, seed: u64, of_seed: &Mutex<Shared>) -> Result<Arc<Arrivals>, RunError> {
    let mut of_seed = of_seed.lock().expect("no thread panics while it holds the lock");
    of_seed.left -= 1;
    let made = of_seed.arrivals.take().unwrap_or_else(|| scenario.arrivals(seed).map(Arc::new));
    if of_seed.left > 0 {
        of_seed.arrivals = Some(made.clone());
    }
    Ok(made?)
}

fn run(
    scenario: &Scenario,
    task: &Task,
    arrivals: &Arrivals,
    progress: Progress<'_>,
) -> Result<Run, RunError> {
    let plant = match scenario.kind() {
        Kind::Replicas => fluid::run,
        Kind::Cell => cell::run,
        Kind::Apps => fluid::run_tenant,
    };
    let record = plant(scenario, &arrivals.workload, &task.policy, task.seed, progress)?;
    let (policy, provenance) = (task.policy.clone(), arrivals.provenance.clone());
    Ok(Run { policy, seed: task.seed, provenance, record })
}
