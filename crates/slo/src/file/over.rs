//! Handling of requests over a limit: the same at all stages, or one for each.

use std::fmt;

use leeward_fabric::input::excerpt;
use leeward_models::ByStage;
use leeward_shaping::OverLimit;
use leeward_traces::Stage;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// Handling of requests over a limit, for all stages or by stage.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum OverFile {
    /// The same at all stages.
    One(OverName),
    /// By stage; a stage without a value keeps the usual one.
    Each(ByStage<OverName>),
}

/// Handling of requests over a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OverName {
    /// Requests wait for tokens.
    Held,
    /// Requests wait for tokens, but an otherwise idle server serves them, after all others.
    Demoted,
}

impl From<OverName> for OverLimit {
    fn from(name: OverName) -> OverLimit {
        match name {
            OverName::Held => OverLimit::Held,
            OverName::Demoted => OverLimit::Demoted,
        }
    }
}

impl From<OverLimit> for OverName {
    fn from(over: OverLimit) -> OverName {
        match over {
            OverLimit::Held => OverName::Held,
            OverLimit::Demoted => OverName::Demoted,
        }
    }
}

impl OverName {
    /// Name in files and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            OverName::Held => "held",
            OverName::Demoted => "demoted",
        }
    }
}

impl OverFile {
    /// Handling at each of [`Stage::ALL`], where `usual` applies to stages without a value.
    pub(super) fn resolve(self, usual: [OverLimit; 3]) -> [OverLimit; 3] {
        match self {
            OverFile::One(name) => [name.into(); 3],
            OverFile::Each(each) => {
                Stage::ALL.map(|stage| each.at(stage).map_or(usual[stage as usize], OverLimit::from))
            }
        }
    }

    /// True if it has a value that applies to this stage.
    pub(super) fn states(self, stage: Stage) -> bool {
        matches!(self, OverFile::One(_)) || self.names(stage)
    }

    /// True if it has a value for this stage alone.
    pub(super) fn names(self, stage: Stage) -> bool {
        matches!(self, OverFile::Each(each) if each.at(stage).is_some())
    }
}

impl<'de> Deserialize<'de> for OverFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<OverFile, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = OverFile;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("held or demoted, or one for each stage, such as {storage: demoted}")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<OverFile, E> {
                match text {
                    "held" => Ok(OverFile::One(OverName::Held)),
                    "demoted" => Ok(OverFile::One(OverName::Demoted)),
                    _ => {
                        let expected = &self as &dyn serde::de::Expected;
                        Err(E::custom(format_args!("`{}`: expected {expected}", excerpt(text))))
                    }
                }
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<OverFile, A::Error> {
                ByStage::deserialize(MapAccessDeserializer::new(map)).map(OverFile::Each)
            }
        }

        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for OverFile {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Over".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let one = generator.subschema_for::<OverName>();
        let each = generator.subschema_for::<ByStage<OverName>>();
        json_schema!({ "anyOf": [one, each] })
    }
}
