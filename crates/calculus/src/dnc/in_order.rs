//! Arrivals at each queue over links, for strict priorities, if flows of one priority are served in order of arrival.
//! The method is total flow analysis with shaping (TFA++; Mifdaoui and Leydier, "Beyond the accuracy-complexity
//! tradeoffs of compositional analyses using network calculus", RTSS 2017).
//!
//! At a queue, all flows of a priority share the service that higher priorities leave, and have one delay. The rate of
//! a link, plus a packet, limits all flows that arrive over it together. The output of a flow is its arrivals, delayed
//! by the queue's delay. It is also limited by the service that the queue's other flows leave it in order of arrival
//! ([`ServiceCurve::leftover_in_order`](super::ServiceCurve::leftover_in_order)). Both limits hold, so their minimum
//! holds too.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::hop_by_hop::Arrivals;
use super::network::{Network, Unbounded};
use super::service::ServiceCurve;
use super::tandem::{Crossing, Server, Tandem};
use crate::curve::ArrivalCurve;

/// A flow, and the index of a hop on its path.
type Place = (usize, usize);

/// A network in which every queue serves flows of one priority in order of arrival, with the arrivals at each hop of
/// each flow.
#[derive(Clone, PartialEq, Debug)]
pub struct InOrder {
    network: Network,
    arrivals: Arrivals,
}

impl InOrder {
    /// Analyses a network, queue by queue.
    pub fn new(network: Network) -> InOrder {
        let arrivals = network.flows.iter().map(|flow| vec![Ok(flow.arrivals.clone())]).collect();
        let mut of = InOrder { network, arrivals };
        for at in 0..of.network.order.len() {
            of.pass(of.network.order[at]);
        }
        of
    }

    /// Adds the arrivals at the next hop of each flow that passes a queue.
    fn pass(&mut self, queue: usize) {
        let network = &self.network;
        let mut here = network.at[queue].clone();
        here.sort_by_key(|&(flow, _)| (network.flows[flow].priority, flow));
        let (mut done, mut passed) = (0, Vec::new());
        for class in here.chunk_by(|a, b| network.flows[a.0].priority == network.flows[b.0].priority) {
            let goes_on = |&at: &usize| class[at].1 + 1 < network.flows[class[at].0].path.len();
            let which: Vec<usize> = (0..class.len()).filter(goes_on).collect();
            if !which.is_empty() {
                let left = self.left(queue, &here[..done], class);
                passed
                    .extend(which.into_iter().map(|at| (class[at].0, self.passed(queue, &left, class, at))));
            }
            done += class.len();
        }
        passed.into_iter().for_each(|(flow, passed)| self.arrivals[flow].push(passed));
    }

    /// Service at a queue for a class after higher priorities, counted on departures, and the delay of the class
    /// there.
    fn left(
        &self,
        queue: usize,
        before: &[Place],
        class: &[Place],
    ) -> Result<(ServiceCurve, f64), Unbounded> {
        let priority = self.network.flows[class[0].0].priority;
        let (before, all) = (self.together(before)?, self.together(class)?);
        let left = |passes_on| self.network.service(queue, priority, passes_on).leftover(&before);
        // A packet leaves when its last bit leaves.
        let delay = left(false).and_then(|left| left.delay(&all));
        let found = delay.and_then(|delay| Ok((left(true)?, delay)));
        found.map_err(|_| self.network.overloaded(queue, priority))
    }

    /// Output of a queue for one flow of a class.
    fn passed(
        &self,
        queue: usize,
        left: &Result<(ServiceCurve, f64), Unbounded>,
        class: &[Place],
        at: usize,
    ) -> Result<ArrivalCurve, Unbounded> {
        let (flow, hop) = class[at];
        let (left, delay) = left.as_ref().map_err(|&error| error)?;
        let own = self.arrivals[flow][hop].as_ref().map_err(|&error| error)?;
        let overloaded = || self.network.overloaded(queue, self.network.flows[flow].priority);
        let later = own.delayed(*delay).ok_or_else(overloaded)?;
        let others = self.together(&[&class[..at], &class[at + 1..]].concat())?;
        // If the other flows leave no service, only the delay limits the output.
        let alone = left.leftover_in_order(&others).and_then(|left| left.output(own));
        Ok(alone.map_or(later.clone(), |alone| later.min(&alone)))
    }

    /// Arrivals of flows at one queue, over the links that they use.
    fn together(&self, flows: &[Place]) -> Result<ArrivalCurve, Unbounded> {
        let mut by_link: BTreeMap<Option<usize>, Vec<Place>> = BTreeMap::new();
        for &(flow, hop) in flows {
            by_link.entry(self.from(flow, hop)).or_default().push((flow, hop));
        }
        let mut sum = ArrivalCurve::zero();
        for (from, group) in by_link {
            let mut own = ArrivalCurve::zero();
            for &(flow, hop) in &group {
                own = own.plus(self.arrivals[flow][hop].as_ref().map_err(|&error| error)?);
            }
            if let Some(from) = from {
                own = own.min(&self.network.link(from, group.iter().map(|place| place.0)).into());
            }
            sum = sum.plus(&own);
        }
        Ok(sum)
    }

    /// Previous queue of a flow before a hop; `None` at its first.
    fn from(&self, flow: usize, hop: usize) -> Option<usize> {
        Some(self.network.flows[flow].path[hop.checked_sub(1)?])
    }

    /// The queues of `path` for flows of `priority`. The first crossing contains all flows that enter at the first
    /// queue and pass the whole path.
    ///
    /// # Errors
    /// A queue that the arrivals on the path depend on is overloaded.
    ///
    /// # Panics
    /// If the path is empty or names a queue that does not exist.
    pub fn tandem(&self, path: &[usize], priority: u32) -> Result<Tandem, Unbounded> {
        let network = &self.network;
        let mut servers = Vec::with_capacity(path.len());
        // Flows that cross together: first queue, last queue, and their incoming link.
        let mut crossings: BTreeMap<(usize, Reverse<usize>, Option<usize>), Vec<Place>> = BTreeMap::new();
        let mut links: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
        for (at, &queue) in path.iter().enumerate() {
            let (class, before): (Vec<Place>, Vec<Place>) = (network.at[queue].iter())
                .filter(|&&(flow, _)| network.flows[flow].priority <= priority)
                .partition(|&&(flow, _)| network.flows[flow].priority == priority);
            let before = self.together(&before)?;
            let left = |passes_on| {
                let left = network.service(queue, priority, passes_on).leftover(&before);
                left.map_err(|_| network.overloaded(queue, priority))
            };
            let next = path.get(at + 1);
            let goes_on = class.iter().filter(|&&(flow, hop)| {
                next.is_some_and(|next| network.flows[flow].path.get(hop + 1) == Some(next))
            });
            let link = network.link(queue, goes_on.map(|place| place.0));
            servers.push(Server { ends: left(false)?, passes_on: left(true)?, link: Some(link) });
            for (flow, hop) in class {
                let from = self.from(flow, hop);
                if at > 0 && from == Some(path[at - 1]) {
                    continue;
                }
                let along = network.flows[flow].path[hop..].iter().zip(&path[at..]);
                let last = at + along.take_while(|(own, of)| own == of).count() - 1;
                crossings.entry((at, Reverse(last), from)).or_default().push((flow, hop));
                from.into_iter().for_each(|from| links.entry((at, from)).or_default().push(flow));
            }
        }
        let numbers: Vec<(usize, usize)> = links.keys().copied().collect();
        let mut found = Vec::with_capacity(crossings.len());
        for ((first, Reverse(last), from), places) in crossings {
            let mut arrivals = ArrivalCurve::zero();
            for (flow, hop) in places {
                arrivals = arrivals.plus(self.arrivals[flow][hop].as_ref().map_err(|&error| error)?);
            }
            let link = from.and_then(|from| numbers.binary_search(&(first, from)).ok());
            found.push(Crossing { arrivals, first, last, link });
        }
        let links =
            links.into_iter().map(|((_, from), flows)| network.link(from, flows.into_iter())).collect();
        Ok(Tandem { servers, links, crossings: found })
    }

    /// The error for a queue without enough service for the flows of `priority` and higher ones.
    pub fn overloaded(&self, queue: usize, priority: u32) -> Unbounded {
        self.network.overloaded(queue, priority)
    }
}
