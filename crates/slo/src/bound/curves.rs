//! Method `dnc`: queueing delays of a component from arrival and service curves.

use leeward_calculus::{
    ArrivalCurve, Flow, Network, NetworkError, Overload, Packets, RateLatency, TokenBucket,
};

use super::components::Parts;
use super::{Unbounded, Unit};
use crate::Queue;

/// Reason why a part has no bound, with the index of the queue.
#[derive(Clone, Copy, Debug)]
pub(super) enum Fault {
    Overload(usize, Overload),
    Cycle(usize),
}

impl Fault {
    /// Converts the fault to an error about one part.
    pub fn into_error(self, parts: &Parts<'_>, part: usize) -> Unbounded {
        let (workload, stage) = parts.place(part);
        match self {
            Fault::Overload(queue, overload) => {
                Unbounded::Overload { workload, stage, queue: parts.queue(queue), overload }
            }
            Fault::Cycle(queue) => Unbounded::Cycle { workload, stage, queue: parts.queue(queue) },
        }
    }
}

/// Returns the queueing delay of each part of a component, in the order of its parts.
pub(super) fn delays(parts: &Parts<'_>, component: usize) -> Vec<Result<f64, Fault>> {
    let queues = parts.queues(component);
    match queues[..] {
        [queue] => single_queue_delays(parts, component, queue),
        _ => multi_queue_delays(parts, component, &queues),
    }
}

/// Returns the delays at one queue. Parts of one priority have one bound: they share the service left by higher
/// priorities, in order of arrival.
///
/// With one bucket per part and fluid service, this is SLO equation 5.1.
fn single_queue_delays(parts: &Parts<'_>, component: usize, queue: usize) -> Vec<Result<f64, Fault>> {
    let ids = &parts.components[component];
    let &Queue { capacity, latency, .. } = &parts.system.queues[queue];
    let mut order: Vec<usize> = (0..ids.len()).collect();
    order.sort_by_key(|&at| parts.parts[ids[at]].priority);
    // `blocking[i]` is the largest packet of the parts in `order[i..]`, or of the work in service if that is larger.
    let mut blocking = vec![parts.in_service(component, queue)];
    for &at in order.iter().rev() {
        blocking.push(blocking[blocking.len() - 1].max(parts.packet(ids[at])));
    }
    blocking.reverse();
    let mut delays = vec![Ok(0.0); ids.len()];
    let (mut before, mut done) = (ArrivalCurve::zero(), 0);
    for class in order.chunk_by(|&a, &b| parts.parts[ids[a]].priority == parts.parts[ids[b]].priority) {
        done += class.len();
        let own = class.iter().fold(ArrivalCurve::zero(), |sum, &at| sum.plus(&parts.limits(ids[at])));
        let all = before.plus(&own);
        let late = (blocking[done] / capacity + latency).min(f64::MAX);
        let service = RateLatency::new(capacity, late).expect("a capacity is finite and above 0");
        let left = leeward_calculus::ServiceCurve::from(service).leftover(&before);
        let delay = left.and_then(|left| left.delay(&own));
        let delay =
            delay.map_err(|_| Fault::Overload(queue, Overload { load: all.rate(), service: capacity }));
        class.iter().for_each(|&at| delays[at] = delay);
        before = all;
    }
    delays
}

/// Returns the delays over several queues: for each part, the lower result of two analyses.
fn multi_queue_delays(parts: &Parts<'_>, component: usize, queues: &[usize]) -> Vec<Result<f64, Fault>> {
    let count = parts.components[component].len();
    let network = match network(parts, component, queues, flows(parts, component, queues)) {
        Ok(network) => network,
        Err(fault) => return vec![Err(fault); count],
    };
    let both = network.aggregate().into_iter().zip(network.hop_by_hop());
    let least = both.map(|bounds| match bounds {
        (Ok(a), Ok(b)) => Ok(a.min(b)),
        (Ok(one), Err(_)) | (Err(_), Ok(one)) => Ok(one),
        (Err(fault), Err(_)) => Err(Fault::Overload(queues[fault.queue], fault.overload)),
    });
    least.take(count).collect()
}

/// Returns the parts of a component as flows over its queues, in order.
pub(super) fn flows(parts: &Parts<'_>, component: usize, queues: &[usize]) -> Vec<Flow> {
    let ranks = ranks(parts, component);
    let flow = |&part: &usize| Flow {
        arrivals: parts.limits(part),
        priority: rank(&ranks, parts.parts[part].priority),
        path: local_path(parts.parts[part].route, queues),
        packet: parts.packet(part),
    };
    parts.components[component].iter().map(flow).collect()
}

/// Returns the network of a component. The given flows come first, and then flows for requests in service.
pub(super) fn network(
    parts: &Parts<'_>,
    component: usize,
    queues: &[usize],
    mut flows: Vec<Flow>,
) -> Result<Network, Fault> {
    // A request in service at a device counts as a flow of one packet at the lowest priority. Other flows wait for at
    // most one such packet.
    let last = flows.iter().map(|flow| flow.priority + 1).max().unwrap_or(0);
    for (at, &queue) in queues.iter().enumerate() {
        let packet = parts.in_service(component, queue);
        if packet > 0.0 {
            let arrivals = TokenBucket::new(0.0, packet).expect("a packet is finite and not negative").into();
            flows.push(Flow { arrivals, priority: last, path: vec![at], packet });
        }
    }
    let packets = if parts.settings.unit == Unit::Fluid { Packets::Fluid } else { Packets::Whole };
    let of = |number: fn(&Queue) -> f64| queues.iter().map(|&at| number(&parts.system.queues[at])).collect();
    let network = Network::new(of(|queue| queue.capacity), flows, packets);
    let network = network.and_then(|network| network.with_latencies(of(|queue| queue.latency)));
    network.map_err(|error| match error {
        NetworkError::Cycle { queue } => Fault::Cycle(queues[queue]),
        error => unreachable!("the system was validated: {error}"),
    })
}

/// Converts a route to positions in the sorted queues of its component.
pub(super) fn local_path(route: &[usize], queues: &[usize]) -> Vec<usize> {
    let place = |queue| queues.binary_search(queue).expect("a component has all queues of its parts");
    route.iter().map(place).collect()
}

/// Returns the distinct priorities of a component, ascending.
pub(super) fn ranks(parts: &Parts<'_>, component: usize) -> Vec<u32> {
    let mut ranks: Vec<u32> =
        parts.components[component].iter().map(|&part| parts.parts[part].priority).collect();
    ranks.sort_unstable();
    ranks.dedup();
    ranks
}

/// Returns the position of a part's priority in `ranks`. This position is the priority of the part's flow.
pub(super) fn rank(ranks: &[u32], priority: u32) -> u32 {
    ranks.partition_point(|&rank| rank < priority) as u32
}
