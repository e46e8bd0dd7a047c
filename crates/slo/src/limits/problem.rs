//! Input of a choice of limits: workloads with free limits, and other workloads with fixed limits.

use leeward_calculus::{ArrivalCurve, Packets, TokenBucket};

use super::super::system::System;
use super::super::workload::Workload;
use super::check::{Hops, KnownDelay, QueueFlow, before_queues, for_each_hop, passes_through, source};

/// Workloads with free limits, and the traffic that shares queues with them.
pub struct Problem<'a> {
    pub(crate) packets: Packets,
    pub(crate) queues: Vec<Shared<'a>>,
    pub(crate) free: Vec<Free<'a>>,
    pub(crate) others: Vec<Other<'a>>,
}

/// A queue, as the free workloads see it.
pub(crate) struct Shared<'a> {
    pub name: &'a str,
    pub capacity: f64,
    /// Latency in seconds.
    pub latency: f64,
    /// True if the queue itself never has a backlog.
    pub idle: bool,
    /// Fixed traffic: (priority, bucket at this queue, largest request).
    pub fixed: Vec<(u64, TokenBucket, f64)>,
}

/// A workload whose limits are to be chosen.
pub(crate) struct Free<'a> {
    pub workload: &'a Workload,
    /// For each demand, its queues by index in [`Problem::queues`].
    pub route: Vec<Vec<usize>>,
    /// For each demand, its priority.
    pub levels: Vec<u64>,
    /// For each demand and hop: assumed delay since the limiter, in seconds.
    pub late: Vec<Vec<f64>>,
}

/// A workload with fixed limits that shares queues with the free workloads.
pub(crate) struct Other<'a> {
    pub name: &'a str,
    /// Budget for the queues of `at`, in seconds: the SLO minus all fixed delays.
    pub budget: f64,
    /// Hops at shared queues: priority and queue.
    pub at: Vec<(u64, usize)>,
}

impl Free<'_> {
    /// Budget for queues and limits, in seconds: the SLO minus the profiled tails. `None` for best effort.
    pub fn budget(&self) -> Option<f64> {
        let tail: f64 = self.workload.demands.iter().map(|demand| demand.unloaded).sum();
        self.workload.slo.map(|slo| slo.latency - tail)
    }
}

impl<'a> Problem<'a> {
    /// Problem with free limits for the `free` promises, by index, in a valid system; the limits of the others stay
    /// fixed. Bursts count as at the limiters; [`settle`](super::settle) accounts for their growth at queues on the
    /// path. Packing derives its problems from known delays instead. This constructor serves tests that compare limits
    /// with those of the thesis, and benchmarks.
    pub fn of(system: &'a System, free: &[usize], packets: Packets) -> Problem<'a> {
        Problem::with_delays(system, free, packets, &for_each_hop(system, &KnownDelay::default()))
    }

    /// Problem with known delays of hops. The problem omits fixed hops.
    pub(crate) fn with_delays(
        system: &'a System,
        free: &[usize],
        packets: Packets,
        known: &Hops<KnownDelay>,
    ) -> Problem<'a> {
        let mut queues: Vec<Shared<'a>> = (system.queues.iter())
            .map(|queue| Shared {
                name: &queue.name,
                capacity: queue.capacity,
                latency: queue.latency,
                idle: false,
                fixed: Vec::new(),
            })
            .collect();
        let mut from: Vec<Vec<Option<(usize, f64)>>> = vec![Vec::new(); queues.len()];
        let (mut chosen, mut others) = (Vec::with_capacity(free.len()), Vec::new());
        for (index, promise) in system.promises.iter().enumerate() {
            let is_free = free.contains(&index);
            let late = |demand: usize, hop: usize| -> f64 {
                known[index][demand][..hop].iter().map(|known| known.seconds).sum()
            };
            let mut fixed_delay = 0.0;
            let mut at = Vec::new();
            for (demand, path) in promise.route.iter().enumerate() {
                let largest = promise.workload.demands[demand].largest;
                let (limits, level) = (&promise.limits[demand], u64::from(promise.priorities[demand]));
                for (hop, &queue) in path.iter().enumerate() {
                    if known[index][demand][hop].fixed {
                        fixed_delay += known[index][demand][hop].seconds;
                        continue;
                    }
                    let before = hop.checked_sub(1).map(|hop| path[hop]);
                    from[queue].push(before.map(|before| source(system, before)));
                    at.push((level, queue));
                    if !is_free {
                        let flow = QueueFlow { level, limits, late: late(demand, hop), largest, from: None };
                        let bucket = flow.bucket(packets, outermost(limits));
                        queues[queue].fixed.push((level, bucket, largest));
                    }
                }
            }
            if is_free {
                let late = |(demand, path): (usize, &Vec<usize>)| {
                    (0..path.len()).map(|hop| late(demand, hop)).collect()
                };
                chosen.push((
                    index,
                    Free {
                        workload: &promise.workload,
                        route: promise.route.clone(),
                        levels: promise.priorities.iter().map(|&priority| u64::from(priority)).collect(),
                        late: promise.route.iter().enumerate().map(late).collect(),
                    },
                ));
            } else if let Some(slo) = promise.workload.slo {
                let own = |(demand, limits)| before_queues(demand, limits).unwrap_or(f64::INFINITY);
                let own: f64 = promise.workload.demands.iter().zip(&promise.limits).map(own).sum();
                others.push(Other {
                    name: &promise.workload.name,
                    budget: slo.latency - own - fixed_delay,
                    at,
                });
            }
        }
        for ((shared, from), queue) in queues.iter_mut().zip(from).zip(&system.queues) {
            shared.idle = packets == Packets::Fluid && passes_through(queue, from.into_iter());
        }
        // Restore the caller's order.
        chosen.sort_by_key(|(index, _)| free.iter().position(|promise| promise == index));
        let free = chosen.into_iter().map(|(_, free)| free).collect();
        Problem { packets, free, others, queues }
    }
}

/// Bucket with the lowest rate, which binds over the longest intervals.
pub(crate) fn outermost(limits: &ArrivalCurve) -> TokenBucket {
    limits.buckets()[limits.buckets().len() - 1]
}
