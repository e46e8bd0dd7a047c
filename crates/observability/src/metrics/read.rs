//! Metrics that the status shows.

use std::sync::atomic::Ordering;
use std::time::Duration;

use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::Metrics;
use crate::labels::{Compared, Listener};

impl Metrics {
    /// Open connections of a listener, and its limit; zeros before it accepts.
    pub fn connections_of(&self, listener: &'static str) -> (u64, u64) {
        let read = |family: &Family<Listener, Gauge>| {
            let count = family.get(&Listener { listener }).map_or(0, |gauge| gauge.get());
            u64::try_from(count).unwrap_or(0)
        };
        (read(&self.connections), read(&self.connection_limits))
    }

    /// Number of comparisons of a kind of decision with an effect of Leeward's choice, since the start.
    pub fn comparisons_of(&self, kind: &'static str, effect: &'static str) -> u64 {
        let by = |decided_by| {
            let labels = Compared { kind, effect, decided_by };
            self.comparisons.get(&labels).map_or(0, |counter| counter.get())
        };
        by("default") + by("leeward")
    }

    /// Time that the last transaction of the store took; `None` before the first.
    pub fn last_transaction(&self) -> Option<Duration> {
        let nanos = self.last_transaction.load(Ordering::Relaxed);
        (nanos > 0).then(|| Duration::from_nanos(nanos))
    }
}
