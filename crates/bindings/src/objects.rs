//! What Python does with any object: pictures and pages in notebooks, pickles, hashes.

use std::hash::{DefaultHasher, Hash, Hasher};

use pyo3::call::PyCallArgs;
use pyo3::prelude::*;

/// Result of a function of `leeward._display`.
pub fn display<'py>(function: &str, arguments: impl PyCallArgs<'py>, py: Python<'py>) -> PyResult<Py<PyAny>> {
    Ok(py.import("leeward._display")?.call_method1(function, arguments)?.unbind())
}

/// Function of `leeward._stored` that makes an object of a pickle again.
pub fn restored_by<'py>(py: Python<'py>, function: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("leeward._stored")?.getattr(function)
}

/// Hash that is the same in each process.
pub fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}
