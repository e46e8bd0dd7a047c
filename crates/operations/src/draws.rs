//! Random numbers of jobs and workers, and the distributions that they draw from.

use leeward_registry::random::Draws;

/// Draws of one entity: a job's arrival, a worker, or a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    draws: Draws,
    index: u64,
    number: u64,
}

impl Stream {
    /// Creates the stream of the entity with an index among those of a kind.
    pub fn new(draws: Draws, index: u64) -> Stream {
        Stream { draws, index, number: 0 }
    }

    /// Draws a number from 0 to 1, 1 excluded.
    pub fn uniform(&mut self) -> f64 {
        self.number += 1;
        self.draws.draw(self.index, self.number)
    }

    /// Draws an index below `count`, which is at least 1.
    pub fn index(&mut self, count: usize) -> usize {
        ((self.uniform() * count as f64) as usize).min(count.saturating_sub(1))
    }

    /// Draws an index below `count`, which is at least 1; that of `own` only if there is no other.
    pub fn index_but(&mut self, count: usize, own: impl Fn(usize) -> bool) -> usize {
        let at = self.index(count);
        if count == 1 || !own(at) {
            return at;
        }
        // Each of the others has the same probability to replace it.
        let other = self.index(count - 1);
        other + usize::from(other >= at)
    }

    /// Draws an exponential time with a mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -(1.0 - self.uniform()).ln() * mean
    }

    /// Draws a size between two, with equal probability for each factor.
    pub fn log_uniform(&mut self, least: u64, most: u64) -> u64 {
        if least >= most {
            return least;
        }
        let (low, high) = (least.max(1) as f64, most as f64);
        ((low * (high / low).powf(self.uniform())).round() as u64).clamp(least, most)
    }
}

/// A time with a mean and a squared coefficient of variation: constant at 0, exponential at 1, and hyperexponential
/// with balanced means above.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Duration {
    /// Mean, in nanoseconds.
    pub mean: f64,
    /// Squared coefficient of variation: 0, or 1 and more.
    pub c2: f64,
}

impl Duration {
    /// Draws a time, in nanoseconds.
    pub fn draw(&self, stream: &mut Stream) -> u64 {
        let time = if self.c2 < 1.0 {
            self.mean
        } else {
            let share = 0.5 * (1.0 + ((self.c2 - 1.0) / (self.c2 + 1.0)).sqrt());
            let of_branch = if stream.uniform() < share { share } else { 1.0 - share };
            stream.exponential(self.mean / (2.0 * of_branch))
        };
        time.round() as u64
    }
}

#[cfg(test)]
mod tests {
    use leeward_registry::random::Kind;

    use super::*;

    fn stream() -> Stream {
        Stream::new(Draws::new(1, Kind::named("test")), 7)
    }

    #[test]
    fn durations_have_their_mean_and_variation() {
        for (mean, c2) in [(1000.0, 0.0), (1000.0, 1.0), (5000.0, 3.6)] {
            let (mut stream, count) = (stream(), 200_000);
            let times: Vec<f64> =
                (0..count).map(|_| Duration { mean, c2 }.draw(&mut stream) as f64).collect();
            let drawn = times.iter().sum::<f64>() / f64::from(count);
            let variance = times.iter().map(|time| (time - drawn).powi(2)).sum::<f64>() / f64::from(count);
            assert!((drawn / mean - 1.0).abs() < 0.02, "mean {drawn} for {mean}");
            assert!((variance / drawn / drawn - c2).abs() < 0.03 * (1.0 + c2), "C^2 of {mean}, {c2}");
        }
    }

    #[test]
    fn every_index_but_the_own_one_comes_equally_often() {
        let mut stream = stream();
        let (count, draws) = (5, 40_000);
        let mut seen = [0_u32; 5];
        for _ in 0..draws {
            seen[stream.index_but(count, |at| at == 2)] += 1;
        }
        assert_eq!(seen[2], 0);
        for at in [0, 1, 3, 4] {
            assert!((9600..10_400).contains(&seen[at]), "{seen:?}");
        }
        assert_eq!(stream.index_but(1, |_| true), 0);
    }

    #[test]
    fn sizes_are_between_their_bounds_and_as_often_small_as_large() {
        let mut stream = stream();
        let sizes: Vec<u64> = (0..10_000).map(|_| stream.log_uniform(100_000, 1_000_000)).collect();
        assert!(sizes.iter().all(|size| (100_000..=1_000_000).contains(size)));
        let small = sizes.iter().filter(|&&size| size < 316_228).count();
        assert!((4800..5200).contains(&small), "{small} of 10,000 below the middle");
        assert_eq!(stream.log_uniform(5, 5), 5);
    }
}
