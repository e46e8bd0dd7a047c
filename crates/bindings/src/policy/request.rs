//! Requests as a Python policy sees them.

use leeward_ledger::{Owner, OwnerKind};
use leeward_placement::replicas::{Layout, ReplicaRequest};
use leeward_placement::tasks::{AppRequest, Goal, Task, Traffic};
use leeward_placement::{Apart, Constraints};
use leeward_registry::splitmix;
use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::prelude::*;

use crate::policy::values::Values;

/// Seed of a request: a hash of the run's seed and of the request's number.
fn seed_of(seed: u64, request: u64) -> u64 {
    splitmix(splitmix(seed) ^ request)
}

/// Numbers of hosts for Python.
fn numbers(hosts: &[leeward_fabric::HostId]) -> Vec<u32> {
    hosts.iter().map(|host| host.0).collect()
}

/// A block to write, or a stripe of coded chunks.
#[pyclass(frozen, module = "leeward.policy")]
pub struct BlockRequest {
    pub request: ReplicaRequest,
    seed: u64,
}

impl BlockRequest {
    pub fn new(request: &ReplicaRequest, seed: u64) -> BlockRequest {
        BlockRequest { request: request.clone(), seed: seed_of(seed, request.id) }
    }

    /// Owner of the block's entries in the ledger.
    fn owner(&self) -> Owner {
        Owner { kind: OwnerKind::File, id: self.request.file }
    }
}

#[pymethods]
impl BlockRequest {
    /// Kind of the request: `replicas`.
    #[getter]
    fn kind(&self) -> &'static str {
        "replicas"
    }

    /// Number of the request.
    #[getter]
    fn id(&self) -> u64 {
        self.request.id
    }

    /// Seed for random choices: a function of the run's seed and of the request alone.
    #[getter]
    fn seed(&self) -> u64 {
        self.seed
    }

    /// Number of the file.
    #[getter]
    fn file(&self) -> u64 {
        self.request.file
    }

    /// Size of each copy or chunk, in bytes.
    #[getter]
    fn size(&self) -> u64 {
        self.request.size.0
    }

    /// Number of hosts to choose: of new copies, the writer's own included, or of missing chunks.
    #[getter]
    fn count(&self) -> u8 {
        self.request.replicas
    }

    /// The same number as `count`.
    #[getter]
    fn replicas(&self) -> u8 {
        self.request.replicas
    }

    /// Number of parity chunks of a stripe; None for copies.
    #[getter]
    fn parity(&self) -> Option<u8> {
        match self.request.layout {
            Layout::Chain => None,
            Layout::Stripe { parity } => Some(parity),
        }
    }

    /// Number of fault domains besides the first copy's that must hold a copy. Of a stripe, number of fault domains that
    /// may be lost.
    #[getter]
    fn fault_domains(&self) -> u8 {
        self.request.fault_domains
    }

    /// Host that writes the block, by number; None for a writer outside the cluster.
    #[getter]
    fn writer(&self) -> Option<u32> {
        self.request.writer.map(|host| host.0)
    }

    /// Blocks of the file still to write, this one included.
    #[getter]
    fn blocks_left(&self) -> u64 {
        self.request.blocks_left
    }

    /// Hosts that hold a copy or a chunk already, by number.
    #[getter]
    fn existing(&self) -> Vec<u32> {
        numbers(&self.request.constraints.existing)
    }

    /// Hosts that the request prefers, by number, in their order.
    #[getter]
    fn preferred(&self) -> Vec<u32> {
        numbers(&self.request.constraints.preferred)
    }

    /// Hosts that the request excludes, by number; `View.eligible` knows all constraints.
    #[getter]
    fn excluded(&self) -> Vec<u32> {
        numbers(&self.request.constraints.excluded_hosts)
    }

    /// Type of storage that must hold the copies; None for any.
    #[getter]
    fn storage(&self) -> Option<&str> {
        self.request.constraints.storage.as_deref()
    }

    /// Greatest excess of a host's used share of storage over the average; None for any.
    #[getter]
    fn max_imbalance(&self) -> Option<f64> {
        self.request.constraints.max_imbalance
    }

    fn __repr__(&self) -> String {
        let ReplicaRequest { id, size, replicas, .. } = &self.request;
        format!("<BlockRequest {id}: {replicas} hosts for {size} each>")
    }
}

/// Blocks to place together.
#[pyclass(frozen, module = "leeward.policy")]
pub struct RequestBatch {
    requests: Vec<ReplicaRequest>,
    seed: u64,
}

impl RequestBatch {
    pub fn new(requests: &[ReplicaRequest], seed: u64) -> RequestBatch {
        RequestBatch { requests: requests.to_vec(), seed }
    }
}

#[pymethods]
impl RequestBatch {
    fn __len__(&self) -> usize {
        self.requests.len()
    }

    fn __getitem__(&self, index: isize) -> PyResult<BlockRequest> {
        let count = self.requests.len();
        let at = if index < 0 { index.checked_add_unsigned(count) } else { Some(index) };
        let request = at.and_then(|at| usize::try_from(at).ok()).and_then(|at| self.requests.get(at));
        let error = || PyIndexError::new_err(format!("{index}: the batch has {count} requests"));
        Ok(BlockRequest::new(request.ok_or_else(error)?, self.seed))
    }

    /// Seed for random choices of the whole batch.
    #[getter]
    fn seed(&self) -> u64 {
        seed_of(self.seed, self.requests.first().map_or(0, |request| request.id))
    }

    /// Number of each request (int64).
    #[getter]
    fn ids(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.values(py, |request| request.id as i64)
    }

    /// Size of each copy or chunk, in bytes (int64).
    #[getter]
    fn sizes(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.values(py, |request| i64::try_from(request.size.0).unwrap_or(i64::MAX))
    }

    /// Number of hosts to choose for each request (int64).
    #[getter]
    fn counts(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.values(py, |request| i64::from(request.replicas))
    }

    /// Writer of each request, by number; -1 for a writer outside the cluster (int64).
    #[getter]
    fn writers(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.values(py, |request| request.writer.map_or(-1, |host| i64::from(host.0)))
    }

    fn __repr__(&self) -> String {
        format!("<RequestBatch: {} requests>", self.requests.len())
    }
}

impl RequestBatch {
    fn values(&self, py: Python<'_>, value: impl Fn(&ReplicaRequest) -> i64) -> PyResult<Py<PyAny>> {
        Values::Counts(self.requests.iter().map(value).collect()).into_python(py)
    }
}

/// Tasks to place together: a task of a scheduler, or an app with traffic between its tasks.
#[pyclass(frozen, name = "AppRequest", module = "leeward.policy")]
pub struct PyAppRequest {
    pub request: AppRequest,
    seed: u64,
}

impl PyAppRequest {
    pub fn new(request: &AppRequest, seed: u64) -> PyAppRequest {
        PyAppRequest { request: request.clone(), seed: seed_of(seed, request.id) }
    }

    fn owner(&self) -> Owner {
        Owner { kind: OwnerKind::App, id: self.request.id }
    }

    /// A number of each task.
    fn of_tasks(&self, py: Python<'_>, value: impl Fn(&Task) -> f64) -> PyResult<Py<PyAny>> {
        Values::Floats(self.request.tasks.iter().map(value).collect()).into_python(py)
    }
}

#[pymethods]
impl PyAppRequest {
    /// Kind of the request: `tasks`.
    #[getter]
    fn kind(&self) -> &'static str {
        "tasks"
    }

    /// Number of the request.
    #[getter]
    fn id(&self) -> u64 {
        self.request.id
    }

    /// Number of the job of the tasks.
    #[getter]
    fn job(&self) -> u64 {
        self.request.job.0
    }

    /// Seed for random choices: a function of the run's seed and of the request alone.
    #[getter]
    fn seed(&self) -> u64 {
        self.seed
    }

    /// Number of hosts to choose: one for each task.
    #[getter]
    fn count(&self) -> usize {
        self.request.tasks.len()
    }

    /// Processors of each task (float64).
    #[getter]
    fn cpus(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.of_tasks(py, |task| task.cpus.0 as f64 / 1000.0)
    }

    /// Memory of each task, in bytes (float64).
    #[getter]
    fn memory_bytes(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.of_tasks(py, |task| task.memory.0 as f64)
    }

    /// Average rate of each task out of its rack, in bit/s (float64).
    #[getter]
    fn egress_mean_bps(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.of_tasks(py, |task| mean(task.total_egress()))
    }

    /// Peak rate of each task out of its rack, in bit/s (float64).
    #[getter]
    fn egress_peak_bps(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.of_tasks(py, |task| peak(task.total_egress()))
    }

    /// Average rate of each task into its rack, in bit/s (float64).
    #[getter]
    fn ingress_mean_bps(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.of_tasks(py, |task| mean(task.total_ingress()))
    }

    /// Peak rate of each task into its rack, in bit/s (float64).
    #[getter]
    fn ingress_peak_bps(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.of_tasks(py, |task| peak(task.total_ingress()))
    }

    /// True for each task that may be moved (bool).
    #[getter]
    fn tolerant(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Values::Flags(self.request.tasks.iter().map(|task| task.tolerant).collect()).into_python(py)
    }

    /// Transfers of all phases: sending task, receiving task, bytes and phase, each an array (int64).
    #[getter]
    fn transfers(&self, py: Python<'_>) -> PyResult<[Py<PyAny>; 4]> {
        let transfers = &self.request.transfers;
        let bytes = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        Ok([
            Values::Counts(transfers.iter().map(|one| one.from.into()).collect()).into_python(py)?,
            Values::Counts(transfers.iter().map(|one| one.to.into()).collect()).into_python(py)?,
            Values::Counts(transfers.iter().map(|one| bytes(one.bytes.0)).collect()).into_python(py)?,
            Values::Counts(transfers.iter().map(|one| one.phase.into()).collect()).into_python(py)?,
        ])
    }

    /// Bytes from each task to each, in all phases together: an array of tasks by tasks (float64).
    #[getter]
    fn matrix(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let tasks = self.request.tasks.len();
        let cells = tasks.checked_mul(tasks).filter(|&cells| cells <= MOST_CELLS);
        let Some(cells) = cells else {
            let message = format!("{tasks} tasks: a matrix would be too large; use `transfers`");
            return Err(pyo3::exceptions::PyValueError::new_err(message));
        };
        let mut matrix = vec![0.0; cells];
        for transfer in &self.request.transfers {
            matrix[transfer.from as usize * tasks + transfer.to as usize] += transfer.bytes.0 as f64;
        }
        let flat = Values::Floats(matrix).into_python(py)?;
        flat.call_method1(py, "reshape", (tasks, tasks))
    }

    /// Level at which the tasks are apart: `host`, `rack`, or None.
    #[getter]
    fn apart(&self) -> Option<&'static str> {
        self.request.constraints.apart.map(|level| match level {
            Apart::Host => "host",
            Apart::Rack => "rack",
        })
    }

    /// Goal that comes first: `time` or `cost`.
    #[getter]
    fn goal(&self) -> &'static str {
        match self.request.goal {
            Goal::Time => "time",
            Goal::Cost => "cost",
        }
    }

    /// Hosts that the request excludes, by number; `View.eligible` knows all constraints.
    #[getter]
    fn excluded(&self) -> Vec<u32> {
        let Constraints { excluded_hosts, .. } = &self.request.constraints;
        numbers(excluded_hosts)
    }

    fn __repr__(&self) -> String {
        format!("<AppRequest {}: {} tasks>", self.request.id, self.request.tasks.len())
    }
}

/// Most cells of a traffic matrix for Python: 128 MB.
const MOST_CELLS: usize = 1 << 24;

fn mean(traffic: Traffic) -> f64 {
    traffic.mean_bps as f64
}

fn peak(traffic: Traffic) -> f64 {
    traffic.peak_bps as f64
}

/// A request of either kind.
pub enum Requested<'a> {
    Block(&'a BlockRequest),
    App(&'a PyAppRequest),
}

impl<'a> Requested<'a> {
    /// The request in a Python object.
    ///
    /// # Errors
    /// The object is of another type.
    pub fn of(object: &'a Bound<'_, PyAny>) -> PyResult<Requested<'a>> {
        if let Ok(block) = object.cast::<BlockRequest>() {
            return Ok(Requested::Block(block.get()));
        }
        if let Ok(app) = object.cast::<PyAppRequest>() {
            return Ok(Requested::App(app.get()));
        }
        let message = format!("{}: expected a BlockRequest or an AppRequest", object.get_type());
        Err(PyTypeError::new_err(message))
    }

    /// Owner of the request's entries in the ledger.
    pub fn owner(&self) -> Owner {
        match self {
            Requested::Block(block) => block.owner(),
            Requested::App(app) => app.owner(),
        }
    }
}
