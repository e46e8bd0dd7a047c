//! `Scenario` and `Run`: a scenario file, and the records of its run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use leeward_engine::Policies;
use leeward_fabric::input::{InputError, excerpt};
use leeward_scenarios::record::Record;
use leeward_scenarios::scenario::{Kind, PolicySpec, Scenario as Core};
use leeward_scenarios::summary::{Comparison, Summary};
use leeward_scenarios::{RunError, Task, run_all_by};
use pyo3::exceptions::{PyKeyboardInterrupt, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Serialize;

use crate::app_records;
use crate::cluster::Cluster;
use crate::coflow_records;
use crate::errors::{PyInputError, Raised};
use crate::objects::{display, hash_of, restored_by};
use crate::policy::{self, Placed};
use crate::records::{self, ArrowTable};
use crate::tables::PyTables;

/// A scenario file, read and validated.
#[pyclass(frozen, module = "leeward")]
pub struct Scenario {
    inner: Arc<Core>,
    /// Absolute folders of its files, and of traces.
    folders: (PathBuf, Option<PathBuf>),
    /// Tables in memory that its text names, without `table:`.
    tables: Given,
}

/// Tables of Python by name.
type Given = BTreeMap<String, Py<PyAny>>;

/// Arguments of `Scenario.from_text`.
type Parts = (String, PathBuf, Option<PathBuf>, String, Cluster, Given);

impl Scenario {
    fn of(py: Python<'_>, scenario: Core, tables: Given) -> Scenario {
        let origin = &scenario.origin;
        let folders = (absolute(&origin.base), origin.data.as_deref().map(absolute));
        let given = copy(py, &tables);
        let inner = Arc::new(scenario.with_tables(Arc::new(PyTables { given })));
        Scenario { inner, folders, tables }
    }

    fn equals(&self, py: Python<'_>, other: &Scenario) -> PyResult<bool> {
        let (ours, theirs) = (&self.inner, &other.inner);
        if Arc::ptr_eq(ours, theirs) {
            return Ok(true);
        }
        let are_same = (&ours.name, &ours.origin.text, &self.folders)
            == (&theirs.name, &theirs.origin.text, &other.folders)
            && ours.cluster == theirs.cluster
            && self.tables.keys().eq(other.tables.keys());
        for (ours, theirs) in self.tables.values().zip(other.tables.values()) {
            if are_same && !ours.bind(py).eq(theirs.bind(py))? {
                return Ok(false);
            }
        }
        Ok(are_same)
    }
}

/// A folder, wherever the process is later.
fn absolute(folder: &Path) -> PathBuf {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned())
}

fn copy(py: Python<'_>, tables: &Given) -> Given {
    tables.iter().map(|(name, table)| (name.clone(), table.clone_ref(py))).collect()
}

#[pymethods]
impl Scenario {
    /// Reads a scenario file; `data` is the folder for files named `data:...`.
    #[staticmethod]
    #[pyo3(signature = (path, data = None))]
    fn from_file(py: Python<'_>, path: PathBuf, data: Option<PathBuf>) -> Result<Scenario, PyInputError> {
        let path = path.to_string_lossy();
        let scenario = py.detach(|| Core::from_file(&path, data.as_deref()))?;
        Ok(Scenario::of(py, scenario, Given::new()))
    }

    /// Reads a scenario from text; other files are looked up from the folder `base`.
    ///
    /// `cluster` takes the place of the cluster file. A workload reads the table `NAME` of `tables` by the file
    /// `table:NAME`.
    #[staticmethod]
    #[pyo3(signature = (text, base, data = None, name = "<text>", cluster = None, tables = BTreeMap::new()))]
    fn from_text(
        py: Python<'_>,
        text: &str,
        base: PathBuf,
        data: Option<PathBuf>,
        name: &str,
        cluster: Option<&Bound<'_, Cluster>>,
        tables: Given,
    ) -> Result<Scenario, PyInputError> {
        let (data, cluster) = (data.as_deref(), cluster.map(|cluster| cluster.get().inner.clone()));
        let read = || match cluster {
            Some(cluster) => Core::on_cluster(name, text, &base, data, cluster),
            None => Core::from_text(name, text, &base, data),
        };
        let scenario = py.detach(read)?;
        Ok(Scenario::of(py, scenario, tables))
    }

    /// Text of its file; of a mapping, its JSON.
    #[getter]
    fn text(&self) -> &str {
        &self.inner.origin.text
    }

    /// Display name.
    #[getter]
    fn name(&self) -> &str {
        &self.inner.name
    }

    /// The cluster as its file describes it.
    #[getter]
    fn cluster(&self) -> Cluster {
        Cluster { inner: self.inner.cluster.clone() }
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
        slf: &Bound<'_, Self>,
        policies: Vec<String>,
        seeds: Vec<u64>,
        jobs: usize,
        progress: Option<Py<PyAny>>,
        own: BTreeMap<String, Py<PyAny>>,
    ) -> PyResult<Vec<Run>> {
        let (py, scenario) = (slf.py(), &slf.get().inner);
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
        Ok(runs.into_iter().map(|inner| Run { inner, scenario: slf.clone().unbind() }).collect())
    }

    fn __repr__(&self) -> String {
        let Core { name, horizon, cluster, .. } = &*self.inner;
        format!("<Scenario {name}: {horizon} of {} on {}>", self.kind(), cluster.fabric.name())
    }

    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        display("scenario_html", (slf,), slf.py())
    }

    /// Scenarios are equal if their texts, clusters, folders and tables are.
    fn __eq__(&self, other: &Bound<'_, Scenario>) -> PyResult<bool> {
        self.equals(other.py(), other.get())
    }

    fn __hash__(&self) -> u64 {
        hash_of(&self.inner.origin.text)
    }

    fn _parts(&self, py: Python<'_>) -> Parts {
        let (base, data) = self.folders.clone();
        let origin = &self.inner.origin;
        (origin.text.clone(), base, data, origin.file.clone(), self.cluster(), copy(py, &self.tables))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Parts)> {
        Ok((restored_by(py, "scenario")?, self._parts(py)))
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
    scenario: Py<Scenario>,
}

impl Run {
    fn core(&self) -> &Core {
        &self.scenario.get().inner
    }
}

#[pymethods]
impl Run {
    /// A run of a pickle.
    #[staticmethod]
    fn _restore(
        scenario: Py<Scenario>,
        policy: &str,
        seed: u64,
        provenance: Vec<String>,
        record: &[u8],
    ) -> PyResult<Run> {
        let record = Record::from_bytes(record, &scenario.get().inner.cluster.fabric);
        let record = record.ok_or_else(|| {
            PyValueError::new_err("not a run of this version of Leeward, or damaged; simulate it again")
        })?;
        let inner = leeward_scenarios::Run { policy: PolicySpec::named(policy), seed, provenance, record };
        Ok(Run { inner, scenario })
    }

    /// The scenario.
    #[getter]
    fn scenario(&self, py: Python<'_>) -> Py<Scenario> {
        self.scenario.clone_ref(py)
    }

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
        self.core().ledger.hot
    }

    /// Kind of the run: `replicas`, tasks of a `cell`, `apps` or `coflows`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.core().kind().name()
    }

    /// Warm-up at the beginning, whose results do not count, in seconds.
    #[getter]
    fn warmup_s(&self) -> f64 {
        self.core().warmup.as_secs_f64()
    }

    /// Length of the intervals over which link loads were recorded, in seconds.
    #[getter]
    fn sample_s(&self) -> f64 {
        self.core().sample.as_secs_f64()
    }

    /// Sources of the arrivals: a line for each workload.
    #[getter]
    fn provenance(&self) -> Vec<String> {
        self.inner.provenance.clone()
    }

    /// The run in a few numbers: write times, imbalance, hot links, storage.
    fn summary(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let (fabric, warmup) = (&self.core().cluster.fabric, self.core().warmup.as_secs_f64());
        let summary = Summary::of(&self.inner.record, fabric, self.core().ledger.hot, warmup);
        as_python(py, &summary)
    }

    /// Compares this run with another run on the same arrivals, write by write.
    fn compare(&self, py: Python<'_>, baseline: &Bound<'_, Run>) -> PyResult<Py<PyAny>> {
        let baseline = &baseline.get().inner;
        if baseline.seed != self.inner.seed || baseline.record.jobs.len() != self.inner.record.jobs.len() {
            let message = "runs of different arrivals cannot be compared; give both the same seed";
            return Err(PyInputError(InputError::new("baseline", message)).into());
        }
        let warmup = self.core().warmup.as_secs_f64();
        as_python(py, &Comparison::of(&self.inner.record, &baseline.record, warmup))
    }

    /// A row for each block, in the order of requests.
    fn blocks(&self) -> PyResult<ArrowTable> {
        records::blocks(&self.inner.record, &self.core().cluster.fabric)
    }

    /// A row for each file, in order of start.
    fn files(&self) -> PyResult<ArrowTable> {
        records::files(&self.inner.record, &self.core().cluster.fabric)
    }

    /// A row for each job, in order of start.
    fn jobs(&self) -> PyResult<ArrowTable> {
        records::jobs(&self.inner.record)
    }

    /// Mean load of each rack and pod link in each interval.
    fn links(&self) -> PyResult<ArrowTable> {
        records::links(&self.inner.record, &self.core().cluster.fabric)
    }

    /// Imbalance of the links of each kind in each interval.
    fn balance(&self) -> PyResult<ArrowTable> {
        records::balance(&self.inner.record)
    }

    /// Hot periods: consecutive intervals in which a link was hot.
    fn hotspots(&self) -> PyResult<ArrowTable> {
        records::hotspots(&self.inner.record, &self.core().cluster.fabric)
    }

    /// Bytes on each host at the end.
    fn hosts(&self) -> PyResult<ArrowTable> {
        records::hosts(&self.inner.record, &self.core().cluster.fabric)
    }

    /// Tasks of a cell: arrival, placement, end, host, number of moves.
    fn tasks(&self) -> PyResult<ArrowTable> {
        records::tasks(&self.inner.record, &self.core().cluster.fabric)
    }

    /// Moves of tasks, by time: both hosts, and the hot link that the task left.
    fn moves(&self) -> PyResult<ArrowTable> {
        records::moves(&self.inner.record, &self.core().cluster.fabric)
    }

    /// A cell by interval: hot racks, utilization of uplinks, tasks scheduled and moved.
    fn cell(&self) -> PyResult<ArrowTable> {
        records::cell(&self.inner.record)
    }

    /// A row for each read of written data, in the order of requests.
    fn reads(&self) -> PyResult<ArrowTable> {
        records::reads(&self.inner.record, &self.core().cluster.fabric)
    }

    /// Repairs of blocks with lost copies, in order of start: sources, lost and new hosts, times.
    fn repairs(&self) -> PyResult<ArrowTable> {
        records::repairs(&self.inner.record, &self.core().cluster.fabric)
    }

    /// Apps: arrival, placement, end, hosts, bytes sent, moves.
    fn apps(&self) -> PyResult<ArrowTable> {
        app_records::apps(&self.inner.record, &self.core().cluster.fabric)
    }

    /// Coflows, in order of arrival: width, bytes, lower bound, completion.
    fn coflows(&self) -> PyResult<ArrowTable> {
        coflow_records::coflows(&self.inner.record)
    }

    /// Migrations of apps, by time: predicted times with and without the move, and its predicted cost.
    fn migrations(&self) -> PyResult<ArrowTable> {
        app_records::migrations(&self.inner.record)
    }

    /// The pictures of the report, of this run or beside a baseline on the same arrivals.
    #[pyo3(signature = (baseline = None))]
    fn plot(slf: &Bound<'_, Self>, baseline: Option<&Bound<'_, Run>>) -> PyResult<Py<PyAny>> {
        display("plot", (slf, baseline), slf.py())
    }

    fn __repr__(&self) -> String {
        let Record { blocks, tasks, apps, coflows, .. } = &self.inner.record;
        let (count, things) = match self.core().kind() {
            Kind::Replicas => (blocks.len(), "blocks"),
            Kind::Cell => (tasks.len(), "tasks"),
            Kind::Apps => (apps.len(), "apps"),
            Kind::Coflows => (coflows.len(), "coflows"),
        };
        let (policy, seed, scenario) = (self.policy(), self.inner.seed, &self.core().name);
        format!("<Run of {scenario} under {policy}, seed {seed}: {count} {things}>")
    }

    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        display("run_html", (slf,), slf.py())
    }

    /// Runs are equal if their scenarios, policies, seeds and all records are.
    fn __eq__(&self, other: &Bound<'_, Run>) -> PyResult<bool> {
        let (ours, theirs) = (&self.inner, &other.get().inner);
        let are_same = (&ours.policy.label, ours.seed, &ours.provenance)
            == (&theirs.policy.label, theirs.seed, &theirs.provenance)
            && ours.record == theirs.record;
        Ok(are_same && self.scenario.get().equals(other.py(), other.get().scenario.get())?)
    }

    fn __hash__(&self) -> u64 {
        hash_of(&(&self.core().origin.text, &self.inner.policy.label, self.inner.seed))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, StoredRun<'py>)> {
        let leeward_scenarios::Run { policy, seed, provenance, record } = &self.inner;
        let bytes = PyBytes::new(py, &record.to_bytes());
        let parts = (self.scenario.clone_ref(py), policy.label.clone(), *seed, provenance.clone(), bytes);
        Ok((restored_by(py, "run")?, parts))
    }
}

/// Arguments of `Run._restore`.
type StoredRun<'py> = (Py<Scenario>, String, u64, Vec<String>, Bound<'py, PyBytes>);

/// Converts a value to dictionaries, lists and numbers.
///
/// A serializer that makes Python objects (pythonize) would be more direct. The conversion through JSON text keeps one
/// form for Python, for `-o json` and for the HTTP API. Fields stay in order, tuples become lists, and infinity and NaN
/// become `None`.
pub fn as_python(py: Python<'_>, value: &impl Serialize) -> PyResult<Py<PyAny>> {
    let text = serde_json::to_string(value).map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    Ok(py.import("json")?.call_method1("loads", (text,))?.unbind())
}
