//! Decisions with the names of hosts and links, as stored and shown. Ids are valid for one fabric only, and records
//! outlive the fabric.

use std::sync::Arc;

use leeward_fabric::{Fabric, HostId, Nanos};
use leeward_ledger::{EntryId, Epoch};
use leeward_placement::{Decision, Note, Reason, Verdict};
use leeward_slo::online::{Grant, GrantedStage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::caller::Caller;
use crate::ids::DecisionId;
use crate::spec::{PlacementSpec, names};

/// A decision with its request and its current state.
#[derive(Clone, PartialEq, Debug)]
pub struct DecisionRecord {
    /// Id of the decision.
    pub id: DecisionId,
    /// Time of the decision.
    pub at: Nanos,
    /// Client or key of the request.
    pub caller: Option<Caller>,
    /// Request and result.
    pub details: DecisionDetails,
    /// Ledger entries of the decision.
    pub entries: Vec<EntryId>,
    /// Time at which the decision expires on its own.
    pub expires: Option<Nanos>,
    /// Time at which its work ended.
    pub released: Option<Nanos>,
}

impl DecisionRecord {
    /// Upper estimate of the size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        let DecisionDetails { spec, hosts, why, promise, .. } = &self.details;
        let promise = promise.as_ref().map_or(0, |promise| {
            let stage = |stage: &GrantedStage| 256 + names(&stage.queues) + 64 * stage.limits.len();
            512 + promise.stages.iter().map(stage).sum::<usize>()
        });
        1_024 + names(hosts) + 512 * why.len() + spec.bytes() + promise
    }

    /// Age of the oldest telemetry used.
    pub fn age(&self) -> Option<Nanos> {
        self.details.oldest.map(|oldest| self.at.since(oldest))
    }
}

/// Request and result of a decision.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct DecisionDetails {
    /// The request.
    #[serde(flatten)]
    pub spec: PlacementSpec,
    /// Policy with its settings.
    pub policy: Arc<str>,
    /// Names of hosts: in the order of a replica chain, or of the tasks.
    pub hosts: Vec<String>,
    /// Bottleneck, with the policy's rating; `None` if the policy ignored load.
    pub limit: Option<Limit>,
    /// Ledger epoch of the decision's view.
    pub epoch: Epoch,
    /// End of the oldest telemetry window used.
    #[serde(with = "plain")]
    pub oldest: Option<Nanos>,
    /// Reason why the policy used the default policy instead.
    pub note: Option<String>,
    /// Candidates, level by level.
    pub why: Vec<Reason>,
    /// Current guarantee of a workload; later decisions may have changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promise: Option<Grant>,
    /// Digest of the request if it had a client or a key. `None` also in decisions of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<u64>,
}

/// Bottleneck of a decision.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    /// A link, a device, or `disk` for the write rate of a disk.
    pub at: Option<String>,
    /// Value that ranked the choice, in bits per second.
    pub value_bps: i64,
}

impl DecisionDetails {
    /// Details without hosts, policy or reasons.
    pub fn empty(spec: PlacementSpec) -> DecisionDetails {
        DecisionDetails {
            spec,
            policy: "".into(),
            hosts: Vec::new(),
            limit: None,
            epoch: Epoch::default(),
            oldest: None,
            note: None,
            why: Vec::new(),
            promise: None,
            digest: None,
        }
    }

    /// Converts a decision about hosts of a fabric to names.
    pub fn of<C>(
        fabric: &Fabric,
        policy: &Arc<str>,
        spec: PlacementSpec,
        hosts: &[HostId],
        decision: &Decision<C>,
    ) -> DecisionDetails {
        let chosen = decision.why.iter().filter(|considered| considered.verdict == Verdict::Chosen);
        let limit = chosen.filter_map(|considered| Some((considered, considered.value?)));
        let limit = limit.min_by_key(|&(_, value)| value).map(|(considered, value)| Limit {
            at: considered.limit.map(|limit| limit.name(fabric)),
            value_bps: value.0,
        });
        DecisionDetails {
            spec,
            policy: policy.clone(),
            hosts: hosts.iter().map(|&host| fabric.host_name(host).to_owned()).collect(),
            limit,
            epoch: decision.basis.epoch,
            oldest: decision.basis.oldest,
            note: decision.basis.note.map(|note| Note::text(note).to_owned()),
            why: decision.why.iter().map(|considered| Reason::of(fabric, considered)).collect(),
            promise: None,
            digest: None,
        }
    }
}

/// Times as plain nanoseconds: exact and compact.
mod plain {
    use leeward_fabric::Nanos;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(at: &Option<Nanos>, serializer: S) -> Result<S::Ok, S::Error> {
        at.map(|at| at.0).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Nanos>, D::Error> {
        Ok(Option::deserialize(deserializer)?.map(Nanos))
    }
}
