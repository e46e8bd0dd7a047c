//! What a policy says: where, on what grounds, from which candidates, or why not.

use leeward_fabric::{DomainId, Fabric, HostId, Load, Nanos, ResourceId};
use leeward_ledger::{Transaction, View};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Constraint;
use crate::tasks::Estimate;

/// Where something goes, and why.
#[derive(Clone, PartialEq, Debug)]
pub struct Decision<C> {
    /// Where.
    pub choice: C,
    /// What the ledger is to learn of it.
    pub change: Transaction,
    /// What it rests on.
    pub basis: Basis,
    /// Candidates, best first level by level; empty unless an explanation was asked for.
    pub why: Vec<Considered>,
}

/// What a decision rests on.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Basis {
    /// The state of the ledger.
    pub epoch: u64,
    /// End of the oldest window that played a part; `None` where telemetry played none.
    pub oldest: Option<Nanos>,
    /// Which policy.
    pub policy: &'static str,
    /// Why the policy left the choice to another, where it did.
    pub note: Option<Note>,
    /// How much of what was made small might still be saved, as a share of it, by a policy that knows: zero is proven
    /// best.
    pub gap: Option<f64>,
    /// The model by which transfers of an app were placed; `None` where none was asked.
    pub estimate: Option<Estimate>,
}

/// Why a policy left a choice to the default policy.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Note {
    /// The block is smaller than those it looks at.
    Small,
    /// No load can be seen, and the settings say to go on.
    NoTelemetry,
}

impl Note {
    /// In words.
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
    /// Who.
    pub candidate: Candidate,
    /// What limits it, where that was looked at.
    pub limit: Option<Limit>,
    /// The rate that ranks it, in bit/s.
    pub value: Option<Load>,
    /// How the load of its link is known, where it was looked at.
    pub sight: Option<Sight>,
    /// What ranks it for a task, where that was asked.
    pub objectives: Option<Objectives>,
    /// What came of it.
    pub verdict: Verdict,
}

/// What ranks a host for a task: the first that differs decides, and less is better.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Objectives {
    /// The position of the task in its request.
    pub task: u32,
    /// Tasks of the same job in the host's rack.
    pub in_rack: u32,
    /// How loaded it would be, as a share: the host's processors and memory, or the links of its rack.
    pub balance: f64,
    /// Processors that would be left on the host, in thousandths.
    pub left: u64,
}

impl Considered {
    /// A host that was chosen without a number.
    pub(crate) fn chosen(host: HostId) -> Considered {
        let candidate = Candidate::Host(host);
        Considered {
            candidate,
            limit: None,
            value: None,
            sight: None,
            objectives: None,
            verdict: Verdict::Chosen,
        }
    }
}

/// What limits a candidate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// A link or a device.
    Resource(ResourceId),
    /// What a disk writes at most.
    DiskWriteCap,
}

impl Limit {
    /// Its name in `fabric`, or `disk`.
    pub fn name(self, fabric: &Fabric) -> String {
        match self {
            Limit::Resource(resource) => fabric.resource_name(resource),
            Limit::DiskWriteCap => "disk".to_owned(),
        }
    }
}

/// How the load of a link is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sight {
    /// By its own counter.
    Counter,
    /// As the sum of those below it, traffic inside the rack included.
    Derived,
    /// Not at all.
    Unseen,
}

/// End of the oldest window of those links whose load is measured; `None` if none is.
pub(crate) fn oldest_of(view: &View<'_>, links: impl IntoIterator<Item = ResourceId>) -> Option<Nanos> {
    let seen = links.into_iter().filter(|&link| view.measured(link).is_some());
    seen.map(|link| view.measured_until(link)).min()
}

/// How `view` knows the load of a link.
pub(crate) fn sight(view: &View<'_>, link: ResourceId) -> Sight {
    match view.measured(link) {
        None => Sight::Unseen,
        Some(_) if view.is_derived(link) => Sight::Derived,
        Some(_) => Sight::Counter,
    }
}

/// Who may be chosen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Candidate {
    /// A rack or pod, at an upper level of the tree.
    Domain(DomainId),
    /// A host.
    Host(HostId),
}

/// What came of a candidate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It was chosen.
    Chosen,
    /// Another ranked higher, or won the tie.
    Outranked,
    /// It may not.
    Refused(Constraint),
}

/// Why nothing was chosen.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The policy needs telemetry and has none that is recent.
    NoTelemetry {
        /// End of the newest window of any candidate; `None` if nothing was ever reported.
        newest: Option<Nanos>,
    },
    /// The cluster has no such host as the writer.
    UnknownWriter,
    /// So many copies cannot be in as many fault domains as are to hold one.
    TooFewCopies {
        /// Copies, or chunks.
        replicas: u8,
        /// Fault domains besides the first copy's, or that may be lost.
        fault_domains: u8,
    },
    /// The policy ranks racks by what they can store, and no rack says what that is.
    NoStorage,
    /// The policy ranks racks by their links, and the cluster has none.
    NoRackLinks,
    /// The program to be solved would have too many variables.
    TooLarge {
        /// So many.
        variables: usize,
        /// What is the most.
        most: usize,
    },
    /// A program was not solved.
    SolverFailed {
        /// What the solver says.
        message: String,
    },
    /// Nobody was chosen to decide requests of this kind.
    NoPolicy {
        /// The kind.
        kind: &'static str,
    },
    /// No host may take one of the tasks, given where those before it went.
    NoHost {
        /// Its position in the request.
        task: u32,
        /// Whether none could even by itself; else there may be a placement that was not found.
        alone: bool,
        /// How many hosts each constraint kept out.
        by_constraint: Vec<(Constraint, u32)>,
    },
    /// All tasks together fit on no hosts, wherever each goes; that is proven.
    NotTogether,
    /// No candidate may.
    NoCandidate {
        /// How many candidates each constraint kept out.
        by_constraint: Vec<(Constraint, u32)>,
    },
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::NoTelemetry { newest: None } => {
                f.write_str("no telemetry: no candidate's load was ever reported")
            }
            Refusal::NoTelemetry { newest: Some(at) } => {
                write!(f, "no recent telemetry: the newest report of any candidate ends at {at}")
            }
            Refusal::TooFewCopies { replicas, fault_domains } => {
                write!(f, "{replicas} copies or chunks cannot outlive {fault_domains} fault domains")
            }
            Refusal::NoRackLinks => {
                f.write_str("the policy ranks racks by their uplinks and downlinks, and a mesh has none")
            }
            Refusal::TooLarge { variables, most } => {
                write!(f, "too large to be solved: {variables} variables, and {most} are the most")
            }
            Refusal::SolverFailed { message } => f.write_str(message),
            Refusal::NoPolicy { kind } => write!(f, "there is no policy for {kind} here"),
            Refusal::UnknownWriter => f.write_str("the writer is no host of the cluster"),
            Refusal::NoStorage => {
                f.write_str("the cluster file gives no rack a tree's uplink and devices with a `capacity`")
            }
            Refusal::NoCandidate { by_constraint } => {
                f.write_str("no candidate may take it")?;
                write_counts(f, by_constraint)
            }
            Refusal::NotTogether => f.write_str("its tasks fit nowhere together"),
            Refusal::NoHost { task, alone, by_constraint } => {
                match alone {
                    true => write!(f, "task {task} fits nowhere")?,
                    false => write!(f, "found no placement: task {task} has no host left")?,
                }
                write_counts(f, by_constraint)
            }
        }
    }
}

impl std::error::Error for Refusal {}

fn write_counts(f: &mut std::fmt::Formatter<'_>, by_constraint: &[(Constraint, u32)]) -> std::fmt::Result {
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
