//! Random streams, each a function of the seed and of its name only: an additional draw from one stream never shifts
//! another.
//!
//! A stream is ChaCha with 8 rounds, the same on every machine. Its key is the seed followed by the name.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// The stream with this name, of at most 24 bytes.
pub(crate) fn stream(seed: u64, name: &str) -> ChaCha8Rng {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    for (to, from) in key[8..].iter_mut().zip(name.as_bytes()) {
        *to = *from;
    }
    ChaCha8Rng::from_seed(key)
}
