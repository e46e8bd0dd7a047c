//! Whether the service is there, and what it is.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use leeward_fabric::Nanos;
use schemars::JsonSchema;
use serde::Serialize;

use super::problem::Problem;
use super::{Answer, Shared, demo};
use crate::clock::Clock;
use crate::described::Time;
use crate::desk::{Labels, Promising};
use crate::office::Position;
use crate::store::Durability;
use crate::telemetry::{Standing, State as Polling};

/// The network is copied for readers each second. Where the last copy is so old, the desk is stuck.
const STUCK: Duration = Duration::from_secs(10);

/// What a service may be to those it shares its store with.
pub const ROLES: [&str; 2] = ["leader", "follower"];

/// What is told of the service itself.
#[derive(Clone, Debug)]
pub struct About {
    /// The policies, with their settings.
    pub labels: Labels,
    /// Who decides what is promised to workloads.
    pub promising: Promising,
    /// When the service started.
    pub since: String,
    /// The time between reports of a link.
    pub interval: Nanos,
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
    #[schemars(extend("enum" = ROLES))]
    role: &'static str,
    /// The address of the service that answers placements; null if there is none, or it has not said its own.
    leader: Option<String>,
    /// Why nothing can be kept now; null if it can, here or by the leader.
    stalled: Option<String>,
    /// What decisions are kept in.
    #[schemars(extend("enum" = ["sqlite", "postgres", "memory"]))]
    store: &'static str,
    /// What kept decisions outlive; null if nothing.
    durability: Option<Durability>,
    /// Name of the cluster.
    cluster: String,
    /// Its version.
    cluster_version: String,
    policies: Policies,
    /// When the service started.
    #[schemars(with = "Time")]
    since: String,
    /// What time it is.
    #[schemars(with = "Time")]
    time: String,
    /// Seconds that the machine's clock is behind that, since it was set back by more than an interval; 0 if it was not.
    clock_behind_s: f64,
    /// Seconds between reports of a link.
    interval_s: f64,
    /// From which utilization on a link is hot.
    hot_above: f64,
    /// The state of the ledger.
    epoch: u64,
    /// Decisions that are kept.
    decisions: usize,
    /// Decisions made since the service started, the cluster or who leads changed, or something could not be kept,
    /// whichever was last.
    decided: u64,
    /// Samples of links and devices taken in since then.
    samples: u64,
    /// Links that are seen and believed to carry less than the cluster says, since whoever reports them said so.
    slow_links: usize,
    /// Requests that wait to be decided.
    waiting: usize,
    /// Decisions that had to stop counting before telemetry showed them, because there were too many.
    released_early: u64,
    /// What the service hears of Prometheus; null where it asks none.
    telemetry: Option<Telemetry>,
    /// What the service shows as a demo; null if it is none.
    demo: Option<demo::About>,
}

/// What the service hears of Prometheus.
#[derive(Serialize, JsonSchema)]
pub struct Telemetry {
    /// Its address.
    prometheus: String,
    /// How it goes: `starts` before the first answer, `follows` where the service that leads asks.
    #[schemars(extend("enum" = ["answers", "fails", "starts", "follows"]))]
    state: &'static str,
    /// Since when.
    #[schemars(with = "Time")]
    since: String,
    /// Why it fails; null if it does not.
    problem: Option<String>,
    /// The last reading of any port; null before the first.
    #[schemars(with = "Option<Time>")]
    newest: Option<String>,
    /// Seconds between readings of a port, in the median; null before the second.
    spacing_s: Option<f64>,
    /// Ports that are links, each way counted by itself.
    ports: usize,
    /// Ports that the map ignores.
    ignored: usize,
    /// Ports that are no links of the cluster.
    no_link: usize,
    /// Links that are heard.
    links: usize,
    /// Links that were heard once and are not any more.
    silent: usize,
    /// The first ten of these.
    silent_links: Vec<String>,
    /// What somebody should look at.
    remarks: Vec<String>,
}

impl Telemetry {
    fn of(standing: &Standing, clock: &Clock) -> Telemetry {
        let Standing { url, state, since, ports, silent, remarks } = standing;
        let problem = match state {
            Polling::Fails(why) => Some(why.clone()),
            Polling::Starts | Polling::Answers | Polling::Follows => None,
        };
        Telemetry {
            prometheus: url.clone(),
            state: state.name(),
            since: clock.text(*since),
            problem,
            newest: ports.newest.map(|newest| clock.text(newest)),
            spacing_s: ports.spacing.map(|spacing| spacing.as_secs_f64()),
            ports: ports.links,
            ignored: ports.ignored,
            no_link: ports.strange,
            links: ports.heard,
            silent: ports.silent.len(),
            silent_links: silent.clone(),
            remarks: remarks.values().cloned().collect(),
        }
    }
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
        clock_behind_s: edge.clock_behind().as_secs_f64(),
        interval_s: about.interval.as_secs_f64(),
        hot_above: world.hot_above,
        epoch: world.epoch,
        decisions: counts.decisions,
        decided: counts.decided,
        samples: counts.samples,
        slow_links: world.links.iter().filter(|link| link.is_slow()).count(),
        waiting: counts.waiting,
        released_early: counts.released_early,
        telemetry: edge.telemetry.standing().map(|standing| Telemetry::of(&standing, &edge.clock)),
        demo: demo::About::of(edge.demo.as_ref()),
    };
    Ok(Json(status).into_response())
}

/// The process answers.
pub async fn alive() -> Response {
    "ok\n".into_response()
}

/// The desk goes on, and decides: it is no follower, and nothing is in its way. It is not asked itself: whoever looks often
/// takes none of its time.
pub async fn ready(State(edge): Shared) -> Answer {
    if let Some(refused) = edge.office.position().borrow().refusal() {
        return Err(Problem::refused(refused, &edge.clock));
    }
    let age = edge.office.age();
    if age > STUCK {
        return Err(Problem::stuck(age));
    }
    Ok("ok\n".into_response())
}

pub async fn description(State(edge): Shared) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], edge.description.to_string()).into_response()
}
