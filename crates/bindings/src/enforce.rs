//! The network enforcer of a host, which runs until it is interrupted. The code is the same as in `leeward-enforce-net`.

use std::thread;
use std::time::Duration;

use leeward_enforce::{
    Arguments, Event, Mode, Settings, StartError, StopReason, rehearse, run, status, unblock_signals, undo,
};
use leeward_fabric::input::InputError;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::errors::PyInputError;
use crate::simulation::as_python;

/// Longest time until a signal of Python takes effect.
const STEP: Duration = Duration::from_millis(100);

/// Enforces the promises of a file on this host until it is interrupted, and then undoes everything; or prints its
/// programs, compares the kernel, or undoes what a killed enforcer left. `arguments` are [`Arguments`] as JSON; `tell`
/// receives one line per event. Returns the programs (with their `text`, and `complete`) or the status (with
/// `enforced`), else None.
#[pyfunction]
pub fn enforce_net(py: Python<'_>, arguments: &str, tell: Py<PyAny>) -> PyResult<Py<PyAny>> {
    let arguments: Arguments =
        serde_json::from_str(arguments).map_err(|error| PyInputError(InputError::new("arguments", error)))?;
    let settings = Settings::new(arguments).map_err(PyInputError)?;
    let log = |event: &Event| Python::attach(|py| tell.call1(py, (event.to_string(),))).map(drop);
    let value = py.detach(|| -> PyResult<Value> {
        match settings.mode {
            Mode::Run => match run(settings, log, wait) {
                // The interrupt came while a line was written.
                Err(StopReason::Output(error)) if is_interrupt(&error) => Ok(Value::Null),
                result => result.map_err(stopped).map(|()| Value::Null),
            },
            Mode::Undo => undo(&settings, log).map_err(stopped).map(|()| Value::Null),
            Mode::DryRun => {
                let rehearsal = rehearse(&settings).map_err(not_started)?;
                let mut value = json!(rehearsal);
                value["text"] = rehearsal.text().into();
                value["complete"] = rehearsal.is_complete().into();
                Ok(value)
            }
            Mode::Status => {
                let status = status(&settings).map_err(not_started)?;
                let mut value = json!(status);
                value["enforced"] = status.is_enforced().into();
                Ok(value)
            }
        }
    })?;
    as_python(py, &value)
}

/// Returns true if Python was interrupted.
pub(crate) fn interrupted() -> PyResult<bool> {
    match Python::attach(|py| py.check_signals()) {
        Err(error) if is_interrupt(&error) => Ok(true),
        result => result.map(|()| false),
    }
}

fn is_interrupt(error: &PyErr) -> bool {
    Python::attach(|py| error.is_instance_of::<PyKeyboardInterrupt>(py))
}

/// Waits, and returns true if Python was interrupted, also before the first wait.
fn wait(time: Duration) -> PyResult<bool> {
    unblock_signals()?;
    let mut left = time;
    loop {
        let interrupted = interrupted()?;
        if interrupted || left.is_zero() {
            return Ok(interrupted);
        }
        let step = left.min(STEP);
        thread::sleep(step);
        left -= step;
    }
}

fn not_started(error: StartError) -> PyErr {
    match error {
        StartError::Input(error) => PyInputError(error).into(),
        StartError::Failed(error) => PyOSError::new_err(error.to_string()),
    }
}

fn stopped(reason: StopReason<PyErr>) -> PyErr {
    match reason {
        StopReason::Input(error) => PyInputError(error).into(),
        StopReason::Failed(error) => PyOSError::new_err(error.to_string()),
        StopReason::Nothing(why) => PyOSError::new_err(why),
        StopReason::Output(error) => error,
    }
}
