//! Settings of the generated tasks.

use std::num::NonZeroU32;

use leeward_fabric::input::{InputError, excerpt};
use leeward_fabric::{Cluster, Nanos, Shape};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::causes::{Growth, Losses};
use crate::settings::{Factor, Share};

/// Generated tasks of a cell.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Cell {
    /// Share of all hosts' processors that tasks request on average, above 0 to 0.95.
    pub processors: Share,
    /// Share of these processors for batch jobs, which may be moved.
    pub tolerant: Share,
    /// Mean traffic of tasks out of racks, as a share of the total capacity of all uplinks; they receive the same
    /// amount. At most 10.
    pub network: Factor,
    /// Standard deviation of the logarithm of bandwidth per processor over jobs, at most 3. At 1.2 the 99th percentile
    /// is 16 times the median (Hotspots figure 7: more than ten times).
    pub spread: Factor,
    /// Peak over mean of a task's rate, 1 to 100; 1 is a steady rate.
    pub peak: Factor,
    /// Swing of rates over a day, as a share of their mean, up and down.
    pub day: Share,
    /// Largest number of tasks of a job, up to 10000; sizes are log-uniform. By default, as many tasks as need 2 % of
    /// the processors.
    pub tasks_per_job: Option<NonZeroU32>,
    /// Mean run time of a service.
    pub service: Nanos,
    /// Mean run time of a batch job's task, without any delay.
    pub batch: Nanos,
    /// Down time of a moved task.
    pub restart: Nanos,
    /// Share of a job's tasks that may be down at once; always at least one task.
    pub down: Share,
    /// Evictions per hour, as a multiple of a job's number of tasks; always at least one.
    pub evictions: Factor,
    /// Standard deviation of the logarithm of the ratio between the scheduler's data and the truth, at most 3; 0 is
    /// exact.
    pub error: Factor,
    /// Share of new jobs, whose peak the scheduler does not know.
    pub unknown: Share,
    /// Assumed demand of new jobs.
    pub unknown_peak: UnknownPeak,
    /// Estimates demands from the observed traffic of the job's tasks; no estimates if absent. If several sources have
    /// a history, the first one applies to the tasks of all sources.
    pub history: Option<History>,
    /// Jobs with constrained hosts; none if absent.
    pub constrained: Option<Constrained>,
    /// Services whose demand grows beyond the data of the scheduler; none if absent.
    pub growth: Option<Growth>,
    /// Racks that lose a part of their uplinks; none if absent.
    pub losses: Option<Losses>,
    /// Traffic of disk servers, in each direction, as a share of the mean traffic of all tasks; 0 is no disk servers.
    /// Each host with disks has a server, whose traffic is in proportion to the capacity of its disks (Hotspots section
    /// 3.2: 75 % of the applications' traffic is reads and writes of storage; section 3.3: data is placed without
    /// regard to bandwidth).
    pub storage: Share,
}

/// Substitute for an unknown peak (Hotspots section 5.1 leaves it open).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UnknownPeak {
    /// Zero.
    #[default]
    Zero,
    /// The job's mean.
    Mean,
}

/// Estimated demands (Hotspots section 5.1): a percentile of the observed traffic of a job's tasks over a window, if it
/// exceeds the scheduler's data. The paper gives neither of the two defaults.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct History {
    /// Time for which observations count, at least 5min.
    pub window: Nanos,
    /// The percentile that estimates the peak, as a share above 0.
    pub percentile: Share,
}

impl Default for History {
    fn default() -> Self {
        let percentile = Share::new(0.98).expect("a default in range");
        History { window: Nanos(86_400 * Nanos::SECOND.0), percentile }
    }
}

/// Jobs with the most bandwidth per processor demand a tag of their hosts (Hotspots section 3.4: workers avoid hosts
/// with disk servers).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Constrained {
    /// The tag.
    pub tag: String,
    /// Approximate share of all jobs.
    pub share: Share,
}

impl Default for Cell {
    fn default() -> Self {
        let factor = |number| Factor::new(number).expect("a default in range");
        let share = |number| Share::new(number).expect("a default in range");
        Cell {
            processors: share(0.7),
            tolerant: share(0.5),
            network: factor(0.3),
            spread: factor(1.2),
            peak: factor(2.0),
            day: share(0.3),
            tasks_per_job: None,
            service: Nanos(5 * 86_400 * Nanos::SECOND.0),
            batch: Nanos(4 * 3600 * Nanos::SECOND.0),
            restart: Nanos(60 * Nanos::SECOND.0),
            down: share(0.1),
            evictions: factor(0.5),
            error: factor(0.0),
            unknown: share(0.0),
            unknown_peak: UnknownPeak::Zero,
            history: None,
            constrained: None,
            growth: None,
            losses: None,
            storage: share(0.0),
        }
    }
}

impl Cell {
    pub(super) fn check(&self, horizon: f64) -> Result<(), InputError> {
        if !(horizon.is_finite() && horizon >= 0.0) {
            return Err(invalid("horizon", format!("{horizon} s: must be finite and not negative")));
        }
        if !(0.001..=0.95).contains(&self.processors.get()) {
            return Err(invalid("processors", format!("{}: expected 0.001 to 0.95", self.processors.get())));
        }
        for (field, value, least, most) in [
            ("network", self.network, 0.0, 10.0),
            ("spread", self.spread, 0.0, 3.0),
            ("peak", self.peak, 1.0, 100.0),
            ("evictions", self.evictions, 0.0, 1000.0),
            ("error", self.error, 0.0, 3.0),
        ] {
            if !(least..=most).contains(&value.get()) {
                return Err(invalid(field, format!("{}: expected {least} to {most}", value.get())));
            }
        }
        for (field, time) in [("service", self.service), ("batch", self.batch)] {
            if time < Nanos::SECOND || time > LONGEST {
                return Err(invalid(field, format!("{time}: expected {} to {LONGEST}", Nanos::SECOND)));
            }
        }
        if self.restart > LONGEST {
            return Err(invalid("restart", format!("{}: expected at most {LONGEST}", self.restart)));
        }
        if let Some(History { window, percentile }) = &self.history {
            if *window < SHORTEST || *window > LONGEST {
                let message = format!("{window}: expected {SHORTEST} to {LONGEST}");
                return Err(invalid("history.window", message));
            }
            if percentile.get() <= 0.0 {
                return Err(invalid("history.percentile", "0: expected a share above 0"));
            }
        }
        match self.tasks_per_job {
            Some(most) if most.get() > 10_000 => {
                Err(invalid("tasks_per_job", format!("{most}: expected 1 to 10000")))
            }
            _ => Ok(()),
        }
    }

    /// Returns the tags that constrained jobs demand.
    pub(super) fn tags(&self, cluster: &Cluster) -> Result<u64, InputError> {
        let Some(Constrained { tag, .. }) = &self.constrained else { return Ok(0) };
        let unknown = || invalid("constrained.tag", format!("`{}`: no host has this tag", excerpt(tag)));
        cluster.fabric.tag_mask(tag).ok_or_else(unknown)
    }
}

/// Shortest window of a history, and shortest cause of hotspots: the interval of traffic reports.
pub(super) const SHORTEST: Nanos = Nanos(300 * Nanos::SECOND.0);

/// Longest time in the settings.
pub(super) const LONGEST: Nanos = Nanos(366 * 86_400 * Nanos::SECOND.0);

/// Rejects clusters without rack links or without processors.
pub(super) fn check_cluster(cluster: &Cluster) -> Result<(), String> {
    let fabric = &cluster.fabric;
    if fabric.shape() != Shape::Tree {
        return Err("this cluster is a mesh, whose racks have no links".into());
    }
    if let Some(host) = fabric.all_hosts().find(|&host| fabric.cpus(host).is_none()) {
        return Err(format!("host {} of the cluster has no `cpus`", fabric.host_name(host)));
    }
    if fabric.all_hosts().all(|host| fabric.cpus(host).is_some_and(|cpus| cpus.0 == 0)) {
        return Err("all hosts of the cluster have `cpus: 0`".into());
    }
    Ok(())
}

/// Creates an error about the settings of this source.
pub(super) fn invalid(field: &str, message: impl std::fmt::Display) -> InputError {
    InputError::new("cell", message).in_field(field)
}
