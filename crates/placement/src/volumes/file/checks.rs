//! What is checked of a file before and after its traces are read.

use std::collections::BTreeSet;

use leeward_fabric::input::{InputError, excerpt};
use leeward_traces::NetworkWork;

use super::form::WorkloadsFile;
use super::traces::Settings;
use super::{Entry, Workloads};

/// What holds for all workloads of a file.
pub(super) fn settings(path: &str, file: &WorkloadsFile) -> Result<Settings, InputError> {
    let wrong = |field: &str, message: String| InputError::new(path, message).in_field(field);
    let network = NetworkWork::new(
        file.network.overhead.unwrap_or(NetworkWork::OVERHEAD),
        file.network.payload.unwrap_or(NetworkWork::PAYLOAD),
        file.network.other.unwrap_or(NetworkWork::OTHER),
    );
    let network = network.map_err(|error| wrong("network", error.to_string()))?;
    if file.buckets == 0 {
        return Err(wrong("buckets", "0: expected at least 1".into()));
    }
    if file.levels == 0 {
        return Err(wrong("levels", "0: expected at least 1".into()));
    }
    file.bounds.check().map_err(|error| wrong("bounds", error.to_string()))?;
    Ok(Settings { path: path.to_owned(), network, fit: file.fit.settings(), buckets: file.buckets })
}

/// Names of workloads, and what they depend on.
pub(super) fn check_names(
    path: &str,
    file: &WorkloadsFile,
    others: Option<&Workloads>,
) -> Result<(), InputError> {
    if file.workloads.is_empty() {
        return Err(InputError::new(path, "an empty list; expected at least one").in_field("workloads"));
    }
    let wrong = |number: usize, field: &str, message: String| {
        let field = format!("workloads[{number}].{field}");
        Err(InputError::new(path, message).in_field(field).at(&file.workloads[number]))
    };
    let there = others.iter().flat_map(|others| others.entries.iter());
    let mut names = BTreeSet::new();
    for (number, item) in file.workloads.iter().enumerate() {
        let name = item.value.name.as_str();
        let allowed = |c: char| c.is_ascii_alphanumeric() || ['.', '_', '-'].contains(&c);
        if name.is_empty() || !name.chars().all(allowed) {
            let message = "a name has letters, digits, `.`, `_` and `-` only";
            return wrong(number, "name", format!("`{}`: {message}", excerpt(name)));
        }
        if !names.insert(name) {
            return wrong(number, "name", format!("`{}`: two workloads have this name", excerpt(name)));
        }
    }
    names.extend(there.map(|entry| entry.workload.name.as_str()));
    for (number, item) in file.workloads.iter().enumerate() {
        for (at, name) in item.value.depends_on.iter().enumerate() {
            let field = format!("depends_on[{at}]");
            if *name == item.value.name {
                return wrong(number, &field, format!("`{}`: this is the workload itself", excerpt(name)));
            }
            if !names.contains(name.as_str()) {
                return wrong(number, &field, format!("`{}`: no workload has this name", excerpt(name)));
            }
        }
    }
    Ok(())
}

/// Priorities are given to all with an SLO or to none: they are not on one scale with those by SLO.
pub(super) fn check_priorities(path: &str, entries: &[Entry]) -> Result<(), InputError> {
    if entries.iter().all(|entry| entry.priorities.is_none()) {
        return Ok(());
    }
    let without = entries.iter().find(|entry| entry.workload.slo.is_some() && entry.priorities.is_none());
    without.map_or(Ok(()), |entry| {
        let (number, place) = &entry.place;
        let message = "missing; other workloads have one: give one to all that have an SLO, or to none";
        Err(InputError::new(path, message).in_field(format!("workloads[{number}].priority")).at(place))
    })
}
