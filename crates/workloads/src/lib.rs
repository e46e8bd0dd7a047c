//! Workloads of simulated clusters, before any placement.
//!
//! A workload is plain data in order of time. Placement does not move its background (flows, or rates on
//! links); a policy places the replicas of its file writes. One task writes each file, and may fetch a share
//! of its job's shuffle first; tasks that arrive together are a job. Every source (a generator, an importer)
//! produces one workload, and a scenario merges several.
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
//! A source is read completely or rejected with the file, line and field of the error
//! ([`leeward_fabric::input`]). Its draws depend on the seed only ([`leeward_registry::random`]). Its provenance
//! line lists omissions.

mod app;
mod blocks;
mod cell;
mod choices;
mod coflow;
mod facebook;
mod faults;
mod flows;
mod inputs;
mod list;
mod matrix;
mod merge;
mod model;
mod phases;
mod rates;
mod read_stream;
mod reads;
mod settings;
mod source;
mod swim;
mod tasks;

pub use app::App;
pub use blocks::Blocks;
pub use cell::{Cell, Constrained, Growth, History, Losses, UnknownPeak};
pub use choices::HostChoices;
pub use coflow::{Coflow, Spread};
pub use facebook::{Background, Facebook, Shares, Writers};
pub use faults::Faults;
pub use flows::{Flows, Numbers};
pub use inputs::{Inputs, Tables};
pub use matrix::{Matrix, Order};
pub use model::{
    AppArrival, CapacityChange, CellJob, CellKind, CellTask, DiskServer, Failure, Fetch, FileWrite, Flow,
    GrownDemand, Job, Loaded, MOST_BLOCKS, MOST_RECORDS, RateChange, Workload,
};
pub use phases::Phases;
pub use rates::Rates;
pub use read_stream::ReadStream;
pub use reads::{Degraded, Readers, Reads};
pub use settings::{Factor, Share};
pub use source::Source;
pub use swim::Swim;
pub use tasks::Tasks;
