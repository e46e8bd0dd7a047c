//! The analysed network: queues and workloads.

use crate::mmpp::Mmpp;
use crate::queue_order;

use super::analysis::{Analysis, MOST_NODES};
use super::error::NetworkError;
use super::expressions::Expressions;
use super::plan::{Flow, Plan};
use super::tail::Latency;

/// A queue of strict priorities.
#[derive(Clone, PartialEq, Debug)]
pub struct Queue {
    /// Name of the queue, for workloads and errors.
    pub name: String,
    /// Rate, in work per second.
    pub rate: f64,
    /// Work of any origin that may be in service when a request of any priority arrives; 0 if the [`Stage::packet`]s
    /// account for all of it.
    pub in_service: f64,
    /// Latency, in seconds: in any t seconds with backlog, the queue serves at least `rate` (t - `latency`).
    pub latency: f64,
}

/// One pass of a workload through the network, for example requests on their way in, or responses on their way out.
#[derive(Clone, PartialEq, Debug)]
pub struct Stage {
    /// Queues on the path, in order; at least one, and none twice.
    pub queues: Vec<String>,
    /// Arrivals at the first queue.
    pub arrivals: Mmpp,
    /// Work that is served and forwarded whole: the largest request, or the largest frame. A value of 0 is a fluid, as
    /// published.
    pub packet: f64,
}

/// A workload with one latency objective over all its stages together.
#[derive(Clone, PartialEq, Debug)]
pub struct Workload {
    /// Name of the workload, for errors and dependencies.
    pub name: String,
    /// Percentile in percent, above 0 and below 100.
    pub percentile: f64,
    /// Priority; 0 is served first. Bounds for equal priorities hold for any order of service.
    pub priority: u32,
    /// Names of workloads whose bursts may coincide with the bursts of this one. The relation is symmetric and
    /// transitive, so it suffices if one of two workloads names the other.
    pub dependencies: Vec<String>,
    /// Stages; the excess probability is split equally over them.
    pub stages: Vec<Stage>,
}

/// The bound of a workload.
#[derive(Clone, PartialEq, Debug)]
pub struct WorkloadBound {
    /// Sum over the stages; `None` if a stage has no bound.
    pub seconds: Option<f64>,
    /// The bound of each stage at its share of the percentile.
    pub stages: Vec<Latency>,
}

/// A checked network.
#[derive(Clone, Debug)]
pub struct Network {
    plan: Plan,
    /// Excess probability of each workload, and its range of flows.
    workloads: Vec<(f64, std::ops::Range<usize>)>,
    expressions: Expressions,
}

impl Network {
    /// Checks and builds a network. All models must have the same step, and all paths must follow one order of
    /// queues.
    ///
    /// # Errors
    ///
    /// Fails at the first invalid queue, workload, path, dependency or model.
    pub fn new(queues: &[Queue], workloads: &[Workload]) -> Result<Network, NetworkError> {
        let queue_names = names(queues.iter().map(|queue| &queue.name), "queue")?;
        let names = names(workloads.iter().map(|workload| &workload.name), "workload")?;
        if let Some(queue) = queues.iter().find(|queue| !(queue.rate.is_finite() && queue.rate > 0.0)) {
            return Err(NetworkError::Rate { queue: queue.name.clone(), rate: queue.rate });
        }
        if let Some(queue) = queues.iter().find(|queue| !is_work(queue.in_service)) {
            return Err(NetworkError::InService { queue: queue.name.clone(), work: queue.in_service });
        }
        if let Some(queue) = queues.iter().find(|queue| !is_work(queue.latency)) {
            return Err(NetworkError::Latency { queue: queue.name.clone(), latency: queue.latency });
        }
        for workload in workloads {
            let name = || workload.name.clone();
            if !(workload.percentile > 0.0 && workload.percentile < 100.0) {
                let percentile = workload.percentile;
                return Err(NetworkError::Percentile { workload: name(), percentile });
            }
            if workload.stages.is_empty() {
                return Err(NetworkError::NoStage { workload: name() });
            }
        }
        let groups = groups(workloads, &names)?;
        let step = workloads.first().map_or(1.0, |workload| workload.stages[0].arrivals.step());
        let mut network =
            Network {
                plan: Plan {
                    flows: Vec::new(),
                    rates: queues.iter().map(|queue| queue.rate).collect(),
                    in_service: queues.iter().map(|queue| queue.in_service).collect(),
                    latencies: queues.iter().map(|queue| queue.latency).collect(),
                    within_steps: false,
                    passing: vec![Vec::new(); queues.len()],
                },
                workloads: Vec::new(),
                expressions: Expressions::new(step, workloads.len()).map_err(|fault| {
                    NetworkError::Model { workload: workloads[0].name.clone(), stage: 0, fault }
                })?,
            };
        for (workload, &group) in workloads.iter().zip(&groups) {
            let first = network.plan.flows.len();
            for stage in 0..workload.stages.len() {
                network.add_stage(workload, stage, group, &queue_names)?;
            }
            let excess = (1.0 - workload.percentile / 100.0) / workload.stages.len() as f64;
            network.workloads.push((excess, first..network.plan.flows.len()));
        }
        let paths = network.plan.flows.iter().map(|flow| flow.queues.as_slice());
        queue_order(queues.len(), paths)
            .map_err(|queue| NetworkError::Cycle { queue: queues[queue].name.clone() })?;
        Ok(network)
    }

    /// Tightens bounds by Lyapunov's inequality ([`Expressions::set_lyapunov`]); initially off, as published.
    pub fn set_lyapunov(&mut self, on: bool) {
        self.expressions.set_lyapunov(on);
    }

    /// Restricts the search for bounds to a grid ([`Expressions::set_coarse`]); initially off.
    pub fn set_coarse(&mut self, on: bool) {
        self.expressions.set_coarse(on);
    }

    /// Takes union bounds over time in blocks of steps ([`Expressions::set_blocks`]); initially off, as published.
    pub fn set_blocks(&mut self, on: bool) {
        self.expressions.set_blocks(on);
    }

    /// Takes percentiles over requests instead of over time ([`Expressions::set_by_request`]); initially off, as
    /// published. With [`Analysis::HopByHop`] this applies only at the first queue.
    pub fn set_by_request(&mut self, on: bool) {
        self.expressions.set_by_request(on);
    }

    /// Allows requests to arrive, and busy periods to begin, at any moment of a step. Initially off, as published: a
    /// step is then one point in time, with all its service at its end.
    pub fn set_within_steps(&mut self, on: bool) {
        self.plan.within_steps = on;
    }

    /// Bounds of a workload's stages, given all other workloads.
    ///
    /// # Errors
    ///
    /// Fails if the workload does not exist, or if its expression would be too large.
    pub fn bound(&mut self, workload: usize, analysis: Analysis) -> Result<WorkloadBound, NetworkError> {
        let (excess, flows) = self.workload(workload)?;
        let stages = flows.map(|flow| self.flow_bound(workload, flow, excess, analysis));
        let stages = stages.collect::<Result<Vec<Latency>, NetworkError>>()?;
        let seconds = stages.iter().map(Latency::seconds).sum();
        Ok(WorkloadBound { seconds, stages })
    }

    /// The bound of one stage of a workload at a percentile for this stage alone, for unequal splits.
    ///
    /// # Errors
    ///
    /// Fails if the workload or stage does not exist, if the percentile is outside of (0, 100), or if the expression
    /// would be too large.
    pub fn stage_bound(
        &mut self,
        workload: usize,
        stage: usize,
        percentile: f64,
        analysis: Analysis,
    ) -> Result<Latency, NetworkError> {
        self.stage_bound_beyond(workload, stage, 1.0 - percentile / 100.0, analysis)
    }

    /// The same bound, for an excess probability above 0 and below 1. It serves percentiles so close to 100 that a
    /// double cannot represent them.
    ///
    /// # Errors
    ///
    /// Fails as [`Network::stage_bound`] does.
    pub fn stage_bound_beyond(
        &mut self,
        workload: usize,
        stage: usize,
        excess: f64,
        analysis: Analysis,
    ) -> Result<Latency, NetworkError> {
        let (_, flows) = self.workload(workload)?;
        if stage >= flows.len() {
            return Err(NetworkError::NoSuchStage { workload, stage, count: flows.len() });
        }
        if !(excess > 0.0 && excess < 1.0) {
            let percentile = 100.0 * (1.0 - excess);
            return Err(NetworkError::Percentile { workload: workload.to_string(), percentile });
        }
        self.flow_bound(workload, flows.start + stage, excess, analysis)
    }

    fn workload(&self, index: usize) -> Result<(f64, std::ops::Range<usize>), NetworkError> {
        let count = self.workloads.len();
        self.workloads.get(index).cloned().ok_or(NetworkError::NoWorkload { index, count })
    }

    fn flow_bound(
        &mut self,
        workload: usize,
        flow: usize,
        excess: f64,
        analysis: Analysis,
    ) -> Result<Latency, NetworkError> {
        self.expressions.clear();
        let latency = analysis.latency(&self.plan, &mut self.expressions, flow, excess);
        latency.ok_or(NetworkError::Size { workload, most: MOST_NODES })
    }

    /// Bounds of every workload, in order. Workloads with too many terms ([`NetworkError::Size`]) have none.
    pub fn bounds(&mut self, analysis: Analysis) -> Vec<WorkloadBound> {
        let none = || WorkloadBound { seconds: None, stages: Vec::new() };
        (0..self.workloads.len()).map(|at| self.bound(at, analysis).unwrap_or_else(|_| none())).collect()
    }

    fn add_stage(
        &mut self,
        workload: &Workload,
        at: usize,
        group: usize,
        names: &[(&str, usize)],
    ) -> Result<(), NetworkError> {
        let stage = &workload.stages[at];
        let name = || workload.name.clone();
        let count = stage.queues.len();
        if count == 0 || (1..count).any(|at| stage.queues[..at].contains(&stage.queues[at])) {
            return Err(NetworkError::Path { workload: name(), stage: at, queues: count });
        }
        if !is_work(stage.packet) {
            let (workload, packet) = (workload.name.clone(), stage.packet);
            return Err(NetworkError::Packet { workload, stage: at, packet });
        }
        let mut queues = Vec::new();
        for queue in &stage.queues {
            let Some(index) = find(names, queue) else {
                return Err(NetworkError::UnknownQueue { workload: name(), stage: at, queue: queue.clone() });
            };
            self.plan.passing[index].push(self.plan.flows.len());
            queues.push(index);
        }
        let model = self.expressions.model(&stage.arrivals).map_err(|fault| NetworkError::Model {
            workload: name(),
            stage: at,
            fault,
        })?;
        let (priority, packet) = (workload.priority, stage.packet);
        self.plan.flows.push(Flow { group, priority, queues, model, packet });
        Ok(())
    }
}

fn is_work(work: f64) -> bool {
    work.is_finite() && work >= 0.0
}

/// Names with their indices, sorted by name.
fn names<'a>(
    names: impl Iterator<Item = &'a String>,
    kind: &'static str,
) -> Result<Vec<(&'a str, usize)>, NetworkError> {
    let mut sorted: Vec<(&str, usize)> = names.enumerate().map(|(at, name)| (name.as_str(), at)).collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(NetworkError::DuplicateName { kind, name: pair[0].0.to_string() }),
        None => Ok(sorted),
    }
}

fn find(names: &[(&str, usize)], name: &str) -> Option<usize> {
    names.binary_search_by(|known| known.0.cmp(name)).ok().map(|at| names[at].1)
}

/// Group of each workload: workloads that depend on one another, directly or through others, share a group.
fn groups(workloads: &[Workload], names: &[(&str, usize)]) -> Result<Vec<usize>, NetworkError> {
    let mut group: Vec<usize> = (0..workloads.len()).collect();
    for (at, workload) in workloads.iter().enumerate() {
        for dependency in &workload.dependencies {
            let Some(other) = find(names, dependency) else {
                return Err(NetworkError::UnknownDependency {
                    workload: workload.name.clone(),
                    dependency: dependency.clone(),
                });
            };
            if other == at {
                return Err(NetworkError::OwnDependency { workload: workload.name.clone() });
            }
            let (from, to) = (group[other], group[at]);
            group.iter_mut().filter(|group| **group == from).for_each(|group| *group = to);
        }
    }
    Ok(group)
}
