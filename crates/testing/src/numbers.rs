//! Pseudorandom numbers for tests and benches that are too long for proptest.

use leeward_registry::{SPLITMIX_STEP, splitmix};

/// A stream of pseudorandom numbers by Splitmix64, the same on every machine.
#[derive(Clone, Debug)]
pub struct Numbers {
    state: u64,
}

impl Numbers {
    /// Creates the stream of a seed.
    pub fn new(seed: u64) -> Numbers {
        Numbers { state: seed }
    }

    /// Draws a number of 64 bits.
    pub fn draw(&mut self) -> u64 {
        let number = splitmix(self.state);
        self.state = self.state.wrapping_add(SPLITMIX_STEP);
        number
    }

    /// Draws a number from 0 to 1, 1 excluded.
    pub fn unit(&mut self) -> f64 {
        // A float holds the high 53 bits.
        (self.draw() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Draws an integer below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.unit() * n as f64) as usize
    }

    /// Draws from the exponential distribution of a mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::Numbers;

    #[test]
    fn a_stream_is_the_reference_generator() {
        // The first three outputs of the reference implementation from state 1234567.
        let mut numbers = Numbers::new(1_234_567);
        let drawn = [(); 3].map(|()| numbers.draw());
        assert_eq!(drawn, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }
}
