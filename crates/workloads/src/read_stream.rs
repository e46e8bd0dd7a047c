//! The reads of one source. Each read is a function of the seed and of its number.

use std::sync::Arc;

use leeward_fabric::{Bytes, HostId};
use leeward_registry::random::Draws;

/// Purposes of a read's draws.
const GAP: u64 = 0;
const BLOCK: u64 = 1;
const READER: u64 = 2;
const HOLDER: u64 = 3;
const REPLACEMENTS: u64 = 4;

/// Reads of one source, each by its number.
#[derive(Clone, PartialEq, Debug)]
pub struct ReadStream {
    /// Start time, in seconds.
    pub start: f64,
    /// End time, in seconds; no read is requested then or later.
    pub end: f64,
    /// Mean number per second.
    pub per_second: f64,
    /// Bytes read of a block or chunk.
    pub size: Bytes,
    /// Exponent of Zipf's law over blocks.
    pub skew: f64,
    /// Time to wait for a chunk before other chunks replace it, in seconds.
    pub degraded_after: Option<f64>,
    /// Hosts that read.
    pub readers: Arc<[HostId]>,
    pub(crate) draws: Draws,
}

impl ReadStream {
    /// Returns the time of read `number`, if it is before the end. `last` is the time of the previous read, or the
    /// start.
    pub fn arrival(&self, number: u64, last: f64) -> Option<f64> {
        let gap = -(-self.draws.draw(number, GAP)).ln_1p() / self.per_second;
        Some(last + gap).filter(|&at| at < self.end)
    }

    /// Returns the reading host.
    pub fn reader(&self, number: u64) -> HostId {
        self.readers[one_of(self.readers.len(), self.draws.draw(number, READER))]
    }

    /// Returns the position of its block among the written ones, as a share from 0 to 1.
    pub fn block(&self, number: u64) -> f64 {
        self.draws.draw(number, BLOCK)
    }

    /// Returns the copy or chunk to read, out of `count`.
    pub fn holder(&self, number: u64, count: usize) -> usize {
        one_of(count, self.draws.draw(number, HOLDER))
    }

    /// Returns the rank of a replacement chunk; the chunks with the lowest ranks are used. `chunk` is a position in the
    /// stripe.
    pub fn rank(&self, number: u64, chunk: usize) -> f64 {
        self.draws.draw(number, REPLACEMENTS + chunk as u64)
    }
}

/// Maps a draw from 0 to 1 to one of `count` indices.
fn one_of(count: usize, draw: f64) -> usize {
    ((draw * count as f64) as usize).min(count.saturating_sub(1))
}
