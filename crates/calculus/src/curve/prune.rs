//! Arrival curves of fewer buckets, never below the whole one.

use super::arrival::{ArrivalCurve, meet};
use super::error::CurveError;
use crate::token_bucket::TokenBucket;

/// An arrival curve of fewer buckets.
#[derive(Clone, PartialEq, Debug)]
pub struct Pruned {
    /// The curve: some of the buckets, so nowhere below the whole curve.
    pub curve: ArrivalCurve,
    /// How far above at most, as a share of the whole curve: the largest of pruned(t) / alpha(t) - 1.
    pub error: f64,
}

impl ArrivalCurve {
    /// The fewest buckets that are nowhere more than `tolerance` times the curve above it. The first and the last bucket
    /// stay: the burst at once, and the rate in the long run.
    ///
    /// # Errors
    /// A tolerance that is negative or not finite.
    pub fn pruned_within(&self, tolerance: f64) -> Result<Pruned, CurveError> {
        if !tolerance.is_finite() || tolerance < 0.0 {
            return Err(CurveError::Tolerance(tolerance));
        }
        Ok(self.keep(&self.fewest(tolerance)))
    }

    /// At most `count` buckets, with the least error that takes (to a millionth). One bucket is that of the long-run rate.
    ///
    /// # Errors
    /// A count of 0.
    pub fn pruned_to(&self, count: usize) -> Result<Pruned, CurveError> {
        match count {
            0 => return Err(CurveError::NoBuckets),
            1 => return Ok(self.keep(&[self.buckets().len() - 1])),
            _ if count >= self.buckets().len() => return Ok(Pruned { curve: self.clone(), error: 0.0 }),
            _ => {}
        }
        // The ends alone suffice at the error they have; the fewest buckets for a tolerance never grow with it.
        let ends = self.keep(&[0, self.buckets().len() - 1]);
        let (mut low, mut high) = (0.0, ends.error);
        let mut best = ends;
        while high - low > 1e-6 * high {
            let middle = (low + high) / 2.0;
            let kept = self.fewest(middle);
            if kept.len() <= count {
                let found = self.keep(&kept);
                high = found.error.min(middle);
                best = found;
            } else {
                low = middle;
            }
        }
        Ok(best)
    }

    /// From each bucket kept to the furthest that may follow it. What is added by leaving out those between grows with
    /// the distance, so this is the fewest.
    fn fewest(&self, tolerance: f64) -> Vec<usize> {
        let last = self.buckets().len() - 1;
        let mut kept = vec![0];
        let mut from = 0;
        while from < last {
            let (mut good, mut bad) = (from + 1, last + 1);
            while bad - good > 1 {
                let middle = good + (bad - good) / 2;
                if self.excess(from, middle) <= tolerance { good = middle } else { bad = middle }
            }
            from = good;
            kept.push(from);
        }
        kept
    }

    /// The largest of min(line i, line j) / alpha - 1: it is where the two lines meet.
    fn excess(&self, i: usize, j: usize) -> f64 {
        let (a, b) = (self.buckets()[i], self.buckets()[j]);
        let seconds = meet(a, b);
        let between = b.arrivals(seconds);
        // The bucket that is the least there lies between the two: it is the last to take over before.
        let (mut low, mut high) = (i, j);
        while low < high {
            let middle = low + (high - low) / 2;
            let turned = meet(self.buckets()[middle], self.buckets()[middle + 1]) < seconds;
            if turned { low = middle + 1 } else { high = middle }
        }
        let whole = self.buckets()[low].arrivals(seconds).min(between);
        if whole > 0.0 { between / whole - 1.0 } else { 0.0 }
    }

    fn keep(&self, kept: &[usize]) -> Pruned {
        let buckets: Vec<TokenBucket> = kept.iter().map(|&index| self.buckets()[index]).collect();
        let between = kept.windows(2).map(|pair| self.excess(pair[0], pair[1]));
        // Without the first bucket the worst is at once, at t = 0.
        let at_once = if self.burst() > 0.0 { buckets[0].burst() / self.burst() - 1.0 } else { 0.0 };
        let at_once = if self.burst() == 0.0 && buckets[0].burst() > 0.0 { f64::INFINITY } else { at_once };
        let error = between.fold(at_once, f64::max);
        Pruned { curve: ArrivalCurve::new(&buckets).expect("some bucket is kept"), error }
    }
}
