//! Workloads with guaranteed SLOs, and decisions about workloads whose requests have changed.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::response::IntoResponse;
use leeward_agreements::Form;
use leeward_fabric::{Bytes, Nanos};
use leeward_promises::views::Workload;
use leeward_records::schema::{Id, WorkloadForm};
use leeward_records::{DecisionId, TraceSource};
use leeward_service::{ChangeDryRun, ChangeWorkload, GetWorkload, ListWorkloads, WorkloadState};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::body::Body;
use super::decisions::Decision;
use super::dry_run::DryRunQuery;
use super::pages::{LARGEST_PAGE, Page, PageQuery};
use super::snapshot::LONGEST_WAIT;
use super::state::{ApiResult, AppState, NamePath, Params, SharedState};
use leeward_problems::Problem;

/// Page of the list, and the version to wait for.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkloadsQuery {
    /// Largest number of items; default 100.
    #[schemars(range(min = 1, max = LARGEST_PAGE))]
    limit: Option<usize>,
    /// Value of `next` of the previous page.
    #[schemars(with = "Option<Id>")]
    after: Option<String>,
    /// Waits for another version of the promises than this one.
    since: Option<u64>,
    /// Longest wait for another version than `since`; at most one minute. After it, the response is the current list.
    wait: Option<Nanos>,
}

/// A page of workloads, with the version of the promises of all workloads.
#[derive(Serialize, JsonSchema)]
pub struct Workloads {
    /// Items of the page.
    items: Vec<Workload>,
    /// Value for `after` to get the next page; null at the end.
    #[schemars(with = "Option<Id>")]
    next: Option<String>,
    /// Identifies the set of promises; 0 before the first promise.
    #[schemars(with = "Id")]
    set: String,
    /// Number of the version of the set: it counts changes of priorities, limits, SLOs and places of all promises.
    version: u64,
}

fn shown(app: &AppState, WorkloadState { record, latency_s, status }: &WorkloadState) -> Option<Workload> {
    Workload::of(record, status.as_ref(), *latency_s, &app.clock)
}

pub async fn list(State(app): SharedState, Params(Query(query)): Params<Query<WorkloadsQuery>>) -> ApiResult {
    let WorkloadsQuery { limit, after, since, wait } = query;
    let page = PageQuery { limit, after };
    let (limit, before) = (page.limit()?, page.after()?.map(DecisionId));
    if let Some(since) = since {
        let mut versions = app.handle.promises();
        // The guard of the watch must not be held over the next wait.
        let other = async { versions.wait_for(|changes| changes.version.number != since).await.is_ok() };
        let wait = wait.unwrap_or(Nanos(0)).min(LONGEST_WAIT);
        // After the wait, and at the end of the service, the list is the current one.
        let _ = tokio::time::timeout(Duration::from_nanos(wait.0), other).await;
    }
    let list = app.call(|_| Ok(ListWorkloads { before, limit: limit + 1 })).await?;
    let page = Page::cut(&list.workloads, limit, |state| state.record.id.0, |state| shown(&app, state));
    let items = page.items.into_iter().flatten().collect();
    let (set, version) = (list.version.set.to_string(), list.version.number);
    Ok(Json(Workloads { items, next: page.next, set, version }).into_response())
}

pub async fn one(State(app): SharedState, Params(Path(name)): NamePath) -> ApiResult {
    let state = app.call(|_| Ok(GetWorkload(name.clone()))).await?;
    let workload = shown(&app, &state).ok_or_else(|| Problem::not_stored("workload", &name))?;
    Ok(Json(workload).into_response())
}

/// The body of `PUT /v1/workloads/{name}`: the workload with its new curves and models.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeBody {
    /// All fields of the workload. Its name is that of the path. By default, the server is that of the promise; after a
    /// move of the volume, it is the new one.
    #[schemars(with = "WorkloadForm")]
    workload: Form,
    /// Trace that curves and models were computed from.
    #[serde(default)]
    trace: Option<TraceSource>,
    /// Size of the volume, for a plan of its copy if it should move.
    #[serde(default)]
    bytes: Option<Bytes>,
}

impl ChangeBody {
    /// The change of the workload of this name.
    ///
    /// # Errors
    /// [`Problem`] with the invalid field.
    fn change(self, name: &str) -> Result<ChangeWorkload, Problem> {
        let ChangeBody { workload, trace, bytes } = self;
        let has_server = workload.get("server").is_some_and(|server| !server.is_null());
        leeward_agreements::check(&workload, has_server)
            .map_err(|error| Problem::from(error.under("workload")))?;
        if workload.get("name").and_then(Value::as_str) != Some(name) {
            return Err(Problem::field("workload.name", "expected the name of the path"));
        }
        match trace.as_ref() {
            Some(trace) if !trace.has_digest() => {
                return Err(Problem::field("trace.sha256", "expected 64 hexadecimal digits in lower case"));
            }
            Some(TraceSource { seconds: Some(seconds), .. }) if !(0.0..=f64::MAX).contains(seconds) => {
                return Err(Problem::field("trace.seconds", "expected seconds from 0"));
            }
            _ => {}
        }
        if bytes == Some(Bytes(0)) {
            return Err(Problem::field("bytes", "0: expected the size of the volume, or nothing"));
        }
        Ok(ChangeWorkload { workload, trace, bytes })
    }
}

pub async fn change(
    State(app): SharedState,
    Params(Path(name)): NamePath,
    Params(Query(query)): Params<Query<DryRunQuery>>,
    Body(body): Body<ChangeBody>,
) -> ApiResult {
    let change = body.change(&name)?;
    let result = match query.dry_run {
        true => app.call(|_| Ok(ChangeDryRun(change.clone()))).await?,
        false => app.call(|_| Ok(change.clone())).await?,
    };
    Ok(Decision::answer(&result.record, &app, query))
}
