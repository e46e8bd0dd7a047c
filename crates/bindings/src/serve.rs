//! `serve`: the service, until the process is told to stop.

use std::net::SocketAddr;

use leeward_controller::{RunError, Service};
use leeward_fabric::Nanos;
use leeward_fabric::input::InputError;
use leeward_ledger::LedgerSettings;
use leeward_placement::replicas;
use leeward_simulator::stage::scenario::PolicySpec;
use pyo3::prelude::*;

use crate::cluster::Cluster;
use crate::errors::Refused;

/// Serves a cluster over HTTP until SIGINT or SIGTERM. `listening` is called with the address once there is one.
#[pyfunction]
pub fn serve(
    py: Python<'_>,
    cluster: &Bound<'_, Cluster>,
    policy: &str,
    listen: &str,
    interval: &str,
    seed: u64,
    listening: Py<PyAny>,
) -> PyResult<()> {
    let cluster = &cluster.get().inner;
    let wrong = |option: &str, message: String| Refused(InputError::new(option, message));
    let spec: PolicySpec = policy.parse().map_err(|message| wrong("--policy", message))?;
    let made = replicas::make(&spec.name, &spec.settings).map_err(|e| wrong("--policy", e.to_string()))?;
    let interval: Nanos = interval.parse().map_err(|e| wrong("--interval", format!("{e}")))?;
    let address: SocketAddr = listen.parse().map_err(|_| {
        wrong("--listen", format!("`{listen}`: expected an address and a port, such as 127.0.0.1:7600"))
    })?;
    let settings = LedgerSettings { interval, ..LedgerSettings::default() };
    let service = Service::new(cluster, made, &spec.label, settings, seed);
    let service = service.map_err(|e| wrong("--interval", e.to_string()))?;
    // Other threads of Python go on; this one comes back to say where the service listens.
    let served = py.detach(|| {
        service.run(address, |address| {
            Python::attach(|py| listening.call1(py, (address.to_string(),))).map(drop)
        })
    });
    served.map_err(|error| match error {
        RunError::Listen(error) => wrong("--listen", format!("`{listen}`: {error}")).into(),
        RunError::Told(error) => error,
        RunError::Broken(error) => error.into(),
    })
}
