//! Arrival curves with fewer buckets, never below the full curve.

use super::arrival::{ArrivalCurve, meet};
use super::error::CurveError;
use crate::token_bucket::TokenBucket;

/// An arrival curve with fewer buckets.
#[derive(Clone, PartialEq, Debug)]
pub struct PrunedCurve {
    /// The curve of some of the buckets; it is nowhere below the full curve.
    pub curve: ArrivalCurve,
    /// Largest relative excess over the full curve: the maximum of pruned(t) / alpha(t) - 1.
    pub error: f64,
}

impl ArrivalCurve {
    /// The smallest set of buckets whose minimum exceeds the curve by at most the share `tolerance` at every t. The
    /// first and the last bucket always stay, because they give the burst at one moment and the long-run rate.
    ///
    /// # Errors
    /// A tolerance that is negative or not finite.
    pub fn prune_within(&self, tolerance: f64) -> Result<PrunedCurve, CurveError> {
        if !tolerance.is_finite() || tolerance < 0.0 {
            return Err(CurveError::Tolerance(tolerance));
        }
        Ok(self.keep(&self.fewest_buckets(tolerance)))
    }

    /// At most `count` buckets, with the smallest possible error (to a millionth). A count of 1 keeps the bucket of the
    /// long-run rate.
    ///
    /// # Errors
    /// A count of 0.
    pub fn prune_to(&self, count: usize) -> Result<PrunedCurve, CurveError> {
        match count {
            0 => return Err(CurveError::NoBuckets),
            1 => return Ok(self.keep(&[self.buckets().len() - 1])),
            _ if count >= self.buckets().len() => return Ok(PrunedCurve { curve: self.clone(), error: 0.0 }),
            _ => {}
        }
        // A tolerance equal to the error of the two end buckets needs only these two. A larger tolerance never needs
        // more buckets.
        let ends = self.keep(&[0, self.buckets().len() - 1]);
        let (mut low, mut high) = (0.0, ends.error);
        let mut best = ends;
        while high - low > 1e-6 * high {
            let middle = (low + high) / 2.0;
            let kept = self.fewest_buckets(middle);
            if kept.len() <= count {
                let pruned = self.keep(&kept);
                high = pruned.error.min(middle);
                best = pruned;
            } else {
                low = middle;
            }
        }
        Ok(best)
    }

    /// Indices of the fewest buckets with a relative excess of at most `tolerance`. The search steps from each kept
    /// bucket to the last bucket that may follow it. The excess grows with the number of dropped buckets, so the result
    /// is the minimum.
    fn fewest_buckets(&self, tolerance: f64) -> Vec<usize> {
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

    /// The maximum of min(line i, line j) / alpha - 1, which is at the point where the two lines meet.
    fn excess(&self, i: usize, j: usize) -> f64 {
        let (a, b) = (self.buckets()[i], self.buckets()[j]);
        let seconds = meet(a, b);
        let between = b.arrivals(seconds);
        // At this point, the minimum is a bucket between i and j: the last one that becomes the minimum before this
        // point.
        let (mut low, mut high) = (i, j);
        while low < high {
            let middle = low + (high - low) / 2;
            let earlier = meet(self.buckets()[middle], self.buckets()[middle + 1]) < seconds;
            if earlier { low = middle + 1 } else { high = middle }
        }
        let whole = self.buckets()[low].arrivals(seconds).min(between);
        if whole > 0.0 { between / whole - 1.0 } else { 0.0 }
    }

    /// The curve of the buckets with these indices.
    fn keep(&self, kept: &[usize]) -> PrunedCurve {
        let buckets: Vec<TokenBucket> = kept.iter().map(|&index| self.buckets()[index]).collect();
        let between = kept.windows(2).map(|pair| self.excess(pair[0], pair[1]));
        // Without the first bucket the largest error is at t = 0.
        let at_once = if self.burst() > 0.0 { buckets[0].burst() / self.burst() - 1.0 } else { 0.0 };
        let at_once = if self.burst() == 0.0 && buckets[0].burst() > 0.0 { f64::INFINITY } else { at_once };
        let error = between.fold(at_once, f64::max);
        PrunedCurve { curve: ArrivalCurve::new(&buckets).expect("some bucket is kept"), error }
    }
}
