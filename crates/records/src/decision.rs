//! What was decided, by names: as it is kept, shown and stored. Numbers of hosts and links mean something only beside one
//! fabric, and a record outlives it.

use std::sync::Arc;

use leeward_fabric::{Fabric, HostId, Nanos};
use leeward_ledger::EntryId;
use leeward_placement::{Decision, Note, Reason, Verdict};
use leeward_slo::online::{Agreed, AgreedStage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::caller::Caller;
use crate::spec::{Wish, names};

/// A decision, with what was asked and what became of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Record {
    /// Its number.
    pub id: u64,
    /// When it was decided.
    pub at: Nanos,
    /// Who asked.
    pub caller: Option<Caller>,
    /// What was asked and decided.
    pub shown: Shown,
    /// What of it is in the ledger.
    pub entries: Vec<EntryId>,
    /// When it ends by itself.
    pub expires: Option<Nanos>,
    /// When its work ended.
    pub released: Option<Nanos>,
}

impl Record {
    /// How many bytes it is in words, about, and no fewer.
    pub fn bytes(&self) -> usize {
        let Shown { wish, hosts, why, promise, .. } = &self.shown;
        let promise = promise.as_ref().map_or(0, |promise| {
            let stage = |stage: &AgreedStage| 256 + names(&stage.queues) + 64 * stage.limits.len();
            512 + promise.stages.iter().map(stage).sum::<usize>()
        });
        1_024 + names(hosts) + 512 * why.len() + wish.bytes() + promise
    }

    /// How old the oldest telemetry was that played a part.
    pub fn age(&self) -> Option<Nanos> {
        self.shown.oldest.map(|oldest| self.at.since(oldest))
    }
}

/// What was asked and decided.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Shown {
    /// What was asked.
    #[serde(flatten)]
    pub wish: Wish,
    /// The policy with its settings.
    pub policy: Arc<str>,
    /// Names of hosts: of a chain in its order, of tasks in theirs.
    pub hosts: Vec<String>,
    /// Where it is narrowest, as the policy saw it; `None` if it looked at no load.
    pub limit: Option<Limit>,
    /// The state of the ledger that it rests on.
    pub epoch: u64,
    /// End of the oldest window that played a part.
    #[serde(with = "plain")]
    pub oldest: Option<Nanos>,
    /// Why the policy left the choice to another, where it did.
    pub note: Option<String>,
    /// Candidates level by level.
    pub why: Vec<Reason>,
    /// What a workload is promised: as it is now, whatever was decided since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promise: Option<Agreed>,
}

/// Where a decision is narrowest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Limit {
    /// A link, a device, or `disk` for what a disk writes at most.
    pub at: Option<String>,
    /// What ranked it there.
    pub value_bps: i64,
}

impl Shown {
    /// Details without hosts, policy or reasons.
    pub fn empty(wish: Wish) -> Shown {
        Shown {
            wish,
            policy: "".into(),
            hosts: Vec::new(),
            limit: None,
            epoch: 0,
            oldest: None,
            note: None,
            why: Vec::new(),
            promise: None,
        }
    }

    /// A decision about hosts of a fabric, in words.
    pub fn of<C>(
        fabric: &Fabric,
        policy: &Arc<str>,
        wish: Wish,
        hosts: &[HostId],
        decision: &Decision<C>,
    ) -> Shown {
        let chosen = decision.why.iter().filter(|considered| considered.verdict == Verdict::Chosen);
        let limit = chosen.filter_map(|considered| Some((considered, considered.value?)));
        let limit = limit.min_by_key(|&(_, value)| value).map(|(considered, value)| Limit {
            at: considered.limit.map(|limit| limit.name(fabric)),
            value_bps: value.0,
        });
        Shown {
            wish,
            policy: policy.clone(),
            hosts: hosts.iter().map(|&host| fabric.host_name(host).to_owned()).collect(),
            limit,
            epoch: decision.basis.epoch,
            oldest: decision.basis.oldest,
            note: decision.basis.note.map(|note| Note::text(note).to_owned()),
            why: decision.why.iter().map(|considered| Reason::of(fabric, considered)).collect(),
            promise: None,
        }
    }
}

/// Times as plain nanoseconds: exact, and small.
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
