//! Check of latency bounds against a replay: the bound, the measured latency and, if it exceeds the bound, the violated
//! assumptions.

use std::sync::Arc;

use leeward_calculus::ArrivalCurve;
use leeward_fabric::Nanos;
use leeward_shaping::OverLimit;
use leeward_slo::bound::{Bound, BoundSettings, Bounds, Method, SystemError, Unbounded, Unit, bounds};
use leeward_slo::{Promise, System, time};
use leeward_traces::Stage;

use super::arrival::{Arrival, Source};
use super::enforcer_rules::EnforcerRules;
use super::error::RequestsError;
use super::latency_histogram::rank;
use super::report::Report;
use super::scheduling::Scheduling;
use super::setup::Setup;

/// A replay, and the bounds to check.
#[derive(Clone, Debug)]
pub struct Replay<'a> {
    /// Queues, priorities and limits.
    pub system: &'a System,
    /// Settings of bounds. A device of the replay has as many requests at once as bounds assume
    /// ([`BoundSettings::at_once`]), and a link sends frames if bounds count frames. So bound and replay describe the same
    /// machines.
    pub bounds: BoundSettings,
    /// Method of the checked bounds.
    pub method: Method,
    /// Handling of requests over a limit, unless an [`EnforcerRules`] states it. Bounds assume [`OverLimit::Held`].
    pub over: OverLimit,
    /// Service order of devices, and of links if they support it.
    pub order: Scheduling,
    /// Requests of each workload; `None` for a workload without a trace, which sends nothing.
    pub arrivals: Vec<Option<Arc<[Arrival]>>>,
    /// Times of requests at devices without queueing, in addition to their work ([`super::tails`]), by workload. If
    /// empty, requests take no such time, although bounds add the profiled time.
    pub tails: Vec<Arc<[Nanos]>>,
}

/// Invalid replay.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum ReplayError {
    /// An invalid system.
    #[error(transparent)]
    System(#[from] SystemError),
    /// An invalid setup or request.
    #[error(transparent)]
    Requests(#[from] RequestsError),
}

/// Result of a replay.
#[derive(Clone, PartialEq, Debug)]
pub struct ReplayResult {
    /// Outcome by workload.
    pub workloads: Vec<BoundCheck>,
    /// All measurements, with a row for each request.
    pub report: Report,
}

/// Outcome of one workload's bound.
#[derive(Clone, PartialEq, Debug)]
pub struct BoundCheck {
    /// Bound of the workload.
    pub bound: Result<Bound, Unbounded>,
    /// Measured latency; `None` if the workload sent nothing.
    pub measured: Option<MeasuredLatency>,
    /// Violated assumptions if the bound is exceeded; never empty in that case. Empty if the bound holds.
    pub violated: Vec<Assumption>,
}

/// Measurements of a workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MeasuredLatency {
    /// Number of requests.
    pub requests: u64,
    /// Exact latency at the SLO's percentile; for best effort, at the 99.9th percentile.
    pub tail: Nanos,
    /// Largest latency.
    pub worst: Nanos,
    /// Number of three-minute windows in which requests ended.
    pub windows: u64,
    /// Number of windows that met the SLO. The percentile of a window is at most 0.8 % too large.
    pub windows_met: u64,
    /// Number of requests that were served while over their limits at any stage.
    pub demoted: u64,
    /// Number of requests with a latency above the SLO.
    pub late: u64,
}

/// Assumption of a bound. The check examines each one separately.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Assumption {
    /// Devices serve by strict priorities.
    #[error("bounds assume strict priorities, but devices served in another order")]
    Scheduling,
    /// Requests over a limit wait.
    #[error("{requests} requests over their limits were served, but bounds assume that they wait")]
    Demoted {
        /// Number of demoted requests of all workloads.
        requests: u64,
    },
    /// Work is a fluid.
    #[error("bounds assume a fluid (`unit: fluid`), but requests are served whole: with whole requests the bound is {}", bound_text(.whole))]
    Fluid {
        /// Bound with whole requests; `None` if there is none.
        whole: Option<f64>,
    },
    /// Every request fits in the burst of its limit.
    #[error("requests of {workload} at {stage} are larger than the burst of its limit, and pass whole")]
    Larger {
        /// Name of the workload.
        workload: String,
        /// Stage of the limit.
        stage: Stage,
    },
    /// The arrival curve covers the trace.
    #[error("the trace has more work at {stage} than its curve allows")]
    Curve {
        /// Stage of the curve.
        stage: Stage,
    },
    /// Workloads are independent.
    #[error("{other} replays the same trace at the same time, and the two are not declared dependent")]
    Independent {
        /// Name of the other workload.
        other: String,
    },
    /// The stochastic model covers the trace.
    #[error("the models do not cover this run: a stochastic bound holds only if they resemble the traces; by curves the bound is {}", bound_text(.curves))]
    Model {
        /// Bound by curves, which needs no model; `None` if there is none.
        curves: Option<f64>,
    },
    /// Device times without queueing stay within the profiled time at the SLO's percentile.
    #[error("{requests} requests drew a longer time without queueing at {stage} than the bound adds")]
    Tail {
        /// Number of such requests.
        requests: u64,
        /// Stage of the device.
        stage: Stage,
    },
    /// A device starts single requests.
    #[error("{server} starts writes in batches, but bounds count each request at once")]
    Batches {
        /// Name of the device.
        server: String,
    },
    /// The device is busy whenever requests wait.
    #[error("{server} did not serve for {} while requests waited, because of its caps", .starved)]
    Starved {
        /// Name of the device.
        server: String,
        /// Time for which the device idled although requests waited.
        starved: Nanos,
    },
    /// No examined assumption is violated.
    #[error("no checked assumption is violated: the bound or the replay is wrong")]
    None,
}

fn bound_text(bound: &Option<f64>) -> String {
    bound.map_or_else(|| "none".to_owned(), time)
}

impl Replay<'_> {
    /// Computes the bounds, runs the replay and compares them.
    ///
    /// # Errors
    /// Returns an error if the system or a request is invalid.
    pub fn run(&self) -> Result<ReplayResult, ReplayError> {
        self.run_under(&EnforcerRules::default(), &[])
    }

    /// Computes the bounds, runs the replay under the rules of enforcers and compares them. `closed` has, by workload, the
    /// number of requests that it keeps open, whatever their times; 0 for an open loop. Workloads beyond its end are open
    /// loops too.
    ///
    /// # Errors
    /// Returns an error if the system, a rule or a request is invalid.
    pub fn run_under(&self, rules: &EnforcerRules, closed: &[u32]) -> Result<ReplayResult, ReplayError> {
        let mut analysis = Bounds::new(self.system, self.bounds)?;
        let results: Vec<_> =
            (0..self.system.promises.len()).map(|at| analysis.bound(at, self.method)).collect();
        let setup = self.setup_under(rules)?;
        let sent = self.arrivals.iter().enumerate().map(|(at, sent)| {
            let requests = sent.iter().flat_map(|sent| sent.iter().copied());
            match closed.get(at) {
                None | Some(0) => Source::open(requests),
                Some(&outstanding) => Source::closed(outstanding, requests),
            }
        });
        let report = super::run(&setup, sent.collect())?;
        let measured = self.measure(&report);
        let mut workloads = Vec::with_capacity(results.len());
        for (at, (bound, measured)) in results.into_iter().zip(measured).enumerate() {
            let violated = match (&bound, &measured) {
                (Ok(bound), Some(measured)) if self.exceeded(at, bound, measured) => {
                    self.violated(at, bound, &setup, &report)
                }
                _ => Vec::new(),
            };
            workloads.push(BoundCheck { bound, measured, violated });
        }
        Ok(ReplayResult { workloads, report })
    }

    /// Returns the setup of the replay.
    ///
    /// # Errors
    /// Returns an error if the system cannot be replayed.
    pub fn setup(&self) -> Result<Setup, RequestsError> {
        self.setup_under(&EnforcerRules::default())
    }

    /// Returns the setup of the replay under the rules of enforcers.
    ///
    /// # Errors
    /// Returns an error if the system cannot be replayed.
    pub fn setup_under(&self, rules: &EnforcerRules) -> Result<Setup, RequestsError> {
        let mut setup = Setup::of_system(self.system, self.bounds)?;
        let stages = setup.workloads.iter_mut().flat_map(|workload| &mut workload.stages);
        stages.for_each(|stage| stage.over = self.over);
        rules.apply(&mut setup);
        for server in &mut setup.servers {
            if server.device.is_some() || self.order == Scheduling::Fifo {
                server.order = self.order;
            }
        }
        if self.bounds.unit == Unit::Frames {
            setup.packet = Some(self.bounds.frame);
        }
        setup.rows = true;
        setup.tails = self.tails.clone();
        Ok(setup)
    }

    fn measure(&self, report: &Report) -> Vec<Option<MeasuredLatency>> {
        let mut latencies: Vec<Vec<u64>> = vec![Vec::new(); self.system.promises.len()];
        if let Some(rows) = &report.rows {
            rows.workload
                .iter()
                .zip(&rows.latency)
                .for_each(|(&workload, &latency)| latencies[workload as usize].push(latency));
        }
        let all = self.system.promises.iter().zip(&report.workloads).zip(latencies);
        all.map(|((promise, measured), mut latencies)| {
            let slo = promise.workload.slo;
            let at = rank(slo.map_or(99.9, |slo| slo.percentile), latencies.len() as u64)? as usize - 1;
            let tail = Nanos(*latencies.select_nth_unstable(at).1);
            let objective = slo.map_or(u64::MAX, |slo| Nanos::from_secs_f64(slo.latency).0);
            Some(MeasuredLatency {
                requests: measured.latency.count(),
                tail,
                worst: measured.latency.largest(),
                windows: measured.windows.len() as u64,
                windows_met: measured.windows.iter().filter(|window| window.tail.0 <= objective).count()
                    as u64,
                demoted: measured.demoted,
                late: measured.late,
            })
        })
        .collect()
    }

    /// Returns true if the workload exceeded its bound. A stochastic bound covers the percentile, other bounds cover
    /// every request. A service ends at a whole nanosecond, so each queue and each limiter may add one nanosecond.
    fn exceeded(&self, at: usize, bound: &Bound, measured: &MeasuredLatency) -> bool {
        let promise = &self.system.promises[at];
        let hops: usize = promise.route.iter().map(|path| path.len() + 1).sum();
        // For every bound, drawn tails stay within the bound's allowance only up to the percentile.
        let of_percentile = bound.method == Method::Snc || !self.tails.is_empty();
        let most = if of_percentile { measured.tail } else { measured.worst };
        most.0 as f64 > bound.seconds * 1e9 * (1.0 + 1e-9) + 2.0 * hops as f64
    }

    /// Returns the assumptions of a workload's bound that the run violates.
    fn violated(&self, at: usize, bound: &Bound, setup: &Setup, report: &Report) -> Vec<Assumption> {
        let mut violated = Vec::new();
        let recompute = |method, settings| {
            bounds(self.system, method, settings)[at].as_ref().ok().map(|bound| bound.seconds)
        };
        if self.order != Scheduling::Priority {
            violated.push(Assumption::Scheduling);
        }
        let requests = report.workloads.iter().map(|measured| measured.demoted).sum();
        if requests > 0 {
            violated.push(Assumption::Demoted { requests });
        }
        if self.bounds.unit == Unit::Fluid {
            let settings = BoundSettings { unit: Unit::Requests, ..self.bounds };
            violated.push(Assumption::Fluid { whole: recompute(bound.method, settings) });
            violated.extend(self.system.promises.iter().filter_map(burst_violation));
        }
        if let Some(sent) = &self.arrivals[at] {
            let demands = &self.system.promises[at].workload.demands;
            let over = demands.iter().filter(|demand| !conforms(&demand.arrivals, sent, demand.stage));
            violated.extend(over.map(|demand| Assumption::Curve { stage: demand.stage }));
        }
        violated.extend(self.tail_violation(at));
        let batches =
            setup.servers.iter().filter(|server| server.device.is_some_and(|device| device.batch.is_some()));
        violated.extend(batches.map(|server| Assumption::Batches { server: server.name.clone() }));
        let starved = report.servers.iter().filter(|server| server.starved > Nanos(0));
        violated.extend(
            starved
                .map(|server| Assumption::Starved { server: server.name.clone(), starved: server.starved }),
        );
        if bound.method == Method::Snc {
            violated.extend(self.same_trace(at));
            violated.push(Assumption::Model { curves: recompute(Method::Dnc, self.bounds) });
        }
        if violated.is_empty() {
            violated.push(Assumption::None);
        }
        violated
    }

    /// Checks for requests with a time without queueing above the bound's allowance.
    fn tail_violation(&self, at: usize) -> Option<Assumption> {
        let (sent, tails) = (self.arrivals[at].as_ref()?, self.tails.get(at)?);
        let demands = &self.system.promises[at].workload.demands;
        let demand = demands.iter().find(|demand| demand.stage == Stage::Storage)?;
        let alone = sent
            .iter()
            .zip(tails.iter().cycle())
            .map(|(arrival, tail)| arrival.work[Stage::Storage as usize] + tail.as_secs_f64());
        let requests = alone.filter(|&alone| alone > demand.unloaded + 1e-9).count() as u64;
        (requests > 0).then_some(Assumption::Tail { requests, stage: Stage::Storage })
    }

    /// Checks for another workload of the same trace that the bound assumes independent.
    fn same_trace(&self, at: usize) -> Option<Assumption> {
        let own = self.arrivals[at].as_ref()?;
        let workload = |index: usize| &self.system.promises[index].workload;
        let same = |&other: &usize| {
            let dependent = workload(at).dependencies.contains(&workload(other).name)
                || workload(other).dependencies.contains(&workload(at).name);
            other != at
                && !dependent
                && self.arrivals[other].as_ref().is_some_and(|sent| Arc::ptr_eq(own, sent))
        };
        let other = (0..self.arrivals.len()).find(same)?;
        Some(Assumption::Independent { other: workload(other).name.clone() })
    }
}

/// Checks for requests larger than a burst of their limits.
fn burst_violation(promise: &Promise) -> Option<Assumption> {
    let mut stages = promise.workload.demands.iter().zip(&promise.limits);
    let (demand, _) = stages.find(|(demand, limits)| demand.largest > limits.burst())?;
    Some(Assumption::Larger { workload: promise.workload.name.clone(), stage: demand.stage })
}

/// Returns true if the requests conform to a curve at a stage.
fn conforms(curve: &ArrivalCurve, sent: &[Arrival], stage: Stage) -> bool {
    let mut levels = vec![0.0f64; curve.buckets().len()];
    let mut last = Nanos(0);
    sent.iter().all(|arrival| {
        let passed = arrival.at.since(last).as_secs_f64();
        last = arrival.at;
        levels.iter_mut().zip(curve.buckets()).all(|(level, bucket)| {
            *level = (*level - bucket.rate() * passed).max(0.0) + arrival.work[stage as usize];
            *level <= bucket.burst() * (1.0 + 1e-9) + bucket.rate() * 1e-9
        })
    })
}
