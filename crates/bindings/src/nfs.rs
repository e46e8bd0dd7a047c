//! The storage enforcer, which runs until the process is stopped. The code is the same as in `leeward-nfs`.

use leeward_fabric::input::InputError;
use leeward_nfs::{Arguments, Line, Settings, StopReason, run};
use pyo3::prelude::*;

use crate::errors::PyInputError;

/// Serves exports until SIGINT or SIGTERM. `arguments` are [`Arguments`] as JSON. `log` receives one line for each event, and
/// `report` the counters as JSON, at each interval and at the end.
#[pyfunction]
pub fn enforce_nfs(py: Python<'_>, arguments: &str, log: Py<PyAny>, report: Py<PyAny>) -> PyResult<()> {
    let arguments: Arguments =
        serde_json::from_str(arguments).map_err(|error| PyInputError(InputError::new("arguments", error)))?;
    let settings = Settings::new(arguments).map_err(PyInputError)?;
    let write = |line: Line<'_>| {
        let (callback, text) = match line {
            Line::Log(text) => (&log, text),
            Line::Report(text) => (&report, text),
        };
        Python::attach(|py| callback.call1(py, (text,))).map(drop)
    };
    match py.detach(|| run(&settings, write)) {
        Ok(()) => Ok(()),
        Err(StopReason::Input(error)) => Err(PyInputError(error).into()),
        Err(StopReason::Failed(error)) => Err(error.into()),
        Err(StopReason::Output(error)) => Err(error),
    }
}
