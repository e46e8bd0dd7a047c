//! State of polling, for `/v1/status`, the metrics and the log.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use leeward_fabric::{Fabric, Nanos};
use tokio::sync::watch;

use super::meter::Ports;
use super::plan::{Plan, SeriesKind};

/// Number of link names listed.
const MAX_NAMES: usize = 10;

/// The polling plan and its state, shared by the poller, the reload of settings, and the API.
pub struct Telemetry {
    plan: watch::Sender<Option<Arc<Plan>>>,
    status: ArcSwapOption<TelemetryStatus>,
}

/// State of polling.
#[derive(Clone, PartialEq, Debug)]
pub struct TelemetryStatus {
    /// Address of Prometheus.
    pub url: String,
    /// Result of the last round.
    pub state: State,
    /// Start of the current state.
    pub since: Nanos,
    /// Statistics of ports after the last successful round.
    pub ports: Ports,
    /// Names of the first ten silent links.
    pub silent: Vec<String>,
    /// Problems for the operator, by topic.
    pub remarks: BTreeMap<&'static str, String>,
}

/// Result of polling.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum State {
    /// No answer yet.
    Starts,
    /// Prometheus answers.
    Answers,
    /// All or some queries fail, for this reason.
    Fails(String),
    /// Another service is the leader and polls.
    Follows,
}

impl State {
    /// Name of the state.
    pub fn name(&self) -> &'static str {
        match self {
            State::Starts => "starts",
            State::Answers => "answers",
            State::Fails(_) => "fails",
            State::Follows => "follows",
        }
    }
}

impl Telemetry {
    /// Creates the state for a plan, if there is one.
    pub fn new(plan: Option<Plan>) -> Telemetry {
        Telemetry { plan: watch::Sender::new(plan.map(Arc::new)), status: ArcSwapOption::empty() }
    }

    /// Replaces the plan.
    pub fn set(&self, plan: Option<Plan>) {
        self.plan.send_replace(plan.map(Arc::new));
    }

    /// The plan, with notification of changes.
    pub(super) fn plans(&self) -> watch::Receiver<Option<Arc<Plan>>> {
        self.plan.subscribe()
    }

    /// Current state; `None` without a plan.
    pub fn status(&self) -> Option<Arc<TelemetryStatus>> {
        self.status.load_full()
    }

    /// Replaces the state, and logs changes.
    pub(super) fn set_status(&self, now: Option<TelemetryStatus>) {
        let before = self.status.swap(now.clone().map(Arc::new));
        let Some(now) = now else { return };
        let before = before.filter(|before| before.url == now.url);
        let previous = before.as_ref().map_or(&State::Starts, |before| &before.state);
        match (previous, &now.state) {
            (State::Fails(_), State::Fails(_)) => {}
            (_, State::Fails(why)) => tracing::warn!(
                prometheus = now.url,
                %why,
                "telemetry unavailable from Prometheus; links without another reporter become unknown"
            ),
            (State::Fails(_), State::Answers) => {
                tracing::info!(prometheus = now.url, "telemetry comes from Prometheus again");
            }
            (State::Answers, _) | (_, State::Starts | State::Follows) => {}
            (_, State::Answers) => {
                let (links, ports) = (now.ports.heard, now.ports.links);
                tracing::info!(prometheus = now.url, ports, links, "telemetry comes from Prometheus");
            }
        }
        let nothing = BTreeMap::new();
        let old = before.as_ref().map_or(&nothing, |before| &before.remarks);
        for (about, remark) in now.remarks.iter().filter(|(about, _)| !old.contains_key(*about)) {
            tracing::warn!(about, "telemetry: {remark}");
        }
        for about in old.keys().filter(|about| !now.remarks.contains_key(*about)) {
            tracing::info!(about, "telemetry warning cleared");
        }
    }
}

impl TelemetryStatus {
    /// State before the first query.
    pub(super) fn new(plan: &Plan, state: State, since: Nanos) -> TelemetryStatus {
        let (ports, silent, remarks) = (Ports::default(), Vec::new(), BTreeMap::new());
        TelemetryStatus { url: plan.url.clone(), state, since, ports, silent, remarks }
    }

    /// Updates the statistics of ports, and the problems that they show.
    pub(super) fn update(&mut self, plan: &Plan, fabric: &Fabric, ports: Ports) {
        let mut remarks = BTreeMap::new();
        let metrics = &plan.map.metrics;
        let empty =
            metrics.queries.iter().filter(|(direction, _)| ports.silent_directions.contains(direction));
        let mut empty: Vec<(&str, &String)> =
            empty.map(|(direction, query)| (SeriesKind::Counter(*direction).field(), query)).collect();
        empty.extend(
            metrics.speed.iter().filter(|_| !ports.speeds).map(|query| (SeriesKind::Speed.field(), query)),
        );
        if !empty.is_empty() {
            let selectors: Vec<String> =
                empty.iter().map(|(field, query)| format!("{field} `{query}`")).collect();
            remarks.insert("selectors", format!("Prometheus has no series of {}", selectors.join(", ")));
        }
        if !ports.idle_rules.is_empty() {
            let rules: Vec<String> = ports.idle_rules.iter().map(|rule| format!("links[{rule}]")).collect();
            remarks.insert("rules", format!("no port in Prometheus matches {}", first_names(&rules)));
        }
        if let Some(first) = &ports.first_unmapped {
            let count = ports.unmapped;
            remarks.insert("ports", format!("{count} ports have no link; the first: {first}"));
        }
        self.silent = ports.silent.iter().take(MAX_NAMES).map(|&link| fabric.resource_name(link)).collect();
        if !ports.silent.is_empty() {
            let (count, names) = (ports.silent.len(), self.silent.join(", "));
            let more = if count > self.silent.len() { ", ..." } else { "" };
            remarks.insert("silent", format!("{count} links have no new readings: {names}{more}"));
        }
        if let Some(spacing) = ports.spacing.filter(|spacing| spacing.0 > plan.interval.0 / 4 * 5) {
            let (interval, seconds) = (plan.interval, spacing.0.div_ceil(Nanos::SECOND.0));
            let text = format!(
                "readings are about {seconds} s apart, but reports are expected every {interval}: links are unknown in \
                 between; set `interval` to {seconds}s"
            );
            remarks.insert("interval", text);
        }
        (self.ports, self.remarks) = (ports, remarks);
    }
}

fn first_names(names: &[String]) -> String {
    let more = if names.len() > MAX_NAMES { ", ..." } else { "" };
    format!("{}{more}", names[..names.len().min(MAX_NAMES)].join(", "))
}
