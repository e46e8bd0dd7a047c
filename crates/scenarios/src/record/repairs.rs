//! Records of repairs: re-replication of blocks whose copies, or chunks, were on hosts that failed.

use leeward_fabric::{Bytes, HostId};

/// A repair of a block.
#[derive(Clone, Debug, PartialEq)]
pub struct Repair {
    /// The block, by position in [`super::Record::blocks`].
    pub block: u32,
    /// Hosts that sent: one with a copy, or as many with a chunk as the code has of data.
    pub from: Box<[HostId]>,
    /// Hosts with the lost copies.
    pub missing: Box<[HostId]>,
    /// New hosts, each for the one in `missing` at its position.
    pub to: Box<[HostId]>,
    /// Size of each copy, or chunk.
    pub bytes: Bytes,
    /// Time at which the first of the lost copies counted as lost.
    pub lost: f64,
    /// Start of its transfers.
    pub started: f64,
    /// Time at which the last new copy was on disk.
    pub finished: Option<f64>,
    /// Time at which one of its hosts failed before that, or at which the block was deleted.
    pub abandoned: Option<f64>,
}

impl Repair {
    /// Time from the loss to the last new copy, in seconds.
    pub fn duration(&self) -> Option<f64> {
        self.finished.map(|finished| finished - self.lost)
    }

    /// Time of its transfers, in seconds.
    pub fn transfer_time(&self) -> Option<f64> {
        self.finished.map(|finished| finished - self.started)
    }
}
