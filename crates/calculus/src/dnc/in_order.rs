//! Arrivals at each queue of a network with links and strict priorities, if flows of one priority are served in order
//! of arrival. The method is total flow analysis with shaping (TFA++; Mifdaoui and Leydier, "Beyond the
//! accuracy-complexity tradeoffs of compositional analyses using network calculus", RTSS 2017).
//!
//! At a queue, all flows of a priority share the service that higher priorities leave, and have one delay. All flows
//! that arrive over the same link are together limited by the rate of the link, plus a packet. The output of a flow has
//! two limits. The first is the arrivals of the flow, delayed by the queue's delay. The second follows from the service
//! that the queue's other flows leave for the flow in order of arrival
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

/// A network in which every queue serves flows of one priority in order of arrival. It has the arrivals at each hop of
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
        let mut analysis = InOrder { network, arrivals };
        for index in 0..analysis.network.order.len() {
            analysis.add_outputs(analysis.network.order[index]);
        }
        analysis
    }

    /// Adds the arrivals at the next hop of each flow that passes a queue.
    fn add_outputs(&mut self, queue: usize) {
        let network = &self.network;
        let mut here = network.passing[queue].clone();
        here.sort_by_key(|&(flow, _)| (network.flows[flow].priority, flow));
        let (mut done, mut outputs) = (0, Vec::new());
        for class in here.chunk_by(|a, b| network.flows[a.0].priority == network.flows[b.0].priority) {
            let goes_on = |&index: &usize| class[index].1 + 1 < network.flows[class[index].0].path.len();
            let continuing: Vec<usize> = (0..class.len()).filter(goes_on).collect();
            if !continuing.is_empty() {
                let leftover = self.leftover(queue, &here[..done], class);
                let output = |index: usize| (class[index].0, self.output(queue, &leftover, class, index));
                outputs.extend(continuing.into_iter().map(output));
            }
            done += class.len();
        }
        outputs.into_iter().for_each(|(flow, output)| self.arrivals[flow].push(output));
    }

    /// Service that higher priorities leave for the class of one priority at a queue, counted on departures, and the
    /// delay of the class at this queue.
    fn leftover(
        &self,
        queue: usize,
        before: &[Place],
        class: &[Place],
    ) -> Result<(ServiceCurve, f64), Unbounded> {
        let priority = self.network.flows[class[0].0].priority;
        let (before, all) = (self.total_arrivals(before)?, self.total_arrivals(class)?);
        let leftover = |passes_on| self.network.service(queue, priority, passes_on).leftover(&before);
        // A packet leaves when its last bit leaves.
        let delay = leftover(false).and_then(|leftover| leftover.delay(&all));
        let result = delay.and_then(|delay| Ok((leftover(true)?, delay)));
        result.map_err(|_| self.network.overloaded(queue, priority))
    }

    /// Output of a queue for one flow of a class.
    fn output(
        &self,
        queue: usize,
        leftover: &Result<(ServiceCurve, f64), Unbounded>,
        class: &[Place],
        index: usize,
    ) -> Result<ArrivalCurve, Unbounded> {
        let (flow, hop) = class[index];
        let (leftover, delay) = leftover.as_ref().map_err(|&error| error)?;
        let own = self.arrivals[flow][hop].as_ref().map_err(|&error| error)?;
        let overloaded = || self.network.overloaded(queue, self.network.flows[flow].priority);
        let later = own.delayed(*delay).ok_or_else(overloaded)?;
        let others = self.total_arrivals(&[&class[..index], &class[index + 1..]].concat())?;
        // If the other flows leave no service, only the delay limits the output.
        let alone = leftover.leftover_in_order(&others).and_then(|leftover| leftover.output(own));
        Ok(alone.map_or(later.clone(), |alone| later.min(&alone)))
    }

    /// Total arrivals of flows at one queue, within the limits of the links that they use.
    fn total_arrivals(&self, flows: &[Place]) -> Result<ArrivalCurve, Unbounded> {
        let mut by_link: BTreeMap<Option<usize>, Vec<Place>> = BTreeMap::new();
        for &(flow, hop) in flows {
            by_link.entry(self.previous_queue(flow, hop)).or_default().push((flow, hop));
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

    /// Queue before a hop of a flow; `None` at its first hop.
    fn previous_queue(&self, flow: usize, hop: usize) -> Option<usize> {
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
        let mut groups: BTreeMap<(usize, Reverse<usize>, Option<usize>), Vec<Place>> = BTreeMap::new();
        let mut links: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
        for (at, &queue) in path.iter().enumerate() {
            let (class, before): (Vec<Place>, Vec<Place>) = (network.passing[queue].iter())
                .filter(|&&(flow, _)| network.flows[flow].priority <= priority)
                .partition(|&&(flow, _)| network.flows[flow].priority == priority);
            let before = self.total_arrivals(&before)?;
            let leftover = |passes_on| {
                let leftover = network.service(queue, priority, passes_on).leftover(&before);
                leftover.map_err(|_| network.overloaded(queue, priority))
            };
            let next = path.get(at + 1);
            let goes_on = class.iter().filter(|&&(flow, hop)| {
                next.is_some_and(|next| network.flows[flow].path.get(hop + 1) == Some(next))
            });
            let link = network.link(queue, goes_on.map(|place| place.0));
            servers.push(Server { ends: leftover(false)?, passes_on: leftover(true)?, link: Some(link) });
            for (flow, hop) in class {
                let from = self.previous_queue(flow, hop);
                if at > 0 && from == Some(path[at - 1]) {
                    continue;
                }
                let along = network.flows[flow].path[hop..].iter().zip(&path[at..]);
                let last = at + along.take_while(|(a, b)| a == b).count() - 1;
                groups.entry((at, Reverse(last), from)).or_default().push((flow, hop));
                from.into_iter().for_each(|from| links.entry((at, from)).or_default().push(flow));
            }
        }
        let link_keys: Vec<(usize, usize)> = links.keys().copied().collect();
        let mut crossings = Vec::with_capacity(groups.len());
        for ((first, Reverse(last), from), places) in groups {
            let mut arrivals = ArrivalCurve::zero();
            for (flow, hop) in places {
                arrivals = arrivals.plus(self.arrivals[flow][hop].as_ref().map_err(|&error| error)?);
            }
            let link = from.and_then(|from| link_keys.binary_search(&(first, from)).ok());
            crossings.push(Crossing { arrivals, first, last, link });
        }
        let links =
            links.into_iter().map(|((_, from), flows)| network.link(from, flows.into_iter())).collect();
        Ok(Tandem { servers, links, crossings })
    }

    /// The error for a queue without enough service for the flows of `priority` and higher priorities.
    pub fn overloaded(&self, queue: usize, priority: u32) -> Unbounded {
        self.network.overloaded(queue, priority)
    }
}
