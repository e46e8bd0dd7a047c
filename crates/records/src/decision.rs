//! Decisions with the names of hosts and links, as stored and shown. Ids are valid for one fabric only, and records
//! outlive the fabric.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::sync::Arc;

use leeward_agreements::{Grant, GrantedStage};
use leeward_engine::Comparison;
use leeward_fabric::{Fabric, HostId, Nanos};
use leeward_ledger::{EntryId, Epoch};
use leeward_placement::tasks::ReevaluationRecord;
use leeward_placement::{Decision, Note, PathLoad, Reason, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::caller::Caller;
use crate::ids::DecisionId;
use crate::modes::Mode;
use crate::redecision::Redecision;
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
        let DecisionDetails { spec, hosts, racks, why, promise, redecision, beside, .. } = &self.details;
        let promise = promise.as_ref().map_or(0, |promise| {
            let stage = |stage: &GrantedStage| 256 + names(&stage.queues) + 64 * stage.limits.len();
            512 + promise.stages.iter().map(stage).sum::<usize>()
        });
        let beside = beside.as_ref().map_or(0, |beside| 512 + names(&beside.hosts));
        let redecision = redecision.as_ref().map_or(0, |_| 4_096);
        1_024 + names(hosts) + names(racks) + 512 * why.len() + spec.bytes() + promise + beside + redecision
    }

    /// Time at which the decision ends on its own: at its expiry, or at the end of its reservation.
    pub fn ends(&self) -> Option<Nanos> {
        [self.expires, self.details.reserved_until].into_iter().flatten().min()
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
    /// Mode of the kind of request at the time of the decision.
    #[serde(default)]
    pub mode: Mode,
    /// True if the default policy decided.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub by_default: bool,
    /// Choice of the other policy; `None` if there was no comparison.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<Beside>,
    /// Name of the placed thing in the client's words, such as the id of a block or of a pod.
    #[serde(rename = "ref", default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Arc<str>>,
    /// Names of hosts: in the order of a replica chain, or of the tasks.
    pub hosts: Vec<String>,
    /// Names of the racks of the hosts, each once. Decisions of earlier versions name none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub racks: Vec<String>,
    /// Host that sends the copies, if the block had copies before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
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
    /// Version of the set of promises in which priorities or limits of the guarantee last changed; 0 without a guarantee,
    /// and in decisions of earlier versions of the program.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub promise_version: u64,
    /// Last decision about the workload after its requests had changed; `None` before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redecision: Option<Redecision>,
    /// Time at which the decision ends unless it is confirmed; `None` if it needs no confirmation, or has it.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "plain")]
    pub reserved_until: Option<Nanos>,
    /// Last re-evaluation of the hosts; `None` before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reevaluation: Option<ReevaluationRecord>,
    /// Digest of the request if it had a client or a key. `None` also in decisions of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<u64>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Choice of the policy that did not decide, for comparison. Both loads are of the network before the decision.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Beside {
    /// The other policy, with its settings.
    pub policy: String,
    /// Names of the hosts that it chose; empty if it refused the request.
    pub hosts: Vec<String>,
    /// Reason for which it refused the request.
    pub refused: Option<String>,
    /// Load on the links of its choice; null if it refused the request, and for guarantees.
    pub load: Option<LinkLoad>,
    /// Load on the links of the decision; null for guarantees.
    pub decided: Option<LinkLoad>,
}

/// Load on the links that the traffic of a choice crosses.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LinkLoad {
    /// The fullest link; null if no crossed link has a known load.
    pub link: Option<String>,
    /// Utilization of the fullest link as a share of its capacity. It includes the streams of the choice, but not
    /// transfers that use the rate they get.
    pub utilization: Option<f64>,
    /// Number of crossed links that are hot.
    pub hot: u32,
    /// Number of crossed links whose load is unknown.
    pub unknown: u32,
    /// Rate of the slowest transfer of the choice, in bit/s; null without transfers.
    pub rate_bps: Option<i64>,
}

impl LinkLoad {
    /// Converts a load with ids of a fabric to names.
    pub fn of(fabric: &Fabric, load: &PathLoad) -> LinkLoad {
        LinkLoad {
            link: load.fullest.map(|(link, _)| fabric.resource_name(link)),
            // A link without capacity has an infinite utilization, which JSON cannot express.
            utilization: load.fullest.map(|(_, utilization)| utilization.min(1e6)),
            hot: load.hot,
            unknown: load.unknown,
            rate_bps: load.rate.map(|rate| rate.0),
        }
    }
}

/// Difference that Leeward's choice makes; positive if it is better.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Gain {
    /// Hot links that the choice avoids.
    pub hot_links: i64,
    /// Utilization that it saves on the fullest link, as a share of the capacity.
    pub utilization: f64,
}

impl Gain {
    /// One number to rank by: hot links first, then utilization, in thousandths.
    pub fn rank(self) -> i64 {
        self.hot_links
            .saturating_mul(1_000)
            .saturating_add((self.utilization.clamp(-1e6, 1e6) * 1_000.0).round() as i64)
    }
}

/// Effect of Leeward's choice, compared with the choice of the default policy.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Effect {
    /// It crosses fewer hot links, or as many and its fullest link is less loaded.
    Better,
    /// It loads its links alike.
    Same,
    /// It crosses more hot links, or as many and its fullest link is more loaded.
    Worse,
    /// The load of a crossed link was unknown, or the decision is about a guarantee.
    Unknown,
    /// The policy that did not decide refused the request.
    Refused,
}

impl Effect {
    /// The effect as a word.
    pub fn word(self) -> &'static str {
        match self {
            Effect::Better => "better",
            Effect::Same => "same",
            Effect::Worse => "worse",
            Effect::Unknown => "unknown",
            Effect::Refused => "refused",
        }
    }
}

impl DecisionDetails {
    /// Effect of Leeward's choice; `None` without a comparison.
    pub fn effect(&self) -> Option<Effect> {
        let beside = self.beside.as_ref()?;
        if beside.refused.is_some() {
            return Some(Effect::Refused);
        }
        let (Some(other), Some(decided)) = (&beside.load, &beside.decided) else {
            return Some(Effect::Unknown);
        };
        let (own, default) = if self.by_default { (other, decided) } else { (decided, other) };
        if own.unknown > 0 || default.unknown > 0 {
            return Some(Effect::Unknown);
        }
        let fullest = |load: &LinkLoad| load.utilization.unwrap_or(0.0);
        let order = own.hot.cmp(&default.hot).then(fullest(own).total_cmp(&fullest(default)));
        Some(match order {
            Ordering::Less => Effect::Better,
            Ordering::Equal => Effect::Same,
            Ordering::Greater => Effect::Worse,
        })
    }
}

impl Beside {
    /// Converts a comparison with ids of a fabric to names. `policy` is the label of the other policy.
    pub fn of(fabric: &Fabric, policy: &str, comparison: &Comparison<Vec<HostId>>) -> Beside {
        let name = |&host: &HostId| fabric.host_name(host).to_owned();
        let (hosts, load, refused) = match &comparison.other {
            Ok((hosts, load)) => (hosts.iter().map(name).collect(), Some(LinkLoad::of(fabric, load)), None),
            Err(refusal) => (Vec::new(), None, Some(refusal.to_string())),
        };
        let decided = Some(LinkLoad::of(fabric, &comparison.committed));
        Beside { policy: policy.to_owned(), hosts, refused, load, decided }
    }
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
    /// Sets the racks of the hosts.
    pub fn set_racks(&mut self, fabric: &Fabric) {
        let mut known = BTreeSet::new();
        let racks = self.hosts.iter().filter_map(|name| Some(fabric.rack_of(fabric.host(name)?)));
        let racks = racks.filter(|&rack| known.insert(rack));
        self.racks = racks.map(|rack| fabric.domain_name(rack).to_owned()).collect();
    }

    /// True if Leeward's policy left the decision to the default policy.
    pub fn is_fallback(&self) -> bool {
        !self.by_default && self.note.is_some()
    }

    /// True if Leeward's policy placed without any telemetry. Guarantees do not depend on telemetry.
    pub fn is_blind(&self) -> bool {
        let uses_load = matches!(self.spec, PlacementSpec::Replicas(_) | PlacementSpec::Tasks(_));
        uses_load && !self.by_default && !self.is_fallback() && self.oldest.is_none()
    }

    /// Difference that the choice of Leeward's policy makes, compared with the default policy's: hot links avoided, and
    /// utilization saved on the fullest link. `None` if it is unknown.
    pub fn gain(&self) -> Option<Gain> {
        match self.effect()? {
            Effect::Better | Effect::Same | Effect::Worse => {}
            Effect::Unknown | Effect::Refused => return None,
        }
        let beside = self.beside.as_ref()?;
        let (other, decided) = (beside.load.as_ref()?, beside.decided.as_ref()?);
        let (own, default) = if self.by_default { (other, decided) } else { (decided, other) };
        Some(Gain {
            hot_links: i64::from(default.hot) - i64::from(own.hot),
            utilization: default.utilization.unwrap_or(0.0) - own.utilization.unwrap_or(0.0),
        })
    }

    /// Job of the tasks; `None` for other requests.
    pub fn job(&self) -> Option<&str> {
        match &self.spec {
            PlacementSpec::Tasks(spec) => spec.job.as_deref().or(Some(&spec.name)),
            _ => None,
        }
    }

    /// Details without hosts, policy or reasons.
    pub fn empty(spec: PlacementSpec) -> DecisionDetails {
        DecisionDetails {
            spec,
            policy: "".into(),
            mode: Mode::On,
            by_default: false,
            beside: None,
            reference: None,
            hosts: Vec::new(),
            racks: Vec::new(),
            source: None,
            limit: None,
            epoch: Epoch::default(),
            oldest: None,
            note: None,
            why: Vec::new(),
            promise: None,
            promise_version: 0,
            redecision: None,
            reevaluation: None,
            reserved_until: None,
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
        let chosen = decision
            .why
            .iter()
            .filter(|considered| matches!(considered.verdict, Verdict::Chosen | Verdict::Preferred));
        let limit = chosen.filter_map(|considered| Some((considered, considered.value?)));
        let limit = limit.min_by_key(|&(_, value)| value).map(|(considered, value)| Limit {
            at: considered.limit.map(|limit| limit.name(fabric)),
            value_bps: value.0,
        });
        DecisionDetails {
            spec,
            policy: policy.clone(),
            mode: Mode::On,
            by_default: false,
            beside: None,
            reference: None,
            racks: Vec::new(),
            hosts: hosts.iter().map(|&host| fabric.host_name(host).to_owned()).collect(),
            source: decision.basis.source.map(|host| fabric.host_name(host).to_owned()),
            limit,
            epoch: decision.basis.epoch,
            oldest: decision.basis.oldest,
            note: decision.basis.note.map(|note| Note::text(note).to_owned()),
            why: decision.why.iter().map(|considered| Reason::of(fabric, considered)).collect(),
            promise: None,
            promise_version: 0,
            redecision: None,
            reevaluation: None,
            reserved_until: None,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::ReplicasSpec;

    fn load(hot: u32, utilization: f64) -> Option<LinkLoad> {
        let link = Some("r0/up".to_owned());
        Some(LinkLoad { link, utilization: Some(utilization), hot, unknown: 0, rate_bps: None })
    }

    #[test]
    fn the_effect_is_that_of_leewards_choice_for_either_decider() {
        let effect = |by_default, load: Option<LinkLoad>, decided, refused| {
            let beside = Beside { policy: "uniform".to_owned(), hosts: Vec::new(), refused, load, decided };
            let details = DecisionDetails::empty(PlacementSpec::Replicas(ReplicasSpec::default()));
            DecisionDetails { by_default, beside: Some(beside), ..details }.effect().map(Effect::word)
        };
        assert_eq!(effect(false, load(2, 0.9), load(1, 0.95), None), Some("better"));
        assert_eq!(effect(true, load(2, 0.9), load(1, 0.95), None), Some("worse"));
        assert_eq!(effect(true, load(1, 0.8), load(1, 0.9), None), Some("better"));
        assert_eq!(effect(true, load(1, 0.8), load(1, 0.8), None), Some("same"));
        let unknown = load(0, 0.1).map(|load| LinkLoad { unknown: 1, ..load });
        assert_eq!(effect(true, unknown, load(1, 0.8), None), Some("unknown"));
        assert_eq!(effect(false, None, load(1, 0.8), Some("no room".to_owned())), Some("refused"));
        assert_eq!(effect(false, None, None, None), Some("unknown"));
        let without = DecisionDetails::empty(PlacementSpec::Replicas(ReplicasSpec::default()));
        assert_eq!(without.effect(), None);
    }
}
