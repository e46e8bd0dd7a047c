//! Workloads of one file that come, one after another, to those of another.

use leeward_fabric::Cluster;
use leeward_fabric::input::{InputError, read_yaml};
use serde_json::{Map, Value};

use super::{Placed, Workloads};
use crate::PolicyError;
use crate::volumes::admit::{Admission, Arrival, Outcome, Refused, make, paces};
use crate::volumes::{Promise, System};

/// A way of admission with the settings of a file.
pub struct Chosen {
    /// It.
    pub admission: Box<dyn Admission>,
    /// Whether it gives rates of its own, so that promises count as kept only if it made them itself.
    pub paces: bool,
    /// Priorities that it takes networks to tell apart, if it merges them.
    pub levels: Option<u32>,
}

/// What became of a workload.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Came {
    /// Its name.
    pub name: String,
    /// Its promise in the system, by index; None if it does not run.
    pub promise: Option<usize>,
    /// Whether it was there before, with another demand. If it is refused, its volume should move to where it is admitted.
    pub changed: bool,
    /// Why it has no SLO, if it was refused one.
    pub refused: Option<Refused>,
    /// Workloads whose SLO it would take even as best effort, for which it does not run.
    pub disturbed: Vec<String>,
}

/// What became of all.
#[derive(Clone, Debug)]
pub struct Admitted {
    /// The system in the end.
    pub system: System,
    /// Of those that were there, in the order of their file, but for those that changed.
    pub residents: Vec<Came>,
    /// Of those that came, in the order of theirs.
    pub arrivals: Vec<Came>,
    /// How priorities came about.
    pub priorities: Priorities,
}

/// How priorities came about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Priorities {
    /// Where they are from.
    pub order: Order,
    /// How many ranks there were, if they are more than networks tell apart and were merged.
    pub merged: Option<usize>,
}

/// Where priorities are from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// The file of those that were there: nobody was promised anything since.
    File,
    /// SLOs, the tightest first.
    BySlo,
    /// PriorityMeister's search.
    Search,
    /// The policy, which gives rates too.
    Policy,
}

impl Workloads {
    /// Makes a way of admission by name. Where the settings (YAML or JSON, empty for the defaults) say nothing of `bounds` and `levels`, they
    /// are as in the file.
    ///
    /// # Errors
    /// A name that there is not, or settings that are not right.
    pub fn admission(&self, name: &str, settings: &str) -> Result<Chosen, PolicyError> {
        if paces(name) {
            return Ok(Chosen { admission: make(name, settings)?, paces: true, levels: None });
        }
        // What is wrong with them is said of what was given, before anything is added.
        make(name, settings)?;
        let file = format!("settings of {name}");
        let mut given: Map<String, Value> =
            if settings.trim().is_empty() { Map::new() } else { read_yaml(&file, settings)? };
        let bounds = serde_json::to_value(self.bounds).map_err(|error| InputError::new(&file, error))?;
        given.entry("bounds").or_insert(bounds);
        let levels = given.entry("levels").or_insert(self.levels.into());
        let levels = levels.as_u64().and_then(|levels| u32::try_from(levels).ok());
        let admission = make(name, &Value::Object(given).to_string())?;
        Ok(Chosen { admission, paces: false, levels })
    }

    /// Lets workloads arrive at these, one after another. One that is refused runs as best effort, if it takes no SLO from others. One
    /// of the same name as one that is there is that one, changed, and is decided on anew; until it comes, it is there as it was.
    ///
    /// Those that are there are taken as they are, with limits as in the file. A policy that paces admits them anew first, in
    /// the order of the file, because it promises by rates that it gives itself.
    ///
    /// # Errors
    /// An arrival without a server or a path, or with priorities or limits.
    pub fn admit(
        &self,
        placed: &Placed,
        arriving: &Workloads,
        cluster: &Cluster,
        by: &Chosen,
    ) -> Result<Admitted, InputError> {
        let mut system = placed.system.clone();
        let arrivals = arriving.arrivals(cluster, &mut system)?;
        let mut residents = Vec::with_capacity(system.promises.len());
        let mut priorities = match (by.paces, placed.given) {
            (true, _) => Priorities { order: Order::Policy, merged: None },
            (false, true) => Priorities { order: Order::File, merged: None },
            (false, false) => Priorities { order: Order::BySlo, merged: placed.merged },
        };
        for promise in if by.paces { std::mem::take(&mut system.promises) } else { Vec::new() } {
            let arrival = Arrival { workload: promise.workload, route: promise.route };
            residents.push(come(&mut system, arrival, by, &self.path)?.0);
        }
        if !by.paces {
            let stays = |promise: &Promise| Came { name: promise.workload.name.clone(), ..Came::default() };
            residents.extend(system.promises.iter().map(stays));
        }
        let mut came = Vec::with_capacity(arrivals.len());
        for arrival in arrivals {
            let (one, given) = come(&mut system, arrival, by, &arriving.path)?;
            priorities = given.unwrap_or(priorities);
            came.push(one);
        }
        residents.retain(|resident| came.iter().all(|one| one.name != resident.name));
        for one in residents.iter_mut().chain(&mut came) {
            one.promise = system.promises.iter().position(|promise| promise.workload.name == one.name);
        }
        Ok(Admitted { system, residents, arrivals: came, priorities })
    }
}

/// Lets one workload come. What became of it, and the priorities of all if it was promised an SLO.
fn come(
    system: &mut System,
    arrival: Arrival,
    by: &Chosen,
    path: &str,
) -> Result<(Came, Option<Priorities>), InputError> {
    let (name, asks) = (arrival.workload.name.clone(), arrival.workload.slo.is_some());
    let before = system.promises.iter().position(|promise| promise.workload.name == name);
    let outcome = match before {
        Some(before) => by.admission.changed(system, before, arrival.workload),
        None => by.admission.arrive(system, arrival),
    };
    let outcome = outcome.map_err(|error| InputError::new(path, error))?;
    let order = match (by.paces, outcome.searched) {
        (true, _) => Order::Policy,
        (false, true) => Order::Search,
        (false, false) => Order::BySlo,
    };
    let promised = asks && outcome.admitted();
    let priorities = promised.then_some(Priorities { order, merged: outcome.merged });
    let Outcome { system: with, refused, disturbed, .. } = outcome;
    before.map(|before| system.promises.remove(before));
    let disturbed: Vec<String> =
        disturbed.into_iter().map(|at| system.promises[at].workload.name.clone()).collect();
    if disturbed.is_empty() {
        *system = with;
    }
    Ok((Came { name, promise: None, changed: before.is_some(), refused, disturbed }, priorities))
}
