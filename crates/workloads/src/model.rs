//! A workload as data: everything that arrives at a cluster in one run, in order of time.

use std::sync::Arc;

use leeward_coflows::Arrival;
use leeward_engine::{Availability, HistorySettings};
use leeward_fabric::{Bytes, Endpoint, HostId, Load, ResourceId};
use leeward_placement::replicas::Layout;
use leeward_placement::tasks::{AppRequest, Task};

use crate::choices::HostChoices;
use crate::read_stream::ReadStream;

/// Largest number of flows, files, fetches or rates of one source. The limit protects memory from wrong settings and
/// damaged files.
pub const MOST_RECORDS: usize = 30_000_000;

/// Largest number of blocks of one file; a block's id combines its file's number and its own.
pub const MOST_BLOCKS: u64 = 1 << 24;

/// Everything that arrives at a cluster in one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// Background transfers, by start.
    pub flows: Vec<Flow>,
    /// Coflows of the background.
    pub coflows: Vec<Arrival>,
    /// Background as rates on links, by time.
    pub rates: Vec<RateChange>,
    /// Files to be written, by start.
    pub files: Vec<FileWrite>,
    /// Jobs that the files belong to, by start.
    pub jobs: Vec<Job>,
    /// Tasks of a cell, by arrival.
    pub tasks: Vec<CellTask>,
    /// Kinds of tasks of a cell.
    pub cell_kinds: Vec<CellKind>,
    /// Jobs of the tasks.
    pub cell_jobs: Vec<CellJob>,
    /// Disk servers of a cell.
    pub disk_servers: Vec<DiskServer>,
    /// Changes of links' capacities, by time. They do not depend on the policy.
    pub capacities: Vec<CapacityChange>,
    /// Reads of written blocks, one stream per source.
    pub reads: Vec<ReadStream>,
    /// Estimation of task demands from history, if enabled.
    pub history: Option<HistorySettings>,
    /// Apps, by arrival.
    pub apps: Vec<AppArrival>,
}

/// An arriving app. It is placed, starts all transfers of its matrix at once, and ends with the last one.
#[derive(Clone, Debug, PartialEq)]
pub struct AppArrival {
    /// Arrival time, in seconds.
    pub arrive: f64,
    /// Name in results.
    pub name: String,
    /// Tasks and transfers. The driver assigns the app's number and job.
    pub request: Arc<AppRequest>,
}

/// A task of a cell: it arrives, is placed on a host, runs, and leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellTask {
    /// Arrival time, in seconds.
    pub arrive: f64,
    /// Run time without any delay, in seconds.
    pub duration: f64,
    /// Its job, by position in [`Workload::cell_jobs`].
    pub job: u32,
    /// Its kind, by position in [`Workload::cell_kinds`].
    pub kind: u32,
    /// True mean rate that it sends out of its rack, in bit/s.
    pub egress_bps: u64,
    /// True mean rate that it receives from outside its rack, in bit/s.
    pub ingress_bps: u64,
}

/// Common properties of tasks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellKind {
    /// Demand of each task, as the scheduler assumes it.
    pub demand: Task,
    /// True peak over mean of each task's send and receive rates; at least 1.
    pub peak: f64,
    /// Swing of the mean rate over a day, as a share of the mean rate, up and down.
    pub day: f64,
    /// Share of a tolerant task's work that waits for the network.
    pub network_share: f64,
    /// Time for which a move stops a task, in seconds.
    pub restart: f64,
    /// Time in which the tasks send and receive more than their mean rates, which the scheduler does not know.
    pub growth: Option<GrownDemand>,
}

/// A time in which tasks send and receive a multiple of their rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GrownDemand {
    /// Start, in seconds. It is negative if the demand grew before the run.
    pub from: f64,
    /// End, in seconds.
    pub until: f64,
    /// Rate over the rate without growth; at least 1.
    pub factor: f64,
}

impl GrownDemand {
    /// Returns the factor at a time: 1 before and after the growth.
    #[inline]
    pub fn factor_at(&self, seconds: f64) -> f64 {
        if (self.from..self.until).contains(&seconds) { self.factor } else { 1.0 }
    }
}

/// A disk server of a cell: it runs on its host for the entire run, and its traffic crosses the link of the rack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DiskServer {
    /// Its host.
    pub host: HostId,
    /// Mean rate that it sends, and that it receives, in bit/s.
    pub bps: u64,
    /// Peak over mean of its rates; at least 1.
    pub peak: f64,
    /// Swing of the mean rates over a day, as a share of the mean rates, up and down.
    pub day: f64,
}

/// A new capacity of a link from a time on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CapacityChange {
    /// Time, in seconds.
    pub at: f64,
    /// The link.
    pub resource: ResourceId,
    /// New capacity.
    pub capacity: Load,
    /// True if the ledger is informed.
    pub announced: bool,
}

/// A job of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct CellJob {
    /// Name in its source.
    pub name: String,
    /// Limits on its moves.
    pub availability: Availability,
    /// Tags that its tasks' hosts must have, as bits of [`leeward_fabric::Fabric::tag_mask`].
    pub tags: u64,
}

/// A background transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// Start time, in seconds.
    pub start: f64,
    /// Source.
    pub from: Endpoint,
    /// Destination.
    pub to: Endpoint,
    /// Size.
    pub bytes: Bytes,
    /// Its coflow, by position in [`Workload::coflows`]. All flows of a coflow start at its arrival.
    pub coflow: Option<u32>,
}

/// A traffic `rate` that `resource` carries from `at` on, in its native unit. This traffic does not share the capacity
/// with flows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateChange {
    /// Time, in seconds.
    pub at: f64,
    /// The link.
    pub resource: ResourceId,
    /// New background rate.
    pub rate: Load,
}

/// A file that one task writes, block after block, once the task has fetched its input.
#[derive(Clone, Debug, PartialEq)]
pub struct FileWrite {
    /// Start of its task, in seconds: start of its fetches, or of its first block if it has none.
    pub start: f64,
    /// The job it belongs to, by position in [`Workload::jobs`].
    pub job: Option<u32>,
    /// Host of the task that writes it, unless the task chooses one.
    pub writer: HostId,
    /// Size.
    pub bytes: Bytes,
    /// Block size; the last block may be smaller.
    pub block: Bytes,
    /// Number of copies of each block, including the writer's.
    pub replicas: u8,
    /// Layout: copies or chunks.
    pub layout: Layout,
    /// The task's share of its job's shuffle, by host of its map tasks. The parts of other hosts than the task's own are
    /// transfers that all begin with the task. The first block is requested when the last one has arrived.
    pub fetches: Vec<Fetch>,
    /// If true, the writer could be anywhere: its own outbound links never delay its blocks.
    pub flexible: bool,
    /// Rate at which the task produces its output, in bytes per second; positive. No block is written faster. Infinite
    /// for a task that never delays its own blocks.
    pub pace: f64,
    /// The end of the task's first attempt, if that fails.
    pub failure: Option<Failure>,
    /// Hosts from which the task chooses its own; `None` if it runs on `writer`.
    pub choices: Option<HostChoices>,
}

impl FileWrite {
    /// Returns the parts of the shuffle that its task fetches over the network if it runs on `host`.
    pub fn remote_fetches(&self, host: HostId) -> impl Iterator<Item = &Fetch> {
        self.fetches.iter().filter(move |fetch| fetch.from != host)
    }
}

/// The end of an attempt that fails. The task runs again, from the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Number of blocks after which it fails, from 1.
    pub blocks: u64,
    /// Host of the next attempt; one more to choose from if the task chooses.
    pub host: HostId,
}

/// A part of a shuffle, from the host of a map task to the host of the task that fetches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// Host of the part.
    pub from: HostId,
    /// Size.
    pub bytes: Bytes,
}

/// Tasks that arrive together, each with its file. A job ends with the last of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Name in its source.
    pub name: String,
    /// Submission time, in seconds. The time is negative for a job in progress when the run began.
    pub start: f64,
}

/// A loaded workload, and its provenance.
#[derive(Clone, PartialEq, Debug)]
pub struct Loaded {
    /// Workload that arrives.
    pub workload: Workload,
    /// Kind and counts of the source, on one line, with all omissions.
    pub provenance: String,
}
