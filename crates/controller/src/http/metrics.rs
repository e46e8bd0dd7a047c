//! Metrics for Prometheus.

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use leeward_service::LeaderState;

use super::problem::Problem;
use super::state::{ApiResult, SharedState};

/// Media type of OpenMetrics text.
pub const MEDIA: &str = "application/openmetrics-text";

pub async fn metrics(State(app): SharedState) -> ApiResult {
    let leads = *app.handle.leader_state().borrow() == LeaderState::Leader;
    // Scrapers come every few seconds. A snapshot that is a second old suffices, and the coordinator is not involved.
    let snapshot = app.handle.last_snapshot();
    let text = app.metrics.text(&snapshot, leads, app.clock_behind()).ok_or_else(Problem::broken)?;
    let media = format!("{MEDIA}; version=1.0.0; charset=utf-8");
    Ok(([(header::CONTENT_TYPE, media)], text).into_response())
}
