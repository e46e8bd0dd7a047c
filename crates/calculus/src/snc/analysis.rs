//! Which expression stands for a flow's latency: thesis, appendices A.3 and A.4.

use super::expressions::{ArrivalId, Expressions, ServiceId};
use super::latency::{Latency, Tail};
use super::network::Plan;

/// A way to analyse a flow in its plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Analysis {
    /// SNC-Meister's: traffic that shares the whole path is taken off the convolution of both queues, other traffic
    /// is aggregated by where it comes from before it leaves. No dependence arises but what the workloads have.
    Bipartite,
    /// A latency at each queue, with what may exceed it split over them. To compare. Among equal priorities flows
    /// are taken in the order given, so it is a guarantee only where priorities differ.
    HopByHop,
    /// One latency at the convolution of what each queue leaves. To compare, as `HopByHop`.
    Convolution,
}

impl Analysis {
    pub(super) fn latency(self, plan: &Plan, of: &mut Expressions, flow: usize, excess: f64) -> Latency {
        match self {
            Analysis::Bipartite => bipartite(plan, of, flow, excess),
            Analysis::HopByHop | Analysis::Convolution => in_turn(plan, of, flow, excess, self),
        }
    }
}

/// The arrivals of a flow where they enter the plan. Names were checked with the plan.
fn leaf(plan: &Plan, of: &mut Expressions, flow: usize) -> ArrivalId {
    let flow = &plan.flows[flow];
    of.arrivals(flow.model, flow.group).expect("a group of the network is one of its expressions")
}

fn server(plan: &Plan, of: &mut Expressions, queue: usize) -> ServiceId {
    of.server(plan.rates[queue]).expect("a rate of the network was checked")
}

/// What a queue leaves of its rate after the flows.
fn rest(plan: &Plan, of: &mut Expressions, queue: usize, flows: &[usize]) -> ServiceId {
    let service = server(plan, of, queue);
    match together(plan, of, flows) {
        Some(arrivals) => of.leftover(service, arrivals),
        None => service,
    }
}

fn together(plan: &Plan, of: &mut Expressions, flows: &[usize]) -> Option<ArrivalId> {
    let arrivals: Vec<ArrivalId> = flows.iter().map(|&flow| leaf(plan, of, flow)).collect();
    of.aggregate_all(&arrivals)
}

/// Equation A.5: ((S1 - Y) conv (V1 - DZ)) - X.
fn bipartite(plan: &Plan, of: &mut Expressions, flow: usize, excess: f64) -> Latency {
    let own = &plan.flows[flow];
    let others = |queue: usize, lowest: u32| {
        let other = move |&other: &usize| other != flow && plan.flows[other].priority <= lowest;
        plan.passing[queue].iter().copied().filter(other)
    };
    let first = own.queues[0];
    let Some(&second) = own.queues.get(1) else {
        let cross: Vec<usize> = others(first, own.priority).collect();
        let service = rest(plan, of, first, &cross);
        let arrivals = leaf(plan, of, flow);
        return of.latency_beyond(arrivals, service, excess);
    };
    let shares = |flow: &usize| plan.flows[*flow].queues.get(1) == Some(&second);
    let (x, y): (Vec<usize>, Vec<usize>) = others(first, own.priority).partition(shares);
    let at_first = rest(plan, of, first, &y);
    let departures = departures(plan, of, flow, second);
    let at_second = server(plan, of, second);
    let at_second = match of.aggregate_all(&departures) {
        Some(departures) => of.leftover(at_second, departures),
        None => at_second,
    };
    let mut service = of.convolution(at_first, at_second);
    if let Some(shared) = together(plan, of, &x) {
        service = of.leftover(service, shared);
    }
    let arrivals = leaf(plan, of, flow);

    of.latency_beyond(arrivals, service, excess)
}

/// What comes to the second queue from each first queue but the flow's own: DZi of appendix A.4.
fn departures(plan: &Plan, of: &mut Expressions, flow: usize, second: usize) -> Vec<ArrivalId> {
    let own = &plan.flows[flow];
    let mut sources: Vec<(usize, u32)> = Vec::new();
    for &other in &plan.passing[second] {
        let (source, priority) = (plan.flows[other].queues[0], plan.flows[other].priority);
        if priority > own.priority || source == own.queues[0] {
            continue;
        }
        match sources.iter_mut().find(|(known, _)| *known == source) {
            // The whole of Zi is taken as of its lowest priority, so that it can be aggregated.
            Some((_, lowest)) => *lowest = (*lowest).max(priority),
            None => sources.push((source, priority)),
        }
    }
    let mut departures = Vec::new();
    for (source, lowest) in sources {
        let passing = plan.passing[source].iter().copied();
        let (z, r): (Vec<usize>, Vec<usize>) = passing
            .filter(|&other| plan.flows[other].priority <= lowest)
            .partition(|&other| plan.flows[other].queues.get(1) == Some(&second));
        let service = rest(plan, of, source, &r);
        if let Some(arrivals) = together(plan, of, &z) {
            departures.push(of.output(arrivals, service));
        }
    }
    departures
}

/// Flows one after the other by priority, the one in question last: each takes its share of its queues and goes on as
/// an output of the first to the second.
fn in_turn(plan: &Plan, of: &mut Expressions, flow: usize, excess: f64, analysis: Analysis) -> Latency {
    let own = &plan.flows[flow];
    let mut order: Vec<usize> = (0..plan.flows.len())
        .filter(|&other| other != flow && plan.flows[other].priority <= own.priority)
        .collect();
    order.sort_by_key(|&other| plan.flows[other].priority);
    let mut left: Vec<ServiceId> = (0..plan.rates.len()).map(|queue| server(plan, of, queue)).collect();
    for other in order {
        let mut arrivals = leaf(plan, of, other);
        for &queue in &plan.flows[other].queues {
            let service = left[queue];
            left[queue] = of.leftover(service, arrivals);
            arrivals = of.output(arrivals, service);
        }
    }
    let arrivals = leaf(plan, of, flow);
    let services: Vec<ServiceId> = own.queues.iter().map(|&queue| left[queue]).collect();
    if analysis == Analysis::Convolution {
        let service = services.into_iter().reduce(|path, service| of.convolution(path, service));
        return of.latency_beyond(arrivals, service.expect("a path has a queue"), excess);
    }
    let mut arrivals = arrivals;
    let mut total = Tail { seconds: 0.0, theta: 0.0 };
    for &service in &services {
        match of.latency_beyond(arrivals, service, excess / services.len() as f64) {
            Latency::Bounded(tail) => {
                total = Tail { seconds: total.seconds + tail.seconds, theta: tail.theta };
            }
            unstable => return unstable,
        }
        arrivals = of.output(arrivals, service);
    }
    Latency::Bounded(total)
}
