//! The fields of a scenario file, as written.

use std::collections::BTreeMap;
use std::fmt;

use leeward_fabric::input::{Spanned, excerpt, one_line};
use leeward_fabric::{Bandwidth, Nanos};
use leeward_ledger::LedgerSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::stage::telemetry::Telemetry;
use crate::stage::workload::{Share, Source};

/// A scenario: one cluster, some workloads, what happens, and the policies to try.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScenarioFile {
    /// What people call it.
    #[serde(default, deserialize_with = "one_line")]
    pub name: Option<String>,
    /// A cluster file, by its path from this file.
    #[schemars(with = "String")]
    pub cluster: Spanned<String>,
    /// What arrives; all of these together.
    #[schemars(with = "Vec<Source>")]
    pub workloads: Vec<Spanned<Source>>,
    /// Policies to try, each on the same arrivals; the first is what the others are compared with. Default uniform and
    /// sinbad.
    #[schemars(with = "Option<Vec<PolicySpec>>")]
    pub policies: Option<Spanned<Vec<PolicySpec>>>,
    /// How the network is seen.
    #[serde(default = "unplaced::<Telemetry>")]
    #[schemars(with = "Telemetry")]
    pub telemetry: Spanned<Telemetry>,
    /// How what is seen becomes estimates. Its `interval` is that of `telemetry`.
    #[serde(default = "unplaced::<LedgerSettings>")]
    #[schemars(with = "LedgerSettings")]
    pub ledger: Spanned<LedgerSettings>,
    /// What happens besides work.
    #[serde(default)]
    #[schemars(with = "Vec<EventFile>")]
    pub events: Vec<Spanned<EventFile>>,
    /// When apps that run are placed again, and what moving them costs. Default never.
    #[schemars(with = "Option<MigrationFile>")]
    pub migration: Option<Spanned<MigrationFile>>,
    /// Fault domains besides the first copy's that must hold a copy of each block. Default 1, or none
    /// where a block has one copy.
    #[schemars(with = "Option<u8>")]
    pub fault_domains: Option<Spanned<u8>>,
    /// How much more of its room, as a share, a host may fill than the hosts of the cluster do in the mean (a limit on
    /// imbalance: Sinbad section 7.4). Default no limit.
    pub max_imbalance: Option<Share>,
    /// How long it runs. Default 1h.
    #[serde(default = "hour")]
    #[schemars(with = "Nanos")]
    pub horizon: Spanned<Nanos>,
    /// How long results are not counted at the beginning. Default 0s.
    #[serde(default = "unplaced::<Nanos>")]
    #[schemars(with = "Nanos")]
    pub warmup: Spanned<Nanos>,
    /// Length of the intervals over which link loads are recorded. Default 10s (Sinbad section 4.3).
    #[serde(default = "ten_seconds")]
    #[schemars(with = "Nanos")]
    pub sample: Spanned<Nanos>,
    /// Seed of everything random. Default 1.
    #[serde(default = "first")]
    pub seed: u64,
}

/// Re-placement of apps that run (Choreo section 2.4).
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MigrationFile {
    /// How often all apps that run are placed again.
    pub every: Nanos,
    /// For how long an app stands still when it moves, once the memory of its tasks is carried. Default 10s.
    #[serde(default = "ten")]
    pub pause: Nanos,
    /// The share of the time left that moving must save, costs included. Default 0.1.
    #[serde(default = "tenth")]
    pub margin: Share,
}

impl MigrationFile {
    /// What is wrong with these settings: the field, and what was expected.
    pub(super) fn check(&self, horizon: Nanos) -> Result<(), (&'static str, String)> {
        const MOST: u64 = 1_000_000;
        if self.every.0 == 0 || horizon.0 / self.every.0 > MOST {
            let message =
                format!("{}: expected a positive time, and at most {MOST} of them in a run", self.every);
            return Err(("every", message));
        }
        if self.pause > horizon {
            return Err(("pause", format!("{}: expected at most the horizon of {horizon}", self.pause)));
        }
        Ok(())
    }
}

/// Something that happens at a time: exactly one of `host`, `rack` and `link` is given.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventFile {
    /// When.
    pub at: Nanos,
    /// To which host.
    pub host: Option<String>,
    /// To which rack or pod.
    pub rack: Option<String>,
    /// To which link, such as `r3:uplink`.
    pub link: Option<String>,
    /// What a host or rack becomes.
    pub state: Option<HostState>,
    /// What a link carries from then on.
    pub capacity: Option<Bandwidth>,
    /// Whether the ledger is told; otherwise it must find out by telemetry. Default true.
    #[serde(default = "yes")]
    pub told: bool,
}

/// What a host becomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HostState {
    /// It fails: what crosses it stands still, blocks under way to it are written elsewhere.
    Down,
    /// It works again.
    Up,
    /// It takes no new blocks.
    Draining,
    /// It takes new blocks again.
    Serving,
}

/// A policy and its settings: `sinbad`, `sinbad:remote_racks=2:interval=1s`, or `{sinbad: {remote_racks: 2}}`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicySpec {
    /// Its name in the registry.
    pub name: String,
    /// Its settings, as a YAML mapping; empty for the defaults.
    pub settings: String,
    /// What results call it: the text it was made from.
    pub label: String,
}

impl PolicySpec {
    /// A policy with its default settings.
    pub fn named(name: &str) -> PolicySpec {
        PolicySpec { name: name.to_owned(), settings: String::new(), label: name.to_owned() }
    }
}

impl std::str::FromStr for PolicySpec {
    type Err = String;

    fn from_str(text: &str) -> Result<PolicySpec, String> {
        let mut parts = text.trim().split(':');
        let name = parts.next().unwrap_or_default().to_owned();
        let mut settings = Vec::new();
        for part in parts {
            let (key, value) = part.split_once('=').ok_or_else(|| {
                format!("`{}`: expected a policy such as sinbad or sinbad:remote_racks=2", excerpt(text))
            })?;
            settings.push(format!("{key}: {value}"));
        }
        if name.is_empty() {
            return Err(format!("`{}`: expected the name of a policy", excerpt(text)));
        }
        let settings =
            if settings.is_empty() { String::new() } else { format!("{{{}}}", settings.join(", ")) };
        Ok(PolicySpec { name, settings, label: text.trim().to_owned() })
    }
}

impl<'de> Deserialize<'de> for PolicySpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PolicyVisitor)
    }
}

impl Serialize for PolicySpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.label)
    }
}

struct PolicyVisitor;

impl<'de> Visitor<'de> for PolicyVisitor {
    type Value = PolicySpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a policy: a name, or {name: {setting: value}}")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<PolicySpec, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<PolicySpec, A::Error> {
        let one = "expected one policy: {name: {setting: value}}";
        let (name, settings): (String, BTreeMap<String, serde_json::Value>) =
            map.next_entry()?.ok_or_else(|| de::Error::custom(one))?;
        if map.next_key::<String>()?.is_some() {
            return Err(de::Error::custom(one));
        }
        let words = settings.iter().map(|(key, value)| match value {
            serde_json::Value::String(text) => format!(":{key}={text}"),
            other => format!(":{key}={other}"),
        });
        let label = format!("{name}{}", words.collect::<String>());
        let settings = serde_json::to_string(&settings).map_err(de::Error::custom)?;
        Ok(PolicySpec { name, settings, label })
    }
}

impl JsonSchema for PolicySpec {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Policy".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A policy by name, or {name: {setting: value}}.",
            "oneOf": [{ "type": "string" }, { "type": "object", "minProperties": 1, "maxProperties": 1 }]
        })
    }
}

fn first() -> u64 {
    1
}

fn yes() -> bool {
    true
}

fn hour() -> Spanned<Nanos> {
    nowhere(Nanos(3_600_000_000_000))
}

fn ten() -> Nanos {
    Nanos(10_000_000_000)
}

fn ten_seconds() -> Spanned<Nanos> {
    nowhere(ten())
}

fn tenth() -> Share {
    Share::new(0.1).expect("a share")
}

/// The default of what the file does not mention.
fn unplaced<T: Default>() -> Spanned<T> {
    nowhere(T::default())
}

fn nowhere<T>(value: T) -> Spanned<T> {
    let nowhere = serde_saphyr::Location::UNKNOWN;
    Spanned::new(value, nowhere, nowhere)
}
