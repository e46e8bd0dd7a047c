//! HTTP interface: converts requests to operations on the coordinator, and replies to responses. The interface makes no
//! decisions and stores nothing.

mod auth;
mod board;
mod bodies;
mod body;
mod cluster;
mod compression;
mod decisions;
mod demo;
mod distinct;
mod dry_run;
mod events;
mod history;
mod metrics;
mod migrations;
mod modes;
mod network;
mod openapi;
mod operations;
mod page;
mod pages;
mod place;
mod policies;
mod probes;
mod problem;
mod reload;
mod reporters;
mod reports;
mod score;
mod shapes;
mod sites;
mod snapshot;
mod state;
mod status;
mod table;
mod workloads;

use std::sync::Arc;

use axum::Router;
use axum::http::{Method, Uri};
use axum::middleware::{from_fn, from_fn_with_state};

pub use self::board::Board;
pub use self::bodies::Bodies;
use self::operations::SUBJECTS;
use self::problem::Problem;
pub use self::reporters::Reporters;
pub use self::state::{About, AppState};

/// OpenAPI document of all operations.
pub fn description() -> String {
    openapi::document(SUBJECTS).to_string()
}

/// Router of all operations, and of the dashboard.
pub fn routes(app: AppState) -> Router {
    let app = Arc::new(app);
    table::router(operations::all())
        .fallback(page::page)
        .method_not_allowed_fallback(|method: Method, uri: Uri| async move {
            Problem::method(method.as_str(), uri.path())
        })
        .layer(from_fn(compression::compress))
        .layer(from_fn_with_state(app.clone(), auth::auth))
        .with_state(app)
}
