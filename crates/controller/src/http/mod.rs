//! HTTP: texts in, a message to the desk, texts out. Nothing is decided here, and nothing is kept.

mod body;
mod place;
mod problem;
mod reply;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, Method, Uri};
use axum::response::Response;
use axum::routing::{get, post};
use leeward_fabric::Fabric;

use self::body::{Json, ReportBody};
use self::place::{ReplicasBody, TasksBody};
use self::problem::Problem;
pub use self::reply::About;
use crate::clock::Clock;
use crate::desk::Message;
use crate::office::Office;

/// What every request needs.
#[derive(Clone)]
pub struct Edge {
    /// Where messages are handed in.
    pub office: Office,
    /// What names mean.
    pub fabric: Arc<Fabric>,
    /// What times mean.
    pub clock: Clock,
    /// What is told of the service itself.
    pub about: About,
    /// How long a body may take to come.
    pub patience: Duration,
}

type Shared = State<Arc<Edge>>;
type Answer = Result<Response, Problem>;
type Id = Result<Path<String>, PathRejection>;

impl Edge {
    async fn ask(&self, message: Message) -> Answer {
        let answer = self.office.ask(message).await.map_err(|_| Problem::broken())?;
        match answer {
            Ok(reply) => Ok(reply::response(reply, &self.about, &self.fabric, &self.clock)),
            Err(refused) => Err(Problem::refused(refused, &self.clock)),
        }
    }

    /// The number of a decision.
    fn number(&self, id: Id) -> Result<u64, Problem> {
        let Path(id) = id.map_err(|rejection| Problem::invalid(rejection.body_text()))?;
        let plain = id.bytes().all(|byte| byte.is_ascii_digit());
        let number = if plain { id.parse().ok() } else { None };
        number.ok_or_else(|| Problem::no_decision(&leeward_fabric::input::excerpt(&id)))
    }
}

/// Everything under `/v1`.
pub fn routes(edge: Edge) -> Router {
    Router::new()
        .route("/v1/reports", post(report))
        .route("/v1/place/replicas", post(place_replicas))
        .route("/v1/place/tasks", post(place_tasks))
        .route("/v1/decisions/{id}", get(decision).delete(release))
        .route("/v1/snapshot", get(snapshot))
        .route("/v1/health", get(health))
        .fallback(|uri: Uri| async move { Problem::no_path(uri.path()) })
        .method_not_allowed_fallback(|method: Method, uri: Uri| async move {
            Problem::method(method.as_str(), uri.path())
        })
        .layer(DefaultBodyLimit::max(body::LARGEST))
        .with_state(Arc::new(edge))
}

async fn report(State(edge): Shared, Json(body): Json<ReportBody>) -> Answer {
    edge.ask(body.message(&edge.fabric, &edge.clock)?).await
}

async fn place_replicas(State(edge): Shared, headers: HeaderMap, Json(body): Json<ReplicasBody>) -> Answer {
    edge.ask(body.message(&edge.fabric, &headers)?).await
}

async fn place_tasks(State(edge): Shared, headers: HeaderMap, Json(body): Json<TasksBody>) -> Answer {
    edge.ask(body.message(&edge.fabric, &headers)?).await
}

async fn decision(State(edge): Shared, id: Id) -> Answer {
    edge.ask(Message::Decision(edge.number(id)?)).await
}

async fn release(State(edge): Shared, id: Id) -> Answer {
    edge.ask(Message::Release(edge.number(id)?)).await
}

async fn snapshot(State(edge): Shared) -> Answer {
    edge.ask(Message::Snapshot).await
}

async fn health(State(edge): Shared) -> Answer {
    edge.ask(Message::Health).await
}
