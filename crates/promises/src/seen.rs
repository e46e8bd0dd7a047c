//! Requests of a workload as enforcers count them.

use leeward_fabric::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::burn::{Burn, Counts};

/// Counters of a workload at an enforcer since the enforcer began. They only grow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "WorkloadCounters")]
pub struct RequestCounters {
    /// Bytes of payload; of an enforcer of kind `net`, bytes sent.
    pub bytes: u64,
    /// Requests that ended; 0 for an enforcer of kind `net`, which sees packets.
    pub requests: u64,
    /// Requests, or packets, that were over a limit.
    pub over_limit: u64,
    /// Requests with a latency above the SLO's; 0 for an enforcer of kind `net`.
    pub late: u64,
}

impl RequestCounters {
    /// Growth since earlier counters of the same enforcer. If one of them is lower than before, the enforcer has begun
    /// again, and all of them count from 0.
    pub fn since(self, before: RequestCounters) -> RequestCounters {
        let growth = || {
            Some(RequestCounters {
                bytes: self.bytes.checked_sub(before.bytes)?,
                requests: self.requests.checked_sub(before.requests)?,
                over_limit: self.over_limit.checked_sub(before.over_limit)?,
                late: self.late.checked_sub(before.late)?,
            })
        };
        growth().unwrap_or(self)
    }

    /// Adds a growth. Sums stop at the largest number.
    pub fn add(&mut self, more: RequestCounters) {
        self.bytes = self.bytes.saturating_add(more.bytes);
        self.requests = self.requests.saturating_add(more.requests);
        self.over_limit = self.over_limit.saturating_add(more.over_limit);
        self.late = self.late.saturating_add(more.late);
    }
}

/// A percentile of the latencies that an enforcer has seen recently.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SeenLatency")]
pub struct Latency {
    /// Percentile, in percent.
    #[schemars(range(min = 0, max = 100))]
    pub percentile: f64,
    /// Latency, in seconds.
    #[schemars(range(min = 0))]
    pub seconds: f64,
}

/// Latencies of a workload at an enforcer.
#[derive(Clone, PartialEq, Debug)]
struct Latencies {
    enforcer: String,
    at: Nanos,
    all: Vec<Latency>,
}

/// Requests of a workload, at all of its enforcers.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Time since which requests count; `None` if none have counted.
    since: Option<Nanos>,
    total: RequestCounters,
    burn: Burn,
    latencies: Vec<Latencies>,
}

/// Largest number of enforcers with latencies of one workload; further ones replace the oldest.
const MAX_SOURCES: usize = 16;

impl Seen {
    /// Adds what an enforcer counted since its last acknowledgement.
    pub fn add(&mut self, now: Nanos, growth: RequestCounters) {
        // A restart of the enforcer may be visible in some counters only.
        let growth = RequestCounters { late: growth.late.min(growth.requests), ..growth };
        self.total.add(growth);
        self.burn.add(now, Counts { requests: growth.requests, late: growth.late });
    }

    /// Notes that requests count from now on, if they did not before.
    pub fn begin(&mut self, now: Nanos) {
        self.since.get_or_insert(now);
    }

    /// Time since which requests count.
    pub fn since(&self) -> Option<Nanos> {
        self.since
    }

    /// Replaces the latencies of an enforcer.
    pub fn set_latencies(&mut self, now: Nanos, enforcer: &str, all: Vec<Latency>) {
        if all.is_empty() {
            return;
        }
        self.latencies.retain(|one| one.enforcer != enforcer);
        if self.latencies.len() == MAX_SOURCES {
            self.latencies.remove(0);
        }
        self.latencies.push(Latencies { enforcer: enforcer.to_owned(), at: now, all });
    }

    /// Counters of all enforcers since the promise began, or since this service began to lead. Bytes and requests are those
    /// at the server.
    pub fn total(&self) -> RequestCounters {
        self.total
    }

    /// Requests by time.
    pub fn burn(&self) -> &Burn {
        &self.burn
    }

    /// The largest latency at the percentile that an enforcer has stated within `recent`, with its time and the enforcer.
    /// If an enforcer does not state this percentile, its next higher one counts.
    pub fn latency(&self, now: Nanos, percentile: f64, recent: Nanos) -> Option<(Nanos, f64, &str)> {
        let within = self.latencies.iter().filter(|one| now.since(one.at) <= recent);
        let stated = within.filter_map(|one| {
            let higher = one.all.iter().filter(|latency| latency.percentile >= percentile - 1e-9);
            let nearest = higher.min_by(|a, b| a.percentile.total_cmp(&b.percentile))?;
            Some((one.at, nearest.seconds, one.enforcer.as_str()))
        });
        stated.max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(requests: u64, late: u64) -> RequestCounters {
        RequestCounters { requests, late, ..RequestCounters::default() }
    }

    #[test]
    fn a_lower_counter_is_that_of_an_enforcer_that_began_again() {
        assert_eq!(counters(10, 2).since(counters(7, 2)), counters(3, 0));
        assert_eq!(counters(10, 1).since(counters(7, 2)), counters(10, 1));
        assert_eq!(counters(3, 0).since(counters(7, 2)), counters(3, 0));
    }

    #[test]
    fn the_largest_recent_latency_counts_and_a_higher_percentile_stands_for_a_missing_one() {
        let mut seen = Seen::default();
        let latency = |percentile, seconds| Latency { percentile, seconds };
        seen.set_latencies(
            Nanos(5),
            "a",
            vec![latency(50.0, 0.001), latency(99.9, 0.02), latency(99.0, 0.01)],
        );
        seen.set_latencies(Nanos(9), "b", vec![latency(50.0, 0.002), latency(99.9, 0.03)]);
        let at = |percentile| seen.latency(Nanos(10), percentile, Nanos(5));
        assert_eq!(at(99.0), Some((Nanos(9), 0.03, "b")));
        assert_eq!(at(50.0), Some((Nanos(9), 0.002, "b")));
        assert_eq!(at(99.99), None, "no enforcer states this percentile or a higher one");
        assert_eq!(seen.latency(Nanos(11), 99.0, Nanos(2)), Some((Nanos(9), 0.03, "b")));
        assert_eq!(seen.latency(Nanos(20), 99.0, Nanos(2)), None);
        // More late requests than requests count as all of them.
        seen.add(Nanos(1), counters(2, 9));
        assert_eq!(seen.burn().counts(Nanos(1), Nanos(1)), Counts { requests: 2, late: 2 });
    }
}
