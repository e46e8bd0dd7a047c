//! Workloads with guaranteed SLOs.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::response::IntoResponse;
use leeward_records::DecisionId;
use leeward_records::schema::{Id, Time};
use leeward_service::{GetWorkload, ListWorkloads, WorkloadState};
use leeward_slo::online::{Grant, GrantedSlo, GrantedStage};
use schemars::JsonSchema;
use serde::Serialize;

use super::pages::{Page, PageQuery};
use super::state::{ApiResult, AppState, NamePath, Params, SharedState};
use leeward_problems::Problem;

/// A workload with a current or past guarantee.
#[derive(Serialize, JsonSchema)]
pub struct Workload {
    /// Name of the workload.
    name: String,
    /// Priority at the first stage with a queue; 0 is served first.
    priority: u32,
    /// The guaranteed SLO.
    slo: GrantedSlo,
    /// Upper bound on the latency of a request, in seconds. A stochastic bound limits the SLO's percentile of latency.
    /// Null if there is no bound.
    bound_s: Option<f64>,
    /// Method of the bound; null if there is no bound.
    by: Option<String>,
    /// Last reported latency at the SLO's percentile, in seconds; null without a report.
    seen_s: Option<f64>,
    /// Host that sends the requests.
    client: String,
    /// Device of its volume; the host if no device is known.
    volume: String,
    /// Links and device that requests pass, in order.
    path: Vec<String>,
    /// The path by stages, with priorities and limits to enforce.
    stages: Vec<GrantedStage>,
    /// Decision that made the guarantee.
    #[schemars(with = "Id")]
    decision: String,
    /// Time of the decision.
    #[schemars(with = "Time")]
    time: String,
    /// End of the guarantee; null while it holds.
    #[schemars(with = "Option<Time>")]
    released: Option<String>,
}

impl Workload {
    fn of(app: &AppState, WorkloadState { record, latency_s }: &WorkloadState) -> Option<Workload> {
        let Grant { workload, client, volume, slo, bound_s, by, stages, .. } =
            record.details.promise.clone()?;
        Some(Workload {
            name: workload,
            priority: stages.iter().find(|stage| !stage.queues.is_empty()).map_or(0, |stage| stage.priority),
            slo,
            bound_s,
            by,
            seen_s: *latency_s,
            client,
            volume,
            path: stages.iter().flat_map(|stage| stage.queues.clone()).collect(),
            stages,
            decision: record.id.to_string(),
            time: app.clock.text(record.at),
            released: record.released.map(|at| app.clock.text(at)),
        })
    }
}

pub async fn list(State(app): SharedState, Params(Query(query)): Params<Query<PageQuery>>) -> ApiResult {
    let (limit, before) = (query.limit()?, query.after()?.map(DecisionId));
    let states = app.call(|_| Ok(ListWorkloads { before, limit: limit + 1 })).await?;
    let page = Page::cut(&states, limit, |state| state.record.id.0, |state| Workload::of(&app, state));
    let items = page.items.into_iter().flatten().collect();
    Ok(Json(Page::<Workload> { items, next: page.next }).into_response())
}

pub async fn one(State(app): SharedState, Params(Path(name)): NamePath) -> ApiResult {
    let state = app.call(|_| Ok(GetWorkload(name.clone()))).await?;
    let workload = Workload::of(&app, &state).ok_or_else(|| Problem::not_stored("workload", &name))?;
    Ok(Json(workload).into_response())
}
