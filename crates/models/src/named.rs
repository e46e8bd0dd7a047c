//! Curves and models of a workload in an SLO file, or the name of a file with them.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::by_stage::BucketsFile;
use crate::record::ModelRecord;

/// Curves in the file, or the name of a file with them.
#[derive(Clone, PartialEq, Debug)]
pub enum CurvesFile {
    /// Name of a file with the JSON of `leeward slo curve`.
    Named(String),
    /// Buckets by stage.
    Buckets(BucketsFile),
}

/// Models in the file, or the name of a file with them.
#[derive(Clone, PartialEq, Debug)]
pub enum ModelsFile {
    /// Name of a file with the JSON of `leeward slo model`.
    Named(String),
    /// Models in the file.
    Records(Vec<ModelRecord>),
}

impl<'de> Deserialize<'de> for CurvesFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<CurvesFile, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = CurvesFile;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a file, or buckets for each stage, such as {storage: [{rate: 5%, burst: 8ms}]}")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<CurvesFile, E> {
                Ok(CurvesFile::Named(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<CurvesFile, A::Error> {
                BucketsFile::deserialize(MapAccessDeserializer::new(map)).map(CurvesFile::Buckets)
            }
        }

        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for CurvesFile {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Curves".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let buckets = generator.subschema_for::<BucketsFile>();
        json_schema!({ "anyOf": [{ "type": "string" }, buckets] })
    }
}

impl<'de> Deserialize<'de> for ModelsFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ModelsFile, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = ModelsFile;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a file, or the output of `leeward slo model -o json`")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<ModelsFile, E> {
                Ok(ModelsFile::Named(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<ModelsFile, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(ModelsFile::Records)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ModelsFile, A::Error> {
                let record = ModelRecord::deserialize(MapAccessDeserializer::new(map))?;
                Ok(ModelsFile::Records(vec![record]))
            }
        }

        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for ModelsFile {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Models".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let record = json_schema!({
            "type": "object",
            "required": ["stage", "step_s", "states", "transitions"],
        });
        json_schema!({ "anyOf": [{ "type": "string" }, { "type": "array", "items": record }, record] })
    }
}
