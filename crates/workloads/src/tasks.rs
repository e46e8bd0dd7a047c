//! A list of a cell's tasks as CSV, like the log of a scheduler.
//!
//! The columns are `arrive_s` and `duration_s` (seconds) and `cpus`. Optional are `job`, `memory_bytes`,
//! `egress_bps`, `ingress_bps` (means), `peak_factor` (peak over mean) and `tolerant` (`true` or `false`);
//! other columns are ignored. The scheduler knows the true demand of each task.

use std::collections::BTreeMap;

use leeward_engine::Availability;
use leeward_fabric::input::{Cell, Clock, InputError, Line, Text, excerpt};
use leeward_fabric::{Bytes, Cluster, Cpus, Nanos};
use leeward_placement::tasks::{Class, Task, Traffic};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::list::List;
use crate::model::{CellJob, CellKind, CellTask, Loaded, MOST_RECORDS, Workload};
use crate::settings::{Share, Window, check_rack_links, whole_bytes};

/// Required columns of the list.
pub(crate) const COLUMNS: [&str; 3] = ["arrive_s", "duration_s", "cpus"];
/// Optional columns.
pub(crate) const OPTIONAL: [&str; 6] =
    ["job", "memory_bytes", "egress_bps", "ingress_bps", "peak_factor", "tolerant"];

/// The tasks of a cell from a list, CSV or Parquet.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tasks {
    /// The list: a path from the scenario's folder, or `data:NAME/FILE`.
    pub file: String,
    /// Start of the run within the list.
    #[serde(default)]
    pub from: Nanos,
    /// Duration of the used part of the list; by default up to the end of the run.
    pub duration: Option<Nanos>,
    /// Down time of a moved task. Default 1min.
    #[serde(default = "minute")]
    pub restart: Nanos,
    /// Share of a tolerant task's work that waits for the network. Default 0.5.
    #[serde(default = "half")]
    pub network_share: Share,
    /// Largest number of tasks of a job that may be down at once; no limit if absent.
    pub down: Option<u32>,
    /// Largest number of evictions of a job per hour; no limit if absent.
    pub evictions_per_hour: Option<u32>,
}

fn minute() -> Nanos {
    Nanos(60 * Nanos::SECOND.0)
}

fn half() -> Share {
    Share::new(0.5).expect("a share")
}

/// Key of a kind: the scheduler's view of a task, and the bits of its ratio of peak to mean.
type KindKey = (u64, u64, [u64; 2], u64, bool);

/// Contents of the list read so far.
#[derive(Default)]
struct ListedTasks {
    workload: Workload,
    jobs: BTreeMap<String, u32>,
    kinds: BTreeMap<KindKey, u32>,
}

impl Tasks {
    /// Reads the list.
    ///
    /// # Errors
    /// Returns an error with the line and column of the first invalid value, or if the cluster's racks have
    /// no links.
    pub fn read(&self, text: Text, cluster: &Cluster, horizon: f64) -> Result<Loaded, InputError> {
        check_rack_links(cluster, "a tree of racks")
            .map_err(|message| InputError::new(&self.file, message))?;
        let window = Window::new(self.from, self.duration, horizon);
        let mut lines = text.lines();
        let list = List::open(&mut lines, COLUMNS, OPTIONAL)?;
        let (mut clock, mut count) = (Clock::default(), 0_u64);
        let mut read = ListedTasks::default();
        while let Some(line) = lines.next_line()? {
            let cells: [Cell<'_>; 9] = list.cells(&line)?;
            let arrive = line.number("arrive_s", "seconds", cells[0])?;
            let arrive = clock.reach(&line, "arrive_s", arrive)?;
            let task = self.task(&line, cells, &mut read)?;
            count += 1;
            let Some(arrive) = window.place(arrive) else { continue };
            if read.workload.tasks.len() == MOST_RECORDS {
                let message = format!("more than {MOST_RECORDS} tasks; set a shorter `duration`");
                return Err(line.error("arrive_s", message));
            }
            read.workload.tasks.push(CellTask { arrive, ..task });
        }
        let workload = read.workload;
        let provenance = format!(
            "tasks {}: {} of {count} tasks ({window}) of {} jobs",
            self.file,
            workload.tasks.len(),
            workload.cell_jobs.len()
        );
        Ok(Loaded { workload, provenance })
    }

    /// Returns the task of a line, without its arrival time.
    fn task(
        &self,
        line: &Line<'_>,
        cells: [Cell<'_>; 9],
        read: &mut ListedTasks,
    ) -> Result<CellTask, InputError> {
        let [_, duration, cpus, job, memory, egress, ingress, peak, tolerant] = cells;
        let duration = line.number("duration_s", "seconds", duration)?;
        if duration > LONGEST {
            return Err(line.error("duration_s", format!("{duration:e} seconds: more than a thousand years")));
        }
        let cpus = line.number("cpus", "processors", cpus)?;
        if cpus > MOST_CPUS {
            return Err(line.error("cpus", format!("{cpus:e} processors: more than any host has")));
        }
        let optional = |field, expected, cell: Cell<'_>, default| {
            if cell.is_empty() { Ok(default) } else { line.number(field, expected, cell) }
        };
        let memory = optional("memory_bytes", "bytes", memory, 0.0)?;
        let Some(memory) = whole_bytes(memory) else {
            return Err(line.error("memory_bytes", format!("{memory:e} bytes: more than any host has")));
        };
        let peak = optional("peak_factor", "peak over mean", peak, 1.0)?;
        if !(1.0..=100.0).contains(&peak) {
            return Err(line.error("peak_factor", format!("{peak}: expected 1 to 100")));
        }
        let rate = |field, cell| match optional(field, "bits per second", cell, 0.0)? {
            bps if bps > MOST_BPS => {
                Err(line.error(field, format!("{bps:e} bits per second: more than any task sends")))
            }
            bps => Ok(bps.round() as u64),
        };
        let (egress_bps, ingress_bps) = (rate("egress_bps", egress)?, rate("ingress_bps", ingress)?);
        let tolerant = match &*tolerant.text() {
            "true" | "True" | "1" => true,
            "" | "false" | "False" | "0" => false,
            other => {
                let message = format!("`{}`: expected true or false", excerpt(other));
                return Err(line.error("tolerant", message));
            }
        };
        let mut task = Task {
            cpus: Cpus((cpus * 1000.0).round() as u64),
            memory: Bytes(memory),
            tolerant,
            ..Task::default()
        };
        let traffic = |mean_bps| Traffic { mean_bps, peak_bps: (mean_bps as f64 * peak).round() as u64 };
        let class = Class::NonCritical as usize;
        (task.egress[class], task.ingress[class]) = (traffic(egress_bps), traffic(ingress_bps));
        let ListedTasks { workload, jobs, kinds } = read;
        let key = (task.cpus.0, memory, [egress_bps, ingress_bps], peak.to_bits(), tolerant);
        let kind = *kinds.entry(key).or_insert_with(|| {
            let network_share = if tolerant { self.network_share.get() } else { 0.0 };
            let restart = self.restart.as_secs_f64();
            workload.cell_kinds.push(CellKind {
                demand: task,
                peak,
                day: 0.0,
                network_share,
                restart,
                growth: None,
            });
            workload.cell_kinds.len() as u32 - 1
        });
        let Tasks { down, evictions_per_hour, .. } = *self;
        let mut new_job = |name: String| {
            let availability = Availability { down, evictions_per_hour };
            workload.cell_jobs.push(CellJob { name, availability, tags: 0 });
            workload.cell_jobs.len() as u32 - 1
        };
        // A task without a job is its own job.
        let job = match &*job.text() {
            "" => new_job(String::new()),
            name => *jobs.entry(name.to_owned()).or_insert_with(|| new_job(name.to_owned())),
        };
        Ok(CellTask { arrive: 0.0, duration, job, kind, egress_bps, ingress_bps })
    }
}

/// Largest valid duration in seconds, processors and rates of a task.
const LONGEST: f64 = 3e10;
const MOST_CPUS: f64 = 1e6;
const MOST_BPS: f64 = 1e15;
