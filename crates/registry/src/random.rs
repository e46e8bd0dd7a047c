//! Random streams, one for each entity that draws. A stream depends only on the seed, the kind of the entity and the
//! entity's index.
//!
//! A stream belongs to a job, a rack or a host and not to a run. Draws of one entity therefore never shift the draws of
//! another. Two policies under one seed see the same arrivals. A longer horizon, a thinned trace or one more source
//! does not change the draws that two runs have in common.
//!
//! A stream is ChaCha with 8 rounds, which is the same on every machine, unlike the default generators of `rand`. The
//! key is the seed followed by the name of the kind, and the stream number is the index. No two streams can be the
//! same. Distributions come from `rand_distr`.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::splitmix;

/// A kind of entity that draws, by name. The name is part of the key: a new name means new draws.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kind([u8; 24]);

impl Kind {
    /// Creates the kind of a name of at most 24 bytes; longer names do not compile in a constant.
    pub const fn named(name: &str) -> Kind {
        let (name, mut bytes) = (name.as_bytes(), [0; 24]);
        assert!(name.len() <= bytes.len(), "the name of a kind has at most 24 bytes");
        let mut at = 0;
        while at < name.len() {
            bytes[at] = name[at];
            at += 1;
        }
        Kind(bytes)
    }
}

/// Returns the stream of the `index`th entity of a kind.
pub fn stream(seed: u64, kind: Kind, index: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..].copy_from_slice(&kind.0);
    let mut stream = ChaCha8Rng::from_seed(key);
    stream.set_stream(index);
    stream
}

/// Draws by number, for entities that draw too often for a stream of their own. A draw is a value from 0 to 1: the
/// [`splitmix()`] hash of the seed, the kind and index of the entity, and the number of the draw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Draws(u64);

impl Draws {
    /// Creates the draws of a kind of entity.
    pub fn new(seed: u64, kind: Kind) -> Draws {
        let words =
            kind.0.chunks_exact(8).map(|word| word.iter().rev().fold(0, |all, &b| all << 8 | u64::from(b)));
        Draws(words.fold(splitmix(seed), |all, word| splitmix(all ^ word)))
    }

    /// Returns a draw from 0 to 1, 1 excluded.
    #[inline]
    pub fn draw(self, index: u64, number: u64) -> f64 {
        // A float holds the high 53 bits.
        (splitmix(splitmix(self.0 ^ index) ^ number) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand::RngExt;

    use super::*;

    const JOB: Kind = Kind::named("job");
    const HOST: Kind = Kind::named("host");

    #[test]
    fn a_stream_repeats_and_no_two_streams_agree() {
        let mut first_draws = BTreeSet::new();
        for seed in 0..4 {
            for kind in [JOB, HOST] {
                for index in 0..100 {
                    let draw: u64 = stream(seed, kind, index).random();
                    assert_eq!(draw, stream(seed, kind, index).random::<u64>());
                    assert!(first_draws.insert(draw));
                }
            }
        }
    }

    #[test]
    fn streams_are_the_same_in_every_version_of_leeward() {
        let draws: Vec<u32> = (0..3).map(|index| stream(7, JOB, index).random()).collect();
        insta::assert_debug_snapshot!(draws);
    }

    #[test]
    fn draws_by_number_are_even_and_no_two_agree() {
        let mut seen = BTreeSet::new();
        let mut sums = [0.0; 2];
        for (kind, sum) in [JOB, HOST].into_iter().zip(&mut sums) {
            let draws = Draws::new(7, kind);
            for (index, number) in (0..100).flat_map(|index| (0..100).map(move |number| (index, number))) {
                let draw = draws.draw(index, number);
                assert!((0.0..1.0).contains(&draw) && seen.insert(draw.to_bits()));
                *sum += draw;
            }
        }
        // The mean of 10,000 uniform draws has a standard deviation of 0.003.
        assert!(sums.iter().all(|sum| (sum / 10_000.0 - 0.5).abs() < 0.012), "{sums:?}");
    }
}
