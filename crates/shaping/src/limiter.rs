//! Rate limits: the token buckets of a workload, all enforced together (SLO section 2.2).
//!
//! The content of a bucket leaks at its rate. A request passes if its work fits in all buckets, and its work is then
//! added to all of them. A request larger than a burst passes when that bucket is empty, and overfills it. Otherwise it
//! could never pass.

use leeward_calculus::TokenBucket;

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
    fn new(bucket: &TokenBucket) -> Bucket {
        Bucket { rate: bucket.rate() / 1e9, burst: bucket.burst(), content: 0.0 }
    }

    /// Nanoseconds until `work` fits; 0 or less if it fits now.
    fn wait(&self, work: f64) -> f64 {
        let over = self.content + work - self.burst * (1.0 + ROUNDING);
        // Work larger than the bucket waits until the bucket is empty.
        over.min(self.content) / self.rate
    }
}

/// Buckets of a workload. Times are nanoseconds; a time before the last one counts as the last one.
#[derive(Clone, Debug)]
pub(crate) struct Limiter {
    buckets: Vec<Bucket>,
    /// Time at which the contents were last updated.
    at: u64,
    /// Buckets of a suspended workload, and the time at which they were last updated.
    suspended: Option<(Vec<Bucket>, u64)>,
}

impl Limiter {
    /// Creates a limiter with empty buckets, each of a rate above 0.
    pub fn new(buckets: &[TokenBucket]) -> Limiter {
        Limiter { buckets: buckets.iter().map(Bucket::new).collect(), at: 0, suspended: None }
    }

    /// Lets all work pass until [`Limiter::replace`]. The buckets leak meanwhile.
    pub fn suspend(&mut self, now: u64) {
        if self.suspended.is_none() {
            self.leak(now);
            self.suspended = Some((std::mem::take(&mut self.buckets), self.at));
        }
    }

    fn leak(&mut self, now: u64) {
        let passed = now.saturating_sub(self.at) as f64;
        self.at = now.max(self.at);
        for bucket in &mut self.buckets {
            bucket.content = (bucket.content - bucket.rate * passed).max(0.0);
        }
    }

    /// Takes the tokens and returns true if `work` fits now.
    #[inline]
    pub fn passes(&mut self, now: u64, work: f64) -> bool {
        if self.buckets.is_empty() {
            return true;
        }
        self.leak(now);
        let fits = self.buckets.iter().all(|bucket| bucket.wait(work) <= 0.0);
        if fits {
            self.take(work);
        }
        fits
    }

    /// Takes the tokens of a request whose waiting time has ended.
    pub fn pass(&mut self, now: u64, work: f64) {
        self.leak(now);
        self.take(work);
    }

    fn take(&mut self, work: f64) {
        for bucket in &mut self.buckets {
            bucket.content += work;
        }
    }

    /// Takes the available tokens for a request that is served although it is over the limit.
    pub fn demote(&mut self, now: u64, work: f64) {
        self.leak(now);
        for bucket in &mut self.buckets {
            bucket.content = bucket.content.max((bucket.content + work).min(bucket.burst));
        }
    }

    /// Time at which `work` passes if nothing else passes earlier: a whole nanosecond, at or after `now`.
    pub fn next(&mut self, now: u64, work: f64) -> u64 {
        self.leak(now);
        let wait = self.buckets.iter().map(|bucket| bucket.wait(work)).fold(0.0, f64::max);
        now.saturating_add(wait.ceil() as u64)
    }

    /// Replaces the buckets. A bucket that stays the same keeps its content. The content of any other bucket is that of
    /// the fullest bucket before, but at most its burst, so that repeated changes give a workload no tokens.
    pub fn replace(&mut self, now: u64, buckets: &[TokenBucket]) {
        let now = now.max(self.at);
        if let Some(suspended) = self.suspended.take() {
            (self.buckets, self.at) = suspended;
        }
        self.leak(now);
        let most = self.buckets.iter().map(|bucket| bucket.content).fold(0.0, f64::max);
        let replaced = buckets.iter().map(Bucket::new).map(|new| {
            let same = self.buckets.iter().find(|old| old.rate == new.rate && old.burst == new.burst);
            Bucket { content: same.map_or(most.min(new.burst), |old| old.content), ..new }
        });
        self.buckets = replaced.collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buckets(rows: &[(f64, f64)]) -> Vec<TokenBucket> {
        rows.iter().map(|&(r, b)| TokenBucket::new(r * 1e9, b).unwrap()).collect()
    }

    fn limiter(rows: &[(f64, f64)]) -> Limiter {
        Limiter::new(&buckets(rows))
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

    #[test]
    fn new_limits_give_no_tokens_back() {
        let mut limiter = limiter(&[(1.0, 10.0), (2.0, 4.0)]);
        assert!(limiter.passes(0, 4.0));
        // The first bucket stays and contains 4. The second one is new, and contains the most that it may.
        limiter.replace(0, &buckets(&[(1.0, 10.0), (4.0, 3.0)]));
        assert!(!limiter.passes(0, 1.0));
        assert_eq!(limiter.next(0, 3.0), 1);
        assert!(limiter.passes(1, 3.0));
        limiter.replace(1, &[]);
        assert!(limiter.passes(1, 1e9));
        assert_eq!(limiter.next(7, 1e9), 7);
    }

    #[test]
    fn a_suspended_workload_finds_its_buckets_as_full_as_they_would_be() {
        let mut limiter = limiter(&[(1.0, 10.0)]);
        assert!(limiter.passes(0, 10.0));
        limiter.suspend(2);
        limiter.suspend(3);
        assert!(limiter.passes(3, 1e9) && limiter.next(4, 1e9) == 4);
        limiter.replace(6, &buckets(&[(1.0, 10.0)]));
        assert!(!limiter.passes(6, 7.0) && limiter.passes(6, 6.0));
        // Also with other limits, and after a look at a later time.
        limiter.suspend(6);
        limiter.demote(9, 5.0);
        limiter.replace(8, &buckets(&[(2.0, 8.0)]));
        assert!(!limiter.passes(9, 2.0) && limiter.passes(9, 1.0));
    }

    #[test]
    fn a_clock_that_goes_back_leaks_nothing_twice() {
        let mut limiter = limiter(&[(1.0, 10.0)]);
        assert!(limiter.passes(10, 10.0));
        assert!(!limiter.passes(5, 1.0) && !limiter.passes(10, 1.0) && limiter.passes(11, 1.0));
    }
}
