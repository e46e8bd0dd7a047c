//! Telemetry that is reported.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use leeward_engine::Rates;
use leeward_fabric::input::excerpt;
use leeward_fabric::{Bytes, Fabric, Nanos};
use leeward_ledger::{load_of, named_link};
use leeward_placement::tasks::TaskId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::Body;
use super::problem::Problem;
use super::{Answer, Shared};
use crate::clock::Clock;
use crate::desk::{HostReport, Message, Reply, Report, Skipped};

/// The body of `POST /v1/reports`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportBody {
    /// Where the window begins.
    from: String,
    /// Where it ends.
    until: String,
    /// What links carried in the mean.
    #[serde(default)]
    links: Vec<LoadBody>,
    /// What hosts say of themselves.
    #[serde(default)]
    hosts: Vec<HostBody>,
    /// What tasks carry across the links of their racks.
    #[serde(default)]
    tasks: Vec<TaskBody>,
    /// What requests of workloads took.
    #[serde(default)]
    workloads: Vec<LatencyBody>,
}

/// What requests of a workload took.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LatencyBody {
    /// Its name.
    workload: String,
    /// At the percentile of its SLO, over the window.
    latency_s: f64,
}

/// What a task carries across the links of its rack.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskBody {
    /// The decision that placed it.
    decision: String,
    /// Its position in the request, from 0.
    #[serde(default)]
    task: u32,
    /// Out of the rack.
    egress_bps: u64,
    /// From outside the rack.
    ingress_bps: u64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadBody {
    /// Its name, `r3:downlink`.
    link: String,
    /// The mean over the window.
    load_bps: f64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostBody {
    /// Its name.
    host: String,
    /// Whether it is known to be up, or down.
    up: Option<bool>,
    /// Whether it is being emptied.
    draining: Option<bool>,
    /// What it stores.
    stored: Option<Bytes>,
}

impl ReportBody {
    /// What it says to the desk.
    pub fn message(&self, fabric: &Fabric, clock: &Clock) -> Result<Message, Problem> {
        let time = |field, text: &str| clock.read(text).map_err(|detail| Problem::field(field, detail));
        let window: (Nanos, Nanos) = (time("from", &self.from)?, time("until", &self.until)?);
        let load = |(at, LoadBody { link, load_bps }): (usize, &LoadBody)| {
            let link = named_link(fabric, link);
            let link = link.map_err(|detail| Problem::field(format!("links[{at}].link"), detail))?;
            let load = load_of(*load_bps);
            let load = load.map_err(|detail| Problem::field(format!("links[{at}].load_bps"), detail))?;
            Ok((link, load))
        };
        let host = |(at, &HostBody { ref host, up, draining, stored }): (usize, &HostBody)| {
            let unknown = || format!("`{}`: the cluster has no such host", excerpt(host));
            let host = fabric.host(host);
            let host = host.ok_or_else(|| Problem::field(format!("hosts[{at}].host"), unknown()))?;
            Ok(HostReport { host, up, draining, stored })
        };
        let task = |(at, body): (usize, &TaskBody)| {
            let app = body.decision.parse();
            let wrong =
                || Problem::field(format!("tasks[{at}].decision"), "expected what a decision is called");
            let rates = Rates { egress_bps: body.egress_bps, ingress_bps: body.ingress_bps };
            Ok((TaskId { app: app.map_err(|_| wrong())?, index: body.task }, rates))
        };
        let seen = |(at, body): (usize, &LatencyBody)| {
            let wrong = || Problem::field(format!("workloads[{at}].latency_s"), "expected seconds from 0");
            let seconds = body.latency_s;
            if seconds.is_finite() && seconds >= 0.0 {
                Ok((body.workload.clone(), seconds))
            } else {
                Err(wrong())
            }
        };
        Ok(Message::Report(Report {
            workloads: self.workloads.iter().enumerate().map(seen).collect::<Result<_, Problem>>()?,
            tasks: self.tasks.iter().enumerate().map(task).collect::<Result<_, Problem>>()?,
            window,
            loads: self.links.iter().enumerate().map(load).collect::<Result<_, Problem>>()?,
            hosts: self.hosts.iter().enumerate().map(host).collect::<Result<_, Problem>>()?,
        }))
    }
}

/// What became of a report.
#[derive(Serialize, JsonSchema)]
pub struct Reported {
    /// How many links were taken in.
    links: u64,
    /// Parts that say nothing new.
    skipped: SkippedBody,
    /// The state of the ledger with it.
    epoch: u64,
}

/// Parts of a right report that say nothing new.
#[derive(Serialize, JsonSchema)]
pub struct SkippedBody {
    /// Of a window that ends no later than what is known.
    stale: u64,
    /// Links of hosts that are known to be down.
    down: u64,
}

pub async fn report(State(edge): Shared, Body(body): Body<ReportBody>) -> Answer {
    match edge.reply(|fabric| body.message(fabric, &edge.clock)).await? {
        Reply::Reported { links, skipped: Skipped { stale, down }, epoch } => {
            edge.metrics.report();
            Ok(Json(Reported { links, skipped: SkippedBody { stale, down }, epoch }).into_response())
        }
        _ => Err(Problem::broken()),
    }
}
