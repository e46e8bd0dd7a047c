//! Records of a run, row by row. Times are seconds from its start. Links and tasks of a cell are recorded up to the
//! horizon; blocks are recorded until the last one is written.

mod app;
mod cell;
mod reads;
mod repairs;
mod stored;

pub use app::{App, Migration};
pub use cell::{CellInterval, CellTasks, Move, Task};
pub use leeward_coflows::Coflow;
use leeward_fabric::{Bytes, Capacities, Fabric, HostId, ResourceId, ResourceKind};
pub use reads::{Read, SkippedReads};
pub use repairs::Repair;

/// All records of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// Block writes, in order of request.
    pub blocks: Vec<Block>,
    /// File writes, in order of start.
    pub files: Vec<File>,
    /// Jobs, in order of start.
    pub jobs: Vec<Job>,
    /// Mean loads of rack and pod links, interval by interval.
    pub links: Vec<Link>,
    /// Balance of loads, interval by interval.
    pub balance: Vec<Balance>,
    /// Consecutive hot intervals of rack and pod links.
    pub hotspots: Vec<Hotspot>,
    /// Blocks stored by each host at the end.
    pub hosts: Vec<Host>,
    /// Tasks of a cell, in order of arrival.
    pub tasks: Vec<Task>,
    /// Moves of tasks, in order of time.
    pub moves: Vec<Move>,
    /// Totals of the links of a cell's racks, interval by interval.
    pub cell: Vec<CellInterval>,
    /// Reads, in order of request.
    pub reads: Vec<Read>,
    /// Numbers of skipped reads; `None` without a source of reads.
    pub skipped_reads: Option<SkippedReads>,
    /// Repairs of blocks with lost copies, in order of start.
    pub repairs: Vec<Repair>,
    /// Number of blocks with lost copies at the end; `None` without `repair` in the scenario.
    pub unrepaired: Option<u64>,
    /// Apps, in order of arrival.
    pub apps: Vec<App>,
    /// Apps that moved while they ran, in order of time.
    pub migrations: Vec<Migration>,
    /// Coflows of the background, in order of arrival.
    pub coflows: Vec<Coflow>,
    /// Number of background flows that ended within the run, and number of flows that did not.
    pub flows: (u64, u64),
    /// Samples that the ledger rejected.
    pub discarded: u64,
}

/// The write of one block.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Its file, by position in [`Record::files`].
    pub file: u32,
    /// Its position in the file.
    pub index: u32,
    /// Host that wrote it.
    pub writer: HostId,
    /// Size.
    pub bytes: Bytes,
    /// True if it has its file's block size; false for the remainder at a file's end.
    pub full: bool,
    /// Hosts of its copies, in the order of the chain; empty if it was never placed.
    pub copies: Vec<HostId>,
    /// Time of the first placement request.
    pub asked: f64,
    /// Time of its last placement.
    pub placed: Option<f64>,
    /// True if the policy saw no load and used the default policy.
    pub blind: bool,
    /// Time at which the last copy was on disk.
    pub finished: Option<f64>,
    /// Time at which it was deleted, because the attempt of its task failed.
    pub deleted: Option<f64>,
    /// Number of rejections, and of new placements because a host failed.
    pub retries: u32,
}

/// A task: its fetches, and the file that it wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    /// Its job, by position in [`Record::jobs`].
    pub job: Option<u32>,
    /// Host that wrote it; after a failure of its task, the host of the last attempt.
    pub writer: HostId,
    /// Size.
    pub bytes: Bytes,
    /// Bytes that the task, in its last attempt, fetched over the network before its write.
    pub fetches: Bytes,
    /// Start of the task: start of its fetches, or of its write if it has none.
    pub start: f64,
    /// Time of the first block's request.
    pub write_start: Option<f64>,
    /// Time at which its last block was written.
    pub finished: Option<f64>,
    /// Number of attempts of its task.
    pub attempts: u32,
}

/// A job: its shuffle and its writes.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Name in its source.
    pub name: String,
    /// Submission time.
    pub start: f64,
    /// Total bytes of its completely written files.
    pub bytes: Bytes,
    /// Time of the first request of a block of its files.
    pub write_start: Option<f64>,
    /// Time for which at least one of its tasks fetched or wrote, in seconds.
    pub communication: f64,
    /// Time at which its last file was written.
    pub finished: Option<f64>,
}

/// Mean load of a link over an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Start of the interval.
    pub start: f64,
    /// The link.
    pub resource: ResourceId,
    /// Mean load, bit/s.
    pub load: f64,
    /// Utilization: load over the capacity at the end of the interval; 1 if there was no capacity and some
    /// load.
    pub utilization: f64,
}

/// Balance of load over the links of a tier in an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Balance {
    /// Start of the interval.
    pub start: f64,
    /// Kind of the links.
    pub kind: ResourceKind,
    /// Mean over the links of their mean load, bit/s.
    pub mean: f64,
    /// Coefficient of variation, standard deviation over mean (Sinbad section 4.3); `None` without load.
    pub variation: Option<f64>,
}

/// Consecutive intervals in which a link was hot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hotspot {
    /// The link.
    pub resource: ResourceId,
    /// Start of the first interval.
    pub start: f64,
    /// End of the last interval.
    pub end: f64,
    /// Mean utilization of these intervals.
    pub utilization: f64,
}

/// Blocks of the run that a host stores at the end.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Host {
    /// Number of bytes.
    pub bytes: Bytes,
    /// Number of blocks.
    pub blocks: u64,
}

impl Record {
    /// Returns the blocks of files that began at `warmup` or later. The start of the file counts, not the start of the
    /// block, because a file has the same start under every policy.
    pub fn blocks_after(&self, warmup: f64) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(move |block| self.files[block.file as usize].start >= warmup)
    }
}

impl Block {
    /// Time from the placement request to the last copy on disk, in seconds.
    pub fn duration(&self) -> Option<f64> {
        self.finished.map(|finished| finished - self.asked)
    }
}

impl File {
    /// Time from the start of its task to the last block, in seconds.
    pub fn duration(&self) -> Option<f64> {
        self.finished.map(|finished| finished - self.start)
    }

    /// Time from its first block to the last, in seconds: the write phase of its task.
    pub fn write_time(&self) -> Option<f64> {
        self.finished.zip(self.write_start).map(|(finished, start)| finished - start)
    }
}

impl Job {
    /// Time from submission to the last file, in seconds.
    pub fn duration(&self) -> Option<f64> {
        self.finished.map(|finished| finished - self.start)
    }

    /// Time for which its tasks fetched or wrote, if the job ended.
    pub fn communicating(&self) -> Option<f64> {
        self.finished.map(|_| self.communication)
    }

    /// Share of the job's duration from the first block of its files to the last.
    pub fn write_share(&self) -> Option<f64> {
        let (start, finished) = self.write_start.zip(self.finished)?;
        let all = finished - self.start;
        (all > 0.0).then(|| (finished - start) / all)
    }

    /// Bin of its write share, 1 to 5 (Sinbad table 3).
    pub fn bin(&self) -> Option<u8> {
        let share = self.write_share()?;
        Some(WRITE_SHARES.iter().filter(|&&from| share >= from).count() as u8)
    }
}

/// Lower limits of the bins of jobs, as shares of time in writing (Sinbad table 3).
pub const WRITE_SHARES: [f64; 5] = [0.0, 0.25, 0.50, 0.75, 0.90];

/// Tiers of links whose balance is measured.
const TIERS: [ResourceKind; 6] = [
    ResourceKind::HostEgress,
    ResourceKind::HostIngress,
    ResourceKind::RackUplink,
    ResourceKind::RackDownlink,
    ResourceKind::PodUplink,
    ResourceKind::PodDownlink,
];

/// Recorder that turns carried work into rows, interval by interval.
#[derive(Debug)]
pub struct LinkRecorder {
    /// Links by tier.
    tiers: Vec<(ResourceKind, Vec<ResourceId>)>,
    carried: Vec<f64>,
    last: f64,
    /// Utilization above which an interval is hot.
    hot: f64,
    /// Current series of hot intervals of each link: its start, the sum of utilizations, and their number.
    streaks: Vec<Option<(f64, f64, u32)>>,
}

impl LinkRecorder {
    /// Creates a recorder of the links of `fabric`; `hot` as in [`leeward_ledger::LedgerSettings::hot`].
    pub fn new(fabric: &Fabric, hot: f64) -> LinkRecorder {
        let resources = (0..fabric.resource_count() as u32).map(ResourceId);
        let mut tiers: Vec<(ResourceKind, Vec<ResourceId>)> = TIERS.map(|kind| (kind, Vec::new())).into();
        for resource in resources {
            let kind = fabric.kind(resource);
            if let Some((_, links)) = tiers.iter_mut().find(|(tier, _)| *tier == kind) {
                links.push(resource);
            }
        }
        tiers.retain(|(_, links)| !links.is_empty());
        let count = fabric.resource_count();
        LinkRecorder { tiers, carried: vec![0.0; count], last: 0.0, hot, streaks: vec![None; count] }
    }

    /// Drops the links of hosts, for a driver that does not know their load.
    pub fn without_hosts(mut self) -> LinkRecorder {
        self.tiers.retain(|(kind, _)| !matches!(kind, ResourceKind::HostEgress | ResourceKind::HostIngress));
        self
    }

    /// Ends an interval at `now`; `carried` returns the total work that a resource has carried. An interval
    /// that begins before `count_from` is not recorded.
    pub fn end_interval(
        &mut self,
        now: f64,
        count_from: f64,
        truth: &Capacities,
        mut carried: impl FnMut(ResourceId) -> f64,
        record: &mut Record,
    ) {
        let start = std::mem::replace(&mut self.last, now);
        let length = now - start;
        if length <= 0.0 {
            return;
        }
        for (kind, links) in &self.tiers {
            let host_tier = matches!(kind, ResourceKind::HostEgress | ResourceKind::HostIngress);
            let (mut sum, mut squares) = (0.0, 0.0);
            for &resource in links {
                let total = carried(resource);
                let work = total - std::mem::replace(&mut self.carried[resource.index()], total);
                let load = work.max(0.0) / length;
                sum += load;
                squares += load * load;
                if host_tier || start < count_from {
                    continue;
                }
                let utilization = utilization(load, truth.get(resource).0 as f64);
                record.links.push(Link { start, resource, load, utilization });
                let streak = &mut self.streaks[resource.index()];
                if utilization > self.hot {
                    let (from, sum, intervals) = streak.unwrap_or((start, 0.0, 0));
                    *streak = Some((from, sum + utilization, intervals + 1));
                } else if let Some(streak) = streak.take() {
                    record.hotspots.push(hotspot(resource, streak, start));
                }
            }
            if start >= count_from {
                let count = links.len() as f64;
                let mean = sum / count;
                let deviation = (squares / count - mean * mean).max(0.0).sqrt();
                let variation = (mean > 0.0).then(|| deviation / mean);
                record.balance.push(Balance { start, kind: *kind, mean, variation });
            }
        }
    }

    /// Ends the current series of hot intervals.
    pub fn finish(&mut self, record: &mut Record) {
        for (index, streak) in self.streaks.iter_mut().enumerate() {
            if let Some(streak) = streak.take() {
                record.hotspots.push(hotspot(ResourceId(index as u32), streak, self.last));
            }
        }
        record.hotspots.sort_by(|a, b| a.start.total_cmp(&b.start).then(a.resource.cmp(&b.resource)));
    }
}

fn utilization(load: f64, capacity: f64) -> f64 {
    if capacity > 0.0 { load / capacity } else { f64::from(load > 0.0) }
}

fn hotspot(resource: ResourceId, (start, sum, intervals): (f64, f64, u32), end: f64) -> Hotspot {
    Hotspot { resource, start, end, utilization: sum / f64::from(intervals) }
}
