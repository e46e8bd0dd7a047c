//! `leeward.Cluster`: a network read from a file, a text or a mapping.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, StringArray};
use arrow_pyarrow::{PyArrowType, Table};
use leeward_fabric::input::InputError;
use leeward_fabric::{Endpoint, Shape};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyMapping, PyString, PyTuple};

use crate::arrow_table::table;
use crate::cluster_tables;
use crate::describe::Description;
use crate::documents::{cluster_text, without_position};
use crate::errors::PyInputError;
use crate::names::{self, kind_name};
use crate::objects::{display, hash_of, restored_by};

/// A network: hosts, racks, pods, links and devices with their capacities. Immutable.
#[pyclass(frozen, module = "leeward")]
pub struct Cluster {
    pub inner: leeward_fabric::Cluster,
}

impl Cluster {
    /// Converts a Python argument: a path, a text of more than one line, a mapping, or a `Cluster`.
    fn from_source(source: &Bound<'_, PyAny>) -> PyResult<leeward_fabric::Cluster> {
        let py = source.py();
        if let Ok(cluster) = source.cast::<Cluster>() {
            return Ok(cluster.get().inner.clone());
        }
        if let Ok(text) = source.cast::<PyString>() {
            let text = text.to_string_lossy();
            let result = if text.contains('\n') {
                leeward_fabric::Cluster::from_text("<text>", &text)
            } else {
                leeward_fabric::Cluster::from_file(&text)
            };
            return Ok(result.map_err(PyInputError)?);
        }
        if let Ok(mapping) = source.cast::<PyMapping>() {
            let text = cluster_text(mapping.as_any())?;
            let cluster = leeward_fabric::Cluster::from_text("<mapping>", &text);
            return Ok(cluster.map_err(|error| PyInputError(without_position(error)))?);
        }
        let path: String =
            py.import("os")?.call_method1("fspath", (source,)).and_then(|p| p.extract()).map_err(|_| {
                let given = source.get_type();
                PyTypeError::new_err(format!("{given}: expected a path, YAML text, a mapping or a Cluster"))
            })?;
        Ok(py.detach(|| leeward_fabric::Cluster::from_file(&path)).map_err(PyInputError)?)
    }
}

#[pymethods]
impl Cluster {
    #[new]
    fn new(source: &Bound<'_, PyAny>) -> PyResult<Cluster> {
        Ok(Cluster { inner: Cluster::from_source(source)? })
    }

    /// Reads a cluster file.
    #[staticmethod]
    fn from_file(py: Python<'_>, path: std::path::PathBuf) -> Result<Cluster, PyInputError> {
        let inner = py.detach(|| leeward_fabric::Cluster::from_file(&path.to_string_lossy()))?;
        Ok(Cluster { inner })
    }

    /// Reads YAML or JSON text; `name` stands for the file in errors.
    #[staticmethod]
    #[pyo3(signature = (text, name = "<text>"))]
    fn from_text(text: &str, name: &str) -> Result<Cluster, PyInputError> {
        Ok(Cluster { inner: leeward_fabric::Cluster::from_text(name, text)? })
    }

    /// Display name.
    #[getter]
    fn name(&self) -> &str {
        self.inner.fabric.name()
    }

    /// Shape: a tree of racks and pods, or one of the two kinds of mesh.
    #[getter]
    fn shape(&self) -> &'static str {
        match self.inner.fabric.shape() {
            Shape::Tree => "tree",
            Shape::Pipe => "pipe",
            Shape::Hose => "hose",
        }
    }

    /// Number of hosts.
    #[getter]
    fn hosts(&self) -> usize {
        self.inner.fabric.host_count()
    }

    /// Number of racks; on a mesh, number of groups of hosts.
    #[getter]
    fn racks(&self) -> usize {
        self.inner.fabric.rack_count()
    }

    /// Number of pods.
    #[getter]
    fn pods(&self) -> usize {
        self.inner.fabric.domain_count() - self.inner.fabric.rack_count()
    }

    /// Names of all hosts, in order of their numbers.
    fn host_names(&self) -> Vec<&str> {
        let fabric = &self.inner.fabric;
        fabric.all_hosts().map(|host| fabric.host_name(host)).collect()
    }

    /// All links and devices: `index` (int32), `name`, `kind`, `capacity` (int64).
    ///
    /// The capacity of a link is in bits per second, and the capacity of a device in nanoseconds of service per second.
    fn resources(&self) -> PyResult<PyArrowType<Table>> {
        let leeward_fabric::Cluster { fabric, capacities, .. } = &self.inner;
        let ids = || fabric.all_resources();
        let columns: [(&str, ArrayRef); 4] = [
            ("index", Arc::new(Int32Array::from_iter_values(ids().map(|id| id.0 as i32)))),
            ("name", Arc::new(StringArray::from_iter_values(ids().map(|id| fabric.resource_name(id))))),
            ("kind", Arc::new(StringArray::from_iter_values(ids().map(|id| kind_name(fabric.kind(id)))))),
            ("capacity", Arc::new(Int64Array::from_iter_values(ids().map(|id| capacities.get(id).0)))),
        ];
        table(columns)
    }

    /// All links with their places; each direction is a separate row.
    ///
    /// Columns: `link` (int32, from 0), `name`; `cross_section` (`host-ToR`, `ToR-pod`, `pod-core`; `pair` and
    /// `shared` in a mesh), `direction` (`up`: away from the host, rack or pod; `down`; `one-way` of a pair and of a
    /// shared link);
    /// `host` (null for links of racks and pods), `rack` (null for links of pods), `pod` (null in a cluster without
    /// pods); `capacity_bps` (int64).
    fn links(&self) -> PyResult<PyArrowType<Table>> {
        cluster_tables::links(&self.inner)
    }

    /// All racks, with the sums over their hosts.
    ///
    /// Columns: `rack`, `pod` (null in a cluster without pods), `kind` (`compute`, `disk` or `mixed`), `hosts`
    /// (int32), `cpus` (float64; null: no limit), `storage_bps` (int64: read rate of its devices, in bits per
    /// second), `storage_bytes` (int64; null: no limit).
    fn rack_table(&self) -> PyResult<PyArrowType<Table>> {
        cluster_tables::racks(&self.inner)
    }

    /// All hosts and their places: `host`, `rack`, `pod` (null in a cluster without pods).
    fn host_table(&self) -> PyResult<PyArrowType<Table>> {
        cluster_tables::hosts(&self.inner)
    }

    /// Resources on the path of a flow through these endpoints, each with its work per byte of the flow.
    #[pyo3(signature = (*endpoints))]
    fn path(&self, endpoints: &Bound<'_, PyTuple>) -> PyResult<Vec<(String, f64)>> {
        let fabric = &self.inner.fabric;
        let mut through = Vec::<Endpoint>::with_capacity(endpoints.len());
        for (i, endpoint) in endpoints.iter().enumerate() {
            let name: String = endpoint.extract()?;
            through.push(names::endpoint(fabric, &name).ok_or_else(|| {
                let message =
                    format!("`{name}`: no such host, rack, pod or device in cluster {}", self.name());
                PyInputError(InputError::new("path", message).in_field(format!("endpoints[{i}]")))
            })?);
        }
        let mut hops = Vec::new();
        fabric.path(&through, &mut hops);
        Ok(hops.into_iter().map(|hop| (fabric.resource_name(hop.resource), hop.work)).collect())
    }

    /// Numbers of hosts, racks, links and devices, as `leeward cluster show -o json` prints them.
    fn describe<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let description = serde_json::to_string(&Description::of(&self.inner));
        let json = description.map_err(|error| PyValueError::new_err(error.to_string()))?;
        py.import("json")?.call_method1("loads", (json,))
    }

    /// Text of its file; of a mapping, its JSON.
    #[getter]
    fn text(&self) -> &str {
        &self.inner.source
    }

    fn __repr__(&self) -> String {
        format!("<Cluster {}: {} hosts in {} racks>", self.name(), self.hosts(), self.racks())
    }

    fn _repr_html_(slf: &Bound<'_, Self>) -> PyResult<Py<PyAny>> {
        display("cluster_html", (slf,), slf.py())
    }

    /// Clusters with the same network are equal, whatever the form of their files.
    fn __eq__(&self, other: &Bound<'_, Cluster>) -> bool {
        self.inner == other.get().inner
    }

    fn __hash__(&self) -> u64 {
        let fabric = &self.inner.fabric;
        hash_of(&(fabric.name(), fabric.host_count(), fabric.resource_count()))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (&str,))> {
        Ok((restored_by(py, "cluster")?, (self.text(),)))
    }
}
