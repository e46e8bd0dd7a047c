//! Metrics for Prometheus.

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::IntoResponse;
use leeward_service::LeaderState;

use super::state::{ApiResult, SharedState};
use leeward_observability::Exposition;
use leeward_problems::Problem;

/// Media types of metrics.
pub const MEDIA: &[&str] = &[Exposition::OpenMetrics.media(), Exposition::Text.media()];

pub async fn metrics(State(app): SharedState, headers: HeaderMap) -> ApiResult {
    let leads = *app.handle.leader_state().borrow() == LeaderState::Leader;
    let accept = headers.get_all(header::ACCEPT).into_iter().filter_map(|value| value.to_str().ok());
    let format = Exposition::accepted(&accept.collect::<Vec<_>>());
    // Scrapers come every few seconds. A snapshot that is a second old suffices, and the coordinator is not involved.
    let snapshot = app.handle.last_snapshot();
    let text = app.metrics.text(&snapshot, leads, app.clock_behind_s()).ok_or_else(Problem::broken)?;
    let headers = [(header::CONTENT_TYPE, format.content_type()), (header::VARY, "accept".to_owned())];
    Ok((headers, format.convert(text)).into_response())
}
