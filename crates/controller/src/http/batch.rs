//! Batches of placements, of commitments and of releases. Each item has its own result, and one commit has the changes of
//! all.

use axum::Json;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use leeward_problems::{IntoProblem, Problem};
use leeward_records::{Clock, DecisionRecord};
use leeward_service::{
    Commitment, CommitmentDryRun, GetDecision, Operation, Placed, Placement, Release, Reservation,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::Body;
use super::commitments::CommitmentBody;
use super::decisions::{self, Decision};
use super::dry_run::DryRunQuery;
use super::place::{self, PlacementBody, ReplicasBody, TasksBody, VolumesBody, WorkloadBody, checked};
use super::state::{ApiResult, AppState, Params, SharedState};

/// Largest number of placements or commitments in a batch. All other requests wait for a batch.
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

/// The body of `POST /v1/commitments/batch`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommitmentBatchBody {
    /// Placements that the caller decided, committed in this order.
    #[schemars(length(min = 1, max = MOST_PLACEMENTS))]
    commitments: Vec<CommitmentBody>,
}

/// The body of `POST /v1/release`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseBody {
    /// Ids of the decisions.
    #[schemars(length(min = 1, max = MOST_RELEASES))]
    decisions: Vec<String>,
}

/// An item of a batch with the kind of its request, or the problem of an invalid item.
type Item<T> = Result<(T, &'static str), Problem>;

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
    fn reservation(self) -> Item<Reservation> {
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
        let Reservation { placement, reserve } = reservation;
        Ok((Reservation::of(place::with_key(placement, key)?, reserve), kind))
    }
}

/// Places the requests of a batch. The status of the response is 200 if the service has decided, whatever the results are.
pub async fn place(
    State(app): SharedState,
    Params(Query(query)): Params<Query<DryRunQuery>>,
    headers: HeaderMap,
    Body(BatchBody { requests }): Body<BatchBody>,
) -> ApiResult {
    place::without_key(&headers)?;
    check_length("requests", requests.len(), MOST_PLACEMENTS)?;
    let items: Vec<Item<Reservation>> = requests.into_iter().map(BatchRequest::reservation).collect();
    let results = match query.dry_run {
        true => dry_run(&app, &items).await,
        false => run(&app, &items, |reservation| &reservation.placement).await?,
    };
    for (item, result) in items.iter().zip(&results) {
        // An item without a kind is no request for a placement.
        let Ok((_, kind)) = item else { continue };
        let outcome = match result {
            Ok(_) if query.dry_run => "dry_run",
            Ok(Placed { repeated: true, .. }) => "repeated",
            Ok(_) => "placed",
            Err(problem) => problem.word(),
        };
        app.metrics.placement(kind, outcome);
    }
    // The field of a request that was parsed is inside its kind.
    Ok(answer(
        &app,
        "requests",
        &items,
        results,
        |problem, kind| problem.under(kind, &["key"]),
        query.dry_run,
    ))
}

/// Commits placements that the caller decided. The status of the response is as for [`place`].
pub async fn commit(
    State(app): SharedState,
    Params(Query(query)): Params<Query<DryRunQuery>>,
    headers: HeaderMap,
    Body(CommitmentBatchBody { commitments }): Body<CommitmentBatchBody>,
) -> ApiResult {
    place::without_key(&headers)?;
    check_length("commitments", commitments.len(), MOST_PLACEMENTS)?;
    let headers = HeaderMap::new();
    let items: Vec<Item<Commitment>> =
        commitments.into_iter().map(|body| body.commitment(&headers, &app)).collect();
    let results = match query.dry_run {
        true => {
            let valid = items.iter().flatten().map(|(item, _)| CommitmentDryRun(item.clone())).collect();
            let records = app.call_all(valid).await?;
            let placed =
                records.into_iter().map(|record| record.map(|record| Placed { record, repeated: false }));
            in_order(&items, placed.collect(), |_, placed| Ok(placed))
        }
        false => run(&app, &items, |commitment| &commitment.placement).await?,
    };
    Ok(answer(&app, "commitments", &items, results, CommitmentBody::inside, query.dry_run))
}

/// Runs the valid items in one turn of the service.
///
/// # Errors
/// [`Problem`] if the service can run none of them now.
async fn run<O: Operation<Reply = Placed> + Clone>(
    app: &AppState,
    items: &[Item<O>],
    placement: impl Fn(&O) -> &Placement,
) -> Result<Vec<Result<Placed, Problem>>, Problem>
where
    O::Error: IntoProblem,
{
    let valid = items.iter().flatten().map(|(item, _)| item.clone()).collect();
    let placed = app.call_all(valid).await?;
    Ok(in_order(items, placed, |item, placed| checked(placement(item), placed)))
}

/// The result of each item: its problem, or what `finish` makes of the next of the results of valid items.
fn in_order<T>(
    items: &[Item<T>],
    valid: Vec<Result<Placed, Problem>>,
    finish: impl Fn(&T, Placed) -> Result<Placed, Problem>,
) -> Vec<Result<Placed, Problem>> {
    let mut valid = valid.into_iter();
    let result = |item: &Item<T>| {
        let (item, _) = item.as_ref().map_err(Problem::clone)?;
        let placed = valid.next().unwrap_or_else(|| Err(Problem::broken()))?;
        finish(item, placed)
    };
    items.iter().map(result).collect()
}

/// Decides each request as if it were alone, without a commit.
async fn dry_run(app: &AppState, items: &[Item<Reservation>]) -> Vec<Result<Placed, Problem>> {
    let mut results = Vec::with_capacity(items.len());
    for item in items {
        results.push(match item {
            Ok((Reservation { placement, .. }, _)) => {
                place::dry_run(app, placement).await.map(|record| Placed { record, repeated: false })
            }
            Err(problem) => Err(problem.clone()),
        });
    }
    results
}

/// Answers with the results of the items of a batch.
///
/// # Arguments
/// * `list`: field of the body with the items
/// * `inside`: turns the problem of a valid item of a kind into a problem of the item
fn answer<T>(
    app: &AppState,
    list: &str,
    items: &[Item<T>],
    mut results: Vec<Result<Placed, Problem>>,
    inside: impl Fn(Problem, &'static str) -> Problem,
    dry_run: bool,
) -> Response {
    for (at, (result, item)) in results.iter_mut().zip(items).enumerate() {
        if let Err(problem) = result {
            let of_item = problem.clone();
            let of_item = if let Ok((_, kind)) = item { inside(of_item, kind) } else { of_item };
            *problem = of_item.under(&format!("{list}[{at}]"), &[]);
        }
    }
    let results = results.iter().map(|result| ItemResult::of(result, dry_run, &app.clock)).collect();
    Json(Results { results }).into_response()
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
