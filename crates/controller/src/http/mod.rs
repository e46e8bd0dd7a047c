//! HTTP interface: converts requests to operations on the coordinator, and replies to responses. The interface makes no
//! decisions and stores nothing.

mod auth;
mod batch;
mod board;
mod body;
mod cluster;
mod commitments;
mod compression;
mod copies;
mod counts;
mod decisions;
mod demo;
mod dry_run;
mod enforcers;
mod events;
mod history;
mod hotspots;
mod labs;
mod metrics;
mod migrations;
mod modes;
mod network;
mod openapi;
mod operations;
mod page;
mod pages;
mod place;
mod pods;
mod policies;
mod probes;
mod reevaluations;
mod reload;
mod reports;
mod score;
mod search;
mod series;
mod shapes;
mod sites;
mod snapshot;
mod state;
mod status;
mod stored_history;
mod summary;
mod table;
mod workloads;

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{Method, Uri};
use axum::middleware::{from_fn, from_fn_with_state};

pub use self::board::Board;
use self::operations::SUBJECTS;
use self::state::SharedState;
pub use self::state::{About, AppState};
use self::table::Operation;
use leeward_access::Role;
use leeward_problems::Problem;

/// OpenAPI document of all operations.
pub fn description() -> String {
    openapi::document(SUBJECTS).to_string()
}

/// Paths that operators need although they change nothing.
const WATCHED: [&str; 2] = ["/metrics", "/v1/status"];

/// True for operations on health, metrics and administration: public ones, those of a path that an administrator may
/// change, and [`WATCHED`].
fn is_for_operators(operation: &Operation) -> bool {
    let same_path = operations::all().filter(|other| other.path == operation.path);
    WATCHED.contains(&operation.path)
        || same_path.into_iter().any(|other| matches!(other.role, None | Some(Role::Admin)))
}

/// Router of all operations, and of the dashboard.
pub fn routes(app: Arc<AppState>) -> Router {
    with_fallback(table::router(operations::all()).fallback(page::page), app)
}

/// Router of the operations on health, metrics and administration.
pub fn admin_routes(app: Arc<AppState>) -> Router {
    let operations = operations::all().filter(|operation| is_for_operators(operation));
    let other = |uri: Uri| async move { Problem::no_path(uri.path()) };
    with_fallback(table::router(operations).fallback(other), app)
}

/// Router of a connection beyond the limit: the operations on health, metrics and administration, and a problem for all
/// others.
pub fn reserve_routes(app: Arc<AppState>) -> Router {
    let operations = operations::all().filter(|operation| is_for_operators(operation));
    let other = |State(app): SharedState| async move {
        app.metrics.connection_refused();
        Problem::no_connection()
    };
    with_fallback(table::router(operations).fallback(other), app)
}

fn with_fallback(router: Router<Arc<AppState>>, app: Arc<AppState>) -> Router {
    router
        .method_not_allowed_fallback(|method: Method, uri: Uri| async move {
            Problem::method(method.as_str(), uri.path())
        })
        .layer(from_fn(compression::compress))
        .layer(from_fn_with_state(app.clone(), auth::auth))
        .with_state(app)
}
