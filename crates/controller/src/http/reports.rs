//! Telemetry that is reported.

use std::collections::{BTreeMap, BTreeSet};

use axum::extract::State;
use axum::response::IntoResponse;
use axum::{Extension, Json};
use leeward_engine::Rates;
use leeward_fabric::input::{excerpt, shown};
use leeward_fabric::{Bytes, Fabric, Load, Nanos, ResourceId, ResourceKind, Shape};
use leeward_ledger::{load_of, named_link};
use leeward_placement::tasks::TaskId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::body::Body;
use super::problem::Problem;
use super::{Answer, Peer, Shared};
use crate::access::{Client, Guest, Hosts};
use crate::clock::Clock;
use crate::described::{Id, Time};
use crate::desk::{Called, HostReport, Message, Reading, Reply, Report, Requests, Skipped, UNKNOWN};

/// What a link carries at most, in bits per second.
const MOST_BPS: f64 = 1e18;

/// The body of `POST /v1/reports`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportBody {
    /// Where the window begins.
    #[schemars(with = "Time")]
    from: String,
    /// Where it ends.
    #[schemars(with = "Time")]
    until: String,
    /// What links carried in the mean.
    #[serde(default)]
    links: Vec<LoadBody>,
    /// How busy devices were in the mean.
    #[serde(default)]
    devices: Vec<DeviceBody>,
    /// What hosts say of themselves.
    #[serde(default)]
    hosts: Vec<HostBody>,
    /// What tasks carry across the links of their racks.
    #[serde(default)]
    tasks: Vec<TaskBody>,
    /// What requests of workloads took.
    #[serde(default)]
    workloads: Vec<LatencyBody>,
    /// Where the host that reports listens for measurements.
    probe: Option<ProbeAt>,
}

/// Where a host listens for measurements: at the address that its report comes from.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbeAt {
    /// Its name.
    host: String,
    /// The port.
    #[schemars(range(min = 1))]
    port: u16,
}

/// What requests of a workload took.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LatencyBody {
    /// Its name.
    workload: String,
    /// At the percentile of its SLO, over the window.
    #[schemars(range(min = 0))]
    latency_s: f64,
}

/// What a task carries across the links of its rack.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskBody {
    /// The decision that placed it.
    #[schemars(with = "Id")]
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
    #[schemars(range(min = 0, max = MOST_BPS))]
    load_bps: f64,
    /// What its interfaces carry at most; a link that is slower than the cluster says is believed to be.
    #[schemars(range(min = 0, max = MOST_BPS))]
    speed_bps: Option<f64>,
    /// Bytes that wait to be sent at the end of the window.
    queue_bytes: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceBody {
    /// Its name, `r3h7:disk0`; the only disk of a host that has one device may have any name, always the same.
    device: String,
    /// The share of the window in which it was busy.
    #[schemars(range(min = 0, max = 1))]
    busy: f64,
    /// Bits read in a second.
    #[schemars(range(min = 0, max = MOST_BPS))]
    read_bps: Option<f64>,
    /// Bits written in a second.
    #[schemars(range(min = 0, max = MOST_BPS))]
    write_bps: Option<f64>,
    /// Requests that were with it in the mean.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1e18))]
    queue: Option<f64>,
    /// Requests that are with it at the end of the window.
    in_flight: Option<u64>,
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
        let mut readings = Vec::new();
        let mut loads = Vec::with_capacity(self.links.len());
        for (at, LoadBody { link, load_bps, speed_bps, queue_bytes }) in self.links.iter().enumerate() {
            let wrong = |field: &str, detail| Problem::field(format!("links[{at}].{field}"), detail);
            if is_of_pipe(fabric, link) {
                continue;
            }
            let link = named_link(fabric, link).map_err(|detail| wrong("link", detail))?;
            loads.push((link, load_of(*load_bps).map_err(|detail| wrong("load_bps", detail))?));
            let speed = speed_bps.map(load_of).transpose().map_err(|detail| wrong("speed_bps", detail))?;
            if speed.is_some() || queue_bytes.is_some() {
                let queue = queue_bytes.map(|bytes| bytes as f64);
                readings.push((link, Reading { speed, queue, requests: None }));
            }
        }
        let (mut devices, mut unknown_devices) = (Vec::with_capacity(self.devices.len()), Vec::new());
        let (mut once, counted, mut disks) = (BTreeSet::new(), self.counted(), Vec::new());
        for (at, body) in self.devices.iter().enumerate() {
            let (load, reading) = body.read(at)?;
            let mut found = named(fabric, &body.device);
            if let Some((only, called)) =
                only_device(fabric, &body.device, &counted).filter(|_| found.is_none())
            {
                found = (called != Called::Several).then_some(only);
                disks.push((only, called));
            }
            match found {
                Some(device) if !once.insert(device) => {
                    let detail = "it is there twice; a report says one thing of each";
                    return Err(Problem::field(format!("devices[{at}].device"), detail));
                }
                Some(device) => {
                    devices.push((device, load));
                    readings.push((device, reading));
                }
                None if unknown_devices.len() < UNKNOWN => unknown_devices.push(excerpt(&body.device)),
                None => {}
            }
        }
        if let Some(ProbeAt { host, port }) = &self.probe {
            if fabric.host(host).is_none() {
                let unknown = format!("`{}`: the cluster has no such host", excerpt(host));
                return Err(Problem::field("probe.host", unknown));
            }
            if *port == 0 {
                return Err(Problem::field("probe.port", "0: expected a port from 1 to 65535"));
            }
        }
        let host = |(at, &HostBody { ref host, up, draining, stored }): (usize, &HostBody)| {
            let unknown = || format!("`{}`: the cluster has no such host", excerpt(host));
            let host = fabric.host(host);
            let host = host.ok_or_else(|| Problem::field(format!("hosts[{at}].host"), unknown()))?;
            Ok(HostReport { host, up, draining, stored })
        };
        let task = |(at, body): (usize, &TaskBody)| {
            let wrong =
                || Problem::field(format!("tasks[{at}].decision"), "expected what a decision is called");
            let rates = Rates { egress_bps: body.egress_bps, ingress_bps: body.ingress_bps };
            Ok((TaskId { app: Id::read(&body.decision).ok_or_else(wrong)?, index: body.task }, rates))
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
            loads,
            devices,
            readings,
            disks,
            unknown_devices,
            hosts: self.hosts.iter().enumerate().map(host).collect::<Result<_, Problem>>()?,
        }))
    }

    /// Refuses what is of others than the hosts that a token is bound to. Tasks and workloads are no one host's.
    fn check_own(&self, token: &Client, hosts: &Hosts) -> Result<(), Problem> {
        let check = |field: String, name: &str, is_own: bool| {
            if is_own { Ok(()) } else { Err(Problem::foreign(field, name, token, hosts)) }
        };
        for (at, LoadBody { link, .. }) in self.links.iter().enumerate() {
            check(format!("links[{at}].link"), link, host_of_link(link).is_some_and(|host| hosts.has(host)))?;
        }
        for (at, DeviceBody { device, .. }) in self.devices.iter().enumerate() {
            let host = device.split_once(':').map(|(host, _)| host);
            check(format!("devices[{at}].device"), device, host.is_some_and(|host| hosts.has(host)))?;
        }
        for (at, HostBody { host, .. }) in self.hosts.iter().enumerate() {
            check(format!("hosts[{at}].host"), host, hosts.has(host))?;
        }
        for (at, TaskBody { decision, .. }) in self.tasks.iter().enumerate() {
            check(format!("tasks[{at}].decision"), decision, false)?;
        }
        for (at, LatencyBody { workload, .. }) in self.workloads.iter().enumerate() {
            check(format!("workloads[{at}].workload"), workload, false)?;
        }
        let probe = self
            .probe
            .as_ref()
            .map(|ProbeAt { host, .. }| check("probe.host".to_owned(), host, hosts.has(host)));
        probe.unwrap_or(Ok(()))
    }

    /// How many disks each host reports.
    fn counted(&self) -> BTreeMap<&str, usize> {
        let mut disks = BTreeMap::new();
        for (host, _) in self.devices.iter().filter_map(|body| body.device.split_once(':')) {
            *disks.entry(host).or_default() += 1;
        }
        disks
    }
}

/// The name of the host that this would be a link of, if it is the name of such a link.
fn host_of_link(name: &str) -> Option<&str> {
    name.strip_suffix(":egress").or_else(|| name.strip_suffix(":ingress"))
}

/// Whether this is the link of a host of a mesh whose hosts have none: agents report them all the same.
fn is_of_pipe(fabric: &Fabric, name: &str) -> bool {
    fabric.shape() == Shape::Pipe && host_of_link(name).is_some_and(|host| fabric.host(host).is_some())
}

/// The device of that name.
fn named(fabric: &Fabric, name: &str) -> Option<ResourceId> {
    fabric.resource(name).filter(|&device| fabric.kind(device) == ResourceKind::Device)
}

/// The only device of the host that a disk of this name is in, and what its disks are called; how many of them each host
/// reports is counted. `None` if the host has more devices, or none.
fn only_device(fabric: &Fabric, name: &str, counted: &BTreeMap<&str, usize>) -> Option<(ResourceId, Called)> {
    let (host, _) = name.split_once(':')?;
    let id = fabric.host(host).filter(|&id| fabric.devices(id).len() == 1)?;
    let called = if counted.get(host) == Some(&1) { Called::Only(excerpt(name)) } else { Called::Several };
    Some((fabric.device(id, 0)?, called))
}

impl DeviceBody {
    /// Its load and what it says beside.
    fn read(&self, at: usize) -> Result<(Load, Reading), Problem> {
        let wrong = |field: &str, detail| Problem::field(format!("devices[{at}].{field}"), detail);
        let &DeviceBody { busy, read_bps, write_bps, queue, in_flight, .. } = self;
        if !(0.0..=1.0).contains(&busy) {
            return Err(wrong("busy", format!("{}: expected a share from 0 to 1", shown(busy))));
        }
        for (field, rate) in [("read_bps", read_bps), ("write_bps", write_bps)] {
            rate.map(load_of).transpose().map_err(|detail| wrong(field, detail))?;
        }
        if let Some(queue) = queue.filter(|queue| !(0.0..1e18).contains(queue)) {
            return Err(wrong("queue", format!("{}: expected a number of requests", shown(queue))));
        }
        // Busy all the time is a second of service in a second.
        let load = Load((busy * Nanos::SECOND.0 as f64).round() as i64);
        let requests = Some(Requests { read_bps, write_bps, in_flight });
        Ok((load, Reading { speed: None, queue, requests }))
    }
}

/// What became of a report.
#[derive(Serialize, JsonSchema)]
pub struct Reported {
    /// How many links were taken in.
    links: u64,
    /// How many devices were.
    devices: u64,
    /// Parts that say nothing new.
    skipped: SkippedBody,
    /// Devices that the cluster does not have, by the names that the report gave them; the first of them.
    unknown_devices: Vec<String>,
    /// The state of the ledger with it.
    epoch: u64,
}

/// Parts of a right report that say nothing new.
#[derive(Serialize, JsonSchema)]
pub struct SkippedBody {
    /// Of a window that ends no later than what is known.
    stale: u64,
    /// Links and devices of hosts that are known to be down.
    down: u64,
    /// Tasks that do not run, and workloads that are promised nothing.
    unknown: u64,
}

pub async fn report(
    State(edge): Shared,
    peer: Option<Extension<Peer>>,
    Extension(Guest { client, hosts }): Extension<Guest>,
    Body(body): Body<ReportBody>,
) -> Answer {
    if let Some(hosts) = &hosts {
        body.check_own(&client, hosts).inspect_err(|problem| {
            tracing::warn!(name = %client, why = problem.detail(), "refused: a report of others");
        })?;
    }
    let offer = body.probe.as_ref().zip(peer);
    match edge.reply(|fabric| body.message(fabric, &edge.clock)).await? {
        Reply::Reported {
            links,
            devices,
            skipped: Skipped { stale, down, unknown },
            unknown_devices,
            epoch,
        } => {
            edge.metrics.report();
            // The port alone is what a report can say: nobody is asked to measure a stranger.
            if let Some((ProbeAt { host, port }, Extension(Peer(address)))) = offer {
                edge.probes.offers.heard(host, (address, *port).into(), edge.clock.now());
            }
            let skipped = SkippedBody { stale, down, unknown };
            Ok(Json(Reported { links, devices, skipped, unknown_devices, epoch }).into_response())
        }
        _ => Err(Problem::broken()),
    }
}
