//! What clients are told: replies of the desk with names, texts and times.

use std::sync::Arc;

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use leeward_fabric::Fabric;
use leeward_placement::Reason;
use serde::Serialize;
use serde_json::json;

use crate::clock::Clock;
use crate::desk::{Caller, Limit, LinkState, Record, Reply, Skipped, Snapshot, Wish};

/// A decision as clients see it.
#[derive(Serialize)]
struct DecisionBody<'a> {
    id: String,
    time: String,
    #[serde(flatten)]
    wish: &'a Wish,
    policy: &'a str,
    hosts: &'a [String],
    /// Where it is narrowest, as the policy saw it.
    limit: Option<&'a Limit>,
    epoch: u64,
    /// End of the oldest window that played a part, and how old it was.
    oldest_telemetry: Option<String>,
    telemetry_age_s: Option<f64>,
    /// Why the policy left the choice to another, where it did.
    note: Option<&'a str>,
    why: &'a [Reason],
    client: Option<&'a str>,
    sequence: Option<u64>,
    key: Option<&'a str>,
    expires: Option<String>,
    released: Option<String>,
}

/// A link of a snapshot as clients see it.
#[derive(Serialize)]
struct StateBody {
    link: String,
    capacity_bps: i64,
    seen: bool,
    derived: bool,
    measured_bps: Option<i64>,
    measured_until: Option<String>,
    residual_bps: i64,
    expected_capacity_bps: Option<i64>,
}

#[derive(Serialize)]
struct SnapshotBody {
    epoch: u64,
    time: String,
    links: Vec<StateBody>,
    clients: Vec<ClientBody>,
}

#[derive(Serialize)]
struct ClientBody {
    client: String,
    sequence: u64,
}

/// What is told of the service itself.
#[derive(Clone, Debug)]
pub struct About {
    /// The policy, with its settings.
    pub policy: Arc<str>,
    /// When the service started.
    pub since: String,
}

/// A reply as a response.
pub fn response(reply: Reply, about: &About, fabric: &Fabric, clock: &Clock) -> Response {
    match reply {
        Reply::Reported { links, skipped: Skipped { stale, down }, epoch } => {
            let skipped = json!({ "stale": stale, "down": down });
            Json(json!({ "links": links, "skipped": skipped, "epoch": epoch })).into_response()
        }
        Reply::Placed { record, repeated } => {
            let status = if repeated { StatusCode::OK } else { StatusCode::CREATED };
            let location = format!("/v1/decisions/{}", record.id);
            let body = Json(decision(&record, clock));
            (status, [(header::LOCATION, location)], body).into_response()
        }
        Reply::Decision(record) => Json(decision(&record, clock)).into_response(),
        Reply::Snapshot(shown) => Json(snapshot(shown, fabric, clock)).into_response(),
        Reply::Health { epoch, decisions, waiting, released_early } => Json(json!({
            "status": "ok",
            "version": env!("CARGO_PKG_VERSION"),
            "cluster": fabric.name(),
            "policy": &*about.policy,
            "since": about.since,
            "epoch": epoch,
            "decisions": decisions,
            "waiting": waiting,
            "released_early": released_early,
        }))
        .into_response(),
    }
}

fn decision<'a>(record: &'a Record, clock: &Clock) -> DecisionBody<'a> {
    let shown = &record.shown;
    let (client, sequence, key) = match &record.caller {
        None => (None, None, None),
        Some(Caller::Key(key)) => (None, None, Some(&**key)),
        Some(Caller::Client { client, sequence }) => (Some(&**client), Some(*sequence), None),
    };
    DecisionBody {
        id: record.id.to_string(),
        time: clock.text(record.at),
        wish: &shown.wish,
        policy: &shown.policy,
        hosts: &shown.hosts,
        limit: shown.limit.as_ref(),
        epoch: shown.epoch,
        oldest_telemetry: shown.oldest.map(|at| clock.text(at)),
        telemetry_age_s: record.age().map(|age| age.as_secs_f64()),
        note: shown.note.as_deref(),
        why: &shown.why,
        client,
        sequence,
        key,
        expires: record.expires.map(|at| clock.text(at)),
        released: record.released.map(|at| clock.text(at)),
    }
}

fn snapshot(snapshot: Snapshot, fabric: &Fabric, clock: &Clock) -> SnapshotBody {
    let link = |state: LinkState| StateBody {
        link: fabric.resource_name(state.link),
        capacity_bps: state.capacity.0,
        seen: state.measured.is_some(),
        derived: state.derived,
        measured_bps: state.measured.map(|load| load.0),
        measured_until: state.until.map(|at| clock.text(at)),
        residual_bps: state.residual.0,
        expected_capacity_bps: state.expected.map(|load| load.0),
    };
    let client = |(name, sequence): (Arc<str>, u64)| ClientBody { client: name.to_string(), sequence };
    SnapshotBody {
        epoch: snapshot.epoch,
        time: clock.text(snapshot.at),
        links: snapshot.links.into_iter().map(link).collect(),
        clients: snapshot.clients.into_iter().map(client).collect(),
    }
}
