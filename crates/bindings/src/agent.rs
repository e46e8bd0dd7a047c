//! Agent of a host, until the process ends: the same code as `leeward-agent`.

use std::sync::Arc;

use leeward_agent::{Given, Settings, Stopped, run};
use pyo3::prelude::*;

use crate::errors::Refused;

/// Command line arguments as a dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Said {
    controllers: Vec<String>,
    host: Option<String>,
    interfaces: Vec<String>,
    devices: Vec<String>,
    interval: Option<String>,
    token_file: Option<String>,
    ca: Option<String>,
    probe_listen: Option<String>,
    secret: Option<String>,
}

impl From<Said> for Given {
    fn from(said: Said) -> Given {
        let Said { controllers, host, interfaces, devices, interval, token_file, ca, probe_listen, secret } =
            said;
        Given { controllers, host, interfaces, devices, interval, token_file, ca, probe_listen, secret }
    }
}

/// Reads interfaces and disks and reports their loads until the process ends. `tell` receives one line per event.
#[pyfunction]
pub fn run_agent(py: Python<'_>, said: Said, tell: Py<PyAny>) -> PyResult<()> {
    let settings = Arc::new(Settings::new(said.into()).map_err(Refused)?);
    let told = |line: &str| Python::attach(|py| tell.call1(py, (line,))).map(drop);
    match py.detach(|| run(&settings, told)) {
        Err(Stopped::Input(error)) => Err(Refused(error).into()),
        Err(Stopped::Told(error)) => Err(error),
    }
}
