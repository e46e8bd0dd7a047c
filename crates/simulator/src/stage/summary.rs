//! What a run amounts to, and how two runs on the same arrivals compare.

use std::collections::HashMap;

use leeward_fabric::{Fabric, ResourceKind};
use serde::Serialize;

use super::record::{Block, File, Job, Link, Record};

/// A run in a few numbers. Times in seconds; what began before the warm-up ended is left out, blocks with their file.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// Blocks written.
    pub blocks: u64,
    /// Blocks asked for and not written when the run ended.
    pub blocks_unfinished: u64,
    /// How often a block was refused or placed again.
    pub retries: u64,
    /// Time from asking for a block to its last copy on disk.
    pub block_write_s: Times,
    /// The same for full blocks only, which are the ones that policies look at load for.
    pub full_block_write_s: Times,
    /// The same for files, from the first block asked for to the last written.
    pub file_write_s: Times,
    /// The same for jobs, from submission to the last file written.
    pub job_s: Times,
    /// Coefficient of variation of interval means over racks' uplinks, median over intervals.
    pub rack_uplink_cv: Option<f64>,
    /// Over racks' downlinks.
    pub rack_downlink_cv: Option<f64>,
    /// Over hosts' egress.
    pub host_egress_cv: Option<f64>,
    /// Over hosts' ingress.
    pub host_ingress_cv: Option<f64>,
    /// Share of rack-link intervals that were hot.
    pub hot_share: f64,
    /// Standard deviation over mean of the bytes stored by rack.
    pub rack_storage_cv: Option<f64>,
    /// Standard deviation over mean of the bytes stored by host.
    pub host_storage_cv: Option<f64>,
}

/// The distribution of some durations, in seconds; all zero if there are none.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Times {
    /// How many.
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

/// How a run compares with a baseline on the same arrivals, each write with the same write. A factor is the baseline's
/// time over this run's, so above one is better (Sinbad section 7.1).
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// Blocks of any size.
    pub blocks: Paired,
    /// Full blocks, which are the ones that policies look at load for.
    pub full_blocks: Paired,
    /// Files.
    pub files: Paired,
    /// Jobs.
    pub jobs: Paired,
    /// How far apart two times may be and count as the same, as a share of the baseline's.
    pub same_within: f64,
}

/// Writes of a kind that ended in both runs, compared one by one.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Paired {
    /// How many.
    pub count: u64,
    /// Mean time of the baseline over mean time of this run; one if there are none.
    pub factor: f64,
    /// Share that was faster.
    pub faster: f64,
    /// Share that took as long.
    pub same: f64,
    /// Share that was slower.
    pub slower: f64,
    /// Share that took half the time or less.
    pub twice_as_fast: f64,
}

/// Two write times within this share of each other count as the same.
const SAME_WITHIN: f64 = 0.01;

impl Times {
    /// The distribution of `durations`.
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

/// The `p` quantile of sorted values, linear between ranks.
fn quantile(sorted: &[f64], p: f64) -> f64 {
    let at = p * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    below + (above - below) * at.fract()
}

/// Standard deviation over mean.
fn variation(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    (mean > 0.0).then(|| (squares / count).sqrt() / mean)
}

fn duration(block: &Block) -> Option<f64> {
    block.finished.map(|finished| finished - block.asked)
}

impl File {
    fn duration(&self) -> Option<f64> {
        self.finished.map(|finished| finished - self.start)
    }
}

impl Job {
    fn duration(&self) -> Option<f64> {
        self.finished.map(|finished| finished - self.start)
    }
}

impl Summary {
    /// Sums a record up; `warmup` in seconds.
    pub fn of(record: &Record, fabric: &Fabric, hot: f64, warmup: f64) -> Summary {
        let counted = || record.blocks_after(warmup);
        let files = record.files.iter().filter(|file| file.start >= warmup);
        let jobs = record.jobs.iter().filter(|job| job.start >= warmup);
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
            block_write_s: Times::of(counted().filter_map(duration)),
            full_block_write_s: Times::of(counted().filter(|block| block.full).filter_map(duration)),
            file_write_s: Times::of(files.filter_map(File::duration)),
            job_s: Times::of(jobs.filter_map(Job::duration)),
            rack_uplink_cv: median_cv(ResourceKind::RackUplink),
            rack_downlink_cv: median_cv(ResourceKind::RackDownlink),
            host_egress_cv: median_cv(ResourceKind::HostEgress),
            host_ingress_cv: median_cv(ResourceKind::HostIngress),
            hot_share: hot_intervals as f64 / rack_intervals.max(1) as f64,
            rack_storage_cv: variation(&racks),
            host_storage_cv: variation(&stored),
        }
    }
}

impl Paired {
    /// Compares pairs of (this run's, the baseline's) durations.
    fn of(pairs: impl IntoIterator<Item = (Option<f64>, Option<f64>)>) -> Paired {
        let (mut faster, mut slower, mut twice, mut count) = (0u64, 0u64, 0u64, 0u64);
        let (mut sum, mut baseline_sum) = (0.0, 0.0);
        for (ours, baseline) in pairs {
            let (Some(ours), Some(baseline)) = (ours, baseline) else { continue };
            count += 1;
            (sum, baseline_sum) = (sum + ours, baseline_sum + baseline);
            faster += u64::from(ours < baseline * (1.0 - SAME_WITHIN));
            slower += u64::from(ours > baseline * (1.0 + SAME_WITHIN));
            twice += u64::from(ours * 2.0 <= baseline && ours < baseline);
        }
        let share = |n: u64| n as f64 / count.max(1) as f64;
        Paired {
            count,
            factor: if sum > 0.0 { baseline_sum / sum } else { 1.0 },
            faster: share(faster),
            same: share(count - faster - slower),
            slower: share(slower),
            twice_as_fast: share(twice),
        }
    }
}

impl Comparison {
    /// Compares a run with a baseline on the same arrivals; `warmup` in seconds.
    pub fn of(record: &Record, baseline: &Record, warmup: f64) -> Comparison {
        // Blocks of one file follow each other, so their order over all files differs from run to run.
        let key = |block: &Block| (block.file, block.index);
        let before: HashMap<(u32, u32), f64> =
            baseline.blocks.iter().filter_map(|block| Some((key(block), duration(block)?))).collect();
        let counted = || record.blocks_after(warmup);
        let pair = |block: &Block| (duration(block), before.get(&key(block)).copied());
        let files = record.files.iter().zip(&baseline.files).filter(|(file, _)| file.start >= warmup);
        let jobs = record.jobs.iter().zip(&baseline.jobs).filter(|(job, _)| job.start >= warmup);
        Comparison {
            blocks: Paired::of(counted().map(pair)),
            full_blocks: Paired::of(counted().filter(|block| block.full).map(pair)),
            files: Paired::of(files.map(|(ours, theirs)| (ours.duration(), theirs.duration()))),
            jobs: Paired::of(jobs.map(|(ours, theirs)| (ours.duration(), theirs.duration()))),
            same_within: SAME_WITHIN,
        }
    }
}
