//! Lists in Parquet, read by pyarrow for the sources of a scenario.

use std::path::Path;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

/// Columns of a table as CSV; see `leeward.tables.as_csv`. An error about the table has no exception name; any other error has
/// one.
pub fn csv(path: &Path, columns: &[&str]) -> Result<Vec<u8>, String> {
    Python::attach(|py| {
        let read = || -> PyResult<Vec<u8>> {
            let read = py.import("leeward.tables")?.getattr("as_csv")?;
            read.call1((path, columns.to_vec()))?.extract()
        };
        read().map_err(|error| {
            let of_table = error.is_instance_of::<PyValueError>(py) || error.is_instance_of::<PyOSError>(py);
            let text = if of_table { error.value(py).to_string() } else { error.to_string() };
            text.lines().next().unwrap_or_default().to_owned()
        })
    })
}
