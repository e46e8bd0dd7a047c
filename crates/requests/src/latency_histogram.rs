//! Compact histogram of latencies.
//!
//! The buckets are the buckets of an HDR histogram with two significant digits. This file replaces the crate
//! `hdrhistogram`: percentiles here have an exact decimal rank, and mean and sum are exact. The crate rounds ranks and
//! means in floating point. Only the ten lines that map a latency to its bucket could come from the crate.

use leeward_fabric::Nanos;

/// Significant bits of a latency: 128 buckets per power of two.
const BITS: u32 = 7;

/// Counts of latencies in buckets with a relative width of 1/128. Percentiles are at most 0.8 % too large and never too
/// small. Memory grows with the largest latency: at most 58 KB, typically a third of that.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LatencyHistogram {
    counts: Vec<u64>,
    count: u64,
    sum: u128,
    largest: u64,
}

impl LatencyHistogram {
    /// Counts a latency in nanoseconds.
    #[inline]
    pub fn add(&mut self, latency: u64) {
        let bucket = bucket(latency);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.count += 1;
        self.sum += u128::from(latency);
        self.largest = self.largest.max(latency);
    }

    /// Adds the counts of another histogram.
    pub fn add_all(&mut self, other: &LatencyHistogram) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(sum, count)| *sum += count);
        self.count += other.count;
        self.sum += other.sum;
        self.largest = self.largest.max(other.largest);
    }

    /// Removes all counts.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        (self.count, self.sum, self.largest) = (0, 0, 0);
    }

    /// Number of latencies.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Largest latency, exact.
    pub fn largest(&self) -> Nanos {
        Nanos(self.largest)
    }

    /// Mean in seconds, exact except for rounding; `None` without latencies.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64 / 1e9)
    }

    /// Sum in nanoseconds.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Returns the smallest latency that `percent` of all latencies do not exceed, in nanoseconds. It is up to 0.8 %
    /// too large, and at most the largest latency. `None` without latencies.
    pub fn percentile(&self, percent: f64) -> Option<u64> {
        let rank = rank(percent, self.count)?;
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Some(upper(bucket).min(self.largest));
            }
        }
        None
    }
}

/// Returns the rank, from 1, of the smallest of `count` sorted values that `percent` of them do not exceed.
pub fn rank(percent: f64, count: u64) -> Option<u64> {
    // 99.9 % of 1000 must be 999, although 99.9 / 100 * 1000 may be larger in floating point.
    let rank = (percent / 100.0 * count as f64 * (1.0 - 4.0 * f64::EPSILON)).ceil() as u64;
    (count > 0).then(|| rank.clamp(1, count))
}

#[inline]
fn bucket(latency: u64) -> usize {
    let shift = (64 - BITS).saturating_sub(latency.leading_zeros()).saturating_sub(1);
    ((u64::from(shift) << BITS) + (latency >> shift)) as usize
}

/// Largest latency of a bucket.
fn upper(bucket: usize) -> u64 {
    let shift = ((bucket >> BITS) as u32).saturating_sub(1);
    let low = (bucket as u64 - (u64::from(shift) << BITS)) << shift;
    low + ((1u64 << shift) - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_percentile_exceeds_the_exact_one_by_at_most_a_128th(
            latencies in prop::collection::vec((0u64..=u64::MAX, 0u32..64), 1..200),
            percent in 0.1..100.0f64,
        ) {
            let mut exact: Vec<u64> = latencies.into_iter().map(|(value, shift)| value >> shift).collect();
            let mut histogram = LatencyHistogram::default();
            exact.iter().for_each(|&latency| histogram.add(latency));
            exact.sort_unstable();
            let expected = exact[rank(percent, exact.len() as u64).unwrap() as usize - 1];
            let estimate = histogram.percentile(percent).unwrap();
            prop_assert!(
                estimate >= expected && estimate - expected <= expected / 128,
                "{}, exact {}", estimate, expected
            );
            prop_assert_eq!(histogram.largest().0, exact[exact.len() - 1]);
        }
    }

    #[test]
    fn rounding_does_not_shift_the_rank() {
        for (percent, count, expected) in [
            (99.9, 1000, 999),
            (99.9, 1001, 1000),
            (50.0, 3, 2),
            (90.0, 10, 9),
            (99.99, 100_000, 99_990),
            (0.0, 5, 1),
            (100.0, 5, 5),
        ] {
            assert_eq!(rank(percent, count), Some(expected), "{percent} % of {count}");
        }
        assert_eq!(rank(50.0, 0), None);
    }

    #[test]
    fn a_sum_of_histograms_has_the_latencies_of_both() {
        let (mut one, mut other, mut all) =
            (LatencyHistogram::default(), LatencyHistogram::default(), LatencyHistogram::default());
        for latency in 0..2000 {
            if latency % 3 == 0 {
                one.add(latency)
            } else {
                other.add(latency * latency)
            }
            all.add(if latency % 3 == 0 { latency } else { latency * latency });
        }
        one.add_all(&other);
        assert_eq!(one, all);
    }

    #[test]
    fn a_cleared_histogram_is_empty() {
        let mut histogram = LatencyHistogram::default();
        histogram.add(7);
        histogram.clear();
        assert_eq!((histogram.count(), histogram.percentile(50.0), histogram.mean()), (0, None, None));
    }
}
