//! What is asked, of whom, and how often: read from the settings, and found right.

use leeward_fabric::Nanos;
use leeward_fabric::input::{InputError, read_text};

use super::access::address;
use super::answer::Series;
use super::client::Client;
use super::map::{Map, Metrics, Way};
use super::meter::Heard;
use super::settings::PrometheusSettings;

/// The shortest time between two rounds of questions.
const LEAST: Nanos = Nanos(100_000_000);
/// The longest wait before a server that fails is asked again, unless rounds are further apart.
const LONGEST_WAIT: Nanos = Nanos(60 * Nanos::SECOND.0);
/// The longest wait that a server may ask for.
const LONGEST_ASKED: Nanos = Nanos(300 * Nanos::SECOND.0);

/// What is asked, of whom, and how often.
pub struct Plan {
    /// The address.
    pub url: String,
    /// Which labels are which links.
    pub map: Map,
    /// The way there.
    pub client: Client,
    /// Time between two rounds of questions.
    pub every: Nanos,
    /// Time between two reports of a link, as the ledger expects it.
    pub interval: Nanos,
}

/// Of whom a series is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// A counter.
    Counter(Way),
    /// What ports can carry.
    Speed,
}

impl Plan {
    /// Reads the files that the settings name. `interval` is the report interval of the service; `invalid` makes the error
    /// for a field of the settings and a message.
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

    /// What to ask, in this order.
    pub fn queries(&self) -> Vec<(Asked, String)> {
        // Twice the interval holds the reading before the last as well, and so one of which the answer was lost.
        let reach = self.interval.0.saturating_mul(2).div_ceil(1_000_000);
        asked(&self.map.metrics).map(|(asked, query)| (asked, format!("{query}[{reach}ms]"))).collect()
    }

    /// How long to wait after a round that took so long, and failed for the so-manieth time in a row.
    pub fn wait(&self, took: Nanos, failed: u32, asked: Option<Nanos>) -> Nanos {
        // A server that is slow has as much time to itself as it works for this service.
        let usual = self.every.since(took).max(took.min(self.every));
        let doubled = self.every.0.saturating_mul(1 << failed.saturating_sub(1).min(16));
        let again = Nanos(doubled.min(LONGEST_WAIT.0.max(self.every.0)));
        match failed {
            0 => usual,
            _ => again.max(asked.unwrap_or_default().min(LONGEST_ASKED)),
        }
    }
}

/// What to ask, and its selector; speeds first: how fast a port can be tells a restart of its counter from one that went over
/// the top.
pub fn asked(metrics: &Metrics) -> impl Iterator<Item = (Asked, &str)> {
    let speed = metrics.speed.iter().map(|query| (Asked::Speed, query.as_str()));
    let counters = metrics.queries.iter().map(|(way, query)| (Asked::Counter(*way), query.as_str()));
    speed.chain(counters)
}

impl Asked {
    /// Puts what was answered to where it belongs.
    pub fn put(self, series: Vec<Series>, heard: &mut Heard) {
        match self {
            Asked::Counter(way) => heard.counters.push((way, series)),
            Asked::Speed => heard.speeds = series,
        }
    }

    /// Its field of the map.
    pub fn field(self) -> &'static str {
        match self {
            Asked::Speed => "prometheus.speed",
            Asked::Counter(Way::In) => "prometheus.in",
            Asked::Counter(Way::Out) => "prometheus.out",
            Asked::Counter(Way::Load) => "prometheus.load",
        }
    }
}
