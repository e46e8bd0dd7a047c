//! Metrics for Prometheus. Events are counted as they happen. States are read from the last snapshot at each scrape.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use leeward_fabric::Nanos;
use leeward_prometheus::{Ports, Steps};
use leeward_records::{DecisionDetails, Modes};
use leeward_service::NetworkSnapshot;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Metric, Registry};

/// Labels of an operation: method and path template.
#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
pub struct Request {
    /// HTTP method.
    pub method: &'static str,
    /// Path template.
    pub path: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct Answered {
    method: &'static str,
    path: &'static str,
    status: u16,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct Placed {
    kind: &'static str,
    outcome: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct Kind {
    r#type: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct Compared {
    kind: &'static str,
    effect: &'static str,
    decided_by: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct KindMode {
    kind: &'static str,
    mode: String,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct Outcome {
    outcome: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct Step {
    step: &'static str,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, EncodeLabelSet)]
struct State {
    state: &'static str,
}

/// Buckets from a quarter of a millisecond to 8 s, each twice the one before.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.000_25, 2.0, 16))
}

/// All metrics.
pub struct Metrics {
    registry: Registry,
    placements: Family<Placed, Counter>,
    comparisons: Family<Compared, Counter>,
    modes: Family<KindMode, Gauge>,
    refusals: Family<Kind, Counter>,
    requests: Family<Answered, Counter>,
    request_seconds: Family<Request, Histogram, fn() -> Histogram>,
    transactions: Family<Outcome, Counter>,
    changes: Counter,
    transaction_seconds: Histogram,
    reports: Counter,
    samples: Counter,
    released_early: Counter,
    decisions: Gauge,
    waiting: Gauge,
    epoch: Gauge,
    leads: Gauge,
    clock_behind: Gauge<f64, AtomicU64>,
    links: Family<State, Gauge>,
    devices: Family<State, Gauge>,
    queued: Gauge,
    in_flight: Gauge,
    polls: Family<Outcome, Counter>,
    poll_seconds: Histogram,
    readings: Family<Step, Counter>,
    ports: Family<State, Gauge>,
    polled_links: Family<State, Gauge>,
    remarks: Gauge,
    /// Number of open connections.
    pub connections: Gauge,
    /// Number of open event streams.
    pub streams: Gauge,
}

impl Metrics {
    /// Creates all metrics at zero.
    pub fn new() -> Metrics {
        let mut registry = Registry::with_prefix("leeward");
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The program", build);
        Metrics {
            placements: family(&mut registry, "placements", "Placement requests, by outcome"),
            comparisons: family(
                &mut registry,
                "comparisons",
                "Decisions compared with the choice of the other policy, by the effect of Leeward's choice",
            ),
            modes: family(&mut registry, "modes", "1 for the mode that was set last, by kind of decision"),
            refusals: family(&mut registry, "refusals", "Replies with a problem document, by type"),
            requests: family(&mut registry, "requests", "Requests with a reply"),
            request_seconds: register(
                &mut registry,
                "request_seconds",
                "Seconds from the head of a request to the head of its reply",
                Family::new_with_constructor(seconds as fn() -> Histogram),
            ),
            transactions: family(&mut registry, "store_transactions", "Transactions of the store"),
            changes: family(&mut registry, "store_changes", "Changes sent to the store"),
            transaction_seconds: register(
                &mut registry,
                "store_transaction_seconds",
                "Seconds that a transaction took",
                seconds(),
            ),
            reports: family(&mut registry, "reports", "Accepted reports"),
            samples: family(&mut registry, "samples", "Accepted samples of links and devices"),
            released_early: family(
                &mut registry,
                "released_early",
                "Decisions released before telemetry showed their load, because of the limit",
            ),
            decisions: family(&mut registry, "decisions", "Decisions in memory"),
            waiting: family(&mut registry, "waiting", "Requests that wait for their decision"),
            epoch: family(&mut registry, "epoch", "Epoch of the ledger"),
            leads: family(&mut registry, "leads", "1 if this service leads and answers placements, else 0"),
            clock_behind: family(
                &mut registry,
                "clock_behind_seconds",
                "Seconds by which the machine's clock is behind the service's time, after it was set back",
            ),
            links: family(
                &mut registry,
                "links",
                "Links by state; hot and slow links also count as seen, and a slow link has less capacity than in \
                 the cluster",
            ),
            devices: family(
                &mut registry,
                "devices",
                "Reported devices by state; hot devices also count as seen",
            ),
            queued: family(&mut registry, "queued_bytes", "Bytes queued at hosts, as reported"),
            in_flight: family(
                &mut registry,
                "requests_in_flight",
                "Requests in flight at devices, as reported",
            ),
            polls: family(&mut registry, "telemetry_polls", "Polls of Prometheus, by outcome"),
            poll_seconds: register(
                &mut registry,
                "telemetry_poll_seconds",
                "Seconds that a poll took",
                seconds(),
            ),
            readings: family(&mut registry, "telemetry_readings", "New counter readings, by kind"),
            ports: family(
                &mut registry,
                "telemetry_ports",
                "Ports in Prometheus by state, each direction counted",
            ),
            polled_links: family(&mut registry, "telemetry_links", "Links reported by Prometheus, by state"),
            remarks: family(&mut registry, "telemetry_remarks", "Current warnings about telemetry"),
            connections: family(&mut registry, "connections", "Open connections"),
            streams: family(&mut registry, "streams", "Open event streams"),
            registry,
        }
    }

    /// Counts a response.
    pub fn request(&self, request: Request, status: u16, took: Duration) {
        let Request { method, path } = request;
        self.requests.get_or_create(&Answered { method, path, status }).inc();
        self.request_seconds.get_or_create(&request).observe(took.as_secs_f64());
    }

    /// Counts a problem document of this type.
    pub fn refusal(&self, r#type: &'static str) {
        self.refusals.get_or_create(&Kind { r#type }).inc();
    }

    /// Counts a placement request by its result.
    pub fn placement(&self, kind: &'static str, outcome: &'static str) {
        self.placements.get_or_create(&Placed { kind, outcome }).inc();
    }

    /// Counts the comparison of a decision, if it has one.
    pub fn compared(&self, details: &DecisionDetails) {
        let Some(effect) = details.effect() else { return };
        let decided_by = if details.by_default { "default" } else { "leeward" };
        let labels = Compared { kind: details.spec.kind(), effect: effect.word(), decided_by };
        self.comparisons.get_or_create(&labels).inc();
    }

    /// Sets the modes.
    pub fn modes(&self, modes: &Modes) {
        self.modes.clear();
        for (kind, mode) in modes.by_kind() {
            self.modes.get_or_create(&KindMode { kind, mode: mode.to_string() }).set(1);
        }
    }

    /// Counts an accepted report.
    pub fn report(&self) {
        self.reports.inc();
    }

    /// Counts a round of Prometheus queries and its readings.
    pub fn polled(&self, answered: bool, steps: Steps, took: Duration) {
        let outcome = if answered { "answered" } else { "failed" };
        self.polls.get_or_create(&Outcome { outcome }).inc();
        self.poll_seconds.observe(took.as_secs_f64());
        let Steps { grew, restarted, jumped, caught_up, ambiguous, impossible } = steps;
        for (step, count) in [
            ("grew", grew),
            ("restarted", restarted),
            ("jumped", jumped),
            ("caught-up", caught_up),
            ("ambiguous", ambiguous),
            ("impossible", impossible),
        ] {
            self.readings.get_or_create(&Step { step }).inc_by(count);
        }
    }

    /// Sets the statistics of ports, and the number of remarks.
    pub fn ports(&self, ports: &Ports, remarks: usize) {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let set = |family: &Family<State, Gauge>, states: &[(&'static str, usize)]| {
            for &(state, count) in states {
                family.get_or_create(&State { state }).set(number(count));
            }
        };
        let (links, ignored, no_link) = (ports.links, ports.ignored, ports.unmapped);
        set(&self.ports, &[("link", links), ("ignored", ignored), ("no_link", no_link)]);
        set(&self.polled_links, &[("heard", ports.heard), ("silent", ports.silent.len())]);
        self.remarks.set(number(remarks));
    }

    /// Counts a transaction of the store.
    pub fn transaction(&self, kept: bool, changes: usize, took: Duration) {
        let outcome = if kept { "kept" } else { "failed" };
        self.transactions.get_or_create(&Outcome { outcome }).inc();
        self.changes.inc_by(changes as u64);
        self.transaction_seconds.observe(took.as_secs_f64());
    }

    /// All metrics as OpenMetrics text; `None` if encoding fails.
    pub fn text(&self, snapshot: &NetworkSnapshot, leads: bool, clock_behind: Nanos) -> Option<String> {
        let counts = snapshot.counts;
        self.samples.inner().store(counts.samples, Ordering::Relaxed);
        self.released_early.inner().store(counts.released_early, Ordering::Relaxed);
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.decisions.set(number(counts.decisions));
        self.waiting.set(number(counts.waiting));
        self.leads.set(i64::from(leads));
        self.clock_behind.set(clock_behind.as_secs_f64());
        self.epoch.set(i64::try_from(snapshot.epoch.0).unwrap_or(i64::MAX));
        let seen = snapshot.links.iter().filter(|link| link.measured.is_some()).count();
        let hot = snapshot.links.iter().filter(|link| link.hot_since.is_some()).count();
        for (state, count) in [("seen", seen), ("unseen", snapshot.links.len() - seen), ("hot", hot)] {
            self.links.get_or_create(&State { state }).set(number(count));
        }
        let slow = snapshot.links.iter().filter(|link| link.is_slow()).count();
        self.links.get_or_create(&State { state: "slow" }).set(number(slow));
        let seen = snapshot.devices.iter().filter(|device| device.busy.is_some()).count();
        let hot = snapshot.devices.iter().filter(|device| device.hot_since.is_some()).count();
        for (state, count) in [("seen", seen), ("unseen", snapshot.devices.len() - seen), ("hot", hot)] {
            self.devices.get_or_create(&State { state }).set(number(count));
        }
        self.queued.set(snapshot.links.iter().filter_map(|link| link.queue).sum::<f64>() as i64);
        let requests = snapshot.devices.iter().filter_map(|device| device.reading?.requests?.in_flight);
        let requests = requests.fold(0_u64, u64::saturating_add);
        self.in_flight.set(i64::try_from(requests).unwrap_or(i64::MAX));
        let mut text = String::new();
        encode(&mut text, &self.registry).ok().map(|()| text)
    }
}

fn family<M: Metric + Clone + Default>(registry: &mut Registry, name: &str, help: &str) -> M {
    register(registry, name, help, M::default())
}

fn register<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: M) -> M {
    registry.register(name, help, metric.clone());
    metric
}
