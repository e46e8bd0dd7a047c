//! Kinds of jobs of a scenario.

use std::collections::BTreeSet;

use leeward_fabric::Cluster;
use leeward_fabric::input::{InputError, excerpt};

use super::{check_count, invalid};
use crate::draws::Duration;
use crate::file::{JobFile, OperationsFile, StageFile, StepFile};
use crate::plan::{Arrivals, Job, Operation, Stage, Step};

/// Largest number of kinds: the number of a kind is a byte of the index of a worker's draws. So is that of a stage, and the
/// number of a worker has two bytes.
const MOST_JOBS: usize = 250;
const MOST_STAGES: usize = 250;
const MOST_WORKERS: u32 = 1 << 16;
const MOST_STEPS: usize = 1000;
const MOST_REPEATS: u32 = 1_000_000_000;
const MOST_OPERATIONS: u32 = 1_000_000;
const MOST_CONCURRENT: u32 = 500_000;

/// Kinds of jobs, by number.
pub(super) fn of(
    file: &OperationsFile,
    cluster: &Cluster,
    operations: &[Operation],
) -> Result<Vec<Job>, InputError> {
    check_count("jobs", file.jobs.len(), MOST_JOBS)?;
    let mut names = BTreeSet::new();
    let mut jobs = Vec::with_capacity(file.jobs.len());
    for (number, job) in file.jobs.iter().enumerate() {
        let under = |error: InputError| error.under(format!("jobs[{number}]"));
        if job.name.is_empty() || !names.insert(&job.name) {
            let message = format!("`{}`: expected a name, and each once", excerpt(&job.name));
            return Err(under(invalid("name", message)));
        }
        jobs.push(kind(job, file, cluster, operations).map_err(under)?);
    }
    Ok(jobs)
}

/// A kind of jobs. Fields of errors are those of the job.
fn kind(
    job: &JobFile,
    file: &OperationsFile,
    cluster: &Cluster,
    operations: &[Operation],
) -> Result<Job, InputError> {
    let arrivals = match (job.rate, job.concurrent) {
        (Some(rate), None) => Arrivals::Rate(rate.get()),
        (None, Some(count @ 1..=MOST_CONCURRENT)) => Arrivals::Concurrent(count),
        (None, Some(count)) => {
            return Err(invalid("concurrent", format!("{count}: expected 1 to {MOST_CONCURRENT}")));
        }
        (None, None) => return Err(invalid("rate", "missing: expected this or `concurrent`")),
        (Some(_), Some(_)) => return Err(invalid("concurrent", "beside `rate`: expected one of the two")),
    };
    let hosts = job.hosts.hosts(cluster).map_err(|message| invalid("hosts", message))?;
    if hosts.is_empty() {
        return Err(invalid("hosts", "no host has these names"));
    }
    let end = job.end.unwrap_or(file.horizon);
    if job.start > end {
        return Err(invalid("start", format!("{}: expected up to the end at {end}", job.start)));
    }
    Ok(Job {
        name: job.name.clone(),
        arrivals,
        hosts: hosts.to_vec(),
        stages: stages(job, operations)?,
        start: job.start,
        end,
        is_recorded: job.record,
    })
}

fn stages(job: &JobFile, operations: &[Operation]) -> Result<Vec<Stage>, InputError> {
    let single;
    let (files, prefix) = match (&job.stages, &job.steps) {
        (Some(stages), None) => {
            let own = [("workers", job.workers), ("repeat", job.repeat)];
            if let Some((field, _)) = own.iter().find(|(_, value)| value.is_some()) {
                return Err(invalid(field, "beside `stages`: expected it in each stage"));
            }
            check_count("stages", stages.len(), MOST_STAGES)?;
            (&stages[..], true)
        }
        (None, Some(steps)) => {
            single = [StageFile {
                workers: job.workers.unwrap_or(1),
                steps: steps.clone(),
                repeat: job.repeat.unwrap_or(1),
            }];
            (&single[..], false)
        }
        (None, None) => return Err(invalid("steps", "missing: expected this or `stages`")),
        (Some(_), Some(_)) => return Err(invalid("steps", "beside `stages`: expected one of the two")),
    };
    let mut stages = Vec::with_capacity(files.len());
    for (number, stage) in files.iter().enumerate() {
        let under = |error: InputError| if prefix { error.under(format!("stages[{number}]")) } else { error };
        for (field, value, most) in
            [("workers", stage.workers, MOST_WORKERS), ("repeat", stage.repeat, MOST_REPEATS)]
        {
            if !(1..=most).contains(&value) {
                return Err(under(invalid(field, format!("{value}: expected 1 to {most}"))));
            }
        }
        check_count("steps", stage.steps.len(), MOST_STEPS).map_err(under)?;
        let mut steps = Vec::with_capacity(stage.steps.len());
        for (number, one) in stage.steps.iter().enumerate() {
            let read = step(one, operations).map_err(|error| error.under(format!("steps[{number}]")));
            steps.push(read.map_err(under)?);
        }
        stages.push(Stage { workers: stage.workers, steps, repeat: stage.repeat });
    }
    Ok(stages)
}

fn step(step: &StepFile, operations: &[Operation]) -> Result<Step, InputError> {
    match (&step.compute, &step.operation) {
        (Some(compute), None) => {
            let own = [("count", step.count), ("parallel", step.parallel)];
            if let Some((field, _)) = own.iter().find(|(_, value)| value.is_some()) {
                return Err(invalid(field, "beside `compute`: applies to operations only"));
            }
            let c2 = compute.c2.get();
            if c2 > 0.0 && c2 < 1.0 {
                return Err(invalid("compute.c2", format!("{c2}: expected 0, or 1 and more")));
            }
            Ok(Step::Compute(Duration { mean: compute.mean.0 as f64, c2 }))
        }
        (None, Some(name)) => {
            let operation = operations.iter().position(|operation| operation.name == *name);
            let unknown =
                || invalid("operation", format!("`{}`: no such name in `operations`", excerpt(name)));
            let operation = operation.ok_or_else(unknown)?;
            let (count, parallel) = (step.count.unwrap_or(1), step.parallel.unwrap_or(1));
            for (field, value) in [("count", count), ("parallel", parallel)] {
                if !(1..=MOST_OPERATIONS).contains(&value) {
                    return Err(invalid(field, format!("{value}: expected 1 to {MOST_OPERATIONS}")));
                }
            }
            Ok(Step::Operations { operation, count, parallel })
        }
        _ => Err(invalid("compute", "expected exactly one of `compute` and `operation`")),
    }
}
