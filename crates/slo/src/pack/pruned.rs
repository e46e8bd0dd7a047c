//! Quick checks that exclude places without a choice of limits.

use leeward_traces::Stage;

use super::super::workload::Workload;
use super::infeasible::{self, hopeless};
use super::search::{Place, Search};

/// Largest share of a queue that fast first fit tries, as in the released code. The share is the sum of configured
/// rates plus the lowest new rate.
const FULL: f64 = 0.999999;

/// Reason that excludes a place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Out {
    /// The sum of lowest rates exceeds a queue's capacity.
    Rates {
        /// The queue.
        queue: usize,
    },
    /// The smallest bursts alone take longer than a workload's SLO.
    Bursts {
        /// The queue.
        queue: usize,
        /// The workload; `None` for the one to place.
        workload: Option<u64>,
        /// Stage of the workload at the queue.
        stage: Stage,
    },
    /// The configured rates leave too little of a queue.
    Full {
        /// The queue.
        queue: usize,
    },
}

impl Search<'_> {
    /// Reason that excludes a place without a choice of limits, if there is one.
    pub fn ruled_out(&self, place: &Place) -> Option<Out> {
        let packing = self.packing;
        let mut full = None;
        for (path, demand) in place.route.iter().zip(&self.workload.demands) {
            for &queue in path {
                let (asked, capacity) = (packing.loads[queue], packing.site.queues()[queue].capacity);
                let rate = demand.arrivals.rate();
                // An invalid capacity has no room.
                if capacity.is_nan() || capacity <= 0.0 || asked.least + rate > capacity * (1.0 + 1e-9) {
                    return Some(Out::Rates { queue });
                }
                if asked.configured + rate > FULL * capacity {
                    full = full.or(Some(queue));
                }
            }
        }
        if packing.settings.fast
            && let Some(queue) = full
        {
            return Some(Out::Full { queue });
        }
        if packing.way.together() { self.hopeless(place) } else { None }
    }

    fn hopeless(&self, place: &Place) -> Option<Out> {
        let packing = self.packing;
        for (at, path) in place.route.iter().enumerate() {
            let &[queue] = path.as_slice() else { continue };
            let mut seats = Vec::with_capacity(packing.at[queue].len() + 1);
            let mut whose = Vec::with_capacity(seats.capacity());
            for id in &packing.at[queue] {
                let other = &packing.placed[id];
                for (at, path) in other.route.iter().enumerate() {
                    if path.contains(&queue) {
                        let (workload, route) = (&*other.workload, &other.route);
                        seats.push(self.seat(workload, other.level, route, at, place));
                        whose.push((Some(*id), workload.demands[at].stage));
                    }
                }
            }
            seats.push(self.seat(&self.workload, self.level, &place.route, at, place));
            whose.push((None, self.workload.demands[at].stage));
            if let Some(seat) = hopeless(packing.site.queues()[queue].capacity, &seats) {
                let (workload, stage) = whose[seat];
                return Some(Out::Bursts { queue, workload, stage });
            }
        }
        None
    }

    /// A workload at one of its queues, with the part of its SLO available there. Subtracts its tails and the least
    /// time of its other stages at their first queues, where every workload has its smallest burst.
    fn seat<'w>(
        &self,
        workload: &'w Workload,
        level: u64,
        route: &[Vec<usize>],
        stage: usize,
        place: &Place,
    ) -> infeasible::Seat<'w> {
        let packing = self.packing;
        let mut budget = workload.slo.map_or(f64::INFINITY, |slo| slo.latency);
        for (at, demand) in workload.demands.iter().enumerate() {
            budget -= demand.unloaded;
            let Some(&first) = route[at].first().filter(|_| at != stage) else { continue };
            let burst = |workload: &Workload, route: &[Vec<usize>]| -> f64 {
                let there =
                    workload.demands.iter().zip(route).filter(|(_, path)| path.first() == Some(&first));
                there.map(|(demand, _)| demand.arrivals.burst()).sum()
            };
            let others = packing.at[first].iter().map(|id| &packing.placed[id]);
            let others = others.filter(|other| other.level <= level);
            let mut bursts: f64 = others.map(|other| burst(&other.workload, &other.route)).sum();
            if self.level <= level {
                bursts += burst(&self.workload, &place.route);
            }
            budget -= bursts / packing.site.queues()[first].capacity;
        }
        infeasible::Seat { level, arrivals: &workload.demands[stage].arrivals, budget }
    }

    /// Describes the obstacle: the workload and its queue.
    pub fn who(&self, out: &Out) -> String {
        let packing = self.packing;
        let name = |queue: usize| &packing.site.queues()[queue].name;
        match *out {
            Out::Bursts { queue, workload, stage } => {
                let workload = workload.map_or(&self.workload, |id| &packing.placed[&id].workload);
                format!("the SLO of `{}` at {stage}, {}", workload.name, name(queue))
            }
            Out::Rates { queue } | Out::Full { queue } => {
                let there = packing.at[queue].iter().map(|id| &packing.placed[id]);
                let rates = there.map(|other| {
                    let demands = other.workload.demands.iter().zip(&other.route).zip(&other.limits);
                    let here = demands.filter(|((_, path), _)| path.contains(&queue));
                    let rate = here.map(|((demand, _), limits)| match out {
                        Out::Full { .. } => limits.rate(),
                        _ => demand.arrivals.rate(),
                    });
                    (&other.workload.name, rate.sum::<f64>())
                });
                match rates.max_by(|a, b| a.1.total_cmp(&b.1)) {
                    Some((most, _)) => format!("{}, most of it by `{most}`", name(queue)),
                    None => name(queue).clone(),
                }
            }
        }
    }
}
