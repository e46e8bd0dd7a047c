//! The cluster file; each change creates a version.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use leeward_fabric::Cluster;
use leeward_records::distinct::Distinct;
use leeward_records::schema::Id;
use leeward_records::{ClusterVersion, Origin, Version};
use leeward_service::{Changed, NewCluster, VersionConflict};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use super::body::Body;
use super::dry_run::DryRunQuery;
use super::state::{ApiResult, AppState, Params, SharedState};
use leeward_access::{Client, Principal};
use leeward_problems::{IntoProblem, Problem};

fn response(version: &Version) -> Response {
    let head = [
        (header::CONTENT_TYPE, "application/json".to_owned()),
        (header::ETAG, format!("\"{}\"", version.number)),
    ];
    (head, version.text.to_string()).into_response()
}

pub async fn get(State(app): SharedState) -> ApiResult {
    Ok(response(&app.handle.cluster()))
}

/// Fields of the cluster to change; null removes a field.
#[derive(JsonSchema)]
#[schemars(extend("type" = "object"))]
#[expect(dead_code, reason = "only for the OpenAPI document")]
pub struct Patch(Value);

/// Schema of the version to change, as in the `etag` header.
pub fn version(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "pattern": "^([*]|(W/)?\"[0-9]{1,19}\"|[0-9]{1,19})$" })
}

/// Version of the cluster that a client wants to change, from the `if-match` header; `None` for any.
///
/// # Errors
/// [`Problem`] for an invalid header.
pub fn if_match(headers: &HeaderMap) -> Result<Option<ClusterVersion>, Problem> {
    let Some(text) = headers.get(header::IF_MATCH) else { return Ok(None) };
    let text = text.to_str().unwrap_or_default().trim();
    let tag = text.strip_prefix("W/").unwrap_or(text);
    let tag = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')).unwrap_or(tag);
    match Id::read(tag) {
        Some(number) => Ok(Some(ClusterVersion(number))),
        None if text == "*" => Ok(None),
        None => Err(Problem::field("if-match", "expected a version, as in the header `etag`")),
    }
}

/// Parses a cluster from JSON; returns it with its text.
///
/// # Errors
/// [`Problem`] with the invalid field.
pub fn parse_cluster(cluster: &Value) -> Result<(Cluster, Arc<str>), Problem> {
    Ok((Cluster::from_json("cluster", cluster)?, cluster.to_string().into()))
}

/// Replaces the cluster on behalf of a client. Returns the new version.
///
/// # Errors
/// [`Problem`] for an invalid cluster, a version conflict, or a failed store.
pub async fn change(
    app: &AppState,
    by: &Client,
    cluster: Value,
    after: Option<ClusterVersion>,
) -> Result<Version, Problem> {
    // A cluster with millions of hosts takes seconds and gigabytes to read. Only one cluster is therefore read at a
    // time, outside the async threads.
    let guard = app.reading.lock().await;
    let read = tokio::task::spawn_blocking(move || parse_cluster(&cluster)).await;
    drop(guard);
    let (cluster, text) = read.map_err(|_| Problem::broken())??;
    let new = NewCluster { cluster, text, origin: Origin::Request, after };
    let changed = app.handle.change_cluster(new).await;
    let Changed { version, again } = changed.map_err(|error| error.problem(&app.clock))?;
    if !again {
        tracing::info!(version = version.number.0, %by, "the cluster was changed");
    }
    Ok(version)
}

/// Checks a change of the cluster without making it. Returns the version that it would have.
async fn dry_run(app: &AppState, cluster: Value, after: Option<ClusterVersion>) -> ApiResult {
    let guard = app.reading.lock().await;
    let read = tokio::task::spawn_blocking(move || parse_cluster(&cluster)).await;
    drop(guard);
    let (_, text) = read.map_err(|_| Problem::broken())??;
    let current = app.handle.cluster();
    if after.is_some_and(|after| after != current.number) {
        return Err(VersionConflict(current.number).problem(&app.clock));
    }
    let number = if *text == *current.text { current.number } else { current.number.next() };
    Ok(response(&Version { number, at: app.clock.now(), origin: Origin::Request, text }))
}

pub async fn put(
    State(app): SharedState,
    Extension(principal): Extension<Principal>,
    Params(Query(query)): Params<Query<DryRunQuery>>,
    headers: HeaderMap,
    Body(Distinct(cluster)): Body<Distinct>,
) -> ApiResult {
    let after = if_match(&headers)?;
    if query.dry_run {
        return dry_run(&app, cluster, after).await;
    }
    Ok(response(&change(&app, &principal.client, cluster, after).await?))
}

pub async fn patch(
    State(app): SharedState,
    Extension(principal): Extension<Principal>,
    Params(Query(query)): Params<Query<DryRunQuery>>,
    headers: HeaderMap,
    Body(Distinct(fields)): Body<Distinct>,
) -> ApiResult {
    let after = if_match(&headers)?;
    let version = app.handle.cluster();
    let mut cluster = serde_json::from_str(&version.text).map_err(|_| Problem::broken())?;
    merge(&mut cluster, fields);
    if query.dry_run {
        return dry_run(&app, cluster, after).await;
    }
    // The patch applies to this version, even if another client changes the cluster meanwhile.
    Ok(response(&change(&app, &principal.client, cluster, after.or(Some(version.number))).await?))
}

/// Merges a patch into a value (RFC 7396): null removes a field, an object merges into an object, any other value
/// replaces the old one. Hand-written: the algorithm is short, and the library `json-patch` also brings JSON Patch
/// (RFC 6902), which the API does not offer.
pub fn merge(into: &mut Value, patch: Value) {
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
