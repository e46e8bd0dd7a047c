//! Arrow tables of Python: made from named columns, and read as batches.

use arrow_array::ffi_stream::RecordBatchStreamReader;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader};
use arrow_pyarrow::{FromPyArrow, PyArrowType, Table};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// Creates a `pyarrow.Table` from columns.
pub fn table<const N: usize>(columns: [(&str, ArrayRef); N]) -> PyResult<PyArrowType<Table>> {
    let invalid = |error: arrow_schema::ArrowError| PyValueError::new_err(error.to_string());
    let nullable = columns.map(|(name, array)| (name, array, true));
    let batch = RecordBatch::try_from_iter_with_nullable(nullable).map_err(invalid)?;
    let schema = batch.schema();
    Ok(PyArrowType(Table::try_new(vec![batch], schema).map_err(invalid)?))
}

/// True if Arrow can read an object as a table.
pub fn is_table(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    Ok(value.hasattr("__arrow_c_stream__")? || value.hasattr("__arrow_c_array__")?)
}

/// Batches of any Arrow source. Returns at least one batch, so that columns are always checked.
pub fn batches(source: &Bound<'_, PyAny>) -> PyResult<Vec<RecordBatch>> {
    if source.hasattr("__arrow_c_stream__")? {
        let mut reader = RecordBatchStreamReader::from_pyarrow_bound(source)?;
        let batches = reader.by_ref().collect::<Result<Vec<_>, _>>();
        let mut batches = batches.map_err(|error| PyValueError::new_err(error.to_string()))?;
        if batches.is_empty() {
            batches.push(RecordBatch::new_empty(reader.schema()));
        }
        return Ok(batches);
    }
    if source.hasattr("__arrow_c_array__")? {
        return Ok(vec![RecordBatch::from_pyarrow_bound(source)?]);
    }
    Err(PyTypeError::new_err(format!(
        "{}: expected a table that Arrow can read (a pyarrow Table, a Polars or pandas 2.2 DataFrame)",
        source.get_type()
    )))
}
