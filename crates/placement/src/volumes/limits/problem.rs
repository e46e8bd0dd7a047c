//! What limits are chosen for: workloads whose limits are free, among others whose limits stand.

use leeward_calculus::{ArrivalCurve, Packets, TokenBucket};

use super::super::system::System;
use super::super::workload::Workload;
use super::check::{Hops, Known, Seat, before_queues, for_each_hop, passes_through};

/// Workloads whose limits are to be chosen, and what they share queues with.
pub struct Problem<'a> {
    pub(crate) packets: Packets,
    pub(crate) queues: Vec<Shared<'a>>,
    pub(crate) free: Vec<Free<'a>>,
    pub(crate) others: Vec<Other<'a>>,
}

/// A queue as the free workloads find it.
pub(crate) struct Shared<'a> {
    pub name: &'a str,
    pub capacity: f64,
    /// Whether it has no backlog of its own.
    pub idle: bool,
    /// What passes whatever is chosen: (priority, what arrives here at most, largest request).
    pub fixed: Vec<(u64, TokenBucket, f64)>,
}

/// A workload whose limits are to be chosen.
pub(crate) struct Free<'a> {
    pub workload: &'a Workload,
    /// For each demand, its queues by index in [`Problem::queues`].
    pub route: Vec<Vec<usize>>,
    /// For each demand, its priority.
    pub levels: Vec<u64>,
    /// For each demand and hop, how much later than at the limiter its work is taken to come.
    pub late: Vec<Vec<f64>>,
}

/// A workload whose limits stand, where what is chosen is in its way.
pub(crate) struct Other<'a> {
    pub name: &'a str,
    /// What is left to it of its SLO by what does not change, in seconds.
    pub budget: f64,
    /// Where it is in the way: its priority there, and the queue.
    pub at: Vec<(u64, usize)>,
}

impl Free<'_> {
    /// What its SLO leaves for queues and limits: less the profiled tails. None for best effort.
    pub fn budget(&self) -> Option<f64> {
        let tail: f64 = self.workload.demands.iter().map(|demand| demand.unloaded).sum();
        self.workload.slo.map(|slo| slo.latency - tail)
    }
}

impl<'a> Problem<'a> {
    /// The limits of `free` promises of a right system, by index; those of the others stand. Bursts are taken as they are at the
    /// limiters: what queues on the way add is for [`settle`](super::settle) to find.
    pub fn of(system: &'a System, free: &[usize], packets: Packets) -> Problem<'a> {
        Problem::knowing(system, free, packets, &for_each_hop(system, &Known::default()))
    }

    /// The same, with work that comes later by the delays of the hops before. What stands is not in the way of what is chosen.
    pub(crate) fn knowing(
        system: &'a System,
        free: &[usize],
        packets: Packets,
        known: &Hops<Known>,
    ) -> Problem<'a> {
        let mut queues: Vec<Shared<'a>> = (system.queues.iter())
            .map(|queue| Shared {
                name: &queue.name,
                capacity: queue.capacity,
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
            let mut stands = 0.0;
            let mut at = Vec::new();
            for (demand, path) in promise.route.iter().enumerate() {
                let largest = promise.workload.demands[demand].largest;
                let (limits, level) = (&promise.limits[demand], u64::from(promise.priorities[demand]));
                for (hop, &queue) in path.iter().enumerate() {
                    if known[index][demand][hop].stands {
                        stands += known[index][demand][hop].seconds;
                        continue;
                    }
                    let before = hop.checked_sub(1).map(|hop| path[hop]);
                    from[queue].push(before.map(|before| (before, system.queues[before].capacity)));
                    at.push((level, queue));
                    if !is_free {
                        let seat = Seat { level, limits, late: late(demand, hop), largest, from: None };
                        let bucket = seat.bucket(packets, outermost(limits));
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
                others.push(Other { name: &promise.workload.name, budget: slo.latency - own - stands, at });
            }
        }
        for ((shared, from), queue) in queues.iter_mut().zip(from).zip(&system.queues) {
            shared.idle = packets == Packets::Fluid && passes_through(queue.capacity, from.into_iter());
        }
        // In the order in which they were asked for.
        chosen.sort_by_key(|(index, _)| free.iter().position(|asked| asked == index));
        let free = chosen.into_iter().map(|(_, free)| free).collect();
        Problem { packets, free, others, queues }
    }
}

/// The bucket of several that holds for longest: the lowest rate.
pub(crate) fn outermost(limits: &ArrivalCurve) -> TokenBucket {
    limits.buckets()[limits.buckets().len() - 1]
}
