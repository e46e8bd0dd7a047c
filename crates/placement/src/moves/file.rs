//! Files of running tasks, as people write them: what `leeward migrate` is asked about.

use std::collections::BTreeMap;

use leeward_fabric::input::{InputError, Spanned, excerpt, read_text, read_yaml};
use leeward_fabric::{Bandwidth, Fabric};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Budget, MoveRequest, Running};
use crate::Pool;
use crate::tasks::{TaskFile, TaskId};

/// What runs, with its names.
#[derive(Clone, PartialEq, Debug)]
pub struct Fleet {
    /// The names of the tasks, in the order of the request.
    pub names: Vec<String>,
    /// The request, with number 0.
    pub request: MoveRequest,
}

/// Tasks that run, and the jobs they belong to.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FleetFile {
    /// The jobs that tasks belong to, and what they can bear. If there is none, all can bear anything.
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
    /// Its name.
    pub name: String,
    /// How much moving it can bear.
    #[serde(default)]
    pub budget: BudgetFile,
    /// Tasks of it that are down now. Default 0.
    #[serde(default)]
    pub down: u32,
    /// Evictions in the last hour. Default 0.
    #[serde(default)]
    pub evictions: u32,
}

/// How much moving a job can bear; without limit where it says nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetFile {
    /// Tasks that may be down at once.
    pub down: Option<u32>,
    /// Evictions in an hour.
    pub evictions_per_hour: Option<u32>,
}

/// A task that runs on a host.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunningFile {
    /// The host it is on.
    pub host: String,
    /// The job it belongs to; a job by itself if not given.
    pub job: Option<String>,
    /// What it sends out of its rack now; the mean that it demands if not given.
    pub egress_now: Option<Bandwidth>,
    /// What it receives from outside its rack now; the mean that it demands if not given.
    pub ingress_now: Option<Bandwidth>,
    /// Whether it was moved so recently that it must stay. Default false.
    #[serde(default)]
    pub cooling: bool,
    /// Its name and demand.
    pub task: TaskFile,
}

impl Fleet {
    /// Reads a file of running tasks.
    ///
    /// # Errors
    /// An [`InputError`] with file, line and field.
    pub fn read(path: &str, fabric: &Fabric) -> Result<Fleet, InputError> {
        Fleet::from_text(path, &read_text(path)?, fabric)
    }

    /// The same from a text, with the name it has in errors.
    pub fn from_text(path: &str, text: &str, fabric: &Fabric) -> Result<Fleet, InputError> {
        let file: FleetFile = read_yaml(path, text)?;
        let mut fleet = Fleet { names: Vec::new(), request: MoveRequest::default() };
        let mut jobs = BTreeMap::<String, u32>::new();
        for (at, item) in file.jobs.iter().enumerate() {
            let JobFile { name, budget, down, evictions } = &item.value;
            let left =
                |most: Option<u32>, spent: u32| most.map_or(u32::MAX, |most| most.saturating_sub(spent));
            let moves = left(budget.down, *down).min(left(budget.evictions_per_hour, *evictions));
            if jobs.insert(name.clone(), fleet.job(moves)).is_some() {
                let message = format!("`{}`: two jobs have this name", excerpt(name));
                return Err(InputError::new(path, message).in_field(format!("jobs[{at}].name")).at(item));
            }
        }
        let mut names = BTreeMap::<String, usize>::new();
        for (at, item) in file.tasks.iter().enumerate() {
            let running = &item.value;
            let wrong = |field: &str, message: String| {
                InputError::new(path, message).in_field(format!("tasks[{at}].{field}")).at(item)
            };
            let unknown =
                || wrong("host", format!("`{}`: the cluster has no such host", excerpt(&running.host)));
            let host = fabric.host(&running.host).ok_or_else(unknown)?;
            if running.task.count.is_some() {
                return Err(wrong("task.count", "a task that runs is on one host: write each out".into()));
            }
            let demand =
                running.task.demand().map_err(|(field, message)| wrong(&format!("task.{field}"), message))?;
            if names.insert(running.task.name.clone(), at).is_some() {
                let name = excerpt(&running.task.name);
                return Err(wrong("task.name", format!("`{name}`: two tasks have this name")));
            }
            let job = match &running.job {
                Some(name) => match jobs.get(name) {
                    Some(&job) => job,
                    None if !file.jobs.is_empty() => {
                        let message = format!("`{}`: `jobs` lists no job of this name", excerpt(name));
                        return Err(wrong("job", message));
                    }
                    None => {
                        let job = fleet.job(u32::MAX);
                        jobs.insert(name.clone(), job);
                        job
                    }
                },
                None => fleet.job(u32::MAX),
            };
            let now = |told: Option<Bandwidth>, mean: u64| told.map_or(mean, |rate| rate.0);
            fleet.names.push(running.task.name.clone());
            fleet.request.running.push(Running {
                tags: 0,
                task: TaskId { app: at as u64, index: 0 },
                host,
                job,
                demand,
                egress_bps: now(running.egress_now, demand.egress_in_all().mean_bps),
                ingress_bps: now(running.ingress_now, demand.ingress_in_all().mean_bps),
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
        self.request.budgets.push(Budget { job: u64::from(job), moves });
        job
    }

    /// Takes the room that the tasks have.
    pub fn occupy(&self, pool: &mut Pool) {
        for running in &self.request.running {
            let job = self.request.budgets[running.job as usize].job;
            pool.occupy(running.host, job, running.demand.cpus, running.demand.memory);
        }
    }
}
