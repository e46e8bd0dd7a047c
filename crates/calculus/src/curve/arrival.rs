//! Arrival curves: the minimum of several token buckets.

use crate::token_bucket::TokenBucket;

/// A concave limit on arrivals, alpha(t) = min over i of (r_i t + b_i) (SLO section 2.3.1). In any interval of t
/// seconds, ends included, at most alpha(t) of work arrives. Buckets are in order of decreasing rate and increasing
/// burst. Each bucket is the minimum for some t.
#[derive(Clone, PartialEq, Debug)]
pub struct ArrivalCurve {
    buckets: Vec<TokenBucket>,
}

impl From<TokenBucket> for ArrivalCurve {
    fn from(bucket: TokenBucket) -> ArrivalCurve {
        ArrivalCurve { buckets: vec![bucket] }
    }
}

impl ArrivalCurve {
    /// No arrivals at all.
    pub fn zero() -> ArrivalCurve {
        TokenBucket::raw(0.0, 0.0).into()
    }

    /// The minimum of `buckets`; `None` without buckets, because nothing then limits arrivals. Buckets that are nowhere
    /// the minimum are dropped.
    pub fn new(buckets: &[TokenBucket]) -> Option<ArrivalCurve> {
        let mut sorted = buckets.to_vec();
        sorted.sort_by(|a, b| b.rate().total_cmp(&a.rate()).then(b.burst().total_cmp(&a.burst())));
        let mut envelope: Vec<TokenBucket> = Vec::new();
        for bucket in sorted {
            while let Some(&last) = envelope.last() {
                let redundant = bucket.burst() <= last.burst()
                    || envelope.len() > 1 && meet(last, bucket) <= meet(envelope[envelope.len() - 2], last);
                if !redundant {
                    break;
                }
                envelope.pop();
            }
            envelope.push(bucket);
        }
        (!envelope.is_empty()).then_some(ArrivalCurve { buckets: envelope })
    }

    /// The buckets, in order of decreasing rate and increasing burst.
    pub fn buckets(&self) -> &[TokenBucket] {
        &self.buckets
    }

    /// Largest work within `seconds`: alpha(t).
    pub fn arrivals(&self, seconds: f64) -> f64 {
        crate::arrivals(&self.buckets, seconds)
    }

    /// The long-run rate: the rate of the last bucket.
    pub fn rate(&self) -> f64 {
        self.last().rate()
    }

    /// Largest work at one moment: alpha(0).
    pub fn burst(&self) -> f64 {
        self.buckets[0].burst()
    }

    /// Vertices of the curve as (seconds, work): the point at 0, and each point from which the next bucket is the
    /// minimum.
    pub fn vertices(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        std::iter::once((0.0, self.burst())).chain(self.buckets.windows(2).map(|pair| {
            let seconds = meet(pair[0], pair[1]);
            (seconds, pair[1].arrivals(seconds))
        }))
    }

    /// The r-b curve of the arrival curve: the smallest burst of a bucket of `rate` that passes all these arrivals
    /// without delay. It is sup over t of alpha(t) - r t. `None` if the rate is below the long-run rate or not finite.
    pub fn burst_at(&self, rate: f64) -> Option<f64> {
        let enough = rate >= self.rate() && rate.is_finite();
        enough.then(|| self.vertices().map(|(t, work)| work - rate * t).fold(self.burst(), f64::max))
    }

    /// The time until `work` may have arrived: the smallest t with alpha(t) >= work, in seconds. `None` if there is
    /// no such t.
    pub(crate) fn seconds_until(&self, work: f64) -> Option<f64> {
        let seconds = self.buckets.iter().map(|bucket| (work - bucket.burst()) / bucket.rate());
        let until = seconds.fold(0.0, f64::max);
        // A bucket with rate zero gives infinity. If its burst equals the work, it gives NaN; the work has then already
        // arrived.
        until.is_finite().then_some(until)
    }

    /// Arrival curve of both sources together: the sum of the two curves.
    pub fn plus(&self, other: &ArrivalCurve) -> ArrivalCurve {
        let (mut a, mut b) = (self.buckets.as_slice(), other.buckets.as_slice());
        let mut buckets = Vec::with_capacity(a.len() + b.len());
        loop {
            // Each piece of the sum is the sum of two buckets, so rates and bursts add up without a subtraction.
            buckets.push(TokenBucket::raw(a[0].rate() + b[0].rate(), a[0].burst() + b[0].burst()));
            let end =
                |rest: &[TokenBucket]| if rest.len() > 1 { meet(rest[0], rest[1]) } else { f64::INFINITY };
            let order = end(a).total_cmp(&end(b));
            let (advance_a, advance_b) = (a.len() > 1 && order.is_le(), b.len() > 1 && order.is_ge());
            if !advance_a && !advance_b {
                return ArrivalCurve { buckets };
            }
            a = &a[usize::from(advance_a)..];
            b = &b[usize::from(advance_b)..];
        }
    }

    /// Output bound of these arrivals if each unit of work is delayed by at most `seconds`: alpha(t + seconds). `None`
    /// if a burst overflows.
    pub fn delayed(&self, seconds: f64) -> Option<ArrivalCurve> {
        let later = |bucket: &TokenBucket| TokenBucket::new(bucket.rate(), bucket.arrivals(seconds)).ok();
        ArrivalCurve::new(&self.buckets.iter().map(later).collect::<Option<Vec<_>>>()?)
    }

    /// The arrival curve of arrivals that stay within both curves.
    pub fn min(&self, other: &ArrivalCurve) -> ArrivalCurve {
        ArrivalCurve::new(&[self.buckets(), other.buckets()].concat()).expect("each has a bucket")
    }

    fn last(&self) -> TokenBucket {
        self.buckets[self.buckets.len() - 1]
    }
}

/// Time, in seconds, from which `after`, with a lower rate and a larger burst, is below `before`.
pub(super) fn meet(before: TokenBucket, after: TokenBucket) -> f64 {
    (after.burst() - before.burst()) / (before.rate() - after.rate())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(rate: f64, burst: f64) -> TokenBucket {
        TokenBucket::new(rate, burst).unwrap()
    }

    #[test]
    fn buckets_that_are_nowhere_the_minimum_are_dropped() {
        let curve = ArrivalCurve::new(&[
            bucket(1.0, 9.0),
            bucket(10.0, 1.0),
            bucket(9.9, 8.0),
            bucket(10.0, 2.0),
            bucket(1.0, 11.0),
        ]);
        assert_eq!(curve.unwrap().buckets(), [bucket(10.0, 1.0), bucket(1.0, 9.0)]);
        assert_eq!(ArrivalCurve::new(&[]), None);
    }

    #[test]
    fn a_sum_is_the_sum_at_every_time() {
        let a = ArrivalCurve::new(&[bucket(10.0, 1.0), bucket(2.0, 5.0), bucket(0.0, 20.0)]).unwrap();
        let b = ArrivalCurve::new(&[bucket(7.0, 0.0), bucket(1.0, 3.0)]).unwrap();
        let sum = a.plus(&b);
        for step in 0..200 {
            let t = f64::from(step) / 10.0;
            assert!((sum.arrivals(t) - a.arrivals(t) - b.arrivals(t)).abs() < 1e-12, "at {t}");
        }
        assert_eq!(sum.plus(&ArrivalCurve::zero()), sum);
    }

    #[test]
    fn the_burst_at_a_rate_is_the_least_that_covers_the_curve() {
        let curve = ArrivalCurve::new(&[bucket(10.0, 1.0), bucket(2.0, 5.0)]).unwrap();
        assert_eq!(curve.burst_at(2.0), Some(5.0));
        assert_eq!(curve.burst_at(6.0), Some(3.0));
        assert_eq!(curve.burst_at(11.0), Some(1.0));
        for rate in [1.9, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(curve.burst_at(rate), None, "{rate}");
        }
    }
}
