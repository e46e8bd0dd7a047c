//! Workloads of the exports: who they are, and what is enforced for them.

use std::net::IpAddr;

use leeward_calculus::TokenBucket;
use leeward_capture::places::{Prefix, Prefixes};
use leeward_shaping::OverLimit;
use leeward_slo::Slo;

/// Priority and limits of a workload at the server's device.
#[derive(Clone, PartialEq, Debug)]
pub struct Workload {
    /// Name, unique among the workloads of a proxy.
    pub name: String,
    /// Priority, 0 first.
    pub priority: u32,
    /// Rate limits, all enforced together, in seconds of service; each has a rate above 0. Without limits, all requests
    /// are within them.
    pub limits: Vec<TokenBucket>,
    /// Handling of requests over the limits: as by the enforcers of the thesis they come after all others (demoted), or they
    /// wait for tokens although the device may be idle (held).
    pub over: OverLimit,
    /// Promised SLO, for the counters; `None` for best effort.
    pub slo: Option<Slo>,
}

/// A workload, and the requests that belong to it.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// The workload.
    pub workload: Workload,
    /// Addresses of its client.
    pub clients: Vec<Prefix>,
    /// Index of its export; `None` for all exports of the proxy.
    pub export: Option<usize>,
}

/// Requests that belong to two workloads.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{one} and {other} have the same client and the same export, so their requests cannot be told apart: give each an \
     export of its own"
)]
pub struct SameRequests {
    /// Name of a workload.
    pub one: String,
    /// Name of the other one.
    pub other: String,
}

/// Workloads by the address of the client and the export. The value is replaced as a whole while a proxy runs. Requests
/// of all other clients are best effort.
#[derive(Default)]
pub struct Workloads {
    list: Vec<Workload>,
    /// For each export, indices of workloads by address.
    by_client: Vec<Prefixes<usize>>,
}

impl Workloads {
    /// No workloads: all requests to these exports are best effort.
    pub fn none(exports: usize) -> Workloads {
        let by_client = (0..exports).map(|_| Prefixes::default()).collect();
        Workloads { list: Vec::new(), by_client }
    }

    /// Workloads of a number of exports. An entry for an export that is not there has no requests.
    ///
    /// # Errors
    /// Fails if requests belong to two workloads.
    pub fn new(exports: usize, entries: Vec<Entry>) -> Result<Workloads, SameRequests> {
        let mut workloads = Workloads::none(exports);
        for Entry { workload, clients, export } in entries {
            let index = workloads.list.len();
            for (at, by_client) in workloads.by_client.iter_mut().enumerate() {
                if export.is_some_and(|export| export != at) {
                    continue;
                }
                let mut before = clients.iter().filter_map(|&client| by_client.insert(client, index));
                // A client may name an address twice.
                if let Some(other) = before.find(|&other| other != index) {
                    return Err(SameRequests {
                        one: workloads.list[other].name.clone(),
                        other: workload.name,
                    });
                }
            }
            workloads.list.push(workload);
        }
        Ok(workloads)
    }

    /// The workloads.
    pub fn list(&self) -> &[Workload] {
        &self.list
    }

    /// Index of the workload of a client's requests to an export; `None` for best effort.
    pub fn find(&self, client: IpAddr, export: usize) -> Option<usize> {
        self.by_client.get(export)?.find(client).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &str, client: &str, export: Option<usize>) -> Entry {
        let (name, over) = (name.to_owned(), OverLimit::Demoted);
        let workload = Workload { name, priority: 0, limits: Vec::new(), over, slo: None };
        Entry { workload, clients: vec![client.parse().unwrap()], export }
    }

    #[test]
    fn a_workload_is_found_by_client_and_export() {
        let entries = vec![
            entry("mail", "10.0.0.1", Some(0)),
            entry("web", "10.0.0.1", Some(1)),
            entry("rack", "10.0.0.0/24", None),
            entry("six", "2001:db8::1", None),
        ];
        let workloads = Workloads::new(2, entries).unwrap();
        let name = |client: &str, export| {
            let index = workloads.find(client.parse().unwrap(), export);
            index.map(|index| workloads.list()[index].name.as_str())
        };
        for (client, export, expected) in [
            ("10.0.0.1", 0, Some("mail")),
            ("10.0.0.1", 1, Some("web")),
            // An address of IPv4 as a socket of IPv6 shows it.
            ("::ffff:10.0.0.1", 1, Some("web")),
            ("10.0.0.2", 1, Some("rack")),
            ("2001:db8::1", 0, Some("six")),
            ("10.0.1.1", 0, None),
            ("10.0.0.1", 2, None),
        ] {
            assert_eq!(name(client, export), expected, "{client} at {export}");
        }
    }

    #[test]
    fn two_workloads_of_one_client_need_exports_of_their_own() {
        let entries = vec![entry("mail", "10.0.0.1", None), entry("web", "10.0.0.1", Some(1))];
        let error = Workloads::new(2, entries.clone()).err().map(|error| error.to_string());
        assert!(error.is_some_and(|error| error.starts_with("mail and web have the same client")));
        assert!(Workloads::new(1, entries).is_ok(), "the second export is not there");
    }
}
