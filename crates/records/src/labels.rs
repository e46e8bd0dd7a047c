//! Labels and levels in bodies. A required label is `{"zone": "a"}`, or `{"zone": ["a", "b"]}` for one of several
//! values.

use std::collections::BTreeMap;

use leeward_fabric::input::excerpt;
use leeward_placement::{Apart, LabelValues};
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, Error};
use serde_json::Value;

use crate::distinct;

/// Largest number of labels of a request, and of values of a label.
const MOST: usize = 64;

/// Schema of required labels.
pub fn schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": MOST,
        "additionalProperties": {
            "anyOf": [
                { "type": "string" },
                { "type": "array", "items": { "type": "string" }, "minItems": 1, "maxItems": MOST },
            ],
        },
    })
}

/// Reads required labels.
///
/// # Errors
/// A value is neither a text nor a list of texts, a key is given twice, or there are too many.
pub fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<LabelValues, D::Error> {
    let labels = distinct::object(deserializer)?;
    if labels.len() > MOST {
        return Err(D::Error::custom(format!("{} labels: expected at most {MOST}", labels.len())));
    }
    let texts = |(key, values): (String, Value)| match texts(values) {
        Some(values) => Ok((key, values)),
        None => {
            let key = excerpt(&key);
            Err(D::Error::custom(format!("`{key}`: expected a text, or a list of 1 to {MOST} texts")))
        }
    };
    labels.into_iter().map(texts).collect()
}

/// Values of a label; `None` if they are invalid.
fn texts(values: Value) -> Option<Vec<String>> {
    let text = |value| if let Value::String(text) = value { Some(text) } else { None };
    match values {
        Value::Array(values) if (1..=MOST).contains(&values.len()) => values.into_iter().map(text).collect(),
        value => Some(vec![text(value)?]),
    }
}

/// Reads levels at which tasks are apart, by job.
///
/// # Errors
/// A level is unknown, or a job is given twice.
pub fn levels<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, Apart>, D::Error> {
    let levels = distinct::object(deserializer)?;
    let level = |(job, level): (String, Value)| match serde_json::from_value(level) {
        Ok(level) => Ok((job, level)),
        Err(_) => {
            let job = excerpt(&job);
            Err(D::Error::custom(format!("`{job}`: expected `host` or `rack`")))
        }
    };
    levels.into_iter().map(level).collect()
}
