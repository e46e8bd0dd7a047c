//! Health and status of the service.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use leeward_access::exposure;
use leeward_fabric::Nanos;
use leeward_ledger::{Epoch, LedgerSettings};
use leeward_prometheus::{State as Polling, TelemetryStatus};
use leeward_records::schema::Time;
use leeward_records::{Clock, Modes};
use leeward_service::LeaderState;
use leeward_settings::{HistoryOptions, MoveOptions};
use leeward_store::Durability;
use schemars::JsonSchema;
use serde::Serialize;

use super::board;
use super::counts::{Agents, Comparisons, Connections};
use super::state::{ApiResult, AppState, SharedState};
use crate::configured::Configured;
use leeward_observability::{direction, unsettled_step};
use leeward_problems::{IntoProblem, Problem};
use leeward_telemetry::KeptTelemetryView;

/// Age of the last snapshot beyond which the coordinator counts as stuck. The coordinator publishes a
/// snapshot every second.
const STUCK: Duration = Duration::from_secs(10);

/// Longest time for which a service is not ready after its clock was set, while it waits for telemetry by the new clock.
const UNSETTLED: Nanos = Nanos(60 * Nanos::SECOND.0);

/// Roles of a service among those that share its store.
pub const ROLES: [&str; 2] = ["leader", "follower"];

/// Status of the service.
#[derive(Serialize, JsonSchema)]
pub struct Status {
    /// Version of the program.
    version: &'static str,
    /// `leader` if this service answers placements, else `follower`.
    #[schemars(extend("enum" = ROLES))]
    role: &'static str,
    /// Address of the service that answers placements; null if there is none, or if its address is unknown.
    leader: Option<String>,
    /// Reason why the store is unavailable; null if it is available to this service or to the leader.
    stalled: Option<String>,
    /// Kind of the store of decisions.
    #[schemars(extend("enum" = ["sqlite", "postgres", "memory"]))]
    store: &'static str,
    /// Failures that stored decisions survive; null if none.
    durability: Option<Durability>,
    /// Name of the cluster.
    cluster: String,
    /// Version of the cluster.
    cluster_version: String,
    /// Policies with their settings.
    policies: Policies,
    /// Modes in force: the decider of requests of each kind.
    modes: Modes,
    /// Start of the service.
    #[schemars(with = "Time")]
    since: String,
    /// Current time.
    #[schemars(with = "Time")]
    time: String,
    /// Seconds by which the machine's clock was set back since the start of the service, negative if it was set forward;
    /// 0 if it was not set, or set and corrected.
    clock_behind_s: f64,
    /// Seconds between two reports of a link.
    interval_s: f64,
    /// Utilization above which a link is hot.
    hot_above: f64,
    /// Estimates of loads: settings in force.
    ledger: LedgerSettings,
    /// Demand of tasks from the traffic that their job had; null if only the stated demand counts.
    history: Option<HistoryOptions>,
    /// Moves of tasks: settings in force. Of a hook's address, only scheme and host.
    moves: MoveOptions,
    /// Epoch of the ledger.
    epoch: Epoch,
    /// Number of decisions in memory.
    decisions: usize,
    /// Number of decisions since the last of these events: start of the service, change of the cluster,
    /// change of the leader, failure of the store.
    decided: u64,
    /// Number of accepted samples of links and devices since the same event.
    samples: u64,
    /// Number of links with known load whose reported speed is below the capacity in the cluster file.
    slow_links: usize,
    /// Number of requests waiting for a decision.
    waiting: usize,
    /// Number of decisions that were released because of the limit, before telemetry showed their load.
    released_early: u64,
    /// Age of the state that reads are served from, in seconds. It grows if the coordinator cannot keep up.
    snapshot_age_s: f64,
    /// Seconds that the last transaction of the store took; null before the first, and on a follower.
    transaction_s: Option<f64>,
    /// Hosts by their telemetry.
    agents: Agents,
    /// Connections of clients.
    connections: Connections,
    /// Comparisons of decisions with the choice of the other policy, by kind.
    comparisons: Vec<Comparisons>,
    /// Conditions that need the operator's attention: files that other users can read, and reports that are too rare.
    warnings: Vec<String>,
    /// State of Prometheus polling; null without polling.
    telemetry: Option<Telemetry>,
    /// Telemetry kept over a restart; null without a file for it.
    kept_telemetry: Option<KeptTelemetryView>,
    /// Summary of the demo; null outside demo mode.
    demo: Option<board::About>,
}

/// State of Prometheus polling.
#[derive(Serialize, JsonSchema)]
pub struct Telemetry {
    /// Address of Prometheus.
    prometheus: String,
    /// State: `starts` before the first answer; `follows` on a follower, because the leader polls.
    #[schemars(extend("enum" = ["answers", "fails", "starts", "follows"]))]
    state: &'static str,
    /// Start of the current state.
    #[schemars(with = "Time")]
    since: String,
    /// Reason of a failure; null without one.
    problem: Option<String>,
    /// Last reading of any port; null before the first.
    #[schemars(with = "Option<Time>")]
    newest: Option<String>,
    /// Median seconds between readings of a port; null before the second.
    spacing_s: Option<f64>,
    /// Number of ports on links, each direction counted.
    ports: usize,
    /// Number of ports that the map ignores.
    ignored: usize,
    /// Number of ports outside the cluster's links.
    no_link: usize,
    /// Number of links with readings.
    links: usize,
    /// Number of links whose readings stopped.
    silent: usize,
    /// The first ten links whose readings stopped.
    silent_links: Vec<String>,
    /// Problems that need the operator's attention.
    remarks: Vec<String>,
}

impl Telemetry {
    fn of(status: &TelemetryStatus, clock: &Clock) -> Telemetry {
        let TelemetryStatus { url, state, since, ports, silent, remarks } = status;
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
            no_link: ports.unmapped,
            links: ports.heard,
            silent: ports.silent.len(),
            silent_links: silent.clone(),
            remarks: remarks.values().cloned().collect(),
        }
    }
}

/// Policies with their settings.
#[derive(Serialize, JsonSchema)]
pub struct Policies {
    /// Policy for copies of blocks.
    replicas: String,
    /// Policy for tasks.
    tasks: String,
    /// Policy for moves; null without moves.
    moves: Option<String>,
    /// Policy for workloads whose volumes have a host.
    workload: String,
    /// Policy for volumes that need a place.
    volumes: String,
    /// Policies that decide in the modes `off` and `shadow`.
    defaults: Defaults,
}

/// Default policies with their settings.
#[derive(Serialize, JsonSchema)]
pub struct Defaults {
    /// Policy for copies of blocks; null without one.
    replicas: Option<String>,
    /// Policy for tasks; null without one.
    tasks: Option<String>,
    /// Policy for workloads whose volumes have a host.
    workload: String,
    /// Policy for volumes that need a place.
    volumes: String,
}

impl Policies {
    fn of(configured: &Configured) -> Policies {
        let (labels, admission) = (&configured.labels, &configured.admission);
        let text = |label: &Option<std::sync::Arc<str>>| label.as_ref().map(|label| label.to_string());
        Policies {
            replicas: labels.replicas.to_string(),
            tasks: labels.tasks.to_string(),
            moves: text(&labels.moves),
            workload: admission.admission.label.clone(),
            volumes: admission.volumes.label.clone(),
            defaults: Defaults {
                replicas: text(&labels.default_replicas),
                tasks: text(&labels.default_tasks),
                workload: admission.default_admission.label.clone(),
                volumes: admission.default_volumes.label.clone(),
            },
        }
    }
}

/// Conditions that need the operator's attention now.
async fn warnings(app: &Arc<AppState>) -> Vec<String> {
    let state = app.clone();
    // The modes of files are read from a disk, which may block.
    let exposed = tokio::task::spawn_blocking(move || exposure::warnings(&state.secrets)).await;
    let rare = app.reporters.warning(app.clock.now(), app.about.interval);
    exposed.unwrap_or_default().into_iter().chain(rare).collect()
}

pub async fn status(State(app): SharedState) -> ApiResult {
    let snapshot = app.snapshot().await?;
    let (about, counts) = (&app.about, snapshot.counts);
    let leader_state = app.handle.leader_state().borrow().clone();
    let (role, leader) = about.leader(&leader_state);
    let stalled = match leader_state {
        LeaderState::Unavailable { problem } => Some(problem.to_string()),
        LeaderState::Leader | LeaderState::Follower { .. } => None,
    };
    let store = app.handle.store_kind();
    let warnings = warnings(&app).await;
    let configured = app.configured.load();
    let status = Status {
        version: env!("CARGO_PKG_VERSION"),
        role,
        leader,
        stalled,
        store: store.name(),
        durability: store.durability(),
        cluster: snapshot.fabric.name().to_owned(),
        cluster_version: snapshot.version.to_string(),
        policies: Policies::of(&configured),
        modes: snapshot.modes,
        since: about.since.clone(),
        time: app.clock.text(snapshot.at),
        clock_behind_s: app.clock_behind_s(),
        interval_s: about.interval.as_secs_f64(),
        hot_above: snapshot.hot_above,
        ledger: configured.ledger.clone(),
        history: configured.history,
        moves: configured.moves.public(),
        epoch: snapshot.epoch,
        decisions: counts.decisions,
        decided: counts.decided,
        samples: counts.samples,
        slow_links: snapshot.links.iter().filter(|link| link.is_slow()).count(),
        waiting: counts.waiting,
        released_early: counts.released_early,
        snapshot_age_s: app.handle.age().as_secs_f64(),
        transaction_s: app.metrics.last_transaction().map(|took| took.as_secs_f64()),
        agents: Agents::of(&snapshot),
        connections: Connections::of(&app.metrics),
        comparisons: Comparisons::all(&app.metrics),
        warnings,
        telemetry: app.telemetry.status().map(|status| Telemetry::of(&status, &app.clock)),
        kept_telemetry: app.keeper.view(&app.handle),
        demo: board::About::of(app.demo.as_ref()),
    };
    Ok(Json(status).into_response())
}

/// Liveness: the process answers.
pub async fn alive() -> Response {
    "ok\n".into_response()
}

/// Ready if this service leads, the store is available, the coordinator is not stuck, and the clock was not just set. The
/// check does not use the coordinator, so frequent probes take no time of the coordinator.
pub async fn ready(State(app): SharedState) -> ApiResult {
    if let Some(reason) = app.handle.leader_state().borrow().unavailable() {
        return Err(reason.problem(&app.clock));
    }
    let age = app.handle.age();
    if age > STUCK {
        return Err(Problem::stuck(age));
    }
    let Some(step) = unsettled_step(&app.clock, &app.handle.last_snapshot()) else {
        return Ok("ok\n".into_response());
    };
    let why = format!(
        "the machine's clock was set {}, and no telemetry by the new clock has arrived since {}",
        direction(&step),
        app.clock.text(step.at)
    );
    // Reports may come through a load balancer, which sends none to a service that is not ready.
    if app.clock.now().since(step.at) > UNSETTLED {
        Ok(format!("ok: {why}\n").into_response())
    } else {
        Err(Problem::clock(why))
    }
}

pub async fn description(State(app): SharedState) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], app.description.to_string()).into_response()
}
