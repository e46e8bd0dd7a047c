//! Placements, decisions, and what they hold of the network.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use leeward_fabric::Fabric;
use leeward_placement::Reason;
use leeward_placement::volumes::agree::Agreed;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::Body;
use super::network::{LARGEST_PAGE, Part};
use super::place::{ReplicasBody, TasksBody, WorkloadBody};
use super::problem::{Problem, refusal_text};
use super::shapes::Page;
use super::{Answer, Asked, Edge, Named, Shared};
use crate::clock::Clock;
use crate::described::{Id, Name, Time};
use crate::desk::{Caller, Limit, Message, Record, Reply, Wish};

/// A decision as clients see it.
#[derive(Serialize, JsonSchema)]
pub struct Decision {
    /// What it is called.
    #[schemars(with = "Id")]
    id: String,
    /// When it was made.
    #[schemars(with = "Time")]
    time: String,
    /// What was asked.
    #[serde(flatten)]
    wish: Wish,
    /// The policy with its settings.
    policy: String,
    /// Names of hosts: of a chain in its order, of tasks in theirs.
    hosts: Vec<String>,
    /// Where it is narrowest, as the policy saw it; null if it looked at no load.
    limit: Option<Limit>,
    /// The state of the ledger that it rests on.
    epoch: u64,
    /// End of the oldest window that played a part; null if none did.
    #[schemars(with = "Option<Time>")]
    oldest_telemetry: Option<String>,
    /// How long before the decision that was.
    telemetry_age_s: Option<f64>,
    /// Why the policy left the choice to another; null where it did not.
    note: Option<String>,
    /// Candidates level by level.
    why: Vec<Reason>,
    /// What the workload is promised, as it is now; only of a decision about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    promise: Option<Agreed>,
    /// Who asked; null where that was not said.
    #[schemars(with = "Option<Name>")]
    client: Option<String>,
    /// The client's number of the request.
    sequence: Option<u64>,
    /// The key of the request.
    key: Option<String>,
    /// When it ends by itself; null if it does not.
    #[schemars(with = "Option<Time>")]
    expires: Option<String>,
    /// When its work ended; null while it counts.
    #[schemars(with = "Option<Time>")]
    released: Option<String>,
}

impl Decision {
    /// A record as it is shown.
    pub fn of(record: &Record, clock: &Clock) -> Decision {
        let shown = record.shown.clone();
        let (client, sequence, key) = match &record.caller {
            None => (None, None, None),
            Some(Caller::Key(key)) => (None, None, Some(key.to_string())),
            Some(Caller::Client { client, sequence }) => (Some(client.to_string()), Some(*sequence), None),
        };
        Decision {
            id: record.id.to_string(),
            time: clock.text(record.at),
            wish: shown.wish,
            policy: shown.policy.to_string(),
            hosts: shown.hosts,
            limit: shown.limit,
            epoch: shown.epoch,
            oldest_telemetry: shown.oldest.map(|at| clock.text(at)),
            telemetry_age_s: record.age().map(|age| age.as_secs_f64()),
            note: shown.note,
            why: shown.why,
            promise: shown.promise,
            client,
            sequence,
            key,
            expires: record.expires.map(|at| clock.text(at)),
            released: record.released.map(|at| clock.text(at)),
        }
    }
}

async fn place(
    edge: &Edge,
    kind: &'static str,
    message: impl Fn(&Fabric) -> Result<Message, Problem>,
) -> Answer {
    let reply = edge.reply(message).await.and_then(|reply| match reply {
        Reply::Placed { record, repeated: true } if record.shown.wish.kind() != kind => {
            let first = format!("decision {}, of kind {}", record.id, record.shown.wish.kind());
            Err(Problem::reused(record.caller.as_ref(), &first))
        }
        reply => Ok(reply),
    });
    let outcome = match &reply {
        Ok(Reply::Placed { repeated: true, .. }) => "repeated",
        Ok(_) => "placed",
        Err(problem) => problem.word(),
    };
    edge.metrics.placement(kind, outcome);
    match reply? {
        Reply::Placed { record, repeated } => {
            let status = if repeated { StatusCode::OK } else { StatusCode::CREATED };
            let location = format!("/v1/decisions/{}", record.id);
            let body = Json(Decision::of(&record, &edge.clock));
            Ok((status, [(header::LOCATION, location)], body).into_response())
        }
        _ => Err(Problem::broken()),
    }
}

pub async fn place_replicas(
    State(edge): Shared,
    headers: HeaderMap,
    Body(body): Body<ReplicasBody>,
) -> Answer {
    place(&edge, "replicas", |fabric| body.message(fabric, &headers)).await
}

pub async fn place_tasks(State(edge): Shared, headers: HeaderMap, Body(body): Body<TasksBody>) -> Answer {
    place(&edge, "tasks", |fabric| body.message(fabric, &headers)).await
}

pub async fn place_volume(State(edge): Shared, headers: HeaderMap, Body(body): Body<WorkloadBody>) -> Answer {
    place(&edge, "volumes", |_| body.message(&headers, false)).await
}

pub async fn admit(State(edge): Shared, headers: HeaderMap, Body(body): Body<WorkloadBody>) -> Answer {
    place(&edge, "workload", |_| body.message(&headers, true)).await
}

/// The body of `POST /v1/decisions/{id}/what-if`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WhatIfBody {
    /// A policy of the decision's kind, with settings after colons: `sinbad:remote_racks=2`.
    #[schemars(length(min = 1))]
    policy: String,
}

impl WhatIfBody {
    /// What it asks of the desk.
    pub fn message(&self, id: &str) -> Result<Message, Problem> {
        Ok(Message::WhatIf(number(id)?, self.policy.clone()))
    }
}

pub async fn what_if(State(edge): Shared, Asked(Path(id)): Named, Body(body): Body<WhatIfBody>) -> Answer {
    match edge.reply(|_| body.message(&id)).await? {
        Reply::WouldBe(record, refusal) => {
            let mut would = Decision::of(&record, &edge.clock);
            if let Some(refusal) = refusal {
                would.note = Some(refusal_text(&refusal, &edge.clock));
            }
            Ok(Json(would).into_response())
        }
        _ => Err(Problem::broken()),
    }
}

/// The number of a decision.
fn number(id: &str) -> Result<u64, Problem> {
    Id::read(id).ok_or_else(|| Problem::no_decision(&leeward_fabric::input::excerpt(id)))
}

async fn about_one(edge: &Edge, message: Message) -> Answer {
    match edge.reply(|_| Ok(message.clone())).await? {
        Reply::Decision(record) => Ok(Json(Decision::of(&record, &edge.clock)).into_response()),
        _ => Err(Problem::broken()),
    }
}

pub async fn decision(State(edge): Shared, Asked(Path(id)): Named) -> Answer {
    about_one(&edge, Message::Decision(number(&id)?)).await
}

pub async fn release(State(edge): Shared, Asked(Path(id)): Named) -> Answer {
    about_one(&edge, Message::Release(number(&id)?)).await
}

/// Which decisions are wanted.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Which {
    /// Of this kind only.
    kind: Option<Kind>,
    /// So many items at most; 100 if it is not given.
    #[schemars(range(min = 1, max = LARGEST_PAGE))]
    limit: Option<usize>,
    /// What `next` of the part before said.
    #[schemars(with = "Option<Id>")]
    after: Option<String>,
}

/// What was asked for.
#[derive(Clone, Copy, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Replicas,
    Tasks,
    Workload,
    Volumes,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Replicas => "replicas",
            Kind::Tasks => "tasks",
            Kind::Workload => "workload",
            Kind::Volumes => "volumes",
        }
    }
}

impl Which {
    /// The part of the list.
    pub fn part(&self) -> Part {
        Part { limit: self.limit, after: self.after.clone() }
    }
}

async fn listed(edge: &Edge, which: Which, holding: bool) -> Answer {
    let part = which.part();
    let (limit, before) = (part.limit()?, part.after()?);
    let kind = which.kind.map(|kind| kind.word().to_owned());
    let list = Message::Decisions { kind, before, limit: limit + 1, holding };
    let Reply::Decisions(mut found) = edge.reply(|_| Ok(list.clone())).await? else {
        return Err(Problem::broken());
    };
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| more).map(|last| last.id.to_string());
    let items = found.iter().map(|record| Decision::of(record, &edge.clock)).collect();
    Ok(Json(Page::<Decision> { items, next }).into_response())
}

pub async fn decisions(State(edge): Shared, Asked(Query(which)): Asked<Query<Which>>) -> Answer {
    listed(&edge, which, false).await
}

pub async fn commitments(State(edge): Shared, Asked(Query(which)): Asked<Query<Which>>) -> Answer {
    listed(&edge, which, true).await
}
