//! Agents, connections and comparisons, as the status shows them.

use leeward_observability::{HostCounts, Metrics, silent_hosts};
use leeward_records::Effect;
use leeward_service::NetworkSnapshot;
use schemars::JsonSchema;
use serde::Serialize;

use leeward_connections::MAIN;

/// Largest number of silent hosts with their names.
const MOST_SILENT: usize = 100;
/// Kinds of decisions that may have a comparison.
const KINDS: [&str; 4] = ["replicas", "tasks", "workload", "volumes"];

/// Hosts by the telemetry of their links and devices.
#[derive(Serialize, JsonSchema)]
pub struct Agents {
    /// Number of hosts with current telemetry.
    reporting: usize,
    /// Number of hosts whose telemetry is old.
    silent: usize,
    /// Number of hosts that are down, or that have not reported since they came up or since the service began to lead.
    absent: usize,
    /// Names of the silent hosts, at most 100, in the order of the cluster.
    silent_hosts: Vec<String>,
}

impl Agents {
    /// Counts the hosts of a snapshot.
    pub fn of(snapshot: &NetworkSnapshot) -> Agents {
        let HostCounts { reporting, silent, absent, .. } = HostCounts::of(snapshot);
        Agents { reporting, silent, absent, silent_hosts: silent_hosts(snapshot, MOST_SILENT) }
    }
}

/// Connections of the main listener.
#[derive(Serialize, JsonSchema)]
pub struct Connections {
    /// Number of open connections.
    open: u64,
    /// Largest number of connections.
    limit: u64,
    /// Number of open event streams.
    streams: u64,
}

impl Connections {
    /// Reads the connections.
    pub fn of(metrics: &Metrics) -> Connections {
        let (open, limit) = metrics.connections_of(MAIN);
        Connections { open, limit, streams: u64::try_from(metrics.streams.get()).unwrap_or(0) }
    }
}

/// Comparisons of a kind of decision with the choice of the other policy, by the effect of Leeward's choice, since the
/// start of the service.
#[derive(Serialize, JsonSchema)]
pub struct Comparisons {
    /// Kind of the decisions.
    #[schemars(extend("enum" = KINDS))]
    kind: &'static str,
    /// Leeward's choice crosses fewer hot links, or as many and its fullest link is less loaded.
    better: u64,
    /// Leeward's choice loads its links alike.
    same: u64,
    /// Leeward's choice crosses more hot links, or as many and its fullest link is more loaded.
    worse: u64,
    /// The load of a crossed link was unknown, or the decision is about a guarantee.
    unknown: u64,
    /// The policy that did not decide refused the request; `one_refused` in a summary.
    refused: u64,
}

impl Comparisons {
    /// Comparisons of each kind.
    pub fn all(metrics: &Metrics) -> Vec<Comparisons> {
        let of = |kind: &'static str| {
            let count = |effect: Effect| metrics.comparisons_of(kind, effect.word());
            Comparisons {
                kind,
                better: count(Effect::Better),
                same: count(Effect::Same),
                worse: count(Effect::Worse),
                unknown: count(Effect::Unknown),
                refused: count(Effect::Refused),
            }
        };
        KINDS.into_iter().map(of).collect()
    }
}
