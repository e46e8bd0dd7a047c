//! Random workloads from the properties in SLO table 3.1: a load and the burstiness of request gaps.

use leeward_calculus::{ArrivalCurve, RbCurve, TokenBucket};
use leeward_fabric::Nanos;
use leeward_registry::random::{Kind, stream};
use leeward_requests::Arrival;
use leeward_slo::Demand;
use leeward_traces::device::Device;
use leeward_traces::synthetic::{Bursts, Places, Shape as SyntheticShape, Sizes, Synthetic};
use leeward_traces::{NetworkWork, Request, Stage, Work};
use rand::RngExt;
use serde::{Deserialize, Serialize};

use super::ExperimentError;
use super::recorded::Recorded;

const DRAW: Kind = Kind::named("study-member");
const CHANGE: Kind = Kind::named("study-instead");
const PHASE: Kind = Kind::named("study-phase");
/// Bytes of each volume.
const VOLUME: u64 = 64 << 30;
/// Number of sampled requests to estimate the mean work of a request, or the largest work of a closed loop.
const SAMPLE: usize = 20_000;
/// Largest number of requests of a workload.
const MOST_REQUESTS: f64 = 2e7;
/// Largest relative increase of a curve when pruning removes buckets.
const PRUNING: f64 = 0.01;

/// A workload of a contention experiment.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadDraw {
    /// Name of the workload.
    pub name: String,
    /// Guaranteed latency, in seconds; `None` for best effort.
    pub slo: Option<f64>,
    /// Traffic of the workload, which also determines its limits.
    #[serde(rename = "sends")]
    pub traffic: Traffic,
    /// Index of a recorded trace with the times, kinds and sizes of the requests. It starts at a drawn place, is
    /// repeated, and has the pace that results in the load of `traffic`. Of the other properties of `traffic`, only the
    /// sequential share applies, for a trace without offsets; a change is drawn by all of them.
    #[serde(default)]
    pub recorded: Option<usize>,
    /// Different traffic for some time, without effect on limits.
    #[serde(default, rename = "instead")]
    pub change: Option<TrafficChange>,
    /// Number of outstanding requests of a closed loop; the next request is sent when an earlier one ends. A closed
    /// loop has neither load nor SLO.
    #[serde(default)]
    pub closed: Option<u32>,
    /// Index of the machine that sends the requests.
    #[serde(default)]
    pub client: usize,
    /// Index of the machine that stores the volume.
    #[serde(default)]
    pub server: usize,
    /// Index of the volume's device on the server. `None` stands for a volume in memory, whose accesses take no time.
    pub device: Option<usize>,
    /// Rates of the limits at the device, for all schedulers. Each rate gets the smallest burst that does not delay the
    /// workload. `None` leaves limits to the scheduler.
    #[serde(default)]
    pub rates: Option<Vec<f64>>,
}

/// Properties of requests.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    /// Mean load.
    pub load: Load,
    /// C^2 of the gaps between requests.
    pub gap_c2: f64,
    /// Correlation of gaps; `None` for independent gaps.
    #[serde(default)]
    pub bursts: Option<Bursts>,
    /// Sizes of requests in bytes, with their weights.
    pub sizes: Vec<(u64, f64)>,
    /// Share of reads.
    pub read_share: f64,
    /// Share of requests that start at the end of the previous request.
    pub sequential_share: f64,
}

/// Mean load, as a share of a capacity.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// Share of the device.
    Storage(f64),
    /// Share of the server's link to clients.
    NetworkOut(f64),
}

/// Different requests for some time.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrafficChange {
    /// Start, in seconds.
    pub from: f64,
    /// Duration, in seconds.
    pub seconds: f64,
    /// Mean load.
    pub load: Load,
    /// C^2 of the gaps.
    pub gap_c2: f64,
}

/// Inputs that all draws share.
#[derive(Clone, Copy, Debug)]
pub(super) struct DrawContext<'a> {
    /// Device that the experiment simulates.
    pub device: &'a Device,
    /// Model of the device, from which curves are computed.
    pub model: &'a Device,
    /// Capacity of each link, in bytes per second.
    pub bytes: f64,
    /// Duration of each trace.
    pub seconds: f64,
    /// Recorded traces.
    pub traces: &'a [Vec<Request>],
    pub seed: u64,
}

/// A drawn workload.
#[derive(Clone, Debug)]
pub(super) struct DrawnWorkload {
    /// Demand at each stage of the workload.
    pub demands: Vec<Demand>,
    /// Limits at the device that replace the limits of the curve.
    pub limits: Option<ArrivalCurve>,
    /// Requests of the workload; endless for a closed loop.
    pub requests: RequestSource,
}

/// Source of the requests of a workload.
#[derive(Clone, Debug)]
pub(super) enum RequestSource {
    /// Requests that arrive at given times.
    Open(Vec<Arrival>),
    /// A closed loop with this number of outstanding requests.
    Closed { outstanding: u32, shape: SyntheticShape, seed: u64 },
}

impl WorkloadDraw {
    /// Draws the workload at position `index` of the list.
    pub(super) fn draw(
        &self,
        index: usize,
        context: DrawContext<'_>,
    ) -> Result<DrawnWorkload, ExperimentError> {
        let seed = stream(context.seed, DRAW, index as u64).random();
        let shape = self.traffic.synthetic_shape(self.traffic.gap_c2);
        if let Some(outstanding) = self.closed {
            if self.recorded.is_some() {
                return Err(self.invalid("a closed loop with a recorded trace: expected no trace"));
            }
            let requests = RequestSource::Closed { outstanding, shape: shape.clone(), seed };
            return Ok(DrawnWorkload {
                demands: self.closed_loop_demands(shape, seed, context)?,
                limits: None,
                requests,
            });
        }
        let unchanged = match self.recorded {
            Some(number) => self.recorded_requests(number, index, seed, context)?,
            None => self.trace(shape, self.traffic.load, seed, context)?,
        };
        let curves = self.curves(&unchanged, context)?;
        let limits = self.rates.as_ref().map(|rates| self.limits(rates, &curves)).transpose()?;
        let demands = curves.iter().map(|(stage, curve)| self.demand(*stage, curve));
        let demands = demands.collect::<Result<_, ExperimentError>>()?;
        let requests = match &self.change {
            None => unchanged,
            Some(change) => {
                let end = change.from + change.seconds;
                if !(change.from >= 0.0 && change.seconds > 0.0 && end.is_finite()) {
                    let problem = format!(
                        "a change from {} s for {} s: expected a start of at least 0 s, and a duration above 0 s",
                        change.from, change.seconds
                    );
                    return Err(self.invalid(problem));
                }
                let seed = stream(context.seed, CHANGE, index as u64).random();
                let shape = self.traffic.synthetic_shape(change.gap_c2);
                let within = |request: &Request| (change.from..end).contains(&request.at.as_secs_f64());
                let mut requests: Vec<Request> =
                    unchanged.into_iter().filter(|request| !within(request)).collect();
                let other = self.trace(shape, change.load, seed, context)?;
                requests.extend(other.into_iter().filter(within));
                requests.sort_by_key(|request| request.at);
                requests
            }
        };
        let requests = RequestSource::Open(self.arrivals(requests, context.device));
        Ok(DrawnWorkload { demands, limits, requests })
    }

    /// Stages of the workload.
    pub(super) fn stages(&self) -> impl Iterator<Item = Stage> + '_ {
        Stage::ALL.into_iter().filter(|&stage| stage != Stage::Storage || self.device.is_some())
    }

    /// Generates a trace of this shape, at the rate that results in the load.
    fn trace(
        &self,
        mut shape: SyntheticShape,
        load: Load,
        seed: u64,
        context: DrawContext<'_>,
    ) -> Result<Vec<Request>, ExperimentError> {
        let sample = self.synthetic(shape.clone(), seed)?.take(SAMPLE).collect();
        shape.rate = self.rate(load, sample, context)?;
        let end = Nanos::from_secs_f64(context.seconds);
        Ok(self.synthetic(shape, seed)?.take_while(|request| request.at < end).collect())
    }

    /// Returns the requests of a recorded trace, from a drawn start, at the pace that results in the load.
    fn recorded_requests(
        &self,
        number: usize,
        index: usize,
        seed: u64,
        context: DrawContext<'_>,
    ) -> Result<Vec<Request>, ExperimentError> {
        let trace = context.traces.get(number).ok_or_else(|| {
            let count = context.traces.len();
            self.invalid(format!("recorded trace {number}: there are {count}, numbered from 0"))
        })?;
        let start = stream(context.seed, PHASE, index as u64).random();
        let recorded = Recorded::new(trace, start).map_err(|problem| self.invalid(problem))?;
        let places = || {
            Places::new(VOLUME, self.traffic.sequential_share, seed)
                .map_err(|error| self.invalid(error.to_string()))
        };
        let sample = recorded.requests(1.0, places()?).take(recorded.len()).collect();
        let rate = self.rate(self.traffic.load, sample, context)?;
        let end = Nanos::from_secs_f64(context.seconds);
        Ok(recorded.requests(rate, places()?).take_while(|request| request.at < end).collect())
    }

    /// Returns the number of requests per second that results in the load, if they are like those of `sample`.
    fn rate(
        &self,
        load: Load,
        sample: Vec<Request>,
        context: DrawContext<'_>,
    ) -> Result<f64, ExperimentError> {
        let (share, stage, capacity) = match load {
            Load::Storage(share) => (share, Stage::Storage, 1.0),
            Load::NetworkOut(share) => (share, Stage::NetworkOut, context.bytes),
        };
        if stage == Stage::Storage && self.device.is_none() {
            return Err(self.invalid("a storage load without a device: expected a network load"));
        }
        if !(share > 0.0 && share.is_finite()) {
            return Err(self.invalid(format!("a load of {share}: expected a share above 0")));
        }
        let works = self.arrivals(sample, context.device);
        let work = works.iter().map(|arrival| arrival.work[stage as usize]).sum::<f64>();
        let rate = share * capacity / (work / works.len() as f64);
        if rate * context.seconds > MOST_REQUESTS {
            return Err(self.invalid(format!(
                "{rate} requests a second for {} s: expected at most {MOST_REQUESTS} requests",
                context.seconds
            )));
        }
        Ok(rate)
    }

    fn synthetic(&self, shape: SyntheticShape, seed: u64) -> Result<Synthetic, ExperimentError> {
        Synthetic::new(shape, seed).map_err(|error| self.invalid(error.to_string()))
    }

    fn arrivals(&self, requests: Vec<Request>, device: &Device) -> Vec<Arrival> {
        arrivals(requests, device, self.device.is_some()).collect()
    }

    /// Returns the r-b curve of each stage, computed with the device model.
    fn curves(
        &self,
        requests: &[Request],
        context: DrawContext<'_>,
    ) -> Result<Vec<(Stage, RbCurve)>, ExperimentError> {
        if requests.len() < 2 {
            let count = requests.len();
            return Err(
                self.invalid(format!("{count} requests in {} s: expected at least two", context.seconds))
            );
        }
        let arrivals = self.arrivals(requests.to_vec(), context.model);
        let curve = |stage: Stage| {
            let work = arrivals.iter().map(|arrival| (arrival.at.0, arrival.work[stage as usize]));
            RbCurve::from_nanos(work)
                .map(|curve| (stage, curve))
                .map_err(|error| self.invalid(error.to_string()))
        };
        self.stages().map(curve).collect()
    }

    fn demand(&self, stage: Stage, curve: &RbCurve) -> Result<Demand, ExperimentError> {
        let pruned = curve.arrival_curve().prune_within(PRUNING);
        let arrivals = pruned.map_err(|error| self.invalid(error.to_string()))?.curve;
        Ok(Demand {
            stage,
            arrivals,
            largest: curve.largest(),
            model: None,
            unloaded: 0.0,
            outstanding: None,
        })
    }

    fn limits(&self, rates: &[f64], curves: &[(Stage, RbCurve)]) -> Result<ArrivalCurve, ExperimentError> {
        let storage = curves.iter().find(|(stage, _)| *stage == Stage::Storage);
        let (_, curve) =
            storage.ok_or_else(|| self.invalid("rates of limits without a device: expected none"))?;
        let bucket = |&rate: &f64| {
            let burst = curve.burst(rate).map_err(|error| self.invalid(error.to_string()))?;
            TokenBucket::new(rate, burst).map_err(|error| self.invalid(error.to_string()))
        };
        let buckets = rates.iter().map(bucket).collect::<Result<Vec<_>, ExperimentError>>()?;
        ArrivalCurve::new(&buckets).ok_or_else(|| self.invalid("no rate: expected at least one"))
    }

    /// Returns the demands of a closed loop, for the bounds of other workloads. A closed loop has the lowest priority,
    /// so other workloads wait only for its request in service. The bucket of the loop has almost no rate. Its burst is
    /// the work of the largest request. The loop itself has no curve and no bound.
    fn closed_loop_demands(
        &self,
        shape: SyntheticShape,
        seed: u64,
        context: DrawContext<'_>,
    ) -> Result<Vec<Demand>, ExperimentError> {
        if self.slo.is_some() {
            return Err(self.invalid("a closed loop with an SLO: expected no SLO"));
        }
        let sample = self.synthetic(shape, seed)?.take(SAMPLE).collect();
        let works = self.arrivals(sample, context.model);
        let demand = |stage: Stage| {
            let largest = works.iter().map(|arrival| arrival.work[stage as usize]).fold(0.0, f64::max);
            let bucket = TokenBucket::new(largest * 1e-9, largest);
            let arrivals = bucket.map_err(|error| self.invalid(error.to_string()))?.into();
            Ok(Demand { stage, arrivals, largest, model: None, unloaded: 0.0, outstanding: None })
        };
        self.stages().map(demand).collect()
    }

    pub(super) fn invalid(&self, problem: impl Into<String>) -> ExperimentError {
        ExperimentError::draw(format!("workload {}", self.name), problem)
    }
}

impl Traffic {
    fn synthetic_shape(&self, gap_c2: f64) -> SyntheticShape {
        SyntheticShape {
            rate: 1.0,
            gap_c2,
            bursts: self.bursts,
            sizes: Sizes::Choice(self.sizes.clone()),
            read_share: self.read_share,
            sequential_share: self.sequential_share,
            volume: VOLUME,
        }
    }
}

impl RequestSource {
    /// Returns requests in order; endless for a closed loop.
    pub(super) fn arrivals<'a>(&'a self, device: &'a Device) -> Box<dyn Iterator<Item = Arrival> + 'a> {
        match self {
            RequestSource::Open(arrivals) => Box::new(arrivals.iter().copied()),
            RequestSource::Closed { shape, seed, .. } => {
                let drawn = Synthetic::new(shape.clone(), *seed).expect("the shape was checked before");
                Box::new(arrivals(drawn, device, true))
            }
        }
    }
}

/// Returns the requests with their work at each stage. Requests to a volume in memory have no device work.
fn arrivals<'a>(
    requests: impl IntoIterator<Item = Request> + 'a,
    device: &'a Device,
    has_device: bool,
) -> impl Iterator<Item = Arrival> + 'a {
    let mut work = Work::new(NetworkWork::default(), has_device.then_some(device));
    requests.into_iter().map(move |request| {
        let request_work = work.of(&request).expect("drawn requests have offsets");
        Arrival {
            at: request.at,
            kind: request.kind,
            size: request.size,
            offset: request.offset,
            work: Stage::ALL.map(|stage| request_work.at(stage).unwrap_or(0.0)),
        }
    })
}
