//! Seeded tie-breaking and random draws by Splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom
//! number generators", 2014). The mixer is a bijection of sufficient quality to break ties, and cheap enough
//! to run for every candidate. The code stays hand-written because results must be bit-identical across
//! versions of any random library.

/// Hash that breaks the ties of one request.
#[derive(Clone, Copy)]
pub(crate) struct Ties(u64);

impl Ties {
    pub fn new(seed: u64, request: u64) -> Ties {
        Ties(splitmix(splitmix(seed) ^ request))
    }

    /// Rank of an item among equals; a function of seed, request and item.
    pub fn rank(self, thing: u64) -> u64 {
        splitmix(self.0 ^ thing)
    }
}

fn splitmix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Sequence of random draws of one request.
pub(crate) struct Draws {
    ties: Ties,
    next: u64,
}

impl Draws {
    pub fn new(seed: u64, request: u64) -> Self {
        Draws { ties: Ties::new(seed, request), next: 0 }
    }

    /// A random position below `n`, uniform up to one part in 2^32 for cluster sizes.
    pub fn below(&mut self, n: u32) -> u32 {
        self.next += 1;
        let draw = self.ties.rank(self.next) >> 32;
        ((draw * u64::from(n)) >> 32) as u32
    }
}
