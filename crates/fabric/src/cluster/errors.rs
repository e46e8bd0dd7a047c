//! Errors about a cluster file.

use super::file::{ClusterFile, HostFile};
use super::values::{Listing, Name};
use crate::input::{InputError, Place, Spanned};

/// Constructors of errors that name the file, and the place in it if known.
#[derive(Clone, Copy)]
pub(super) struct Errors<'a> {
    pub path: &'a str,
    pub file: &'a ClusterFile,
}

impl Errors<'_> {
    pub fn about(&self, message: impl Into<String>) -> InputError {
        InputError::new(self.path, message.into())
    }

    pub fn at(&self, at: Place, field: impl Into<String>, message: impl Into<String>) -> InputError {
        self.about(message).in_field(field).at_place(at)
    }

    pub fn missing(&self, field: &str, example: &str) -> InputError {
        self.about(format!("missing; expected for example `{field}: {example}`")).in_field(field)
    }

    /// The error for hosts with the same name, at the place of the last of these hosts in the file.
    pub fn duplicate_host(&self, name: &str) -> InputError {
        let mut occurrences = Vec::new();
        let mut collect = |list: &str, hosts: &Listing<HostFile>| {
            occurrences.extend(
                items(hosts)
                    .iter()
                    .enumerate()
                    .filter(|(_, host)| host.value.name.0 == name)
                    .map(|(i, host)| (format!("{list}[{i}].name"), host.place)),
            );
        };
        if let Some(hosts) = &self.file.hosts {
            collect("hosts", &hosts.value);
        }
        for (i, rack) in self.file.racks.iter().flat_map(|racks| items(&racks.value)).enumerate() {
            if let Some(hosts) = &rack.value.hosts {
                collect(&format!("racks[{i}].hosts"), hosts);
            }
        }
        self.duplicate("host", name, &occurrences)
    }

    /// The error for two racks or pods with the same name.
    pub fn duplicate_domain(&self, name: &str) -> InputError {
        let mut occurrences = Vec::new();
        let mut collect = |field: String, domain_name: Option<&Name>, at: Place| {
            if domain_name.is_some_and(|domain_name| domain_name.0 == name) {
                occurrences.push((field, at));
            }
        };
        for (i, pod) in self.file.pods.iter().flat_map(|pods| items(&pods.value)).enumerate() {
            collect(format!("pods[{i}].name"), Some(&pod.value.name), pod.place);
        }
        for (i, rack) in self.file.racks.iter().flat_map(|racks| items(&racks.value)).enumerate() {
            collect(format!("racks[{i}].name"), rack.value.name.as_ref(), rack.place);
        }
        if occurrences.is_empty() {
            // On a mesh without racks, each host is its own domain, and the domain has the name of the host.
            return self.duplicate_host(name);
        }
        self.duplicate("rack or pod", name, &occurrences)
    }

    /// The error for two items of one `kind` with the same name. `occurrences` has the field and the place of each
    /// item that has this name in the file.
    fn duplicate(&self, kind: &str, name: &str, occurrences: &[(String, Place)]) -> InputError {
        match occurrences {
            [(_, first), .., (field, at)] => {
                let message = format!("`{name}`: the {kind} on line {} has this name", first.line);
                self.at(*at, field, message)
            }
            [(field, at)] => {
                self.at(*at, field, format!("`{name}`: an unnamed {kind} gets this name from its number"))
            }
            [] => self.about(format!("two {kind}s have the name `{name}`")),
        }
    }
}

/// The items of a list; none for a count.
fn items<T>(listing: &Listing<T>) -> &[Spanned<T>] {
    match listing {
        Listing::Each(items) => items,
        Listing::Count(_) => &[],
    }
}
