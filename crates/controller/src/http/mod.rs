//! HTTP: texts in, a message to the desk, texts out. Nothing is decided here, and nothing is kept.

mod bodies;
mod body;
mod cluster;
mod decisions;
mod demo;
mod events;
mod gate;
mod metrics;
mod migrations;
mod network;
mod openapi;
mod operations;
mod page;
mod past;
mod place;
mod policies;
mod probes;
mod problem;
mod reading;
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
use tokio::sync::Mutex;

pub use self::bodies::Bodies;
pub use self::demo::Board;
pub use self::gate::Peer;
use self::operations::SUBJECTS;
use self::problem::Problem;
pub use self::reading::{Beside, understand};
pub use self::status::About;
use crate::access::Access;
use crate::clock::Clock;
use crate::desk::{Message, Refused, Reply};
use crate::office::Office;
use crate::probes::Probes;
use crate::reload::Reload;
use crate::telemetry::Telemetry;
use crate::watch::{Events, Metrics};

/// What every request needs.
pub struct Edge {
    /// Where messages are handed in.
    pub office: Office,
    /// What times mean.
    pub clock: Clock,
    /// What is told of the service itself.
    pub about: About,
    /// What is counted.
    pub metrics: Arc<Metrics>,
    /// What happens.
    pub events: Arc<Events>,
    /// Who may ask, and how often.
    pub access: Arc<Access>,
    /// What reads settings again; `None` where there are none.
    pub reload: Option<Arc<Reload>>,
    /// What is asked of Prometheus.
    pub telemetry: Arc<Telemetry>,
    /// What a demo shows; `None` where the service is none.
    pub demo: Option<Board>,
    /// What is known of measurements.
    pub probes: Probes,
    /// Bytes of the largest body that is read.
    pub largest: usize,
    /// Bytes of all bodies at once.
    pub bodies: Arc<Bodies>,
    /// How long a body may take to come.
    pub patience: Duration,
    /// Held by who reads a cluster.
    pub reading: Mutex<()>,
    /// The OpenAPI document.
    pub description: Arc<str>,
}

/// The OpenAPI document of everything there is.
pub fn description() -> String {
    openapi::document(SUBJECTS).to_string()
}

type Shared = State<Arc<Edge>>;
type Answer = Result<Response, Problem>;

impl Edge {
    /// How far the machine's clock is behind the service's time; zero while that is less than reports may differ by.
    fn clock_behind(&self) -> Nanos {
        let behind = self.clock.behind();
        if behind > self.about.interval { behind } else { Nanos(0) }
    }

    /// Asks for what a message made of names means. If the cluster changes meanwhile, it is made anew.
    async fn reply(&self, message: impl Fn(&Fabric) -> Result<Message, Problem>) -> Result<Reply, Problem> {
        // The world itself is let go of: the next one is made in its memory.
        let mut fabric = self.office.last_world().fabric.clone();
        loop {
            let answer = self.office.ask(message(&fabric)?, fabric.clone()).await;
            match answer.map_err(|_| Problem::broken())? {
                Err(Refused::Moved) => fabric = self.world().await?.fabric.clone(),
                answer => return answer.map_err(|refused| Problem::refused(refused, &self.clock)),
            }
        }
    }
}

/// What a path or a query says, or what is wrong with it as a problem.
struct Asked<T>(T);

/// The one name in a path.
type Named = Asked<Path<String>>;

impl<T> FromRequestParts<Arc<Edge>> for Asked<T>
where
    T: FromRequestParts<Arc<Edge>>,
    T::Rejection: Into<Problem>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, edge: &Arc<Edge>) -> Result<Self, Problem> {
        T::from_request_parts(parts, edge).await.map(Asked).map_err(Into::into)
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

/// Everything that is answered.
pub fn routes(edge: Edge) -> Router {
    let edge = Arc::new(edge);
    table::router(operations::all())
        .fallback(page::page)
        .method_not_allowed_fallback(|method: Method, uri: Uri| async move {
            Problem::method(method.as_str(), uri.path())
        })
        .layer(from_fn_with_state(edge.clone(), gate::gate))
        .with_state(edge)
}
