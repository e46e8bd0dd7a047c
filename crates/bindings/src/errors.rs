//! Errors of the crates as Python exceptions, and exceptions of Python functions that the crates call.

use std::sync::{Arc, Mutex, PoisonError};

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

/// The first exception that Python functions raised while a crate called them, until the caller of the crate raises it.
#[derive(Clone, Default)]
pub struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    /// Stores an exception, unless there is one already.
    pub fn set(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }

    /// True if there is an exception.
    pub fn is_set(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Takes the exception.
    pub fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
