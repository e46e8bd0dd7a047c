//! Telemetry that is reported.

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use leeward_fabric::input::excerpt;
use leeward_fabric::{Bytes, Fabric, Nanos};
use leeward_ledger::{load_of, named_link};
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
        Ok(Message::Report(Report {
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
            Ok(Json(Reported { links, skipped: SkippedBody { stale, down }, epoch }).into_response())
        }
        _ => Err(Problem::broken()),
    }
}
