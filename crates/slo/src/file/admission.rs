//! Arrivals from one workload file at the workloads of another.

use leeward_fabric::Cluster;
use leeward_fabric::input::{InputError, read_yaml};
use leeward_registry::RegistryError;
use serde_json::{Map, Value};

use super::{PlacedSystem, Workloads};
use crate::admit::{Admission, AdmissionError, Arrival, Outcome, REGISTRY};
use crate::{Promise, System};

/// An admission policy with the settings of a file.
pub struct AdmissionPolicy {
    /// The policy.
    pub admission: Box<dyn Admission>,
    /// Number of network priorities the policy assumes; `None` if it does not merge them.
    pub levels: Option<u32>,
}

/// Admission result of a workload.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct WorkloadAdmission {
    /// Name of the workload.
    pub name: String,
    /// Promise in the system, by index; `None` if the workload does not run.
    pub promise: Option<usize>,
    /// True if the workload existed before with another demand. If it is refused, its volume should move to a place
    /// that admits it.
    pub changed: bool,
    /// Reason for the refusal of the SLO; `None` without a refusal.
    pub refused: Option<AdmissionError>,
    /// Workloads that would lose their SLO even with this workload as best effort. If there are any, this workload does
    /// not run.
    pub disturbed: Vec<String>,
}

/// Admission results of all workloads.
#[derive(Clone, Debug)]
pub struct Admitted {
    /// The final system.
    pub system: System,
    /// Results for the existing workloads, in the order of their file, without the changed workloads.
    pub residents: Vec<WorkloadAdmission>,
    /// Results for the arrivals, in the order of their file.
    pub arrivals: Vec<WorkloadAdmission>,
    /// Origin of the priorities.
    pub priorities: Priorities,
}

/// Origin of the priorities.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Priorities {
    /// Source of the order.
    pub order: Order,
    /// Number of priority ranks before merging; `None` if networks distinguish all of them.
    pub merged: Option<usize>,
}

/// Source of an order of priorities.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// The file of the existing workloads; no workload with an SLO has been admitted after it was read.
    File,
    /// The SLOs, the tightest first.
    BySlo,
    /// PriorityMeister's search.
    Search,
    /// The policy, which also sets rates.
    Policy,
}

impl Workloads {
    /// Creates an admission policy by name. `bounds` and `levels` default to the values of this file if the
    /// settings (YAML or JSON, empty for the defaults) leave them out.
    ///
    /// # Errors
    /// [`RegistryError`] for an unknown name or invalid settings.
    pub fn admission(&self, name: &str, settings: &str) -> Result<AdmissionPolicy, RegistryError> {
        // Report errors in the given settings before defaults are added.
        let admission = REGISTRY.make(name, settings)?;
        if admission.sets_rates() {
            return Ok(AdmissionPolicy { admission, levels: None });
        }
        let file = format!("settings of {name}");
        let mut given: Map<String, Value> =
            if settings.trim().is_empty() { Map::new() } else { read_yaml(&file, settings)? };
        let bounds = serde_json::to_value(self.bounds).map_err(|error| InputError::new(&file, error))?;
        given.entry("bounds").or_insert(bounds);
        let levels = given.entry("levels").or_insert(self.levels.into());
        let levels = levels.as_u64().and_then(|levels| u32::try_from(levels).ok());
        let admission = REGISTRY.make(name, &Value::Object(given).to_string())?;
        Ok(AdmissionPolicy { admission, levels })
    }

    /// Decides on arrivals one after another. A refused workload runs as best effort unless another would lose its SLO.
    /// An arrival with the name of an existing workload replaces that workload; the old demand stays in place until the
    /// decision.
    ///
    /// Existing workloads keep their promises, with limits as in the file. A policy with its own rates first admits
    /// them again in the order of the file, because its promises depend on these rates.
    ///
    /// # Errors
    /// [`InputError`] for an arrival without a server or a path, or with priorities or limits.
    pub fn admit(
        &self,
        placed: &PlacedSystem,
        arriving: &Workloads,
        cluster: &Cluster,
        by: &AdmissionPolicy,
    ) -> Result<Admitted, InputError> {
        let mut system = placed.system.clone();
        let arrivals = arriving.arrivals(cluster, &mut system)?;
        let mut residents = Vec::with_capacity(system.promises.len());
        let sets_rates = by.admission.sets_rates();
        let mut priorities = match (sets_rates, placed.given) {
            (true, _) => Priorities { order: Order::Policy, merged: None },
            (false, true) => Priorities { order: Order::File, merged: None },
            (false, false) => Priorities { order: Order::BySlo, merged: placed.merged },
        };
        for promise in if sets_rates { std::mem::take(&mut system.promises) } else { Vec::new() } {
            let arrival = Arrival { workload: promise.workload, route: promise.route };
            residents.push(decide(&mut system, arrival, by, &self.path)?.0);
        }
        if !sets_rates {
            let stays = |promise: &Promise| WorkloadAdmission {
                name: promise.workload.name.clone(),
                ..WorkloadAdmission::default()
            };
            residents.extend(system.promises.iter().map(stays));
        }
        let mut results = Vec::with_capacity(arrivals.len());
        for arrival in arrivals {
            let (result, given) = decide(&mut system, arrival, by, &arriving.path)?;
            priorities = given.unwrap_or(priorities);
            results.push(result);
        }
        residents.retain(|resident| results.iter().all(|result| result.name != resident.name));
        for result in residents.iter_mut().chain(&mut results) {
            result.promise = system.promises.iter().position(|promise| promise.workload.name == result.name);
        }
        Ok(Admitted { system, residents, arrivals: results, priorities })
    }
}

/// Decides on one arrival. Returns its result, and the origin of the priorities if its SLO was admitted.
fn decide(
    system: &mut System,
    arrival: Arrival,
    by: &AdmissionPolicy,
    path: &str,
) -> Result<(WorkloadAdmission, Option<Priorities>), InputError> {
    let (name, has_slo) = (arrival.workload.name.clone(), arrival.workload.slo.is_some());
    let before = system.promises.iter().position(|promise| promise.workload.name == name);
    let outcome = match before {
        Some(before) => by.admission.changed(system, before, arrival.workload),
        None => by.admission.arrive(system, arrival),
    };
    let outcome = outcome.map_err(|error| InputError::new(path, error))?;
    let order = match (by.admission.sets_rates(), outcome.searched) {
        (true, _) => Order::Policy,
        (false, true) => Order::Search,
        (false, false) => Order::BySlo,
    };
    let promised = has_slo && outcome.admitted();
    let priorities = promised.then_some(Priorities { order, merged: outcome.merged });
    let Outcome { system: with, refused, disturbed, .. } = outcome;
    before.map(|before| system.promises.remove(before));
    let disturbed: Vec<String> =
        disturbed.into_iter().map(|at| system.promises[at].workload.name.clone()).collect();
    if disturbed.is_empty() {
        *system = with;
    }
    Ok((WorkloadAdmission { name, promise: None, changed: before.is_some(), refused, disturbed }, priorities))
}
