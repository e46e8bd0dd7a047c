//! Generated tasks of a cell, for a cluster scheduler to place (Hotspots sections 3.2 and 5.1).
//!
//! Jobs of two classes arrive as Poisson processes, at rates that keep the requested share of the cluster's processors
//! in use. Services are sensitive to latency, run for days and may not be moved; batch jobs are tolerant and run for
//! hours. A run begins in a steady state: the tasks in progress at its start arrive at time zero, with the rest of
//! their run time.
//!
//! Traffic of a task grows with its processors. Bandwidth per processor is log-normal over jobs, and its tail reaches
//! more than ten times the median (Hotspots figure 7). The scale is set so that all racks' uplinks together carry the
//! requested share. Over time, each task's rate is drawn again every few minutes (by the driver of cells). The rate
//! never exceeds its peak, and its mean swings over the day.
//!
//! Causes of hotspots that last for days are off by default: services whose demand grows, racks that lose uplinks, and
//! disk servers, whose traffic follows the sizes of disks and not of uplinks (Hotspots section 3.3).
//!
//! The scheduler knows a mean and a peak for each job, as if from a history of the job. These numbers are exact, or
//! differ by a factor drawn for each job. The scheduler knows neither for a new job.
//!
//! No public trace of a cell has both the needs and the traffic of tasks, so the model is fitted only to the values
//! above.

mod causes;
mod jobs;
mod settings;

pub use causes::{Growth, Losses};
use jobs::Model;
use std::collections::BTreeSet;

use leeward_engine::HistorySettings;
use leeward_fabric::input::InputError;
use leeward_fabric::{Cluster, ResourceId};

use crate::model::{Loaded, MOST_RECORDS, Workload};
use settings::invalid;
pub use settings::{Cell, Constrained, History, UnknownPeak};

impl Cell {
    /// Generates `horizon` seconds of tasks for `cluster`.
    ///
    /// # Errors
    /// Returns an error for invalid settings, too many tasks, or a cluster that is a mesh or has no
    /// processors.
    pub fn generate(&self, cluster: &Cluster, seed: u64, horizon: f64) -> Result<Loaded, InputError> {
        self.check(horizon)?;
        let tags = self.tags(cluster)?;
        let model = Model::new(self, cluster, tags)?;
        let expected = model.expected_tasks(horizon);
        if expected > MOST_RECORDS as f64 {
            let message = format!("{expected:.1e} tasks: more than {MOST_RECORDS}; set longer run times");
            return Err(invalid("batch", message));
        }
        let history = self
            .history
            .as_ref()
            .map(|history| HistorySettings { window: history.window, percentile: history.percentile.get() });
        let disk_servers = causes::disk_servers(self, cluster, model.traffic())?;
        let losses = self.losses.as_ref().map(|losses| losses.generate(cluster, seed, horizon));
        let capacities = losses.transpose()?.unwrap_or_default();
        let workload = Workload { history, disk_servers, capacities, ..model.generate(seed, horizon) };
        let Workload { tasks, cell_jobs, disk_servers, capacities, .. } = &workload;
        let first = tasks.partition_point(|task| task.arrive <= 0.0);
        let mut provenance = format!(
            "cell, generated: {} tasks of {} jobs, {first} of them at the start; {:.0} of {:.0} processors requested",
            tasks.len(),
            cell_jobs.len(),
            model.demand(),
            model.all_processors()
        );
        if self.growth.is_some() {
            let grown = workload.cell_kinds.iter().filter(|kind| kind.growth.is_some()).count();
            provenance += &format!("; {grown} services grow");
        }
        if let Some(Losses { left, .. }) = &self.losses {
            let racks: BTreeSet<ResourceId> = capacities.iter().map(|change| change.resource).collect();
            provenance += &format!(
                "; {} racks have {:.0} % of their uplinks at times",
                racks.len() / 2,
                100.0 * left.get()
            );
        }
        if !disk_servers.is_empty() {
            provenance += &format!("; {} disk servers", disk_servers.len());
        }
        Ok(Loaded { workload, provenance })
    }
}
