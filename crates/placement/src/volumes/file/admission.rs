//! Workloads of one file that come, one after another, to those of another.

use leeward_fabric::Cluster;
use leeward_fabric::input::{InputError, read_yaml};
use serde_json::{Map, Value};

use super::{Placed, Workloads};
use crate::PolicyError;
use crate::volumes::System;
use crate::volumes::admit::{Admission, Arrival, Outcome, Refused, make};
use crate::volumes::bound::Method;

/// A way of admission with the settings of a file.
pub struct Chosen {
    /// It.
    pub admission: Box<dyn Admission>,
    /// The bounds that it promises by. None if they are its own, or it makes none.
    pub method: Option<Method>,
    /// Whether it gives rates of its own, so that promises count as kept only if it made them itself.
    pub paces: bool,
}

/// What became of a workload.
#[derive(Clone, PartialEq, Debug)]
pub struct Came {
    /// Its promise in the system, by index; None if it does not run.
    pub promise: Option<usize>,
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
    /// Of those that were there, in the order of their file.
    pub residents: Vec<Came>,
    /// Of those that came, in the order of theirs.
    pub arrivals: Vec<Came>,
}

/// Names of those that decide by bounds as a file sets them.
const BOUNDED: [&str; 4] = ["snc", "dnc", "best", "none"];

impl Workloads {
    /// Makes a way of admission by name. Where the settings (YAML or JSON, empty for the defaults) say nothing of `bounds` and `levels`, they
    /// are as in the file.
    ///
    /// # Errors
    /// A name that there is not, or settings that are not right.
    pub fn admission(&self, name: &str, settings: &str) -> Result<Chosen, PolicyError> {
        if !BOUNDED.contains(&name) {
            return Ok(Chosen { admission: make(name, settings)?, method: None, paces: true });
        }
        // What is wrong with them is said of what was given, before anything is added.
        make(name, settings)?;
        let file = format!("settings of {name}");
        let mut given: Map<String, Value> =
            if settings.trim().is_empty() { Map::new() } else { read_yaml(&file, settings)? };
        let bounds = serde_json::to_value(self.bounds).map_err(|error| InputError::new(&file, error))?;
        given.entry("bounds").or_insert(bounds);
        given.entry("levels").or_insert(self.levels.into());
        let meister = given.get("method").is_some_and(|method| method == Method::PriorityMeister.name());
        let method = match name {
            "snc" => Some(Method::Snc),
            "dnc" if meister => Some(Method::PriorityMeister),
            "dnc" => Some(Method::Dnc),
            "best" => Some(Method::Best),
            _ => None,
        };
        let admission = make(name, &Value::Object(given).to_string())?;
        Ok(Chosen { admission, method, paces: false })
    }

    /// Lets workloads arrive at these, one after another. One that is refused runs as best effort, if it takes no SLO from others.
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
        if by.paces {
            for promise in std::mem::take(&mut system.promises) {
                let arrival = Arrival { workload: promise.workload, route: promise.route };
                residents.push(come(&mut system, arrival, by, &self.path)?);
            }
        } else {
            let there = 0..system.promises.len();
            residents.extend(there.map(|at| Came {
                promise: Some(at),
                refused: None,
                disturbed: Vec::new(),
            }));
        }
        let mut came = Vec::with_capacity(arrivals.len());
        for arrival in arrivals {
            came.push(come(&mut system, arrival, by, &arriving.path)?);
        }
        Ok(Admitted { system, residents, arrivals: came })
    }
}

fn come(system: &mut System, arrival: Arrival, by: &Chosen, path: &str) -> Result<Came, InputError> {
    let Outcome { system: with, refused, disturbed } =
        by.admission.arrive(system, arrival).map_err(|error| InputError::new(path, error))?;
    let disturbed: Vec<String> =
        disturbed.into_iter().map(|at| system.promises[at].workload.name.clone()).collect();
    let runs = disturbed.is_empty();
    if runs {
        *system = with;
    }
    Ok(Came { promise: runs.then(|| system.promises.len() - 1), refused, disturbed })
}
