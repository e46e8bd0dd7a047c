//! A policy in a file or on the command line: a name, with or without settings.

use std::collections::BTreeMap;
use std::fmt;

use leeward_fabric::input::excerpt;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A policy and its settings: `sinbad`, `sinbad:remote_racks=2:interval=1s`, or `{sinbad: {remote_racks: 2}}`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicySpec {
    /// Name in the registry.
    pub name: String,
    /// Settings as a YAML mapping; empty for the defaults.
    pub settings: String,
    /// Label in results: the original text, or the same notation for a mapping.
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
        let expected = "expected one policy: {name: {setting: value}}";
        let (name, settings): (String, BTreeMap<String, serde_json::Value>) =
            map.next_entry()?.ok_or_else(|| de::Error::custom(expected))?;
        if map.next_key::<String>()?.is_some() {
            return Err(de::Error::custom(expected));
        }
        let parts = settings.iter().map(|(key, value)| match value {
            serde_json::Value::String(text) => format!(":{key}={text}"),
            other => format!(":{key}={other}"),
        });
        let label = format!("{name}{}", parts.collect::<String>());
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
