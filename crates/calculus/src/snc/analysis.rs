//! Which expression stands for a flow's latency: thesis, appendices A.3 and A.4.

use super::expressions::{ArrivalId, Expressions, ServiceId};
use super::latency::{Latency, Tail};
use super::network::Plan;

/// An expression of more is not built: what comes to a queue is written down for each way that it may have come.
pub(super) const MOST_NODES: usize = 1 << 16;

/// A way to analyse a flow in its plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Analysis {
    /// SNC-Meister's: traffic that shares the whole path is taken off the convolution of its queues, other traffic
    /// is aggregated by where it comes from before it leaves. Over paths of one or two queues, no queue being first of one
    /// and second of another, no dependence arises but what the workloads have. Over longer paths, of which the thesis says
    /// nothing, it does: what leaves a queue depends on what it met there, and is bounded by Hoelder's inequality.
    Bipartite,
    /// A latency at each queue, with what may exceed it split over them. To compare. Among equal priorities flows
    /// are taken in the order given, so it is a guarantee only where priorities differ.
    HopByHop,
    /// One latency at the convolution of what each queue leaves. To compare, as `HopByHop`.
    Convolution,
}

impl Analysis {
    /// Nothing if the expression would be larger than [`MOST_NODES`].
    pub(super) fn latency(
        self,
        plan: &Plan,
        of: &mut Expressions,
        flow: usize,
        excess: f64,
    ) -> Option<Latency> {
        let latency = match self {
            Analysis::Bipartite => along(plan, of, flow, excess)?,
            Analysis::HopByHop | Analysis::Convolution => in_turn(plan, of, flow, excess, self),
        };
        // A request that comes within a step is late from then on, and not from the end of the step.
        let late = match self {
            _ if !plan.within_steps => 0.0,
            Analysis::HopByHop => of.step * plan.flows[flow].queues.len() as f64,
            Analysis::Bipartite | Analysis::Convolution => of.step,
        };
        Some(match latency {
            Latency::Bounded(tail) => Latency::Bounded(Tail { seconds: tail.seconds + late, ..tail }),
            unstable => unstable,
        })
    }
}

/// The arrivals of a flow where they enter the plan. Names were checked with the plan.
fn leaf(plan: &Plan, of: &mut Expressions, flow: usize) -> ArrivalId {
    let flow = &plan.flows[flow];
    of.arrivals(flow.model, flow.group).expect("a group of the network is one of its expressions")
}

/// A queue's rate, after what is served whole and, where busy periods begin within steps, so many `steps` of service.
fn server(plan: &Plan, of: &mut Expressions, queue: usize, (whole, steps): (f64, f64)) -> ServiceId {
    let lost = if plan.within_steps { plan.rates[queue] * of.step * steps } else { 0.0 };
    of.server_after(plan.rates[queue], (whole + lost).min(f64::MAX))
        .expect("a rate of the network was checked, and packets are finite")
}

/// The largest of what some flows have served whole.
fn packet(plan: &Plan, flows: impl IntoIterator<Item = usize>) -> f64 {
    flows.into_iter().map(|flow| plan.flows[flow].packet).fold(0.0, f64::max)
}

/// What a queue may be busy with when a flow of `priority` could begin, and is not interrupted in: one packet of a flow after it.
fn in_service(plan: &Plan, queue: usize, priority: u32) -> f64 {
    let after = plan.passing[queue].iter().copied().filter(|&flow| plan.flows[flow].priority > priority);
    plan.in_service[queue].max(packet(plan, after))
}

/// (((S1 - C1) conv (S2 - C2)) - P2) conv ... conv (Sn - Cn) - Pn, which for two queues is equation A.5.
///
/// Pk shares the path from its first queue up to the k-th and no further; Pn is X of the thesis, all the way. Ck is all else at the
/// k-th queue, as it arrives there; P1 is of C1. Follow a busy period back from the last queue, as for
/// [`crate::Network::aggregate`]: over the part of it at each queue, that queue's whole rate went to the flow, to those that share the
/// path there, and to Ck; and what shares the path up to a queue has left no more there than it brought to the first.
///
/// Where requests are served whole, each queue may first be busy with one of a priority after the flow's, and of what it gave to those
/// that go on from it one packet may not have left yet: the busy period at the next queue began before that came. So the servers here
/// come after as much work. The last queue gives what it gives: a request is late until its last bit is served, and then it leaves.
///
/// Where busy periods begin within steps ([`super::Network::within_steps`]), all that came in the step of their beginning counts, and of
/// the service up to a step of it is lost; at a queue before another, whose busy period begins within a step too, up to one more at that
/// end. That step is of both queues then, and a service of one step more is only better.
fn along(plan: &Plan, of: &mut Expressions, flow: usize, excess: f64) -> Option<Latency> {
    let own = &plan.flows[flow];
    let first = own.queues[0];
    // How many queues of the path another flow shares, from the first on.
    let shared = |other: usize| {
        let queues = &plan.flows[other].queues;
        let from = queues.iter().position(|&queue| queue == first).unwrap_or(queues.len());
        queues[from..].iter().zip(&own.queues).take_while(|(a, b)| a == b).count()
    };
    let others = |queue: usize| {
        let other = move |&other: &usize| other != flow && plan.flows[other].priority <= own.priority;
        plan.passing[queue].iter().copied().filter(other)
    };
    let mut path: Option<ServiceId> = None;
    for (hop, &queue) in own.queues.iter().enumerate() {
        let cross: Vec<usize> = others(queue).filter(|&other| shared(other) <= hop.max(1)).collect();
        let onward = own.queues.len() > hop + 1;
        let going_on =
            others(first).filter(|&other| onward && shared(other) > hop + 1).chain(onward.then_some(flow));
        let whole = in_service(plan, queue, own.priority) + packet(plan, going_on);
        let steps = if onward { 2.0 } else { 1.0 };
        let service = rest(plan, of, queue, (whole, steps), &cross)?;
        let Some(before) = path else {
            path = Some(service);
            continue;
        };
        let service = of.convolution(before, service);
        let ending: Vec<usize> = others(first).filter(|&other| shared(other) == hop + 1).collect();
        path = Some(match arriving(plan, of, first, &ending)? {
            Some(ending) => of.leftover(service, ending),
            None => service,
        });
    }
    let service = path.expect("a path has a queue");
    let arrivals = leaf(plan, of, flow);
    Some(of.latency_beyond(arrivals, service, excess))
}

/// What a queue leaves of its rate after the flows, as they arrive there, and after what is served whole.
fn rest(
    plan: &Plan,
    of: &mut Expressions,
    queue: usize,
    first: (f64, f64),
    flows: &[usize],
) -> Option<ServiceId> {
    let service = server(plan, of, queue, first);
    Some(match arriving(plan, of, queue, flows)? {
        Some(arrivals) => of.leftover(service, arrivals),
        None => service,
    })
}

/// What flows bring to a queue together: as they are those that enter there, the others as they leave the queues before, those of
/// each together (DZi of appendix A.4). Of no flows there is nothing.
fn arriving(plan: &Plan, of: &mut Expressions, queue: usize, flows: &[usize]) -> Option<Option<ArrivalId>> {
    if of.nodes.len() > MOST_NODES {
        return None;
    }
    let mut arrivals = Vec::new();
    let mut sources: Vec<(usize, Vec<usize>)> = Vec::new();
    for &flow in flows {
        let hop = plan.flows[flow].queues.iter().position(|&at| at == queue).expect("it passes the queue");
        let Some(before) = hop.checked_sub(1) else {
            arrivals.push(leaf(plan, of, flow));
            continue;
        };
        let source = plan.flows[flow].queues[before];
        match sources.iter_mut().find(|(known, _)| *known == source) {
            Some((_, members)) => members.push(flow),
            None => sources.push((source, vec![flow])),
        }
    }
    for (source, members) in sources {
        arrivals.push(leaving(plan, of, source, &members)?);
    }
    Some(of.aggregate_all(&arrivals))
}

/// How flows leave a queue together. All are taken as of their lowest priority, so that they can be aggregated before they leave. They
/// leave as whole packets, of which one at a time is in service.
fn leaving(plan: &Plan, of: &mut Expressions, queue: usize, members: &[usize]) -> Option<ArrivalId> {
    let lowest = members.iter().map(|&flow| plan.flows[flow].priority).max().unwrap_or(0);
    let others: Vec<usize> = (plan.passing[queue].iter().copied())
        .filter(|other| plan.flows[*other].priority <= lowest && !members.contains(other))
        .collect();
    let whole = in_service(plan, queue, lowest) + packet(plan, members.iter().copied());
    let service = rest(plan, of, queue, (whole, 1.0), &others)?;
    let arrivals = arriving(plan, of, queue, members)?.expect("there are members");
    Some(of.output(arrivals, service))
}

/// Flows one after the other by priority, the one in question last: each takes its share of its queues and goes on as
/// an output of the first to the second.
fn in_turn(plan: &Plan, of: &mut Expressions, flow: usize, excess: f64, analysis: Analysis) -> Latency {
    let own = &plan.flows[flow];
    let mut order: Vec<usize> = (0..plan.flows.len())
        .filter(|&other| other != flow && plan.flows[other].priority <= own.priority)
        .collect();
    order.sort_by_key(|&other| plan.flows[other].priority);
    // Of whatever priority a flow is, it waits for one packet at most, and has one in service.
    let mut left: Vec<ServiceId> = (0..plan.rates.len())
        .map(|queue| {
            let one = packet(plan, plan.passing[queue].iter().copied());
            server(plan, of, queue, (one + one.max(plan.in_service[queue]), 2.0))
        })
        .collect();
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
