//! The agent of a host, which runs until the process ends. The code is the same as in `leeward-agent`.

use std::sync::Arc;

use leeward_agent::{Arguments, Settings, StopReason, run};
use pyo3::prelude::*;

use crate::errors::PyInputError;

/// Command line arguments as a dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct AgentArguments {
    controllers: Vec<String>,
    host: Option<String>,
    interfaces: Vec<String>,
    devices: Vec<String>,
    volumes: Vec<String>,
    interval: Option<String>,
    token_file: Option<String>,
    ca: Option<String>,
    dscp: Option<String>,
    probe_listen: Option<String>,
    secret: Option<String>,
}

impl From<AgentArguments> for Arguments {
    fn from(arguments: AgentArguments) -> Arguments {
        let AgentArguments {
            controllers,
            host,
            interfaces,
            devices,
            volumes,
            interval,
            token_file,
            ca,
            dscp,
            probe_listen,
            secret,
        } = arguments;
        Arguments {
            controllers,
            host,
            interfaces,
            devices,
            volumes,
            interval,
            token_file,
            ca,
            dscp,
            probe_listen,
            secret,
        }
    }
}

/// Reads interfaces and disks and reports their loads until the process ends. `tell` receives one line per event.
#[pyfunction]
pub fn run_agent(py: Python<'_>, arguments: AgentArguments, tell: Py<PyAny>) -> PyResult<()> {
    let settings = Arc::new(Settings::new(arguments.into()).map_err(PyInputError)?);
    let report = |line: &str| Python::attach(|py| tell.call1(py, (line,))).map(drop);
    match py.detach(|| run(&settings, report)) {
        Err(StopReason::Input(error)) => Err(PyInputError(error).into()),
        Err(StopReason::Output(error)) => Err(error),
    }
}
