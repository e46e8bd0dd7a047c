//! The expression for a flow's latency under each analysis (thesis, appendices A.3 and A.4).

use super::expressions::{ArrivalId, Expressions, ServiceId};
use super::plan::Plan;
use super::tail::{Latency, Tail};

/// Maximum number of nodes of an expression. An expression contains the arrivals at a queue once for each route to the
/// queue.
pub(super) const MOST_NODES: usize = 1 << 16;

/// A way to analyse a flow of a network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Analysis {
    /// SNC-Meister's analysis. Traffic on the whole path is subtracted from the convolution of its queues; other
    /// traffic is aggregated by its origin before it leaves a queue. In a bipartite network (paths of at most two
    /// queues, no queue first on one path and second on another), operands are dependent only if their workloads are.
    /// Longer paths, which the thesis does not cover, have more dependence: the output of a queue depends on the other
    /// flows at the queue. Hoelder's inequality covers this dependence.
    Bipartite,
    /// A latency at each queue; the queues share the excess probability. It serves for comparison. Flows of equal
    /// priority are taken in the order of the network, so the bound is a guarantee only if priorities differ.
    HopByHop,
    /// One latency at the convolution of the service left at each queue. It serves for comparison, as `HopByHop` does.
    Convolution,
}

impl Analysis {
    /// The latency of a flow; `None` if the expression would be larger than [`MOST_NODES`].
    pub(super) fn latency(
        self,
        plan: &Plan,
        arena: &mut Expressions,
        flow: usize,
        excess: f64,
    ) -> Option<Latency> {
        let latency = match self {
            Analysis::Bipartite => bipartite_latency(plan, arena, flow, excess)?,
            Analysis::HopByHop | Analysis::Convolution => sequential_latency(plan, arena, flow, excess, self),
        };
        // Delays count from the arrival of a request within a step, not from the end of the step.
        let late = match self {
            _ if !plan.within_steps => 0.0,
            Analysis::HopByHop => arena.step * plan.flows[flow].queues.len() as f64,
            Analysis::Bipartite | Analysis::Convolution => arena.step,
        };
        Some(match latency {
            Latency::Bounded(tail) => Latency::Bounded(Tail { seconds: tail.seconds + late, ..tail }),
            unstable => unstable,
        })
    }
}

/// Arrivals of a flow at its first queue. The network has checked all names.
fn first_arrivals(plan: &Plan, arena: &mut Expressions, flow: usize) -> ArrivalId {
    let flow = &plan.flows[flow];
    arena.arrivals(flow.model, flow.group).expect("a group of the network is one of its expressions")
}

/// A server with the queue's rate that first serves `whole` work, for packets that are served whole, and the work of the
/// queue's latency. If busy periods begin within steps, the server also starts later, by `steps` steps of service.
fn server(plan: &Plan, arena: &mut Expressions, queue: usize, (whole, steps): (f64, f64)) -> ServiceId {
    let lost = if plan.within_steps { plan.rates[queue] * arena.step * steps } else { 0.0 };
    let late = plan.rates[queue] * plan.latencies[queue];
    arena
        .server_after(plan.rates[queue], (whole + lost + late).min(f64::MAX))
        .expect("a rate of the network was checked, and packets are finite")
}

/// Largest packet of some flows.
fn packet(plan: &Plan, flows: impl IntoIterator<Item = usize>) -> f64 {
    flows.into_iter().map(|flow| plan.flows[flow].packet).fold(0.0, f64::max)
}

/// Work in service at a queue that a flow of `priority` cannot interrupt: the queue's own work in service, or one
/// packet of a lower priority if that is larger.
fn in_service(plan: &Plan, queue: usize, priority: u32) -> f64 {
    let after = plan.passing[queue].iter().copied().filter(|&flow| plan.flows[flow].priority > priority);
    plan.in_service[queue].max(packet(plan, after))
}

/// (((S1 - C1) conv (S2 - C2)) - P2) conv ... conv (Sn - Cn) - Pn, which for two queues is equation A.5.
///
/// Pk is the traffic that shares the path from its first queue up to exactly the k-th. Pn shares the whole path, and is
/// X in the thesis. Ck is all other traffic at the k-th queue, with its arrivals at that queue; P1 is part of C1. The
/// proof follows a busy period back from the last queue, as for [`crate::Network::aggregate`]. During the part at the
/// k-th queue, the whole rate of this queue serves the flow, the flows that share the path up to this queue, and Ck. A
/// flow that shares the path up to a queue has sent no more work through this queue than it brought to the first queue.
///
/// If requests are served whole, each queue may first serve a request of a lower priority. If the busy period at the
/// next queue began before a packet arrived at that queue, the packet may still be missing from the service to flows
/// that continue. Each server therefore first serves one such request and one such packet. The last queue has no such
/// packet: the delay of a request ends when its last bit is served and it leaves.
///
/// If busy periods begin within steps ([`super::Network::set_within_steps`]), all arrivals in the first step count, and
/// up to one step of the service is lost. At every queue but the last, the busy period at the next queue also begins
/// within a step. Up to one more step of service is therefore lost at the end. That step counts at both queues, which
/// only adds service, so the bound stays valid.
fn bipartite_latency(plan: &Plan, arena: &mut Expressions, flow: usize, excess: f64) -> Option<Latency> {
    let own = &plan.flows[flow];
    let first = own.queues[0];
    // Number of queues of the path that another flow shares, from the first on.
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
        let service = leftover_service(plan, arena, queue, (whole, steps), &cross)?;
        let Some(before) = path else {
            path = Some(service);
            continue;
        };
        let service = arena.convolution(before, service);
        let ending: Vec<usize> = others(first).filter(|&other| shared(other) == hop + 1).collect();
        path = Some(match total_arrivals(plan, arena, first, &ending)? {
            Some(ending) => arena.leftover(service, ending),
            None => service,
        });
    }
    let service = path.expect("a path has a queue");
    let arrivals = first_arrivals(plan, arena, flow);
    Some(arena.latency_beyond(arrivals, service, excess))
}

/// Service that a queue has left after the arrivals of the given flows at this queue, and after the packets that are
/// served whole.
fn leftover_service(
    plan: &Plan,
    arena: &mut Expressions,
    queue: usize,
    first: (f64, f64),
    flows: &[usize],
) -> Option<ServiceId> {
    let service = server(plan, arena, queue, first);
    Some(match total_arrivals(plan, arena, queue, flows)? {
        Some(arrivals) => arena.leftover(service, arrivals),
        None => service,
    })
}

/// Total arrivals of flows at a queue. Flows that enter the network at this queue arrive unchanged. The other flows
/// arrive as outputs of their previous queues, one output for each previous queue (DZi of appendix A.4). `Some(None)`
/// without flows.
fn total_arrivals(
    plan: &Plan,
    arena: &mut Expressions,
    queue: usize,
    flows: &[usize],
) -> Option<Option<ArrivalId>> {
    if arena.nodes.len() > MOST_NODES {
        return None;
    }
    let mut arrivals = Vec::new();
    let mut sources: Vec<(usize, Vec<usize>)> = Vec::new();
    for &flow in flows {
        let hop =
            plan.flows[flow].queues.iter().position(|&at| at == queue).expect("the flow passes the queue");
        let Some(before) = hop.checked_sub(1) else {
            arrivals.push(first_arrivals(plan, arena, flow));
            continue;
        };
        let source = plan.flows[flow].queues[before];
        match sources.iter_mut().find(|(known, _)| *known == source) {
            Some((_, members)) => members.push(flow),
            None => sources.push((source, vec![flow])),
        }
    }
    for (source, members) in sources {
        arrivals.push(group_output(plan, arena, source, &members)?);
    }
    Some(arena.aggregate_all(&arrivals))
}

/// Output of a queue for several flows together. All flows get the lowest priority among them, so that they can be
/// aggregated before they leave. They leave as whole packets, and one packet at a time is in service.
fn group_output(plan: &Plan, arena: &mut Expressions, queue: usize, members: &[usize]) -> Option<ArrivalId> {
    let lowest = members.iter().map(|&flow| plan.flows[flow].priority).max().unwrap_or(0);
    let others: Vec<usize> = (plan.passing[queue].iter().copied())
        .filter(|other| plan.flows[*other].priority <= lowest && !members.contains(other))
        .collect();
    let whole = in_service(plan, queue, lowest) + packet(plan, members.iter().copied());
    let service = leftover_service(plan, arena, queue, (whole, 1.0), &others)?;
    let arrivals = total_arrivals(plan, arena, queue, members)?.expect("there are members");
    Some(arena.output(arrivals, service))
}

/// Subtracts flows from the service of their queues one after another by priority, and analyses `flow` last. Each flow
/// takes its share of the service of a queue, and arrives at the next queue as the output of this queue.
fn sequential_latency(
    plan: &Plan,
    arena: &mut Expressions,
    flow: usize,
    excess: f64,
    analysis: Analysis,
) -> Latency {
    let own = &plan.flows[flow];
    let mut order: Vec<usize> = (0..plan.flows.len())
        .filter(|&other| other != flow && plan.flows[other].priority <= own.priority)
        .collect();
    order.sort_by_key(|&other| plan.flows[other].priority);
    // A flow of any priority waits for at most one packet, and has one packet in service.
    let mut leftover: Vec<ServiceId> = (0..plan.rates.len())
        .map(|queue| {
            let largest = packet(plan, plan.passing[queue].iter().copied());
            server(plan, arena, queue, (largest + largest.max(plan.in_service[queue]), 2.0))
        })
        .collect();
    for other in order {
        let mut arrivals = first_arrivals(plan, arena, other);
        for &queue in &plan.flows[other].queues {
            let service = leftover[queue];
            leftover[queue] = arena.leftover(service, arrivals);
            arrivals = arena.output(arrivals, service);
        }
    }
    let arrivals = first_arrivals(plan, arena, flow);
    let services: Vec<ServiceId> = own.queues.iter().map(|&queue| leftover[queue]).collect();
    if analysis == Analysis::Convolution {
        let service = services.into_iter().reduce(|path, service| arena.convolution(path, service));
        return arena.latency_beyond(arrivals, service.expect("a path has a queue"), excess);
    }
    let mut arrivals = arrivals;
    let mut total = Tail { seconds: 0.0, theta: 0.0 };
    for &service in &services {
        match arena.latency_beyond(arrivals, service, excess / services.len() as f64) {
            Latency::Bounded(tail) => {
                total = Tail { seconds: total.seconds + tail.seconds, theta: tail.theta };
            }
            unstable => return unstable,
        }
        arrivals = arena.output(arrivals, service);
    }
    Latency::Bounded(total)
}
