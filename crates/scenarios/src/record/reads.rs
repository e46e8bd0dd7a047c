//! Records of reads.

use leeward_fabric::{Bytes, HostId};

/// A read of a part of a block.
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    /// Number among all generated reads, which is the same under every policy.
    pub number: u32,
    /// The block, by position in [`super::Record::blocks`].
    pub block: u32,
    /// Reading host.
    pub reader: HostId,
    /// Host of the copy that was read (the last attempt), or host of the requested chunk. `None` if no host with a copy
    /// was up.
    pub holder: Option<HostId>,
    /// Hosts of the chunks that replaced the requested one; empty if the read is not degraded.
    pub chunks: Box<[HostId]>,
    /// Requested bytes.
    pub bytes: Bytes,
    /// Bytes carried by abandoned transfers.
    pub wasted: Bytes,
    /// True if the read failed because too few of its possible hosts were up.
    pub lost: bool,
    /// Time of the request.
    pub asked: f64,
    /// Time at which all bytes had arrived.
    pub finished: Option<f64>,
}

/// Generated reads that were skipped, from the beginning of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SkippedReads {
    /// Reads before any block was written.
    pub without_data: u64,
    /// Reads by a host that was down.
    pub reader_down: u64,
}

impl Read {
    /// Time from the request to the last byte, in seconds.
    pub fn duration(&self) -> Option<f64> {
        self.finished.map(|finished| finished - self.asked)
    }

    /// Returns true if other chunks replaced the requested one.
    pub fn is_degraded(&self) -> bool {
        !self.chunks.is_empty()
    }

    /// Returns true if it used a device of the reader's host, and crossed no link.
    pub fn is_local(&self) -> bool {
        !self.is_degraded() && self.holder == Some(self.reader)
    }

    /// Bytes to fetch for the read: the requested bytes, or for a degraded read this number from each chunk.
    pub fn fetched(&self) -> Bytes {
        Bytes(self.bytes.0 * self.chunks.len().max(1) as u64)
    }
}
