//! The polling plan: server, queries and intervals, validated from the settings.

use leeward_fabric::Nanos;
use leeward_fabric::input::{InputError, read_text};

use super::access::address;
use super::answer::Series;
use super::client::Client;
use super::map::{Map, Metrics, Way};
use super::meter::PortReadings;
use super::settings::PrometheusSettings;

/// Shortest polling interval.
const LEAST: Nanos = Nanos(100_000_000);
/// Longest backoff after failures, unless the polling interval is longer.
const LONGEST_WAIT: Nanos = Nanos(60 * Nanos::SECOND.0);
/// Longest accepted `Retry-After` of a server.
const LONGEST_ASKED: Nanos = Nanos(300 * Nanos::SECOND.0);

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
    Counter(Way),
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
        let missing = |field: &str, what: &str| invalid(field, format!("missing; expected {what}"));
        let (url_field, map_field) = ("telemetry.prometheus.url", "telemetry.prometheus.map");
        let url = url.as_ref().ok_or_else(|| missing(url_field, "the address of a Prometheus"))?;
        let url = address(url).map_err(|message| invalid(url_field, message))?;
        let file =
            map.as_ref().ok_or_else(|| missing(map_field, "a file that says which ports are which links"))?;
        let every = every.unwrap_or(interval);
        if every < LEAST || every > interval {
            let message = format!(
                "{every}: expected from {LEAST} to {interval}, the time between two reports of a link (`interval`)"
            );
            return Err(invalid("telemetry.prometheus.every", message));
        }
        if *timeout < LEAST || *timeout > LONGEST_WAIT {
            let message = format!("{timeout}: expected from {LEAST} to {LONGEST_WAIT}");
            return Err(invalid("telemetry.prometheus.timeout", message));
        }
        let map = Map::from_text(file, &read_text(file)?)?;
        let client = Client::new(url.clone(), http.as_deref(), *timeout)?;
        Ok(Plan { url, map, client, every, interval })
    }

    /// Range queries of one round, in order.
    pub fn queries(&self) -> Vec<(SeriesKind, String)> {
        // Twice the interval also covers the previous reading, whose response may have been lost.
        let reach = self.interval.0.saturating_mul(2).div_ceil(1_000_000);
        series_queries(&self.map.metrics)
            .map(|(asked, query)| (asked, format!("{query}[{reach}ms]")))
            .collect()
    }

    /// Time to wait after a round that took `took` and was failure number `failed` in a row (0 after a
    /// success). `asked` is the server's `Retry-After`.
    pub fn wait(&self, took: Nanos, failed: u32, asked: Option<Nanos>) -> Nanos {
        // A slow server stays idle for at least the time that it worked for this service, up to one polling interval.
        let usual = self.every.since(took).max(took.min(self.every));
        let doubled = self.every.0.saturating_mul(1 << failed.saturating_sub(1).min(16));
        let again = Nanos(doubled.min(LONGEST_WAIT.0.max(self.every.0)));
        match failed {
            0 => usual,
            _ => again.max(asked.unwrap_or_default().min(LONGEST_ASKED)),
        }
    }
}

/// Series to query, with their selectors. Speeds come first, because the speed of a port distinguishes a restart of its
/// counter from a wraparound.
pub fn series_queries(metrics: &Metrics) -> impl Iterator<Item = (SeriesKind, &str)> {
    let speed = metrics.speed.iter().map(|query| (SeriesKind::Speed, query.as_str()));
    let counters = metrics.queries.iter().map(|(way, query)| (SeriesKind::Counter(*way), query.as_str()));
    speed.chain(counters)
}

impl SeriesKind {
    /// Stores a response under its kind.
    pub fn put(self, series: Vec<Series>, heard: &mut PortReadings) {
        match self {
            SeriesKind::Counter(way) => heard.counters.push((way, series)),
            SeriesKind::Speed => heard.speeds = series,
        }
    }

    /// Field of the map file.
    pub fn field(self) -> &'static str {
        match self {
            SeriesKind::Speed => "prometheus.speed",
            SeriesKind::Counter(Way::In) => "prometheus.in",
            SeriesKind::Counter(Way::Out) => "prometheus.out",
            SeriesKind::Counter(Way::Load) => "prometheus.load",
        }
    }
}
