//! Rate limit of clients: a token bucket of requests that holds at most one second's worth. Hand-written, because it is
//! short and tests need the time as an argument.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};

use super::Client;

/// Largest number of clients in memory. At this number, full buckets are dropped, which has no effect on their clients.
/// If no bucket is full, all are dropped.
const MAX_CLIENTS: usize = 10_000;

/// Remaining requests of a client, at the time of its last request.
#[derive(Clone, Copy)]
struct Bucket {
    remaining: f64,
    updated: f64,
}

/// Rate limits of all clients.
pub struct Rates {
    limit: Option<u32>,
    buckets: Mutex<BTreeMap<Client, Bucket>>,
}

impl Rates {
    /// Creates rate limits with `limit` requests per second and client; `None` for no limit.
    pub fn new(limit: Option<u32>) -> Rates {
        Rates { limit, buckets: Mutex::new(BTreeMap::new()) }
    }

    /// Requests per second and client.
    pub fn limit(&self) -> Option<u32> {
        self.limit
    }

    /// Counts a request of a client at a time in seconds.
    ///
    /// # Errors
    /// Number of seconds until the client may retry.
    pub fn take(&self, client: &Client, now: f64) -> Result<(), NonZeroU32> {
        let Some(limit) = self.limit else { return Ok(()) };
        let rate = f64::from(limit);
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let filled = |bucket: &Bucket| (bucket.remaining + rate * (now - bucket.updated).max(0.0)).min(rate);
        if buckets.len() >= MAX_CLIENTS && !buckets.contains_key(client) {
            buckets.retain(|_, bucket| filled(bucket) < rate);
            if buckets.len() >= MAX_CLIENTS {
                buckets.clear();
            }
        }
        let bucket = buckets.entry(client.clone()).or_insert(Bucket { remaining: rate, updated: now });
        *bucket = Bucket { remaining: filled(bucket), updated: bucket.updated.max(now) };
        if bucket.remaining < 1.0 {
            let wait = ((1.0 - bucket.remaining) / rate).ceil() as u32;
            return Err(NonZeroU32::new(wait).unwrap_or(NonZeroU32::MIN));
        }
        bucket.remaining -= 1.0;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use proptest::prelude::*;

    use super::*;

    fn client(number: u32) -> Client {
        Client::Address(IpAddr::V4(Ipv4Addr::from(number)))
    }

    proptest! {
        #[test]
        fn no_interval_passes_more_requests_than_the_limit(
            limit in 1_u32..50,
            steps in prop::collection::vec(0.0_f64..0.2, 1..400),
        ) {
            let rates = Rates::new(Some(limit));
            let (mut now, mut passed) = (0.0, Vec::new());
            for step in steps {
                now += step;
                if rates.take(&client(1), now).is_ok() {
                    passed.push(now);
                }
            }
            for (first, &from) in passed.iter().enumerate() {
                for (last, &to) in passed.iter().enumerate().skip(first) {
                    let most = f64::from(limit) * (1.0 + to - from) + 1e-6;
                    prop_assert!((last - first + 1) as f64 <= most);
                }
            }
        }
    }

    #[test]
    fn a_client_that_waits_is_admitted_and_others_are_unaffected() {
        let rates = Rates::new(Some(2));
        assert_eq!([0, 1, 2].map(|_| rates.take(&client(1), 5.0).is_ok()), [true, true, false]);
        assert!(rates.take(&client(2), 5.0).is_ok());
        let wait = rates.take(&client(1), 5.0).expect_err("the limit is reached").get();
        assert!(rates.take(&client(1), 5.0 + f64::from(wait)).is_ok());
    }

    #[test]
    fn the_number_of_client_buckets_is_bounded() {
        let rates = Rates::new(Some(1));
        for number in 0..3 * MAX_CLIENTS as u32 {
            assert!(rates.take(&client(number), 0.0).is_ok());
        }
        assert!(rates.buckets.lock().expect("the lock is not poisoned").len() <= MAX_CLIENTS);
    }
}
