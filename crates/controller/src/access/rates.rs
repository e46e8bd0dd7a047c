//! Rate limit of clients: a token bucket of requests that holds at most one second's worth. Hand-written, because it is
//! short and tests need the time as an argument.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};

use super::Client;

/// Largest number of clients in memory. Beyond it, full buckets are dropped, without any effect on their clients. If no
/// bucket is full, all are dropped.
const CLIENTS: usize = 10_000;

/// Remaining requests of a client at a time.
#[derive(Clone, Copy)]
struct Bucket {
    left: f64,
    at: f64,
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
        let filled = |bucket: &Bucket| (bucket.left + rate * (now - bucket.at).max(0.0)).min(rate);
        if buckets.len() >= CLIENTS && !buckets.contains_key(client) {
            buckets.retain(|_, bucket| filled(bucket) < rate);
            if buckets.len() >= CLIENTS {
                buckets.clear();
            }
        }
        let bucket = buckets.entry(client.clone()).or_insert(Bucket { left: rate, at: now });
        *bucket = Bucket { left: filled(bucket), at: bucket.at.max(now) };
        if bucket.left < 1.0 {
            let wait = ((1.0 - bucket.left) / rate).ceil() as u32;
            return Err(NonZeroU32::new(wait).unwrap_or(NonZeroU32::MIN));
        }
        bucket.left -= 1.0;
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
        for number in 0..3 * CLIENTS as u32 {
            assert!(rates.take(&client(number), 0.0).is_ok());
        }
        assert!(rates.buckets.lock().expect("the lock is not poisoned").len() <= CLIENTS);
    }
}
