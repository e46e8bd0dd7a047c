//! Method `plp`: longest delay over the queues of a stage that serve each priority in order of arrival, by
//! linear programming (PLP++; Bouillard, "Trade-off between accuracy and tractability of Network Calculus in
//! FIFO networks", Performance Evaluation 153, 2022).
//!
//! With the other methods, cross traffic that shares a part of the path may pass before the workload at any time. These
//! methods therefore count some bursts twice, or in the worst order. `plp` analyses one priority alone. Each queue
//! offers it the service that higher priorities leave, minus the loss by whole packets. [`longest_delay`] uses the fact
//! that requests leave a queue in their order of arrival.
//!
//! The paper has one class of flows and trees of servers. This module has strict priorities: at each queue, the
//! arrivals of higher priorities, computed by [`InOrder`], reduce the service first. The program contains only the
//! queues of the workload's own path. Cross traffic that joins on the path arrives within its arrival curve at that
//! queue, and within the rate of its link. So [`super::Method::Dnc`] may be lower if most cross traffic has a higher
//! priority and follows the whole path.
//!
//! One queue needs no program: the bound is the largest horizontal distance, as for [`super::Method::Dnc`].

mod program;

use std::collections::BTreeMap;

use leeward_calculus::{Flow, InOrder};
use leeward_solver::SolverError;
use leeward_traces::Stage;

use super::components::Parts;
use super::curves::{self, Fault};
use super::{BoundSettings, Unbounded};
pub use program::{Delays, longest_delay};

/// Component as a network in which each priority keeps its order.
#[derive(Debug)]
pub(super) struct Component<'s> {
    queues: Vec<usize>,
    ranks: Vec<u32>,
    network: Result<InOrder, BoundFailure>,
    /// Delays by path and priority; parts of one path and priority share them.
    known: BTreeMap<(&'s [usize], u32), Result<f64, BoundFailure>>,
}

/// Reason for which a part has no bound.
#[derive(Clone, Debug)]
enum BoundFailure {
    Fault(Fault),
    Order,
    Solver(SolverError),
}

impl From<Fault> for BoundFailure {
    fn from(fault: Fault) -> BoundFailure {
        BoundFailure::Fault(fault)
    }
}

impl<'s> Component<'s> {
    pub fn new(parts: &Parts<'s>, component: usize, settings: BoundSettings) -> Component<'s> {
        let queues = parts.queues(component);
        let network = if settings.fifo && keeps_order(parts, component) {
            let flows = merge_flows(curves::flows(parts, component, &queues));
            curves::network(parts, component, &queues, flows).map(InOrder::new).map_err(BoundFailure::from)
        } else {
            Err(BoundFailure::Order)
        };
        Component { queues, ranks: curves::ranks(parts, component), network, known: BTreeMap::new() }
    }

    /// True if the component is one queue that serves in order of arrival; the curves of [`super::Method::Dnc`] are
    /// then the bound.
    pub fn is_one_queue(&self) -> bool {
        self.queues.len() == 1 && self.network.is_ok()
    }

    /// Queueing delay of a part.
    pub fn delay(
        &mut self,
        parts: &Parts<'s>,
        part: usize,
        settings: BoundSettings,
    ) -> Result<f64, Unbounded> {
        let of = &parts.parts[part];
        let delay = match self.known.get(&(of.route, of.priority)) {
            Some(known) => known.clone(),
            None => {
                let computed = self.path_delay(of.route, curves::rank(&self.ranks, of.priority), settings);
                self.known.insert((of.route, of.priority), computed.clone());
                computed
            }
        };
        delay.map_err(|why| match why {
            BoundFailure::Fault(fault) => fault.into_error(parts, part),
            BoundFailure::Order => {
                let (workload, stage) = parts.place(part);
                Unbounded::Order { workload, stage }
            }
            BoundFailure::Solver(error) => {
                let (workload, stage) = parts.place(part);
                Unbounded::Solver { workload, stage, error }
            }
        })
    }

    /// Delay over a path of the traffic with a priority, given by its rank.
    fn path_delay(&self, route: &[usize], rank: u32, settings: BoundSettings) -> Result<f64, BoundFailure> {
        let network = self.network.as_ref().map_err(Clone::clone)?;
        let path = curves::local_path(route, &self.queues);
        let overload = |at: usize, overload| BoundFailure::from(Fault::Overload(self.queues[at], overload));
        let tandem = network.tandem(&path, rank).map_err(|error| overload(error.queue, error.overload))?;
        let servers = tandem.total_flow().map_err(|(at, _)| {
            let error = network.overloaded(path[at], rank);
            overload(error.queue, error.overload)
        })?;
        let total: f64 = servers.iter().sum();
        if servers.len() == 1 || total == 0.0 {
            return Ok(total);
        }
        let delays = Delays { servers, crossings: tandem.separated_flow() };
        let least = delays.crossings[0].map_or(total, |separated| total.min(separated));
        let longest =
            longest_delay(&tandem, Some(&delays), settings.buckets, total).map_err(BoundFailure::Solver)?;
        // The solver may exceed the known delays by its tolerance.
        Ok(longest.min(least))
    }
}

/// True if every queue that passes traffic on keeps its order. A device with parallel requests does not keep
/// it, but as a rule a device is the last queue.
fn keeps_order(parts: &Parts<'_>, component: usize) -> bool {
    let here = parts.components[component].iter().map(|&part| &parts.parts[part]);
    let mut devices = here.filter(|part| part.demand.stage == Stage::Storage);
    devices.all(|part| {
        let (_, before) = part.route.split_last().expect("a route has a queue");
        before.iter().all(|&queue| parts.in_service(component, queue) == 0.0)
    })
}

/// Merges the flows of one path and priority.
fn merge_flows(flows: Vec<Flow>) -> Vec<Flow> {
    let mut sums: BTreeMap<(Vec<usize>, u32), Flow> = BTreeMap::new();
    for flow in flows {
        match sums.get_mut(&(flow.path.clone(), flow.priority)) {
            Some(sum) => {
                sum.arrivals = sum.arrivals.plus(&flow.arrivals);
                sum.packet = sum.packet.max(flow.packet);
            }
            None => {
                sums.insert((flow.path.clone(), flow.priority), flow);
            }
        }
    }
    sums.into_values().collect()
}
