//! Rate limits: the token buckets of a workload at a stage, all enforced together (SLO section 2.1).
//!
//! The content of a bucket leaks at its rate. A request passes if its work fits in all buckets, and its work is then
//! added to all of them. Requests of a workload pass in order. A request larger than a burst passes when that bucket is
//! empty, and overfills it. Otherwise it could never pass.

use leeward_calculus::TokenBucket;

use super::live::{List, Live, NONE, Pool};

/// Share of its burst by which a bucket may overfill. It keeps rounding errors from delaying a request of a workload
/// that conforms to its own curve.
const ROUNDING: f64 = 1e-9;

/// A bucket with its current content.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// Work per nanosecond.
    rate: f64,
    burst: f64,
    content: f64,
}

impl Bucket {
    /// Returns the nanoseconds until `work` fits; 0 or less if it fits now.
    fn wait(&self, work: f64) -> f64 {
        let over = self.content + work - self.burst * (1.0 + ROUNDING);
        // Work larger than the bucket waits until the bucket is empty.
        over.min(self.content) / self.rate
    }
}

/// Limiter of a workload at the first queue of a stage.
#[derive(Clone, Debug)]
pub(super) struct Limiter {
    buckets: Vec<Bucket>,
    /// Time at which the contents were last updated.
    at: u64,
    /// Requests that wait for tokens, in order.
    pub(super) waiting: List,
    pub(super) queue: u32,
    pub(super) slot: u32,
    pub(super) demotes: bool,
}

impl Limiter {
    pub(super) fn new(buckets: &[TokenBucket], queue: u32, demotes: bool) -> Limiter {
        let buckets = buckets
            .iter()
            .map(|bucket| Bucket { rate: bucket.rate() / 1e9, burst: bucket.burst(), content: 0.0 })
            .collect();
        Limiter { buckets, at: 0, waiting: List::EMPTY, queue, slot: NONE, demotes }
    }

    fn leak(&mut self, now: u64) {
        let passed = (now - self.at) as f64;
        self.at = now;
        for bucket in &mut self.buckets {
            bucket.content = (bucket.content - bucket.rate * passed).max(0.0);
        }
    }

    /// Takes the tokens and returns true if `work` fits now.
    pub(super) fn passes(&mut self, now: u64, work: f64) -> bool {
        self.leak(now);
        let fits = self.buckets.iter().all(|bucket| bucket.wait(work) <= 0.0);
        if fits {
            self.take(work);
        }
        fits
    }

    /// Takes the tokens of a request whose waiting time has ended.
    pub(super) fn pass(&mut self, now: u64, work: f64) {
        self.leak(now);
        self.take(work);
    }

    fn take(&mut self, work: f64) {
        for bucket in &mut self.buckets {
            bucket.content += work;
        }
    }

    /// Takes the available tokens for a request that is served although it is over the limit.
    pub(super) fn demote(&mut self, now: u64, work: f64) {
        self.leak(now);
        for bucket in &mut self.buckets {
            bucket.content = bucket.content.max((bucket.content + work).min(bucket.burst));
        }
    }

    /// Returns the time at which the first waiting request passes, if nothing else passes earlier: a whole nanosecond,
    /// at or after `now`.
    pub(super) fn next(&mut self, now: u64, pool: &Pool) -> Option<u64> {
        if self.waiting.is_empty() {
            return None;
        }
        self.leak(now);
        let work = work_at(pool.get(self.waiting.head));
        let wait = self.buckets.iter().map(|bucket| bucket.wait(work)).fold(0.0, f64::max);
        Some(now.saturating_add(wait.ceil() as u64))
    }
}

/// Work of a request at its stage, in the units of its buckets.
pub(super) fn work_at(live: &Live) -> f64 {
    live.left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limiter(rows: &[(f64, f64)]) -> Limiter {
        let buckets: Vec<_> = rows.iter().map(|&(r, b)| TokenBucket::new(r * 1e9, b).unwrap()).collect();
        Limiter::new(&buckets, 0, false)
    }

    #[test]
    fn a_request_passes_if_it_fits_in_all_buckets() {
        let mut limiter = limiter(&[(1.0, 100.0), (10.0, 30.0)]);
        assert!(limiter.passes(0, 30.0));
        assert!(!limiter.passes(0, 30.0));
        assert!(limiter.passes(3, 30.0));
        // The first bucket contains 57, so the request does not fit and takes nothing from the second bucket.
        assert!(!limiter.passes(6, 47.0));
        assert!(limiter.passes(6, 30.0) && !limiter.passes(9, 30.0) && limiter.passes(26, 30.0));
    }

    #[test]
    fn a_request_larger_than_the_bucket_passes_when_it_is_empty() {
        let mut limiter = limiter(&[(1.0, 10.0)]);
        assert!(limiter.passes(0, 50.0));
        assert!(!limiter.passes(49, 50.0));
        assert!(limiter.passes(50, 50.0));
    }

    #[test]
    fn demoted_requests_take_at_most_the_available_tokens() {
        let mut limiter = limiter(&[(1.0, 10.0)]);
        assert!(limiter.passes(0, 7.0));
        limiter.demote(0, 7.0);
        assert!(!limiter.passes(6, 7.0) && limiter.passes(7, 7.0));
        // A request larger than the bucket has overfilled it, and it stays overfilled.
        assert!(limiter.passes(20, 40.0));
        limiter.demote(20, 5.0);
        assert!(!limiter.passes(49, 10.0) && limiter.passes(60, 10.0));
    }
}
