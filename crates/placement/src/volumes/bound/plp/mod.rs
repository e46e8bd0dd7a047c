//! `plp`: the longest delay over the queues of a stage where requests of one priority are served in order of arrival, by linear
//! programming (PLP++; Bouillard, "Trade-off between accuracy and tractability of Network Calculus in FIFO networks", Performance
//! Evaluation 153, 2022).
//!
//! The other bounds let what meets a workload on a part of its way pass before it there, whenever it came, and so pay for some
//! bursts twice or in the worst of orders. Here a priority is seen by itself: each queue gives it what those before leave, less what is
//! whole, and [`program`] knows that it comes out as it came in.
//!
//! The paper has one class of flows and trees of servers. Here there are strict priorities: what those before bring to each queue is
//! taken off its service first, at each queue anew, with the arrivals that [`InOrder`] finds there. And only the queues of the
//! workload's own path are in the program; what joins on the way comes within its arrivals there, and within the rate of the link it
//! came by. So where most of what is met comes before the workload and along its whole way, [`super::Method::Dnc`] may be below.
//!
//! One queue needs no program: it is the largest horizontal distance, as [`super::Method::Dnc`] has it.

mod program;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use leeward_calculus::{Flow, InOrder};
use leeward_solver::SolverError;
use leeward_traces::Stage;

use super::curves::{self, Fault};
use super::parts::Parts;
use super::{BoundSettings, Unbounded};
use program::{Delays, longest};

/// A component as a network in which each priority keeps its order.
#[derive(Debug)]
pub(super) struct Component<'s> {
    queues: Vec<usize>,
    ranks: Vec<u32>,
    network: Result<InOrder, Why>,
    /// Delays by path and priority; those of one path and priority have one.
    known: BTreeMap<(&'s [usize], u32), Result<f64, Why>>,
}

/// Why a part has no bound.
#[derive(Clone, Debug)]
enum Why {
    Fault(Fault),
    Order,
    Solver(SolverError),
}

impl From<Fault> for Why {
    fn from(fault: Fault) -> Why {
        Why::Fault(fault)
    }
}

impl<'s> Component<'s> {
    pub fn new(parts: &Parts<'s>, component: usize, settings: BoundSettings) -> Component<'s> {
        let queues = parts.queues(component);
        let network = if settings.fifo && keeps_order(parts, component) {
            let flows = together(curves::flows(parts, component, &queues));
            curves::network(parts, component, &queues, flows).map(InOrder::new).map_err(Why::from)
        } else {
            Err(Why::Order)
        };
        Component { queues, ranks: curves::ranks(parts, component), network, known: BTreeMap::new() }
    }

    /// Whether it is one queue in order of arrival, for which the curves of [`super::Method::Dnc`] are the bound.
    pub fn is_one_queue(&self) -> bool {
        self.queues.len() == 1 && self.network.is_ok()
    }

    /// The delay of a part in its queues.
    pub fn delay(
        &mut self,
        parts: &Parts<'s>,
        part: usize,
        settings: BoundSettings,
    ) -> Result<f64, Unbounded> {
        let of = &parts.parts[part];
        let found = match self.known.get(&(of.route, of.priority)) {
            Some(known) => known.clone(),
            None => {
                let found = self.along(of.route, curves::rank(&self.ranks, of.priority), settings);
                self.known.insert((of.route, of.priority), found.clone());
                found
            }
        };
        found.map_err(|why| match why {
            Why::Fault(fault) => fault.of(parts, part),
            Why::Order => {
                let (workload, stage) = parts.place(part);
                Unbounded::Order { workload, stage }
            }
            Why::Solver(error) => {
                let (workload, stage) = parts.place(part);
                Unbounded::Solver { workload, stage, error }
            }
        })
    }

    /// The delay over a path of what comes there with a priority, by its rank.
    fn along(&self, route: &[usize], rank: u32, settings: BoundSettings) -> Result<f64, Why> {
        let network = self.network.as_ref().map_err(Clone::clone)?;
        let path = curves::local(route, &self.queues);
        let overload = |at: usize, overload| Why::from(Fault::Overload(self.queues[at], overload));
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
        let longest = longest(&tandem, Some(&delays), settings.buckets, total).map_err(Why::Solver)?;
        // The solver may be a little above what it was told.
        Ok(longest.min(least))
    }
}

/// Whether what a queue passes on leaves it as it came. A device that serves several requests at once does not see to that; as a rule
/// nothing comes after a device.
fn keeps_order(parts: &Parts<'_>, component: usize) -> bool {
    let here = parts.components[component].iter().map(|&part| &parts.parts[part]);
    let mut devices = here.filter(|part| part.demand.stage == Stage::Storage);
    devices.all(|part| {
        let (_, before) = part.route.split_last().expect("a route has a queue");
        before.iter().all(|&queue| parts.in_service(component, queue) == 0.0)
    })
}

/// Flows of one path and priority as one.
fn together(flows: Vec<Flow>) -> Vec<Flow> {
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
