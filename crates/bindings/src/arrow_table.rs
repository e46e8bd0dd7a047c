//! Arrow tables for Python, made from named columns.

use arrow_array::{ArrayRef, RecordBatch};
use arrow_pyarrow::{PyArrowType, Table};
use pyo3::PyResult;
use pyo3::exceptions::PyValueError;

/// Creates a `pyarrow.Table` from columns.
pub fn table<const N: usize>(columns: [(&str, ArrayRef); N]) -> PyResult<PyArrowType<Table>> {
    let invalid = |error: arrow_schema::ArrowError| PyValueError::new_err(error.to_string());
    let nullable = columns.map(|(name, array)| (name, array, true));
    let batch = RecordBatch::try_from_iter_with_nullable(nullable).map_err(invalid)?;
    let schema = batch.schema();
    Ok(PyArrowType(Table::try_new(vec![batch], schema).map_err(invalid)?))
}
