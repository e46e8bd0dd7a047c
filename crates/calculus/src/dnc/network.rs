//! Queues, and flows that cross them.

use super::operators::Overload;
use super::order::queue_order;
use super::service::{RateLatency, ServiceCurve};
use crate::curve::ArrivalCurve;
use crate::shown::shown;
use crate::token_bucket::TokenBucket;

/// Arrivals of one priority that cross queues one after another.
#[derive(Clone, PartialEq, Debug)]
pub struct Flow {
    /// What enters the first queue: what its limiters let pass.
    pub arrivals: ArrivalCurve,
    /// 0 is served first. Flows of one priority are served in order of arrival.
    pub priority: u32,
    /// The queues in order, by index; at least one.
    pub path: Vec<usize>,
    /// The largest request or packet, in work. Counts only for [`Packets::Whole`].
    pub packet: f64,
}

/// How work moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packets {
    /// As a fluid, as in the thesis: a higher priority interrupts at once, and work moves on as it is served.
    Fluid,
    /// In packets, each served whole and passed on whole. A higher priority waits for the packet in service, at most the
    /// largest of a lower one; and a queue passes on what it served up to a packet later.
    Whole,
}

/// Queues of constant rate and strict priorities, and flows that cross them without a cycle.
#[derive(Clone, PartialEq, Debug)]
pub struct Network {
    pub(super) capacities: Vec<f64>,
    pub(super) flows: Vec<Flow>,
    pub(super) packets: Packets,
    /// For each queue: (flow, which hop of its path).
    pub(super) at: Vec<Vec<(usize, usize)>>,
    /// Queues in an order in which every flow passes them.
    pub(super) order: Vec<usize>,
}

/// An invalid network.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
pub enum NetworkError {
    /// An invalid capacity.
    #[error("queue {queue} of capacity {}: must be finite and above 0", shown(*.capacity))]
    Capacity {
        /// Which queue.
        queue: usize,
        /// Its capacity.
        capacity: f64,
    },
    /// A flow that crosses nothing.
    #[error("flow {flow} has no path: it must cross at least one queue")]
    NoPath {
        /// Which flow.
        flow: usize,
    },
    /// A queue that does not exist.
    #[error("flow {flow} crosses queue {queue}, and there are {queues}, numbered from 0")]
    Queue {
        /// Which flow.
        flow: usize,
        /// The queue it names.
        queue: usize,
        /// How many there are.
        queues: usize,
    },
    /// Paths that lead in a circle, for which these analyses have no bound.
    #[error("the paths lead in a circle through queue {queue}: they must all follow one order of queues")]
    Circle {
        /// A queue of the circle, or behind one.
        queue: usize,
    },
    /// An invalid packet, or one that its own bucket does not let pass.
    #[error("flow {flow} has packets of {}: must be from 0 to its burst, {}", shown(*.packet), shown(*.burst))]
    Packet {
        /// Which flow.
        flow: usize,
        /// Its largest packet.
        packet: f64,
        /// Its largest work at once.
        burst: f64,
    },
}

/// A flow without a bound, because a queue that its delay depends on is asked for more than it has.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
#[error("queue {queue}: {overload}")]
pub struct Unbounded {
    /// The queue.
    pub queue: usize,
    /// What it is asked for.
    pub overload: Overload,
}

impl Network {
    /// Queues by capacity, in work per second, and the flows that cross them.
    ///
    /// # Errors
    /// The first queue or flow that is wrong, by index.
    pub fn new(capacities: Vec<f64>, flows: Vec<Flow>, packets: Packets) -> Result<Network, NetworkError> {
        for (queue, &capacity) in capacities.iter().enumerate() {
            if !capacity.is_finite() || capacity <= 0.0 {
                return Err(NetworkError::Capacity { queue, capacity });
            }
        }
        let queues = capacities.len();
        let mut at = vec![Vec::new(); queues];
        for (index, flow) in flows.iter().enumerate() {
            let (packet, burst) = (flow.packet, flow.arrivals.burst());
            if flow.path.is_empty() {
                return Err(NetworkError::NoPath { flow: index });
            }
            if let Some(&queue) = flow.path.iter().find(|&&queue| queue >= queues) {
                return Err(NetworkError::Queue { flow: index, queue, queues });
            }
            if !(0.0..=burst).contains(&packet) {
                return Err(NetworkError::Packet { flow: index, packet, burst });
            }
            for (hop, &queue) in flow.path.iter().enumerate() {
                at[queue].push((index, hop));
            }
        }
        let order = queue_order(queues, flows.iter().map(|flow| flow.path.as_slice()))
            .map_err(|queue| NetworkError::Circle { queue })?;
        Ok(Network { capacities, flows, packets, at, order })
    }

    /// What a queue gives to all flows of `priority` and those before, together. `passes_on`: for flows that go on from it.
    pub(super) fn service(&self, queue: usize, priority: u32, passes_on: bool) -> ServiceCurve {
        let capacity = self.capacities[queue];
        let largest = |of: fn(u32, u32) -> bool| {
            let flows = self.at[queue].iter().map(|&(flow, _)| &self.flows[flow]);
            flows.filter(|flow| of(flow.priority, priority)).map(|flow| flow.packet).fold(0.0, f64::max)
        };
        let late = match self.packets {
            Packets::Fluid => 0.0,
            // One packet of a lower priority is in service at the start, one of these is not whole at the end.
            Packets::Whole if passes_on => largest(|flow, own| flow > own) + largest(|flow, own| flow <= own),
            Packets::Whole => largest(|flow, own| flow > own),
        };
        let latency = (late / capacity).min(f64::MAX);
        RateLatency::new(capacity, latency).expect("a capacity is finite and above 0").into()
    }

    /// What the link behind a queue lets pass of some of its flows together, whatever came: its rate, and the packet that just ended.
    pub(super) fn link(&self, queue: usize, flows: impl Iterator<Item = usize>) -> TokenBucket {
        let packet = match self.packets {
            Packets::Fluid => 0.0,
            Packets::Whole => flows.map(|flow| self.flows[flow].packet).fold(0.0, f64::max),
        };
        TokenBucket::raw(self.capacities[queue], packet)
    }

    /// Work that the flows of `priority` and those before bring to a queue in a second, in the long run.
    pub(super) fn asked(&self, queue: usize, priority: u32) -> f64 {
        let flows = self.at[queue].iter().map(|&(flow, _)| &self.flows[flow]);
        flows.filter(|flow| flow.priority <= priority).map(|flow| flow.arrivals.rate()).sum()
    }

    /// That a queue has not enough for the flows of `priority` and those before.
    pub(super) fn overloaded(&self, queue: usize, priority: u32) -> Unbounded {
        let overload = Overload { asked: self.asked(queue, priority), served: self.capacities[queue] };
        Unbounded { queue, overload }
    }
}
