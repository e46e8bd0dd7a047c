//! The polling plan: server, queries and intervals, validated from the settings.

use leeward_fabric::Nanos;
use leeward_fabric::input::{InputError, read_text};

use super::access::parse_address;
use super::answer::Series;
use super::client::Client;
use super::map::{Direction, Map, Metrics};
use super::meter::PortReadings;
use super::settings::PrometheusSettings;

/// Shortest polling interval, and shortest timeout.
const MIN_INTERVAL: Nanos = Nanos(100_000_000);
/// Longest backoff after failures, unless the polling interval is longer. Also the longest timeout.
const MAX_BACKOFF: Nanos = Nanos(60 * Nanos::SECOND.0);
/// Longest accepted `Retry-After` of a server.
const MAX_RETRY_AFTER: Nanos = Nanos(300 * Nanos::SECOND.0);

/// Server, queries and intervals of polling.
pub struct Plan {
    /// Base URL of the server.
    pub url: String,
    /// Mapping from labels to links.
    pub map: Map,
    /// Client of the server.
    pub client: Client,
    /// Polling interval.
    pub every: Nanos,
    /// Report interval of the ledger: expected time between two samples of a link.
    pub interval: Nanos,
}

/// Kind of a queried series.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SeriesKind {
    /// A counter.
    Counter(Direction),
    /// Speed of ports.
    Speed,
}

impl Plan {
    /// Reads the files that the settings name. `interval` is the report interval of the service. `invalid`
    /// makes the error for a field of the settings and a message.
    ///
    /// # Errors
    /// An [`InputError`] with file, line and field.
    pub fn new(
        settings: &PrometheusSettings,
        interval: Nanos,
        invalid: &dyn Fn(&str, String) -> InputError,
    ) -> Result<Plan, InputError> {
        let PrometheusSettings { url, map, http, every, timeout } = settings;
        let missing = |field: &str, expected: &str| invalid(field, format!("missing; expected {expected}"));
        let (url_field, map_field) = ("telemetry.prometheus.url", "telemetry.prometheus.map");
        let url = url.as_ref().ok_or_else(|| missing(url_field, "the address of a Prometheus"))?;
        let url = parse_address(url).map_err(|message| invalid(url_field, message))?;
        let file = map
            .as_ref()
            .ok_or_else(|| missing(map_field, "a map file, which defines the link of each port"))?;
        let every = every.unwrap_or(interval);
        if every < MIN_INTERVAL || every > interval {
            let message = format!(
                "{every}: expected from {MIN_INTERVAL} to {interval}, the time between two reports of a link \
                 (`interval`)"
            );
            return Err(invalid("telemetry.prometheus.every", message));
        }
        if *timeout < MIN_INTERVAL || *timeout > MAX_BACKOFF {
            let message = format!("{timeout}: expected from {MIN_INTERVAL} to {MAX_BACKOFF}");
            return Err(invalid("telemetry.prometheus.timeout", message));
        }
        let map = Map::from_text(file, &read_text(file)?)?;
        let client = Client::new(url.clone(), http.as_deref(), *timeout)?;
        Ok(Plan { url, map, client, every, interval })
    }

    /// Range queries of one round, in order.
    pub fn queries(&self) -> Vec<(SeriesKind, String)> {
        // Twice the interval also covers the previous reading, whose response may have been lost.
        let range_ms = self.interval.0.saturating_mul(2).div_ceil(1_000_000);
        series_queries(&self.map.metrics)
            .map(|(kind, query)| (kind, format!("{query}[{range_ms}ms]")))
            .collect()
    }

    /// Time to wait after a round that took `took` and was failure number `failed` in a row (0 after a success).
    /// `retry_after` is the wait time that the server requests.
    pub fn wait(&self, took: Nanos, failed: u32, retry_after: Option<Nanos>) -> Nanos {
        // A slow server stays idle for at least the time that it worked for this service, up to one polling interval.
        let usual = self.every.since(took).max(took.min(self.every));
        let doubled = self.every.0.saturating_mul(1 << failed.saturating_sub(1).min(16));
        let backoff = Nanos(doubled.min(MAX_BACKOFF.0.max(self.every.0)));
        match failed {
            0 => usual,
            _ => backoff.max(retry_after.unwrap_or_default().min(MAX_RETRY_AFTER)),
        }
    }
}

/// Series to query, with their selectors. Speeds come first, because the speed of a port distinguishes a restart of its
/// counter from a wraparound.
pub fn series_queries(metrics: &Metrics) -> impl Iterator<Item = (SeriesKind, &str)> {
    let speed = metrics.speed.iter().map(|query| (SeriesKind::Speed, query.as_str()));
    let counters =
        metrics.queries.iter().map(|(direction, query)| (SeriesKind::Counter(*direction), query.as_str()));
    speed.chain(counters)
}

impl SeriesKind {
    /// Stores a response under its kind.
    pub fn store(self, series: Vec<Series>, readings: &mut PortReadings) {
        match self {
            SeriesKind::Counter(direction) => readings.counters.push((direction, series)),
            SeriesKind::Speed => readings.speeds = series,
        }
    }

    /// Field of the map file.
    pub fn field(self) -> &'static str {
        match self {
            SeriesKind::Speed => "prometheus.speed",
            SeriesKind::Counter(Direction::In) => "prometheus.in",
            SeriesKind::Counter(Direction::Out) => "prometheus.out",
            SeriesKind::Counter(Direction::Load) => "prometheus.load",
        }
    }
}
