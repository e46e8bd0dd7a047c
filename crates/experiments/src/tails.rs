//! Latency bounds on one path by each analysis (SLO figures 4.7, 4.8 and 4.13). Latency bounds of every workload of a
//! site (SLO figure 4.14).

use leeward_calculus::snc::{self, Analysis, Latency};
use leeward_slo::bound::{BoundSettings, Bounds, Method, Unit};
use leeward_slo::priorities::by_slo;
use leeward_slo::{Promise, System};
use leeward_traces::Stage;

use super::admit::route;
use super::pack::name;
use super::traces::{Part, Traces};
use super::{Draw, ExperimentError, Shape};

/// Bounds on the latency of one workload, in seconds. `None` means that the analysis has no bound.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tails {
    /// Deterministic bound, by curves.
    pub dnc: Option<f64>,
    /// Deterministic bound, by the linear program of PriorityMeister.
    pub priority_meister: Option<f64>,
    /// Stochastic bound, as in SNC-Meister's analysis.
    pub bipartite: Option<f64>,
    /// Stochastic bound, queue by queue.
    pub hop_by_hop: Option<f64>,
    /// Stochastic bound, by the convolution of the queues' leftover services.
    pub convolution: Option<f64>,
}

/// Settings of the bounds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TailSettings {
    /// Bytes per second of both links.
    pub bytes: f64,
    /// Number of workloads that depend on one another. They are the first ones.
    pub dependent: usize,
    /// Share of requests, or of time, that may exceed a stochastic bound; above 0 and below 1.
    pub excess: f64,
    /// Settings of bounds.
    pub bounds: BoundSettings,
}

/// Computes bounds on the latency of the last draw's workload. The workloads of all draws cross the same two links: the
/// link out of one server and the link into one client. Each workload has a lower priority than the previous ones.
///
/// # Errors
/// Returns an error if `draws` is empty, if a draw has no trace, or if a setting is invalid.
pub fn tails(
    traces: &Traces,
    part: Part,
    draws: &[Draw],
    settings: &TailSettings,
) -> Result<Tails, ExperimentError> {
    let Some(last) = draws.len().checked_sub(1) else {
        return Err(ExperimentError::draw("draws", "none: expected at least one"));
    };
    let stages = [Stage::NetworkOut];
    let shape = Shape { clients: 1, slots: None, servers: 1, devices: 1, bytes: settings.bytes };
    let site = shape.site()?;
    let route = route(&site, (0, 0), &stages)?;
    let mut promises = Vec::with_capacity(draws.len());
    for (index, draw) in draws.iter().enumerate() {
        let workload = traces.workload(name(index), draw, part, &stages, true)?;
        let limits = workload.demands.iter().map(|demand| demand.arrivals.clone()).collect();
        promises.push(Promise { workload, route: route.clone(), priorities: vec![index as u32], limits });
    }
    let system = System { queues: site.queues().to_vec(), promises };
    let mut network = network(&system, settings)?;
    let mut stochastic = |analysis| -> Result<Option<f64>, ExperimentError> {
        let bound = network.stage_bound_beyond(last, 0, settings.excess, analysis);
        let bound = bound.map_err(|error| ExperimentError::draw("tails", error.to_string()))?;
        Ok(Latency::seconds(&bound))
    };
    let (bipartite, hop_by_hop, convolution) = (
        stochastic(Analysis::Bipartite)?,
        stochastic(Analysis::HopByHop)?,
        stochastic(Analysis::Convolution)?,
    );
    let mut bounds = Bounds::new(&system, settings.bounds)?;
    let mut deterministic = |method| bounds.bound(last, method).ok().map(|bound| bound.seconds);
    let (dnc, priority_meister) = (deterministic(Method::Dnc), deterministic(Method::PriorityMeister));
    Ok(Tails { dnc, priority_meister, bipartite, hop_by_hop, convolution })
}

fn network(system: &System, settings: &TailSettings) -> Result<snc::Network, ExperimentError> {
    let queue = |(index, queue): (usize, &leeward_slo::Queue)| snc::Queue {
        name: index.to_string(),
        rate: queue.capacity,
        in_service: 0.0,
        latency: queue.latency,
    };
    let queues: Vec<snc::Queue> = system.queues.iter().enumerate().map(queue).collect();
    let mut workloads = Vec::with_capacity(system.promises.len());
    for (index, promise) in system.promises.iter().enumerate() {
        let demand = &promise.workload.demands[0];
        let arrivals = demand.model.clone().expect("workloads have models");
        let packet = settings.bounds.packet(demand);
        let depends = index > 0 && index < settings.dependent;
        workloads.push(snc::Workload {
            name: promise.workload.name.clone(),
            percentile: 50.0,
            priority: promise.priorities[0],
            dependencies: if depends { vec![name(0)] } else { Vec::new() },
            stages: vec![snc::Stage {
                queues: promise.route[0].iter().map(usize::to_string).collect(),
                arrivals,
                packet,
            }],
        });
    }
    let mut network = snc::Network::new(&queues, &workloads)
        .map_err(|error| ExperimentError::draw("tails", error.to_string()))?;
    network.set_by_request(settings.bounds.by_request);
    network.set_lyapunov(settings.bounds.lyapunov);
    network.set_blocks(settings.bounds.blocks);
    network.set_within_steps(settings.bounds.unit != Unit::Fluid);
    Ok(network)
}

/// Computes the latency bound of every draw's workload, in seconds; `None` without a bound. `links` has the client and
/// the server of each draw. The SLOs determine the priorities.
///
/// # Errors
/// Returns an error for an invalid draw, link or shape, or invalid settings.
#[expect(clippy::too_many_arguments, reason = "experiments vary each of them")]
pub fn bounds_of_all(
    traces: &Traces,
    part: Part,
    draws: &[Draw],
    links: &[(usize, usize)],
    shape: &Shape,
    stages: &[Stage],
    method: Method,
    settings: BoundSettings,
) -> Result<Vec<Option<f64>>, ExperimentError> {
    let site = shape.site()?;
    let mut promises = Vec::with_capacity(draws.len());
    for (index, (draw, &link)) in draws.iter().zip(links).enumerate() {
        let workload = traces.workload(name(index), draw, part, stages, true)?;
        let limits = workload.demands.iter().map(|demand| demand.arrivals.clone()).collect();
        let route = route(&site, link, stages)?;
        promises.push(Promise { workload, route, priorities: vec![0; stages.len()], limits });
    }
    let mut system = System { queues: site.queues().to_vec(), promises };
    by_slo(&mut system);
    let mut bounds = Bounds::new(&system, settings)?;
    let seconds = |promise| bounds.bound(promise, method).ok().map(|bound| bound.seconds);
    Ok((0..system.promises.len()).map(seconds).collect())
}
