//! Summary of a run, and comparison of two runs on the same arrivals.

mod apps;
mod coflows;
mod comparison;
mod reads;
mod repairs;
mod tasks;

pub use apps::AppSummary;
pub use coflows::{ByClass, ClassSummary, CoflowSummary};
pub use comparison::{Comparison, Group, Paired};
use leeward_fabric::{Fabric, ResourceKind};
pub use reads::ReadSummary;
pub use repairs::RepairSummary;
use serde::Serialize;
pub use tasks::TaskSummary;

use super::quantile::quantile;
use super::record::{Block, File, Job, Link, Record};

/// Summary of a run. Times in seconds. Files that began before the end of the warm-up are left out, with their blocks.
/// Stored bytes count from the beginning of the run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// Number of written blocks.
    pub blocks: u64,
    /// Number of unwritten blocks at the end of the run.
    pub blocks_unfinished: u64,
    /// Number of rejections of blocks, and of new placements because a host failed.
    pub retries: u64,
    /// Number of blocks that a policy left to the default policy because it saw no load.
    pub placed_blindly: u64,
    /// Time from the request of a block to its last copy on disk.
    pub block_write_s: Times,
    /// Write time of full blocks only, which policies place by load.
    pub full_block_write_s: Times,
    /// Write time of partial blocks: the remainder at a file's end.
    pub partial_block_write_s: Times,
    /// Write time of files, from the request of the first block to the end of the last block.
    pub file_write_s: Times,
    /// Time of tasks, from the start of their fetches to the end of their file.
    pub task_s: Times,
    /// Time of jobs, from submission to the last file written.
    pub job_s: Times,
    /// Time for which at least one task of a job fetched or wrote.
    pub job_communication_s: Times,
    /// Mean communication time, each job weighted by the bytes it wrote; zero without jobs.
    pub job_communication_by_bytes_s: f64,
    /// Coefficient of variation over racks' uplinks of their mean loads in an interval; median over intervals.
    pub rack_uplink_cv: Option<f64>,
    /// Coefficient of variation over racks' downlinks.
    pub rack_downlink_cv: Option<f64>,
    /// Coefficient of variation over hosts' egress.
    pub host_egress_cv: Option<f64>,
    /// Coefficient of variation over hosts' ingress.
    pub host_ingress_cv: Option<f64>,
    /// Share of rack-link intervals that were hot.
    pub hot_share: f64,
    /// Standard deviation over mean of the bytes stored by rack at the end, including bytes from the warm-up.
    pub rack_storage_cv: Option<f64>,
    /// Standard deviation over mean of the bytes stored by host at the end.
    pub host_storage_cv: Option<f64>,
    /// Summary of a cell's tasks; absent for other runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks: Option<TaskSummary>,
    /// Summary of reads; absent for runs without a source of reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reads: Option<ReadSummary>,
    /// Summary of repairs; absent for runs without `repair`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repairs: Option<RepairSummary>,
    /// Summary of apps; absent for other runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub apps: Option<AppSummary>,
    /// Summary of coflows; absent for runs without coflows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coflows: Option<CoflowSummary>,
}

/// Distribution of durations, in seconds; all zero without durations.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Times {
    /// Number of durations.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Longest.
    pub max: f64,
}

impl Times {
    /// Returns the distribution of `durations`.
    pub fn of(durations: impl IntoIterator<Item = f64>) -> Times {
        let mut sorted: Vec<f64> = durations.into_iter().collect();
        if sorted.is_empty() {
            return Times::default();
        }
        sorted.sort_unstable_by(f64::total_cmp);
        let percentile = |p| quantile(&sorted, p);
        Times {
            count: sorted.len() as u64,
            mean: sorted.iter().sum::<f64>() / sorted.len() as f64,
            p50: percentile(0.50),
            p95: percentile(0.95),
            p99: percentile(0.99),
            max: sorted[sorted.len() - 1],
        }
    }
}

/// Standard deviation over mean.
fn variation(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    (mean > 0.0).then(|| (squares / count).sqrt() / mean)
}

impl Summary {
    /// Summarizes a record; `warmup` in seconds.
    pub fn of(record: &Record, fabric: &Fabric, hot: f64, warmup: f64) -> Summary {
        let counted = || record.blocks_after(warmup);
        let files = || record.files.iter().filter(|file| file.start >= warmup);
        let jobs = || record.jobs.iter().filter(|job| job.start >= warmup);
        let (mut weighted_sum, mut bytes) = (0.0, 0.0);
        for (job, seconds) in jobs().filter_map(|job| Some((job, job.communicating()?))) {
            weighted_sum += job.bytes.0 as f64 * seconds;
            bytes += job.bytes.0 as f64;
        }
        let median_cv = |kind: ResourceKind| {
            let of_kind = record.balance.iter().filter(|balance| balance.kind == kind);
            let mut sorted: Vec<f64> = of_kind.filter_map(|balance| balance.variation).collect();
            sorted.sort_unstable_by(f64::total_cmp);
            (!sorted.is_empty()).then(|| quantile(&sorted, 0.5))
        };
        let is_rack = |link: &&Link| {
            matches!(fabric.kind(link.resource), ResourceKind::RackUplink | ResourceKind::RackDownlink)
        };
        let rack_intervals = record.links.iter().filter(is_rack).count();
        let hot_intervals = record.links.iter().filter(is_rack).filter(|link| link.utilization > hot).count();
        let stored: Vec<f64> = record.hosts.iter().map(|host| host.bytes.0 as f64).collect();
        let rack_bytes = |rack| fabric.hosts(rack).map(|host| stored[host as usize]).sum::<f64>();
        let racks: Vec<f64> = fabric.all_racks().map(rack_bytes).collect();
        Summary {
            blocks: counted().filter(|block| block.finished.is_some()).count() as u64,
            blocks_unfinished: counted().filter(|block| block.finished.is_none()).count() as u64,
            retries: counted().map(|block| u64::from(block.retries)).sum(),
            placed_blindly: counted().filter(|block| block.blind).count() as u64,
            block_write_s: Times::of(counted().filter_map(Block::duration)),
            full_block_write_s: Times::of(counted().filter(|block| block.full).filter_map(Block::duration)),
            partial_block_write_s: Times::of(
                counted().filter(|block| !block.full).filter_map(Block::duration),
            ),
            file_write_s: Times::of(files().filter_map(File::write_time)),
            task_s: Times::of(files().filter_map(File::duration)),
            job_s: Times::of(jobs().filter_map(Job::duration)),
            job_communication_s: Times::of(jobs().filter_map(Job::communicating)),
            job_communication_by_bytes_s: if bytes > 0.0 { weighted_sum / bytes } else { 0.0 },
            rack_uplink_cv: median_cv(ResourceKind::RackUplink),
            rack_downlink_cv: median_cv(ResourceKind::RackDownlink),
            host_egress_cv: median_cv(ResourceKind::HostEgress),
            host_ingress_cv: median_cv(ResourceKind::HostIngress),
            hot_share: hot_intervals as f64 / rack_intervals.max(1) as f64,
            rack_storage_cv: variation(&racks),
            host_storage_cv: variation(&stored),
            tasks: TaskSummary::of(record, warmup),
            reads: ReadSummary::of(record, warmup),
            repairs: RepairSummary::of(record),
            apps: AppSummary::of(record, warmup),
            coflows: CoflowSummary::of(record, warmup),
        }
    }
}
