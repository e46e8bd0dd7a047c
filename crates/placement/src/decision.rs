//! Result of a policy: the choice, its basis and its candidates, or the refusal.

use leeward_fabric::{DomainId, Fabric, HostId, Load, Nanos, ResourceId};
use leeward_ledger::{Epoch, Transaction, View};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Constraint;
use crate::estimate::Estimate;

/// A decision of a policy.
#[derive(Clone, PartialEq, Debug)]
pub struct Decision<C> {
    /// The chosen hosts or moves.
    pub choice: C,
    /// Ledger transaction of the decision.
    pub change: Transaction,
    /// Basis of the decision.
    pub basis: Basis,
    /// Candidates, best first, level by level; empty unless an explanation was requested.
    pub why: Vec<Considered>,
}

/// Basis of a decision.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Basis {
    /// Epoch of the ledger.
    pub epoch: Epoch,
    /// End of the oldest telemetry window used; `None` if the decision used none.
    pub oldest: Option<Nanos>,
    /// Name of the policy.
    pub policy: &'static str,
    /// Reason for which the policy left the choice to the default policy; `None` if it did not.
    pub note: Option<Note>,
    /// Improvements that other choices may still bring. `None` if the policy does not know them.
    pub gaps: Option<Gaps>,
    /// Model of transfer rates for an app; `None` if none was used.
    pub estimate: Option<Estimate>,
    /// Host that sends the copies, if the block has existing copies.
    pub source: Option<HostId>,
}

/// Largest possible improvement of each goal, as a share of its value; 0 means that the decision is proven optimal, and
/// infinity that nothing is known. The gap of the goal that comes second is that among choices which are equal in the
/// first.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Gaps {
    /// Gap of the completion time.
    pub time: f64,
    /// Gap of the cost of the hosts; `None` if no host has a cost.
    pub cost: Option<f64>,
}

impl Gaps {
    /// True if the decision is proven optimal in every goal.
    pub fn proven(&self) -> bool {
        self.time == 0.0 && self.cost.is_none_or(|cost| cost == 0.0)
    }
}

/// Reason for which a policy left a choice to the default policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Note {
    /// The block is smaller than the policy's threshold.
    Small,
    /// No load is known, and the settings allow the default policy.
    NoTelemetry,
}

impl Note {
    /// Note as text.
    pub fn text(self) -> &'static str {
        match self {
            Note::Small => "smaller than the policy's threshold: placed as uniform does",
            Note::NoTelemetry => "no telemetry: placed as uniform does",
        }
    }
}

/// One candidate of a decision.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Considered {
    /// The host or domain.
    pub candidate: Candidate,
    /// Bottleneck of the candidate, if it was examined.
    pub limit: Option<Limit>,
    /// Rate that ranks the candidate, in bit/s.
    pub value: Option<Load>,
    /// Source of the load of the candidate's link, if it was examined.
    pub sight: Option<Sight>,
    /// Objectives that rank the host for a task; `None` if the candidate was not ranked for a task.
    pub objectives: Option<Objectives>,
    /// Result for the candidate.
    pub verdict: Verdict,
}

/// Objectives of a host for a task, in lexicographic order; less is better.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Objectives {
    /// Position of the task in its request.
    pub task: u32,
    /// Number of the job's tasks in the host's rack.
    pub in_rack: u32,
    /// Load of the host's processors and memory, or of its rack's links, as a share. The load includes the task.
    pub balance: f64,
    /// Load of the host's processors and memory with the task, as a share, if it decides between racks and hosts with
    /// equally loaded links; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<f64>,
    /// Processors left on the host with the task, in thousandths.
    pub left: u64,
}

impl Considered {
    /// Entry of a host that was chosen without a rate or rank.
    pub(crate) fn chosen(host: HostId) -> Considered {
        Considered::unranked(host, Verdict::Chosen)
    }

    /// Entry of a host that has no rate and no rank.
    pub(crate) fn unranked(host: HostId, verdict: Verdict) -> Considered {
        let candidate = Candidate::Host(host);
        Considered { candidate, limit: None, value: None, sight: None, objectives: None, verdict }
    }
}

/// Bottleneck of a candidate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// A link or a device.
    Resource(ResourceId),
    /// Largest write rate of a disk.
    DiskWriteCap,
}

impl Limit {
    /// Name of the resource in `fabric`, or `disk`.
    pub fn name(self, fabric: &Fabric) -> String {
        match self {
            Limit::Resource(resource) => fabric.resource_name(resource),
            Limit::DiskWriteCap => "disk".to_owned(),
        }
    }
}

/// Source of a link's load.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sight {
    /// The link's own counter.
    Counter,
    /// Sum over the links below it, traffic inside the rack included.
    Derived,
    /// The load is unknown.
    Unseen,
}

/// End of the oldest window among the links with known load; `None` if no load is known.
pub fn oldest_of(view: &View<'_>, links: impl IntoIterator<Item = ResourceId>) -> Option<Nanos> {
    let seen = links.into_iter().filter(|&link| view.measured(link).is_some());
    seen.filter_map(|link| view.window_end(link)).min()
}

/// Source of a link's load in `view`.
pub(crate) fn sight(view: &View<'_>, link: ResourceId) -> Sight {
    match view.measured(link) {
        None => Sight::Unseen,
        Some(_) if view.is_derived(link) => Sight::Derived,
        Some(_) => Sight::Counter,
    }
}

/// A candidate of a decision.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Candidate {
    /// A rack or pod, at an upper level of the tree.
    Domain(DomainId),
    /// A host.
    Host(HostId),
}

/// Result for a candidate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The policy chose it.
    Chosen,
    /// It was chosen because the request prefers it.
    Preferred,
    /// Another candidate ranked higher, or won the tie.
    Outranked,
    /// A constraint excludes it.
    Refused(Constraint),
}

/// Reason for a refused request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The policy needs recent telemetry and has none.
    NoTelemetry {
        /// End of the newest window of any candidate; `None` if no candidate ever reported.
        newest: Option<Nanos>,
    },
    /// The writer is not a host of the cluster.
    UnknownWriter,
    /// No host with an existing copy is up, and no writer is given.
    NoSource,
    /// A stripe cannot be rebuilt.
    TooFewChunks {
        /// Number of hosts with a chunk that are up.
        up: usize,
        /// Number of chunks that are needed.
        needed: usize,
    },
    /// The copies are too few for the required fault domains.
    TooFewCopies {
        /// Number of copies, or chunks.
        replicas: u8,
        /// Required number of fault domains. For copies, domains besides the first copy's; for chunks, domains that may
        /// be lost.
        fault_domains: u8,
    },
    /// The policy ranks racks by storage, and no rack has a known storage size.
    NoStorage,
    /// The policy ranks racks by their links, and the cluster has none.
    NoRackLinks,
    /// The linear program would have too many variables.
    TooLarge {
        /// Number of variables.
        variables: usize,
        /// Largest number of variables.
        most: usize,
    },
    /// The solver failed.
    SolverFailed {
        /// Message of the solver.
        message: String,
    },
    /// The policy declined the request.
    Declined {
        /// Reason of the policy.
        reason: String,
    },
    /// No policy is configured for this kind of request.
    NoPolicy {
        /// Kind of request.
        kind: &'static str,
    },
    /// No host can take one of the tasks, given the places of the earlier ones.
    NoHost {
        /// Position of the task in the request.
        task: u32,
        /// True if no host could take the task even without the other tasks; if false, a placement may exist.
        alone: bool,
        /// A task from which the hosts with room are too far for the bound on the round-trip time; `None` if no such bound
        /// excludes a host.
        far_from: Option<u32>,
        /// Number of hosts excluded by each constraint.
        by_constraint: Vec<(Constraint, u32)>,
    },
    /// No assignment fits all tasks together (proven).
    NotTogether {
        /// Two tasks whose bound on the round-trip time the greedy policy did not meet; `None` if it failed otherwise.
        far: Option<(u32, u32)>,
    },
    /// No candidate is eligible.
    NoCandidate {
        /// Number of candidates excluded by each constraint.
        by_constraint: Vec<(Constraint, u32)>,
    },
}

impl Refusal {
    /// The refusal as text, with the names of tasks instead of their positions.
    pub fn with_task_names(&self, names: &[impl AsRef<str>]) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut text, &|task| names[task as usize].as_ref().to_owned());
        text
    }

    /// Writes the refusal, with a name for each task.
    fn write(&self, f: &mut dyn std::fmt::Write, name: &dyn Fn(u32) -> String) -> std::fmt::Result {
        match self {
            Refusal::NoTelemetry { newest: None } => {
                f.write_str("no telemetry: no candidate's load was ever reported")
            }
            Refusal::NoTelemetry { newest: Some(at) } => {
                write!(f, "no recent telemetry: the newest report of any candidate ends at {at}")
            }
            Refusal::TooFewCopies { replicas, fault_domains } => {
                write!(
                    f,
                    "{replicas} copies or chunks cannot survive the loss of {fault_domains} fault domains"
                )
            }
            Refusal::NoRackLinks => {
                f.write_str("the policy ranks racks by their uplinks and downlinks, and a mesh has none")
            }
            Refusal::TooLarge { variables, most } => {
                write!(f, "too large to solve: {variables} variables, at most {most} are allowed")
            }
            Refusal::SolverFailed { message: text } | Refusal::Declined { reason: text } => f.write_str(text),
            Refusal::NoPolicy { kind } => write!(f, "no policy is configured for {kind}"),
            Refusal::NoSource => {
                f.write_str("no host in `existing` is up, so none can send the copies; give a `writer`")
            }
            Refusal::TooFewChunks { up, needed } => {
                write!(
                    f,
                    "{up} hosts in `existing` are up, and {needed} chunks are needed to rebuild the others"
                )
            }
            Refusal::UnknownWriter => f.write_str("the writer is not a host of the cluster"),
            Refusal::NoStorage => {
                f.write_str("no rack of the cluster file has both an uplink and devices with a `capacity`")
            }
            Refusal::NoCandidate { by_constraint } => {
                f.write_str("no candidate may take it")?;
                write_counts(f, by_constraint)
            }
            Refusal::NotTogether { far: None } => f.write_str("no assignment fits all tasks together"),
            Refusal::NotTogether { far: Some((one, other)) } => write!(
                f,
                "no assignment fits all tasks together and meets the bound on the round-trip time between {} and {}",
                name(*one),
                name(*other)
            ),
            Refusal::NoHost { task, alone, far_from, by_constraint } => {
                match alone {
                    true => write!(f, "task {} fits nowhere", name(*task))?,
                    false => write!(f, "found no placement: task {} has no host left", name(*task))?,
                }
                write_counts(f, by_constraint)?;
                far_from.map_or(Ok(()), |peer| write!(f, "; too far from task {}", name(peer)))
            }
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.write(f, &|task| task.to_string())
    }
}

impl std::error::Error for Refusal {}

fn write_counts(f: &mut dyn std::fmt::Write, by_constraint: &[(Constraint, u32)]) -> std::fmt::Result {
    for (i, (constraint, count)) in by_constraint.iter().enumerate() {
        let hosts = if *count == 1 { "host" } else { "hosts" };
        let joint = if i == 0 { ":" } else { "," };
        write!(f, "{joint} {count} {hosts} ({})", constraint.text())?;
    }
    Ok(())
}

/// Counts refusals by constraint, in the order of [`Constraint`].
pub(crate) fn count_refusals(refused: impl Iterator<Item = Constraint>) -> Vec<(Constraint, u32)> {
    let mut counts = std::collections::BTreeMap::new();
    for constraint in refused {
        *counts.entry(constraint).or_insert(0) += 1;
    }
    counts.into_iter().collect()
}
