//! Reports of telemetry.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use axum::extract::State;
use axum::response::IntoResponse;
use axum::{Extension, Json};
use leeward_engine::Rates;
use leeward_fabric::input::{excerpt, format_number};
use leeward_fabric::{Bytes, Fabric, Load, Nanos, ResourceId, ResourceKind, Shape};
use leeward_ledger::{Sample, find_link, parse_load};
use leeward_placement::tasks::TaskId;
use leeward_records::Clock;
use leeward_records::schema::{Id, Time};
use leeward_service::{HostReport, PodRates, Reading, Report, ReportedDiskName, Requests, UNKNOWN};
use schemars::JsonSchema;
use serde::Deserialize;

use super::body::Body;
use super::pods::{read_uid, uid};
use super::state::{ApiResult, SharedState};
use leeward_access::{Client, Hosts, Peer, Principal};
use leeward_problems::Problem;

/// Largest rate of a link, in bits per second.
const MOST_BPS: f64 = 1e18;

/// The body of `POST /v1/reports`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReportBody {
    /// Start of the window.
    #[schemars(with = "Time")]
    from: String,
    /// End of the window.
    #[schemars(with = "Time")]
    until: String,
    /// Average loads of links.
    #[serde(default)]
    links: Vec<LoadBody>,
    /// Average loads of devices.
    #[serde(default)]
    devices: Vec<DeviceBody>,
    /// States of hosts.
    #[serde(default)]
    hosts: Vec<HostBody>,
    /// Traffic of tasks across the links of their racks.
    #[serde(default)]
    tasks: Vec<TaskBody>,
    /// Traffic of pods.
    #[serde(default)]
    pods: Vec<PodBody>,
    /// Latencies of workloads.
    #[serde(default)]
    workloads: Vec<LatencyBody>,
    /// Measurement port of the reporting host.
    probe: Option<ProbeAt>,
}

/// Measurement port of a host, at the source address of its report.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProbeAt {
    /// Name of the host.
    host: String,
    /// Port of the agent.
    #[schemars(range(min = 1))]
    port: u16,
}

/// Latency of a workload's requests.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LatencyBody {
    /// Name of the workload.
    workload: String,
    /// Latency at the percentile of its SLO over the window, in seconds.
    #[schemars(range(min = 0))]
    latency_s: f64,
}

/// Traffic of a task across the links of its rack.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TaskBody {
    /// Decision that placed the task.
    #[schemars(with = "Id")]
    decision: String,
    /// Position of the task in the request, from 0.
    #[serde(default)]
    task: u32,
    /// Traffic out of the rack, in bit/s.
    egress_bps: u64,
    /// Traffic into the rack, in bit/s.
    ingress_bps: u64,
}

/// Traffic of a pod. It counts towards the job of the pod (`POST /v1/pods`), once in five minutes.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PodBody {
    /// UID of the pod.
    #[schemars(schema_with = "uid")]
    pod: String,
    /// Host of the pod.
    host: String,
    /// Average traffic out of the pod, in bit/s.
    #[schemars(range(min = 0, max = MOST_BPS))]
    egress_bps: u64,
    /// Average traffic into the pod, in bit/s.
    #[schemars(range(min = 0, max = MOST_BPS))]
    ingress_bps: u64,
}

/// Load of a link.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LoadBody {
    /// Name of the link, such as `r3:downlink`.
    link: String,
    /// Average load over the window, in bit/s.
    #[schemars(range(min = 0, max = MOST_BPS))]
    load_bps: f64,
    /// Speed of the link's interfaces, in bit/s. A speed below the capacity in the cluster file replaces that capacity.
    #[schemars(range(min = 0, max = MOST_BPS))]
    speed_bps: Option<f64>,
    /// Bytes waiting to be sent at the end of the window.
    queue_bytes: Option<u64>,
}

/// Load of a device.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeviceBody {
    /// Name of the device, such as `r3h7:disk0`. If a host has a single device and a single disk, the disk may have any
    /// name, as long as the name never changes.
    device: String,
    /// Share of the window in which the device was busy.
    #[schemars(range(min = 0, max = 1))]
    busy: f64,
    /// Read rate, in bit/s.
    #[schemars(range(min = 0, max = MOST_BPS))]
    read_bps: Option<f64>,
    /// Write rate, in bit/s.
    #[schemars(range(min = 0, max = MOST_BPS))]
    write_bps: Option<f64>,
    /// Average number of requests at the device.
    #[schemars(range(min = 0), extend("exclusiveMaximum" = 1e18))]
    queue: Option<f64>,
    /// Number of requests at the device at the end of the window.
    in_flight: Option<u64>,
}

/// State of a host. Omitted fields do not change.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostBody {
    /// Name of the host.
    host: String,
    /// True if the host is up, false if it is down; omitted if unknown.
    up: Option<bool>,
    /// True if the host is being drained.
    draining: Option<bool>,
    /// Bytes stored on the host.
    stored: Option<Bytes>,
    /// Storage of the host in bytes; only with `stored`. Storage below the capacity of the host's devices in the cluster file
    /// replaces that capacity.
    storage: Option<Bytes>,
}

impl ReportBody {
    /// Returns the operation, with names resolved.
    ///
    /// # Errors
    /// A field is invalid.
    pub fn operation(&self, fabric: &Fabric, clock: &Clock) -> Result<Report, Problem> {
        let window = self.window(clock)?;
        let mut readings = Vec::new();
        let mut loads = Vec::with_capacity(self.links.len());
        for (at, LoadBody { link, load_bps, speed_bps, queue_bytes }) in self.links.iter().enumerate() {
            let wrong = |field: &str, detail| Problem::field(format!("links[{at}].{field}"), detail);
            if is_pipe_host_link(fabric, link) {
                continue;
            }
            let link = find_link(fabric, link).map_err(|detail| {
                let unknown = host_of_link(link).filter(|host| fabric.host(host).is_none());
                wrong("link", unknown.map_or(detail, |host| no_host(fabric, host)))
            })?;
            let load = parse_load(*load_bps).map_err(|detail| wrong("load_bps", detail))?;
            loads.push(Sample { resource: link, window, load, guaranteed: None });
            let speed = speed_bps.map(parse_load).transpose().map_err(|detail| wrong("speed_bps", detail))?;
            if speed.is_some() || queue_bytes.is_some() {
                let queue = queue_bytes.map(|bytes| bytes as f64);
                readings.push((link, Reading { speed, queue, requests: None }));
            }
        }
        let (mut devices, mut unknown_devices) = (Vec::with_capacity(self.devices.len()), Vec::new());
        let (mut seen, disk_counts, mut disks) = (BTreeSet::new(), self.disk_counts(), Vec::new());
        for (at, body) in self.devices.iter().enumerate() {
            let (load, reading) = body.read(at)?;
            let mut device = find_device(fabric, &body.device);
            if let Some((only, name)) =
                only_device(fabric, &body.device, &disk_counts).filter(|_| device.is_none())
            {
                device = (name != ReportedDiskName::Several).then_some(only);
                disks.push((only, name));
            }
            match device {
                Some(device) if !seen.insert(device) => {
                    let detail = "this entry is a duplicate; a report may list each item only once";
                    return Err(Problem::field(format!("devices[{at}].device"), detail));
                }
                Some(device) => {
                    devices.push(Sample { resource: device, window, load, guaranteed: None });
                    readings.push((device, reading));
                }
                None if unknown_devices.len() < UNKNOWN => unknown_devices.push(excerpt(&body.device)),
                None => {}
            }
        }
        if let Some(ProbeAt { host, port }) = &self.probe {
            if fabric.host(host).is_none() {
                return Err(Problem::field("probe.host", no_host(fabric, host)));
            }
            if *port == 0 {
                return Err(Problem::field("probe.port", "0: expected a port from 1 to 65535"));
            }
        }
        let host = |(at, &HostBody { ref host, up, draining, stored, storage }): (usize, &HostBody)| {
            if storage.is_some() && stored.is_none() {
                return Err(Problem::field(format!("hosts[{at}].storage"), "give `stored` with it"));
            }
            let unknown = || Problem::field(format!("hosts[{at}].host"), no_host(fabric, host));
            let host = fabric.host(host).ok_or_else(unknown)?;
            Ok(HostReport { host, up, draining, stored, storage })
        };
        let task = |(at, body): (usize, &TaskBody)| {
            let wrong = || Problem::field(format!("tasks[{at}].decision"), "expected the id of a decision");
            let rates = Rates { egress_bps: body.egress_bps, ingress_bps: body.ingress_bps };
            Ok((TaskId { app: Id::read(&body.decision).ok_or_else(wrong)?, index: body.task }, rates))
        };
        let pod = |(at, PodBody { pod, host, egress_bps, ingress_bps }): (usize, &PodBody)| {
            let unknown = || Problem::field(format!("pods[{at}].host"), no_host(fabric, host));
            let pod = read_uid(|| format!("pods[{at}].pod"), pod)?;
            let host = fabric.host(host).ok_or_else(unknown)?;
            for (field, bps) in [("egress_bps", *egress_bps), ("ingress_bps", *ingress_bps)] {
                let wrong = |detail| Problem::field(format!("pods[{at}].{field}"), detail);
                parse_load(bps as f64).map_err(wrong)?;
            }
            Ok(PodRates { pod, host, rates: Rates { egress_bps: *egress_bps, ingress_bps: *ingress_bps } })
        };
        let latency = |(at, body): (usize, &LatencyBody)| {
            let wrong = || Problem::field(format!("workloads[{at}].latency_s"), "expected seconds from 0");
            let seconds = body.latency_s;
            if seconds.is_finite() && seconds >= 0.0 {
                Ok((body.workload.clone(), seconds))
            } else {
                Err(wrong())
            }
        };
        Ok(Report {
            workloads: self.workloads.iter().enumerate().map(latency).collect::<Result<_, Problem>>()?,
            tasks: self.tasks.iter().enumerate().map(task).collect::<Result<_, Problem>>()?,
            pods: self.pods.iter().enumerate().map(pod).collect::<Result<_, Problem>>()?,
            window,
            loads,
            devices,
            readings,
            disks,
            unknown_devices,
            hosts: self.hosts.iter().enumerate().map(host).collect::<Result<_, Problem>>()?,
        })
    }

    /// Checks that a report covers only the hosts that a token is bound to. Tasks and workloads belong to no
    /// host, so such a token may not report them.
    ///
    /// # Errors
    /// [`Problem`] with the first field outside these hosts.
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
        for (at, PodBody { host, .. }) in self.pods.iter().enumerate() {
            check(format!("pods[{at}].host"), host, hosts.has(host))?;
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

    /// Window of the report.
    ///
    /// # Errors
    /// A time is invalid.
    fn window(&self, clock: &Clock) -> Result<(Nanos, Nanos), Problem> {
        let time = |field, text: &str| clock.parse(text).map_err(|detail| Problem::field(field, detail));
        Ok((time("from", &self.from)?, time("until", &self.until)?))
    }

    /// Name of the reporter: the host that reports itself, or else the first link of the report.
    fn reporter(&self) -> Option<&str> {
        let of_probe = self.probe.as_ref().map(|probe| probe.host.as_str());
        let of_link = || {
            let LoadBody { link, .. } = self.links.first()?;
            Some(host_of_link(link).unwrap_or(link))
        };
        of_probe.or_else(of_link)
    }

    /// Number of disks that each host reports.
    fn disk_counts(&self) -> BTreeMap<&str, usize> {
        let mut disks = BTreeMap::new();
        for (host, _) in self.devices.iter().filter_map(|body| body.device.split_once(':')) {
            *disks.entry(host).or_default() += 1;
        }
        disks
    }
}

/// Message for a reported host that the cluster does not have. An agent reports for its machine's name by default.
fn no_host(fabric: &Fabric, name: &str) -> String {
    format!("{}; the option --host of an agent is the name of its host in the cluster", fabric.no_host(name))
}

/// Name of the host, if this is the name of a host's link.
fn host_of_link(name: &str) -> Option<&str> {
    name.strip_suffix(":egress").or_else(|| name.strip_suffix(":ingress"))
}

/// True for a host's link in a report about a pipe mesh. Hosts of a pipe mesh have no links of their own, but agents
/// report such links.
fn is_pipe_host_link(fabric: &Fabric, name: &str) -> bool {
    fabric.shape() == Shape::Pipe && host_of_link(name).is_some_and(|host| fabric.host(host).is_some())
}

/// Device of this name.
fn find_device(fabric: &Fabric, name: &str) -> Option<ResourceId> {
    fabric.resource(name).filter(|&device| fabric.kind(device) == ResourceKind::Device)
}

/// The single device of the host that reports a disk, with the reported name of the disk. `disk_counts` has the number
/// of disks that each host reports. `None` if the host has several devices, or none.
fn only_device(
    fabric: &Fabric,
    name: &str,
    disk_counts: &BTreeMap<&str, usize>,
) -> Option<(ResourceId, ReportedDiskName)> {
    let (host, _) = name.split_once(':')?;
    let id = fabric.host(host).filter(|&id| fabric.devices(id).len() == 1)?;
    let name = if disk_counts.get(host) == Some(&1) {
        ReportedDiskName::Only(excerpt(name))
    } else {
        ReportedDiskName::Several
    };
    Some((fabric.device(id, 0)?, name))
}

impl DeviceBody {
    /// Load of the device, and its other readings.
    fn read(&self, at: usize) -> Result<(Load, Reading), Problem> {
        let wrong = |field: &str, detail| Problem::field(format!("devices[{at}].{field}"), detail);
        let &DeviceBody { busy, read_bps, write_bps, queue, in_flight, .. } = self;
        if !(0.0..=1.0).contains(&busy) {
            return Err(wrong("busy", format!("{}: expected a share from 0 to 1", format_number(busy))));
        }
        for (field, rate) in [("read_bps", read_bps), ("write_bps", write_bps)] {
            rate.map(parse_load).transpose().map_err(|detail| wrong(field, detail))?;
        }
        if let Some(queue) = queue.filter(|queue| !(0.0..1e18).contains(queue)) {
            return Err(wrong("queue", format!("{}: expected a number of requests", format_number(queue))));
        }
        // A device that is always busy does one second of service per second.
        let load = Load((busy * Nanos::SECOND.0 as f64).round() as i64);
        let requests = Some(Requests { read_bps, write_bps, in_flight });
        Ok((load, Reading { speed: None, queue, requests }))
    }
}

pub async fn report(
    State(app): SharedState,
    peer: Option<Extension<Peer>>,
    Extension(Principal { client, hosts }): Extension<Principal>,
    Body(body): Body<ReportBody>,
) -> ApiResult {
    if let Some(hosts) = &hosts {
        body.check_own(&client, hosts).inspect_err(|problem| {
            tracing::warn!(name = %client, problem = problem.detail(), "report rejected: not a host of the token");
        })?;
    }
    let offer = body.probe.as_ref().zip(peer);
    let summary = app.call(|fabric| body.operation(fabric, &app.clock)).await?;
    app.metrics.report();
    let reporter = body.reporter().map_or_else(|| Cow::Owned(client.to_string()), Cow::Borrowed);
    if summary.links > 0 {
        app.reporters.record_window(&reporter, body.window(&app.clock)?, app.about.interval);
    }
    app.reporters.record_clamped(&reporter, summary.clamped, &summary.clamped_names);
    // The address is the source of the report, so no client can direct measurements to another host.
    if let Some((ProbeAt { host, port }, Extension(Peer(address)))) = offer {
        app.probes.offers.record(host, (address, *port).into(), app.clock.now());
    }
    Ok(Json(summary).into_response())
}
