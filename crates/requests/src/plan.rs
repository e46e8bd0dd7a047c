//! A checked setup in the layout for a run.

use leeward_fabric::Nanos;
use leeward_shaping::{OverLimit, Workload, WorkloadId};
use leeward_traces::Stage;

use super::error::RequestsError;
use super::scheduling::Scheduling;
use super::server::Serving;
use super::setup::{Enforced, Server, Setup, StageLimits};

/// A server on the path of a workload.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hop {
    pub(super) server: u32,
    /// Stage, as an index into [`Stage::ALL`].
    pub(super) stage: u8,
    pub(super) is_first: bool,
    pub(super) is_last: bool,
    /// True if the hop forwards work in packets.
    pub(super) packets: bool,
    /// Rank of the workload's priority at the server.
    pub(super) level: u32,
    /// Name of the workload at the server.
    pub(super) passage: WorkloadId,
    /// True if an idle server takes requests over their limits.
    pub(super) demotes: bool,
}

/// Layout of servers and hops.
pub(super) struct Plan {
    pub(super) servers: Vec<Serving>,
    /// Hops of all workloads, one workload after another.
    pub(super) hops: Vec<Hop>,
    /// Range of each workload's hops.
    pub(super) hop_ranges: Vec<(u32, u32)>,
    /// Nanoseconds from arrival to deadline, by workload; `u64::MAX` without an SLO.
    pub(super) objectives: Vec<u64>,
}

impl Plan {
    pub(super) fn new(setup: &Setup) -> Result<Plan, RequestsError> {
        check_settings(setup)?;
        setup.servers.iter().try_for_each(check_server)?;
        let count = setup.servers.len();
        setup.workloads.iter().try_for_each(|workload| check_workload(workload, count))?;
        let ranks = ranks(setup);
        let (mut hops, mut hop_ranges) = (Vec::new(), Vec::new());
        let mut servers: Vec<Serving> = setup.servers.iter().map(Serving::new).collect();
        for (index, workload) in setup.workloads.iter().enumerate() {
            let start = hops.len() as u32;
            for (stage, limits) in workload.stages.iter().enumerate() {
                let packets = setup.packet.is_some()
                    && limits.route.iter().all(|&at| setup.servers[at].device.is_none());
                for (step, &server) in limits.route.iter().enumerate() {
                    let level = rank(&setup.servers[server], &ranks[server], limits);
                    let settings = Workload {
                        priority: level,
                        weight: workload.weight,
                        // Limits are enforced at the first server.
                        limits: if step == 0 { limits.limits.clone() } else { Vec::new() },
                        over: limits.over,
                    };
                    hops.push(Hop {
                        server: server as u32,
                        stage: stage as u8,
                        is_first: step == 0,
                        is_last: step + 1 == limits.route.len(),
                        packets,
                        level,
                        passage: servers[server].add(&settings, index as u32),
                        demotes: limits.over == OverLimit::Demoted,
                    });
                }
            }
            hop_ranges.push((start, hops.len() as u32));
        }
        let objective =
            |workload: &Enforced| workload.slo.map_or(u64::MAX, |slo| Nanos::from_secs_f64(slo.latency).0);
        let objectives = setup.workloads.iter().map(objective).collect();
        Ok(Plan { servers, hops, hop_ranges, objectives })
    }
}

/// Returns the distinct priorities at each server, sorted.
fn ranks(setup: &Setup) -> Vec<Vec<u32>> {
    let mut ranks = vec![Vec::new(); setup.servers.len()];
    for limits in setup.workloads.iter().flat_map(|workload| &workload.stages) {
        for &server in &limits.route {
            ranks[server].push(limits.priority);
        }
    }
    for list in &mut ranks {
        list.sort_unstable();
        list.dedup();
    }
    ranks
}

fn rank(server: &Server, ranks: &[u32], limits: &StageLimits) -> u32 {
    match server.order {
        Scheduling::Priority => {
            ranks.binary_search(&limits.priority).expect("the priority is in the list") as u32
        }
        _ => 0,
    }
}

fn check_settings(setup: &Setup) -> Result<(), RequestsError> {
    let reject = |setting, problem: String| Err(RequestsError::Setting { setting, problem });
    let (tails, workloads) = (setup.tails.len(), setup.workloads.len());
    if tails > 0 && tails != workloads {
        return reject(
            "tails",
            format!("given for {tails} workloads: expected for all {workloads}, or none"),
        );
    }
    if let Some(tail) = setup.tails.iter().flat_map(|tails| tails.iter()).find(|tail| tail.0 > LONGEST) {
        return reject("tails", format!("{tail}: expected at most 11 days"));
    }
    if let Some(packet) = setup.packet.filter(|packet| !(1.0..1e15).contains(packet)) {
        return reject("packet", format!("{packet} bytes: expected at least 1, and below 1e15"));
    }
    for (setting, length) in [("window", setup.window), ("interval", setup.interval)] {
        if length.0 == 0 {
            return reject(setting, "0 s: expected a time above 0".into());
        }
    }
    Ok(())
}

fn check_server(server: &Server) -> Result<(), RequestsError> {
    let reject = |problem: String| Err(RequestsError::Server { server: server.name.clone(), problem });
    let capacity = server.capacity;
    if !(1e-9..=1e18).contains(&capacity) {
        return reject(format!("capacity {capacity}: expected 1e-9 to 1e18 units of work per second"));
    }
    if server.latency.0 > LONGEST {
        return reject(format!("a latency of {}: expected at most 11 days", server.latency));
    }
    match (&server.device, server.order) {
        (None, Scheduling::Shares | Scheduling::Cake(_) | Scheduling::Deadline) => {
            return reject(format!("order {:?}: expected Priority or Fifo on a link", server.order));
        }
        (Some(device), _) if device.outstanding == 0 => {
            return reject("0 requests outstanding: expected at least 1".into());
        }
        (Some(_), _) if server.outstanding_by_kind.contains(&0) => {
            return reject("0 reads or writes outstanding: expected at least 1".into());
        }
        (Some(device), _) => {
            for latency in [device.read_latency, device.write_latency, device.turn] {
                if latency.0 > LONGEST {
                    return reject(format!("a latency or turn of {latency}: expected at most 11 days"));
                }
            }
        }
        _ => {}
    }
    if let Scheduling::Cake(cake) = server.order {
        let open = |share: f64| share > 0.0 && share < 1.0;
        let bounds = cake.lower > 0.0 && cake.upper >= cake.lower && cake.upper.is_finite();
        let floor = cake.floor > 0.0 && cake.floor <= 1.0;
        if cake.interval.0 < 1_000_000 || !bounds || !open(cake.step) || !floor {
            return reject(format!(
                "{cake:?}: expected an interval of 1 ms or more, bounds with 0 < lower <= upper, a step between 0 and 1, and a floor above 0 and at most 1"
            ));
        }
    }
    Ok(())
}

fn check_workload(workload: &Enforced, servers: usize) -> Result<(), RequestsError> {
    let reject = |problem: String| Err(RequestsError::Workload { workload: workload.name.clone(), problem });
    if !(1e-9..=1e9).contains(&workload.weight) {
        return reject(format!("weight {}: expected from 1e-9 to 1e9", workload.weight));
    }
    if let Some(slo) = workload.slo {
        if !(slo.percentile > 0.0 && slo.percentile < 100.0) {
            return reject(format!("SLO at {} %: expected above 0 and below 100", slo.percentile));
        }
        if !(slo.latency > 0.0 && slo.latency.is_finite()) {
            return reject(format!("SLO of {} s: expected above 0 and finite", slo.latency));
        }
    }
    for (limits, stage) in workload.stages.iter().zip(Stage::ALL) {
        let reject = |problem| Err(RequestsError::Limits { workload: workload.name.clone(), stage, problem });
        if let Some(server) = limits.route.iter().find(|&&server| server >= servers) {
            return reject(format!("server {server}: there are {servers}, numbered from 0"));
        }
        if let Some(bucket) = limits.limits.iter().find(|bucket| bucket.rate() <= 0.0) {
            return reject(format!("a limit of rate {}: expected above 0", bucket.rate()));
        }
    }
    Ok(())
}

/// Longest time of a request at a server without queueing, in nanoseconds: 11.5 days.
pub(super) const LONGEST: u64 = 1_000_000_000_000_000;
