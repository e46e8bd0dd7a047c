//! Seeded tie-breaking and random draws by Splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom
//! number generators", 2014). The mixer is a bijection of sufficient quality to break ties, and cheap enough
//! to run for every candidate. No random library takes part, because results must be bit-identical across library
//! versions.

use leeward_registry::splitmix;

/// Hash that breaks the ties of one request.
#[derive(Clone, Copy)]
pub struct Ties(u64);

impl Ties {
    /// Hash of a request under the seed of a run.
    pub fn new(seed: u64, request: u64) -> Ties {
        Ties(splitmix(splitmix(seed) ^ request))
    }

    /// Rank of an item among equals; a function of seed, request and item.
    pub fn rank(self, item: u64) -> u64 {
        splitmix(self.0 ^ item)
    }
}

/// Sequence of random draws of one request.
pub(crate) struct RequestDraws {
    ties: Ties,
    next: u64,
}

impl RequestDraws {
    pub fn new(seed: u64, request: u64) -> Self {
        RequestDraws { ties: Ties::new(seed, request), next: 0 }
    }

    /// A random position below `n`, uniform up to one part in 2^32 for cluster sizes.
    pub fn below(&mut self, n: u32) -> u32 {
        self.next += 1;
        let draw = self.ties.rank(self.next) >> 32;
        ((draw * u64::from(n)) >> 32) as u32
    }
}
