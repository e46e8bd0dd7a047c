//! A checked scenario, and its run.

mod jobs;
mod operations;
mod transport;

use std::path::Path;
use std::sync::Arc;

use leeward_fabric::input::{InputError, excerpt, read_text, read_yaml};
use leeward_fabric::{Bandwidth, Cluster, Nanos, Shape};

use crate::file::{EventFile, OperationsFile};
use crate::network::is_counted;
use crate::placed::Stripes;
use crate::plan::{Change, Direction, Plan};
use crate::records::Records;
use crate::simulator::{Simulator, SimulatorError};

/// Number of progress reports of a run.
const STEPS: u64 = 200;
/// Largest number of hosts, and of devices.
const MOST_HOSTS: usize = 1 << 17;
const MOST_DEVICES: usize = 1 << 22;
/// Longest run, a day: a second of a busy rack takes a second or more.
const LONGEST: Nanos = Nanos(86_400 * Nanos::SECOND.0);
/// Largest number of windows of all links and classes, of stripes, and of events.
const MOST_WINDOWS: u64 = 10_000_000;
const MOST_STRIPES: u32 = 100_000;
const MOST_EVENTS: usize = 100_000;

/// A checked scenario, ready to run.
#[derive(Clone)]
pub struct Scenario {
    name: String,
    plan: Plan,
    classes: Vec<String>,
}

/// Error that ends a run.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum RunError {
    /// The work cannot be carried out.
    #[error("{0}")]
    Failed(String),
    /// The caller stopped the run.
    #[error("stopped")]
    Stopped,
}

impl From<SimulatorError> for RunError {
    fn from(error: SimulatorError) -> RunError {
        RunError::Failed(error.to_string())
    }
}

/// Creates an error about a field of the scenario.
fn invalid(field: &str, message: impl std::fmt::Display) -> InputError {
    InputError::new("scenario", message).in_field(field)
}

/// Checks that a number of things is from 1 to `most`.
fn check_count(field: &str, count: usize, most: usize) -> Result<(), InputError> {
    if (1..=most).contains(&count) {
        return Ok(());
    }
    Err(invalid(field, format!("{count}: expected 1 to {most}")))
}

impl Scenario {
    /// Reads a scenario file.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read, or for the first invalid field.
    pub fn from_file(path: &str) -> Result<Scenario, InputError> {
        let base = Path::new(path).parent().unwrap_or(Path::new(""));
        Scenario::from_text(path, &read_text(path)?, base)
    }

    /// Reads a scenario from text; `file` names it in errors, and the cluster's file is relative to `base`.
    ///
    /// # Errors
    /// Returns an error if the cluster's file cannot be read, or for the first invalid field.
    pub fn from_text(file: &str, text: &str, base: &Path) -> Result<Scenario, InputError> {
        let read: OperationsFile = read_yaml(file, text)?;
        let cluster = read.cluster.read(file, base)?;
        let named = |error: InputError| InputError { file: file.to_owned(), ..error };
        Scenario::new(&read, cluster).map_err(named)
    }

    /// Checks the contents of a file; `cluster` is the cluster that it names.
    fn new(file: &OperationsFile, cluster: Cluster) -> Result<Scenario, InputError> {
        let fabric = cluster.fabric.clone();
        if fabric.shape() != Shape::Tree {
            return Err(invalid("cluster", "a mesh: expected a tree, whose racks have links"));
        }
        check_count("cluster", fabric.host_count(), MOST_HOSTS)?;
        check_times(file, &cluster)?;
        check_count("media", file.media.len(), 100)?;
        if fabric.host_count().saturating_mul(file.media.len()) > MOST_DEVICES {
            return Err(invalid("media", format!("more than {MOST_DEVICES} devices on all hosts")));
        }
        let stripes = match &file.chunks {
            None => Vec::new(),
            Some(chunks) => {
                if !(1..=MOST_STRIPES).contains(&chunks.stripes) {
                    let message = format!("{}: expected 1 to {MOST_STRIPES}", chunks.stripes);
                    return Err(invalid("chunks.stripes", message));
                }
                let placed = Stripes {
                    policy: &chunks.policy,
                    count: chunks.stripes,
                    coding: chunks.coding,
                    size: chunks.size,
                    seed: file.seed,
                };
                placed.place(&cluster).map_err(|error| error.under("chunks"))?
            }
        };
        let classes = transport::classes(file)?;
        let operations = operations::of(file, &cluster, &classes)?;
        let plan = Plan {
            network: transport::network(file)?,
            tcp: transport::tcp(file)?,
            host_limit: file.network.host_limit.0,
            media: operations::media(file)?,
            jobs: jobs::of(file, &cluster, &operations)?,
            operations,
            changes: changes(file, &cluster)?,
            data_chunks: file.chunks.as_ref().map_or(0, |chunks| usize::from(chunks.coding.data())),
            stripes,
            horizon: file.horizon,
            warmup: file.warmup,
            sample: file.sample,
            seed: file.seed,
            cluster: Arc::new(cluster),
        };
        let name = file.name.clone().unwrap_or_else(|| "operations".to_owned());
        Ok(Scenario { name, plan, classes })
    }

    /// Name of the scenario.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The cluster.
    pub fn cluster(&self) -> &Cluster {
        &self.plan.cluster
    }

    /// Names of the classes of service, by number.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// Names of the kinds of jobs, by number.
    pub fn jobs(&self) -> impl Iterator<Item = &str> {
        self.plan.jobs.iter().map(|job| job.name.as_str())
    }

    /// Name, medium, class and direction of the kinds of operations, by number; the direction is `read` or `write`.
    pub fn operations(&self) -> impl Iterator<Item = [&str; 4]> {
        self.plan.operations.iter().map(|operation| {
            let direction = match operation.direction {
                Direction::Read => "read",
                Direction::Write => "write",
            };
            let medium = self.plan.media[operation.medium].name.as_str();
            let class = self.classes[usize::from(operation.class)].as_str();
            [operation.name.as_str(), medium, class, direction]
        })
    }

    /// Length of a window of telemetry.
    pub fn sample(&self) -> Nanos {
        self.plan.sample
    }

    /// Length of the run.
    pub fn horizon(&self) -> Nanos {
        self.plan.horizon
    }

    /// Runs the scenario. `progress` receives the elapsed share of the horizon and returns false to stop the run.
    ///
    /// # Errors
    /// Returns an error if jobs or records are too many, or if `progress` stopped the run.
    pub fn run(&self, progress: &dyn Fn(f64) -> bool) -> Result<Records, RunError> {
        let mut simulator = Simulator::new(&self.plan);
        for step in 1..=STEPS {
            let until = u128::from(self.plan.horizon.0) * u128::from(step) / u128::from(STEPS);
            simulator.run(Nanos(until as u64))?;
            if !progress(step as f64 / STEPS as f64) {
                return Err(RunError::Stopped);
            }
        }
        Ok(simulator.finish())
    }
}

/// Checks the times of a run.
fn check_times(file: &OperationsFile, cluster: &Cluster) -> Result<(), InputError> {
    if file.horizon == Nanos(0) || file.horizon > LONGEST {
        return Err(invalid("horizon", format!("{}: expected above 0s, up to {LONGEST}", file.horizon)));
    }
    if file.warmup >= file.horizon {
        let message = format!("{}: expected less than the horizon of {}", file.warmup, file.horizon);
        return Err(invalid("warmup", message));
    }
    if file.sample == Nanos(0) {
        return Err(invalid("sample", "0s: must be above 0"));
    }
    let fabric = &cluster.fabric;
    let links = fabric.all_resources().take(fabric.link_count());
    let counted = links.filter(|&link| is_counted(fabric.kind(link))).count() as u64;
    let windows = (file.horizon.0 / file.sample.0).saturating_mul(counted * file.classes.len().max(1) as u64);
    if windows > MOST_WINDOWS {
        return Err(invalid(
            "sample",
            format!("{windows} windows of links: expected at most {MOST_WINDOWS}"),
        ));
    }
    Ok(())
}

/// Changes of links.
fn changes(file: &OperationsFile, cluster: &Cluster) -> Result<Vec<Change>, InputError> {
    if file.events.len() > MOST_EVENTS {
        return Err(invalid("events", format!("{}: expected at most {MOST_EVENTS}", file.events.len())));
    }
    let change = |(number, event): (usize, &EventFile)| {
        let fabric = &cluster.fabric;
        let known = fabric.resource(&event.link).filter(|link| link.index() < fabric.link_count());
        let Some(link) = known else {
            let message = format!("`{}`: no link of this cluster", excerpt(&event.link));
            return Err(invalid(&format!("events[{number}].link"), message));
        };
        if event.capacity == Bandwidth(0) {
            return Err(invalid(&format!("events[{number}].capacity"), "0bps: must be above 0"));
        }
        Ok(Change { at: event.at, link, rate: event.capacity })
    };
    file.events.iter().enumerate().map(change).collect()
}
