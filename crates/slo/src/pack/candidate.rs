//! Trial of one server for a workload.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use leeward_calculus::ArrivalCurve;

use super::super::limits::{Hops, KnownDelay, NoLimits, Problem, Unsettled, settle_with_delays};
use super::super::system::{Promise, Queue, System};
use super::super::workload::Workload;
use super::packing::PlacedWorkload;
use super::pruned::Exclusion;
use super::report::{NoRoom, RejectReason};
use super::search::{Place, Search};

/// Number of places that each thread tries before all threads join. The start of a thread takes as long as a few linear
/// programs.
const PLACES: usize = 8;

/// A place that keeps every SLO, with the changes it causes.
pub(super) struct Fit {
    pub new: PlacedWorkload,
    pub limits: Vec<(u64, Vec<ArrivalCurve>)>,
    pub delays: Vec<(u64, Vec<Vec<f64>>)>,
    pub read: Vec<usize>,
}

/// A workload at a place, with everything that its admission may change.
struct Trial {
    system: System,
    /// Known delays of the hops.
    known: Hops<KnownDelay>,
    /// Promises with free limits, by index: first the promises of `free`, then the workload itself.
    chosen: Vec<usize>,
    /// Placed workloads whose limits are free.
    free: Vec<u64>,
    /// All placed workloads in the system, in its order.
    members: BTreeSet<u64>,
    touched: BTreeSet<usize>,
}

impl Search<'_> {
    /// The first place that fits, in order of servers and their devices.
    pub fn first(&self) -> Result<Fit, RejectReason> {
        let packing = self.packing;
        let spare = self.required_client.or_else(|| self.most_free());
        let mut no_room = NoRoom::default();
        let mut alone: Option<(Unsettled, Place)> = None;
        let mut unsettled: Option<(Unsettled, Place)> = None;
        let mut clients = 0;
        // Of several idle servers with equal capacities and latencies, only the first needs a trial.
        let mut known: BTreeSet<Vec<u64>> = BTreeSet::new();
        let batch = match packing.settings.threads {
            1 => 1,
            threads => threads * PLACES,
        };
        let mut waiting: Vec<Place> = Vec::new();
        let devices = |server: usize| 0..packing.site.servers()[server].devices.len();
        let servers = self.servers().into_iter();
        let mut places = servers.flat_map(|server| devices(server).map(move |device| (server, device)));
        loop {
            waiting.clear();
            for (server, device) in places.by_ref() {
                no_room.servers += 1;
                let Some(client) = self.client(server, spare) else { continue };
                clients += 1;
                let place = self.place(server, device, client);
                match self.exclusion(&place) {
                    Some(exclusion @ Exclusion::Rates { .. }) => {
                        no_room.rates.add(|| self.describe(&exclusion))
                    }
                    Some(exclusion @ Exclusion::Bursts { .. }) => {
                        no_room.bursts.add(|| self.describe(&exclusion))
                    }
                    Some(exclusion @ Exclusion::Full { .. }) => {
                        no_room.full.add(|| self.describe(&exclusion))
                    }
                    None if self.is_new(&place, &mut known) => waiting.push(place),
                    None => no_room.limits.servers += 1,
                }
                if waiting.len() == batch {
                    break;
                }
            }
            if waiting.is_empty() {
                break;
            }
            for (place, outcome) in waiting.iter().zip(self.try_all(&waiting)) {
                match outcome {
                    Ok(fit) => return Ok(fit),
                    Err(why @ Unsettled::NoLimits(NoLimits::Solver { .. })) => {
                        no_room.unknown.add(|| why.to_string())
                    }
                    Err(why) => {
                        no_room.limits.servers += 1;
                        if packing.on_server[place.server].is_empty() {
                            alone = Some((why, place.clone()));
                        } else if unsettled.is_none() {
                            unsettled = Some((why, place.clone()));
                        }
                    }
                }
            }
        }
        match alone {
            _ if clients == 0 => Err(RejectReason::NoClient),
            Some((why, place)) => Err(RejectReason::Alone(self.reason(&why, &place))),
            None => {
                no_room.limits.first = unsettled.map(|(why, place)| self.reason(&why, &place));
                Err(RejectReason::NoRoom(Box::new(no_room)))
            }
        }
    }

    /// Reason why no limits exist at a place. If no limits keep all SLOs together, the reason includes the violated
    /// SLOs and capacities.
    fn reason(&self, why: &Unsettled, place: &Place) -> String {
        let Unsettled::NoLimits(NoLimits::Together) = why else { return why.to_string() };
        let Trial { system, known, chosen, .. } = self.trial(place);
        let problem = Problem::with_delays(&system, &chosen, self.packing.settings.packets(), &known);
        match self.packing.way.binding(&problem) {
            Ok(Some(binding)) => format!("{why}; the least violation exceeds {binding}"),
            // The second program adds no information.
            Ok(None) | Err(_) => why.to_string(),
        }
    }

    /// Outcomes of the given places, in order, up to the first that fits.
    fn try_all(&self, places: &[Place]) -> Vec<Result<Fit, Unsettled>> {
        let next = AtomicUsize::new(0);
        let first = AtomicUsize::new(usize::MAX);
        let work = || {
            let mut outcomes = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= places.len() || at > first.load(Ordering::Relaxed) {
                    return outcomes;
                }
                let outcome = self.fit(&places[at]);
                if outcome.is_ok() {
                    first.fetch_min(at, Ordering::Relaxed);
                }
                outcomes.push((at, outcome));
            }
        };
        let helpers = self.packing.settings.threads.min(places.len()) - 1;
        let mut outcomes = std::thread::scope(|scope| {
            let handles: Vec<_> = (0..helpers).map(|_| scope.spawn(work)).collect();
            let mut outcomes = work();
            for handle in handles {
                match handle.join() {
                    Ok(more) => outcomes.extend(more),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            outcomes
        });
        outcomes.sort_unstable_by_key(|(at, _)| *at);
        let last = first.into_inner();
        outcomes.into_iter().take_while(|(at, _)| *at <= last).map(|(_, outcome)| outcome).collect()
    }

    fn free(&self, client: usize) -> u32 {
        let slots = self.packing.site.clients()[client].slots.unwrap_or(u32::MAX);
        slots.saturating_sub(self.packing.running[client])
    }

    /// Client with the most free slots; the first one if several have the most.
    fn most_free(&self) -> Option<usize> {
        let clients = 0..self.packing.site.clients().len();
        clients
            .filter(|&client| self.free(client) > 0)
            .max_by_key(|&client| (self.free(client), std::cmp::Reverse(client)))
    }

    /// Client for a volume on this server.
    fn client(&self, server: usize, spare: Option<usize>) -> Option<usize> {
        if self.required_client.is_some() {
            return self.required_client.filter(|&client| self.free(client) > 0);
        }
        let packing = self.packing;
        let there = packing.on_server[server].iter().map(|id| packing.placed[id].client);
        let mut grouped = packing.last_client[server].into_iter().chain(there);
        grouped.find(|&client| self.free(client) > 0).or(spare)
    }

    fn place(&self, server: usize, device: usize, client: usize) -> Place {
        let path = |stage| self.packing.site.path(client, server, device, stage);
        let route = self.workload.demands.iter().map(|demand| path(demand.stage)).collect();
        Place { server, device, client, route }
    }

    /// True if the place differs from all places tried before. Two places of empty queues with equal capacities and
    /// latencies are the same.
    fn is_new(&self, place: &Place, known: &mut BTreeSet<Vec<u64>>) -> bool {
        let mut queues = place.route.iter().flatten();
        if queues.clone().any(|&queue| !self.packing.at_queue[queue].is_empty()) {
            return true;
        }
        let numbers = |&queue: &usize| {
            let queue = &self.packing.site.queues()[queue];
            [queue.capacity.to_bits(), queue.latency.to_bits()]
        };
        let mut key: Vec<u64> = queues.by_ref().flat_map(numbers).collect();
        key.extend(place.route.iter().map(|path| path.len() as u64));
        known.insert(key)
    }

    /// The workload at a place, with the placed workloads whose limits or delays may change.
    fn trial(&self, place: &Place) -> Trial {
        let packing = self.packing;
        let free: &[u64] = if packing.way.is_joint() { &packing.on_server[place.server] } else { &[] };
        let touched = self.touched(place, free);
        let mut members: BTreeSet<u64> = BTreeSet::new();
        for &queue in &touched {
            members.extend(&packing.at_queue[queue]);
        }
        members.extend(free);
        let mut levels: Vec<u64> = members.iter().map(|id| packing.placed[id].level).collect();
        levels.push(self.level);
        levels.sort_unstable();
        levels.dedup();

        let mut local: BTreeMap<usize, usize> = BTreeMap::new();
        let mut queues: Vec<Queue> = Vec::new();
        let mut known = Vec::with_capacity(members.len() + 1);
        let mut promises = Vec::with_capacity(members.len() + 1);
        let mut add =
            |workload: &Arc<Workload>, level, route: &[Vec<usize>], limits, delays: Option<&[Vec<f64>]>| {
                let mut at = |queue: usize| {
                    *local.entry(queue).or_insert_with(|| {
                        queues.push(packing.site.queues()[queue].clone());
                        queues.len() - 1
                    })
                };
                let mapped = route.iter().map(|path| path.iter().map(|&queue| at(queue)).collect());
                let mapped: Vec<Vec<usize>> = mapped.collect();
                let hop = |demand: usize, hop: usize| KnownDelay {
                    seconds: delays.map_or(0.0, |delays| delays[demand][hop]),
                    fixed: !touched.contains(&route[demand][hop]),
                };
                let hops = |demand: usize| (0..route[demand].len()).map(|at| hop(demand, at)).collect();
                known.push((0..route.len()).map(hops).collect());
                let priority = levels.partition_point(|&other| other < level) as u32;
                promises.push(Promise {
                    workload: workload.clone(),
                    priorities: vec![priority; mapped.len()],
                    route: mapped,
                    limits,
                });
            };
        for id in &members {
            let PlacedWorkload { workload, level, route, limits, delays, .. } = &packing.placed[id];
            add(workload, *level, route, limits.clone(), Some(delays));
        }
        let own = self.workload.demands.iter().map(|demand| demand.arrivals.clone()).collect();
        add(&self.workload, self.level, &place.route, own, None);

        let is_free = |id: &u64| free.contains(id);
        let mut chosen: Vec<usize> =
            members.iter().enumerate().filter(|(_, id)| is_free(id)).map(|at| at.0).collect();
        chosen.push(members.len());
        Trial { system: System { queues, promises }, known, chosen, free: free.to_vec(), members, touched }
    }

    /// Chooses limits for the workload at a place, and for the others on the server if the algorithm chooses
    /// for all together.
    fn fit(&self, place: &Place) -> Result<Fit, Unsettled> {
        let chosen = self.choose(place);
        match self.packing.settings.confirm {
            None => chosen,
            Some(confirm) => self.confirm(place, chosen, confirm),
        }
    }

    /// The place with limits by the algorithm, if equation 5.1 confirms them.
    fn choose(&self, place: &Place) -> Result<Fit, Unsettled> {
        let packing = self.packing;
        let Trial { system, known, chosen, free, members, touched } = self.trial(place);
        let settled = settle_with_delays(system, &chosen, &*packing.way, packing.settings.packets(), known)?;
        let mut limits = settled.limits;
        let mut delays = settled.hops;
        let new = PlacedWorkload {
            workload: self.workload.clone(),
            client: place.client,
            server: place.server,
            device: place.device,
            level: self.level,
            route: place.route.clone(),
            limits: limits.pop().expect("limits for each free workload"),
            delays: delays.pop().expect("delays for each workload"),
            is_resident: false,
        };
        let chosen = members.iter().copied().filter(|id| free.contains(id));
        Ok(Fit {
            new,
            limits: chosen.zip(limits).collect(),
            delays: members.iter().copied().zip(delays).collect(),
            read: touched.into_iter().collect(),
        })
    }

    /// Queues with delays that may change: the queues of workloads with free limits, and all queues downstream of them.
    fn touched(&self, place: &Place, free: &[u64]) -> BTreeSet<usize> {
        let packing = self.packing;
        let mut touched: BTreeSet<usize> = place.route.iter().flatten().copied().collect();
        touched.extend(free.iter().flat_map(|id| packing.placed[id].route.iter().flatten()));
        let mut open: Vec<usize> = touched.iter().copied().collect();
        while let Some(queue) = open.pop() {
            for id in &packing.at_queue[queue] {
                for path in &packing.placed[id].route {
                    let Some(hop) = path.iter().position(|&at| at == queue) else { continue };
                    for &behind in &path[hop + 1..] {
                        if touched.insert(behind) {
                            open.push(behind);
                        }
                    }
                }
            }
        }
        touched
    }
}
