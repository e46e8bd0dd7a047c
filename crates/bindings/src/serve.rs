//! `serve`: the service, until the process is told to stop.

use std::net::SocketAddr;
use std::path::Path;

use leeward_controller::{Durability, Labels, NewCluster, RunError, Service, Sqlite, Store, StoreError};
use leeward_engine::Policies;
use leeward_fabric::Nanos;
use leeward_fabric::input::{InputError, read_text};
use leeward_ledger::LedgerSettings;
use leeward_placement::{PolicyError, replicas, tasks};
use leeward_simulator::stage::scenario::PolicySpec;
use pyo3::prelude::*;

use crate::errors::Refused;

/// Decisions that a store keeps besides those that hold something of the network.
const KEEP: u64 = 1_000_000;

fn wrong(option: &str, message: String) -> Refused {
    Refused(InputError::new(option, message))
}

/// Serves the cluster of a file over HTTP until SIGINT or SIGTERM. `store` is a file, or None for one that ends with the process;
/// `durable` is what acknowledged decisions outlive, `process` or `power`. `listening` is called with the address once
/// there is one.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "one for each option of the command")]
pub fn serve(
    py: Python<'_>,
    cluster: &str,
    policy: &str,
    task_policy: &str,
    listen: &str,
    interval: &str,
    seed: u64,
    store: Option<&str>,
    durable: &str,
    listening: Py<PyAny>,
) -> PyResult<()> {
    let file = NewCluster::read(cluster, &read_text(cluster).map_err(Refused)?).map_err(Refused)?;
    let spec = |option: &str, text: &str| -> Result<PolicySpec, Refused> {
        text.parse().map_err(|message| wrong(option, message))
    };
    let (blocks, apps) = (spec("--policy", policy)?, spec("--task-policy", task_policy)?);
    let told = |option: &'static str| move |error: PolicyError| wrong(option, error.to_string());
    replicas::make(&blocks.name, &blocks.settings).map_err(told("--policy"))?;
    tasks::make(&apps.name, &apps.settings).map_err(told("--task-policy"))?;
    let interval: Nanos = interval.parse().map_err(|e| wrong("--interval", format!("{e}")))?;
    let address: SocketAddr = listen.parse().map_err(|_| {
        wrong("--listen", format!("`{listen}`: expected an address and a port, such as 127.0.0.1:7600"))
    })?;
    let settings = LedgerSettings { interval, ..LedgerSettings::default() };
    let store = opened(store, durable)?;
    let labels =
        Labels { replicas: blocks.label.as_str().into(), tasks: apps.label.as_str().into(), moves: None };
    let policies = move || Policies {
        replicas: replicas::make(&blocks.name, &blocks.settings).ok(),
        tasks: tasks::make(&apps.name, &apps.settings).ok(),
        ..Policies::default()
    };
    let service = Service::new(file, policies, labels, settings, seed, store);
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

fn opened(file: Option<&str>, durable: &str) -> Result<Box<dyn Store>, Refused> {
    let durability = match durable {
        "process" => Durability::Process,
        "power" => Durability::Power,
        other => return Err(wrong("--durable", format!("`{other}`: expected process or power"))),
    };
    let told = |error: StoreError| wrong("--store", format!("{}: {error}", file.unwrap_or("memory")));
    let store = match file {
        Some(file) => Sqlite::open(Path::new(file), durability, KEEP),
        None => Sqlite::in_memory(),
    };
    Ok(Box::new(store.map_err(told)?))
}
