//! Promises of a controller while a proxy runs: they replace the workloads, and are removed when the lease ends.

use std::collections::BTreeMap;

use leeward_lease::{Connection, Report, Update};
use leeward_promises::bodies::{AcknowledgedBody, AppliedWord};

use crate::proxy::Handle;
use crate::received::{Applicable, Rules};
use crate::workloads::Workloads;

/// A lease, and what a proxy made of its promises.
pub struct Control {
    connection: Connection,
    rules: Rules,
    promised: Promised,
}

/// Promises in force.
#[derive(Debug, Default)]
struct Promised {
    /// Names of the workloads.
    names: Vec<String>,
    /// Reasons for which some are not applied.
    refused: BTreeMap<String, String>,
}

impl Control {
    /// Control of a proxy by a connection.
    pub fn new(connection: Connection, rules: Rules) -> Control {
        Control { connection, rules, promised: Promised::default() }
    }

    /// Takes steps of the lease. Returns lines for the log.
    pub fn follow(&mut self, handle: &Handle) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let promised = &self.promised;
            let update = self.connection.poll(|| promised.report(handle));
            lines.extend(self.connection.take_lines());
            match update {
                None => return lines,
                Some(Update::Release) => {
                    self.promised = Promised::default();
                    let removed = handle.replace(Workloads::none(self.rules.exports));
                    lines.extend(removed.err().map(|error| format!("error: workloads not removed: {error}")));
                }
                Some(Update::Apply(received)) => {
                    let Applicable { entries, refused } = self.rules.apply(&received);
                    let is_new =
                        |(name, why): &(&String, &String)| self.promised.refused.get(*name) != Some(*why);
                    let refusals = refused.iter().filter(is_new);
                    lines.extend(refusals.map(|(name, why)| format!("error: {name} is not enforced: {why}")));
                    let names =
                        received.promises.nfs.iter().map(|promise| promise.workload.clone()).collect();
                    self.promised = Promised { names, refused };
                    // Workloads that look alike were refused above.
                    let workloads = Workloads::new(self.rules.exports, entries);
                    let replaced = workloads
                        .map_err(|error| error.to_string())
                        .and_then(|workloads| handle.replace(workloads).map_err(|error| error.to_string()));
                    if let Err(error) = replaced {
                        // Those from before stay in force.
                        self.promised.refuse_all(&error);
                        lines.push(format!("error: workloads not replaced: {error}"));
                    }
                    self.connection.applied(received.is_complete());
                }
            }
        }
    }

    /// State of the lease in a few words.
    pub fn status(&self) -> String {
        self.connection.status()
    }

    /// Removes the enforcer from the controller. Returns a line for the log if that fails.
    pub fn remove(self) -> Option<String> {
        let removed = self.connection.remove();
        removed.err().map(|rejection| format!("not removed at the controller: {}", rejection.why))
    }
}

impl Promised {
    fn refuse_all(&mut self, why: &str) {
        self.refused = self.names.iter().map(|name| (name.clone(), why.to_owned())).collect();
    }

    fn report(&self, handle: &Handle) -> Report {
        let mut counted: BTreeMap<String, _> =
            handle.counted().into_iter().map(|one| (one.workload.clone(), one)).collect();
        let body = |name: &String| {
            let refused = self.refused.get(name).cloned();
            let state = if refused.is_some() { AppliedWord::Refused } else { AppliedWord::Applied };
            let (counters, latencies) =
                counted.remove(name).map(|one| (one.counters, one.latencies)).unwrap_or_default();
            AcknowledgedBody { workload: name.clone(), state, detail: refused, counters, latencies }
        };
        Report { addresses: Vec::new(), workloads: self.names.iter().map(body).collect() }
    }
}
