//! Quick checks that exclude places before any choice of limits.

use leeward_traces::Stage;

use super::super::workload::Workload;
use super::infeasible::{DeviceFlow, find_infeasible};
use super::search::{Place, Search};

/// Largest share of a queue that fast first fit tries, as in the released code. The share is the sum of configured
/// rates plus the lowest new rate.
const FULL: f64 = 0.999999;

/// Reason that excludes a place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Exclusion {
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
    /// Reason that excludes a place before any choice of limits; `None` if the place passes the checks.
    pub fn exclusion(&self, place: &Place) -> Option<Exclusion> {
        let packing = self.packing;
        let mut full = None;
        for (path, demand) in place.route.iter().zip(&self.workload.demands) {
            for &queue in path {
                let (load, capacity) = (packing.loads[queue], packing.site.queues()[queue].capacity);
                let rate = demand.arrivals.rate();
                // An invalid capacity has no room.
                if capacity.is_nan() || capacity <= 0.0 || load.least + rate > capacity * (1.0 + 1e-9) {
                    return Some(Exclusion::Rates { queue });
                }
                if load.configured + rate > FULL * capacity {
                    full = full.or(Some(queue));
                }
            }
        }
        if packing.settings.fast
            && let Some(queue) = full
        {
            return Some(Exclusion::Full { queue });
        }
        // The smallest bursts alone are not below bounds for percentiles.
        let percentiles = packing.settings.confirm.is_some_and(|confirm| confirm.method.needs_models());
        if packing.way.is_joint() && !percentiles { self.infeasible_slo(place) } else { None }
    }

    /// An SLO that cannot be kept at the only queue of a stage.
    fn infeasible_slo(&self, place: &Place) -> Option<Exclusion> {
        let packing = self.packing;
        for (at, path) in place.route.iter().enumerate() {
            let &[queue] = path.as_slice() else { continue };
            let mut flows = Vec::with_capacity(packing.at_queue[queue].len() + 1);
            let mut owners = Vec::with_capacity(flows.capacity());
            for id in &packing.at_queue[queue] {
                let other = &packing.placed[id];
                for (at, path) in other.route.iter().enumerate() {
                    if path.contains(&queue) {
                        let (workload, route) = (&*other.workload, &other.route);
                        flows.push(self.flow(workload, other.level, route, at, place));
                        owners.push((Some(*id), workload.demands[at].stage));
                    }
                }
            }
            flows.push(self.flow(&self.workload, self.level, &place.route, at, place));
            owners.push((None, self.workload.demands[at].stage));
            if let Some(flow) = find_infeasible(&packing.site.queues()[queue], &flows) {
                let (workload, stage) = owners[flow];
                return Some(Exclusion::Bursts { queue, workload, stage });
            }
        }
        None
    }

    /// A workload at one of its queues, with the part of its SLO available at this queue. Subtracts its tails and the
    /// least time of its other stages at their first queues, where every workload has its smallest burst.
    fn flow<'w>(
        &self,
        workload: &'w Workload,
        level: u64,
        route: &[Vec<usize>],
        stage: usize,
        place: &Place,
    ) -> DeviceFlow<'w> {
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
            let others = packing.at_queue[first].iter().map(|id| &packing.placed[id]);
            let others = others.filter(|other| other.level <= level);
            let mut bursts: f64 = others.map(|other| burst(&other.workload, &other.route)).sum();
            if self.level <= level {
                bursts += burst(&self.workload, &place.route);
            }
            let queue = &packing.site.queues()[first];
            budget -= bursts / queue.capacity + queue.latency;
        }
        DeviceFlow { level, arrivals: &workload.demands[stage].arrivals, budget }
    }

    /// Describes the obstacle: the workload and its queue.
    pub fn describe(&self, exclusion: &Exclusion) -> String {
        let packing = self.packing;
        let name = |queue: usize| &packing.site.queues()[queue].name;
        match *exclusion {
            Exclusion::Bursts { queue, workload, stage } => {
                let workload = workload.map_or(&self.workload, |id| &packing.placed[&id].workload);
                format!("the SLO of `{}` at {stage}, {}", workload.name, name(queue))
            }
            Exclusion::Rates { queue } | Exclusion::Full { queue } => {
                let there = packing.at_queue[queue].iter().map(|id| &packing.placed[id]);
                let rates = there.map(|other| {
                    let demands = other.workload.demands.iter().zip(&other.route).zip(&other.limits);
                    let here = demands.filter(|((_, path), _)| path.contains(&queue));
                    let rate = here.map(|((demand, _), limits)| match exclusion {
                        Exclusion::Full { .. } => limits.rate(),
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
