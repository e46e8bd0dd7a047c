//! Simulator of cells: several controllers, each with its part of a network, which share a spine.
//!
//! ```text
//! cell 0:  Engine --digest of its core links-->  Directory of each other cell
//!          Asks   --ask: copies of a block--->   Grants: the other cell decides on its own ledger, and commits
//!          <--answer: hosts, and a digest----
//! ```
//!
//! **A link has one owner.** A cell has the links of its hosts, racks and pods, and only its engine commits load to
//! them. A cell knows the others by a [`Digest`] of their links from the core. A digest is a hint where to ask, and
//! never a decision: the asked cell decides by its own policy on its own ledger, and commits its part of the path. The
//! asking cell then commits the other part. So stale or lost digests cost quality, and never make two controllers
//! commit to one link.
//!
//! **Messages may be late or lost.** A request has a key; a cell that is asked again under one key gives the same
//! answer. A grant whose writer is never heard of again ends with its lease. A cell whose digest is too old takes no
//! work from others, like a link that is not seen.
//!
//! **The simulation.** Files are written at constant rates ([`leeward_workloads::Facebook`] draws them), beside a
//! background that only telemetry shows. Loads of links are sums of integers, which may exceed the capacity: the
//! excess is work that has to wait. Each event costs what it changes; a report costs the links of racks and pods, and
//! hosts cost nothing. All cells have the same fabric in memory.
//!
//! A [`Scenario`] runs several [`Arm`]s on the same arrivals: one ledger for the whole network, and cells for each
//! interval of digests and each share of lost messages. A run is a function of its scenario and its arm.

mod agenda;
mod arrivals;
mod asks;
mod background;
mod channel;
mod controller;
mod digest;
pub mod file;
mod geometry;
mod grants;
mod network;
mod plan;
mod records;
mod scenario;
mod simulation;
mod summary;
mod truth;

pub use digest::{Choice, Digest, Directory, PodRoom};
pub use geometry::{Direction, Geometry};
pub use plan::Arm;
pub use records::{Counts, Residue, RunRecord, Sample, Sides};
pub use scenario::{RunError, Scenario, Work};
pub use summary::Summary;
