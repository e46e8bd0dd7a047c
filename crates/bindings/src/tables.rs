//! Tables in columns for readers of lists and of traces: Parquet files, and tables in memory.
//!
//! The wheel depends on pyarrow, so pyarrow reads Parquet, batch by batch. Batches arrive as Arrow, without a copy. Their
//! cells go to the readers of text files as numbers and texts, so that all rules and errors are the same as for CSV.

use std::collections::BTreeMap;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_pyarrow::FromPyArrow;
use arrow_schema::DataType;
use leeward_fabric::input::{Cell, Rows};
use leeward_scenarios::scenario::Tables;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

/// Tables of a scenario: Parquet files, and tables of Python by name.
#[derive(Debug, Default)]
pub struct PyTables {
    pub given: BTreeMap<String, Py<PyAny>>,
}

impl Tables for PyTables {
    fn open(&self, path: &Path, columns: &[&str]) -> Result<Box<dyn Rows>, String> {
        parquet(path, columns, true)
    }

    fn given(&self, name: &str, columns: &[&str]) -> Result<Box<dyn Rows>, String> {
        let table = self.given.get(name).ok_or("no such table; only a mapping has tables")?;
        rows("rows", |py, read| read.call1((table.bind(py), columns.to_vec())))
    }
}

/// Opens the available ones of the wanted columns of a Parquet file, `limited` to the rows of a list; on failure, returns
/// the reason on one line.
pub fn parquet(path: &Path, columns: &[&str], limited: bool) -> Result<Box<dyn Rows>, String> {
    rows("batches", |_, read| read.call1((path, columns.to_vec(), limited)))
}

/// Rows from a function of `leeward._tables`, which returns names of columns and batches.
fn rows(
    function: &str,
    call: impl for<'py> FnOnce(Python<'py>, Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
) -> Result<Box<dyn Rows>, String> {
    Python::attach(|py| {
        let open = || -> PyResult<(Vec<String>, Py<PyAny>)> {
            call(py, py.import("leeward._tables")?.getattr(function)?)?.extract()
        };
        let (columns, batches) = open().map_err(|error| reason(py, &error))?;
        Ok(Box::new(BatchRows { columns, batches, batch: None, row: 0 }) as Box<dyn Rows>)
    })
}

/// Rows of record batches, in constant memory.
struct BatchRows {
    columns: Vec<String>,
    /// Iterator of the batches.
    batches: Py<PyAny>,
    /// The current batch, and a row of it.
    batch: Option<RecordBatch>,
    row: usize,
}

impl BatchRows {
    /// The next batch, or `None` after the last.
    fn next_batch(&self) -> Result<Option<RecordBatch>, String> {
        let batch = Python::attach(|py| {
            let next = || {
                let batch = self.batches.bind(py).try_iter()?.next().transpose()?;
                batch.map(|batch| RecordBatch::from_pyarrow_bound(&batch)).transpose()
            };
            next().map_err(|error| reason(py, &error))
        })?;
        let is_read = |kind: &DataType| {
            matches!(kind, DataType::Int64 | DataType::UInt64 | DataType::Float64 | DataType::Utf8)
        };
        let other = batch.iter().flat_map(RecordBatch::columns).find(|array| !is_read(array.data_type()));
        match other {
            Some(array) => Err(format!("a column of `{}`", array.data_type())),
            None => Ok(batch),
        }
    }
}

impl Rows for BatchRows {
    fn columns(&self) -> &[String] {
        &self.columns
    }

    fn advance(&mut self) -> Result<bool, String> {
        self.row += 1;
        while self.batch.as_ref().is_none_or(|batch| self.row >= batch.num_rows()) {
            let Some(batch) = self.next_batch()? else { return Ok(false) };
            (self.batch, self.row) = (Some(batch), 0);
        }
        Ok(true)
    }

    fn cell(&self, column: usize) -> Cell<'_> {
        let Some(array) = self.batch.as_ref().map(|batch| batch.column(column)) else { return Cell::EMPTY };
        if array.is_null(self.row) {
            return Cell::EMPTY;
        }
        match array.data_type() {
            DataType::Int64 => {
                let number = array.as_primitive::<Int64Type>().value(self.row);
                u64::try_from(number).map_or(Cell::Number(number as f64), Cell::Count)
            }
            DataType::UInt64 => Cell::Count(array.as_primitive::<UInt64Type>().value(self.row)),
            DataType::Float64 => Cell::Number(array.as_primitive::<Float64Type>().value(self.row)),
            // Batches have no columns of another type.
            _ => Cell::Text(array.as_string::<i32>().value(self.row)),
        }
    }
}

/// First line of an exception's message, preceded by the exception's name unless the message is about the file.
fn reason(py: Python<'_>, error: &PyErr) -> String {
    let is_about_file = error.is_instance_of::<PyValueError>(py) || error.is_instance_of::<PyOSError>(py);
    let text = if is_about_file { error.value(py).to_string() } else { error.to_string() };
    text.lines().next().unwrap_or_default().to_owned()
}
