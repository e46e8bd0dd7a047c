//! What happened in a run, row by row. Times are seconds from its start; links are recorded up to the horizon, blocks
//! until the last of them is written, tasks of a cell up to the horizon.

mod app;
mod cell;
mod reads;

pub use app::{App, Migration};
pub use cell::{CellInterval, CellTasks, Move, Task};
use leeward_fabric::{Bytes, Capacities, Fabric, HostId, ResourceId, ResourceKind};
pub use reads::{NotMade, Read};

/// Everything recorded of one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Record {
    /// Block writes, in the order in which they were asked for.
    pub blocks: Vec<Block>,
    /// File writes, in order of start.
    pub files: Vec<File>,
    /// Jobs, in order of start.
    pub jobs: Vec<Job>,
    /// Mean loads of rack and pod links, interval by interval.
    pub links: Vec<Link>,
    /// How evenly load is spread, interval by interval.
    pub balance: Vec<Balance>,
    /// Runs of hot intervals of rack and pod links.
    pub hotspots: Vec<Hotspot>,
    /// What each host stores in the end.
    pub hosts: Vec<Host>,
    /// Tasks of a cell, in the order in which they arrive.
    pub tasks: Vec<Task>,
    /// Tasks that were moved, in order of time.
    pub moves: Vec<Move>,
    /// What a cell's racks carry together, interval by interval.
    pub cell: Vec<CellInterval>,
    /// Reads, in the order in which they were asked for.
    pub reads: Vec<Read>,
    /// Reads that were not made; `None` without a source of reads.
    pub reads_not_made: Option<NotMade>,
    /// Apps, in the order in which they arrive.
    pub apps: Vec<App>,
    /// Apps that moved while they ran, in order of time.
    pub migrations: Vec<Migration>,
    /// Background flows that ended, and those that did not within the run.
    pub flows: (u64, u64),
    /// Samples that the ledger did not take in.
    pub discarded: u64,
}

/// The write of one block.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Its file, by position in [`Record::files`].
    pub file: u32,
    /// Its position in the file.
    pub index: u32,
    /// Who wrote it.
    pub writer: HostId,
    /// Its size.
    pub bytes: Bytes,
    /// Whether it is of its file's block size, and not the rest at a file's end.
    pub full: bool,
    /// Where its copies are, in the order of the chain; empty if it was never placed.
    pub copies: Vec<HostId>,
    /// When it was first asked for.
    pub asked: f64,
    /// When it was placed, the last time if more than once.
    pub placed: Option<f64>,
    /// Whether the policy could see no load and left it to the default one.
    pub blind: bool,
    /// When the last copy was on disk.
    pub finished: Option<f64>,
    /// How often it was refused, or had to be placed again because a host failed.
    pub retries: u32,
}

/// A task: what it fetched, and the file that it wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    /// Its job, by position in [`Record::jobs`].
    pub job: Option<u32>,
    /// Who wrote it.
    pub writer: HostId,
    /// Its size.
    pub bytes: Bytes,
    /// What the task had to fetch over the network before it wrote.
    pub fetches: Bytes,
    /// When the task began: to fetch, or else to write.
    pub start: f64,
    /// When its first block was asked for.
    pub write_start: Option<f64>,
    /// When its last block was written.
    pub finished: Option<f64>,
}

/// A job, as far as it shuffles and writes.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// What its source calls it.
    pub name: String,
    /// When it was submitted.
    pub start: f64,
    /// What those of its files hold together that were written to the end.
    pub bytes: Bytes,
    /// When the first block of any of its files was asked for.
    pub write_start: Option<f64>,
    /// How long at least one of its tasks fetched or wrote, in seconds.
    pub communication: f64,
    /// When its last file was written.
    pub finished: Option<f64>,
}

/// The mean load of a link over an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Link {
    /// Start of the interval.
    pub start: f64,
    /// The link.
    pub resource: ResourceId,
    /// Mean load, bit/s.
    pub load: f64,
    /// Of its capacity at the end of the interval; 1 if it had none and carried something.
    pub utilization: f64,
}

/// How evenly the links of a tier are loaded in an interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Balance {
    /// Start of the interval.
    pub start: f64,
    /// Which links.
    pub kind: ResourceKind,
    /// Mean over the links of their mean load, bit/s.
    pub mean: f64,
    /// Coefficient of variation, standard deviation over mean (Sinbad section 4.3); `None` where nothing is carried.
    pub variation: Option<f64>,
}

/// Intervals without a break in which a link was hot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hotspot {
    /// The link.
    pub resource: ResourceId,
    /// Start of the first interval.
    pub start: f64,
    /// End of the last.
    pub end: f64,
    /// Mean utilization between.
    pub utilization: f64,
}

/// What a host stores of the blocks of a run.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Host {
    /// In bytes.
    pub bytes: Bytes,
    /// In blocks.
    pub blocks: u64,
}

impl Record {
    /// The blocks of files that began at `warmup` or later. By the file's start and not the block's, because that is
    /// the same under every policy.
    pub fn blocks_after(&self, warmup: f64) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(move |block| self.files[block.file as usize].start >= warmup)
    }
}

impl Block {
    /// From the question where it goes to its last copy on disk, in seconds.
    pub fn duration(&self) -> Option<f64> {
        self.finished.map(|finished| finished - self.asked)
    }
}

impl File {
    /// From the start of its task, in seconds.
    pub fn duration(&self) -> Option<f64> {
        self.finished.map(|finished| finished - self.start)
    }

    /// From its first block: the write phase of its task.
    pub fn writing(&self) -> Option<f64> {
        self.finished.zip(self.write_start).map(|(finished, start)| finished - start)
    }
}

impl Job {
    /// From submission to its last file, in seconds.
    pub fn duration(&self) -> Option<f64> {
        self.finished.map(|finished| finished - self.start)
    }

    /// How long its tasks fetched or wrote, if all of them did.
    pub fn communicating(&self) -> Option<f64> {
        self.finished.map(|_| self.communication)
    }

    /// The share of its time from the first block of its files to the last.
    pub fn write_share(&self) -> Option<f64> {
        let (start, finished) = self.write_start.zip(self.finished)?;
        let all = finished - self.start;
        (all > 0.0).then(|| (finished - start) / all)
    }

    /// Its bin by that share, 1 to 5 (Sinbad table 3).
    pub fn bin(&self) -> Option<u8> {
        let share = self.write_share()?;
        Some(WRITE_SHARES.iter().filter(|&&from| share >= from).count() as u8)
    }
}

/// Where the bins of jobs begin, as shares of time in writing (Sinbad table 3).
pub const WRITE_SHARES: [f64; 5] = [0.0, 0.25, 0.50, 0.75, 0.90];

/// Tiers of links over which evenness is measured.
const TIERS: [ResourceKind; 6] = [
    ResourceKind::HostEgress,
    ResourceKind::HostIngress,
    ResourceKind::RackUplink,
    ResourceKind::RackDownlink,
    ResourceKind::PodUplink,
    ResourceKind::PodDownlink,
];

/// Turns work carried into rows, interval by interval.
#[derive(Debug)]
pub struct LinkRecorder {
    /// Links by tier.
    tiers: Vec<(ResourceKind, Vec<ResourceId>)>,
    carried: Vec<f64>,
    last: f64,
    /// Utilization over which an interval is hot.
    hot: f64,
    /// For each link, where its current run of hot intervals began, and the utilizations of it.
    streaks: Vec<Option<(f64, f64, u32)>>,
}

impl LinkRecorder {
    /// A recorder of the links of `fabric`; `hot` as in [`leeward_ledger::LedgerSettings::hot`].
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

    /// The same recorder without the links of hosts, where a plant does not know what they carry.
    pub fn without_hosts(mut self) -> LinkRecorder {
        self.tiers.retain(|(kind, _)| !matches!(kind, ResourceKind::HostEgress | ResourceKind::HostIngress));
        self
    }

    /// Ends an interval at `now`; `carried` says how much work a resource has carried so far. What an interval that
    /// begins before `count_from` carried is not recorded.
    pub fn interval(
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

    /// Ends the runs of hot intervals that are still going on.
    pub fn finish(&mut self, record: &mut Record) {
        for (at, streak) in self.streaks.iter_mut().enumerate() {
            if let Some(streak) = streak.take() {
                record.hotspots.push(hotspot(ResourceId(at as u32), streak, self.last));
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
