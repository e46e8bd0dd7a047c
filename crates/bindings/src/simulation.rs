//! `Scenario` and `Run`: a scenario file, and the records of its run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use leeward_engine::Policies;
use leeward_fabric::input::{InputError, excerpt};
use leeward_scenarios::scenario::{Kind, PolicySpec};
use leeward_scenarios::summary::{Comparison, Summary};
use leeward_scenarios::{RunError, Task, run_all_by};
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError};
use pyo3::prelude::*;
use serde::Serialize;

use crate::app_records;
use crate::coflow_records;
use crate::errors::{PyInputError, Raised};
use crate::policy::{self, Placed};
use crate::records::{self, ArrowTable};
use crate::tables;

/// A scenario file, read and validated.
#[pyclass(frozen, module = "leeward")]
pub struct Scenario {
    inner: Arc<leeward_scenarios::scenario::Scenario>,
}

#[pymethods]
impl Scenario {
    /// Reads a scenario file; `data` is the folder for files named `data:...`.
    #[staticmethod]
    #[pyo3(signature = (path, data = None))]
    fn from_file(py: Python<'_>, path: PathBuf, data: Option<PathBuf>) -> Result<Scenario, PyInputError> {
        let path = path.to_string_lossy();
        let read = || leeward_scenarios::scenario::Scenario::from_file(&path, data.as_deref());
        let scenario = py.detach(read)?;
        Ok(Scenario { inner: Arc::new(scenario.with_table_reader(tables::list)) })
    }

    /// Reads a scenario from text; other files are looked up from the folder `base`.
    #[staticmethod]
    #[pyo3(signature = (text, base, data = None, name = "<text>"))]
    fn from_text(
        py: Python<'_>,
        text: &str,
        base: PathBuf,
        data: Option<PathBuf>,
        name: &str,
    ) -> Result<Scenario, PyInputError> {
        let data = data.as_deref();
        let read = || leeward_scenarios::scenario::Scenario::from_text(name, text, &base, data);
        let scenario = py.detach(read)?;
        Ok(Scenario { inner: Arc::new(scenario.with_table_reader(tables::list)) })
    }

    /// Display name.
    #[getter]
    fn name(&self) -> &str {
        &self.inner.name
    }

    /// The cluster as its file describes it.
    #[getter]
    fn cluster(&self) -> crate::cluster::Cluster {
        crate::cluster::Cluster { inner: self.inner.cluster.clone() }
    }

    /// Policies that the scenario names; the others are compared with the first.
    #[getter]
    fn policies(&self) -> Vec<&str> {
        self.inner.policies.iter().map(|policy| policy.label.as_str()).collect()
    }

    /// Seed of all draws, unless a run has another.
    #[getter]
    fn seed(&self) -> u64 {
        self.inner.seed
    }

    /// Length of a run, in seconds.
    #[getter]
    fn horizon_s(&self) -> f64 {
        self.inner.horizon.as_secs_f64()
    }

    /// Warm-up at the beginning, whose results do not count, in seconds.
    #[getter]
    fn warmup_s(&self) -> f64 {
        self.inner.warmup.as_secs_f64()
    }

    /// Length of the intervals over which link loads are recorded, in seconds.
    #[getter]
    fn sample_s(&self) -> f64 {
        self.inner.sample.as_secs_f64()
    }

    /// Utilization above which a link is hot.
    #[getter]
    fn hot(&self) -> f64 {
        self.inner.ledger.hot
    }

    /// Kind of its runs: `replicas`, tasks of a `cell`, `apps` or `coflows`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.inner.kind().name()
    }

    /// Runs every policy under every seed, up to `jobs` at once; see `leeward.simulate`.
    #[pyo3(signature = (policies, seeds, jobs = 1, progress = None, own = BTreeMap::new()))]
    fn run(
        &self,
        py: Python<'_>,
        policies: Vec<String>,
        seeds: Vec<u64>,
        jobs: usize,
        progress: Option<Py<PyAny>>,
        own: BTreeMap<String, Py<PyAny>>,
    ) -> PyResult<Vec<Run>> {
        let invalid = |message: String| PyInputError(InputError::new("policy", message));
        let spec = |text: &String| match own.contains_key(text) {
            true => Ok(PolicySpec::named(text)),
            false => text.parse().map_err(invalid),
        };
        let specs: Result<Vec<PolicySpec>, PyInputError> = policies.iter().map(spec).collect();
        let specs = specs?;
        if specs.is_empty() || seeds.is_empty() {
            return Err(invalid("expected at least one policy and one seed".into()).into());
        }
        if let Some(duplicate) = (1..specs.len()).find(|&at| specs[..at].contains(&specs[at])) {
            return Err(invalid(format!("`{}` is given twice", specs[duplicate].label)).into());
        }
        let task = |seed| specs.iter().map(move |policy| Task { policy: policy.clone(), seed });
        let tasks: Vec<Task> = seeds.into_iter().flat_map(task).collect();
        let (interrupted, raised) = (Mutex::new(None), Raised::default());
        let on_progress = |at: usize, share: f64| {
            // A policy that raised an exception decides nothing more.
            if raised.is_set() {
                return false;
            }
            let result = Python::attach(|py| {
                py.check_signals()?;
                progress.as_ref().map_or(Ok(()), |progress| progress.call1(py, (at, share)).map(drop))
            });
            result.map_err(|error| *interrupted.lock().expect("no thread panics here") = Some(error)).is_ok()
        };
        let scenario = &self.inner;
        let make = |task: &Task| -> Result<Policies, RunError> {
            let Some(start) = own.get(&task.policy.label) else {
                return Ok(scenario.kind().policies(&task.policy)?);
            };
            let placed = if scenario.kind() == Kind::Replicas { Placed::Replicas } else { Placed::Tasks };
            let (label, fabric) = (&task.policy.label, &scenario.cluster.fabric);
            let policies =
                Python::attach(|py| policy::start(py, start, label, placed, task.seed, fabric, &raised));
            policies.map_err(|error| {
                raised.set(error);
                RunError::Stopped
            })
        };
        let result = py.detach(|| run_all_by(scenario, &tasks, jobs, &on_progress, &make));
        if let Some(error) = raised.take() {
            return Err(error);
        }
        if let Some(error) = interrupted.into_inner().expect("no thread panics here") {
            return Err(error);
        }
        let runs = result.map_err(to_py_error)?;
        Ok(runs.into_iter().map(|inner| Run { inner, scenario: self.inner.clone() }).collect())
    }
}

/// Checks the name and settings of a policy for a scenario's kind of object.
#[pyfunction]
pub fn check_policy(policy: &str, kind: &str) -> Result<(), PyInputError> {
    let invalid = |message: String| PyInputError(InputError::new("policy", message));
    let Some(kind) = Kind::from_name(kind) else {
        let message = format!("`{}`: expected replicas, cell or apps", excerpt(kind));
        return Err(PyInputError(InputError::new("kind", message)));
    };
    let spec: PolicySpec = policy.parse().map_err(invalid)?;
    kind.check(&spec).map_err(|error| invalid(error.to_string()))
}

/// Converts an error of a run for Python.
fn to_py_error(error: RunError) -> PyErr {
    match error {
        RunError::Input(error) => PyInputError(error).into(),
        RunError::Policy(error) => PyInputError(InputError::new("policy", error)).into(),
        RunError::Ledger(error) => PyInputError(InputError::new("ledger", error)).into(),
        RunError::Fluid(error) => PyRuntimeError::new_err(error.to_string()),
        RunError::Stopped => PyKeyboardInterrupt::new_err("stopped"),
    }
}

/// One run of a scenario.
#[pyclass(frozen, module = "leeward")]
pub struct Run {
    inner: leeward_scenarios::Run,
    scenario: Arc<leeward_scenarios::scenario::Scenario>,
}

#[pymethods]
impl Run {
    /// The policy, with its settings.
    #[getter]
    fn policy(&self) -> &str {
        &self.inner.policy.label
    }

    /// The seed.
    #[getter]
    fn seed(&self) -> u64 {
        self.inner.seed
    }

    /// Utilization above which a link is hot.
    #[getter]
    fn hot(&self) -> f64 {
        self.scenario.ledger.hot
    }

    /// Kind of the run: `replicas`, tasks of a `cell`, `apps` or `coflows`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.scenario.kind().name()
    }

    /// Warm-up at the beginning, whose results do not count, in seconds.
    #[getter]
    fn warmup_s(&self) -> f64 {
        self.scenario.warmup.as_secs_f64()
    }

    /// Length of the intervals over which link loads were recorded, in seconds.
    #[getter]
    fn sample_s(&self) -> f64 {
        self.scenario.sample.as_secs_f64()
    }

    /// Sources of the arrivals: a line for each workload.
    #[getter]
    fn provenance(&self) -> Vec<String> {
        self.inner.provenance.clone()
    }

    /// The run in a few numbers: write times, imbalance, hot links, storage.
    fn summary(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let (fabric, warmup) = (&self.scenario.cluster.fabric, self.scenario.warmup.as_secs_f64());
        let summary = Summary::of(&self.inner.record, fabric, self.scenario.ledger.hot, warmup);
        as_python(py, &summary)
    }

    /// Compares this run with another run on the same arrivals, write by write.
    fn compare(&self, py: Python<'_>, baseline: &Bound<'_, Run>) -> PyResult<Py<PyAny>> {
        let baseline = &baseline.get().inner;
        if baseline.seed != self.inner.seed || baseline.record.jobs.len() != self.inner.record.jobs.len() {
            let message = "runs of different arrivals cannot be compared; give both the same seed";
            return Err(PyInputError(InputError::new("baseline", message)).into());
        }
        let warmup = self.scenario.warmup.as_secs_f64();
        as_python(py, &Comparison::of(&self.inner.record, &baseline.record, warmup))
    }

    /// A row for each block, in the order of requests.
    fn blocks(&self) -> PyResult<ArrowTable> {
        records::blocks(&self.inner.record, &self.scenario.cluster.fabric)
    }

    /// A row for each file, in order of start.
    fn files(&self) -> PyResult<ArrowTable> {
        records::files(&self.inner.record, &self.scenario.cluster.fabric)
    }

    /// A row for each job, in order of start.
    fn jobs(&self) -> PyResult<ArrowTable> {
        records::jobs(&self.inner.record)
    }

    /// Mean load of each rack and pod link in each interval.
    fn links(&self) -> PyResult<ArrowTable> {
        records::links(&self.inner.record, &self.scenario.cluster.fabric)
    }

    /// Imbalance of the links of each kind in each interval.
    fn balance(&self) -> PyResult<ArrowTable> {
        records::balance(&self.inner.record)
    }

    /// Hot periods: consecutive intervals in which a link was hot.
    fn hotspots(&self) -> PyResult<ArrowTable> {
        records::hotspots(&self.inner.record, &self.scenario.cluster.fabric)
    }

    /// Bytes on each host at the end.
    fn hosts(&self) -> PyResult<ArrowTable> {
        records::hosts(&self.inner.record, &self.scenario.cluster.fabric)
    }

    /// Tasks of a cell: arrival, placement, end, host, number of moves.
    fn tasks(&self) -> PyResult<ArrowTable> {
        records::tasks(&self.inner.record, &self.scenario.cluster.fabric)
    }

    /// Moves of tasks, by time: both hosts, and the hot link that the task left.
    fn moves(&self) -> PyResult<ArrowTable> {
        records::moves(&self.inner.record, &self.scenario.cluster.fabric)
    }

    /// A cell by interval: hot racks, utilization of uplinks, tasks scheduled and moved.
    fn cell(&self) -> PyResult<ArrowTable> {
        records::cell(&self.inner.record)
    }

    /// A row for each read of written data, in the order of requests.
    fn reads(&self) -> PyResult<ArrowTable> {
        records::reads(&self.inner.record, &self.scenario.cluster.fabric)
    }

    /// Repairs of blocks with lost copies, in order of start: sources, lost and new hosts, times.
    fn repairs(&self) -> PyResult<ArrowTable> {
        records::repairs(&self.inner.record, &self.scenario.cluster.fabric)
    }

    /// Apps: arrival, placement, end, hosts, bytes sent, moves.
    fn apps(&self) -> PyResult<ArrowTable> {
        app_records::apps(&self.inner.record, &self.scenario.cluster.fabric)
    }

    /// Coflows, in order of arrival: width, bytes, lower bound, completion.
    fn coflows(&self) -> PyResult<ArrowTable> {
        coflow_records::coflows(&self.inner.record)
    }

    /// Migrations of apps, by time: predicted times with and without the move, and its predicted cost.
    fn migrations(&self) -> PyResult<ArrowTable> {
        app_records::migrations(&self.inner.record)
    }
}

/// Converts a value to dictionaries, lists and numbers.
///
/// A serializer that makes Python objects (pythonize) would be more direct. The conversion through JSON text keeps one
/// form for Python, for `-o json` and for the HTTP API. Fields stay in order, tuples become lists, and infinity and NaN
/// become `None`.
pub fn as_python(py: Python<'_>, value: &impl Serialize) -> PyResult<Py<PyAny>> {
    let text = serde_json::to_string(value).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    Ok(py.import("json")?.call_method1("loads", (text,))?.unbind())
}
