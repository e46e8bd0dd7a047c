//! Errors of the crates as Python exceptions.

use leeward_fabric::input::InputError;
use pyo3::prelude::*;

/// Rejected input; becomes a `leeward.InputError`.
pub struct PyInputError(pub InputError);

impl From<InputError> for PyInputError {
    fn from(error: InputError) -> Self {
        PyInputError(error)
    }
}

impl From<PyInputError> for PyErr {
    fn from(PyInputError(error): PyInputError) -> PyErr {
        let InputError { file, line, column, field, message } = error;
        // The class is written in Python, because before 3.12 an extension module of the stable ABI cannot subclass a
        // built-in exception.
        let raise = |py: Python<'_>| {
            let class = py.import("leeward.errors")?.getattr("InputError")?;
            Ok(PyErr::from_value(class.call1((file, line, column, field, message))?))
        };
        Python::attach(|py| raise(py).unwrap_or_else(|error: PyErr| error))
    }
}
