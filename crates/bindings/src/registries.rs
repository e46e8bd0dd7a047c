//! `policies`, `circuit_schedulers` and `plug_ins`: the contents of the registries, with the JSON schemas of settings.

use leeward_circuits::{routing, schedulers};
use leeward_placement::{moves, replicas, tasks};
use leeward_registry::{Registration, Registry};
use leeward_slo::{admit, limits};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::simulation::as_python;

/// All policies, with their kinds.
#[pyfunction]
pub fn policies(py: Python<'_>) -> PyResult<Py<PyAny>> {
    as_python(py, &policy_entries())
}

/// All schedulers of circuits, with their aliases.
#[pyfunction]
pub fn circuit_schedulers(py: Python<'_>) -> PyResult<Py<PyAny>> {
    let entry = |registration: &Registration<_>| {
        json!({
            "name": registration.name,
            "aliases": registration.aliases,
            "summary": registration.summary,
            "source": registration.source,
            "settings": (registration.schema)(),
        })
    };
    as_python(py, &schedulers::REGISTRY.iter().map(entry).collect::<Vec<Value>>())
}

/// Every plug-in of every registry, with its kind. The tables in `docs/` are made from this list.
#[pyfunction]
pub fn plug_ins(py: Python<'_>) -> PyResult<Py<PyAny>> {
    let others =
        [entries(&limits::REGISTRY), entries(&schedulers::REGISTRY), entries(&routing::REGISTRY)].concat();
    as_python(py, &[policy_entries(), others].concat())
}

fn policy_entries() -> Vec<Value> {
    [
        entries(&replicas::REGISTRY),
        entries(&tasks::REGISTRY),
        entries(&moves::REGISTRY),
        entries(&admit::REGISTRY),
    ]
    .concat()
}

/// The plug-ins of one registry, with its kind.
fn entries<T: ?Sized>(registry: &Registry<T>) -> Vec<Value> {
    let entry = |registration: &Registration<T>| {
        json!({
            "kind": registry.kind.unwrap_or(registry.noun),
            "name": registration.name,
            "summary": registration.summary,
            "source": registration.source,
            "settings": (registration.schema)(),
        })
    };
    registry.iter().map(entry).collect()
}
