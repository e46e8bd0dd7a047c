//! What was asked, by names, as it is kept beside what was decided.

use leeward_fabric::input::InputError;
use leeward_fabric::{Bytes, Cpus, Fabric};
use leeward_placement::Constraints;
use leeward_placement::replicas::{Form, ReplicaRequest};
use leeward_placement::tasks::{App, AppRequest, Class, Task, Traffic, Transfer};
use leeward_slo::online;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::schema::WorkloadForm;

/// What was asked.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", content = "request", rename_all = "snake_case")]
pub enum Wish {
    /// Copies of a block.
    Replicas(ReplicasWish),
    /// Tasks.
    Tasks(TasksWish),
    /// An SLO for a workload whose volume is somewhere.
    Workload(WorkloadWish),
    /// A server for the volume of a workload, and its SLO.
    Volumes(WorkloadWish),
}

impl Wish {
    /// What kind of thing was asked for.
    pub fn kind(&self) -> &'static str {
        match self {
            Wish::Replicas(_) => "replicas",
            Wish::Tasks(_) => "tasks",
            Wish::Workload(_) => "workload",
            Wish::Volumes(_) => "volumes",
        }
    }

    /// How many bytes it is in words, about, and no fewer.
    pub fn bytes(&self) -> usize {
        match self {
            Wish::Replicas(ReplicasWish { exclude, tags, collocate, .. }) => {
                names(exclude) + names(tags) + names(collocate)
            }
            Wish::Tasks(TasksWish { name, tasks, transfers, tags, exclude, .. }) => {
                let task = |task: &TaskWish| 640 + task.name.len();
                let tasks: usize = tasks.iter().map(task).sum();
                name.len() + tasks + 96 * transfers.len() + names(tags) + names(exclude)
            }
            Wish::Workload(WorkloadWish { workload }) | Wish::Volumes(WorkloadWish { workload }) => {
                workload.iter().map(|(name, value)| name.len() + 8 + bytes(value)).sum()
            }
        }
    }

    /// The workload that was asked for, where it was one.
    pub fn workload(&self) -> Option<&WorkloadWish> {
        match self {
            Wish::Workload(wish) | Wish::Volumes(wish) => Some(wish),
            Wish::Replicas(_) | Wish::Tasks(_) => None,
        }
    }
}

/// Bytes of names in a list.
pub(crate) fn names(names: &[String]) -> usize {
    names.iter().map(|name| name.len() + 8).sum()
}

/// Bytes of JSON, about.
fn bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 8,
        Value::Array(all) => 8 + all.iter().map(bytes).sum::<usize>(),
        Value::Object(all) => {
            8 + all.iter().map(|(name, value)| name.len() + 8 + bytes(value)).sum::<usize>()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 24,
    }
}

/// Names of hosts that are kept of a request: they may be as many as the cluster has hosts, and of most what they kept out
/// is told with the candidates.
const NAMES: usize = 32;

/// Names in a request, if they are few; and whether they were too many.
fn few(names: &[String]) -> (Vec<String>, bool) {
    if names.len() <= NAMES { (names.to_vec(), false) } else { (Vec::new(), true) }
}

/// Copies of a block that were asked for.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ReplicasWish {
    /// Size of the block.
    pub size: Bytes,
    /// Who writes; null if that is outside the cluster.
    pub writer: Option<String>,
    /// Copies, the writer's included.
    pub replicas: u8,
    /// Fault domains besides the first copy's that must hold one, where that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fault_domains: Option<u8>,
    /// Hosts, racks and pods that must hold none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// Tags that the hosts must have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Hosts of related files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collocate: Vec<String>,
    /// How much more of its room, as a share, a host may fill than hosts do in the mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_imbalance: Option<f64>,
    /// Whether `exclude` or `collocate` had more than 32 names, which are not kept.
    #[serde(default, skip_serializing_if = "is_false")]
    pub forgotten: bool,
}

fn is_false(value: &bool) -> bool {
    !*value
}

impl ReplicasWish {
    /// The same without names that are too many to be kept.
    #[must_use]
    pub fn kept(self) -> ReplicasWish {
        let ((exclude, first), (collocate, second)) = (few(&self.exclude), few(&self.collocate));
        ReplicasWish { exclude, collocate, forgotten: self.forgotten || first || second, ..self }
    }

    /// The request with this number.
    ///
    /// # Errors
    /// Names that the cluster does not have any more.
    pub fn request(&self, fabric: &Fabric, id: u64) -> Result<ReplicaRequest, InputError> {
        let form = Form {
            size: self.size,
            writer: self.writer.as_deref(),
            replicas: self.replicas,
            fault_domains: self.fault_domains,
            exclude: &self.exclude,
            tags: &self.tags,
            collocate: &self.collocate,
            max_imbalance: self.max_imbalance,
        };
        form.request(fabric, id)
    }
}

/// A workload that was asked for.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadWish {
    /// Its fields, as in a workload file.
    #[schemars(with = "WorkloadForm")]
    pub workload: online::Form,
}

impl WorkloadWish {
    /// What it is called.
    pub fn name(&self) -> &str {
        self.workload.get("name").and_then(Value::as_str).unwrap_or_default()
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
    /// Hosts, racks and pods that must hold none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// Whether `exclude` had more than 32 names, which are not kept.
    #[serde(default, skip_serializing_if = "is_false")]
    pub forgotten: bool,
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
            exclude: Vec::new(),
            forgotten: false,
        }
    }

    /// The same without some hosts, racks and pods.
    #[must_use]
    pub fn without(self, exclude: &[String]) -> TasksWish {
        let (exclude, forgotten) = few(exclude);
        TasksWish { exclude, forgotten, ..self }
    }

    /// The request with this number and job. Names and tags that the cluster has no more are passed over: what runs, runs.
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
        let excluded_hosts = self.exclude.iter().filter_map(|name| fabric.host(name)).collect();
        let domains = self.exclude.iter().filter(|name| fabric.host(name).is_none());
        let excluded_domains = domains.filter_map(|name| fabric.domain(name)).collect();
        AppRequest {
            id,
            job,
            tasks: self.tasks.iter().map(task).collect(),
            transfers: self.transfers.iter().map(transfer).collect(),
            constraints: Constraints { tags, excluded_hosts, excluded_domains, ..Constraints::default() },
        }
    }
}
