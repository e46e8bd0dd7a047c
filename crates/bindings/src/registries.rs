//! `plug_ins`: the contents of the registries, with the JSON schemas of settings.

use leeward_circuits::{routing, schedulers};
use leeward_moves as moves;
use leeward_placement::{replicas, tasks};
use leeward_registry::{Registration, Registry};
use leeward_slo::{admit, limits};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::simulation::as_python;

/// Every plug-in of every registry, with its kind. The tables in `docs/` are made from this list.
#[pyfunction]
pub fn plug_ins(py: Python<'_>) -> PyResult<Py<PyAny>> {
    let all = [
        entries(&replicas::REGISTRY),
        entries(&tasks::REGISTRY),
        entries(&moves::REGISTRY),
        entries(&leeward_coflows::REGISTRY),
        entries(&admit::REGISTRY),
        entries(&limits::REGISTRY),
        entries(&schedulers::REGISTRY),
        entries(&routing::REGISTRY),
    ];
    as_python(py, &all.concat())
}

/// The plug-ins of one registry, with its kind.
fn entries<T: ?Sized>(registry: &Registry<T>) -> Vec<Value> {
    let entry = |registration: &Registration<T>| {
        json!({
            "kind": registry.kind.unwrap_or(registry.noun),
            "name": registration.name,
            "aliases": registration.aliases,
            "summary": registration.summary,
            "source": registration.source,
            "settings": (registration.schema)(),
        })
    };
    registry.iter().map(entry).collect()
}
