//! Settings of a service: one file in YAML, JSON or TOML, and command-line flags ([`Flags`]), which take
//! precedence. Every field but the cluster has a default.

mod flags;
mod ledger;
mod moves;

use std::collections::BTreeMap;
use std::path::Path;

use leeward_fabric::input::{InputError, excerpt, read_yaml};
use leeward_fabric::{Bytes, Nanos};
use leeward_prometheus::{Plan, PrometheusSettings};
use leeward_records::Modes;
use leeward_store::Durability;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

pub use self::flags::Flags;
pub use self::ledger::LedgerOptions;
pub use self::moves::{HistoryOptions, HookSettings, MoveOptions};

/// Settings of a service.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Cluster file. Paths are relative to the working directory of the service.
    pub cluster: Option<String>,
    /// Address and port to listen on; port 0 picks a free one. If other machines can reach the address, `tokens` is
    /// required.
    pub listen: String,
    /// Address and port for health, metrics, status and administration, with connections of their own. Without this
    /// field, they have a few connections beyond `limits.connections`. They are available on `listen` in either case.
    pub admin_listen: Option<String>,
    /// Policies. A reload applies changes.
    pub policies: PolicySettings,
    /// Decider of requests of each kind. A reload applies changes, and so does `leeward mode`.
    pub modes: Modes,
    /// While this file exists, every mode is `off`. The service looks for it four times a second.
    pub off_file: Option<String>,
    /// Estimates of loads. A reload applies changes.
    pub ledger: LedgerOptions,
    /// Demand of tasks from the traffic that their job had; null for the stated demand alone. A reload applies changes.
    pub history: Option<HistoryOptions>,
    /// Moves of tasks, if `policies.moves` names a policy. A reload applies changes.
    pub moves: MoveOptions,
    /// Time between two reports of a link.
    pub interval: Nanos,
    /// Seed of tie-breaking.
    pub seed: u64,
    /// URL at which other services and clients reach this service. Default: the URL of the listening address.
    pub advertise: Option<String>,
    /// Store of decisions: a file, `memory`, or a PostgreSQL URL, `postgres://user@host/database`, which
    /// several services may share. Default: a file with the cluster's name.
    pub store: Option<String>,
    /// File that keeps telemetry over a restart, or `none`. Default: the store's file with `.telemetry` after its name;
    /// `none` for a store in memory or in a database.
    pub telemetry_file: Option<String>,
    /// Failures that acknowledged decisions survive.
    pub durability: Durability,
    /// Number of stored decisions, besides those that still hold resources.
    pub keep: u64,
    /// Limits on clients. Rates can change while the service runs.
    pub limits: LimitSettings,
    /// Certificate and key for HTTPS; plain HTTP without them. A reload reads the files again.
    pub tls: Option<TlsSettings>,
    /// Token file, as `leeward token new` creates it. A reload reads it again.
    pub tokens: Option<String>,
    /// Sources of telemetry besides reports. A reload reads them again.
    pub telemetry: TelemetrySettings,
    /// Measurements through agents.
    pub probes: ProbeSettings,
    /// Log on stderr.
    pub log: LogSettings,
}

/// Measurements through agents.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ProbeSettings {
    /// File with the hosts' shared secret in its first line. The service reads it again for each survey.
    pub secret: Option<String>,
    /// Addresses of hosts, `HOST` or `HOST:PORT` by host name. The field is for hosts that other hosts cannot reach at
    /// the source address of their reports.
    pub addresses: BTreeMap<String, String>,
}

/// Policies, with settings after colons: `sinbad:interval=1s`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PolicySettings {
    /// Placement of copies of blocks.
    pub replicas: String,
    /// Placement of tasks.
    pub tasks: String,
    /// Moves of tasks from hot racks. Without this field, the service advises no moves.
    pub moves: Option<String>,
    /// Admission of workloads whose volumes have a host.
    pub workload: String,
    /// Choice of limits for workloads whose volumes need a place.
    pub volumes: String,
    /// Policies that decide in the modes `off` and `shadow`, and outside a canary.
    pub defaults: DefaultPolicies,
}

/// Default policies: those of the system that asks, without knowledge of the network.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DefaultPolicies {
    /// Placement of copies of blocks.
    pub replicas: String,
    /// Placement of tasks.
    pub tasks: String,
    /// Admission of workloads whose volumes have a host.
    pub workload: String,
    /// Choice of limits for workloads whose volumes need a place.
    pub volumes: String,
}

/// Limits on clients.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LimitSettings {
    /// Largest number of open connections. At the limit, a new connection replaces a connection without an authorized
    /// request, or has access to health, metrics and administration only. Default: 256 more than the cluster has hosts
    /// at the start, at least 512, and at most as many as the limit on open files allows.
    pub connections: Option<u32>,
    /// Largest number of open event streams.
    pub streams: u32,
    /// Largest request body.
    pub body: Bytes,
    /// Time limit for the head of a request, for its body, and for the client to read the response.
    pub patience: Nanos,
    /// Requests per second of one client; null for no limit. The token identifies the client; without tokens, its
    /// address does.
    pub requests_per_s: Option<u32>,
}

/// Certificate and key for HTTPS.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TlsSettings {
    /// PEM file with the certificate and its chain.
    pub cert: String,
    /// PEM file with the key.
    pub key: String,
}

/// Sources of telemetry besides reports.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetrySettings {
    /// Prometheus server that the leader polls.
    pub prometheus: Option<PrometheusSettings>,
}

/// Log on stderr. The level can change while the service runs; the format cannot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LogSettings {
    /// Level.
    pub level: Level,
    /// Format.
    pub format: Format,
}

/// Log level.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Failures.
    Error,
    /// Failures, and conditions that need attention.
    Warn,
    /// Messages of `warn`, and the service's activity.
    #[default]
    Info,
    /// Messages of `info`, and a line for each request.
    Debug,
}

/// Log format.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Readable lines.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            cluster: None,
            listen: "127.0.0.1:7600".to_owned(),
            admin_listen: None,
            policies: PolicySettings::default(),
            modes: Modes::default(),
            off_file: None,
            ledger: LedgerOptions::default(),
            history: Some(HistoryOptions::default()),
            moves: MoveOptions::default(),
            interval: Nanos::SECOND,
            seed: 1,
            advertise: None,
            store: None,
            telemetry_file: None,
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

impl Default for PolicySettings {
    fn default() -> Self {
        let policy = str::to_owned;
        PolicySettings {
            replicas: policy("sinbad"),
            tasks: policy("leeward"),
            moves: None,
            workload: policy("dnc"),
            volumes: policy("compactor"),
            defaults: DefaultPolicies::default(),
        }
    }
}

impl Default for DefaultPolicies {
    fn default() -> Self {
        let policy = str::to_owned;
        DefaultPolicies {
            replicas: policy("uniform"),
            tasks: policy("borg"),
            workload: policy("none"),
            volumes: policy("average"),
        }
    }
}

impl Default for LimitSettings {
    fn default() -> Self {
        LimitSettings {
            connections: None,
            streams: 64,
            body: Bytes(16 << 20),
            patience: Nanos(90 * Nanos::SECOND.0),
            requests_per_s: None,
        }
    }
}

impl Settings {
    /// Reads a settings file: TOML if its name ends in `.toml`, else YAML or JSON.
    ///
    /// # Errors
    /// [`InputError`] with line and field.
    pub fn from_text(file: &str, text: &str) -> Result<Settings, InputError> {
        let is_toml =
            Path::new(file).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"));
        if is_toml { read_toml(file, text) } else { read_yaml(file, text) }
    }

    /// Reads the files of the polled Prometheus; `None` if the settings name no Prometheus. `interval` is the report
    /// interval from the start of the service.
    ///
    /// # Errors
    /// An [`InputError`] with file, line and field.
    pub fn plan(&self, flags: &Flags, interval: Nanos) -> Result<Option<Plan>, InputError> {
        let invalid = |field: &str, message: String| flags.wrong(field, message);
        let settings = self.telemetry.prometheus.as_ref();
        settings.map(|settings| Plan::new(settings, interval, &invalid)).transpose()
    }

    /// Names of the fields that differ and that a reload applies.
    pub fn changed(&self, other: &Settings) -> Vec<&'static str> {
        let differs = [
            ("policies", self.policies != other.policies),
            ("modes", self.modes != other.modes),
            ("ledger", self.ledger != other.ledger),
            ("history", self.history != other.history),
            ("moves", self.moves != other.moves),
            ("limits.requests_per_s", self.limits.requests_per_s != other.limits.requests_per_s),
            ("tokens", self.tokens != other.tokens),
            ("tls", self.tls != other.tls),
            ("telemetry", self.telemetry != other.telemetry),
            ("log.level", self.log.level != other.log.level),
        ];
        differs.into_iter().filter_map(|(field, differs)| differs.then_some(field)).collect()
    }

    /// Names of the fields that differ and need a restart to change.
    pub fn fixed(&self, other: &Settings) -> Vec<&'static str> {
        let (limits, new_limits) = (&self.limits, &other.limits);
        let differs = [
            ("cluster", self.cluster != other.cluster),
            ("listen", self.listen != other.listen),
            ("off_file", self.off_file != other.off_file),
            ("admin_listen", self.admin_listen != other.admin_listen),
            ("interval", self.interval != other.interval),
            ("seed", self.seed != other.seed),
            ("advertise", self.advertise != other.advertise),
            ("store", self.store != other.store),
            ("telemetry_file", self.telemetry_file != other.telemetry_file),
            ("durability", self.durability != other.durability),
            ("keep", self.keep != other.keep),
            ("limits.connections", limits.connections != new_limits.connections),
            ("limits.streams", limits.streams != new_limits.streams),
            ("limits.body", limits.body != new_limits.body),
            ("limits.patience", limits.patience != new_limits.patience),
            // HTTP clients do not understand HTTPS, and a service with tokens must not become open.
            ("tls", self.tls.is_some() != other.tls.is_some()),
            ("tokens", self.tokens.is_some() != other.tokens.is_some()),
            ("probes", self.probes != other.probes),
            ("log.format", self.log.format != other.log.format),
        ];
        differs.into_iter().filter_map(|(field, differs)| differs.then_some(field)).collect()
    }
}

/// Reads TOML; errors have the same form as for YAML.
fn read_toml<T: DeserializeOwned>(file: &str, text: &str) -> Result<T, InputError> {
    let wrong = |error: &toml::de::Error, field: Option<String>| {
        let mut wrong = InputError::new(file, error.message().replace('\n', "; "));
        wrong.field = field.filter(|field| field != ".").map(|field| excerpt(&field));
        match error.span().and_then(|span| text.get(..span.start)) {
            Some(before) => wrong.at_line(before.matches('\n').count() as u64 + 1),
            None => wrong,
        }
    };
    let deserializer = toml::de::Deserializer::parse(text).map_err(|error| wrong(&error, None))?;
    serde_path_to_error::deserialize(deserializer).map_err(|error| {
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
    fn yaml_and_toml_files_give_the_same_settings() {
        let (yaml, toml) = (Settings::from_text("a.yaml", YAML), Settings::from_text("a.toml", TOML));
        assert_eq!(yaml, toml);
        let settings = yaml.expect("a valid file");
        assert_eq!((settings.limits.body, settings.log.level), (Bytes(1 << 20), Level::Debug));
        assert_eq!(settings.listen, Settings::default().listen, "omitted settings have defaults");
    }

    #[test]
    fn errors_in_a_settings_file_name_line_and_field() {
        let cases = [
            ("a.yaml", "listen: a\nlimit: {}\n", (Some(2), Some("limit"))),
            ("a.toml", "listen = 'a'\nlimit = 1\n", (Some(2), Some("limit"))),
            ("a.yaml", "limits:\n  body: large\n", (Some(2), Some("limits.body"))),
            ("a.toml", "[limits]\nbody = 'large'\n", (Some(2), Some("limits.body"))),
            ("a.toml", "listen = \n", (Some(1), None)),
            ("a.toml", "[log]\n\nlevel = 'loud'\n", (Some(3), Some("log.level"))),
        ];
        for (file, text, (line, field)) in cases {
            let error = Settings::from_text(file, text).expect_err("an error");
            assert_eq!((error.line, error.field.as_deref()), (line, field), "{text}: {error}");
        }
    }

    #[test]
    fn settings_that_need_a_restart_are_named() {
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
