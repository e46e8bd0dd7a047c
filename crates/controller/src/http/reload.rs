//! Reload of settings.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;

use super::problem::Problem;
use super::state::{ApiResult, SharedState};

pub async fn reload(State(app): SharedState) -> ApiResult {
    let Some(reload) = app.reload.clone() else { return Err(Problem::no_settings()) };
    // Reading files may block.
    let reloaded = tokio::task::spawn_blocking(move || reload.reload_and_log()).await;
    Ok(Json(reloaded.map_err(|_| Problem::broken())??).into_response())
}
