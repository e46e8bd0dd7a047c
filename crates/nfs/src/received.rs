//! Promises of a controller as workloads of the exports.

use std::collections::{BTreeMap, BTreeSet};

use leeward_calculus::TokenBucket;
use leeward_capture::places::Prefix;
use leeward_lease::Received;
use leeward_promises::document::NfsPromise;
use leeward_shaping::OverLimit;
use leeward_slo::Slo;
use leeward_slo::file::OverName;

use crate::queue::shaping;
use crate::settings::USUAL_OVER;
use crate::workloads::{Entry, Workload};

/// What a proxy does beside the promises.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rules {
    /// Number of exports.
    pub exports: usize,
    /// Exports of single workloads: names of workloads, and indices of exports. The others use all exports.
    pub named: Vec<(String, usize)>,
    /// Handling of requests over a limit, if it is given. Otherwise it is that of a promise, or the usual one.
    pub over: Option<OverLimit>,
    /// Requests at the device at once.
    pub outstanding: u32,
}

/// Workloads of promises, and the promises that cannot be applied, by name of the workload with the reason.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Applicable {
    /// The workloads.
    pub entries: Vec<Entry>,
    /// Reasons by workload.
    pub refused: BTreeMap<String, String>,
}

impl Rules {
    /// Converts promises. Requests of workloads that are refused are best effort.
    pub fn apply(&self, received: &Received) -> Applicable {
        let mut applicable = Applicable::default();
        for promise in &received.promises.nfs {
            match self.entry(promise, received) {
                Ok(entry) => applicable.entries.push(entry),
                Err(why) => drop(applicable.refused.insert(promise.workload.clone(), why)),
            }
        }
        let same = self.same_requests(&applicable.entries);
        applicable.entries.retain(|entry| !same.contains_key(&entry.workload.name));
        applicable.refused.extend(same);
        applicable
    }

    fn entry(&self, promise: &NfsPromise, received: &Received) -> Result<Entry, String> {
        let bucket = |bucket: &leeward_models::BucketRecord| {
            TokenBucket::new(bucket.rate, bucket.burst)
                .map_err(|error| format!("a limit at storage: {error}"))
        };
        let limits = promise.limits.iter().map(bucket).collect::<Result<Vec<_>, String>>()?;
        if let Some(outstanding) = promise.outstanding.filter(|&number| number != self.outstanding) {
            return Err(format!(
                "its bound assumes {outstanding} requests at the device at once, and this proxy starts {}: give --outstanding \
                 {outstanding}, or a device file that states it",
                self.outstanding
            ));
        }
        let workload = Workload {
            name: promise.workload.clone(),
            priority: promise.priority,
            limits,
            over: self.over(promise)?,
            slo: Some(Slo { percentile: promise.slo.percentile, latency: promise.slo.latency_s }),
        };
        shaping(&workload).check().map_err(|error| error.to_string())?;
        let clients = received.of_client(&promise.workload, &promise.client)?;
        let export = self.named.iter().find(|(name, _)| *name == promise.workload).map(|&(_, export)| export);
        Ok(Entry { workload, clients, export })
    }

    /// Handling of a promise's requests over a limit.
    fn over(&self, promise: &NfsPromise) -> Result<OverLimit, String> {
        match (promise.over.map(OverLimit::from), self.over) {
            (Some(promised), Some(given)) if promised != given => {
                let name = |over: OverLimit| OverName::from(over).name();
                let (promised, given) = (name(promised), name(given));
                Err(format!("requests over a limit are promised to be {promised}, and --over is {given}"))
            }
            (promised, given) => Ok(promised.or(given).unwrap_or(USUAL_OVER)),
        }
    }

    /// Workloads whose requests cannot be told from those of others, with the reason. None of them can be applied, because
    /// requests of one would take the place of those of the other.
    fn same_requests(&self, entries: &[Entry]) -> BTreeMap<String, String> {
        let mut owners: BTreeMap<(Prefix, usize), BTreeSet<&str>> = BTreeMap::new();
        for Entry { workload, clients, export } in entries {
            let exports = export.map_or(0..self.exports, |export| export..export + 1);
            for export in exports {
                for &client in clients {
                    owners.entry((client, export)).or_default().insert(&workload.name);
                }
            }
        }
        let mut same = BTreeMap::new();
        for names in owners.values().filter(|names| names.len() > 1) {
            for &name in names {
                let other = names.iter().find(|&&other| other != name).unwrap_or(&name);
                let why = format!(
                    "{other} has the same client at the same export, so their requests cannot be told apart: give each an \
                     export of its own by --workload, or its client an address of its own by --addresses"
                );
                same.entry(name.to_owned()).or_insert(why);
            }
        }
        same
    }
}

#[cfg(test)]
mod tests {
    use leeward_lease::Addresses;
    use serde_json::{Value, json};

    use super::*;

    fn received(promises: &[(&str, &str, f64)], file: &str) -> Received {
        let promise = |&(workload, client, rate): &(&str, &str, f64)| -> Value {
            json!({
                "workload": workload, "version": 1, "client": client, "client_addresses": [], "volume": "s0:ssd",
                "priority": 0, "limits": [{ "rate": rate, "burst": 0.01 }],
                "slo": { "percentile": 99.9, "latency_s": 0.05 },
            })
        };
        let nfs: Vec<Value> = promises.iter().map(promise).collect();
        let promises = json!({
            "enforcer": "nfs@s0", "kind": "nfs", "host": "s0", "set": "1", "version": 4, "lease_s": 15.0, "net": [], "nfs": nfs,
        });
        let promises = serde_json::from_value(promises).expect("promises");
        Received::new(promises, Addresses::of("hosts", file).expect("a valid file"))
    }

    fn rules(exports: usize, named: &[(&str, usize)]) -> Rules {
        let named = named.iter().map(|&(name, export)| (name.to_owned(), export)).collect();
        Rules { exports, named, over: None, outstanding: 1 }
    }

    const HOSTS: &str = "10.0.0.1 c0\n10.0.0.2 c1\n";

    fn shown(rules: &Rules, received: &Received) -> (Vec<String>, Vec<String>) {
        let Applicable { entries, refused } = rules.apply(received);
        (entries.into_iter().map(|entry| entry.workload.name).collect(), refused.into_keys().collect())
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn promises_are_workloads_with_their_slo_and_the_handling_of_the_proxy() {
        let Applicable { entries, refused } = rules(1, &[]).apply(&received(&[("mail", "c0", 0.25)], HOSTS));
        assert!(refused.is_empty(), "{refused:?}");
        let [Entry { workload, clients, export }] = &entries[..] else { panic!("one workload") };
        assert_eq!(workload.slo, Some(Slo { percentile: 99.9, latency: 0.05 }));
        assert_eq!((workload.limits[0].rate(), workload.over), (0.25, OverLimit::Demoted));
        assert_eq!((clients.len(), *export), (1, None));
    }

    #[test]
    fn a_promise_whose_bound_assumes_another_enforcer_is_refused() {
        let applied = |more: Value, over: Option<OverLimit>, outstanding: u32| {
            let mut received = received(&[("mail", "c0", 0.25)], HOSTS);
            let mut promise = serde_json::to_value(&received.promises.nfs[0]).expect("JSON");
            promise.as_object_mut().expect("an object").extend(more.as_object().cloned().expect("an object"));
            received.promises.nfs[0] = serde_json::from_value(promise).expect("a promise");
            let Applicable { entries, refused } =
                Rules { over, outstanding, ..rules(1, &[]) }.apply(&received);
            let over = entries.first().map(|entry| entry.workload.over);
            over.ok_or_else(|| refused["mail"].clone())
        };
        use OverLimit::{Demoted, Held};
        for (promised, given, expected) in [
            (json!({}), None, Demoted),
            (json!({}), Some(Held), Held),
            (json!({ "over": "held" }), None, Held),
            (json!({ "over": "demoted" }), Some(Demoted), Demoted),
            (json!({ "outstanding": 8 }), None, Demoted),
        ] {
            assert_eq!(applied(promised, given, 8), Ok(expected));
        }
        let error = applied(json!({ "over": "held" }), Some(Demoted), 8).unwrap_err();
        assert_eq!(error, "requests over a limit are promised to be held, and --over is demoted");
        let error = applied(json!({ "outstanding": 8 }), None, 64).unwrap_err();
        assert!(
            error
                .starts_with("its bound assumes 8 requests at the device at once, and this proxy starts 64:"),
            "{error}"
        );
    }

    #[test]
    fn workloads_that_look_alike_are_all_refused_unless_they_have_exports() {
        let three = received(&[("mail", "c0", 0.1), ("web", "c0", 0.1), ("other", "c1", 0.1)], HOSTS);
        assert_eq!(shown(&rules(2, &[]), &three), (names(&["other"]), names(&["mail", "web"])));
        let named = rules(2, &[("mail", 0), ("web", 1)]);
        assert_eq!(shown(&named, &three), (names(&["mail", "web", "other"]), names(&[])));
        let half = rules(2, &[("mail", 0)]);
        assert_eq!(shown(&half, &three), (names(&["other"]), names(&["mail", "web"])));
        let why = &half.apply(&three).refused["mail"];
        assert!(why.starts_with("web has the same client at the same export"), "{why}");
        let apart = received(&[("mail", "c0", 0.1), ("web", "c0", 0.1)], "10.0.0.1 c0\n10.0.0.9 web\n");
        assert_eq!(shown(&rules(1, &[]), &apart).1, names(&[]));
    }

    #[test]
    fn promises_that_cannot_be_applied_name_their_reason() {
        let refused = |rules: &Rules, rate: f64, client: &str| {
            let applicable = rules.apply(&received(&[("mail", client, rate)], HOSTS));
            assert_eq!(applicable.entries, []);
            applicable.refused["mail"].clone()
        };
        assert_eq!(refused(&rules(1, &[]), 0.0, "c0"), "a limit of rate 0: expected above 0");
        assert!(refused(&rules(1, &[]), -1.0, "c0").starts_with("a limit at storage: "));
        assert!(refused(&rules(1, &[]), 0.1, "localhost").starts_with("host `localhost` has "));
    }
}
