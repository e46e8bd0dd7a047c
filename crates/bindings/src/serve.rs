//! The service, which runs until the process is stopped, and its tokens. The code is the same as in `leewardd`.

use std::path::Path;

use leeward_controller::{Flags, NewToken, Ready, StartError, is_json, log_end};
use leeward_fabric::input::InputError;
use pyo3::exceptions::{PyOSError, PySystemExit};
use pyo3::prelude::*;

use crate::errors::PyInputError;
use crate::simulated_clock::SimulatedClock;

/// Command line arguments as a dict; None leaves an option to the settings file or the default.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct ServiceArguments {
    config: Option<String>,
    cluster: Option<String>,
    listen: Option<String>,
    admin_listen: Option<String>,
    policy: Option<String>,
    task_policy: Option<String>,
    moves: Option<String>,
    mode: Option<String>,
    off_file: Option<String>,
    interval: Option<String>,
    seed: Option<u64>,
    store: Option<String>,
    durable: Option<String>,
    tokens: Option<String>,
    prometheus: Option<String>,
    map: Option<String>,
    http: Option<String>,
}

impl From<ServiceArguments> for Flags {
    fn from(given: ServiceArguments) -> Flags {
        let ServiceArguments { config, cluster, listen, policy, task_policy, moves, interval, seed, .. } =
            given;
        let ServiceArguments {
            mode,
            off_file,
            admin_listen,
            store,
            durable,
            tokens,
            prometheus,
            map,
            http,
            ..
        } = given;
        let telemetry = Flags { prometheus, map, http, ..Flags::default() };
        Flags {
            config,
            cluster,
            listen,
            admin_listen,
            policy,
            task_policy,
            moves,
            mode,
            off_file,
            interval,
            seed,
            store,
            durable,
            tokens,
            ..telemetry
        }
    }
}

/// Reads and checks everything that the service needs at its start, but starts nothing.
#[pyfunction]
pub fn check_service(given: ServiceArguments) -> Result<(), PyInputError> {
    Ok(Ready::new(given.into()).map(drop)?)
}

/// Serves over HTTP until SIGINT or SIGTERM. Once the service listens, `listening` receives its URL and the file of
/// stored decisions, or None for decisions in memory. With `demo`, the caller adds demonstration data in `listening`.
/// With `clock`, the service runs on simulated time.
///
/// With a JSON log, these messages are in the log. `listening` is then called only for a demo, and an error ends the
/// process with its exit code.
#[pyfunction]
#[pyo3(signature = (given, listening, demo = false, clock = None))]
pub fn serve(
    py: Python<'_>,
    given: ServiceArguments,
    listening: Py<PyAny>,
    demo: bool,
    clock: Option<Py<SimulatedClock>>,
) -> PyResult<()> {
    let tell = |url: &str, store: Option<&Path>| {
        if is_json() && !demo {
            return Ok(());
        }
        Python::attach(|py| listening.call1(py, (url, store.map(Path::display).map(|file| file.to_string()))))
            .map(drop)
    };
    // Other Python threads continue; this thread attaches to Python again to report the listening address.
    let result = py.detach(|| {
        let ready = Ready::to_run(Flags { demo, ..given.into() })?;
        let ready = match &clock {
            Some(clock) => ready.clock(clock.get().clock()),
            None => ready,
        };
        ready.run(tell)
    });
    result.map_err(|error| match error {
        StartError::Input(error) => exit_logged(&error, 2).unwrap_or_else(|| PyInputError(error).into()),
        StartError::Callback(error) => error,
        StartError::Failed(error) => {
            exit_logged(&error, 1).unwrap_or_else(|| PyOSError::new_err(error.to_string()))
        }
    })
}

/// Logs the reason, and returns an exit with this code; `None` if the log is not JSON.
fn exit_logged(reason: &dyn std::fmt::Display, code: i32) -> Option<PyErr> {
    log_end(reason).then(|| PySystemExit::new_err(code))
}

/// Creates a token, bound to hosts if any are given, and appends its line to a file if one is given. Returns the token
/// and the line.
#[pyfunction]
pub fn new_token(
    name: &str,
    role: &str,
    hosts: Vec<String>,
    file: Option<&str>,
) -> Result<(String, String), PyInputError> {
    let role = role.parse().map_err(|message| InputError::new("--role", message))?;
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    let token = NewToken::make(name, role, &hosts)?;
    file.map_or(Ok(()), |file| token.add(file))?;
    let NewToken { token, line } = token;
    Ok((token, line))
}
