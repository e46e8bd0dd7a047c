//! Confirmation of places by the bounds of `leeward slo bound`.
//!
//! Limits are chosen by SLO equation 5.1. It counts a burst in full at every hop, and the requests in service at a device
//! not at all: it may refuse a place that bounds allow, and allow one that they do not. With
//! [`PackSettings::confirm`](super::PackSettings), bounds decide. A place is tried with the chosen limits first; then with
//! the workload's own curve as its limits, which no limits can improve; and last with the own curves of all workloads that
//! it may disturb, except those with existing promises on other servers.

use std::collections::{BTreeMap, BTreeSet};

use leeward_calculus::ArrivalCurve;

use super::super::bound::Bounds;
use super::super::limits::{self, Unsettled};
use super::super::system::{Promise, Queue, System};
use super::candidate::Fit;
use super::packing::PlacedWorkload;
use super::search::{Place, Search};
use super::settings::Confirm;

/// Relative tolerance for differences between orders of summation.
const ROUNDING: f64 = 1e-6;

/// The workload at a place, with all workloads whose limits may change, and all that share queues with these, directly or
/// through others.
struct Neighbourhood {
    /// Placed workloads, in the order of their promises.
    members: Vec<u64>,
    /// Their promises, with the present limits, and the promise of the workload as the last.
    system: System,
    /// Queues of the site.
    queues: BTreeSet<usize>,
}

impl Search<'_> {
    /// The place with limits under which bounds confirm every SLO. `chosen` is the outcome of the choice of limits.
    pub fn confirm(
        &self,
        place: &Place,
        chosen: Result<Fit, Unsettled>,
        confirm: Confirm,
    ) -> Result<Fit, Unsettled> {
        let around = self.neighbourhood(place);
        if let Ok(fit) = chosen {
            let mut system = around.system.clone();
            for (id, limits) in &fit.limits {
                // A workload that crosses no queue is no member, and disturbs none.
                if let Ok(at) = around.members.binary_search(id) {
                    system.promises[at].limits.clone_from(limits);
                }
            }
            let new = system.promises.last_mut().expect("the promise of the workload");
            new.limits.clone_from(&fit.new.limits);
            if self.miss(&around, &system, confirm).is_none() {
                return Ok(fit);
            }
        }
        let mut system = around.system.clone();
        let Some(refused) = self.miss(&around, &system, confirm) else {
            return Ok(self.fit_of(place, &around, system));
        };
        if self.use_own_curves(&around, place.server, &mut system)
            && self.miss(&around, &system, confirm).is_none()
        {
            return Ok(self.fit_of(place, &around, system));
        }
        Err(refused)
    }

    fn neighbourhood(&self, place: &Place) -> Neighbourhood {
        let packing = self.packing;
        let mut queues: BTreeSet<usize> = place.route.iter().flatten().copied().collect();
        if packing.way.is_joint() {
            // Their limits change together, also where they share no queue with the new workload.
            let routes = packing.on_server[place.server].iter().flat_map(|id| &packing.placed[id].route);
            queues.extend(routes.flatten().copied());
        }
        let mut open: Vec<usize> = queues.iter().copied().collect();
        let mut members = BTreeSet::new();
        while let Some(queue) = open.pop() {
            for id in &packing.at_queue[queue] {
                if members.insert(*id) {
                    let route = packing.placed[id].route.iter().flatten();
                    open.extend(route.filter(|&&queue| queues.insert(queue)));
                }
            }
        }
        let local: BTreeMap<usize, usize> = queues.iter().zip(0..).map(|(&queue, at)| (queue, at)).collect();
        let own = self.own_curves();
        let all = members.iter().map(|id| {
            let PlacedWorkload { workload, level, route, limits, .. } = &packing.placed[id];
            (workload, *level, route, limits)
        });
        let all: Vec<_> = all.chain([(&self.workload, self.level, &place.route, &own)]).collect();
        let mut levels: Vec<u64> = all.iter().map(|(_, level, ..)| *level).collect();
        levels.sort_unstable();
        levels.dedup();
        let promises = all.into_iter().map(|(workload, level, route, limits)| Promise {
            workload: workload.clone(),
            route: route.iter().map(|path| path.iter().map(|queue| local[queue]).collect()).collect(),
            priorities: vec![levels.partition_point(|&other| other < level) as u32; route.len()],
            limits: limits.clone(),
        });
        let promises = promises.collect();
        let site: Vec<Queue> = queues.iter().map(|&queue| packing.site.queues()[queue].clone()).collect();
        let members = members.into_iter().collect();
        Neighbourhood { members, system: System { queues: site, promises }, queues }
    }

    fn own_curves(&self) -> Vec<ArrivalCurve> {
        self.workload.demands.iter().map(|demand| demand.arrivals.clone()).collect()
    }

    /// Sets the limits of workloads to their own curves: of those without an existing promise, and of those on the server
    /// if the algorithm chooses for all together. Returns false if these limits were their own curves.
    fn use_own_curves(&self, around: &Neighbourhood, server: usize, system: &mut System) -> bool {
        let mut changed = false;
        for (id, promise) in around.members.iter().zip(&mut system.promises) {
            let placed = &self.packing.placed[id];
            if !placed.is_resident || placed.server == server && self.packing.way.is_joint() {
                for (limit, demand) in promise.limits.iter_mut().zip(&promise.workload.demands) {
                    changed |= *limit != demand.arrivals;
                    limit.clone_from(&demand.arrivals);
                }
            }
        }
        changed
    }

    /// A missed SLO that was not missed before: of the workload itself, or else of another one.
    fn miss(&self, around: &Neighbourhood, system: &System, confirm: Confirm) -> Option<Unsettled> {
        let crossing = |system: &System| {
            let promises = system.promises.iter().cloned().map(Promise::crossing).collect();
            System { queues: system.queues.clone(), promises }
        };
        let after = crossing(system);
        let mut bounds = match Bounds::new(&after, confirm.bounds) {
            Ok(bounds) => bounds,
            Err(error) => return Some(Unsettled::Refused(error.to_string())),
        };
        let mut before = crossing(&around.system);
        before.promises.pop();
        let mut bounds_before = None;
        let miss = (0..after.promises.len()).rev().find_map(|at| {
            let miss = bounds.miss(at, confirm.method)?;
            let was_missed = at < around.members.len() && {
                let known = bounds_before.get_or_insert_with(|| Bounds::new(&before, confirm.bounds));
                let before = known.as_mut().ok();
                match (before.and_then(|bounds| bounds.miss(at, confirm.method)), &miss.outcome) {
                    (Some(before), Ok(now)) => {
                        before.outcome.map_or(true, |before| now.seconds <= before.seconds * (1.0 + ROUNDING))
                    }
                    (Some(before), Err(_)) => before.outcome.is_err(),
                    _ => false,
                }
            };
            (!was_missed).then_some(miss)
        })?;
        let name = &after.promises[miss.promise].workload.name;
        Some(match miss.outcome {
            Ok(bound) => Unsettled::Above {
                workload: name.clone(),
                bound: bound.seconds,
                slo: miss.slo.latency,
                method: bound.method.name(),
            },
            Err(error) => Unsettled::Refused(error.to_string()),
        })
    }

    /// The place with the limits of a system.
    fn fit_of(&self, place: &Place, around: &Neighbourhood, mut system: System) -> Fit {
        // Delays by equation 5.1, which later choices of limits use; infinite where it has none.
        let known = limits::delays(&system, self.packing.settings.packets());
        let delay = |at: usize| -> Vec<Vec<f64>> {
            let route = system.promises[at].route.iter().enumerate();
            let hop = |demand: usize, hop: usize| {
                let delay = known.as_ref().ok().map(|delays| delays[at][demand][hop].clone());
                delay.and_then(Result::ok).unwrap_or(f64::INFINITY)
            };
            route.map(|(demand, path)| (0..path.len()).map(|at| hop(demand, at)).collect()).collect()
        };
        let last = around.members.len();
        let (delays, own) = ((0..last).map(delay).collect::<Vec<_>>(), delay(last));
        let new = system.promises.pop().expect("the promise of the workload");
        let changed = around.members.iter().zip(system.promises);
        let changed = changed.filter(|(id, promise)| promise.limits != self.packing.placed[id].limits);
        Fit {
            new: PlacedWorkload {
                workload: self.workload.clone(),
                client: place.client,
                server: place.server,
                device: place.device,
                level: self.level,
                route: place.route.clone(),
                limits: new.limits,
                delays: own,
                is_resident: false,
            },
            limits: changed.map(|(id, promise)| (*id, promise.limits)).collect(),
            delays: around.members.iter().copied().zip(delays).collect(),
            read: around.queues.iter().copied().collect(),
        }
    }
}
