//! Metrics of promises in force and of enforcers.

use std::sync::atomic::{AtomicU64, Ordering};

use leeward_promises::{PromiseState, PromiseStatus, PromisesTable, WINDOWS};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::families::family;
use crate::labels::{BurnWindow, State, Workload};

/// Gauge of seconds or of a ratio.
type Number = Gauge<f64, AtomicU64>;

/// Names of the windows of burn rates, the shortest first.
const WINDOW_NAMES: [&str; WINDOWS.len()] = ["5m", "30m", "1h", "6h", "3d"];

/// Metrics of promises and enforcers.
pub struct PromiseMetrics {
    promises: Family<State, Gauge>,
    enforcers: Family<State, Gauge>,
    version: Gauge,
    enforced: Family<Workload, Gauge>,
    slo: Family<Workload, Number>,
    bound: Family<Workload, Number>,
    seen: Family<Workload, Number>,
    requests: Family<Workload, Counter>,
    late: Family<Workload, Counter>,
    allowed: Family<Workload, Number>,
    burn_rate: Family<BurnWindow, Number>,
}

impl PromiseMetrics {
    /// Registers all metrics.
    pub fn new(registry: &mut Registry) -> PromiseMetrics {
        PromiseMetrics {
            promises: family(registry, "promises", "Promises by state"),
            enforcers: family(registry, "enforcers", "Enforcers by state of their lease"),
            version: family(registry, "promises_version", "Version of the set of promises"),
            enforced: family(
                registry,
                "promise_enforced",
                "1 if all places of the promise are enforced, else 0",
            ),
            slo: family(
                registry,
                "promise_slo_seconds",
                "Latency that the SLO's percentile of requests stays below",
            ),
            bound: family(registry, "promise_bound_seconds", "Bound on the latency of a request"),
            seen: family(registry, "promise_seen_seconds", "Last latency seen at the SLO's percentile"),
            requests: family(registry, "promise_requests", "Requests that enforcers counted"),
            late: family(
                registry,
                "promise_late_requests",
                "Counted requests with a latency above the SLO's",
            ),
            allowed: family(
                registry,
                "promise_allowed_late_ratio",
                "Share of requests that may be late by the SLO's percentile",
            ),
            burn_rate: family(
                registry,
                "promise_burn_rate",
                "Share of late requests in a window, relative to the share that may be late",
            ),
        }
    }

    /// Sets all metrics. Those of promises that have ended are removed.
    pub fn set(&self, table: &PromisesTable) {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        for state in PromiseState::ALL {
            let count = table.promises.iter().filter(|status| status.state == state).count();
            self.promises.get_or_create(&State { state: state.name() }).set(number(count));
        }
        for (state, count) in [("live", table.live), ("expired", table.expired)] {
            self.enforcers.get_or_create(&State { state }).set(number(count));
        }
        self.version.set(i64::try_from(table.version.number).unwrap_or(i64::MAX));
        self.enforced.clear();
        for family in [&self.slo, &self.bound, &self.seen, &self.allowed] {
            family.clear();
        }
        for family in [&self.requests, &self.late] {
            family.clear();
        }
        self.burn_rate.clear();
        table.promises.iter().for_each(|status| self.set_promise(status));
    }

    fn set_promise(&self, status: &PromiseStatus) {
        let workload = Workload { workload: escaped(&status.workload) };
        let is_enforced = matches!(status.state, PromiseState::Enforced | PromiseState::Seen);
        self.enforced.get_or_create(&workload).set(i64::from(is_enforced));
        self.slo.get_or_create(&workload).set(status.slo.latency_s);
        self.allowed.get_or_create(&workload).set(1.0 - status.slo.percentile / 100.0);
        if let Some(bound) = status.bound_s {
            self.bound.get_or_create(&workload).set(bound);
        }
        if let Some(seen) = &status.seen {
            self.seen.get_or_create(&workload).set(seen.seconds);
        }
        self.requests.get_or_create(&workload).inner().store(status.total.requests, Ordering::Relaxed);
        self.late.get_or_create(&workload).inner().store(status.total.late, Ordering::Relaxed);
        for (window, rate) in WINDOW_NAMES.into_iter().zip(status.rates) {
            if let Some(rate) = rate {
                let labels = BurnWindow { workload: workload.workload.clone(), window };
                self.burn_rate.get_or_create(&labels).set(rate);
            }
        }
    }
}

/// Value of a label in the text format. A workload's name may have quotation marks and backslashes, which the encoder
/// writes as they are.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use leeward_agreements::GrantedSlo;
    use leeward_promises::RequestCounters;
    use leeward_records::PromisesVersion;
    use prometheus_client::encoding::text::encode;

    use super::*;

    fn status(workload: &str, state: PromiseState, rates: [Option<f64>; 5]) -> PromiseStatus {
        PromiseStatus {
            workload: workload.to_owned(),
            version: 2,
            slo: GrantedSlo { percentile: 99.0, latency_s: 0.05 },
            bound_s: Some(0.04),
            state,
            places: Vec::new(),
            seen: None,
            total: RequestCounters { requests: 7, late: 2, ..RequestCounters::default() },
            counted_since: None,
            rates,
            alerts: Vec::new(),
        }
    }

    #[test]
    fn promises_that_end_leave_no_metrics_and_names_are_escaped() {
        let mut registry = Registry::default();
        let metrics = PromiseMetrics::new(&mut registry);
        let text = |table: &PromisesTable| {
            metrics.set(table);
            let mut text = String::new();
            encode(&mut text, &registry).expect("it is encodable");
            text
        };
        let mut table = PromisesTable {
            version: PromisesVersion { set: 9, number: 3 },
            promises: vec![
                status("a\"} 1\\", PromiseState::Seen, [Some(2.5), None, None, None, None]),
                status("b", PromiseState::Unenforced, [None; 5]),
            ],
            live: 1,
            expired: 2,
        };
        let both = text(&table);
        for line in [
            "promises{state=\"seen\"} 1",
            "promises{state=\"unenforced\"} 1",
            "promises{state=\"decided\"} 0",
            "enforcers{state=\"expired\"} 2",
            "promises_version 3",
            r#"promise_enforced{workload="a\"} 1\\"} 1"#,
            r#"promise_burn_rate{workload="a\"} 1\\",window="5m"} 2.5"#,
            "promise_enforced{workload=\"b\"} 0",
            "promise_requests_total{workload=\"b\"} 7",
            "promise_late_requests_total{workload=\"b\"} 2",
            "promise_slo_seconds{workload=\"b\"} 0.05",
        ] {
            assert!(both.lines().any(|other| other == line), "{line}\n{both}");
        }
        assert!(!both.contains("window=\"30m\""), "a window without requests has no rate");
        assert!(!both.contains("promise_seen_seconds{"), "nobody has seen a latency");
        table.promises.remove(0);
        assert!(!text(&table).contains("workload=\"a"), "its promise has ended");
    }
}
