//! Placements that the caller decided itself.

use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::{Extension, Json};
use leeward_records::schema::Time;
use leeward_service::{Commitment, CommitmentDryRun, Reservation};
use schemars::JsonSchema;
use serde::Deserialize;

use super::body::Body;
use super::decisions::Decision;
use super::dry_run::DryRunQuery;
use super::place::{self, Outcome, PlacementBody, ReplicasBody, TasksBody, answer, checked};
use super::state::{ApiResult, AppState, Params, SharedState};
use leeward_problems::Problem;

/// The body of `POST /v1/commitments`: hosts, with either `replicas` or `tasks`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommitmentBody {
    /// Unique key of the placement, as in the header `idempotency-key`, which a batch does not have.
    #[schemars(schema_with = "place::key")]
    #[serde(default)]
    key: Option<String>,
    /// The chosen hosts: in the order of the chain of replicas, or of the tasks.
    #[schemars(length(min = 1))]
    hosts: Vec<String>,
    /// The request, as for `POST /v1/place/replicas`. Its `replicas` must be the number of hosts.
    replicas: Option<ReplicasBody>,
    /// The request, as for `POST /v1/place/tasks`.
    tasks: Option<TasksBody>,
    /// Time of the choice; by default now. The duration `lasts` of the request begins at this time.
    #[schemars(with = "Option<Time>")]
    chosen: Option<String>,
}

impl CommitmentBody {
    /// The commitment, and the field with its request.
    ///
    /// # Errors
    /// [`Problem`] with the invalid field.
    pub(super) fn commitment(
        self,
        headers: &HeaderMap,
        app: &AppState,
    ) -> Result<(Commitment, &'static str), Problem> {
        let CommitmentBody { key, hosts, replicas, tasks, chosen } = self;
        let (placement, kind) = match (replicas, tasks) {
            (Some(body), None) => (body.reservation(headers), ReplicasBody::KIND),
            (None, Some(body)) => (body.reservation(headers), TasksBody::KIND),
            (None, None) => return Err(Problem::field("replicas", "missing; give `replicas` or `tasks`")),
            (Some(_), Some(_)) => {
                return Err(Problem::field("tasks", "give `replicas` or `tasks`, not both"));
            }
        };
        let Reservation { placement, reserve } = placement.map_err(|problem| problem.under(kind, &[]))?;
        if reserve.is_some() {
            let detail =
                "the caller has placed the work, so there is nothing to confirm; use `lasts`, not both";
            return Err(Problem::field(format!("{kind}.reserve"), detail));
        }
        let placement = place::with_key(placement, key)?;
        let parse = |text: String| app.clock.parse(&text);
        let chosen = chosen.map(parse).transpose().map_err(|detail| Problem::field("chosen", detail))?;
        Ok((Commitment { placement, hosts, chosen }.with_digest(), kind))
    }

    /// The problem of a commitment of this kind, as a problem of the body.
    pub(super) fn inside(problem: Problem, kind: &'static str) -> Problem {
        problem.under(kind, &["hosts", "chosen", "key"])
    }
}

/// Commits a placement that the caller decided. Rejects a repeated request if the first request was another one.
pub async fn commit(
    State(app): SharedState,
    Params(Query(query)): Params<Query<DryRunQuery>>,
    headers: HeaderMap,
    Body(body): Body<CommitmentBody>,
) -> ApiResult {
    let (commitment, kind) = body.commitment(&headers, &app)?;
    let inside = |problem| CommitmentBody::inside(problem, kind);
    if query.dry_run {
        let record = app.call(|_| Ok(CommitmentDryRun(commitment.clone()))).await.map_err(inside)?;
        let body = Json(Decision::of(&record, &app.clock).in_dry_run());
        return Ok((Extension(Outcome("dry_run")), body).into_response());
    }
    let placed = app.call(|_| Ok(commitment.clone())).await.map_err(inside)?;
    let placed = checked(&commitment.placement, placed).map_err(inside)?;
    Ok(answer(&app, &placed))
}
