//! What clients are told: replies of the desk with names, texts and times.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use leeward_fabric::Fabric;
use leeward_placement::{Note, Reason};
use serde::Serialize;
use serde_json::json;

use super::decision_id;
use crate::clock::Clock;
use crate::decisions::Record;
use crate::message::{LinkState, Reply, Skipped, Snapshot};

/// A decision as clients see it.
#[derive(Serialize)]
struct DecisionBody<'a> {
    id: String,
    time: String,
    policy: &'a str,
    size: String,
    hosts: Vec<&'a str>,
    /// Where the chain is narrowest, as the policy saw it.
    limit: Option<LimitBody>,
    epoch: u64,
    /// End of the oldest window that played a part, and how old it was.
    oldest_telemetry: Option<String>,
    telemetry_age_s: Option<f64>,
    /// Why the policy left the choice to another, where it did.
    note: Option<&'static str>,
    why: Vec<Reason>,
    client: Option<&'a str>,
    sequence: Option<u64>,
    released: Option<String>,
}

#[derive(Serialize)]
struct LimitBody {
    /// A link, a device, or `disk` for what a disk writes at most.
    at: Option<String>,
    value_bps: i64,
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
    pub policy: String,
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
            let location = format!("/v1/decisions/{}", decision_id(clock, record.request.id));
            let body = Json(decision(&record, &about.policy, fabric, clock));
            (status, [(header::LOCATION, location)], body).into_response()
        }
        Reply::Decision(record) => Json(decision(&record, &about.policy, fabric, clock)).into_response(),
        Reply::Snapshot(shown) => Json(snapshot(shown, fabric, clock)).into_response(),
        Reply::Health { epoch, decisions, waiting, released_early } => Json(json!({
            "status": "ok",
            "version": env!("CARGO_PKG_VERSION"),
            "cluster": fabric.name(),
            "policy": about.policy,
            "since": about.since,
            "epoch": epoch,
            "decisions": decisions,
            "waiting": waiting,
            "released_early": released_early,
        }))
        .into_response(),
    }
}

fn decision<'a>(record: &'a Record, policy: &'a str, fabric: &'a Fabric, clock: &Clock) -> DecisionBody<'a> {
    let decided = &record.decision;
    let limit = record.limit().map(|(considered, value)| LimitBody {
        at: considered.limit.map(|limit| limit.name(fabric)),
        value_bps: value.0,
    });
    DecisionBody {
        id: decision_id(clock, record.request.id),
        time: clock.text(record.at),
        policy,
        size: record.request.size.to_string(),
        hosts: decided.choice.iter().map(|&host| fabric.host_name(host)).collect(),
        limit,
        epoch: decided.basis.epoch,
        oldest_telemetry: decided.basis.oldest.map(|at| clock.text(at)),
        telemetry_age_s: record.age().map(|age| age.as_secs_f64()),
        note: decided.basis.note.map(Note::text),
        why: decided.why.iter().map(|considered| Reason::of(fabric, considered)).collect(),
        client: record.caller.as_ref().map(|caller| &*caller.client),
        sequence: record.caller.as_ref().map(|caller| caller.sequence),
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
    let client =
        |(name, sequence): (std::sync::Arc<str>, u64)| ClientBody { client: name.to_string(), sequence };
    SnapshotBody {
        epoch: snapshot.epoch,
        time: clock.text(snapshot.at),
        links: snapshot.links.into_iter().map(link).collect(),
        clients: snapshot.clients.into_iter().map(client).collect(),
    }
}
