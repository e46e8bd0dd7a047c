//! Whether the service is there, and what it is.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;

use super::problem::Problem;
use super::{Answer, Shared, demo};
use crate::desk::{Labels, Promising};
use crate::office::Position;
use crate::store::Durability;

/// What is told of the service itself.
#[derive(Clone, Debug)]
pub struct About {
    /// The policies, with their settings.
    pub labels: Labels,
    /// Who decides what is promised to workloads.
    pub promising: Promising,
    /// When the service started.
    pub since: String,
    /// Seconds between reports of a link.
    pub interval_s: f64,
    /// Where others reach the service.
    pub address: Arc<str>,
}

impl About {
    /// Whether this service decides, and the address of the one that does.
    pub fn leader(&self, position: &Position) -> (&'static str, Option<String>) {
        match position {
            Position::Leads => ("leader", Some(self.address.to_string())),
            Position::Follows { leader } => ("follower", leader.as_ref().map(|leader| leader.to_string())),
            Position::Stalls { .. } => ("follower", None),
        }
    }
}

/// What the service is, and how much it has.
#[derive(Serialize, JsonSchema)]
pub struct Status {
    version: &'static str,
    /// `leader` if placements are answered here, else `follower`.
    role: &'static str,
    /// The address of the service that answers placements; null if there is none, or it has not said its own.
    leader: Option<String>,
    /// Why nothing can be kept now; null if it can, here or by the leader.
    stalled: Option<String>,
    /// What decisions are kept in: `sqlite`, `postgres` or `memory`.
    store: &'static str,
    /// What kept decisions outlive; null if nothing.
    durability: Option<Durability>,
    /// Name of the cluster.
    cluster: String,
    /// Its version.
    cluster_version: String,
    policies: Policies,
    /// When the service started.
    since: String,
    /// What time it is.
    time: String,
    /// Seconds between reports of a link.
    interval_s: f64,
    /// From which utilization on a link is hot.
    hot_above: f64,
    /// The state of the ledger.
    epoch: u64,
    /// Decisions that are kept.
    decisions: usize,
    /// Decisions made since the service started.
    decided: u64,
    /// Samples of links taken in since the service started.
    samples: u64,
    /// Requests that wait to be decided.
    waiting: usize,
    /// Decisions that had to stop counting before telemetry showed them, because there were too many.
    released_early: u64,
    /// What the service shows as a demo; null if it is none.
    demo: Option<demo::About>,
}

/// The policies, with their settings.
#[derive(Serialize, JsonSchema)]
pub struct Policies {
    /// For copies of blocks.
    replicas: String,
    /// For tasks.
    tasks: String,
    /// For moves; null where nothing is moved.
    moves: Option<String>,
    /// For workloads whose volume is somewhere.
    workload: String,
    /// For volumes that are to be placed.
    volumes: String,
}

pub async fn status(State(edge): Shared) -> Answer {
    let world = edge.world().await?;
    let (about, counts) = (&edge.about, world.counts);
    let position = edge.office.position().borrow().clone();
    let (role, leader) = about.leader(&position);
    let stalled = match position {
        Position::Stalls { problem } => Some(problem.to_string()),
        Position::Leads | Position::Follows { .. } => None,
    };
    let kept = edge.office.kept();
    let status = Status {
        version: env!("CARGO_PKG_VERSION"),
        role,
        leader,
        stalled,
        store: kept.name(),
        durability: kept.durability(),
        cluster: world.fabric.name().to_owned(),
        cluster_version: world.version.to_string(),
        policies: Policies {
            replicas: about.labels.replicas.to_string(),
            tasks: about.labels.tasks.to_string(),
            moves: about.labels.moves.as_ref().map(|moves| moves.to_string()),
            workload: about.promising.admission.label.clone(),
            volumes: about.promising.volumes.label.clone(),
        },
        since: about.since.clone(),
        time: edge.clock.text(world.at),
        interval_s: about.interval_s,
        hot_above: world.hot_above,
        epoch: world.epoch,
        decisions: counts.decisions,
        decided: counts.decided,
        samples: counts.samples,
        waiting: counts.waiting,
        released_early: counts.released_early,
        demo: demo::About::of(edge.demo.as_ref()),
    };
    Ok(Json(status).into_response())
}

/// The process answers.
pub async fn alive() -> Response {
    "ok\n".into_response()
}

/// The desk answers, and decides: it is no follower, and nothing is in its way.
pub async fn ready(State(edge): Shared) -> Answer {
    edge.world().await?;
    if let Some(refused) = edge.office.position().borrow().refusal() {
        return Err(Problem::refused(refused, &edge.clock));
    }
    Ok("ok\n".into_response())
}

pub async fn description(State(edge): Shared) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], edge.description.to_string()).into_response()
}
