//! State of a packing: placed workloads, and the operations that change them.

use std::collections::BTreeMap;
use std::sync::Arc;

use leeward_calculus::ArrivalCurve;
use leeward_fabric::input::{InputError, format_number};
use leeward_models::BucketRecord;
use leeward_traces::Stage;

use super::super::limits::{self, Limiting, with_margin};
use super::super::system::{Promise, System};
use super::super::workload::{Slo, Workload};
use super::report::{PlacedReport, RefusedReport, RejectReason, Rejection, Report, StageReport};
use super::settings::PackSettings;
use super::site::{Server, Site};

/// A workload with an existing promise.
#[derive(Clone, Debug)]
pub struct Resident {
    /// The workload.
    pub workload: Arc<Workload>,
    /// Client, by index.
    pub client: usize,
    /// Server of its volume, by index.
    pub server: usize,
    /// Index of the device on that server.
    pub device: usize,
    /// Enforced limits, for each of its demands.
    pub limits: Vec<ArrivalCurve>,
    /// Latency target in seconds if it differs from the SLO, because another method guarantees the SLO. The
    /// SLO still sets the priority.
    pub target: Option<f64>,
}

/// A placed workload.
#[derive(Clone, Debug)]
pub(super) struct PlacedWorkload {
    /// The workload with the margin and with pruned curves.
    pub workload: Arc<Workload>,
    pub client: usize,
    pub server: usize,
    pub device: usize,
    pub level: u64,
    /// Queues, for each of its demands.
    pub route: Vec<Vec<usize>>,
    pub limits: Vec<ArrivalCurve>,
    /// Delay for each of its demands at each queue, in seconds: an upper bound, exact until a workload
    /// departs.
    pub delays: Vec<Vec<f64>>,
    /// True for a workload with an existing promise, whose limits stay if it is not on the server of a new workload.
    pub is_resident: bool,
}

/// Load of a queue.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct QueueLoad {
    /// Sum of the rates of limits.
    pub configured: f64,
    /// Sum of the lowest rates.
    pub least: f64,
}

/// Workloads placed on a site.
pub struct Packing {
    pub(super) site: Site,
    pub(super) settings: PackSettings,
    pub(super) way: Box<dyn Limiting>,
    /// Placed workloads by arrival number.
    pub(super) placed: BTreeMap<u64, PlacedWorkload>,
    pub(super) names: BTreeMap<String, u64>,
    /// For each queue, the workloads that cross it.
    pub(super) at_queue: Vec<Vec<u64>>,
    pub(super) loads: Vec<QueueLoad>,
    /// For each server, its workloads in order of arrival.
    pub(super) on_server: Vec<Vec<u64>>,
    /// For each client, the number of its workloads.
    pub(super) running: Vec<u32>,
    /// For each server, the client of its last workload, until a workload leaves the server.
    pub(super) last_client: Vec<Option<usize>>,
    /// For each server, true if it takes no more workloads.
    pub(super) closed: Vec<bool>,
    next: u64,
    pub(super) version: u64,
    pub(super) refused: Vec<Rejection>,
    pruned_by: f64,
}

impl Packing {
    /// Creates an empty packing. `limit_settings` is a mapping for the limit algorithm, empty for its
    /// defaults.
    ///
    /// # Errors
    /// [`InputError`] for invalid settings.
    pub fn new(site: Site, settings: PackSettings, limit_settings: &str) -> Result<Packing, InputError> {
        settings.check()?;
        let way = limits::REGISTRY.make(&settings.limits, limit_settings)?;
        let (queues, servers, clients) = (site.queues().len(), site.servers().len(), site.clients().len());
        Ok(Packing {
            way,
            settings,
            placed: BTreeMap::new(),
            names: BTreeMap::new(),
            at_queue: vec![Vec::new(); queues],
            loads: vec![QueueLoad::default(); queues],
            on_server: vec![Vec::new(); servers],
            running: vec![0; clients],
            last_client: vec![None; servers],
            closed: vec![false; servers],
            next: 0,
            version: 0,
            refused: Vec::new(),
            pruned_by: 0.0,
            site,
        })
    }

    /// The site.
    pub fn site(&self) -> &Site {
        &self.site
    }

    /// Adds workloads with existing promises, in order, on their servers and with their enforced limits. Such workloads
    /// count like any other placed workload.
    ///
    /// # Errors
    /// [`Rejection`] for the first workload without an SLO, with a name in use, or at a place that the site does not
    /// have. In that case the packing adds no workload.
    pub fn add_residents(&mut self, residents: Vec<Resident>) -> Result<(), Rejection> {
        let mut added: Vec<(PlacedWorkload, f64)> = Vec::with_capacity(residents.len());
        for Resident { workload: given, client, server, device, limits, target } in residents {
            let refused = |why| Rejection { workload: given.name.clone(), why };
            let is_placed = self.names.contains_key(&given.name);
            if is_placed || added.iter().any(|(other, _)| other.workload.name == given.name) {
                return Err(refused(RejectReason::AlreadyPlaced));
            }
            let (mut workload, pruned_by) = self.prepare(&given).map_err(refused)?;
            let stored = workload.demands.iter().any(|demand| demand.stage == Stage::Storage);
            let has = |server: &Server| !stored || device < server.devices.len();
            let exists =
                client < self.site.clients().len() && self.site.servers().get(server).is_some_and(has);
            if !exists || limits.len() != workload.demands.len() {
                let why =
                    "the site lacks its client, server or device, or its limits do not match its demands";
                return Err(refused(RejectReason::Invalid(why.to_owned())));
            }
            let slo = workload.slo.ok_or_else(|| refused(RejectReason::BestEffort))?;
            let path = |stage| self.site.path(client, server, device, stage);
            let route: Vec<Vec<usize>> = workload.demands.iter().map(|demand| path(demand.stage)).collect();
            let delays = route.iter().map(|path| vec![f64::INFINITY; path.len()]).collect();
            let level = self.settings.level(slo.latency);
            if let Some(latency) = target {
                Arc::make_mut(&mut workload).slo = Some(Slo { latency, ..slo });
            }
            let is_resident = true;
            let placed = PlacedWorkload {
                workload,
                client,
                server,
                device,
                level,
                route,
                limits,
                delays,
                is_resident,
            };
            added.push((placed, pruned_by));
        }
        for (placed, pruned_by) in added {
            let touched = self.put(placed, pruned_by);
            self.update_loads(touched);
        }
        self.recompute_delays();
        Ok(())
    }

    /// Closes a server for further workloads.
    pub fn close(&mut self, server: usize) {
        if let Some(closed) = self.closed.get_mut(server) {
            *closed = true;
            self.version += 1;
        }
    }

    /// Adds a workload to the placed ones. Returns the queues it crosses, for [`Packing::update_loads`].
    pub(super) fn put(&mut self, new: PlacedWorkload, pruned_by: f64) -> Vec<usize> {
        let id = self.next;
        (self.next, self.version) = (self.next + 1, self.version + 1);
        self.pruned_by = self.pruned_by.max(pruned_by);
        self.on_server[new.server].push(id);
        self.running[new.client] += 1;
        self.last_client[new.server] = Some(new.client);
        self.names.insert(new.workload.name.clone(), id);
        let touched: Vec<usize> = new.route.iter().flatten().copied().collect();
        for &queue in &touched {
            if self.at_queue[queue].last() != Some(&id) {
                self.at_queue[queue].push(id);
            }
        }
        self.placed.insert(id, new);
        touched
    }

    /// Removes a workload and frees its share. The other workloads get new limits with the next arrival. Returns false
    /// for an unknown name.
    pub fn remove(&mut self, name: &str) -> bool {
        let Some(id) = self.names.remove(name) else { return false };
        let placed = self.placed.remove(&id).expect("every name belongs to a placed workload");
        let touched: Vec<usize> = placed.route.into_iter().flatten().collect();
        for &queue in &touched {
            self.at_queue[queue].retain(|&other| other != id);
        }
        self.on_server[placed.server].retain(|&other| other != id);
        self.running[placed.client] -= 1;
        self.last_client[placed.server] = None;
        self.version += 1;
        self.update_loads(touched);
        true
    }

    /// Number of servers with a workload.
    pub fn servers_used(&self) -> usize {
        self.on_server.iter().filter(|workloads| !workloads.is_empty()).count()
    }

    /// Device queue of a workload, by index; `None` if it is not placed.
    pub fn device_of(&self, name: &str) -> Option<usize> {
        let placed = &self.placed[self.names.get(name)?];
        self.site.servers()[placed.server].devices.get(placed.device).copied()
    }

    /// Placed workloads in order of arrival, with their server and client by index.
    pub fn placed(&self) -> impl Iterator<Item = (&str, usize, usize)> {
        self.placed.values().map(|placed| (placed.workload.name.as_str(), placed.server, placed.client))
    }

    /// Refused workloads in order of arrival.
    pub fn refused(&self) -> &[Rejection] {
        &self.refused
    }

    /// All queues and all promises in order of arrival, margin included, for any other analysis.
    pub fn system(&self) -> System {
        let promises = self.placed.values().map(|placed| Promise {
            workload: placed.workload.clone(),
            route: placed.route.clone(),
            priorities: vec![self.priority(placed.level); placed.route.len()],
            limits: placed.limits.clone(),
        });
        System { queues: self.site.queues().to_vec(), promises: promises.collect() }
    }

    /// Recomputes all delays. A promise without a bound blocks all changes to traffic that
    /// shares queues with it.
    pub(super) fn recompute_delays(&mut self) {
        let system = self.system();
        let delays = limits::delays(&system, self.settings.packets());
        for (at, placed) in self.placed.values_mut().enumerate() {
            for (demand, hops) in placed.delays.iter_mut().enumerate() {
                for (hop, delay) in hops.iter_mut().enumerate() {
                    let computed = delays.as_ref().ok().map(|delays| delays[at][demand][hop].clone());
                    *delay = computed.and_then(Result::ok).unwrap_or(f64::INFINITY);
                }
            }
        }
        self.version += 1;
    }

    /// The serializable report, with recomputed bounds.
    pub fn report(&self) -> Report {
        let system = self.system();
        // A queue of a cluster may have no capacity.
        let bounds = match limits::bounds(&system, self.settings.packets()) {
            Ok(bounds) => bounds.into_iter().map(Result::ok).collect(),
            Err(_) => vec![None; system.promises.len()],
        };
        let placed =
            self.placed.values().zip(&system.promises).zip(bounds).map(|((placed, promise), bound)| {
                let slo = placed.workload.slo.expect("a placed workload has an SLO");
                let stages = (0..placed.route.len()).map(|at| StageReport {
                    stage: placed.workload.demands[at].stage.name().to_owned(),
                    queues: placed.route[at].iter().map(|&queue| system.queues[queue].name.clone()).collect(),
                    limits: BucketRecord::of(&placed.limits[at]),
                    bound_s: bound.as_ref().map(|bound| bound.stages[at]),
                });
                PlacedReport {
                    workload: placed.workload.name.clone(),
                    client: self.site.clients()[placed.client].name.clone(),
                    server: self.site.servers()[placed.server].name.clone(),
                    device: placed.device,
                    priority: promise.priorities.first().copied().unwrap_or(0),
                    slo_s: slo.latency,
                    percentile: slo.percentile,
                    stages: stages.collect(),
                    bound_s: bound.map(|bound| bound.seconds()),
                }
            });
        let refused = self.refused.iter().map(|refused| RefusedReport {
            workload: refused.workload.clone(),
            why: refused.why.to_string(),
        });
        Report {
            limits: self.settings.limits.clone(),
            fast: self.settings.fast,
            margin: self.settings.margin,
            pruned_by: self.pruned_by,
            servers_used: self.servers_used(),
            placed: placed.collect(),
            refused: refused.collect(),
        }
    }

    /// Priority number of a level: the level itself, or the number of shorter SLOs in use.
    fn priority(&self, level: u64) -> u32 {
        if !self.settings.levels.is_empty() {
            return level as u32;
        }
        let mut before: Vec<u64> =
            self.placed.values().map(|placed| placed.level).filter(|&other| other < level).collect();
        before.sort_unstable();
        before.dedup();
        before.len() as u32
    }

    /// The workload with the margin and with few buckets, and the largest relative increase of a curve by
    /// pruning.
    pub(super) fn prepare(&self, workload: &Workload) -> Result<(Arc<Workload>, f64), RejectReason> {
        let invalid = |why: String| Err(RejectReason::Invalid(why));
        let Some(slo) = workload.slo else { return Err(RejectReason::BestEffort) };
        if !slo.latency.is_finite() || slo.latency <= 0.0 {
            return invalid(format!(
                "its SLO of {} s must be finite and above 0",
                format_number(slo.latency)
            ));
        }
        if workload.demands.is_empty() {
            return invalid("it has no demand at any stage".to_owned());
        }
        for demand in &workload.demands {
            let (stage, largest, burst) = (demand.stage, demand.largest, demand.arrivals.burst());
            if !(0.0..=burst).contains(&largest) {
                return invalid(format!(
                    "its largest request at {stage} is {}: expected 0 to its burst, {}",
                    format_number(largest),
                    format_number(burst)
                ));
            }
            if !demand.unloaded.is_finite() || demand.unloaded < 0.0 {
                return invalid(format!(
                    "its profiled tail at {stage} is {} s: must be finite and not negative",
                    demand.unloaded
                ));
            }
        }
        let mut scaled = with_margin(workload, self.settings.margin)
            .map_err(|error| RejectReason::Invalid(error.to_string()))?;
        let mut pruned_by = 0.0_f64;
        for demand in &mut scaled.demands {
            let pruned = demand.arrivals.prune_within(self.settings.pruning);
            let pruned = pruned.map_err(|error| RejectReason::Invalid(error.to_string()))?;
            pruned_by = pruned_by.max(pruned.error);
            demand.arrivals = pruned.curve;
        }
        Ok((Arc::new(scaled), pruned_by))
    }

    /// Recomputes the load of queues in order of arrival, so that the sums do not depend on departed workloads.
    pub(super) fn update_loads(&mut self, mut queues: Vec<usize>) {
        queues.sort_unstable();
        queues.dedup();
        for queue in queues {
            let mut loads = QueueLoad::default();
            for id in &self.at_queue[queue] {
                let placed = &self.placed[id];
                for (at, path) in placed.route.iter().enumerate() {
                    if path.contains(&queue) {
                        loads.configured += placed.limits[at].rate();
                        loads.least += placed.workload.demands[at].arrivals.rate();
                    }
                }
            }
            self.loads[queue] = loads;
        }
    }
}
