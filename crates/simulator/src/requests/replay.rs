//! Promises against a replay: what is bounded, what is seen, and, where a bound is exceeded, what it takes for granted that is not so.

use std::sync::Arc;

use leeward_calculus::ArrivalCurve;
use leeward_fabric::Nanos;
use leeward_placement::volumes::bound::{
    Bound, BoundSettings, Bounds, Method, SystemError, Unbounded, Unit, bounds,
};
use leeward_placement::volumes::{Promise, System, time};
use leeward_traces::Stage;

use super::arrival::{Arrival, Source};
use super::error::RequestsError;
use super::order::Order;
use super::report::Report;
use super::setup::{Device, Over, Setup};
use super::tally::rank;

/// What is replayed, and what was promised.
#[derive(Clone, Debug)]
pub struct Replay<'a> {
    /// Queues, priorities and limits.
    pub system: &'a System,
    /// How bounds are made. A device of the replay is handed [`BoundSettings::outstanding`] requests, and a link sends frames where
    /// frames are what is served whole, so that both speak of the same machines.
    pub bounds: BoundSettings,
    /// The bounds that are promised.
    pub method: Method,
    /// What happens to requests over a limit, at every stage. Bounds are of [`Over::Held`].
    pub over: Over,
    /// Who is served next, at devices; and on links, where the order has a meaning there. Bounds are of [`Order::Priority`].
    pub order: Order,
    /// What each workload sends; None for one that is known by curves only, and sends nothing.
    pub sent: Vec<Option<Arc<[Arrival]>>>,
    /// What requests take at devices without queueing, beside their work ([`super::tails`]), by workload; if empty, nothing, though
    /// bounds add what is profiled.
    pub tails: Vec<Arc<[Nanos]>>,
}

/// A replay that cannot be.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum ReplayError {
    /// An invalid system.
    #[error(transparent)]
    System(#[from] SystemError),
    /// An invalid setup or request.
    #[error(transparent)]
    Requests(#[from] RequestsError),
}

/// What became of promises.
#[derive(Clone, PartialEq, Debug)]
pub struct Replayed {
    /// By workload.
    pub workloads: Vec<Held>,
    /// All that was measured, with a row for each request.
    pub report: Report,
}

/// What became of a promise.
#[derive(Clone, PartialEq, Debug)]
pub struct Held {
    /// Its bound.
    pub bound: Result<Bound, Unbounded>,
    /// What was seen; None if it sent nothing.
    pub seen: Option<Seen>,
    /// What the bound takes for granted and is not so, if it was exceeded. Empty if it was not; never empty if it was.
    pub broken: Vec<Assumption>,
}

/// What was seen of a workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    /// Requests.
    pub requests: u64,
    /// The latency at the SLO's percentile, exactly; the 99.9th for best effort.
    pub tail: Nanos,
    /// The largest latency.
    pub worst: Nanos,
    /// Windows of three minutes in which requests were done.
    pub windows: u64,
    /// Those in which the SLO was met, by percentiles that are at most 0.8 % too large.
    pub windows_met: u64,
    /// Requests that were over their limits somewhere and served all the same.
    pub demoted: u64,
    /// Requests later than the SLO.
    pub late: u64,
}

/// What a bound takes for granted. Each is looked at by itself.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
pub enum Assumption {
    /// Strict priorities.
    #[error("bounds are of strict priorities, and devices served in another order")]
    Order,
    /// What is over a limit waits.
    #[error(
        "{requests} requests were served although they were over their limits, and bounds take them to be held"
    )]
    Demoted {
        /// How many, of all workloads.
        requests: u64,
    },
    /// A fluid.
    #[error("bounds are of a fluid (`unit: fluid`), and requests are served whole: as whole requests the bound is {}", said(.whole))]
    Fluid {
        /// The bound where requests count as whole; None if there is none.
        whole: Option<f64>,
    },
    /// Limits that let each request pass.
    #[error("requests of {workload} at {stage} are larger than the burst of its limit, and pass whole")]
    Larger {
        /// Whose.
        workload: String,
        /// Where.
        stage: Stage,
    },
    /// A curve that covers the trace.
    #[error("the trace has more work at {stage} than its curve allows")]
    Curve {
        /// Where.
        stage: Stage,
    },
    /// Independence.
    #[error("{other} replays the same trace at the same time, and the two are not declared dependent")]
    Independent {
        /// Another workload.
        other: String,
    },
    /// A model that covers the trace.
    #[error("the models do not cover this run: a stochastic bound holds as far as they are like the traces; by curves the bound is {}", said(.curves))]
    Model {
        /// The bound by curves, which needs no model; None if there is none.
        curves: Option<f64>,
    },
    /// Devices that take no longer without queueing than was profiled at the SLO's percentile.
    #[error("{requests} requests drew a longer time without queueing at {stage} than the bound adds")]
    Tail {
        /// How many.
        requests: u64,
        /// Where.
        stage: Stage,
    },
    /// A device that is busy while anything waits.
    #[error("{server} did not serve for {} while requests waited, because of its caps", .starved)]
    Starved {
        /// The device.
        server: String,
        /// How long.
        starved: Nanos,
    },
    /// None of those above.
    #[error("every assumption that is looked at holds: the bound or the replay is at fault")]
    None,
}

fn said(bound: &Option<f64>) -> String {
    bound.map_or_else(|| "none".to_owned(), time)
}

impl Replay<'_> {
    /// Bounds, and the replay.
    ///
    /// # Errors
    /// An invalid system, or invalid requests.
    pub fn run(&self) -> Result<Replayed, ReplayError> {
        let mut promised = Bounds::new(self.system, self.bounds)?;
        let promised: Vec<_> =
            (0..self.system.promises.len()).map(|at| promised.bound(at, self.method)).collect();
        let setup = self.setup()?;
        let sent =
            self.sent.iter().map(|sent| Source::open(sent.iter().flat_map(|sent| sent.iter().copied())));
        let report = super::run(&setup, sent.collect())?;
        let seen = self.seen(&report);
        let mut workloads = Vec::with_capacity(promised.len());
        for (at, (bound, seen)) in promised.into_iter().zip(seen).enumerate() {
            let broken = match (&bound, &seen) {
                (Ok(bound), Some(seen)) if self.exceeded(at, bound, seen) => self.broken(at, bound, &report),
                _ => Vec::new(),
            };
            workloads.push(Held { bound, seen, broken });
        }
        Ok(Replayed { workloads, report })
    }

    /// The setup that is run.
    ///
    /// # Errors
    /// A system that cannot be replayed.
    pub fn setup(&self) -> Result<Setup, RequestsError> {
        let mut setup = Setup::of_system(self.system, Device::ssd(self.bounds.outstanding))?;
        let stages = setup.workloads.iter_mut().flat_map(|workload| &mut workload.stages);
        stages.for_each(|stage| stage.over = self.over);
        for server in &mut setup.servers {
            if server.device.is_some() || self.order == Order::Fifo {
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

    fn seen(&self, report: &Report) -> Vec<Option<Seen>> {
        let mut latencies: Vec<Vec<u64>> = vec![Vec::new(); self.system.promises.len()];
        if let Some(rows) = &report.rows {
            rows.workload
                .iter()
                .zip(&rows.latency)
                .for_each(|(&of, &latency)| latencies[of as usize].push(latency));
        }
        let all = self.system.promises.iter().zip(&report.workloads).zip(latencies);
        all.map(|((promise, measured), mut latencies)| {
            let slo = promise.workload.slo;
            let at = rank(slo.map_or(99.9, |slo| slo.percentile), latencies.len() as u64)? as usize - 1;
            let tail = Nanos(*latencies.select_nth_unstable(at).1);
            let asked = slo.map_or(u64::MAX, |slo| Nanos::from_secs_f64(slo.latency).0);
            Some(Seen {
                requests: measured.latency.count(),
                tail,
                worst: measured.latency.largest(),
                windows: measured.windows.len() as u64,
                windows_met: measured.windows.iter().filter(|window| window.tail.0 <= asked).count() as u64,
                demoted: measured.demoted,
                late: measured.late,
            })
        })
        .collect()
    }

    /// Whether a bound was exceeded: a stochastic one is of the percentile, others are of every request. A service ends at a whole
    /// nanosecond, so each queue may add one, and each limiter.
    fn exceeded(&self, at: usize, bound: &Bound, seen: &Seen) -> bool {
        let promise = &self.system.promises[at];
        let hops: usize = promise.route.iter().map(|path| path.len() + 1).sum();
        // Drawn tails are within what the bound adds for the percentile only, whatever the bound.
        let of_percentile = bound.method == Method::Snc || !self.tails.is_empty();
        let most = if of_percentile { seen.tail } else { seen.worst };
        most.0 as f64 > bound.seconds * 1e9 * (1.0 + 1e-9) + 2.0 * hops as f64
    }

    /// What is not as the bound of a promise takes it to be.
    fn broken(&self, at: usize, bound: &Bound, report: &Report) -> Vec<Assumption> {
        let mut broken = Vec::new();
        let again = |method, settings| {
            bounds(self.system, method, settings)[at].as_ref().ok().map(|bound| bound.seconds)
        };
        if self.order != Order::Priority {
            broken.push(Assumption::Order);
        }
        let requests = report.workloads.iter().map(|measured| measured.demoted).sum();
        if requests > 0 {
            broken.push(Assumption::Demoted { requests });
        }
        if self.bounds.unit == Unit::Fluid {
            let settings = BoundSettings { unit: Unit::Requests, ..self.bounds };
            broken.push(Assumption::Fluid { whole: again(bound.method, settings) });
            broken.extend(self.system.promises.iter().filter_map(larger));
        }
        if let Some(sent) = &self.sent[at] {
            let demands = &self.system.promises[at].workload.demands;
            let over = demands.iter().filter(|demand| !within(&demand.arrivals, sent, demand.stage));
            broken.extend(over.map(|demand| Assumption::Curve { stage: demand.stage }));
        }
        broken.extend(self.longer(at));
        let starved = report.servers.iter().filter(|server| server.starved > Nanos(0));
        broken.extend(
            starved
                .map(|server| Assumption::Starved { server: server.name.clone(), starved: server.starved }),
        );
        if bound.method == Method::Snc {
            broken.extend(self.same_trace(at));
            broken.push(Assumption::Model { curves: again(Method::Dnc, self.bounds) });
        }
        if broken.is_empty() {
            broken.push(Assumption::None);
        }
        broken
    }

    /// That a workload's requests drew longer times without queueing than its bound adds.
    fn longer(&self, at: usize) -> Option<Assumption> {
        let (sent, tails) = (self.sent[at].as_ref()?, self.tails.get(at)?);
        let demands = &self.system.promises[at].workload.demands;
        let demand = demands.iter().find(|demand| demand.stage == Stage::Storage)?;
        let alone = sent
            .iter()
            .zip(tails.iter().cycle())
            .map(|(arrival, tail)| arrival.work[Stage::Storage as usize] + tail.as_secs_f64());
        let requests = alone.filter(|&alone| alone > demand.unloaded + 1e-9).count() as u64;
        (requests > 0).then_some(Assumption::Tail { requests, stage: Stage::Storage })
    }

    /// Another workload of the same trace that is taken for independent.
    fn same_trace(&self, at: usize) -> Option<Assumption> {
        let own = self.sent[at].as_ref()?;
        let workload = |of: usize| &self.system.promises[of].workload;
        let same = |&other: &usize| {
            let dependent = workload(at).dependencies.contains(&workload(other).name)
                || workload(other).dependencies.contains(&workload(at).name);
            other != at && !dependent && self.sent[other].as_ref().is_some_and(|sent| Arc::ptr_eq(own, sent))
        };
        let other = (0..self.sent.len()).find(same)?;
        Some(Assumption::Independent { other: workload(other).name.clone() })
    }
}

/// That a promise has requests larger than a burst of its limits.
fn larger(promise: &Promise) -> Option<Assumption> {
    let mut stages = promise.workload.demands.iter().zip(&promise.limits);
    let (demand, _) = stages.find(|(demand, limits)| demand.largest > limits.burst())?;
    Some(Assumption::Larger { workload: promise.workload.name.clone(), stage: demand.stage })
}

/// Whether requests keep within a curve at a stage.
fn within(curve: &ArrivalCurve, sent: &[Arrival], stage: Stage) -> bool {
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
