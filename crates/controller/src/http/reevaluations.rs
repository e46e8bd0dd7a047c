//! Re-evaluation of the hosts of a running app.

use axum::extract::{Path, Query, State};
use leeward_fabric::{Bytes, Nanos};
use leeward_placement::tasks::Worth;
use leeward_records::RemainingTransfer;
use leeward_service::{Reevaluate, ReevaluateDryRun};
use schemars::JsonSchema;
use serde::Deserialize;

use super::body::Body;
use super::decisions::{Decision, number};
use super::dry_run::DryRunQuery;
use super::state::{ApiResult, NamePath, Params, SharedState};
use leeward_problems::Problem;

/// The body of `POST /v1/decisions/{id}/reevaluate`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReevaluationBody {
    /// Transfers that are left; by default all transfers of the app.
    remaining: Option<Vec<RemainingTransfer>>,
    /// State that each task which moves carries over the network; by default its memory.
    state: Option<Bytes>,
    /// Time for which the app stands still after its state has arrived. Default 0s.
    #[serde(default)]
    pause: Nanos,
    /// Share of the remaining time that the moves must save, their cost included. Default 0.1.
    #[serde(default = "tenth")]
    #[schemars(range(min = 0, max = 1))]
    margin: f64,
}

fn tenth() -> f64 {
    0.1
}

pub async fn reevaluate(
    State(app): SharedState,
    Params(Path(id)): NamePath,
    Params(Query(query)): Params<Query<DryRunQuery>>,
    Body(ReevaluationBody { remaining, state, pause, margin }): Body<ReevaluationBody>,
) -> ApiResult {
    if !(0.0..=1.0).contains(&margin) {
        return Err(Problem::field("margin", "expected a share from 0 to 1".to_owned()));
    }
    let question = Reevaluate { id: number(&id)?, remaining, worth: Worth { pause, state, margin } };
    let result = match query.dry_run {
        true => app.call(|_| Ok(ReevaluateDryRun(question.clone()))).await?,
        false => app.call(|_| Ok(question.clone())).await?,
    };
    Ok(Decision::answer(&result.record, &app, query))
}
