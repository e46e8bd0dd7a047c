//! HTTP interface: converts requests to operations on the coordinator, and replies to responses. The interface makes no
//! decisions and stores nothing.

mod auth;
mod bodies;
mod body;
mod cluster;
mod decisions;
mod demo;
mod distinct;
mod events;
mod history;
mod metrics;
mod migrations;
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
mod reports;
mod score;
mod shapes;
mod status;
mod table;
mod workloads;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequestParts, Path, State};
use axum::http::request::Parts;
use axum::http::{Method, Uri};
use axum::middleware::from_fn_with_state;
use axum::response::Response;
use leeward_fabric::{Fabric, Nanos};
use leeward_prometheus::Telemetry;
use leeward_records::Clock;
use leeward_service::{CallError, Handle, Operation, Unavailable};
use tokio::sync::Mutex;

pub use self::auth::Peer;
pub use self::bodies::Bodies;
pub use self::demo::Board;
use self::operations::SUBJECTS;
use self::problem::{IntoProblem, Problem};
pub use self::status::About;
use crate::access::Access;
use crate::observability::{Events, Metrics};
use crate::probes::Probes;
use crate::reload::Reload;

/// Shared state of all request handlers.
pub struct AppState {
    /// Handle of the coordinator.
    pub handle: Handle,
    /// Time conversion.
    pub clock: Clock,
    /// Static information about the service.
    pub about: About,
    /// Metrics.
    pub metrics: Arc<Metrics>,
    /// Events.
    pub events: Arc<Events>,
    /// Tokens and rate limits.
    pub access: Arc<Access>,
    /// Reload of settings; `None` without settings.
    pub reload: Option<Arc<Reload>>,
    /// State of Prometheus polling.
    pub telemetry: Arc<Telemetry>,
    /// Comparison of a demo; `None` outside demo mode.
    pub demo: Option<Board>,
    /// Surveys and participating hosts.
    pub probes: Probes,
    /// Largest body, in bytes.
    pub largest: usize,
    /// Memory limit of all bodies.
    pub bodies: Arc<Bodies>,
    /// Time limit for the arrival of a body.
    pub patience: Duration,
    /// Lock that serializes the parsing of clusters.
    pub reading: Mutex<()>,
    /// OpenAPI document.
    pub description: Arc<str>,
}

/// OpenAPI document of all operations.
pub fn description() -> String {
    openapi::document(SUBJECTS).to_string()
}

type SharedState = State<Arc<AppState>>;
type ApiResult = Result<Response, Problem>;

impl AppState {
    /// Lag of the machine's clock behind the service's time; 0 if it is within the tolerance for reports.
    fn clock_behind(&self) -> Nanos {
        let behind = self.clock.behind();
        if behind > self.about.interval { behind } else { Nanos(0) }
    }

    /// Runs an operation on the service. `resolve` creates it for a cluster, and again if the cluster changes
    /// meanwhile.
    async fn call<O: Operation>(
        &self,
        resolve: impl Fn(&Fabric) -> Result<O, Problem>,
    ) -> Result<O::Reply, Problem>
    where
        O::Error: IntoProblem,
    {
        // Drops the snapshot itself, so that the next one can reuse its memory.
        let mut fabric = self.handle.last_snapshot().fabric.clone();
        loop {
            match self.handle.call(resolve(&fabric)?, fabric.clone()).await {
                Err(CallError::Unavailable(Unavailable::ClusterChanged)) => {
                    fabric = self.snapshot().await?.fabric.clone();
                }
                answer => return answer.map_err(|error| error.problem(&self.clock)),
            }
        }
    }
}

/// Extractor whose rejections are problem documents.
struct Params<T>(T);

/// The single parameter of a path.
type NamePath = Params<Path<String>>;

impl<T> FromRequestParts<Arc<AppState>> for Params<T>
where
    T: FromRequestParts<Arc<AppState>>,
    T::Rejection: Into<Problem>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<AppState>) -> Result<Self, Problem> {
        T::from_request_parts(parts, app).await.map(Params).map_err(Into::into)
    }
}

impl From<PathRejection> for Problem {
    fn from(rejection: PathRejection) -> Problem {
        Problem::invalid(rejection.body_text())
    }
}

impl From<QueryRejection> for Problem {
    fn from(rejection: QueryRejection) -> Problem {
        let text = rejection.body_text();
        let text = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&text);
        match text.split_once(": ") {
            Some((field, detail)) if field.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') => {
                Problem::field(field, detail)
            }
            _ => Problem::invalid(text),
        }
    }
}

/// Router of all operations, and of the dashboard.
pub fn routes(app: AppState) -> Router {
    let app = Arc::new(app);
    table::router(operations::all())
        .fallback(page::page)
        .method_not_allowed_fallback(|method: Method, uri: Uri| async move {
            Problem::method(method.as_str(), uri.path())
        })
        .layer(from_fn_with_state(app.clone(), auth::auth))
        .with_state(app)
}
