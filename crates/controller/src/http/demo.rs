//! Operations on the comparison of a demo. A client that runs the comparison publishes it here, and pages read it. Only a
//! service in demo mode has one.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;

use super::board::{Board, Demo};
use super::body::Body;
use super::state::{ApiResult, AppState, SharedState};
use leeward_problems::Problem;

fn board(app: &AppState) -> Result<&Board, Problem> {
    app.demo.as_ref().ok_or_else(Problem::no_demo)
}

pub async fn get(State(app): SharedState) -> ApiResult {
    let demo = board(&app)?.load_full().ok_or_else(Problem::no_demo)?;
    Ok(Json(demo.as_ref()).into_response())
}

pub async fn put(State(app): SharedState, Body(demo): Body<Demo>) -> ApiResult {
    let board = board(&app)?;
    demo.check(&app.clock)?;
    board.store(Some(Arc::new(demo)));
    Ok(StatusCode::NO_CONTENT.into_response())
}
