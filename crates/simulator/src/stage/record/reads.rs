//! What is recorded of reads.

use leeward_fabric::{Bytes, HostId};

/// A read of a part of a block.
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    /// Its number among all reads that came up, which is the same under every policy.
    pub number: u32,
    /// The block, by position in [`super::Record::blocks`].
    pub block: u32,
    /// Who read.
    pub reader: HostId,
    /// Whose copy was read, the last one's if more than one was tried; or whose chunk was asked for. `None` if no host with a
    /// copy was up.
    pub holder: Option<HostId>,
    /// Whose chunks took the place of the one asked for; empty if the read is not degraded.
    pub chunks: Box<[HostId]>,
    /// What was asked for.
    pub bytes: Bytes,
    /// What was carried and counts for nothing, because the transfer was given up.
    pub wasted: Bytes,
    /// Whether it was given up because too few hosts that it could be read from were up.
    pub lost: bool,
    /// When it was asked for.
    pub asked: f64,
    /// When all of it was there.
    pub finished: Option<f64>,
}

/// Reads that came up and were not made, from the beginning of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct NotMade {
    /// Before any block was written.
    pub without_data: u64,
    /// By a host that was down.
    pub reader_down: u64,
}

impl Read {
    /// From the question to the last byte, in seconds.
    pub fn duration(&self) -> Option<f64> {
        self.finished.map(|finished| finished - self.asked)
    }

    /// Whether other chunks took the place of the one asked for.
    pub fn is_degraded(&self) -> bool {
        !self.chunks.is_empty()
    }

    /// Whether it was read from a device of the reader's own, and crossed no link.
    pub fn is_local(&self) -> bool {
        !self.is_degraded() && self.holder == Some(self.reader)
    }

    /// What it takes to have it: the bytes asked for, from each chunk if it is degraded.
    pub fn fetched(&self) -> Bytes {
        Bytes(self.bytes.0 * self.chunks.len().max(1) as u64)
    }
}
