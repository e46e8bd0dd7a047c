//! Places of requests on a volume.

use leeward_registry::random;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::{BLOCK, ShapeError, check};

/// Endless offsets of requests: at the end of the previous request, or at a random block. A trace without offsets gets
/// its places from here.
pub struct Places {
    random: ChaCha8Rng,
    volume: u64,
    sequential_share: f64,
    end: Option<u64>,
}

impl Places {
    /// Places on a volume of this size in bytes, at most 2^60. `sequential_share` is the share of requests, among all but
    /// the first, that start at the end of the previous one.
    ///
    /// # Errors
    /// Fails with the name of the argument that is out of range.
    pub fn new(volume: u64, sequential_share: f64, seed: u64) -> Result<Places, ShapeError> {
        check("volume", volume as f64, volume <= 1 << 60, "at most 2^60 bytes")?;
        check("sequential_share", sequential_share, (0.0..=1.0).contains(&sequential_share), "0 to 1")?;
        let random = random::stream(seed, random::Kind::named("places"), 0);
        Ok(Places { random, volume, sequential_share, end: None })
    }

    /// The offset of the next request, of this size in bytes. A request larger than the volume starts at its begin.
    pub fn place(&mut self, size: u64) -> u64 {
        let (draw, position): (f64, f64) = (self.random.random(), self.random.random());
        let room = self.volume.saturating_sub(size);
        let sequential = draw < self.sequential_share;
        let next = self.end.filter(|&end| sequential && end <= room);
        let offset = next.unwrap_or((room as f64 * position) as u64 / BLOCK * BLOCK);
        self.end = Some(offset.saturating_add(size));
        offset
    }
}
