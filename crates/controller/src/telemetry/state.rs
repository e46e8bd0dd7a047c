//! How polling stands: for `/v1/status`, the metrics and the log.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use leeward_fabric::{Fabric, Nanos};
use tokio::sync::watch;

use super::meter::Ports;
use super::plan::{Asked, Plan};

/// Names of links that are told.
const NAMES: usize = 10;

/// What is polled, and how that stands: shared by who polls, who reads settings again, and who is asked.
pub struct Telemetry {
    plan: watch::Sender<Option<Arc<Plan>>>,
    standing: ArcSwapOption<Standing>,
}

/// How polling stands.
#[derive(Clone, PartialEq, Debug)]
pub struct Standing {
    /// The address that is asked.
    pub url: String,
    /// Whether it is asked here.
    pub state: State,
    /// Since when that is so.
    pub since: Nanos,
    /// How ports stood after the last round that brought anything.
    pub ports: Ports,
    /// Names of the first links that are silent.
    pub silent: Vec<String>,
    /// What somebody should look at, by what it is about.
    pub remarks: BTreeMap<&'static str, String>,
}

/// Whether Prometheus is asked, and answers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum State {
    /// Nothing was answered yet.
    Starts,
    /// It answers.
    Answers,
    /// It does not, or not to everything, and why.
    Fails(String),
    /// The service that leads asks.
    Follows,
}

impl State {
    /// As a word.
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
    /// What is polled by this plan, if there is one.
    pub fn new(plan: Option<Plan>) -> Telemetry {
        Telemetry { plan: watch::Sender::new(plan.map(Arc::new)), standing: ArcSwapOption::empty() }
    }

    /// Another plan counts from now on.
    pub fn set(&self, plan: Option<Plan>) {
        self.plan.send_replace(plan.map(Arc::new));
    }

    /// The plan, and whenever it is another one.
    pub(super) fn plans(&self) -> watch::Receiver<Option<Arc<Plan>>> {
        self.plan.subscribe()
    }

    /// How it stands; `None` where nothing is polled.
    pub fn standing(&self) -> Option<Arc<Standing>> {
        self.standing.load_full()
    }

    /// It stands like this from now on. What is news is written down.
    pub(super) fn stand(&self, now: Option<Standing>) {
        let before = self.standing.swap(now.clone().map(Arc::new));
        let Some(now) = now else { return };
        let before = before.filter(|before| before.url == now.url);
        let was = before.as_ref().map_or(&State::Starts, |before| &before.state);
        match (was, &now.state) {
            (State::Fails(_), State::Fails(_)) => {}
            (_, State::Fails(why)) => tracing::warn!(
                prometheus = now.url,
                %why,
                "telemetry is not to be had from Prometheus; links that nobody else reports become unknown"
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
        let said = before.as_ref().map_or(&nothing, |before| &before.remarks);
        for (about, remark) in now.remarks.iter().filter(|(about, _)| !said.contains_key(*about)) {
            tracing::warn!(about, "telemetry: {remark}");
        }
        for about in said.keys().filter(|about| !now.remarks.contains_key(*about)) {
            tracing::info!(about, "what was said of telemetry is over");
        }
    }
}

impl Standing {
    /// Nothing was asked yet.
    pub(super) fn new(plan: &Plan, state: State, since: Nanos) -> Standing {
        let (ports, silent, remarks) = (Ports::default(), Vec::new(), BTreeMap::new());
        Standing { url: plan.url.clone(), state, since, ports, silent, remarks }
    }

    /// Takes up how ports stand, and what is to be said of it.
    pub(super) fn look(&mut self, plan: &Plan, fabric: &Fabric, ports: Ports) {
        let mut remarks = BTreeMap::new();
        let metrics = &plan.map.metrics;
        let empty = metrics.queries.iter().filter(|(way, _)| ports.silent_ways.contains(way));
        let mut empty: Vec<(&str, &String)> =
            empty.map(|(way, query)| (Asked::Counter(*way).field(), query)).collect();
        empty.extend(
            metrics.speed.iter().filter(|_| !ports.speeds).map(|query| (Asked::Speed.field(), query)),
        );
        if !empty.is_empty() {
            let said: Vec<String> = empty.iter().map(|(field, query)| format!("{field} `{query}`")).collect();
            remarks.insert("selectors", format!("Prometheus has no series of {}", said.join(", ")));
        }
        if !ports.idle_rules.is_empty() {
            let said: Vec<String> = ports.idle_rules.iter().map(|rule| format!("links[{rule}]")).collect();
            remarks.insert("rules", format!("no port that Prometheus has matches {}", some(&said)));
        }
        if let Some(stranger) = &ports.stranger {
            let count = ports.strange;
            remarks.insert("ports", format!("{count} are no links; the first: {stranger}"));
        }
        self.silent = ports.silent.iter().take(NAMES).map(|&link| fabric.resource_name(link)).collect();
        if !ports.silent.is_empty() {
            let (count, names) = (ports.silent.len(), self.silent.join(", "));
            let more = if count > self.silent.len() { ", ..." } else { "" };
            remarks.insert("silent", format!("{count} links are not heard any more: {names}{more}"));
        }
        if let Some(spacing) = ports.spacing.filter(|spacing| spacing.0 > plan.interval.0 / 4 * 5) {
            let (interval, seconds) = (plan.interval, spacing.0.div_ceil(Nanos::SECOND.0));
            let text = format!(
                "ports are read every {seconds} s or so, and reports are expected every {interval}: links are unknown \
                 in between; set `interval` to {seconds}s"
            );
            remarks.insert("interval", text);
        }
        (self.ports, self.remarks) = (ports, remarks);
    }
}

fn some(names: &[String]) -> String {
    let more = if names.len() > NAMES { ", ..." } else { "" };
    format!("{}{more}", names[..names.len().min(NAMES)].join(", "))
}
