//! `leeward.lab`: runs scenarios of the packet simulator on kernels of this machine.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::UNIX_EPOCH;

use leeward_fabric::Nanos;
use leeward_fabric::input::InputError;
use leeward_fabric::{Bandwidth, Bytes};
use leeward_lab::{
    Failure, KernelParts, LabError, LabName, Machine, Network, NetworkOptions, Options, Run, Standing, State,
};
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyTimeoutError};
use pyo3::prelude::*;
use serde_json::json;

use crate::cluster::Cluster;
use crate::errors::PyInputError;
use crate::packets::{PacketRun, PacketScenario};
use crate::simulation::as_python;

/// Shares of packets whose lateness is shown.
const SHARES: [f64; 3] = [0.5, 0.99, 1.0];

/// Timing of a run and counters of its kernels, as values of JSON. Times are virtual, in seconds. Bins of a histogram are
/// exact up to 1023 ns, and to one part in 1024 above.
fn run_values(run: &Run) -> serde_json::Value {
    let timing = &run.timing;
    let late = |of: &leeward_packets::Histogram| {
        let share = |share: f64| of.quantile(share).map(Nanos::as_secs_f64);
        let (times, counts): (Vec<f64>, Vec<u64>) =
            of.bins().map(|(time, count)| (time.as_secs_f64(), count)).unzip();
        json!({
            "count": of.total(),
            "median_s": share(SHARES[0]),
            "p99_s": share(SHARES[1]),
            "max_s": share(SHARES[2]),
            "bins": { "time_s": times, "count": counts },
        })
    };
    let seconds = |times: &[Nanos]| times.iter().map(|time| time.as_secs_f64()).collect::<Vec<_>>();
    json!({
        "dilation": timing.dilation,
        "packets": late(&timing.packets),
        "circuits": late(&timing.circuits),
        "schedules": late(&timing.schedules),
        "days_s": seconds(&timing.days),
        "weeks_s": seconds(&timing.weeks),
        "refused_packets": timing.refused,
        "nic_drops_packets": timing.nic_drops,
        "device_drops_packets": timing.device_drops,
        "lost_packets": timing.lost(),
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
        LabError::NoMachine { .. } => PyInputError(InputError::new("host", error)).into(),
        LabError::NoLink(_) => PyInputError(InputError::new("link", error)).into(),
        LabError::Settings(_) | LabError::Unsupported { .. } | LabError::Simulator(_) => {
            PyInputError(InputError::new("scenario", error)).into()
        }
        // `TimeoutError` is an `OSError`.
        LabError::Drift { .. } | LabError::FallsBehind { .. } | LabError::Lost { .. } => {
            PyTimeoutError::new_err(error.to_string())
        }
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

/// Keeps a lab of a scenario up in this process until a signal of Python raises. Calls `ready` with the environment of
/// programs and the notes of the lab, as values of JSON, and `progress` with the share of the hosts that are up.
#[pyfunction]
pub fn stand_lab(
    py: Python<'_>,
    scenario: &PacketScenario,
    name: &str,
    dilation: u32,
    parts: PathBuf,
    ready: Py<PyAny>,
    progress: Option<Py<PyAny>>,
) -> PyResult<()> {
    let name: LabName = name.parse().map_err(lab_error)?;
    let options = Options { name, dilation, bound: None, parts: KernelParts::new(Some(parts)) };
    let raised: Mutex<Option<PyErr>> = Mutex::new(None);
    let fail = |error: PyErr| *raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    let on_ready = |standing: &Standing| {
        let called = Python::attach(|py| {
            let values = json!({ "environment": standing.environment, "notes": standing.notes });
            ready.call1(py, (as_python(py, &values)?,)).map(drop)
        });
        let _ = called.map_err(fail);
    };
    let (result, error) = scenario.with_progress(py, progress, |scenario, on_progress| {
        let goes_on = |share: f64| {
            raised.lock().unwrap_or_else(PoisonError::into_inner).is_none() && on_progress(share)
        };
        leeward_lab::stand(scenario, &options, &on_ready, &goes_on)
    });
    match raised.into_inner().unwrap_or_else(PoisonError::into_inner).or(error) {
        Some(error) => Err(error),
        None => result.map_err(lab_error),
    }
}

/// Latest view of a lab that is up, as JSON; `None` if it has no circuits.
#[pyfunction]
pub fn lab_view(name: &str) -> PyResult<Option<String>> {
    name.parse().and_then(|name| leeward_lab::view_of(&name)).map_err(lab_error)
}

/// Labs with a state file, as values of JSON: name, process that owns it, whether it is up and stands, and the problem of a
/// state file that cannot be read.
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
            "hosts": state.as_ref().map(|state| state.machines.iter().filter(|machine| machine.is_host).count()),
            "stands": state.as_ref().is_some_and(State::stands),
            "since_s": since.map(|since| since.as_secs_f64()),
            "problem": problem,
        }));
    }
    as_python(py, &json!(labs))
}

/// Errors that ended labs, as values of JSON.
#[pyfunction]
pub fn lab_failures(py: Python<'_>) -> PyResult<Py<PyAny>> {
    let values = |failure: Failure| {
        let at = failure.at.duration_since(UNIX_EPOCH).unwrap_or_default();
        json!({ "name": failure.name.as_str(), "at_s": at.as_secs_f64(), "text": failure.text })
    };
    as_python(py, &Failure::all().into_iter().map(values).collect::<Vec<_>>())
}

/// Records the error that ended a lab.
#[pyfunction]
pub fn record_lab_failure(name: &str, text: &str) -> PyResult<()> {
    name.parse().and_then(|name| Failure::record(&name, text)).map_err(lab_error)
}

/// Removes everything that a lab made, unless a process owns it that runs.
#[pyfunction]
pub fn remove_lab(py: Python<'_>, name: &str) -> PyResult<()> {
    py.detach(|| State::down(&name.parse()?)).map_err(lab_error)
}

/// Machine of a lab, as values of JSON.
fn machine_values(machine: &Machine) -> serde_json::Value {
    json!({
        "name": machine.name,
        "place": machine.place,
        "address": machine.address.to_string(),
        "namespace": machine.namespace,
        "disks": machine.disks,
        "is_host": machine.is_host,
        "prefix": machine.prefix(),
    })
}

/// Machines of a lab that is up, by its name.
#[pyfunction]
pub fn lab_machines(py: Python<'_>, name: &str) -> PyResult<Py<PyAny>> {
    let read = || {
        let name: LabName = name.parse()?;
        match State::read(&name)? {
            Some(state) if state.is_up() => Ok(state),
            _ => Err(Failure::not_up(&name)),
        }
    };
    let state = read().map_err(lab_error)?;
    as_python(py, &state.machines.iter().map(machine_values).collect::<Vec<_>>())
}

/// Program and arguments that run what follows them at a machine of a lab that is up.
#[pyfunction]
pub fn lab_prefix(name: &str, machine: &str) -> PyResult<Vec<String>> {
    let read = || {
        let name: LabName = name.parse()?;
        let state = State::read(&name)?.filter(State::is_up).ok_or_else(|| Failure::not_up(&name))?;
        Ok(Machine::find(&state.machines, machine)?.prefix())
    };
    read().map_err(lab_error)
}

/// The network of a cluster file that this process brought up.
#[pyclass(frozen, module = "leeward._native")]
pub struct LabNetwork {
    /// `None` after it was released or removed.
    network: Mutex<Option<Network>>,
}

impl LabNetwork {
    fn with<T>(&self, work: impl FnOnce(&Network) -> Result<T, LabError>) -> PyResult<T> {
        let network = self.network.lock().unwrap_or_else(PoisonError::into_inner);
        let network =
            network.as_ref().ok_or_else(|| PyOSError::new_err("the lab does not belong to this process"))?;
        work(network).map_err(lab_error)
    }

    fn take(&self) -> Option<Network> {
        self.network.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[pymethods]
impl LabNetwork {
    /// Brings up the network of a cluster; calls `progress` with the completed share, and stops for an exception.
    #[new]
    #[expect(clippy::too_many_arguments, reason = "these are the arguments of `leeward.lab.up`")]
    fn new(
        py: Python<'_>,
        cluster: &Cluster,
        name: Option<&str>,
        scale: u32,
        queue: Option<u64>,
        burst: Option<u64>,
        disk_size: Option<u64>,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<LabNetwork> {
        let name = name.map_or_else(|| Ok(LabName::of_process()), str::parse).map_err(lab_error)?;
        let standard = NetworkOptions::default();
        let options = NetworkOptions {
            scale,
            queue: queue.map_or(standard.queue, Bytes),
            burst: burst.map(Bytes),
            disk_size: disk_size.map_or(standard.disk_size, Bytes),
        };
        let interrupt = Mutex::new(None);
        let on_progress = |share: f64| {
            let result = Python::attach(|py| {
                py.check_signals()?;
                progress.as_ref().map_or(Ok(()), |progress| progress.call1(py, (share,)).map(drop))
            });
            let raised = |error| *interrupt.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            result.map_err(raised).is_ok()
        };
        let network = py.detach(|| Network::up(&name, &cluster.inner, options, &on_progress));
        if let Some(error) = interrupt.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        let network = network.map_err(|error| match error {
            LabError::Unsupported { .. } => PyInputError(InputError::new("cluster", error)).into(),
            other => lab_error(other),
        })?;
        Ok(LabNetwork { network: Mutex::new(Some(network)) })
    }

    /// Name of the lab, its machines and its notes, as values of JSON.
    fn values(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let values = self.with(|network| {
            Ok(json!({
                "name": network.name(),
                "machines": network.machines().iter().map(machine_values).collect::<Vec<_>>(),
                "notes": network.notes(),
            }))
        })?;
        as_python(py, &values)
    }

    /// Changes the rate of one direction of a link; sizes are in bytes.
    fn limit(
        &self,
        py: Python<'_>,
        link: &str,
        rate_bps: u64,
        queue: Option<u64>,
        burst: Option<u64>,
    ) -> PyResult<()> {
        let (rate, queue, burst) = (Bandwidth(rate_bps), queue.map(Bytes), burst.map(Bytes));
        py.detach(|| self.with(|network| network.limit(link, rate, queue, burst)))
    }

    /// Leaves the lab up when this process ends.
    fn keep(&self) -> PyResult<()> {
        self.take().map_or(Ok(()), |network| network.release().map(drop)).map_err(lab_error)
    }

    /// Removes the lab.
    fn down(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.take().map_or(Ok(()), Network::down)).map_err(lab_error)
    }
}
