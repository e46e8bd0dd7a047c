//! Parquet files as rows of text, for readers of lists and of traces.
//!
//! The wheel depends on pyarrow, so pyarrow reads Parquet, batch by batch. Batches arrive as Arrow, without a copy. The
//! cells become lines of text here, so that all rules and errors are the same as for CSV.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};
use arrow_pyarrow::FromPyArrow;
use arrow_schema::DataType;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

/// Opens a list in Parquet as CSV with a header; on failure, returns the reason on one line.
pub fn list(path: &Path, columns: &[&str]) -> Result<Box<dyn BufRead>, String> {
    Ok(Box::new(BufReader::new(Rows::open(path, columns, true)?)))
}

/// Rows of a Parquet file as CSV with a header, in constant memory; see `leeward._tables.batches`.
pub struct Rows {
    batches: Py<PyAny>,
    text: Vec<u8>,
    at: usize,
}

impl Rows {
    /// Opens a file, `limited` to the rows of a list; on failure, returns the reason on one line.
    pub fn open(path: &Path, columns: &[&str], limited: bool) -> Result<Rows, String> {
        Python::attach(|py| {
            let open = || -> PyResult<(Vec<String>, Py<PyAny>)> {
                let read = py.import("leeward._tables")?.getattr("batches")?;
                read.call1((path, columns.to_vec(), limited))?.extract()
            };
            let (header, batches) = open().map_err(|error| reason(py, &error))?;
            Ok(Rows { batches, text: (header.join(",") + "\n").into_bytes(), at: 0 })
        })
    }

    /// The next batch, or `None` after the last.
    fn next_batch(&self) -> Result<Option<RecordBatch>, String> {
        Python::attach(|py| {
            let next = || {
                let batch = self.batches.bind(py).try_iter()?.next().transpose()?;
                batch.map(|batch| RecordBatch::from_pyarrow_bound(&batch)).transpose()
            };
            next().map_err(|error| reason(py, &error))
        })
    }
}

impl Read for Rows {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.text.len() {
            let Some(batch) = self.next_batch().map_err(io::Error::other)? else { return Ok(0) };
            self.text.clear();
            self.at = 0;
            write_rows(&batch, &mut self.text)?;
        }
        let count = buffer.len().min(self.text.len() - self.at);
        buffer[..count].copy_from_slice(&self.text[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// Appends the rows of a batch as lines. Null becomes an empty cell, and a text is quoted.
fn write_rows(batch: &RecordBatch, text: &mut Vec<u8>) -> io::Result<()> {
    for row in 0..batch.num_rows() {
        for (at, column) in batch.columns().iter().enumerate() {
            if at > 0 {
                text.push(b',');
            }
            if column.is_null(row) {
                continue;
            }
            match column.data_type() {
                DataType::Int64 => write!(text, "{}", column.as_primitive::<Int64Type>().value(row))?,
                DataType::UInt64 => write!(text, "{}", column.as_primitive::<UInt64Type>().value(row))?,
                DataType::Float64 => write!(text, "{}", column.as_primitive::<Float64Type>().value(row))?,
                DataType::Utf8 => {
                    let cell = column.as_string::<i32>().value(row).replace('"', "\"\"");
                    write!(text, "\"{cell}\"")?;
                }
                other => return Err(io::Error::other(format!("a column of `{other}`"))),
            }
        }
        text.push(b'\n');
    }
    Ok(())
}

/// First line of an exception's message, preceded by the exception's name unless the message is about the file.
fn reason(py: Python<'_>, error: &PyErr) -> String {
    let is_about_file = error.is_instance_of::<PyValueError>(py) || error.is_instance_of::<PyOSError>(py);
    let text = if is_about_file { error.value(py).to_string() } else { error.to_string() };
    text.lines().next().unwrap_or_default().to_owned()
}
