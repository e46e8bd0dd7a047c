//! JSON schemas of the files that users write, generated from the types that read them.

#[cfg(feature = "service")]
use leeward_controller::Settings;
use leeward_fabric::cluster::ClusterFile;
use leeward_moves::FleetFile;
use leeward_operations::file::OperationsFile;
use leeward_packets::file::PacketsFile;
use leeward_placement::tasks::AppFile;
use leeward_scenarios::scenario::ScenarioFile;
use leeward_slo::file::WorkloadsFile;
use leeward_traces::device::DeviceFile;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use schemars::{Schema, schema_for};

/// A kind of file, and the function that creates its schema.
type Entry = (&'static str, fn() -> Schema);

const SCHEMAS: &[Entry] = &[
    ("cluster", || schema_for!(ClusterFile)),
    ("scenario", || schema_for!(ScenarioFile)),
    ("app", || schema_for!(AppFile)),
    ("running", || schema_for!(FleetFile)),
    ("slo", || schema_for!(WorkloadsFile)),
    ("device", || schema_for!(DeviceFile)),
    #[cfg(feature = "service")]
    ("service", || schema_for!(Settings)),
    ("packets", || schema_for!(PacketsFile)),
    ("operations", || schema_for!(OperationsFile)),
];

/// Kinds of files with schemas.
#[pyfunction]
pub fn schemas() -> Vec<&'static str> {
    SCHEMAS.iter().map(|(kind, _)| *kind).collect()
}

/// JSON schema of a kind of file, as JSON text.
#[pyfunction]
pub fn schema(kind: &str) -> PyResult<String> {
    let make = SCHEMAS.iter().find(|(name, _)| *name == kind).map(|(_, make)| make);
    let schema = make.ok_or_else(|| PyKeyError::new_err(kind.to_owned()))?();
    Ok(format!("{:#}", schema.as_value()))
}
