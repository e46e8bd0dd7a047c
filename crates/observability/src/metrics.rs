//! Metrics for Prometheus. Events are counted as they happen. States are read from the last snapshot at each scrape.

mod families;
mod promises;
mod read;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use leeward_prometheus::{Ports, Steps};
use leeward_records::{Change, DecisionDetails, MigrationState};
use leeward_service::NetworkSnapshot;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use self::families::{family, register};
use self::promises::PromiseMetrics;
use super::hosts::HostCounts;
use super::labels::{
    Answered, Compared, Fallback, Kind, KindMode, Listener, Method, Outcome, Placed, State, Step,
};
use super::process::ProcessMetrics;

/// Counts a thing, such as a request or a connection, until it is dropped.
pub struct Active(Gauge);

impl Active {
    fn new(gauge: Gauge) -> Active {
        gauge.inc();
        Active(gauge)
    }
}

impl Drop for Active {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// Buckets from a quarter of a millisecond to 8 s, each twice the one before.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.000_25, 2.0, 16))
}

/// All metrics.
pub struct Metrics {
    registry: Registry,
    /// Held while states are read and encoded.
    scrape: Mutex<()>,
    placements: Family<Placed, Counter>,
    refusals: Family<Kind, Counter>,
    request_seconds: Family<Answered, Histogram, fn() -> Histogram>,
    active_requests: Family<Method, Gauge>,
    moves: Family<State, Counter>,
    fallbacks: Family<Fallback, Counter>,
    comparisons: Family<Compared, Counter>,
    modes: Family<KindMode, Gauge>,
    promises: PromiseMetrics,
    transactions: Family<Outcome, Counter>,
    changes: Counter,
    transaction_seconds: Histogram,
    /// Nanoseconds of the last transaction; 0 before the first.
    last_transaction: AtomicU64,
    reports: Counter,
    samples: Counter,
    released_early: Counter,
    decisions: Gauge,
    waiting: Gauge,
    pods: Family<State, Gauge>,
    epoch: Gauge,
    leads: Gauge,
    clock_behind: Gauge<f64, AtomicU64>,
    clock_steps: Counter,
    links: Family<State, Gauge>,
    hot_links: Gauge,
    slow_links: Gauge,
    devices: Family<State, Gauge>,
    hot_devices: Gauge,
    hosts: Family<State, Gauge>,
    agents: Family<State, Gauge>,
    queued: Gauge,
    device_requests: Gauge,
    polls: Family<Outcome, Counter>,
    poll_seconds: Histogram,
    readings: Family<Step, Counter>,
    ports: Family<State, Gauge>,
    polled_links: Family<State, Gauge>,
    remarks: Gauge,
    connections: Family<Listener, Gauge>,
    connection_limits: Family<Listener, Gauge>,
    connections_replaced: Counter,
    connections_refused: Counter,
    /// Number of open event streams.
    pub streams: Gauge,
}

impl Default for Metrics {
    /// All metrics, at zero.
    fn default() -> Metrics {
        let mut root = Registry::default();
        root.register_collector(Box::new(ProcessMetrics));
        let http = root.sub_registry_with_prefix("http_server");
        let request_seconds = register(
            http,
            "request_duration_seconds",
            "Seconds from the head of a request to the head of its response",
            Family::new_with_constructor(seconds as fn() -> Histogram),
        );
        let active_requests = family(http, "active_requests", "Requests whose response has not begun");
        let registry = root.sub_registry_with_prefix("leeward");
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The program", build);
        let metrics = Metrics {
            placements: family(registry, "placements", "Placement requests, by outcome"),
            refusals: family(registry, "refusals", "Replies with a problem document, by type"),
            request_seconds,
            active_requests,
            moves: family(registry, "moves", "Moves of tasks that reached a state"),
            fallbacks: family(
                registry,
                "fallbacks",
                "Decisions by the default policy instead of the chosen one, by reason",
            ),
            comparisons: family(
                registry,
                "comparisons",
                "Decisions compared with the choice of the other policy, by the effect of Leeward's choice",
            ),
            modes: family(registry, "modes", "1 for the mode in force, by kind of decision"),
            promises: PromiseMetrics::new(registry),
            transactions: family(registry, "store_transactions", "Transactions of the store"),
            changes: family(registry, "store_changes", "Changes sent to the store"),
            transaction_seconds: register(
                registry,
                "store_transaction_seconds",
                "Seconds that a transaction took",
                seconds(),
            ),
            last_transaction: AtomicU64::new(0),
            reports: family(registry, "reports", "Accepted reports"),
            samples: family(registry, "samples", "Accepted samples of links and devices"),
            released_early: family(
                registry,
                "released_early",
                "Decisions released before telemetry showed their load, because of the limit",
            ),
            decisions: family(registry, "decisions", "Decisions in memory"),
            waiting: family(registry, "waiting", "Requests that wait for their decision"),
            pods: family(registry, "pods", "Pods with reported rates by state"),
            epoch: family(registry, "epoch", "Epoch of the ledger"),
            leads: family(registry, "leads", "1 if this service leads and answers placements, else 0"),
            clock_behind: family(
                registry,
                "clock_behind_seconds",
                "Seconds by which the machine's clock was set back while the service runs; negative if forward",
            ),
            clock_steps: family(
                registry,
                "clock_steps",
                "Steps of the machine's clock while the service runs",
            ),
            links: family(registry, "links", "Links by state"),
            hot_links: family(registry, "hot_links", "Hot links"),
            slow_links: family(
                registry,
                "slow_links",
                "Links with telemetry and with less capacity than in the cluster",
            ),
            devices: family(registry, "devices", "Reported devices by state"),
            hot_devices: family(registry, "hot_devices", "Hot devices"),
            hosts: family(registry, "hosts", "Hosts by state"),
            agents: family(
                registry,
                "agents",
                "Hosts by the telemetry of their links and devices; silent hosts reported before",
            ),
            queued: family(registry, "queued_bytes", "Bytes queued at hosts, as reported"),
            device_requests: family(
                registry,
                "device_requests",
                "Requests in flight at devices, as reported",
            ),
            polls: family(registry, "telemetry_polls", "Polls of Prometheus, by outcome"),
            poll_seconds: register(registry, "telemetry_poll_seconds", "Seconds that a poll took", seconds()),
            readings: family(registry, "telemetry_readings", "New counter readings, by kind"),
            ports: family(
                registry,
                "telemetry_ports",
                "Ports in Prometheus by state, each direction counted",
            ),
            polled_links: family(registry, "telemetry_links", "Links reported by Prometheus, by state"),
            remarks: family(registry, "telemetry_remarks", "Current warnings about telemetry"),
            connections: family(registry, "connections", "Open connections, by listener"),
            connection_limits: family(registry, "connections_limit", "Limit on connections, by listener"),
            connections_replaced: family(
                registry,
                "connections_replaced",
                "Unauthenticated connections closed at the limit for a new connection",
            ),
            connections_refused: family(
                registry,
                "connections_refused",
                "Requests rejected because all connections are in use",
            ),
            streams: family(registry, "streams", "Open event streams"),
            registry: root,
            scrape: Mutex::new(()),
        };
        // Alerts on increases need the first value too.
        for state in MigrationState::ALL {
            let _ = metrics.moves.get_or_create(&State { state: state.word() });
        }
        metrics
    }
}

impl Metrics {
    /// Counts a request until the result is dropped.
    pub fn active_request(&self, method: &'static str) -> Active {
        Active::new(self.active_requests.get_or_create_owned(&Method { http_request_method: method }))
    }

    /// Counts an open connection until the result is dropped.
    pub fn open_connection(&self, listener: &'static str) -> Active {
        Active::new(self.connections.get_or_create_owned(&Listener { listener }))
    }

    /// Sets the limit on connections of a listener.
    pub fn connection_limit(&self, listener: &'static str, limit: usize) {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.connection_limits.get_or_create(&Listener { listener }).set(limit);
        let _ = self.connections.get_or_create(&Listener { listener });
    }

    /// Counts an unauthenticated connection that was closed for another.
    pub fn connection_replaced(&self) {
        self.connections_replaced.inc();
    }

    /// Counts a request that was rejected because all connections are in use.
    pub fn connection_refused(&self) {
        self.connections_refused.inc();
    }

    /// Counts a response to a request with this method and path template.
    pub fn request(&self, method: &'static str, path: &'static str, status: u16, took: Duration) {
        let answered =
            Answered { http_request_method: method, http_route: path, http_response_status_code: status };
        self.request_seconds.get_or_create(&answered).observe(took.as_secs_f64());
    }

    /// Counts the comparison of a decision, if it has one.
    fn compared(&self, details: &DecisionDetails) {
        let Some(effect) = details.effect() else { return };
        let decided_by = if details.by_default { "default" } else { "leeward" };
        let labels = Compared { kind: details.spec.kind(), effect: effect.word(), decided_by };
        self.comparisons.get_or_create(&labels).inc();
    }

    /// Counts changes that the store has persisted: states of moves, comparisons, and decisions by the default policy
    /// where another one was chosen.
    pub fn persisted(&self, changes: &[Change]) {
        for change in changes {
            match change {
                Change::Migration(migration) => {
                    self.moves.get_or_create(&State { state: migration.state.word() }).inc();
                }
                Change::Decided(record, _) => {
                    self.compared(&record.details);
                    if let Some(note) = &record.details.note {
                        let (kind, reason) = (record.details.spec.kind(), note.clone());
                        self.fallbacks.get_or_create(&Fallback { kind, reason }).inc();
                    }
                }
                Change::Compared(record) => self.compared(&record.details),
                _ => {}
            }
        }
    }

    /// Counts a problem document of this type.
    pub fn refusal(&self, r#type: &'static str) {
        self.refusals.get_or_create(&Kind { r#type }).inc();
    }

    /// Counts a placement request by its result.
    pub fn placement(&self, kind: &'static str, outcome: &'static str) {
        self.placements.get_or_create(&Placed { kind, outcome }).inc();
    }

    /// Counts steps of the machine's clock.
    pub fn clock_steps(&self, steps: u64) {
        self.clock_steps.inc_by(steps);
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
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.last_transaction.store(nanos.max(1), Ordering::Relaxed);
    }

    /// All metrics as OpenMetrics text; `None` if encoding fails.
    pub fn text(&self, snapshot: &NetworkSnapshot, leads: bool, clock_behind_s: f64) -> Option<String> {
        let counts = snapshot.counts;
        self.samples.inner().store(counts.samples, Ordering::Relaxed);
        self.released_early.inner().store(counts.released_early, Ordering::Relaxed);
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        self.decisions.set(number(counts.decisions));
        self.waiting.set(number(counts.waiting));
        self.leads.set(i64::from(leads));
        self.clock_behind.set(clock_behind_s);
        self.epoch.set(i64::try_from(snapshot.epoch.0).unwrap_or(i64::MAX));
        // Two scrapes at once must not see each other's states half set.
        let _scrape = self.scrape.lock().unwrap_or_else(PoisonError::into_inner);
        self.modes.clear();
        for (kind, mode) in snapshot.modes.by_kind() {
            self.modes.get_or_create(&KindMode { kind, mode: mode.to_string() }).set(1);
        }
        self.promises.set(&snapshot.promises);
        let set = |family: &Family<State, Gauge>, states: &[(&'static str, usize)]| {
            for &(state, count) in states {
                family.get_or_create(&State { state }).set(number(count));
            }
        };
        let named = counts.pods.saturating_sub(counts.unnamed_pods);
        set(&self.pods, &[("named", named), ("unnamed", counts.unnamed_pods)]);
        let (links, devices) = (&snapshot.links, &snapshot.devices);
        let seen = links.iter().filter(|link| link.measured.is_some()).count();
        set(&self.links, &[("seen", seen), ("unseen", links.len() - seen)]);
        self.hot_links.set(number(links.iter().filter(|link| link.hot_since.is_some()).count()));
        self.slow_links.set(number(links.iter().filter(|link| link.is_slow()).count()));
        let seen = devices.iter().filter(|device| device.busy.is_some()).count();
        set(&self.devices, &[("seen", seen), ("unseen", devices.len() - seen)]);
        self.hot_devices.set(number(devices.iter().filter(|device| device.hot_since.is_some()).count()));
        let HostCounts { up, draining, down, reporting, silent, absent } = HostCounts::of(snapshot);
        set(&self.hosts, &[("up", up), ("draining", draining), ("down", down)]);
        set(&self.agents, &[("reporting", reporting), ("silent", silent), ("absent", absent)]);
        self.queued.set(snapshot.links.iter().filter_map(|link| link.queue).sum::<f64>() as i64);
        let requests = snapshot.devices.iter().filter_map(|device| device.reading?.requests?.in_flight);
        let requests = requests.fold(0_u64, u64::saturating_add);
        self.device_requests.set(i64::try_from(requests).unwrap_or(i64::MAX));
        let mut text = String::new();
        encode(&mut text, &self.registry).ok().map(|()| text)
    }
}
