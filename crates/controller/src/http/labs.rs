//! Labs with circuits that stand on the machine of the service.

use axum::Json;
use axum::extract::Query;
use axum::response::IntoResponse;
use leeward_lab::StandingLab;

use super::pages::{PageQuery, page};
use super::state::{ApiResult, Params};
use leeward_problems::Problem;

pub async fn list(Params(Query(query)): Params<Query<PageQuery>>) -> ApiResult {
    // The views are files, whose reading may block.
    let labs = tokio::task::spawn_blocking(StandingLab::all).await.map_err(|_| Problem::broken())?;
    Ok(Json(page(&labs, &query, StandingLab::clone)?).into_response())
}
