//! Batches of placements and of releases. Each item has its own result, and one commit has the changes of all.

use axum::Json;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use leeward_records::{Caller, Clock, DecisionRecord};
use leeward_service::{GetDecision, Placed, Placement, Release, Reservation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::Body;
use super::decisions::{self, Decision};
use super::dry_run::DryRunQuery;
use super::place::{self, PlacementBody, ReplicasBody, TasksBody, VolumesBody, WorkloadBody, checked};
use super::problem::Problem;
use super::state::{ApiResult, AppState, Params, SharedState};

/// Largest number of placements in a batch. All other requests wait for a batch.
const MOST_PLACEMENTS: usize = 100;
/// Largest number of releases in a batch.
const MOST_RELEASES: usize = 1_000;

/// The body of `POST /v1/place/batch`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchBody {
    /// Placements, decided in this order.
    #[schemars(length(min = 1, max = MOST_PLACEMENTS))]
    requests: Vec<BatchRequest>,
}

/// A placement of a batch: one of `replicas`, `tasks`, `volumes` and `workload`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BatchRequest {
    /// Unique key of the placement, as in the header `idempotency-key`.
    #[schemars(schema_with = "place::key")]
    #[serde(default)]
    key: Option<String>,
    /// The body of `POST /v1/place/replicas`.
    replicas: Option<ReplicasBody>,
    /// The body of `POST /v1/place/tasks`.
    tasks: Option<TasksBody>,
    /// The body of `POST /v1/place/volumes`.
    #[schemars(with = "Option<WorkloadBody>")]
    volumes: Option<VolumesBody>,
    /// The body of `POST /v1/workloads`.
    workload: Option<WorkloadBody>,
}

/// The body of `POST /v1/release`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseBody {
    /// Ids of the decisions.
    #[schemars(length(min = 1, max = MOST_RELEASES))]
    decisions: Vec<String>,
}

/// Results of a batch.
#[derive(Serialize, JsonSchema)]
pub struct Results<'a> {
    /// The result of each item, in their order.
    results: Vec<ItemResult<'a>>,
}

/// Result of an item of a batch.
#[derive(Serialize, JsonSchema)]
pub struct ItemResult<'a> {
    /// HTTP status that the item would have as a request of its own.
    status: u16,
    /// The decision; null with a problem.
    decision: Option<Decision<'a>>,
    /// The problem; null with a decision.
    problem: Option<Problem>,
}

impl<'a> ItemResult<'a> {
    fn of(result: &'a Result<Placed, Problem>, dry_run: bool, clock: &Clock) -> ItemResult<'a> {
        match result {
            Ok(Placed { record, repeated }) => {
                let is_new = !(*repeated || dry_run);
                let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
                ItemResult::with(record, status, dry_run, clock)
            }
            Err(problem) => ItemResult::failed(problem),
        }
    }

    fn with(record: &'a DecisionRecord, status: StatusCode, dry_run: bool, clock: &Clock) -> ItemResult<'a> {
        let decision = Decision::of(record, clock);
        let decision = if dry_run { decision.in_dry_run() } else { decision };
        ItemResult { status: status.as_u16(), decision: Some(decision), problem: None }
    }

    fn failed(problem: &Problem) -> ItemResult<'a> {
        ItemResult { status: problem.status(), decision: None, problem: Some(problem.clone()) }
    }
}

impl BatchRequest {
    /// The placement with the kind of its request.
    fn reservation(self) -> Result<(Reservation, &'static str), Problem> {
        let headers = HeaderMap::new();
        let key = self.key.clone();
        let (reservation, kind) = match self {
            BatchRequest { replicas: Some(body), tasks: None, volumes: None, workload: None, .. } => {
                (body.reservation(&headers), ReplicasBody::KIND)
            }
            BatchRequest { replicas: None, tasks: Some(body), volumes: None, workload: None, .. } => {
                (body.reservation(&headers), TasksBody::KIND)
            }
            BatchRequest { replicas: None, tasks: None, volumes: Some(body), workload: None, .. } => {
                (body.reservation(&headers), VolumesBody::KIND)
            }
            BatchRequest { replicas: None, tasks: None, volumes: None, workload: Some(body), .. } => {
                (body.reservation(&headers), WorkloadBody::KIND)
            }
            _ => {
                let detail = "expected one of `replicas`, `tasks`, `volumes` and `workload`, and only one";
                return Err(Problem::field("replicas", detail));
            }
        };
        let reservation = reservation.map_err(|problem| problem.under(kind, &[]))?;
        let Some(key) = key else { return Ok((reservation, kind)) };
        if !place::is_key(&key) {
            return Err(Problem::field("key", place::invalid_key()));
        }
        let Reservation { placement, reserve } = reservation;
        if placement.caller.is_some() {
            return Err(Problem::field("key", "give `client` and `sequence`, or `key`, not both"));
        }
        let caller = Some(Caller::Key(key.into()));
        let placement = Placement { caller, ..placement }.with_digest();
        Ok((Reservation::of(placement, reserve), kind))
    }
}

/// Places the requests of a batch. The status of the response is 200 if the service has decided, whatever the results are.
pub async fn place(
    State(app): SharedState,
    Params(Query(query)): Params<Query<DryRunQuery>>,
    Body(BatchBody { requests }): Body<BatchBody>,
) -> ApiResult {
    check_length("requests", requests.len(), MOST_PLACEMENTS)?;
    let parsed: Vec<Result<(Reservation, &'static str), Problem>> =
        requests.into_iter().map(BatchRequest::reservation).collect();
    let mut results = match query.dry_run {
        true => dry_run(&app, &parsed).await,
        false => {
            let valid: Vec<Reservation> =
                parsed.iter().flatten().map(|(reservation, _)| reservation.clone()).collect();
            let mut placed = app.call_all(valid).await?.into_iter();
            let mut result = |(reservation, _): &(Reservation, &'static str)| match placed.next() {
                Some(placed) => placed.and_then(|placed| checked(&reservation.placement, placed)),
                None => Err(Problem::broken()),
            };
            parsed
                .iter()
                .map(|parsed| parsed.as_ref().map_err(Problem::clone).and_then(&mut result))
                .collect()
        }
    };
    for (at, (result, parsed)) in results.iter_mut().zip(&parsed).enumerate() {
        let kind = parsed.as_ref().ok().map(|&(_, kind)| kind);
        let outcome = match result {
            Ok(_) if query.dry_run => "dry_run",
            Ok(Placed { repeated: true, .. }) => "repeated",
            Ok(_) => "placed",
            Err(problem) => {
                // The field of a request that was parsed is inside its kind.
                let inside = problem.clone();
                let inside = if let Some(kind) = kind { inside.under(kind, &["key"]) } else { inside };
                *problem = inside.under(&format!("requests[{at}]"), &[]);
                problem.word()
            }
        };
        // An item without a kind is no request for a placement.
        kind.into_iter().for_each(|kind| app.metrics.placement(kind, outcome));
    }
    let results = results.iter().map(|result| ItemResult::of(result, query.dry_run, &app.clock)).collect();
    Ok(Json(Results { results }).into_response())
}

/// Decides each request as if it were alone, without a commit.
async fn dry_run(
    app: &AppState,
    parsed: &[Result<(Reservation, &'static str), Problem>],
) -> Vec<Result<Placed, Problem>> {
    let mut results = Vec::with_capacity(parsed.len());
    for parsed in parsed {
        results.push(match parsed {
            Ok((Reservation { placement, .. }, _)) => {
                place::dry_run(app, placement).await.map(|record| Placed { record, repeated: false })
            }
            Err(problem) => Err(problem.clone()),
        });
    }
    results
}

/// Releases decisions.
pub async fn release(
    State(app): SharedState,
    Params(Query(query)): Params<Query<DryRunQuery>>,
    Body(ReleaseBody { decisions }): Body<ReleaseBody>,
) -> ApiResult {
    check_length("decisions", decisions.len(), MOST_RELEASES)?;
    let ids: Vec<_> = decisions.iter().map(|id| decisions::number(id)).collect();
    let valid = ids.iter().flatten().copied();
    let records = match query.dry_run {
        true => app.call_all(valid.map(GetDecision).collect()).await?,
        false => app.call_all(valid.map(Release).collect()).await?,
    };
    let mut records = records.into_iter();
    let results: Vec<_> = ids
        .into_iter()
        .map(|id| id.and_then(|_| records.next().unwrap_or_else(|| Err(Problem::broken()))))
        .collect();
    let results = results.iter().map(|result| match result {
        Ok(record) => ItemResult::with(record, StatusCode::OK, query.dry_run, &app.clock),
        Err(problem) => ItemResult::failed(problem),
    });
    Ok(Json(Results { results: results.collect() }).into_response())
}

fn check_length(field: &str, length: usize, most: usize) -> Result<(), Problem> {
    match length {
        0 => Err(Problem::field(field, "empty: expected at least one")),
        _ if length > most => Err(Problem::field(field, format!("{length}: expected at most {most}"))),
        _ => Ok(()),
    }
}
