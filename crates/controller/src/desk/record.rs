//! What was asked and decided, by names: as it is kept, shown and stored. Numbers of hosts and links mean something only
//! beside one fabric, and a record outlives it.

use std::sync::Arc;

use leeward_fabric::{Bytes, Cpus, Fabric, HostId, Nanos};
use leeward_ledger::EntryId;
use leeward_placement::tasks::{App, AppRequest, Class, Task, Traffic, Transfer};
use leeward_placement::{Constraints, Decision, Note, Reason, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::message::Caller;

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
    /// A decision about hosts of a fabric, in words.
    pub(crate) fn of<C>(
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
        }
    }
}

/// What was asked. Of constraints nothing is kept but tags: what they kept out is told with the candidates, and they may
/// be as long as the cluster has hosts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", content = "request", rename_all = "snake_case")]
pub enum Wish {
    /// Copies of a block.
    Replicas {
        /// Size of the block.
        size: Bytes,
        /// Who writes; null if that is outside the cluster.
        writer: Option<String>,
        /// Copies, the writer's included.
        replicas: u8,
    },
    /// Tasks.
    Tasks(TasksWish),
}

impl Wish {
    /// What kind of thing was asked for.
    pub fn kind(&self) -> &'static str {
        match self {
            Wish::Replicas { .. } => "replicas",
            Wish::Tasks(_) => "tasks",
        }
    }
}

/// Tasks that were asked for together.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct TasksWish {
    /// What people call them.
    pub name: String,
    /// The job that they belong to; null if they are one by themselves.
    pub job: Option<String>,
    /// The tasks, in order.
    pub tasks: Vec<TaskWish>,
    /// What they send each other.
    pub transfers: Vec<TransferWish>,
    /// Tags that their hosts must have.
    pub tags: Vec<String>,
}

/// A task that was asked for.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TaskWish {
    /// Its name.
    pub name: String,
    /// Processors.
    pub cpus: Cpus,
    /// Memory.
    pub memory: Bytes,
    /// What it sends out of its rack.
    pub egress: Classes,
    /// What it receives from outside its rack.
    pub ingress: Classes,
    /// Whether it may be moved.
    pub tolerant: bool,
}

/// Traffic by class of service; null is none.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Classes {
    /// Performance-critical.
    pub critical: Option<Rate>,
    /// Not critical.
    pub non_critical: Option<Rate>,
    /// Best effort.
    pub best_effort: Option<Rate>,
}

/// A rate in the mean and at its peak.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Rate {
    /// In the mean.
    pub mean_bps: u64,
    /// At its peak.
    pub peak_bps: u64,
}

/// What a task sends to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TransferWish {
    /// The position of the task that sends.
    pub from: u32,
    /// The position of the task that receives.
    pub to: u32,
    /// How much.
    pub bytes: Bytes,
}

impl From<[Traffic; Class::COUNT]> for Classes {
    fn from(by_class: [Traffic; Class::COUNT]) -> Classes {
        let [critical, non_critical, best_effort] = by_class.map(|traffic| {
            let rate = Rate { mean_bps: traffic.mean_bps, peak_bps: traffic.peak_bps };
            (traffic != Traffic::default()).then_some(rate)
        });
        Classes { critical, non_critical, best_effort }
    }
}

impl From<Classes> for [Traffic; Class::COUNT] {
    fn from(classes: Classes) -> Self {
        [classes.critical, classes.non_critical, classes.best_effort].map(|rate| {
            rate.map(|rate| Traffic { mean_bps: rate.mean_bps, peak_bps: rate.peak_bps }).unwrap_or_default()
        })
    }
}

impl TasksWish {
    /// What was read of an app.
    pub fn of(app: &App, job: Option<String>, tags: Vec<String>) -> TasksWish {
        let task = |(name, task): (&String, &Task)| TaskWish {
            name: name.clone(),
            cpus: task.cpus,
            memory: task.memory,
            egress: task.egress.into(),
            ingress: task.ingress.into(),
            tolerant: task.tolerant,
        };
        let transfer = |one: &Transfer| TransferWish { from: one.from, to: one.to, bytes: one.bytes };
        TasksWish {
            name: app.name.clone(),
            job,
            tasks: app.names.iter().zip(&app.request.tasks).map(task).collect(),
            transfers: app.request.transfers.iter().map(transfer).collect(),
            tags,
        }
    }

    /// The request with this number and job. Tags that no host has any more are passed over: what runs, runs.
    pub fn request(&self, fabric: &Fabric, id: u64, job: u64) -> AppRequest {
        let task = |wish: &TaskWish| Task {
            cpus: wish.cpus,
            memory: wish.memory,
            egress: wish.egress.into(),
            ingress: wish.ingress.into(),
            tolerant: wish.tolerant,
        };
        let transfer = |one: &TransferWish| Transfer { from: one.from, to: one.to, bytes: one.bytes };
        let tags = self.tags.iter().filter_map(|tag| fabric.tag_mask(tag)).fold(0, |all, tag| all | tag);
        AppRequest {
            id,
            job,
            tasks: self.tasks.iter().map(task).collect(),
            transfers: self.transfers.iter().map(transfer).collect(),
            constraints: Constraints { tags, ..Constraints::default() },
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
