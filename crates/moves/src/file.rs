//! Files of running tasks: the input of `leeward migrate`.

use std::collections::BTreeMap;

use leeward_fabric::input::{InputError, Spanned, excerpt, read_text, read_yaml};
use leeward_fabric::{Bandwidth, Fabric};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{Budget, MoveRequest, Running};
use leeward_placement::tasks::{TaskFile, TaskId};
use leeward_placement::{Constraints, JobId, Pool};

/// Running tasks with their names.
#[derive(Clone, PartialEq, Debug)]
pub struct Fleet {
    /// Names of the tasks, in the order of the request.
    pub names: Vec<String>,
    /// The request, with id 0.
    pub request: MoveRequest,
}

/// Running tasks, and their jobs.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FleetFile {
    /// Jobs of the tasks with their budgets. Without jobs, no budget applies.
    #[serde(default)]
    #[schemars(with = "Vec<JobFile>")]
    pub jobs: Vec<Spanned<JobFile>>,
    /// The tasks, at least one.
    #[schemars(with = "Vec<RunningFile>")]
    pub tasks: Vec<Spanned<RunningFile>>,
}

/// A job.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobFile {
    /// Name of the job.
    pub name: String,
    /// Limits on moves of its tasks.
    #[serde(default)]
    pub budget: BudgetFile,
    /// Number of its tasks that are down now. Default 0.
    #[serde(default)]
    pub down: u32,
    /// Evictions in the last hour. Default 0.
    #[serde(default)]
    pub evictions: u32,
}

/// Limits on moves of a job's tasks; no limit where a field is left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetFile {
    /// Largest number of tasks down at once.
    pub down: Option<u32>,
    /// Largest number of evictions in an hour.
    pub evictions_per_hour: Option<u32>,
}

/// A running task.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunningFile {
    /// Host of the task.
    pub host: String,
    /// Job of the task; without it, the task is a job of its own.
    pub job: Option<String>,
    /// Measured traffic out of its rack; the average of its demand if left out.
    pub egress_now: Option<Bandwidth>,
    /// Measured traffic into its rack; the average of its demand if left out.
    pub ingress_now: Option<Bandwidth>,
    /// True if the task was moved recently and must stay. Default false.
    #[serde(default)]
    pub cooling: bool,
    /// Hosts, racks and pods to which the task must not move.
    #[serde(default)]
    pub exclude: Vec<String>,
    /// Name and demand of the task.
    pub task: TaskFile,
}

impl Fleet {
    /// Reads a file of running tasks.
    ///
    /// # Errors
    /// [`InputError`] with file, line and field.
    pub fn read(path: &str, fabric: &Fabric) -> Result<Fleet, InputError> {
        Fleet::from_text(path, &read_text(path)?, fabric)
    }

    /// Reads running tasks from text; `path` names the file in errors.
    ///
    /// # Errors
    /// [`InputError`] with file, line and field.
    pub fn from_text(path: &str, text: &str, fabric: &Fabric) -> Result<Fleet, InputError> {
        let file: FleetFile = read_yaml(path, text)?;
        let mut fleet = Fleet { names: Vec::new(), request: MoveRequest::default() };
        let mut jobs = BTreeMap::<String, u32>::new();
        for (at, item) in file.jobs.iter().enumerate() {
            let JobFile { name, budget, down, evictions } = &item.value;
            let remaining =
                |most: Option<u32>, spent: u32| most.map_or(u32::MAX, |most| most.saturating_sub(spent));
            let moves = remaining(budget.down, *down).min(remaining(budget.evictions_per_hour, *evictions));
            if jobs.insert(name.clone(), fleet.job(moves)).is_some() {
                let message = format!("`{}`: two jobs have this name", excerpt(name));
                return Err(InputError::new(path, message).in_field(format!("jobs[{at}].name")).at(item));
            }
        }
        let mut names = BTreeMap::<String, usize>::new();
        for (at, item) in file.tasks.iter().enumerate() {
            let running = &item.value;
            let invalid = |field: &str, message: String| {
                InputError::new(path, message).in_field(format!("tasks[{at}].{field}")).at(item)
            };
            let unknown =
                || invalid("host", format!("`{}`: the cluster has no such host", excerpt(&running.host)));
            let host = fabric.host(&running.host).ok_or_else(unknown)?;
            if running.task.count.is_some() {
                return Err(invalid(
                    "task.count",
                    "a running task is on one host: list each task by itself".into(),
                ));
            }
            let demand = running
                .task
                .demand()
                .map_err(|(field, message)| invalid(&format!("task.{field}"), message))?;
            if names.insert(running.task.name.clone(), at).is_some() {
                let name = excerpt(&running.task.name);
                return Err(invalid("task.name", format!("`{name}`: two tasks have this name")));
            }
            let job = match &running.job {
                Some(name) => match jobs.get(name) {
                    Some(&job) => job,
                    None if !file.jobs.is_empty() => {
                        let message = format!("`{}`: `jobs` lists no job of this name", excerpt(name));
                        return Err(invalid("job", message));
                    }
                    None => {
                        let job = fleet.job(u32::MAX);
                        jobs.insert(name.clone(), job);
                        job
                    }
                },
                None => fleet.job(u32::MAX),
            };
            let constraints = Constraints::named(fabric, &running.exclude, &[])
                .map_err(|error| invalid("exclude", error.message))?
                .other_than_tags();
            let constraints = constraints.map(|constraints| {
                fleet.request.constraints.push(constraints.into());
                fleet.request.constraints.len() as u32 - 1
            });
            let rate = |measured: Option<Bandwidth>, mean: u64| measured.map_or(mean, |rate| rate.0);
            fleet.names.push(running.task.name.clone());
            fleet.request.running.push(Running {
                tags: 0,
                constraints,
                task: TaskId { app: at as u64, index: 0 },
                host,
                job,
                demand,
                egress_bps: rate(running.egress_now, demand.total_egress().mean_bps),
                ingress_bps: rate(running.ingress_now, demand.total_ingress().mean_bps),
                cooling: running.cooling,
            });
        }
        if fleet.names.is_empty() {
            return Err(InputError::new(path, "an empty list; expected at least one").in_field("tasks"));
        }
        Ok(fleet)
    }

    fn job(&mut self, moves: u32) -> u32 {
        let job = self.request.budgets.len() as u32;
        self.request.budgets.push(Budget { job: JobId(u64::from(job)), moves });
        job
    }

    /// Takes the capacity of the tasks in a pool.
    pub fn occupy(&self, pool: &mut Pool) {
        for running in &self.request.running {
            let job = self.request.budgets[running.job as usize].job;
            pool.occupy(running.host, job, running.demand.cpus, running.demand.memory);
        }
    }
}
