//! `leeward._native.VolumeExperiment`: experiments on workloads drawn from traces, for `leeward_reproduce.slo`.

use std::path::PathBuf;

use leeward_experiments::{CacheShape, Draw, ExperimentError, Part, ReplaySettings, TailSettings, Traces};
use leeward_fabric::Nanos;
use leeward_fabric::input::{Files, InputError, excerpt};
use leeward_traces::Stage;
use leeward_traces::device::Device;
use leeward_traces::synthetic::Sizes;
use pyo3::prelude::*;

use crate::errors::PyInputError;
use crate::experiment_records::{
    AdmissionInput, BoundsInput, CacheInput, FirstFitInput, GapRecord, Outcome, PackInput, PeakLoads, Peaks,
    ReplayOutcome, TailBounds, TailsInput, TraceOptions, read,
};
use crate::simulation::as_python;

/// A draw in Python's form: trace, start, SLO in seconds.
type Drawn = (usize, f64, f64);

/// Traces of one device, with curves and models computed once.
#[pyclass(frozen, module = "leeward")]
pub struct VolumeExperiment {
    traces: Traces,
}

#[pymethods]
impl VolumeExperiment {
    #[new]
    #[pyo3(signature = (files, device, threads = 1, made = ""))]
    fn new(
        py: Python<'_>,
        files: Vec<String>,
        device: &str,
        threads: usize,
        made: &str,
    ) -> Result<VolumeExperiment, PyInputError> {
        let settings = TraceOptions::settings(made)?;
        py.detach(|| {
            let device = Device::read(device)?;
            let folder = Files { base: PathBuf::new(), data: None };
            let texts = files.into_iter().map(|file| folder.open(&file).map(|text| (file, text)));
            let texts = texts.collect::<Result<Vec<_>, InputError>>()?;
            let traces = Traces::read(texts, device, settings, threads).map_err(experiment_error)?;
            Ok(VolumeExperiment { traces })
        })
    }

    /// Traces of lookups in a cache, drawn as the thesis describes its own traces.
    #[staticmethod]
    #[pyo3(signature = (request, device, threads = 1, made = ""))]
    fn cache(
        py: Python<'_>,
        request: &str,
        device: &str,
        threads: usize,
        made: &str,
    ) -> Result<VolumeExperiment, PyInputError> {
        let (request, settings): (CacheInput, _) = (read(request)?, TraceOptions::settings(made)?);
        py.detach(|| {
            let device = Device::read(device)?;
            let objects = CacheShape::of(request.seconds);
            let sizes = Sizes::Choice(vec![(request.size, 1.0)]);
            let small = CacheShape { sizes, ..objects.clone() };
            let shape = |index| if index < request.small { &small } else { &objects };
            let drawn = (0..request.count)
                .map(|index| Ok((format!("cache {index}"), shape(index).draw(request.seed, index)?)));
            let drawn = drawn.collect::<Result<Vec<_>, ExperimentError>>().map_err(experiment_error)?;
            let traces = Traces::of(drawn, device, settings, threads).map_err(experiment_error)?;
            Ok(VolumeExperiment { traces })
        })
    }

    fn __len__(&self) -> usize {
        self.traces.len()
    }

    /// Bytes of a part of a trace: `whole`, `first` or `second`.
    fn payload(&self, trace: usize, part: &str) -> Result<f64, PyInputError> {
        self.traces.bytes(trace, parse_part(part)?).map_err(experiment_error)
    }

    /// True for each trace that fits on a server when it is alone there.
    fn fits_alone(&self, py: Python<'_>, slo: f64, request: &str) -> Result<Vec<bool>, PyInputError> {
        let request: PackInput = read(request)?;
        let part = parse_part(&request.part)?;
        let shape = request.shape.shape();
        py.detach(|| {
            leeward_experiments::fits_alone(&self.traces, part, slo, &shape, &request.settings, &request.way)
        })
        .map_err(experiment_error)
    }

    /// Packs draws in order, or adds and removes them by `steps`; on request, replays the packed draws.
    #[pyo3(signature = (draws, request, steps = None))]
    fn pack(
        &self,
        py: Python<'_>,
        draws: Vec<Drawn>,
        request: &str,
        steps: Option<Vec<(usize, bool)>>,
    ) -> PyResult<Py<PyAny>> {
        let request: PackInput = read(request)?;
        let (part, draws) = (parse_part(&request.part)?, to_draws(draws));
        let shape = request.shape.shape();
        let outcome = py.detach(|| -> Result<Outcome, PyInputError> {
            let packed = leeward_experiments::pack(
                &self.traces,
                part,
                &draws,
                steps.as_deref(),
                &shape,
                &request.settings,
                &request.way,
            );
            let packed = packed.map_err(experiment_error)?;
            let settings = ReplaySettings { enforcement: request.over.into(), packet: None };
            let replayed =
                self.replay(request.replay.as_deref(), &draws, &packed.placed, &packed.system, settings)?;
            Ok(Outcome {
                servers: Some(packed.servers),
                most: Some(packed.most),
                refused: packed.refused,
                placed: packed.placed,
                replayed,
            })
        });
        as_python(py, &outcome?)
    }

    /// Puts each draw on the first server where an admission policy accepts it and all SLOs hold.
    fn first_fit(&self, py: Python<'_>, draws: Vec<Drawn>, request: &str) -> PyResult<Py<PyAny>> {
        let request: FirstFitInput = read(request)?;
        let (part, draws, shape) = (parse_part(&request.part)?, to_draws(draws), request.shape.shape());
        let FirstFitInput { margin, policy, settings, .. } = request;
        let packed = py.detach(|| {
            leeward_experiments::first_fit(&self.traces, part, &draws, &shape, margin, &policy, &settings)
                .map_err(experiment_error)
        })?;
        let outcome = Outcome {
            servers: Some(packed.servers),
            most: Some(packed.most),
            refused: packed.refused,
            placed: packed.placed,
            replayed: None,
        };
        as_python(py, &outcome)
    }

    /// Requests admission of draws in order, each on its client and server; replays the admitted ones.
    fn admit(
        &self,
        py: Python<'_>,
        draws: Vec<Drawn>,
        links: Vec<(usize, usize)>,
        request: &str,
    ) -> PyResult<Py<PyAny>> {
        let request: AdmissionInput = read(request)?;
        let (part, draws) = (parse_part(&request.part)?, to_draws(draws));
        let stages: Vec<Stage> =
            request.stages.iter().map(|name| stage(name)).collect::<Result<_, PyInputError>>()?;
        let shape = request.shape.shape();
        let outcome = py.detach(|| -> Result<Outcome, PyInputError> {
            let admitted = leeward_experiments::admit(
                &self.traces,
                part,
                &draws,
                &links,
                &shape,
                &stages,
                &request.policy,
                &request.settings,
                request.percentile,
            );
            let admitted = admitted.map_err(experiment_error)?;
            let settings = ReplaySettings { enforcement: request.over.into(), packet: request.packet };
            let replayed = self.replay(
                request.replay.as_deref(),
                &draws,
                &admitted.admitted,
                &admitted.system,
                settings,
            )?;
            Ok(Outcome {
                servers: None,
                most: None,
                refused: Vec::new(),
                placed: admitted.admitted,
                replayed,
            })
        });
        as_python(py, &outcome?)
    }

    /// Bounds in seconds by each analysis, for the last of several draws on one path.
    fn tails(&self, py: Python<'_>, draws: Vec<Drawn>, request: &str) -> PyResult<Py<PyAny>> {
        let request: TailsInput = read(request)?;
        let (part, draws) = (parse_part(&request.part)?, to_draws(draws));
        let TailsInput { bytes_per_second: bytes, dependent, excess, bounds, .. } = request;
        let settings = TailSettings { bytes, dependent, excess, bounds };
        let tails = py
            .detach(|| leeward_experiments::tails(&self.traces, part, &draws, &settings))
            .map_err(experiment_error)?;
        as_python(py, &TailBounds::from(tails))
    }

    /// Bound of every draw, each on its client and server, in seconds.
    fn bounds(
        &self,
        py: Python<'_>,
        draws: Vec<Drawn>,
        links: Vec<(usize, usize)>,
        request: &str,
    ) -> Result<Vec<Option<f64>>, PyInputError> {
        let request: BoundsInput = read(request)?;
        let (part, draws) = (parse_part(&request.part)?, to_draws(draws));
        let stages: Vec<Stage> =
            request.stages.iter().map(|name| stage(name)).collect::<Result<_, PyInputError>>()?;
        let (shape, BoundsInput { method, bounds, .. }) = (request.shape.shape(), request);
        py.detach(|| {
            leeward_experiments::bounds_of_all(
                &self.traces,
                part,
                &draws,
                &links,
                &shape,
                &stages,
                method,
                bounds,
            )
        })
        .map_err(experiment_error)
    }

    /// Peaks and means of draws over windows: of each draw (`each`), and of all draws together (`all`).
    fn peaks(&self, py: Python<'_>, draws: Vec<Drawn>, part: &str, window_s: f64) -> PyResult<Py<PyAny>> {
        let (part, draws) = (parse_part(part)?, to_draws(draws));
        let window = Nanos::from_secs_f64(window_s.clamp(0.0, 1e6));
        let (each, all) = py
            .detach(|| leeward_experiments::peaks(&self.traces, part, &draws, window))
            .map_err(experiment_error)?;
        let each: Vec<PeakLoads> = each.into_iter().map(PeakLoads::from).collect();
        as_python(py, &Peaks { each, all: all.into() })
    }

    /// Statistics of the gaps between the requests of a trace. Counts of requests are over windows.
    fn gaps(&self, py: Python<'_>, trace: usize, window_s: f64) -> PyResult<Py<PyAny>> {
        let window = Nanos::from_secs_f64(window_s.clamp(0.0, 1e6));
        let gaps =
            py.detach(|| leeward_experiments::gaps(&self.traces, trace, window)).map_err(experiment_error)?;
        as_python(py, &GapRecord::from(gaps))
    }
}

impl VolumeExperiment {
    fn replay(
        &self,
        part: Option<&str>,
        draws: &[Draw],
        replayed: &[usize],
        system: &leeward_slo::System,
        settings: ReplaySettings,
    ) -> Result<Option<Vec<ReplayOutcome>>, PyInputError> {
        let Some(part) = part else { return Ok(None) };
        let outcomes =
            leeward_experiments::replay(&self.traces, parse_part(part)?, draws, replayed, system, settings)
                .map_err(experiment_error)?;
        Ok(Some(outcomes.into_iter().map(ReplayOutcome::from).collect()))
    }
}

/// Draws `count` workloads, each from `from` (trace, SLO) with replacement and a random start.
#[pyfunction]
pub fn draw_workloads(seed: u64, count: usize, from: Vec<(usize, f64)>) -> Result<Vec<Drawn>, PyInputError> {
    let draws = leeward_experiments::draws(seed, count, &from).map_err(experiment_error)?;
    Ok(draws.into_iter().map(|draw| (draw.trace, draw.start, draw.slo)).collect())
}

/// Draws a client and a server for each workload.
#[pyfunction]
pub fn draw_links(
    seed: u64,
    count: usize,
    clients: usize,
    servers: usize,
) -> Result<Vec<(usize, usize)>, PyInputError> {
    leeward_experiments::links(seed, count, clients, servers).map_err(experiment_error)
}

/// Draws arrivals and departures in order: each has a workload, and true for an arrival.
#[pyfunction]
pub fn draw_visits(seed: u64, count: usize, stay: f64) -> Result<Vec<(usize, bool)>, PyInputError> {
    leeward_experiments::visits(seed, count, stay).map_err(experiment_error)
}

fn to_draws(draws: Vec<Drawn>) -> Vec<Draw> {
    draws.into_iter().map(|(trace, start, slo)| Draw { trace, start, slo }).collect()
}

fn parse_part(part: &str) -> Result<Part, PyInputError> {
    match part {
        "whole" => Ok(Part::Whole),
        "first" => Ok(Part::First),
        "second" => Ok(Part::Second),
        other => {
            let message = format!("`{}`: expected whole, first or second", excerpt(other));
            Err(PyInputError(InputError::new("part", message)))
        }
    }
}

fn stage(name: &str) -> Result<Stage, PyInputError> {
    let unknown =
        || format!("`{}`: expected one of {}", excerpt(name), Stage::ALL.map(Stage::name).join(", "));
    Stage::from_name(name).ok_or_else(|| PyInputError(InputError::new("stages", unknown())))
}

pub fn experiment_error(error: ExperimentError) -> PyInputError {
    match error {
        ExperimentError::Input(error) => PyInputError(error),
        error => PyInputError(InputError::new("experiment", error)),
    }
}
