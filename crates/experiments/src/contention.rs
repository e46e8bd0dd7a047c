//! Workloads that share machines under each request scheduler (SLO sections 3.3 and 3.4).

use std::sync::Arc;

use leeward_fabric::Nanos;
use leeward_requests::{
    Cake, Caps, Device as DeviceCaps, Interval, Report, Scheduling, Setup, Source, rank, run,
};
use leeward_slo::bound::{BoundSettings, Bounds, Method, Unit};
use leeward_slo::priorities::{LEVELS, by_slo, priority_meister};
use leeward_slo::{Promise, Slo, System, Workload};
use leeward_traces::device::Device;
use leeward_traces::{Request, Stage};

use super::workload_draw::{DrawContext, DrawnWorkload, RequestSource, WorkloadDraw};
use super::{ExperimentError, Shape};

/// Request scheduler (SLO section 3.3.1).
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Scheduler {
    /// Equal shares of each device's time; networks in order of arrival.
    Shares,
    /// Shares that feedback with these settings adjusts; networks in order of arrival.
    Cake(Cake),
    /// Earliest deadline first at devices; networks in order of arrival.
    Deadline,
    /// Priorities by SLO, the tightest first, everywhere; no limits.
    BySlo,
    /// Priorities by PriorityMeister's search and limits from curves, everywhere.
    PriorityMeister,
}

impl Scheduler {
    /// All schedulers, in the order of the thesis; Cake has its default settings.
    pub const ALL: [Scheduler; 5] = [
        Scheduler::Shares,
        Scheduler::Cake(Cake::DEFAULT),
        Scheduler::Deadline,
        Scheduler::BySlo,
        Scheduler::PriorityMeister,
    ];

    /// Name of the scheduler.
    pub fn name(self) -> &'static str {
        match self {
            Scheduler::Shares => "ps",
            Scheduler::Cake(_) => "cake",
            Scheduler::Deadline => "edf",
            Scheduler::BySlo => "by-slo",
            Scheduler::PriorityMeister => "pm",
        }
    }

    /// Returns the scheduler of a name.
    pub fn from_name(name: &str) -> Option<Scheduler> {
        Scheduler::ALL.into_iter().find(|scheduler| scheduler.name() == name)
    }

    /// Service order of devices.
    fn order(self) -> Scheduling {
        match self {
            Scheduler::Shares => Scheduling::Shares,
            Scheduler::Cake(settings) => Scheduling::Cake(settings),
            Scheduler::Deadline => Scheduling::Deadline,
            Scheduler::BySlo | Scheduler::PriorityMeister => Scheduling::Priority,
        }
    }
}

/// Setup of a contention experiment.
#[derive(Clone, PartialEq, Debug)]
pub struct ContentionExperiment {
    /// Workloads.
    pub members: Vec<WorkloadDraw>,
    /// Recorded traces of [`WorkloadDraw::recorded`], each in order of time.
    pub traces: Vec<Vec<Request>>,
    /// Machines.
    pub shape: Shape,
    /// Device of all servers, with its caps except for the number of requests: bounds count one at a time.
    pub device: Device,
    /// Device model of curves (SLO figure 3.8); `None` for the true device.
    pub model: Option<Device>,
    /// Largest packet of links, in bytes: a link may switch to a higher priority after each packet.
    pub packet: f64,
    /// Time for which requests are sent, in seconds.
    pub seconds: f64,
    /// Start of measurement, in seconds (SLO section 3.3.1: the second half).
    pub from: f64,
    /// Percentile of SLOs in percent, which Cake measures.
    pub percentile: f64,
    /// Measured percentiles, in percent.
    pub percentiles: Vec<f64>,
}

/// Result of a workload.
#[derive(Clone, PartialEq, Debug)]
pub struct ContentionResult {
    /// Number of requests that arrived at [`ContentionExperiment::from`] or later.
    pub requests: u64,
    /// Number of these requests with a latency above the SLO.
    pub late: u64,
    /// Exact latencies of these requests at [`ContentionExperiment::percentiles`], in seconds; empty without requests.
    pub tails: Vec<f64>,
    /// Number of requests, in the whole run, that were served over their limits. Even if all workloads conform to their
    /// curves, there are a few, because networks move requests closer together.
    pub demoted: u64,
    /// Priority at each stage of the workload: 0 is served first.
    pub priorities: Vec<(Stage, u32)>,
    /// Latency bound in seconds; `None` without an SLO or a bound, and for schedulers other than PriorityMeister.
    pub bound: Option<f64>,
    /// Intervals of ten seconds in which requests ended: start in seconds, number of requests, and number of late ones.
    pub intervals: Vec<(f64, u64, u64)>,
}

/// A contention experiment with its traces, which are the same for every scheduler.
#[derive(Debug)]
pub struct DrawnContention {
    experiment: ContentionExperiment,
    drawn: Vec<DrawnWorkload>,
    system: System,
}

impl DrawnContention {
    /// Draws traces. A workload's trace is a function of the seed, its position in the list and its traffic.
    ///
    /// # Errors
    /// Returns an error for an invalid setup or workload.
    pub fn new(experiment: ContentionExperiment, seed: u64) -> Result<DrawnContention, ExperimentError> {
        let ContentionExperiment { seconds, from, .. } = experiment;
        if !(seconds > 0.0 && seconds <= 1e6 && from >= 0.0 && from < seconds) {
            let problem = format!(
                "{seconds} s, measured from {from} s on: expected at most 1e6 s, and an earlier start"
            );
            return Err(ExperimentError::draw("length", problem));
        }
        if let Some(invalid) =
            experiment.percentiles.iter().find(|&&percentile| !(percentile > 0.0 && percentile < 100.0))
        {
            return Err(ExperimentError::draw(
                "percentiles",
                format!("{invalid}: expected above 0 and below 100"),
            ));
        }
        let site = experiment.shape.site()?;
        let context = DrawContext {
            device: &experiment.device,
            model: experiment.model.as_ref().unwrap_or(&experiment.device),
            bytes: experiment.shape.bytes,
            seconds,
            traces: &experiment.traces,
            seed,
        };
        let mut drawn = Vec::with_capacity(experiment.members.len());
        let mut promises = Vec::with_capacity(experiment.members.len());
        for (index, member) in experiment.members.iter().enumerate() {
            let Shape { clients, servers, devices, .. } = experiment.shape;
            let device = member.device.unwrap_or(0);
            if member.client >= clients || member.server >= servers || device >= devices {
                let problem = format!(
                    "client {}, server {}, device {device}: expected numbers below {clients}, {servers} and {devices}",
                    member.client, member.server
                );
                return Err(member.invalid(problem));
            }
            let workload = member.draw(index, context)?;
            let path = |stage| site.path(member.client, member.server, device, stage);
            let slo = member.slo.map(|latency| Slo { percentile: experiment.percentile, latency });
            let limits = workload.demands.iter().map(|demand| match &workload.limits {
                Some(limits) if demand.stage == Stage::Storage => limits.clone(),
                _ => demand.arrivals.clone(),
            });
            promises.push(Promise {
                route: member.stages().map(path).collect(),
                priorities: vec![0; workload.demands.len()],
                limits: limits.collect(),
                workload: Arc::new(Workload {
                    name: member.name.clone(),
                    slo,
                    demands: workload.demands.clone(),
                    dependencies: Vec::new(),
                }),
            });
            drawn.push(workload);
        }
        let system = System { queues: site.queues().to_vec(), promises };
        Bounds::new(&system, experiment.bounds())?;
        Ok(DrawnContention { experiment, drawn, system })
    }

    /// Runs the experiment under a scheduler and returns the result of each workload, in order.
    ///
    /// # Errors
    /// Returns an error if the setup cannot be run.
    pub fn run(&self, scheduler: Scheduler) -> Result<Vec<ContentionResult>, ExperimentError> {
        let (system, bounds) = self.with_priorities(scheduler);
        let setup = self.setup(&system, scheduler)?;
        let sources = self.drawn.iter().map(|drawn| {
            let requests = drawn.requests.arrivals(&self.experiment.device);
            match drawn.requests {
                RequestSource::Open(_) => Source::open(requests),
                RequestSource::Closed { outstanding, .. } => Source::closed(outstanding, requests),
            }
        });
        let report = run(&setup, sources.collect())?;
        Ok(self.results(&system, bounds, &report))
    }

    /// Returns the system with a scheduler's priorities, and its bounds.
    fn with_priorities(&self, scheduler: Scheduler) -> (System, Vec<Option<f64>>) {
        let mut system = self.system.clone();
        match scheduler {
            Scheduler::Shares | Scheduler::Cake(_) | Scheduler::Deadline => {}
            Scheduler::BySlo => by_slo(&mut system),
            Scheduler::PriorityMeister => {
                let settings = self.experiment.bounds();
                let mut bound = |system: &System, promise: usize| {
                    Bounds::new(system, settings)?.bound(promise, Method::PriorityMeister)
                };
                let system = priority_meister(&system, LEVELS, &mut bound).system;
                let bound_of = |promise: usize| {
                    system.promises[promise].workload.slo?;
                    bound(&system, promise).ok().map(|bound| bound.seconds)
                };
                let bounds = (0..system.promises.len()).map(bound_of).collect();
                return (system, bounds);
            }
        }
        let none = vec![None; system.promises.len()];
        (system, none)
    }

    fn setup(&self, system: &System, scheduler: Scheduler) -> Result<Setup, ExperimentError> {
        let mut setup = Setup::of_system(system, self.experiment.bounds())?;
        for ((enforced, member), drawn) in
            setup.workloads.iter_mut().zip(&self.experiment.members).zip(&self.drawn)
        {
            for (limits, stage) in enforced.stages.iter_mut().zip(Stage::ALL) {
                let has_own_limits = stage == Stage::Storage && drawn.limits.is_some();
                let limited = scheduler == Scheduler::PriorityMeister && member.closed.is_none();
                if !(has_own_limits || limited) {
                    limits.limits.clear();
                }
            }
        }
        for server in &mut setup.servers {
            if let Some(DeviceCaps { outstanding, .. }) = server.device {
                server.order = scheduler.order();
                server.set_caps(&Caps::of_profile(&self.experiment.device.outstanding, outstanding));
            }
        }
        setup.packet = Some(self.experiment.packet);
        setup.until = Some(Nanos::from_secs_f64(self.experiment.seconds));
        setup.rows = true;
        Ok(setup)
    }

    fn results(&self, system: &System, bounds: Vec<Option<f64>>, report: &Report) -> Vec<ContentionResult> {
        let from = Nanos::from_secs_f64(self.experiment.from).0;
        let mut latencies: Vec<Vec<u64>> = vec![Vec::new(); system.promises.len()];
        if let Some(rows) = &report.rows {
            for (row, (&workload, &arrival)) in rows.workload.iter().zip(&rows.arrival).enumerate() {
                if arrival >= from {
                    latencies[workload as usize].push(rows.latency[row]);
                }
            }
        }
        let all = system.promises.iter().zip(&report.workloads).zip(latencies).zip(bounds);
        all.map(|(((promise, measured), mut latencies), bound)| {
            latencies.sort_unstable();
            let tail = |&percent: &f64| {
                let rank = rank(percent, latencies.len() as u64)? as usize;
                Some(Nanos(latencies[rank - 1]).as_secs_f64())
            };
            let slo = promise.workload.slo.map_or(u64::MAX, |slo| Nanos::from_secs_f64(slo.latency).0);
            let stages = promise.workload.demands.iter().map(|demand| demand.stage);
            let interval =
                |interval: &Interval| (interval.start.as_secs_f64(), interval.requests, interval.late);
            ContentionResult {
                requests: latencies.len() as u64,
                late: (latencies.len() - latencies.partition_point(|&latency| latency <= slo)) as u64,
                tails: self.experiment.percentiles.iter().filter_map(tail).collect(),
                demoted: measured.demoted,
                priorities: stages.zip(promise.priorities.iter().copied()).collect(),
                bound,
                intervals: measured.intervals.iter().map(interval).collect(),
            }
        })
        .collect()
    }
}

impl ContentionExperiment {
    /// Settings of bounds: packets on links, and whole requests at devices, one at a time.
    fn bounds(&self) -> BoundSettings {
        BoundSettings { unit: Unit::Frames, frame: self.packet, ..BoundSettings::default() }
    }
}
