//! Values of a scenario file that have several forms: a cluster, sizes, and times of computations.

use std::borrow::Cow;
use std::fmt;

use leeward_fabric::{Bytes, Nanos};
use leeward_workloads::Factor;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A cluster: a file, or its fields.
#[derive(Clone, PartialEq, Debug)]
pub enum ClusterSource {
    /// Path of a cluster file.
    File(String),
    /// Fields of a cluster file.
    Fields(serde_json::Value),
}

impl<'de> Deserialize<'de> for ClusterSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ClusterVisitor)
    }
}

struct ClusterVisitor;

impl<'de> Visitor<'de> for ClusterVisitor {
    type Value = ClusterSource;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the path of a cluster file, or the fields of one")
    }

    fn visit_str<E: de::Error>(self, path: &str) -> Result<ClusterSource, E> {
        Ok(ClusterSource::File(path.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ClusterSource, A::Error> {
        serde_json::Value::deserialize(MapAccessDeserializer::new(map)).map(ClusterSource::Fields)
    }
}

impl JsonSchema for ClusterSource {
    fn schema_name() -> Cow<'static, str> {
        "ClusterSource".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Path of a cluster file, or its fields.",
            "oneOf": [{ "type": "string" }, { "type": "object" }]
        })
    }
}

/// Sizes of operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sizes {
    /// Least bytes.
    pub least: Bytes,
    /// Most bytes.
    pub most: Bytes,
}

impl<'de> Deserialize<'de> for Sizes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SizesVisitor)
    }
}

struct SizesVisitor;

impl<'de> Visitor<'de> for SizesVisitor {
    type Value = Sizes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a size such as 1MB, or the least and the most such as [100KB, 1MB]")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Sizes, E> {
        let size: Bytes = text.parse().map_err(E::custom)?;
        Ok(Sizes { least: size, most: size })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sizes: A) -> Result<Sizes, A::Error> {
        let two = || de::Error::custom("expected the least and the most size");
        let least = sizes.next_element()?.ok_or_else(two)?;
        let most = sizes.next_element()?.ok_or_else(two)?;
        if sizes.next_element::<Bytes>()?.is_some() {
            return Err(two());
        }
        Ok(Sizes { least, most })
    }
}

impl JsonSchema for Sizes {
    fn schema_name() -> Cow<'static, str> {
        "Sizes".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A size, or the least and the most.",
            "oneOf": [
                { "type": "string" },
                { "type": "array", "items": { "type": "string" }, "minItems": 2, "maxItems": 2 }
            ]
        })
    }
}

/// Time of a computation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ComputeFile {
    /// Mean.
    pub mean: Nanos,
    /// Squared coefficient of variation.
    pub c2: Factor,
}

/// Fields of a time with a variation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ComputeFields {
    mean: Nanos,
    c2: Factor,
}

impl<'de> Deserialize<'de> for ComputeFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ComputeVisitor)
    }
}

struct ComputeVisitor;

impl<'de> Visitor<'de> for ComputeVisitor {
    type Value = ComputeFile;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time such as 10ms, or its mean and variation such as {mean: 10ms, c2: 1}")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<ComputeFile, E> {
        let mean: Nanos = text.parse().map_err(E::custom)?;
        let c2 = Factor::new(0.0).ok_or_else(|| E::custom("zero is in range"))?;
        Ok(ComputeFile { mean, c2 })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ComputeFile, A::Error> {
        let ComputeFields { mean, c2 } = ComputeFields::deserialize(MapAccessDeserializer::new(map))?;
        Ok(ComputeFile { mean, c2 })
    }
}

impl JsonSchema for ComputeFile {
    fn schema_name() -> Cow<'static, str> {
        "ComputeFile".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A time, or its mean and its squared coefficient of variation: 0, or 1 and more.",
            "oneOf": [
                { "type": "string" },
                {
                    "type": "object",
                    "properties": { "mean": { "type": "string" }, "c2": { "type": "number", "minimum": 0 } },
                    "required": ["mean", "c2"],
                    "additionalProperties": false
                }
            ]
        })
    }
}
