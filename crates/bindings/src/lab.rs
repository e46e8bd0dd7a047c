//! `leeward.lab`: runs scenarios of the packet simulator on kernels of this machine.

use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use leeward_fabric::Nanos;
use leeward_fabric::input::InputError;
use leeward_lab::{KernelParts, LabError, LabName, Options, Run, State};
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyTimeoutError};
use pyo3::prelude::*;
use serde_json::json;

use crate::errors::PyInputError;
use crate::packets::{PacketRun, PacketScenario};
use crate::simulation::as_python;

/// Shares of packets whose lateness is shown.
const SHARES: [f64; 3] = [0.5, 0.99, 1.0];

/// Timing of a run and counters of its kernels, as values of JSON. Times are virtual, in seconds.
fn run_values(run: &Run) -> serde_json::Value {
    let timing = &run.timing;
    let late = |of: &leeward_packets::Histogram| {
        let share = |share: f64| of.quantile(share).map(Nanos::as_secs_f64);
        json!({ "count": of.total(), "median_s": share(SHARES[0]), "p99_s": share(SHARES[1]), "max_s": share(SHARES[2]) })
    };
    json!({
        "dilation": timing.dilation,
        "packets": late(&timing.packets),
        "circuits": late(&timing.circuits),
        "schedules": late(&timing.schedules),
        "days_s": timing.days.iter().map(|day| day.as_secs_f64()).collect::<Vec<_>>(),
        "refused_packets": timing.refused,
        "nic_drops_packets": timing.nic_drops,
        "stray_packets": timing.stray,
        "counters": run.counters.iter().map(|(program, counters)| {
            (program.clone(), counters.iter().map(|(name, count)| (name.clone(), json!(count))).collect())
        }).collect::<serde_json::Map<String, serde_json::Value>>(),
        "notes": run.notes,
    })
}

fn lab_error(error: LabError) -> PyErr {
    match error {
        LabError::Stopped => PyKeyboardInterrupt::new_err("stopped"),
        LabError::Copies(error) => PyInputError(error).into(),
        LabError::Name(_) => PyInputError(InputError::new("name", error)).into(),
        LabError::Settings(_) | LabError::Unsupported { .. } | LabError::Simulator(_) => {
            PyInputError(InputError::new("scenario", error)).into()
        }
        // `TimeoutError` is an `OSError`.
        LabError::Drift { .. } | LabError::Lost { .. } => PyTimeoutError::new_err(error.to_string()),
        other => PyOSError::new_err(other.to_string()),
    }
}

/// Runs a scenario in a lab of this process; calls `progress` with the elapsed share of the horizon. Returns the records
/// and the timing.
#[pyfunction]
#[pyo3(signature = (scenario, dilation, bound_s, parts = None, progress = None))]
pub fn run_lab(
    py: Python<'_>,
    scenario: &PacketScenario,
    dilation: u32,
    bound_s: Option<f64>,
    parts: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(PacketRun, Py<PyAny>)> {
    let options = Options {
        name: LabName::of_process(),
        dilation,
        bound: bound_s.map(Nanos::from_secs_f64),
        parts: KernelParts::new(parts),
    };
    let (result, error) = scenario.with_progress(py, progress, |scenario, on_progress| {
        leeward_lab::run(scenario, &options, on_progress)
    });
    if let Some(error) = error {
        return Err(error);
    }
    let run = result.map_err(lab_error)?;
    let values = as_python(py, &run_values(&run))?;
    Ok((scenario.finished(run.outcome), values))
}

/// Labs with a state file, as values of JSON: name, process that owns it, whether it is up, and the problem of a state file
/// that cannot be read.
#[pyfunction]
pub fn labs(py: Python<'_>) -> PyResult<Py<PyAny>> {
    let mut labs = Vec::new();
    for name in State::all() {
        let since = State::since(&name).and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let (state, problem) = match State::read(&name) {
            // The lab was removed after its name was read.
            Ok(None) => continue,
            Ok(state) => (state, None),
            Err(error) => (None, Some(error.to_string())),
        };
        labs.push(json!({
            "name": name.as_str(),
            "process": state.as_ref().and_then(|state| state.owner).map(|owner| owner.pid),
            "up": state.as_ref().is_some_and(State::is_up),
            "since_s": since.map(|since| since.as_secs_f64()),
            "problem": problem,
        }));
    }
    as_python(py, &json!(labs))
}

/// Removes everything that a lab made, unless a process owns it that runs.
#[pyfunction]
pub fn remove_lab(py: Python<'_>, name: &str) -> PyResult<()> {
    py.detach(|| State::down(&name.parse()?)).map_err(lab_error)
}
