//! Lists in Parquet, read by pyarrow for the sources of a scenario.

use std::path::Path;

use pyo3::prelude::*;

/// The columns of a table as CSV; see `leeward.tables.as_csv`.
pub fn csv(path: &Path, columns: &[&str]) -> Result<Vec<u8>, String> {
    Python::attach(|py| {
        let read = py.import("leeward.tables")?.getattr("as_csv")?;
        read.call1((path, columns.to_vec()))?.extract()
    })
    .map_err(|error: PyErr| error.to_string().lines().next().unwrap_or_default().to_owned())
}
