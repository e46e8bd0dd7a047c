//! A cluster in a scenario file: the path of a cluster file, or its fields.

use std::fmt;
use std::path::{Path, PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::Cluster;
use crate::input::{InputError, read_text, read_yaml};

/// A cluster: a file, or its fields.
#[derive(Clone, PartialEq, Debug)]
pub enum ClusterSource {
    /// Path of a cluster file.
    File(String),
    /// Fields of a cluster file.
    Fields(Map<String, Value>),
}

impl ClusterSource {
    /// Reads the cluster. `file` is the scenario that names it, and a path is relative to `base`.
    ///
    /// # Errors
    ///
    /// Fails if the cluster's file cannot be read, and for the reasons of [`Cluster::from_text`]. An error in fields
    /// names the scenario, and the field below `cluster`.
    pub fn read(&self, file: &str, base: &Path) -> Result<Cluster, InputError> {
        match self {
            ClusterSource::File(name) => Cluster::from_file(&path(name, file, base)?.to_string_lossy()),
            ClusterSource::Fields(fields) => {
                let named =
                    |error: InputError| InputError { file: file.to_owned(), ..error }.under("cluster");
                Cluster::from_json(file, &Value::Object(fields.clone())).map_err(named)
            }
        }
    }

    /// The fields of the cluster, as written. `file` is the scenario that names it, and a path is relative to `base`.
    ///
    /// # Errors
    ///
    /// Fails if the cluster's file cannot be read or has no fields. The fields themselves are not checked.
    pub fn fields(&self, file: &str, base: &Path) -> Result<Map<String, Value>, InputError> {
        match self {
            ClusterSource::File(name) => {
                let path = path(name, file, base)?;
                let path = path.to_string_lossy();
                read_yaml(&path, &read_text(&path)?)
            }
            ClusterSource::Fields(fields) => Ok(fields.clone()),
        }
    }
}

/// Path of the cluster's file.
fn path(name: &str, file: &str, base: &Path) -> Result<PathBuf, InputError> {
    let path = base.join(name);
    if path.is_file() {
        return Ok(path);
    }
    Err(InputError::new(file, format!("no such file ({})", path.display())).in_field("cluster"))
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
        Map::deserialize(MapAccessDeserializer::new(map)).map(ClusterSource::Fields)
    }
}

impl JsonSchema for ClusterSource {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ClusterSource".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Path of a cluster file, or its fields.",
            "oneOf": [{ "type": "string" }, { "type": "object" }]
        })
    }
}
