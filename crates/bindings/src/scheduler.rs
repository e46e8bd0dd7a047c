//! `Scheduler`: a task policy without load information, for one request after another.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leeward_engine::{Engine, Input, Policies, Ruling};
use leeward_fabric::input::{Files, InputError};
use leeward_fabric::{Fabric, Nanos};
use leeward_ledger::{Ledger, LedgerSettings};
use leeward_placement::tasks::{self, App, AppRequest};
use leeward_placement::{Explain, JobId};
use leeward_scenarios::scenario::PolicySpec;
use pyo3::prelude::*;

use crate::cluster::Cluster;
use crate::errors::PyInputError;

/// An engine with a task policy and without load reports.
#[pyclass(frozen, module = "leeward._native")]
pub struct Scheduler {
    engine: Mutex<Engine>,
    fabric: Arc<Fabric>,
}

#[pymethods]
impl Scheduler {
    #[new]
    #[pyo3(signature = (cluster, policy, seed = 1))]
    fn new(cluster: &Bound<'_, Cluster>, policy: &str, seed: u64) -> Result<Scheduler, PyInputError> {
        let invalid = |message: String| PyInputError(InputError::new("policy", message));
        let spec: PolicySpec = policy.parse().map_err(invalid)?;
        let policy =
            tasks::REGISTRY.make(&spec.name, &spec.settings).map_err(|error| invalid(error.to_string()))?;
        let cluster = &cluster.get().inner;
        let ledger = Ledger::of_cluster(cluster, LedgerSettings::default());
        let ledger = ledger.map_err(|error| PyInputError(InputError::new("cluster", error.to_string())))?;
        let policies = Policies { tasks: Some(policy), ..Policies::default() };
        let engine = Mutex::new(Engine::new(ledger, policies, seed, Explain::Off));
        Ok(Scheduler { engine, fabric: cluster.fabric.clone() })
    }

    /// Places an app (JSON or YAML) and marks it as running. Returns the names of hosts, or None if the app is refused.
    fn place(&self, number: u64, job: u64, app: &str) -> Result<Option<Vec<String>>, PyInputError> {
        let app = App::from_text("app", app, &Files::default()).map_err(PyInputError)?;
        let request = AppRequest { id: number, job: JobId(job), ..app.request };
        let placed = self.engine().place_app(Nanos(0), request, Ruling::default(), &mut Vec::new());
        let hosts = placed.ok().map(|placed| placed.decision.choice);
        let name = |host| self.fabric.host_name(host).to_owned();
        Ok(hosts.map(|hosts| hosts.into_iter().map(name).collect()))
    }

    /// Ends an app.
    fn end(&self, number: u64) {
        self.engine().handle(Nanos(0), Input::Ended(number), &mut Vec::new());
    }
}

impl Scheduler {
    /// The engine. Without load information nothing expires, so all inputs have the same time.
    fn engine(&self) -> MutexGuard<'_, Engine> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
