//! Folders of tests, and runs of their scenarios.

use std::path::{Path, PathBuf};

use leeward_scenarios::record::Record;
use leeward_scenarios::scenario::{PolicySpec, Scenario};
use leeward_scenarios::{Run, Task, run_all};

/// Returns a folder for the files of one test in the group `group`.
pub fn folder(group: &str, name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(group).join(name);
    std::fs::create_dir_all(&folder).expect("the target folder can be written to");
    folder
}

/// Runs one policy.
pub fn run(scenario: &Scenario, policy: &str) -> Record {
    runs(scenario, &[policy], 1).remove(0).record
}

/// Runs several policies, up to `jobs` in parallel.
pub fn runs(scenario: &Scenario, policies: &[&str], jobs: usize) -> Vec<Run> {
    let spec = |policy: &&str| policy.parse::<PolicySpec>().expect("a policy");
    let task = |policy: &&str| Task { policy: spec(policy), seed: scenario.seed };
    let tasks: Vec<Task> = policies.iter().map(task).collect();
    run_all(scenario, &tasks, jobs, &|_, _| true).expect("a valid scenario runs")
}
