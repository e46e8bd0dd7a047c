//! The storage enforcer, which runs until the process is stopped, and replays of traces as its clients. The code of the
//! enforcer is the same as in `leeward-nfs`.

use leeward_fabric::input::InputError;
use leeward_nfs::replay::{ReplayArguments, ReplaySettings, ReplayStop, remove_file, replay};
use leeward_nfs::{Arguments, Line, Settings, StopReason, run};
use pyo3::prelude::*;

use crate::errors::PyInputError;
use crate::simulation::as_python;
use crate::traces::Trace;

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

/// Replays a trace as calls of an NFS client, and returns a summary. `arguments` are [`ReplayArguments`] as JSON. `progress`
/// receives the completed share several times a second.
#[pyfunction]
pub fn replay_nfs(
    py: Python<'_>,
    trace: &Bound<'_, Trace>,
    arguments: &str,
    progress: Py<PyAny>,
) -> PyResult<Py<PyAny>> {
    let settings = replay_settings(arguments)?;
    let trace = trace.get();
    let summary = py.detach(|| -> PyResult<_> {
        let mut requests = Vec::new();
        trace.each(|request| {
            requests.push(*request);
            Ok(())
        })?;
        let tick = |share: f64| {
            Python::attach(|py| {
                py.check_signals()?;
                progress.call1(py, (share,)).map(drop)
            })
        };
        replay(&settings, trace.file(), &requests, tick).map_err(|stop| match stop {
            ReplayStop::Input(error) => PyInputError(error).into(),
            ReplayStop::Failed(error) => error.into(),
            ReplayStop::Stopped(error) => error,
        })
    })?;
    as_python(py, &summary)
}

/// Removes the file of a replay from its export. `arguments` are [`ReplayArguments`] as JSON.
#[pyfunction]
pub fn remove_nfs_file(py: Python<'_>, arguments: &str) -> PyResult<()> {
    let settings = replay_settings(arguments)?;
    py.detach(|| remove_file(&settings)).map_err(|error| PyInputError(error).into())
}

fn replay_settings(arguments: &str) -> Result<ReplaySettings, PyInputError> {
    let arguments: ReplayArguments =
        serde_json::from_str(arguments).map_err(|error| PyInputError(InputError::new("arguments", error)))?;
    ReplaySettings::new(arguments).map_err(PyInputError)
}
