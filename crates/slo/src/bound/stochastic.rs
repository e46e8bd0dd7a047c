//! Method `snc`: percentiles of queueing delays of a component from models of arrivals.
//!
//! Each part is a workload with one stage in [`snc::Network`], because priorities differ by stage. The parts
//! of a workload depend on one another, and on the parts of the workloads in its dependencies.

use std::collections::BTreeMap;

use leeward_calculus::snc::{self, Analysis, Latency};

use super::components::Parts;
use super::{BoundSettings, Unbounded, Unit, is_delayed};

/// Stochastic model of a component.
#[derive(Debug)]
pub(super) struct Component {
    /// Parts in the network, ascending; the other parts have faults.
    within: Vec<usize>,
    /// Parts that cannot be analysed. Parts of the same and lower priorities have no bound either.
    faults: Vec<(usize, Fault)>,
    /// Network of the parts, or the error for all of them.
    network: Result<snc::Network, snc::NetworkError>,
}

/// Fault of a part.
#[derive(Clone, Debug)]
enum Fault {
    NoModel,
    Held(f64),
    Limits(Unbounded),
}

impl Component {
    pub fn new(parts: &Parts<'_>, component: usize, settings: BoundSettings) -> Component {
        let (mut within, mut faults) = (Vec::new(), Vec::new());
        for &part in &parts.components[component] {
            match fault(parts, part) {
                Some(fault) => faults.push((part, fault)),
                None => within.push(part),
            }
        }
        let network = network(parts, component, &within).map(|mut network| {
            network.set_by_request(settings.by_request);
            network.set_lyapunov(settings.lyapunov);
            network.set_blocks(settings.blocks);
            network.set_within_steps(settings.unit != Unit::Fluid);
            network
        });
        Component { within, faults, network }
    }

    /// Delay that `percentile` percent of a part's requests do not exceed. With `coarse` the result is slightly higher
    /// and faster to compute.
    pub fn delay(
        &mut self,
        parts: &Parts<'_>,
        part: usize,
        percentile: f64,
        coarse: bool,
    ) -> Result<f64, Unbounded> {
        let priority = parts.parts[part].priority;
        let own = self.faults.iter().find(|(of, _)| *of == part);
        let met = || self.faults.iter().find(|&&(of, _)| parts.parts[of].priority <= priority);
        if let Some((of, fault)) = own.or_else(met) {
            return Err(fault.clone().of(parts, part, *of));
        }
        let (workload, stage) = parts.place(part);
        let network = match &mut self.network {
            Ok(network) => network,
            // The network names queues by their index.
            Err(snc::NetworkError::Cycle { queue }) => {
                let queue = queue.parse().map_or_else(|_| queue.clone(), |queue| parts.queue(queue));
                return Err(Unbounded::Cycle { workload, stage, queue });
            }
            Err(fault) => return Err(Unbounded::Models { workload, stage, fault: fault.clone() }),
        };
        let at = self.within.binary_search(&part).expect("a part without a fault is in the network");
        network.set_coarse(coarse);
        match network.stage_bound(at, 0, percentile, Analysis::Bipartite) {
            Ok(Latency::Bounded(tail)) => Ok(tail.seconds),
            Ok(Latency::Unstable(unstable)) => Err(Unbounded::Unstable { workload, stage, unstable }),
            Err(snc::NetworkError::Size { most, .. }) => Err(Unbounded::Size { workload, stage, most }),
            Err(fault) => Err(Unbounded::Models { workload, stage, fault }),
        }
    }
}

fn fault(parts: &Parts<'_>, part: usize) -> Option<Fault> {
    let of = &parts.parts[part];
    if of.demand.model.is_none() {
        return Some(Fault::NoModel);
    }
    match parts.limiter_delay(part) {
        Ok(seconds) => is_delayed(seconds).then_some(Fault::Held(seconds)),
        Err(limits) => Some(Fault::Limits(limits)),
    }
}

impl Fault {
    /// Converts the fault of part `at` to the error of a part that shares a queue with it.
    fn of(self, parts: &Parts<'_>, part: usize, at: usize) -> Unbounded {
        let ((workload, stage), of) = (parts.place(part), parts.place(at).0);
        match self {
            Fault::NoModel => Unbounded::NoModel { workload, stage, of },
            Fault::Held(seconds) => Unbounded::Held { workload, stage, of, seconds },
            Fault::Limits(limits) => limits,
        }
    }
}

fn network(parts: &Parts<'_>, component: usize, within: &[usize]) -> Result<snc::Network, snc::NetworkError> {
    let queues = parts.queues(component);
    let snc_queues: Vec<snc::Queue> = (queues.iter())
        .map(|&queue| {
            // Parts with a fault have lower priority than all parts analysed here, but a packet of such a part may be
            // in service.
            let outside =
                parts.components[component].iter().filter(|part| within.binary_search(part).is_err());
            let outside = outside.filter(|&&part| parts.parts[part].route.contains(&queue));
            let packets = outside.map(|&part| parts.packet(part));
            snc::Queue {
                name: queue.to_string(),
                rate: parts.system.queues[queue].capacity,
                in_service: packets.fold(parts.in_service(component, queue), f64::max),
                latency: parts.system.queues[queue].latency,
            }
        })
        .collect();
    // Each part depends on the first part of its group; dependencies are transitive.
    let mut firsts = BTreeMap::new();
    let workloads: Vec<snc::Workload> = (within.iter())
        .map(|&part| {
            let of = &parts.parts[part];
            let first = *firsts.entry(parts.groups[of.promise]).or_insert(part);
            let model = of.demand.model.clone().expect("a part without a model has a fault");
            snc::Workload {
                name: part.to_string(),
                percentile: 50.0,
                priority: of.priority,
                dependencies: if first == part { Vec::new() } else { vec![first.to_string()] },
                stages: vec![snc::Stage {
                    queues: of.route.iter().map(usize::to_string).collect(),
                    arrivals: model,
                    packet: parts.packet(part),
                }],
            }
        })
        .collect();
    snc::Network::new(&snc_queues, &workloads)
}
