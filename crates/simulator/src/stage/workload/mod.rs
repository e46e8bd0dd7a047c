//! What a simulated cluster is asked to carry, before anything is placed.
//!
//! A workload is plain data in order of time: background that placement does not move (flows, or rates on
//! links), and file writes whose replicas a policy places. A file is written by one task, which may fetch a share of
//! its job's shuffle first; tasks that come together are a job. Every source (a generator, an importer) makes one of
//! these, and a scenario merges several.
//!
//! ```text
//! facebook          generated           writes, and background as rates or flows
//! coflow            benchmark trace     background flows
//! swim              job trace           writes, and with phases the shuffles before them
//! blocks            CSV, Parquet        writes
//! flows, rates      CSV, Parquet        background
//! matrix            CSV, Parquet pairs  background as flows or rates
//! cell              generated           tasks of a cell, which a policy places
//! tasks             CSV, Parquet        tasks of a cell
//! reads             generated           reads of the blocks that were written
//! app               app file, CSV       apps, which a policy places
//! ```
//!
//! A source is read whole or refused whole, with the file, line and field of what is wrong ([`leeward_fabric::input`]); what
//! it drew depends on the seed alone ([`crate::stage::random`]); what it left out stands in its provenance line.

mod app;
mod blocks;
mod cell;
mod coflow;
mod facebook;
mod flows;
mod inputs;
mod list;
mod matrix;
mod merge;
mod phases;
mod rates;
mod reads;
mod settings;
mod source;
mod swim;
mod tasks;

pub use app::App;
pub use blocks::Blocks;
pub use cell::{Cell, Constrained, History, UnknownPeak};
pub use coflow::{Coflow, Spread};
pub use facebook::{Background, Facebook, Shares};
pub use flows::{Flows, Numbers};
pub use inputs::{Inputs, ReadTable};
use std::sync::Arc;

use leeward_engine::{Availability, HistorySettings};
use leeward_fabric::{Bytes, Endpoint, HostId, Load, ResourceId};
use leeward_placement::replicas::Layout;
use leeward_placement::tasks::{AppRequest, Task};
pub use matrix::{Matrix, Order};
pub use phases::Phases;
pub use rates::Rates;
pub use reads::{Degraded, ReadStream, Readers, Reads};
pub use settings::{Coding, Factor, Share};
pub use source::{Loaded, Source};
pub use swim::Swim;
pub use tasks::Tasks;

/// Flows, files, fetches or rates of one source at most: what a wrong setting or a damaged file can make of memory.
pub(crate) const MOST_RECORDS: usize = 30_000_000;

/// Blocks of one file at most; a block's id is its file's number and its own.
pub(crate) const MOST_BLOCKS: u64 = 1 << 24;

/// Everything that arrives at a cluster in one run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// Background transfers, by start.
    pub flows: Vec<Flow>,
    /// Background as rates on links, by time.
    pub rates: Vec<RateChange>,
    /// Files to be written, by start.
    pub files: Vec<FileWrite>,
    /// Jobs that the files belong to, by start.
    pub jobs: Vec<Job>,
    /// Tasks of a cell, by arrival.
    pub tasks: Vec<CellTask>,
    /// What tasks have in common.
    pub cell_kinds: Vec<CellKind>,
    /// Jobs that the tasks belong to.
    pub cell_jobs: Vec<CellJob>,
    /// Reads of what was written, a stream for each source.
    pub reads: Vec<ReadStream>,
    /// How the scheduler estimates what tasks of a cell demand, if it does.
    pub history: Option<HistorySettings>,
    /// Apps, by arrival.
    pub apps: Vec<AppArrival>,
}

/// An app that arrives: it is placed, sends what its matrix says, all at once, and ends with the last transfer.
#[derive(Clone, Debug, PartialEq)]
pub struct AppArrival {
    /// When it arrives, in seconds.
    pub arrive: f64,
    /// What results call it.
    pub name: String,
    /// Its tasks and transfers. Its number and job are given by the plant.
    pub request: Arc<AppRequest>,
}

/// A task of a cell: it arrives, is put on a host, runs, and leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellTask {
    /// When it arrives, in seconds.
    pub arrive: f64,
    /// How long it runs where nothing holds it up, in seconds.
    pub duration: f64,
    /// Its job, by position in [`Workload::cell_jobs`].
    pub job: u32,
    /// What it is like, by position in [`Workload::cell_kinds`].
    pub kind: u32,
    /// What it truly sends out of its rack in the mean, in bit/s.
    pub egress_bps: u64,
    /// What it truly receives from outside its rack in the mean, in bit/s.
    pub ingress_bps: u64,
}

/// What tasks have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellKind {
    /// What the scheduler is told that each demands.
    pub told: Task,
    /// Peak over mean of what each truly sends and receives; at least 1.
    pub peak: f64,
    /// How far the mean rises above itself over a day, and falls below, as a share.
    pub day: f64,
    /// The share of its work that waits for the network, if it is tolerant.
    pub network_share: f64,
    /// How long it is down when it is moved, in seconds.
    pub restart: f64,
}

/// A job of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct CellJob {
    /// What the source calls it.
    pub name: String,
    /// How much moving it can bear.
    pub availability: Availability,
    /// Tags that its tasks' hosts must have, as [`leeward_fabric::Fabric::tag_mask`] gives them.
    pub tags: u64,
}

/// A background transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Flow {
    /// When it starts, in seconds.
    pub start: f64,
    /// Where it comes from.
    pub from: Endpoint,
    /// Where it goes.
    pub to: Endpoint,
    /// What it carries.
    pub bytes: Bytes,
}

/// From `at` on, `resource` carries `rate` of traffic that yields to nobody (in its native unit).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateChange {
    /// When, in seconds.
    pub at: f64,
    /// The link.
    pub resource: ResourceId,
    /// Its background from then on.
    pub rate: Load,
}

/// A file to be written by one task, block after block, once the task has fetched what it needs.
#[derive(Clone, Debug, PartialEq)]
pub struct FileWrite {
    /// When its task begins, in seconds: to fetch, or else to ask for the first block.
    pub start: f64,
    /// The job it belongs to, by position in [`Workload::jobs`].
    pub job: Option<u32>,
    /// The host of the task that writes it.
    pub writer: HostId,
    /// Its size.
    pub bytes: Bytes,
    /// The size of its blocks; the last may be smaller.
    pub block: Bytes,
    /// Copies of each block, the writer's included.
    pub replicas: u8,
    /// Whether they are copies, or chunks.
    pub layout: Layout,
    /// The task's share of its job's shuffle, as transfers to the writer that all begin with the task; the first block
    /// is asked for when the last of them is there.
    pub fetches: Vec<Fetch>,
    /// Whether the writer could be anywhere: its own links out then never hold its blocks up.
    pub flexible: bool,
}

/// A part of a shuffle: from the host of a map task to that of the task that fetches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// Where it lies.
    pub from: HostId,
    /// How much it is.
    pub bytes: Bytes,
}

/// Tasks that come together, each with its file; a job ends with the last of them.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// What the source calls it.
    pub name: String,
    /// When it was submitted, in seconds. Negative for a job that was under way when the run began.
    pub start: f64,
}
