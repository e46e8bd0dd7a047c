//! Reload of settings.

use axum::Json;
use axum::extract::{Query, State};
use axum::response::IntoResponse;

use super::dry_run::DryRunQuery;
use super::state::{ApiResult, Params, SharedState};
use crate::reload::ReloadError;
use leeward_problems::Problem;

pub async fn reload(State(app): SharedState, Params(Query(query)): Params<Query<DryRunQuery>>) -> ApiResult {
    let Some(reload) = app.reload.clone() else { return Err(Problem::no_settings()) };
    let reloaded = if query.dry_run { reload.dry_run().await } else { reload.run().await };
    match reloaded {
        Ok(reloaded) => Ok(Json(reloaded).into_response()),
        Err(ReloadError::Input(error)) => Err(error.into()),
        Err(ReloadError::Ledger(error)) => {
            Err(Problem::field(format!("ledger.{}", error.field), error.to_string()))
        }
        Err(ReloadError::Modes) => Err(Problem::modes_not_stored()),
        Err(ReloadError::Ended) => Err(Problem::broken()),
    }
}
