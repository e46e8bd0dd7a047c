//! Placement requests with names of hosts, racks and tags, as stored with their decisions.

use std::collections::BTreeMap;

use leeward_agreements::Form;
use leeward_fabric::input::InputError;
use leeward_fabric::{Bytes, Cpus, Fabric};
pub use leeward_placement::replicas::ReplicasSpec;
use leeward_placement::tasks::{App, AppRequest, Class, Goal, Task, Traffic, Transfer};
use leeward_placement::{Apart, ApartGroup, Constraints, JobId, LabelValues, LatencyBound};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::DecisionId;
use crate::schema::WorkloadForm;

/// A placement request.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", content = "request", rename_all = "snake_case")]
#[schemars(rename = "Wish")]
pub enum PlacementSpec {
    /// Copies of a block.
    Replicas(ReplicasSpec),
    /// Tasks of an app.
    Tasks(TasksSpec),
    /// Admission of a workload whose volume exists on some host.
    Workload(WorkloadSpec),
    /// Placement of a workload's volume on a server, with the workload's SLO.
    Volumes(WorkloadSpec),
}

impl PlacementSpec {
    /// Kind of the request.
    pub fn kind(&self) -> &'static str {
        match self {
            PlacementSpec::Replicas(_) => "replicas",
            PlacementSpec::Tasks(_) => "tasks",
            PlacementSpec::Workload(_) => "workload",
            PlacementSpec::Volumes(_) => "volumes",
        }
    }

    /// Upper estimate of the size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            PlacementSpec::Replicas(ReplicasSpec {
                exclude,
                tags,
                collocate,
                existing,
                prefer,
                labels,
                ..
            }) => {
                let lists = [exclude, tags, collocate, existing, prefer];
                lists.into_iter().map(|list| names(list)).sum::<usize>() + label_bytes(labels)
            }
            PlacementSpec::Tasks(TasksSpec {
                name,
                tasks,
                transfers,
                tags,
                exclude,
                labels,
                apart_from,
                latency,
                ..
            }) => {
                let task = |task: &TaskSpec| 640 + task.name.len();
                let tasks: usize = tasks.iter().map(task).sum();
                let apart: usize = apart_from.keys().map(|job| job.len() + 64).sum();
                name.len()
                    + tasks
                    + 96 * transfers.len()
                    + 32 * latency.len()
                    + names(tags)
                    + names(exclude)
                    + apart
                    + label_bytes(labels)
            }
            PlacementSpec::Workload(WorkloadSpec { workload })
            | PlacementSpec::Volumes(WorkloadSpec { workload }) => {
                workload.iter().map(|(name, value)| name.len() + 8 + bytes(value)).sum()
            }
        }
    }

    /// The same request without name lists that are too long to store.
    #[must_use]
    pub fn for_storage(self) -> PlacementSpec {
        match self {
            PlacementSpec::Replicas(spec) => {
                let (exclude, exclude_dropped) = stored_names(&spec.exclude);
                let (collocate, collocate_dropped) = stored_names(&spec.collocate);
                let (existing, existing_dropped) = stored_names(&spec.existing);
                let (prefer, prefer_dropped) = stored_names(&spec.prefer);
                let dropped = exclude_dropped || collocate_dropped || existing_dropped || prefer_dropped;
                let (truncated, blocks_left) = (spec.truncated || dropped, None);
                let spec =
                    ReplicasSpec { exclude, collocate, existing, prefer, truncated, blocks_left, ..spec };
                PlacementSpec::Replicas(spec)
            }
            PlacementSpec::Tasks(spec) => {
                let (exclude, dropped) = stored_names(&spec.exclude);
                PlacementSpec::Tasks(TasksSpec { exclude, truncated: spec.truncated || dropped, ..spec })
            }
            spec => spec,
        }
    }

    /// The workload, if the request is about one.
    pub fn workload(&self) -> Option<&WorkloadSpec> {
        match self {
            PlacementSpec::Workload(spec) | PlacementSpec::Volumes(spec) => Some(spec),
            PlacementSpec::Replicas(_) | PlacementSpec::Tasks(_) => None,
        }
    }
}

/// Size of labels, in bytes.
fn label_bytes(labels: &LabelValues) -> usize {
    labels.iter().map(|(key, values)| 64 + key.len() + names(values)).sum()
}

/// Size of a list of names, in bytes.
pub(crate) fn names(names: &[String]) -> usize {
    names.iter().map(|name| name.len() + 8).sum()
}

/// Approximate size of a JSON value, in bytes.
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

/// Maximum length of a stored list of names. A request may name every host of the cluster. The candidates, which are
/// stored with the decision, show most of the effect of a longer list.
const MAX_NAMES: usize = 32;

/// The list of names to store, and true if the list is empty because it was too long.
fn stored_names(names: &[String]) -> (Vec<String>, bool) {
    if names.len() <= MAX_NAMES { (names.to_vec(), false) } else { (Vec::new(), true) }
}

/// Placement or admission of a workload.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "WorkloadWish")]
pub struct WorkloadSpec {
    /// Fields of the workload, as in a workload file.
    #[schemars(with = "WorkloadForm")]
    pub workload: Form,
}

impl WorkloadSpec {
    /// Name of the workload.
    pub fn name(&self) -> &str {
        self.workload.get("name").and_then(Value::as_str).unwrap_or_default()
    }
}

fn is_false(value: &bool) -> bool {
    !*value
}

fn is_time(goal: &Goal) -> bool {
    *goal == Goal::Time
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// Placement of an app's tasks.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TasksWish")]
pub struct TasksSpec {
    /// Name of the app.
    pub name: String,
    /// Job of the tasks; null if they form their own job.
    pub job: Option<String>,
    /// The tasks, in order.
    pub tasks: Vec<TaskSpec>,
    /// Transfers between the tasks.
    pub transfers: Vec<TransferSpec>,
    /// Tags that the hosts must have.
    pub tags: Vec<String>,
    /// Labels that the hosts must have, each with one of the values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: LabelValues,
    /// Level at which the tasks of the job are apart; null if they may share hosts and racks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart: Option<Apart>,
    /// Groups of tasks that stay apart from each other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub apart_groups: Vec<ApartGroup>,
    /// Bounds on round-trip times between tasks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency: Vec<LatencyBound>,
    /// Goal of the placement that comes first.
    #[serde(default, skip_serializing_if = "is_time")]
    pub goal: Goal,
    /// Level at which the tasks are apart from those of other jobs, by job.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub apart_from: BTreeMap<String, Apart>,
    /// Hosts, racks and pods to avoid.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<String>,
    /// True if `exclude` had more than 32 names. Such a list is not stored.
    #[serde(rename = "forgotten", default, skip_serializing_if = "is_false")]
    pub truncated: bool,
}

/// A task of a placement.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TaskWish")]
pub struct TaskSpec {
    /// Name of the task.
    pub name: String,
    /// Processors of the task.
    pub cpus: Cpus,
    /// Memory of the task.
    pub memory: Bytes,
    /// Traffic that leaves the rack.
    pub egress: Classes,
    /// Traffic that enters the rack.
    pub ingress: Classes,
    /// True if the task may be moved.
    pub tolerant: bool,
}

/// Traffic by class of service; null for none.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Classes {
    /// Performance-critical traffic.
    pub critical: Option<Rate>,
    /// Non-critical traffic.
    pub non_critical: Option<Rate>,
    /// Best-effort traffic.
    pub best_effort: Option<Rate>,
}

/// Average and peak rate.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Rate {
    /// Average rate, in bits per second.
    pub mean_bps: u64,
    /// Peak rate, in bits per second.
    pub peak_bps: u64,
}

/// Transfer from one task to another.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "TransferWish")]
pub struct TransferSpec {
    /// Index of the sending task.
    pub from: u32,
    /// Index of the receiving task.
    pub to: u32,
    /// Size of the transfer.
    pub bytes: Bytes,
    /// Phase of the app, from 0, in which it is made.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub phase: u32,
}

impl From<&TransferSpec> for Transfer {
    fn from(spec: &TransferSpec) -> Transfer {
        Transfer { from: spec.from, to: spec.to, bytes: spec.bytes, phase: spec.phase }
    }
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

impl TasksSpec {
    /// Converts a parsed app.
    pub fn of(app: &App, job: Option<String>, tags: Vec<String>) -> TasksSpec {
        let task = |(name, task): (&String, &Task)| TaskSpec {
            name: name.clone(),
            cpus: task.cpus,
            memory: task.memory,
            egress: task.egress.into(),
            ingress: task.ingress.into(),
            tolerant: task.tolerant,
        };
        let transfer = |transfer: &Transfer| TransferSpec {
            from: transfer.from,
            to: transfer.to,
            bytes: transfer.bytes,
            phase: transfer.phase,
        };
        TasksSpec {
            name: app.name.clone(),
            job,
            tasks: app.names.iter().zip(&app.request.tasks).map(task).collect(),
            transfers: app.request.transfers.iter().map(transfer).collect(),
            tags,
            apart_groups: app.request.constraints.apart_groups.clone(),
            latency: app.request.constraints.latency.clone(),
            goal: app.request.goal,
            ..TasksSpec::default()
        }
    }

    /// Rejects names of hosts, racks, pods, tags and labels that the cluster does not have.
    ///
    /// # Errors
    /// An [`InputError`] with the field that has an unknown name.
    pub fn check(&self, fabric: &Fabric) -> Result<(), InputError> {
        let mut constraints = Constraints::named(fabric, &self.exclude, &self.tags)?;
        constraints.require_labels(fabric, &self.labels)
    }

    /// The request for the policy, with this id and job. The method ignores names that the cluster no longer has, because
    /// the tasks of a stored request may still run. Constraints without a tag or a label of the request are incomplete.
    pub fn request(&self, fabric: &Fabric, id: DecisionId, job: JobId) -> AppRequest {
        let task = |spec: &TaskSpec| Task {
            cpus: spec.cpus,
            memory: spec.memory,
            egress: spec.egress.into(),
            ingress: spec.ingress.into(),
            tolerant: spec.tolerant,
        };
        let masks: Vec<Option<u64>> = self.tags.iter().map(|tag| fabric.tag_mask(tag)).collect();
        let tags = masks.iter().flatten().fold(0, |all, tag| all | tag);
        let excluded_hosts = self.exclude.iter().filter_map(|name| fabric.host(name)).collect();
        let domains = self.exclude.iter().filter(|name| fabric.host(name).is_none());
        let excluded_domains = domains.filter_map(|name| fabric.domain(name)).collect();
        let (apart, avoids_jobs) = (self.apart, !self.apart_from.is_empty());
        let mut constraints = Constraints {
            tags,
            excluded_hosts,
            excluded_domains,
            apart,
            apart_groups: self.apart_groups.clone(),
            latency: self.latency.clone(),
            avoids_jobs,
            incomplete: self.truncated || masks.contains(&None),
            ..Constraints::default()
        };
        for (key, values) in &self.labels {
            let one = LabelValues::from([(key.clone(), values.clone())]);
            constraints.incomplete |= constraints.require_labels(fabric, &one).is_err();
        }
        constraints.sort();
        AppRequest {
            id: id.0,
            job,
            tasks: self.tasks.iter().map(task).collect(),
            transfers: self.transfers.iter().map(Transfer::from).collect(),
            constraints,
            goal: self.goal,
        }
    }
}
