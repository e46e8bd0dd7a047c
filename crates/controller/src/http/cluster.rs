//! The cluster, as its file; each change makes a version.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use leeward_fabric::Cluster;
use serde_json::Value;

use super::body::Body;
use super::problem::Problem;
use super::{Answer, Edge, Shared};
use crate::office::NewCluster;
use crate::store::{Origin, Version};

fn shown(version: &Version) -> Response {
    let head = [
        (header::CONTENT_TYPE, "application/json".to_owned()),
        (header::ETAG, format!("\"{}\"", version.number)),
    ];
    (head, version.text.to_string()).into_response()
}

pub async fn get(State(edge): Shared) -> Answer {
    Ok(shown(&edge.office.cluster()))
}

/// The version that somebody wants to change.
fn wanted(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(said) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let said = said.to_str().unwrap_or_default().trim();
    let number = said.trim_start_matches("W/").trim_matches('"').parse();
    match number {
        Ok(number) => Ok(Some(number)),
        Err(_) if said == "*" => Ok(None),
        Err(_) => Err(Problem::field("if-match", "expected the version that the header `etag` said")),
    }
}

async fn change(edge: &Edge, cluster: &Value, after: Option<u64>) -> Answer {
    let text: Arc<str> = cluster.to_string().into();
    let read = text.clone();
    // One of millions of hosts takes seconds and gigabytes to read: one at a time, and in nobody's way.
    let alone = edge.reading.lock().await;
    let cluster = tokio::task::spawn_blocking(move || Cluster::from_text("cluster", &read)).await;
    drop(alone);
    let cluster = cluster.map_err(|_| Problem::broken())??;
    let new = NewCluster { cluster, text, origin: Origin::Request, after };
    let changed = edge.office.change(new).await.map_err(|_| Problem::broken())?;
    changed.map_err(|refused| Problem::refused(refused, &edge.clock))?;
    Ok(shown(&edge.office.cluster()))
}

pub async fn put(State(edge): Shared, headers: HeaderMap, Body(cluster): Body<Value>) -> Answer {
    let after = wanted(&headers)?;
    change(&edge, &cluster, after).await
}

pub async fn patch(State(edge): Shared, headers: HeaderMap, Body(fields): Body<Value>) -> Answer {
    let after = wanted(&headers)?;
    let version = edge.office.cluster();
    let mut cluster = serde_json::from_str(&version.text).map_err(|_| Problem::broken())?;
    merge(&mut cluster, fields);
    // What was patched is that version, whoever changes it meanwhile.
    change(&edge, &cluster, after.or(Some(version.number))).await
}

/// Merges a patch into a value: null takes a field away, an object goes into an object, anything else takes the place of
/// what was there (RFC 7396).
fn merge(into: &mut Value, patch: Value) {
    let Value::Object(fields) = patch else {
        *into = patch;
        return;
    };
    if !into.is_object() {
        *into = Value::Object(serde_json::Map::new());
    }
    let Some(object) = into.as_object_mut() else { return };
    for (name, value) in fields {
        if value.is_null() {
            object.remove(&name);
        } else {
            merge(object.entry(name).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn patches_merge_as_in_the_examples_of_rfc_7396() {
        let cases = [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!(["a", "b"]), json!(["c", "d"]), json!(["c", "d"])),
            (json!({"a": "foo"}), json!("bar"), json!("bar")),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
        ];
        for (mut value, patch, merged) in cases {
            merge(&mut value, patch);
            assert_eq!(value, merged);
        }
    }
}
