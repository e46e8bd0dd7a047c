//! `leeward._native.Study`: experiments on workloads drawn from traces, for `leeward.reproduce.slo`.

use std::path::PathBuf;

use leeward_fabric::input::{Files, InputError, excerpt};
use leeward_placement::volumes::pack::PackSettings;
use leeward_simulator::study::{self, Draw, Kept, Overrun, Part, Shape, StudyError, TraceSettings, Traces};
use leeward_traces::Stage;
use leeward_traces::device::Device;
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

use crate::errors::Refused;
use crate::simulation::as_python;

/// A draw as Python has it: trace, where it begins, SLO in seconds.
type Drawn = (usize, f64, f64);

/// Traces of one device, their curves and models made once.
#[pyclass(frozen, module = "leeward")]
pub struct Study {
    traces: Traces,
}

/// What a packing is asked for.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    shape: Machines,
    #[serde(default)]
    settings: PackSettings,
    #[serde(default)]
    way: String,
    #[serde(default = "whole")]
    part: String,
    replay: Option<String>,
    #[serde(default)]
    over: Over,
}

/// What is done in a replay about requests over a limit.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Over {
    #[default]
    Enforced,
    Demoted,
    Unlimited,
}

impl From<Over> for Overrun {
    fn from(over: Over) -> Overrun {
        match over {
            Over::Enforced => Overrun::Enforced,
            Over::Demoted => Overrun::Demoted,
            Over::Unlimited => Overrun::Unlimited,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedAdmission {
    shape: Machines,
    policy: String,
    #[serde(default)]
    settings: String,
    stages: Vec<String>,
    part: String,
    replay: Option<String>,
    #[serde(default)]
    over: Over,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AskedFirstFit {
    shape: Machines,
    policy: String,
    settings: String,
    margin: f64,
    part: String,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Machines {
    clients: usize,
    slots: Option<u32>,
    servers: usize,
    devices: usize,
    bytes_per_second: f64,
}

impl Machines {
    pub(crate) fn shape(self) -> Shape {
        let Machines { clients, slots, servers, devices, bytes_per_second } = self;
        Shape { clients, slots, servers, devices, bytes: bytes_per_second }
    }
}

fn whole() -> String {
    "whole".to_owned()
}

#[pymethods]
impl Study {
    #[new]
    #[pyo3(signature = (files, device, threads = 1))]
    fn new(py: Python<'_>, files: Vec<String>, device: &str, threads: usize) -> Result<Study, Refused> {
        py.detach(|| {
            let device = Device::read(device)?;
            let folder = Files { base: PathBuf::new(), data: None };
            let texts = files.into_iter().map(|file| folder.open(&file).map(|text| (file, text)));
            let texts = texts.collect::<Result<Vec<_>, InputError>>()?;
            let traces = Traces::read(texts, device, TraceSettings::default(), threads).map_err(refused)?;
            Ok(Study { traces })
        })
    }

    fn __len__(&self) -> usize {
        self.traces.len()
    }

    /// Payload of a part of a trace, in bytes.
    fn payload(&self, trace: usize, part: &str) -> Result<f64, Refused> {
        self.traces.bytes(trace, named(part)?).map_err(refused)
    }

    /// Of each trace, whether it fits on a server by itself.
    fn fits_alone(&self, py: Python<'_>, slo: f64, asked: &str) -> Result<Vec<bool>, Refused> {
        let asked: Asked = read(asked)?;
        let part = named(&asked.part)?;
        let shape = asked.shape.shape();
        py.detach(|| study::fits_alone(&self.traces, part, slo, &shape, &asked.settings, &asked.way))
            .map_err(refused)
    }

    /// Packs draws, and replays them if that is asked for.
    #[pyo3(signature = (draws, asked, steps = None))]
    fn pack(
        &self,
        py: Python<'_>,
        draws: Vec<Drawn>,
        asked: &str,
        steps: Option<Vec<(usize, bool)>>,
    ) -> PyResult<Py<PyAny>> {
        let asked: Asked = read(asked)?;
        let (part, draws) = (named(&asked.part)?, of_python(draws));
        let shape = asked.shape.shape();
        let outcome = py.detach(|| -> Result<Outcome, Refused> {
            let packed = study::pack(
                &self.traces,
                part,
                &draws,
                steps.as_deref(),
                &shape,
                &asked.settings,
                &asked.way,
            );
            let packed = packed.map_err(refused)?;
            let replayed =
                self.replay(asked.replay.as_deref(), &draws, &packed.placed, &packed.system, asked.over)?;
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

    /// Puts draws on the first server where a policy for admission promises all their SLOs.
    fn first_fit(&self, py: Python<'_>, draws: Vec<Drawn>, asked: &str) -> PyResult<Py<PyAny>> {
        let asked: AskedFirstFit = read(asked)?;
        let (part, draws, shape) = (named(&asked.part)?, of_python(draws), asked.shape.shape());
        let AskedFirstFit { margin, policy, settings, .. } = asked;
        let packed = py.detach(|| {
            study::first_fit(&self.traces, part, &draws, &shape, margin, &policy, &settings).map_err(refused)
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

    /// Asks for draws to be admitted, each on its client and server, and replays those that are if that is asked for.
    fn admit(
        &self,
        py: Python<'_>,
        draws: Vec<Drawn>,
        links: Vec<(usize, usize)>,
        asked: &str,
    ) -> PyResult<Py<PyAny>> {
        let asked: AskedAdmission = read(asked)?;
        let (part, draws) = (named(&asked.part)?, of_python(draws));
        let stages: Vec<Stage> =
            asked.stages.iter().map(|name| stage(name)).collect::<Result<_, Refused>>()?;
        let shape = asked.shape.shape();
        let outcome = py.detach(|| -> Result<Outcome, Refused> {
            let admitted = study::admit(
                &self.traces,
                part,
                &draws,
                &links,
                &shape,
                &stages,
                &asked.policy,
                &asked.settings,
            );
            let admitted = admitted.map_err(refused)?;
            let replayed = self.replay(
                asked.replay.as_deref(),
                &draws,
                &admitted.admitted,
                &admitted.system,
                asked.over,
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
}

impl Study {
    fn replay(
        &self,
        part: Option<&str>,
        draws: &[Draw],
        of: &[usize],
        system: &leeward_placement::volumes::System,
        over: Over,
    ) -> Result<Option<Vec<Replayed>>, Refused> {
        let Some(part) = part else { return Ok(None) };
        let kept =
            study::replay(&self.traces, named(part)?, draws, of, system, over.into()).map_err(refused)?;
        Ok(Some(kept.into_iter().map(Replayed::from).collect()))
    }
}

/// So many workloads, each one of `from` (trace, SLO) with replacement and begun anywhere.
#[pyfunction]
pub fn study_draws(seed: u64, count: usize, from: Vec<(usize, f64)>) -> Result<Vec<Drawn>, Refused> {
    let draws = study::draws(seed, count, &from).map_err(refused)?;
    Ok(draws.into_iter().map(|draw| (draw.trace, draw.start, draw.slo)).collect())
}

/// For each of so many workloads a client and a server.
#[pyfunction]
pub fn study_links(
    seed: u64,
    count: usize,
    clients: usize,
    servers: usize,
) -> Result<Vec<(usize, usize)>, Refused> {
    study::links(seed, count, clients, servers).map_err(refused)
}

/// Arrivals and departures in order: which workload, and whether it comes.
#[pyfunction]
pub fn study_visits(seed: u64, count: usize, stay: f64) -> Result<Vec<(usize, bool)>, Refused> {
    study::visits(seed, count, stay).map_err(refused)
}

#[derive(Serialize)]
struct Outcome {
    servers: Option<usize>,
    most: Option<usize>,
    refused: Vec<(usize, String)>,
    placed: Vec<usize>,
    replayed: Option<Vec<Replayed>>,
}

#[derive(Serialize)]
struct Replayed {
    slo_s: f64,
    tail_s: f64,
    largest_s: f64,
    requests: u64,
    late: u64,
    windows: usize,
    met: usize,
}

impl From<Kept> for Replayed {
    fn from(kept: Kept) -> Replayed {
        let Kept { slo, tail, largest, requests, late, windows, met } = kept;
        Replayed { slo_s: slo, tail_s: tail, largest_s: largest, requests, late, windows, met }
    }
}

fn of_python(draws: Vec<Drawn>) -> Vec<Draw> {
    draws.into_iter().map(|(trace, start, slo)| Draw { trace, start, slo }).collect()
}

pub(crate) fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Refused> {
    serde_json::from_str(text).map_err(|error| Refused(InputError::new("study", error)))
}

fn named(part: &str) -> Result<Part, Refused> {
    match part {
        "whole" => Ok(Part::Whole),
        "first" => Ok(Part::First),
        "second" => Ok(Part::Second),
        other => {
            let message = format!("`{}`: expected whole, first or second", excerpt(other));
            Err(Refused(InputError::new("part", message)))
        }
    }
}

fn stage(name: &str) -> Result<Stage, Refused> {
    let unknown =
        || format!("`{}`: expected one of {}", excerpt(name), Stage::ALL.map(Stage::name).join(", "));
    Stage::named(name).ok_or_else(|| Refused(InputError::new("stages", unknown())))
}

pub(crate) fn refused(error: StudyError) -> Refused {
    match error {
        StudyError::Input(error) => Refused(error),
        error => Refused(InputError::new("study", error)),
    }
}
