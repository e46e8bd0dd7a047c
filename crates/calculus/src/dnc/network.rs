//! Queues, and the flows that cross them.

use super::operators::Overload;
use super::order::queue_order;
use super::service::{RateLatency, ServiceCurve};
use crate::curve::ArrivalCurve;
use crate::number_format::format_number;
use crate::token_bucket::TokenBucket;

/// Arrivals of one priority that cross queues one after another.
#[derive(Clone, PartialEq, Debug)]
pub struct Flow {
    /// Arrival curve at the first queue, after the flow's limiters.
    pub arrivals: ArrivalCurve,
    /// Priority; 0 is served first. Flows of one priority are served in order of arrival.
    pub priority: u32,
    /// The queues in order, by index; at least one.
    pub path: Vec<usize>,
    /// Largest request or packet, in work. Used only with [`Packets::Whole`].
    pub packet: f64,
}

/// Unit in which queues serve and forward work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packets {
    /// A fluid, as in the thesis: a higher priority interrupts at once, and work is forwarded while it is served.
    Fluid,
    /// Packets that are served and forwarded whole. A higher priority waits for the packet in service, which is at most
    /// the largest packet of a lower priority. Forwarding delays work by up to one packet.
    Whole,
}

/// Rate-latency queues with strict priorities, and flows that cross them without a cycle.
///
/// A queue of capacity C and latency T serves at least C (t - T) in any t seconds with backlog, and never more than
/// C t; its work may arrive at the next queue another T later. The latency is 0 without
/// [`Network::with_latencies`].
#[derive(Clone, PartialEq, Debug)]
pub struct Network {
    pub(super) capacities: Vec<f64>,
    /// Latency of each queue, in seconds.
    pub(super) latencies: Vec<f64>,
    pub(super) flows: Vec<Flow>,
    pub(super) packets: Packets,
    /// Flows of each queue: (flow, index of the hop on its path).
    pub(super) passing: Vec<Vec<(usize, usize)>>,
    /// Queues in an order in which every flow passes them.
    pub(super) order: Vec<usize>,
}

/// An invalid network.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
pub enum NetworkError {
    /// An invalid capacity.
    #[error("queue {queue} of capacity {}: must be finite and above 0", format_number(*.capacity))]
    Capacity {
        /// Index of the queue.
        queue: usize,
        /// The rejected capacity.
        capacity: f64,
    },
    /// An invalid latency.
    #[error("queue {queue} of latency {} s: must be finite and not negative", format_number(*.latency))]
    Latency {
        /// Index of the queue.
        queue: usize,
        /// The rejected latency, in seconds.
        latency: f64,
    },
    /// A number of latencies that differs from the number of queues.
    #[error("{latencies} latencies for {queues} queues: must be one for each")]
    Latencies {
        /// Number of latencies.
        latencies: usize,
        /// Number of queues.
        queues: usize,
    },
    /// A flow without queues.
    #[error("flow {flow} has no path: it must cross at least one queue")]
    NoPath {
        /// Index of the flow.
        flow: usize,
    },
    /// A queue that does not exist.
    #[error("flow {flow} crosses queue {queue}: there are {queues} queues, numbered from 0")]
    Queue {
        /// Index of the flow.
        flow: usize,
        /// The unknown queue.
        queue: usize,
        /// Number of queues.
        queues: usize,
    },
    /// Paths that form a cycle, for which these analyses have no bound.
    #[error("the paths form a cycle through queue {queue}: they must all follow one order of queues")]
    Cycle {
        /// A queue on the cycle, or a queue after the cycle.
        queue: usize,
    },
    /// A packet size that is invalid or above the flow's burst.
    #[error("flow {flow} has packets of {}: must be from 0 to its burst, {}", format_number(*.packet), format_number(*.burst))]
    Packet {
        /// Index of the flow.
        flow: usize,
        /// Its largest packet.
        packet: f64,
        /// Its largest work at one moment.
        burst: f64,
    },
}

/// A flow without a bound, because a queue that its delay depends on is overloaded.
#[derive(Clone, Copy, PartialEq, Debug, thiserror::Error)]
#[error("queue {queue}: {overload}")]
pub struct Unbounded {
    /// The queue.
    pub queue: usize,
    /// The demand, and the service.
    pub overload: Overload,
}

impl Network {
    /// A network of queues with their capacities, in work per second, and of the flows that cross them.
    ///
    /// # Errors
    /// The first invalid queue or flow, by index.
    pub fn new(capacities: Vec<f64>, flows: Vec<Flow>, packets: Packets) -> Result<Network, NetworkError> {
        for (queue, &capacity) in capacities.iter().enumerate() {
            if !capacity.is_finite() || capacity <= 0.0 {
                return Err(NetworkError::Capacity { queue, capacity });
            }
        }
        let queues = capacities.len();
        let mut passing = vec![Vec::new(); queues];
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
                passing[queue].push((index, hop));
            }
        }
        let order = queue_order(queues, flows.iter().map(|flow| flow.path.as_slice()))
            .map_err(|queue| NetworkError::Cycle { queue })?;
        let latencies = vec![0.0; queues];
        Ok(Network { capacities, latencies, flows, packets, passing, order })
    }

    /// The same network with a latency for each queue, in seconds.
    ///
    /// # Errors
    /// The first invalid latency, or a number of latencies that differs from the number of queues.
    pub fn with_latencies(mut self, latencies: Vec<f64>) -> Result<Network, NetworkError> {
        if latencies.len() != self.capacities.len() {
            let (latencies, queues) = (latencies.len(), self.capacities.len());
            return Err(NetworkError::Latencies { latencies, queues });
        }
        for (queue, &latency) in latencies.iter().enumerate() {
            if !latency.is_finite() || latency < 0.0 {
                return Err(NetworkError::Latency { queue, latency });
            }
        }
        self.latencies = latencies;
        Ok(self)
    }

    /// Service of a queue for all flows of `priority` and higher priorities together. `passes_on` is true for flows
    /// that continue to another queue.
    pub(super) fn service(&self, queue: usize, priority: u32, passes_on: bool) -> ServiceCurve {
        let capacity = self.capacities[queue];
        let largest = |selects: fn(u32, u32) -> bool| {
            let flows = self.passing[queue].iter().map(|&(flow, _)| &self.flows[flow]);
            flows.filter(|flow| selects(flow.priority, priority)).map(|flow| flow.packet).fold(0.0, f64::max)
        };
        let late = match self.packets {
            Packets::Fluid => 0.0,
            // One packet of a lower priority may be in service at the start, and one packet of these flows may be
            // incomplete at the end.
            Packets::Whole if passes_on => largest(|flow, own| flow > own) + largest(|flow, own| flow <= own),
            Packets::Whole => largest(|flow, own| flow > own),
        };
        let latency = (late / capacity + self.latencies[queue]).min(f64::MAX);
        RateLatency::new(capacity, latency).expect("a capacity is finite and above 0").into()
    }

    /// Limit on the arrivals of some flows together by the link behind a queue: the link's rate, and a burst of the
    /// largest packet of these flows, which arrives whole, and of the work within the queue's latency. Work may leave up
    /// to the latency after its service, and late work and punctual work may arrive together.
    pub(super) fn link(&self, queue: usize, flows: impl Iterator<Item = usize>) -> TokenBucket {
        let packet = match self.packets {
            Packets::Fluid => 0.0,
            Packets::Whole => flows.map(|flow| self.flows[flow].packet).fold(0.0, f64::max),
        };
        let capacity = self.capacities[queue];
        TokenBucket::raw(capacity, (packet + capacity * self.latencies[queue]).min(f64::MAX))
    }

    /// Long-run work per second of the flows of `priority` and higher priorities at a queue.
    pub(super) fn load(&self, queue: usize, priority: u32) -> f64 {
        let flows = self.passing[queue].iter().map(|&(flow, _)| &self.flows[flow]);
        flows.filter(|flow| flow.priority <= priority).map(|flow| flow.arrivals.rate()).sum()
    }

    /// The error for a queue without enough service for the flows of `priority` and higher priorities.
    pub(super) fn overloaded(&self, queue: usize, priority: u32) -> Unbounded {
        let overload = Overload { load: self.load(queue, priority), service: self.capacities[queue] };
        Unbounded { queue, overload }
    }
}
