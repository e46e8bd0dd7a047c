//! Random streams, one for each thing that draws: a function of (seed, kind of thing, its index) and of nothing else.
//!
//! Because a stream belongs to a job, a rack or a host and not to a run, what one of them draws never shifts what
//! another draws. Two policies under one seed therefore see the same arrivals, and a longer horizon, a thinned
//! trace or one more source leaves every draw that both runs have in common as it was.
//!
//! A stream is ChaCha with 8 rounds (the same on every machine, unlike the default generators of `rand`). Its key is
//! the seed followed by the name of the kind, its stream number is the index: no two of them can coincide.
//! Distributions come from `rand_distr`.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// A kind of thing that draws, by name. The name is part of the key: to rename is to redraw.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Kind([u8; 24]);

impl Kind {
    /// The kind of that name, of at most 24 bytes; longer names do not compile in a constant.
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

/// The stream of the `index`th thing of a kind.
pub fn stream(seed: u64, kind: Kind, index: u64) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    key[8..].copy_from_slice(&kind.0);
    let mut stream = ChaCha8Rng::from_seed(key);
    stream.set_stream(index);
    stream
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
}
