//! Traces in memory, with the curves and models of workloads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use leeward_calculus::fit::{FitSettings, fit_nanos};
use leeward_calculus::mmpp::Mmpp;
use leeward_calculus::{ArrivalCurve, RbCurve};
use leeward_fabric::input::{InputError, Text};
use leeward_requests::Arrival;
use leeward_slo::{Demand, Slo, Workload};
use leeward_traces::device::Device;
use leeward_traces::read::{ReadSettings, Requests};
use leeward_traces::select::{halves, rotate};
use leeward_traces::{NetworkWork, Request, Stage, Tail, Work};

use super::{Draw, ExperimentError};

/// Settings of curves and models.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TraceSettings {
    /// Largest relative excess of a pruned curve over the full curve.
    pub pruning: f64,
    /// Percentile of every SLO, in percent.
    pub percentile: f64,
    /// Settings of the fit of models.
    pub fit: FitSettings,
}

impl Default for TraceSettings {
    fn default() -> TraceSettings {
        TraceSettings { pruning: 0.01, percentile: 99.9, fit: FitSettings::default() }
    }
}

/// A part of a trace, by time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// The whole trace.
    Whole,
    /// The first half.
    First,
    /// The second half.
    Second,
}

impl Part {
    /// All parts.
    pub const ALL: [Part; 3] = [Part::Whole, Part::First, Part::Second];
}

/// Traces of one device.
pub struct Traces {
    device: Device,
    settings: TraceSettings,
    traces: Vec<Trace>,
}

struct Trace {
    name: String,
    requests: Vec<Request>,
    parts: [TraceCurves; 3],
}

/// Curves and models of a part of a trace, at each stage.
struct TraceCurves {
    /// Curve of each stage, and the largest work of a request.
    curves: [(ArrivalCurve, f64); 3],
    /// Unloaded latency at the SLO's percentile, in seconds: the device's profiled tail.
    unloaded: f64,
    models: [OnceLock<Result<Mmpp, String>>; 3],
}

impl Traces {
    /// Reads traces one after another, and computes their curves on at most `threads` threads.
    ///
    /// # Errors
    /// Returns an error for the first trace in `files` that cannot be read. If all can be read, returns the errors of
    /// [`Traces::of`].
    pub fn read(
        files: Vec<(String, Text)>,
        device: Device,
        settings: TraceSettings,
        threads: usize,
    ) -> Result<Traces, ExperimentError> {
        let mut traces = Vec::with_capacity(files.len());
        // Readers cannot move between threads, so one thread reads all traces. The curves take most of the time.
        for (name, text) in files {
            let requests = Requests::open(text, &ReadSettings::default())?;
            traces.push((name, requests.collect::<Result<Vec<_>, InputError>>()?));
        }
        Traces::of(traces, device, settings, threads)
    }

    /// Accepts named lists of requests, each in order of time. Computes their curves on at most `threads` threads.
    ///
    /// # Errors
    /// Returns an error for the first trace in `traces` that has fewer than two requests in a half, a request that the
    /// device does not serve, or no curve of arrivals, and for an invalid tolerance of pruning.
    pub fn of(
        traces: Vec<(String, Vec<Request>)>,
        device: Device,
        settings: TraceSettings,
        threads: usize,
    ) -> Result<Traces, ExperimentError> {
        let next = AtomicUsize::new(0);
        let curves: Vec<OnceLock<Result<[TraceCurves; 3], ExperimentError>>> =
            traces.iter().map(|_| OnceLock::new()).collect();
        let compute = || {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some((name, requests)) = traces.get(index) else { return };
                // Each index is assigned only once, so the cell is empty.
                curves[index].get_or_init(|| curves_of_parts(name, requests, &device, settings));
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..threads.clamp(1, traces.len().max(1)) {
                scope.spawn(compute);
            }
        });
        let curves = curves.into_iter().map(|parts| parts.into_inner().expect("every trace has curves"));
        let traces = traces
            .into_iter()
            .zip(curves)
            .map(|((name, requests), parts)| Ok(Trace { name, requests, parts: parts? }));
        let traces = traces.collect::<Result<_, ExperimentError>>()?;
        Ok(Traces { device, settings, traces })
    }

    /// Number of traces.
    pub fn len(&self) -> usize {
        self.traces.len()
    }

    /// Returns true if there are no traces.
    pub fn is_empty(&self) -> bool {
        self.traces.is_empty()
    }

    /// Device of the traces.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns the payload of a part of a trace, in bytes.
    ///
    /// # Errors
    /// Returns an error if there is no such trace.
    pub fn bytes(&self, trace: usize, part: Part) -> Result<f64, ExperimentError> {
        let requests = of_part(&self.trace(trace)?.requests, part);
        Ok(requests.iter().map(|request| request.size as f64).sum())
    }

    /// Returns the workload of a draw, with a demand at each of `stages`. Each demand has the curve of the part of the
    /// trace. The demand at storage also has the profiled tail of the device.
    ///
    /// # Errors
    /// Returns an error if there is no such trace, or if `with_models` is true and no model fits the part.
    pub fn workload(
        &self,
        name: String,
        draw: &Draw,
        part: Part,
        stages: &[Stage],
        with_models: bool,
    ) -> Result<Arc<Workload>, ExperimentError> {
        let trace = self.trace(draw.trace)?;
        let trace_part = &trace.parts[part as usize];
        let demand = |&stage: &Stage| {
            let (arrivals, largest) = trace_part.curves[stage as usize].clone();
            let unloaded = if stage == Stage::Storage { trace_part.unloaded } else { 0.0 };
            let model = with_models.then(|| self.model(trace, part, stage)).transpose()?;
            let outstanding = (stage == Stage::Storage).then(|| self.device.outstanding.requests()).flatten();
            Ok(Demand { stage, arrivals, largest, model, unloaded, outstanding })
        };
        let demands = stages.iter().map(demand).collect::<Result<_, ExperimentError>>()?;
        let slo = Some(Slo { percentile: self.settings.percentile, latency: draw.slo });
        Ok(Arc::new(Workload { name, slo, demands, dependencies: Vec::new() }))
    }

    /// Returns the requests of a part of a draw's trace, rotated to the start of the draw. Each request has its work at
    /// `stages`, and no work at other stages.
    ///
    /// # Errors
    /// Returns an error if there is no such trace.
    pub fn arrivals(
        &self,
        draw: &Draw,
        part: Part,
        stages: &[Stage],
    ) -> Result<Vec<Arrival>, ExperimentError> {
        let trace = self.trace(draw.trace)?;
        let requests = rotate(of_part(&trace.requests, part), draw.start);
        let arrivals = works(&trace.name, &requests, &self.device)?.into_iter().zip(requests);
        let arrival = |(mut work, request): ([f64; 3], Request)| {
            for stage in Stage::ALL.into_iter().filter(|stage| !stages.contains(stage)) {
                work[stage as usize] = 0.0;
            }
            Arrival { at: request.at, kind: request.kind, size: request.size, offset: request.offset, work }
        };
        Ok(arrivals.map(arrival).collect())
    }

    fn trace(&self, trace: usize) -> Result<&Trace, ExperimentError> {
        self.traces.get(trace).ok_or_else(|| {
            let problem = format!("there are {} traces, numbered from 0", self.traces.len());
            ExperimentError::draw(format!("trace {trace}"), problem)
        })
    }

    fn model(&self, trace: &Trace, part: Part, stage: Stage) -> Result<Mmpp, ExperimentError> {
        let model = trace.parts[part as usize].models[stage as usize].get_or_init(|| {
            let requests = of_part(&trace.requests, part);
            let work = works(&trace.name, requests, &self.device).map_err(|error| error.to_string())?;
            let arrivals =
                requests.iter().zip(work).map(|(request, work)| (request.at.0, work[stage as usize]));
            let fit = fit_nanos(arrivals, &self.settings.fit);
            fit.map(|fit| fit.model).map_err(|error| error.to_string())
        });
        model.clone().map_err(|problem| ExperimentError::Trace { trace: trace.name.clone(), problem })
    }
}

fn of_part(requests: &[Request], part: Part) -> &[Request] {
    match part {
        Part::Whole => requests,
        Part::First => halves(requests).0,
        Part::Second => halves(requests).1,
    }
}

/// Returns the work of each request at each stage.
fn works(name: &str, requests: &[Request], device: &Device) -> Result<Vec<[f64; 3]>, ExperimentError> {
    let mut work = Work::new(NetworkWork::default(), Some(device));
    let request_work = |request: &Request| {
        let work = work.of(request).map_err(|error| invalid(name, error))?;
        // The device is given, so every stage has work.
        Ok(Stage::ALL.map(|stage| work.at(stage).unwrap_or(0.0)))
    };
    requests.iter().map(request_work).collect()
}

fn curves_of_parts(
    name: &str,
    requests: &[Request],
    device: &Device,
    settings: TraceSettings,
) -> Result<[TraceCurves; 3], ExperimentError> {
    let [whole, first, second] =
        Part::ALL.map(|part| curves_of(name, of_part(requests, part), device, settings));
    Ok([whole?, first?, second?])
}

fn curves_of(
    name: &str,
    requests: &[Request],
    device: &Device,
    settings: TraceSettings,
) -> Result<TraceCurves, ExperimentError> {
    if requests.len() < 2 {
        let problem =
            "fewer than two requests in the trace or in a half of it: expected at least two in each".into();
        return Err(ExperimentError::Trace { trace: name.into(), problem });
    }
    let work = works(name, requests, device)?;
    let mut tail = Tail::new(device, settings.percentile);
    requests.iter().try_for_each(|request| tail.push(request)).map_err(|error| invalid(name, error))?;
    let curve = |stage: Stage| -> Result<(ArrivalCurve, f64), ExperimentError> {
        let arrivals = requests.iter().zip(&work).map(|(request, work)| (request.at.0, work[stage as usize]));
        let curve = RbCurve::from_nanos(arrivals).map_err(|error| invalid(name, error))?;
        let pruned = curve.arrival_curve().prune_within(settings.pruning);
        let largest = work.iter().map(|work| work[stage as usize]).fold(0.0, f64::max);
        Ok((pruned.map_err(|error| invalid(name, error))?.curve, largest))
    };
    let [network_in, storage, network_out] = Stage::ALL.map(curve);
    Ok(TraceCurves {
        curves: [network_in?, storage?, network_out?],
        unloaded: tail.seconds().unwrap_or(0.0),
        models: [const { OnceLock::new() }; 3],
    })
}

fn invalid(name: &str, error: impl std::fmt::Display) -> ExperimentError {
    ExperimentError::Trace { trace: name.to_owned(), problem: error.to_string() }
}
