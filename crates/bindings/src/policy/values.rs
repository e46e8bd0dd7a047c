//! Numbers as NumPy arrays. Rust writes them into a bytes object, and NumPy reads its memory: without a copy, read-only, and
//! as long as an array looks at it.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyTuple};

/// A number or a text of each host, rack, link or request.
pub enum Values {
    Floats(Vec<f64>),
    Ids(Vec<i32>),
    Counts(Vec<i64>),
    Flags(Vec<bool>),
    Texts(Vec<String>),
}

impl Values {
    /// An array, or a tuple of texts.
    pub fn into_python(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self {
            Values::Floats(values) => array(py, "float64", &values, f64::to_ne_bytes),
            Values::Ids(values) => array(py, "int32", &values, i32::to_ne_bytes),
            Values::Counts(values) => array(py, "int64", &values, i64::to_ne_bytes),
            Values::Flags(values) => array(py, "bool", &values, |flag| [u8::from(flag)]),
            Values::Texts(values) => Ok(PyTuple::new(py, values)?.into_any().unbind()),
        }
    }
}

/// A read-only array of values of `N` bytes each.
fn array<T: Copy, const N: usize>(
    py: Python<'_>,
    kind: &str,
    values: &[T],
    to_bytes: impl Fn(T) -> [u8; N],
) -> PyResult<Py<PyAny>> {
    static FROM_BUFFER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    if values.is_empty() {
        // NumPy takes no empty buffer.
        return Ok(py.import("numpy")?.call_method1("zeros", (0, kind))?.unbind());
    }
    let import = || -> PyResult<Py<PyAny>> { Ok(py.import("numpy")?.getattr("frombuffer")?.unbind()) };
    let from_buffer = FROM_BUFFER.get_or_try_init(py, import)?;
    let memory = PyBytes::new_with(py, N * values.len(), |memory| {
        for (bytes, &value) in memory.chunks_exact_mut(N).zip(values) {
            bytes.copy_from_slice(&to_bytes(value));
        }
        Ok(())
    })?;
    from_buffer.call1(py, (memory, kind))
}
