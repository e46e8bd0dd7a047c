//! `leeward.operations`: runs scenarios of operations, and returns their records as Arrow tables.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use arrow_array::{ArrayRef, BooleanArray};
use leeward_fabric::input::InputError;
use leeward_fabric::{HostId, Nanos};
use leeward_operations::{LinkRecord, OperationRecord, Records, RunError, WorkerRecord};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use serde_json::json;

use crate::arrow_table::table;
use crate::cluster::Cluster;
use crate::errors::PyInputError;
use crate::names::kind_name;
use crate::records::{ArrowTable, counts, ids, texts, times};
use crate::simulation::as_python;

/// A scenario of operations, read and validated.
#[pyclass(frozen, module = "leeward")]
pub struct OperationsScenario {
    inner: Arc<leeward_operations::Scenario>,
}

/// Records of a run.
#[pyclass(frozen, module = "leeward")]
pub struct OperationsRun {
    scenario: Arc<leeward_operations::Scenario>,
    records: Records,
}

#[pymethods]
impl OperationsScenario {
    /// Reads and checks a scenario file.
    #[staticmethod]
    fn from_file(py: Python<'_>, path: &str) -> Result<OperationsScenario, PyInputError> {
        let inner = py.detach(|| leeward_operations::Scenario::from_file(path))?;
        Ok(OperationsScenario { inner: Arc::new(inner) })
    }

    /// Reads a scenario from text; the file of its cluster is looked up from the folder `base`.
    ///
    /// `cluster` takes the place of the cluster of the text.
    #[staticmethod]
    #[pyo3(signature = (text, base, name = "<text>", cluster = None))]
    fn from_text(
        py: Python<'_>,
        text: &str,
        base: PathBuf,
        name: &str,
        cluster: Option<&Bound<'_, Cluster>>,
    ) -> Result<OperationsScenario, PyInputError> {
        let cluster = cluster.map(|cluster| cluster.get().inner.clone());
        let read = || match cluster {
            Some(cluster) => leeward_operations::Scenario::on_cluster(name, text, cluster),
            None => leeward_operations::Scenario::from_text(name, text, &base),
        };
        let inner = py.detach(read)?;
        Ok(OperationsScenario { inner: Arc::new(inner) })
    }

    /// Name of the scenario.
    #[getter]
    fn name(&self) -> &str {
        self.inner.name()
    }

    /// The cluster.
    #[getter]
    fn cluster(&self) -> Cluster {
        Cluster { inner: self.inner.cluster().clone() }
    }

    /// Names of the classes of service.
    #[getter]
    fn classes(&self) -> Vec<String> {
        self.inner.classes().to_vec()
    }

    /// Length of the run, in seconds.
    #[getter]
    fn horizon_s(&self) -> f64 {
        self.inner.horizon().as_secs_f64()
    }

    /// Length of a window of telemetry, in seconds.
    #[getter]
    fn sample_s(&self) -> f64 {
        self.inner.sample().as_secs_f64()
    }

    /// Runs the scenario; calls `progress` with the completed share of the horizon.
    #[pyo3(signature = (progress = None))]
    fn run(&self, py: Python<'_>, progress: Option<Py<PyAny>>) -> PyResult<OperationsRun> {
        let interrupted: Mutex<Option<PyErr>> = Mutex::new(None);
        let on_progress = |share: f64| {
            let result = Python::attach(|py| {
                py.check_signals()?;
                progress.as_ref().map_or(Ok(()), |progress| progress.call1(py, (share,)).map(drop))
            });
            result.map_err(|error| *interrupted.lock().expect("no thread panics here") = Some(error)).is_ok()
        };
        let result = py.detach(|| self.inner.run(&on_progress));
        if let Some(error) = interrupted.into_inner().expect("no thread panics here") {
            return Err(error);
        }
        let records = result.map_err(|error| match error {
            RunError::Failed(message) => PyInputError(InputError::new("scenario", message)).into(),
            RunError::Stopped => PyKeyboardInterrupt::new_err("stopped"),
        })?;
        Ok(OperationsRun { scenario: self.inner.clone(), records })
    }
}

#[pymethods]
impl OperationsRun {
    /// The cluster of the scenario.
    #[getter]
    fn cluster(&self) -> Cluster {
        Cluster { inner: self.scenario.cluster().clone() }
    }

    /// Names of the classes of service.
    #[getter]
    fn classes(&self) -> Vec<String> {
        self.scenario.classes().to_vec()
    }

    /// Length of a window of telemetry, in seconds.
    #[getter]
    fn sample_s(&self) -> f64 {
        self.scenario.sample().as_secs_f64()
    }

    /// Numbers of packets, segments and timeouts of the whole run, and of recorded operations and jobs.
    fn totals(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let records = &self.records;
        let totals = json!({
            "operations": records.operations.len(),
            "jobs": records.jobs.len(),
            "unfinished": records.unfinished,
            "unfinished_jobs": records.unfinished_jobs,
            "data_packets": records.data_packets,
            "ack_packets": records.ack_packets,
            "segments": records.segments,
            "retransmitted": records.retransmitted,
            "timeouts": records.timeouts,
        });
        as_python(py, &totals)
    }

    /// Operations, in the order of their end.
    fn operations(&self) -> PyResult<ArrowTable> {
        let rows = &self.records.operations;
        let jobs: Vec<&str> = self.scenario.jobs().collect();
        let kinds: Vec<[&str; 4]> = self.scenario.operations().collect();
        let of_kind = |field: usize| texts(rows.iter().map(|row| kinds[row.operation as usize][field]));
        let degraded = BooleanArray::from_iter(rows.iter().map(|row| Some(row.degraded)));
        table([
            ("job", texts(rows.iter().map(|row| jobs[row.job as usize]))),
            ("operation", of_kind(0)),
            ("kind", of_kind(3)),
            ("medium", of_kind(1)),
            ("class", of_kind(2)),
            ("client", self.hosts(rows, |row| row.client)),
            ("server", self.hosts(rows, |row| row.server)),
            ("bytes", counts(rows.iter().map(|row| row.bytes))),
            ("began_s", seconds(rows, |row| row.began)),
            ("ended_s", seconds(rows, |row| row.ended)),
            ("latency_s", seconds(rows, OperationRecord::latency)),
            ("network_s", seconds(rows, OperationRecord::on_network)),
            ("degraded", Arc::new(degraded) as ArrayRef),
        ])
    }

    /// Jobs, in the order of their end.
    fn jobs(&self) -> PyResult<ArrowTable> {
        let rows = &self.records.jobs;
        let jobs: Vec<&str> = self.scenario.jobs().collect();
        table([
            ("job", texts(rows.iter().map(|row| jobs[row.job as usize]))),
            ("number", ids(rows.iter().map(|row| Some(row.number)))),
            ("began_s", seconds(rows, |row| row.began)),
            ("ended_s", seconds(rows, |row| row.ended)),
        ])
    }

    /// Workers of stages, in the order of their end.
    fn workers(&self) -> PyResult<ArrowTable> {
        let rows = &self.records.workers;
        let jobs: Vec<&str> = self.scenario.jobs().collect();
        let number = |field: fn(&WorkerRecord) -> u32| ids(rows.iter().map(|row| Some(field(row))));
        table([
            ("job", texts(rows.iter().map(|row| jobs[row.job as usize]))),
            ("number", number(|row| row.number)),
            ("stage", number(|row| row.stage)),
            ("worker", number(|row| row.worker)),
            ("host", self.hosts(rows, |row| row.host)),
            ("began_s", seconds(rows, |row| row.began)),
            ("ended_s", seconds(rows, |row| row.ended)),
            ("computed_s", seconds(rows, |row| row.computed)),
        ])
    }

    /// Traffic of the links of racks and pods, by window and class of service.
    fn links(&self) -> PyResult<ArrowTable> {
        let rows = &self.records.links;
        let classes = self.scenario.classes();
        let fabric = &self.scenario.cluster().fabric;
        let count = |field: fn(&LinkRecord) -> u64| counts(rows.iter().map(field));
        let waits =
            rows.iter().map(|row| row.traffic.waited as f64 / 1e9 / row.traffic.packets.max(1) as f64);
        table([
            ("start_s", seconds(rows, |row| row.start)),
            ("link", texts(rows.iter().map(|row| fabric.resource_name(row.link)))),
            ("kind", texts(rows.iter().map(|row| kind_name(fabric.kind(row.link))))),
            ("class", texts(rows.iter().map(|row| &classes[row.class as usize]))),
            ("bytes", count(|row| row.traffic.bytes)),
            ("packets", count(|row| row.traffic.packets)),
            ("dropped", count(|row| row.traffic.dropped)),
            ("marked", count(|row| row.traffic.marked)),
            ("wait_s", times(waits)),
        ])
    }
}

impl OperationsRun {
    fn hosts<T>(&self, rows: &[T], host: impl Fn(&T) -> HostId) -> ArrayRef {
        let fabric = &self.scenario.cluster().fabric;
        texts(rows.iter().map(|row| fabric.host_name(host(row))))
    }
}

fn seconds<T>(rows: &[T], time: impl Fn(&T) -> Nanos) -> ArrayRef {
    times(rows.iter().map(|row| time(row).as_secs_f64()))
}
