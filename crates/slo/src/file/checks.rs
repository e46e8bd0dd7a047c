//! Checks of a workload file before and after its traces are read.

use std::collections::BTreeSet;

use leeward_calculus::fit::FitError;
use leeward_fabric::input::{InputError, excerpt, format_number};
use leeward_traces::NetworkWork;

use super::form::{NetworkFile, WorkloadsFile};
use super::traces::Settings;
use super::{Entry, Workloads};

/// Settings for all workloads of a file.
pub(super) fn settings(path: &str, file: &WorkloadsFile) -> Result<Settings, InputError> {
    let invalid = |field: &str, message: String| InputError::new(path, message).in_field(field);
    let NetworkFile { overhead, payload, other } = file.network;
    let network = NetworkWork::with_defaults(overhead, payload, other)
        .map_err(|error| invalid("network", error.to_string()))?;
    if file.buckets == 0 {
        return Err(invalid("buckets", "0: expected at least 1".into()));
    }
    if file.levels == Some(0) {
        return Err(invalid("levels", "0: expected at least 1".into()));
    }
    if let Some(bounds) = file.bounds {
        bounds.check().map_err(|error| invalid("bounds", error.to_string()))?;
    }
    if file.fit.deviations.is_some() && !file.fit.published {
        return Err(invalid("fit.deviations", "expected only with `published: true`".into()));
    }
    let fit = file.fit.settings();
    fit.check().map_err(|error| match error {
        FitError::Setting { name, value, expected } => {
            invalid(&format!("fit.{name}"), format!("{}: expected {expected}", format_number(value)))
        }
        error => invalid("fit", error.to_string()),
    })?;
    Ok(Settings { path: path.to_owned(), network, fit, buckets: file.buckets, sort: file.sort })
}

/// A setting that arrivals share with the existing workloads. The existing value applies, and a different value in
/// the file is an error.
pub(super) fn shared<T: PartialEq>(
    path: &str,
    field: &str,
    given: Option<T>,
    others: Option<(&Workloads, T)>,
) -> Result<Option<T>, InputError> {
    let Some((others, existing)) = others else { return Ok(given) };
    if given.is_some_and(|given| given != existing) {
        let message =
            format!("differs from the value in {}, which applies to all: leave it out", others.path);
        return Err(InputError::new(path, message).in_field(field));
    }
    Ok(Some(existing))
}

/// Checks the names of workloads and of their dependencies.
pub(super) fn check_names(
    path: &str,
    file: &WorkloadsFile,
    others: Option<&Workloads>,
) -> Result<(), InputError> {
    if file.workloads.is_empty() {
        return Err(InputError::new(path, "an empty list; expected at least one").in_field("workloads"));
    }
    let invalid = |number: usize, field: &str, message: String| {
        let field = format!("workloads[{number}].{field}");
        Err(InputError::new(path, message).in_field(field).at(&file.workloads[number]))
    };
    let existing = others.iter().flat_map(|others| others.entries.iter());
    let mut names = BTreeSet::new();
    for (number, item) in file.workloads.iter().enumerate() {
        let name = item.value.name.as_str();
        let allowed = |c: char| c.is_ascii_alphanumeric() || ['.', '_', '-'].contains(&c);
        if name.is_empty() || !name.chars().all(allowed) {
            let message = "a name has letters, digits, `.`, `_` and `-` only";
            return invalid(number, "name", format!("`{}`: {message}", excerpt(name)));
        }
        if !names.insert(name) {
            return invalid(number, "name", format!("`{}`: two workloads have this name", excerpt(name)));
        }
    }
    names.extend(existing.map(|entry| entry.workload.name.as_str()));
    for (number, item) in file.workloads.iter().enumerate() {
        for (at, name) in item.value.depends_on.iter().enumerate() {
            let field = format!("depends_on[{at}]");
            if *name == item.value.name {
                return invalid(number, &field, format!("`{}`: this is the workload itself", excerpt(name)));
            }
            if !names.contains(name.as_str()) {
                return invalid(number, &field, format!("`{}`: no workload has this name", excerpt(name)));
            }
        }
    }
    Ok(())
}

/// Checks that all workloads with an SLO have priorities, or that none has one: given priorities and priorities by SLO
/// have different scales. The last priority is for best effort.
pub(super) fn check_priorities(path: &str, entries: &[Entry]) -> Result<(), InputError> {
    let invalid = |entry: &Entry, message: &str| {
        let (number, place) = &entry.place;
        Err(InputError::new(path, message).in_field(format!("workloads[{number}].priority")).at(place))
    };
    let last = |entry: &&Entry| entry.priorities.iter().flatten().any(|&priority| priority == u32::MAX);
    if let Some(entry) = entries.iter().find(last) {
        let message =
            "4294967295: expected a whole number from 0 to 4294967294; the last priority is for best effort";
        return invalid(entry, message);
    }
    if entries.iter().all(|entry| entry.priorities.is_none()) {
        return Ok(());
    }
    let without = entries.iter().find(|entry| entry.workload.slo.is_some() && entry.priorities.is_none());
    let message = "missing; other workloads have one: give one to all that have an SLO, or to none";
    without.map_or(Ok(()), |entry| invalid(entry, message))
}
