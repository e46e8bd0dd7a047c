//! Promises as enforcers apply them: the version of the whole set, and enforcers with their last acknowledgement.

use std::collections::BTreeMap;
use std::net::IpAddr;

use leeward_fabric::Nanos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Version of the set of promises. It never goes back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PromisesVersion {
    /// Identifies the set: the time of its first promise, in nanoseconds of engine time; 0 before it. A store without
    /// durability starts a new set with each run of the service.
    pub set: u64,
    /// Number of changes of the set.
    pub number: u64,
}

impl PromisesVersion {
    /// Version after this one, at the time `now`.
    #[must_use]
    pub fn next(self, now: Nanos) -> PromisesVersion {
        let set = if self.number == 0 { now.0.max(1) } else { self.set };
        PromisesVersion { set, number: self.number.saturating_add(1) }
    }
}

/// Kind of an enforcer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EnforcerKind {
    /// Priorities and rate limits of packets that leave a host.
    Net,
    /// Priorities and rate limits of requests to the volumes of a server, by an NFS proxy.
    Nfs,
}

impl EnforcerKind {
    /// All kinds.
    pub const ALL: [EnforcerKind; 2] = [EnforcerKind::Net, EnforcerKind::Nfs];

    /// Name in the API.
    pub fn name(self) -> &'static str {
        match self {
            EnforcerKind::Net => "net",
            EnforcerKind::Nfs => "nfs",
        }
    }
}

/// A program that applies the promises of one host, with its last acknowledgement.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Enforcer {
    /// Name of the enforcer.
    pub name: String,
    /// Kind of the enforcer.
    pub kind: EnforcerKind,
    /// Host whose promises it applies.
    pub host: String,
    /// Device whose volumes it serves; `None` for all volumes of the host.
    #[serde(default)]
    pub device: Option<String>,
    /// Addresses of the host.
    #[serde(default)]
    pub addresses: Vec<IpAddr>,
    /// Length of its lease.
    #[serde(with = "plain")]
    pub ttl: Nanos,
    /// Number of the version that it has applied; `None` if it has applied none since it began.
    pub applied: Option<u64>,
    /// State of each workload that it applies, by name.
    pub workloads: BTreeMap<String, AppliedState>,
    /// True if its lease has run out.
    pub expired: bool,
    /// Time since which its lease holds, or since which it has run out.
    #[serde(with = "plain")]
    pub since: Nanos,
}

/// State of a promise at an enforcer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AppliedState {
    /// Priorities and limits are in force.
    Applied,
    /// The enforcer cannot apply them, for this reason.
    Refused(String),
    /// They were changed by another program: the difference.
    Drifted(String),
}

/// Times as plain nanoseconds: exact and compact.
mod plain {
    use leeward_fabric::Nanos;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(time: &Nanos, serializer: S) -> Result<S::Ok, S::Error> {
        time.0.serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Nanos, D::Error> {
        u64::deserialize(deserializer).map(Nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_keeps_its_identity_and_counts_up() {
        let first = PromisesVersion::default().next(Nanos(7));
        assert_eq!(first, PromisesVersion { set: 7, number: 1 });
        assert_eq!(first.next(Nanos(9)), PromisesVersion { set: 7, number: 2 });
        assert_eq!(PromisesVersion::default().next(Nanos(0)).set, 1, "0 stands for a set without promises");
    }

    #[test]
    fn an_enforcer_round_trips_with_times_to_the_nanosecond() {
        let enforcer = Enforcer {
            name: "net@r0h0".to_owned(),
            kind: EnforcerKind::Net,
            host: "r0h0".to_owned(),
            device: None,
            addresses: vec!["10.0.0.1".parse().expect("an address"), "fd00::1".parse().expect("an address")],
            ttl: Nanos(15_000_000_001),
            applied: Some(3),
            workloads: BTreeMap::from([
                ("a".to_owned(), AppliedState::Applied),
                ("b".to_owned(), AppliedState::Refused("no HTB".to_owned())),
            ]),
            expired: true,
            since: Nanos(u64::MAX / 2 + 1),
        };
        let text = serde_json::to_string(&enforcer).expect("it is serializable");
        assert_eq!(serde_json::from_str::<Enforcer>(&text).expect("the same text"), enforcer);
    }
}
