//! Documents as Python gives them: the path of a file, or a mapping with the fields of the file.

use std::path::PathBuf;

use leeward_fabric::input::InputError;
use pyo3::prelude::*;
use pyo3::types::PyMapping;

/// A document.
pub enum Document {
    File(PathBuf),
    /// JSON text of a mapping.
    Text(String),
}

impl Document {
    /// Takes an argument of Python.
    pub fn of(value: &Bound<'_, PyAny>) -> PyResult<Document> {
        match value.cast::<PyMapping>() {
            Ok(mapping) => Ok(Document::Text(json_text(mapping.as_any())?)),
            Err(_) => Ok(Document::File(value.extract()?)),
        }
    }

    /// Name in errors: the path, or that of the argument.
    pub fn name(&self, argument: &str) -> String {
        match self {
            Document::File(path) => path.to_string_lossy().into_owned(),
            Document::Text(_) => argument.to_owned(),
        }
    }
}

/// JSON text of a mapping, in which tables, arrays and numbers of other libraries may be.
fn json_text(mapping: &Bound<'_, PyAny>) -> PyResult<String> {
    text_by("json_text", mapping)
}

/// JSON text of a cluster in a mapping, which may have a table of hosts.
pub fn cluster_text(mapping: &Bound<'_, PyAny>) -> PyResult<String> {
    text_by("cluster_text", mapping)
}

/// Text that a function of `leeward._inputs` makes.
fn text_by(function: &str, mapping: &Bound<'_, PyAny>) -> PyResult<String> {
    mapping.py().import("leeward._inputs")?.call_method1(function, (mapping,))?.extract()
}

/// An error without its position: one in JSON text has no meaning for the author of a mapping.
pub fn without_position(error: InputError) -> InputError {
    InputError { line: None, column: None, ..error }
}
