//! Metrics for Prometheus.

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use leeward_service::Position;

use super::problem::Problem;
use super::{Answer, Shared};

/// Media type of OpenMetrics text.
pub const MEDIA: &str = "application/openmetrics-text";

pub async fn metrics(State(edge): Shared) -> Answer {
    let leads = *edge.handle.position().borrow() == Position::Leads;
    // Scrapers ask every few seconds, so a snapshot that is a second old suffices, and the coordinator is not
    // involved.
    let world = edge.handle.last_world();
    let text = edge.metrics.text(&world, leads, edge.clock_behind()).ok_or_else(Problem::broken)?;
    let media = format!("{MEDIA}; version=1.0.0; charset=utf-8");
    Ok(([(header::CONTENT_TYPE, media)], text).into_response())
}
