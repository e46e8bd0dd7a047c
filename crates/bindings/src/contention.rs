//! Contention experiments and the thesis' published workloads, for `leeward_reproduce.slo`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use leeward_experiments::{ContentionExperiment, ContentionResult, DrawnContention, Scheduler, WorkloadDraw};
use leeward_fabric::Nanos;
use leeward_fabric::input::{Files, InputError, excerpt};
use leeward_requests::Cake;
use leeward_traces::Request;
use leeward_traces::device::Device;
use leeward_traces::read::{ReadSettings, Requests};
use leeward_traces::synthetic::{PublishedWorkload, TABLE_3_1};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::errors::PyInputError;
use crate::experiment_records::{Machines, read};
use crate::experiments::experiment_error;
use crate::simulation::as_python;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ContentionInput {
    members: Vec<WorkloadDraw>,
    /// Files of recorded traces, which members name by their index.
    #[serde(default)]
    traces: Vec<String>,
    shape: Machines,
    /// Text of a device file.
    device: String,
    model: Option<String>,
    packet_bytes: f64,
    seconds: f64,
    from_seconds: f64,
    percentile: f64,
    percentiles: Vec<f64>,
    schedulers: Vec<String>,
    /// Settings of Cake to run besides, by the name of their results.
    #[serde(default)]
    cakes: BTreeMap<String, CakeInput>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct CakeInput {
    interval_s: f64,
    lower: f64,
    upper: f64,
    step: f64,
    floor: f64,
}

impl From<CakeInput> for Cake {
    fn from(input: CakeInput) -> Cake {
        let CakeInput { interval_s, lower, upper, step, floor } = input;
        Cake { interval: Nanos::from_secs_f64(interval_s), lower, upper, step, floor }
    }
}

/// Runs the same workloads, drawn by load and burstiness or recorded, under each scheduler. Returns a mapping from the
/// name of each scheduler to a list with one entry per workload.
#[pyfunction]
pub fn simulate_contention(py: Python<'_>, seed: u64, request: &str) -> PyResult<Py<PyAny>> {
    let request: ContentionInput = read(request)?;
    let outcomes = py.detach(|| -> Result<BTreeMap<String, Vec<Outcome>>, PyInputError> {
        let schedulers = schedulers(&request)?;
        let experiment = ContentionExperiment {
            members: request.members,
            traces: request.traces.iter().map(|file| read_trace(file)).collect::<Result<_, InputError>>()?,
            shape: request.shape.shape(),
            device: Device::from_text("device", &request.device)?,
            model: request.model.map(|text| Device::from_text("model", &text)).transpose()?,
            packet: request.packet_bytes,
            seconds: request.seconds,
            from: request.from_seconds,
            percentile: request.percentile,
            percentiles: request.percentiles,
        };
        let drawn = DrawnContention::new(experiment, seed).map_err(experiment_error)?;
        let run = |(name, scheduler): (String, Scheduler)| {
            let results = drawn.run(scheduler).map_err(experiment_error)?;
            Ok((name, results.into_iter().map(Outcome::from).collect()))
        };
        schedulers.into_iter().map(run).collect()
    });
    as_python(py, &outcomes?)
}

/// Open-loop workloads of the thesis, keyed by letter.
#[pyfunction]
pub fn published_workloads(py: Python<'_>) -> PyResult<Py<PyAny>> {
    let row = |workload: &PublishedWorkload| {
        let PublishedWorkload { storage_load, network_load, gap_c2, .. } = workload;
        let row = json!({"storage_load": storage_load, "network_load": network_load, "gap_c2": gap_c2});
        (workload.letter, row)
    };
    as_python(py, &TABLE_3_1.iter().map(row).collect::<BTreeMap<char, Value>>())
}

#[derive(Serialize)]
struct Outcome {
    requests: u64,
    late: u64,
    tails_s: Vec<f64>,
    demoted: u64,
    priorities: BTreeMap<&'static str, u32>,
    bound_s: Option<f64>,
    intervals: Vec<(f64, u64, u64)>,
}

impl From<ContentionResult> for Outcome {
    fn from(result: ContentionResult) -> Outcome {
        let ContentionResult { requests, late, tails, demoted, priorities, bound, intervals } = result;
        let priorities = priorities.into_iter().map(|(stage, priority)| (stage.name(), priority)).collect();
        Outcome { requests, late, tails_s: tails, demoted, priorities, bound_s: bound, intervals }
    }
}

fn read_trace(file: &str) -> Result<Vec<Request>, InputError> {
    let folder = Files { base: PathBuf::new(), data: None };
    Requests::open(folder.open(file)?, &ReadSettings::default())?.collect()
}

/// Schedulers by the name of their results.
fn schedulers(request: &ContentionInput) -> Result<BTreeMap<String, Scheduler>, PyInputError> {
    let named = request.schedulers.iter().map(|name| Ok((name.clone(), scheduler(name)?)));
    let mut schedulers = named.collect::<Result<BTreeMap<_, _>, PyInputError>>()?;
    for (name, &settings) in &request.cakes {
        if schedulers.insert(name.clone(), Scheduler::Cake(settings.into())).is_some() {
            let problem = format!("`{}`: expected a name that no scheduler has", excerpt(name));
            return Err(PyInputError(InputError::new("cakes", problem)));
        }
    }
    Ok(schedulers)
}

fn scheduler(name: &str) -> Result<Scheduler, PyInputError> {
    Scheduler::from_name(name).ok_or_else(|| {
        let known = Scheduler::ALL.map(Scheduler::name).join(", ");
        PyInputError(InputError::new("schedulers", format!("`{}`: expected one of {known}", excerpt(name))))
    })
}
