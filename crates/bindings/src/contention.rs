//! Workloads that share machines under each scheduler, and such workloads of the thesis, for `leeward_reproduce.slo`.

use std::collections::BTreeMap;

use leeward_experiments::{ContentionExperiment, ContentionResult, DrawnContention, Scheduler, WorkloadDraw};
use leeward_fabric::input::{InputError, excerpt};
use leeward_traces::device::Device;
use leeward_traces::synthetic::{PublishedWorkload, TABLE_3_1};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::errors::PyInputError;
use crate::experiment_records::Machines;
use crate::experiment_records::read;
use crate::experiments::refused;
use crate::simulation::as_python;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ContentionInput {
    members: Vec<WorkloadDraw>,
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
}

/// Latencies under each scheduler of workloads that are drawn by load and burstiness. The result has one entry per
/// workload under each scheduler's name.
#[pyfunction]
pub fn simulate_contention(py: Python<'_>, seed: u64, asked: &str) -> PyResult<Py<PyAny>> {
    let asked: ContentionInput = read(asked)?;
    let outcome = py.detach(|| -> Result<BTreeMap<String, Vec<Outcome>>, PyInputError> {
        let contest = ContentionExperiment {
            members: asked.members,
            shape: asked.shape.shape(),
            device: Device::from_text("device", &asked.device)?,
            model: asked.model.map(|text| Device::from_text("model", &text)).transpose()?,
            packet: asked.packet_bytes,
            seconds: asked.seconds,
            from: asked.from_seconds,
            percentile: asked.percentile,
            percentiles: asked.percentiles,
        };
        let schedulers =
            asked.schedulers.iter().map(|name| scheduler(name)).collect::<Result<Vec<_>, PyInputError>>()?;
        let contenders = DrawnContention::new(contest, seed).map_err(refused)?;
        let run = |scheduler: Scheduler| {
            let fared = contenders.run(scheduler).map_err(refused)?;
            Ok((scheduler.name().to_owned(), fared.into_iter().map(Outcome::from).collect()))
        };
        schedulers.into_iter().map(run).collect()
    });
    as_python(py, &outcome?)
}

/// Open-loop workloads of the thesis, by their letters.
#[pyfunction]
pub fn published_workloads(py: Python<'_>) -> PyResult<Py<PyAny>> {
    let row = |of: &PublishedWorkload| {
        let row =
            json!({"storage_load": of.storage_load, "network_load": of.network_load, "gap_c2": of.gap_c2});
        (of.letter, row)
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
    fn from(fared: ContentionResult) -> Outcome {
        let ContentionResult { requests, late, tails, demoted, priorities, bound, intervals } = fared;
        let priorities = priorities.into_iter().map(|(stage, priority)| (stage.name(), priority)).collect();
        Outcome { requests, late, tails_s: tails, demoted, priorities, bound_s: bound, intervals }
    }
}

fn scheduler(name: &str) -> Result<Scheduler, PyInputError> {
    Scheduler::from_name(name).ok_or_else(|| {
        let known = Scheduler::ALL.map(Scheduler::name).join(", ");
        PyInputError(InputError::new("schedulers", format!("`{}`: expected one of {known}", excerpt(name))))
    })
}
