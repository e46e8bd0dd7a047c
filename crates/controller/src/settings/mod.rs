//! What a service is to be: one file, in YAML, JSON or TOML, and what the command line says ([`Flags`]), which wins. Every
//! field has a default but the cluster.

mod flags;

use std::collections::BTreeMap;
use std::path::Path;

use leeward_fabric::input::{InputError, excerpt, read_yaml};
use leeward_fabric::{Bytes, Nanos};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use self::flags::Flags;
use crate::store::Durability;

/// What a service is to be.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The cluster file. Paths are taken from where the service is started.
    pub cluster: Option<String>,
    /// Address and port to listen at; port 0 finds a free one. What others reach needs `tokens`.
    pub listen: String,
    /// Who decides.
    pub policies: PolicySettings,
    /// Time between two reports of a link.
    pub interval: Nanos,
    /// Seed of ties.
    pub seed: u64,
    /// The URL that other services and their clients are told to reach this one at. By default that of where it listens.
    pub advertise: Option<String>,
    /// Where decisions are kept: a file, `memory`, or a PostgreSQL, `postgres://user@host/database`, which several
    /// services may share. By default a file that is called like the cluster.
    pub store: Option<String>,
    /// What acknowledged decisions outlive.
    pub durability: Durability,
    /// Decisions that the store keeps besides those that hold something of the network.
    pub keep: u64,
    /// What clients may ask for at most. Rates can be changed while the service runs.
    pub limits: LimitSettings,
    /// Certificate and key for HTTPS; HTTP if they are not given. They are read again when the service is told to reload.
    pub tls: Option<TlsSettings>,
    /// A file of tokens, as `leeward token new` makes them; it is read again when the service is told to reload.
    pub tokens: Option<String>,
    /// Where telemetry comes from besides reports. It is read again when the service is told to reload.
    pub telemetry: TelemetrySettings,
    /// How agents are asked to measure.
    pub probes: ProbeSettings,
    /// What is written to stderr.
    pub log: LogSettings,
}

/// How agents are asked to measure.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProbeSettings {
    /// A file whose first line the hosts share; it is read for each survey.
    pub secret: Option<String>,
    /// Where hosts listen, `HOST` or `HOST:PORT` by their names, whose reports come from another address than others reach
    /// them at.
    pub addresses: BTreeMap<String, String>,
}

/// Who decides: policies, with settings after colons.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PolicySettings {
    /// Where copies of blocks go.
    pub replicas: String,
    /// Where tasks go.
    pub tasks: String,
    /// Which tasks leave hot racks; none if not given.
    pub moves: Option<String>,
    /// Whether a workload whose volume is somewhere is promised its SLO.
    pub workload: String,
    /// How limits are chosen where the volume of a workload is placed.
    pub volumes: String,
}

/// What clients may ask for at most.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LimitSettings {
    /// Connections that may be open; who opens one more waits.
    pub connections: u32,
    /// Streams of events that may be open.
    pub streams: u32,
    /// The largest body.
    pub body: Bytes,
    /// How long a request may take to arrive, head and body each, and how long an answer may stand without being read.
    pub patience: Nanos,
    /// Requests a second of one client, which is a token, or an address where there are none; null for no limit.
    pub requests_per_s: Option<u32>,
}

/// Certificate and key for HTTPS.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsSettings {
    /// A PEM file of the certificate, with those that lead to its authority.
    pub cert: String,
    /// A PEM file of its key.
    pub key: String,
}

/// Where telemetry comes from besides reports.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetrySettings {
    /// A Prometheus that the service asks, while it leads.
    pub prometheus: Option<PrometheusSettings>,
}

/// A Prometheus that is asked for counters of ports.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PrometheusSettings {
    /// Its address, such as `http://prom:9090`.
    pub url: Option<String>,
    /// A map file: what to ask for, and which ports are which links. `leeward hotspots` takes the same.
    pub map: Option<String>,
    /// A file that says who asks and whom to trust, as promtool's `--http.config.file` does.
    pub http: Option<String>,
    /// Time between two rounds of questions, at most the interval; by default that.
    pub every: Option<Nanos>,
    /// How long one answer may take.
    pub timeout: Nanos,
}

/// What is written to stderr. Can be changed while the service runs, but for the format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LogSettings {
    /// How much.
    pub level: Level,
    /// In which form.
    pub format: Format,
}

/// How much is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// What did not work.
    Error,
    /// And what somebody should look at.
    Warn,
    /// And what the service does.
    #[default]
    Info,
    /// And a line for each request.
    Debug,
}

/// In which form it is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Lines for people.
    #[default]
    Text,
    /// An object a line.
    Json,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            cluster: None,
            listen: "127.0.0.1:7600".to_owned(),
            policies: PolicySettings::default(),
            interval: Nanos::SECOND,
            seed: 1,
            advertise: None,
            store: None,
            durability: Durability::default(),
            keep: 1_000_000,
            limits: LimitSettings::default(),
            tls: None,
            tokens: None,
            telemetry: TelemetrySettings::default(),
            probes: ProbeSettings::default(),
            log: LogSettings::default(),
        }
    }
}

impl Default for PrometheusSettings {
    fn default() -> Self {
        let timeout = Nanos(10 * Nanos::SECOND.0);
        PrometheusSettings { url: None, map: None, http: None, every: None, timeout }
    }
}

impl Default for PolicySettings {
    fn default() -> Self {
        let named = str::to_owned;
        PolicySettings {
            replicas: named("sinbad"),
            tasks: named("leeward"),
            moves: None,
            workload: named("dnc"),
            volumes: named("compactor"),
        }
    }
}

impl Default for LimitSettings {
    fn default() -> Self {
        LimitSettings {
            connections: 512,
            streams: 64,
            body: Bytes(16 << 20),
            patience: Nanos(90 * Nanos::SECOND.0),
            requests_per_s: None,
        }
    }
}

impl Settings {
    /// Reads a file of settings; it is TOML if its name ends in `.toml`, else YAML, which JSON is too.
    ///
    /// # Errors
    /// An [`InputError`] with line and field.
    pub fn from_text(file: &str, text: &str) -> Result<Settings, InputError> {
        let is_toml = Path::new(file).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("toml"));
        if is_toml { read_toml(file, text) } else { read_yaml(file, text) }
    }

    /// The fields of others that differ, and take a restart to change.
    pub fn fixed(&self, other: &Settings) -> Vec<&'static str> {
        let (one, two) = (&self.limits, &other.limits);
        let differs = [
            ("cluster", self.cluster != other.cluster),
            ("listen", self.listen != other.listen),
            ("policies", self.policies != other.policies),
            ("interval", self.interval != other.interval),
            ("seed", self.seed != other.seed),
            ("advertise", self.advertise != other.advertise),
            ("store", self.store != other.store),
            ("durability", self.durability != other.durability),
            ("keep", self.keep != other.keep),
            ("limits.connections", one.connections != two.connections),
            ("limits.streams", one.streams != two.streams),
            ("limits.body", one.body != two.body),
            ("limits.patience", one.patience != two.patience),
            // Who speaks HTTP does not understand HTTPS, and who needed a token is not to be let in without.
            ("tls", self.tls.is_some() != other.tls.is_some()),
            ("tokens", self.tokens.is_some() != other.tokens.is_some()),
            ("probes", self.probes != other.probes),
            ("log.format", self.log.format != other.log.format),
        ];
        differs.into_iter().filter_map(|(field, differs)| differs.then_some(field)).collect()
    }
}

/// Reads a TOML text; errors say the same as those of YAML.
fn read_toml<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, InputError> {
    let wrong = |error: &toml::de::Error, field: Option<String>| {
        let mut wrong = InputError::new(file, error.message().replace('\n', "; "));
        wrong.field = field.filter(|field| field != ".").map(|field| excerpt(&field));
        match error.span().and_then(|span| text.get(..span.start)) {
            Some(before) => wrong.at_line(before.matches('\n').count() as u64 + 1),
            None => wrong,
        }
    };
    let read = toml::de::Deserializer::parse(text).map_err(|error| wrong(&error, None))?;
    serde_path_to_error::deserialize(read).map_err(|error| {
        let field = error.path().to_string();
        wrong(error.inner(), Some(field))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const YAML: &str = "cluster: c.yaml\nlimits:\n  requests_per_s: 100\n  body: 1MiB\nlog: {level: debug}\n";
    const TOML: &str =
        "cluster = 'c.yaml'\n[limits]\nrequests_per_s = 100\nbody = '1MiB'\n[log]\nlevel = 'debug'\n";

    #[test]
    fn a_file_says_the_same_in_yaml_and_in_toml() {
        let (one, two) = (Settings::from_text("a.yaml", YAML), Settings::from_text("a.toml", TOML));
        assert_eq!(one, two);
        let settings = one.expect("a right file");
        assert_eq!((settings.limits.body, settings.log.level), (Bytes(1 << 20), Level::Debug));
        assert_eq!(settings.listen, Settings::default().listen, "what is not said is the default");
    }

    #[test]
    fn what_is_wrong_with_a_file_is_told_with_line_and_field() {
        let cases = [
            ("a.yaml", "listen: a\nlimit: {}\n", (Some(2), Some("limit"))),
            ("a.toml", "listen = 'a'\nlimit = 1\n", (Some(2), Some("limit"))),
            ("a.yaml", "limits:\n  body: large\n", (Some(2), Some("limits.body"))),
            ("a.toml", "[limits]\nbody = 'large'\n", (Some(2), Some("limits.body"))),
            ("a.toml", "listen = \n", (Some(1), None)),
            ("a.toml", "[log]\n\nlevel = 'loud'\n", (Some(3), Some("log.level"))),
        ];
        for (file, text, (line, field)) in cases {
            let error = Settings::from_text(file, text).expect_err("it is wrong");
            assert_eq!((error.line, error.field.as_deref()), (line, field), "{text}: {error}");
        }
    }

    #[test]
    fn what_takes_a_restart_is_named() {
        let before = Settings::default();
        let mut after = before.clone();
        after.log.level = Level::Debug;
        after.limits.requests_per_s = Some(5);
        assert!(before.fixed(&after).is_empty());
        after.limits.streams = 1;
        after.seed = 2;
        assert_eq!(before.fixed(&after), ["seed", "limits.streams"]);
    }
}
