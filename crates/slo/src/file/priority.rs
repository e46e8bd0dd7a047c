//! Priorities of a workload: one, or one for each stage.

use std::fmt;

use leeward_models::ByStage;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A priority for all stages, or one for each.
#[derive(Clone, PartialEq, Debug)]
pub enum PriorityFile {
    /// The same number at all stages.
    One(u32),
    /// By stage.
    Each(ByStage<u32>),
}

impl<'de> Deserialize<'de> for PriorityFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<PriorityFile, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = PriorityFile;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a whole number from 0 to 4294967294, or one for each stage, such as {storage: 1}",
                )
            }

            fn visit_u64<E: Error>(self, number: u64) -> Result<PriorityFile, E> {
                let invalid =
                    || E::custom(format_args!("{number}: expected {}", &self as &dyn serde::de::Expected));
                u32::try_from(number).map(PriorityFile::One).map_err(|_| invalid())
            }

            fn visit_i64<E: Error>(self, number: i64) -> Result<PriorityFile, E> {
                let invalid =
                    || E::custom(format_args!("{number}: expected {}", &self as &dyn serde::de::Expected));
                u32::try_from(number).map(PriorityFile::One).map_err(|_| invalid())
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<PriorityFile, A::Error> {
                ByStage::deserialize(MapAccessDeserializer::new(map)).map(PriorityFile::Each)
            }
        }

        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for PriorityFile {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Priority".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let each = generator.subschema_for::<ByStage<u32>>();
        json_schema!({ "anyOf": [{ "type": "integer", "minimum": 0, "maximum": 4294967294_u32 }, each] })
    }
}
