//! The agent of a host, which runs until the process ends. The code is the same as in `leeward-agent`.

use std::sync::Arc;

use leeward_agent::{Arguments, Settings, StopReason, run};
use leeward_fabric::input::InputError;
use pyo3::prelude::*;

use crate::enforce::interrupted;
use crate::errors::PyInputError;

/// Reads interfaces and disks and reports their loads until the process ends, or with enforcers until Python is interrupted. `arguments` are [`Arguments`] as JSON; `tell`
/// receives one line per event.
#[pyfunction]
pub fn run_agent(py: Python<'_>, arguments: &str, tell: Py<PyAny>) -> PyResult<()> {
    let arguments: Arguments =
        serde_json::from_str(arguments).map_err(|error| PyInputError(InputError::new("arguments", error)))?;
    let settings = Arc::new(Settings::new(arguments).map_err(PyInputError)?);
    let report = |line: &str| Python::attach(|py| tell.call1(py, (line,))).map(drop);
    match py.detach(|| run(&settings, report, interrupted)) {
        Ok(()) => Ok(()),
        Err(StopReason::Input(error)) => Err(PyInputError(error).into()),
        Err(StopReason::Output(error)) => Err(error),
    }
}
