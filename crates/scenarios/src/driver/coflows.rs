//! Driver of coflows: the background is all there is, and nothing is placed. The policy is the discipline under which
//! flows share links.
//!
//! Events at the same time are handled in this order: completions, changes of the true state, recording, arrivals.
//! After the horizon nothing new arrives. Coflows in progress continue, but not beyond twice the horizon.

use std::collections::BTreeSet;

use leeward_coflows::{Carrier, Discipline, REGISTRY, Sebf};
use leeward_fabric::Nanos;
use leeward_fluid::Network;
use leeward_workloads::Workload;

use super::error::{Progress, RunError};
use super::world::World;
use crate::record::{Host, Record};
use crate::scenario::{Event, PolicySpec, Scenario};

/// Steps after which progress is reported at the latest.
const STEPS: u64 = 1000;

/// Runs one discipline of a scenario on its coflows. `progress` regularly receives the finished share of the run; it
/// returns false to stop the run.
///
/// # Errors
/// Returns an error for an invalid discipline or invalid arrivals, or [`RunError::Stopped`] if `progress` stopped it.
pub fn run(
    scenario: &Scenario,
    workload: &Workload,
    policy: &PolicySpec,
    seed: u64,
    progress: Progress<'_>,
) -> Result<Record, RunError> {
    match *REGISTRY.make(&policy.name, &policy.settings)? {
        Discipline::Fair => simulate::<Network>(scenario, workload, seed, progress),
        Discipline::Sebf => simulate::<Sebf>(scenario, workload, seed, progress),
    }
}

fn simulate<N: Carrier>(
    scenario: &Scenario,
    workload: &Workload,
    seed: u64,
    progress: Progress<'_>,
) -> Result<Record, RunError> {
    let mut world = World::<Event, N>::new(scenario, workload, seed, |event| event)?.without_telemetry();
    let hosts = vec![Host::default(); scenario.cluster.fabric.host_count()];
    let mut record = Record { hosts, ..Record::default() };
    let mut finished = Vec::new();
    let (mut reported, mut steps) = (0.0, 0_u64);
    while let Some(now) = world.next_step(f64::INFINITY, f64::INFINITY, world.has_coflows()) {
        world.network.advance(now, &mut finished)?;
        for done in finished.drain(..) {
            world.finish_background(done, &mut record);
        }
        while let Some((_, event)) = world.pop_due(Nanos::from_secs_f64(now)) {
            // There is no engine that could learn of it.
            world.apply_event(now, event, &mut BTreeSet::new())?;
        }
        world.end_interval(now, &mut record);
        world.start_background(now)?;
        let share = world.progress(now);
        steps += 1;
        // After the horizon the share stays at 1, and the run can still be stopped.
        if share >= reported || steps.is_multiple_of(STEPS) {
            reported = share + 0.001;
            if !progress(share) {
                return Err(RunError::Stopped);
            }
        }
    }
    world.finish(&mut record);
    Ok(record)
}
