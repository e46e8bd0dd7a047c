//! What a policy says: where, on what grounds, from which candidates, or why not.

use leeward_fabric::{DomainId, HostId, Load, Nanos, ResourceId};
use leeward_ledger::Transaction;

use crate::Constraint;

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
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Basis {
    /// The state of the ledger.
    pub epoch: u64,
    /// End of the oldest window that played a part; `None` where telemetry played none.
    pub oldest: Option<Nanos>,
    /// Which policy.
    pub policy: &'static str,
}

/// One candidate of a decision.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Considered {
    /// Who.
    pub candidate: Candidate,
    /// The resource that limits it, where one was looked at.
    pub limit: Option<ResourceId>,
    /// The number that ranks it, in that resource's native unit per second.
    pub value: Option<Load>,
    /// What came of it.
    pub verdict: Verdict,
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
            Refusal::NoCandidate { by_constraint } => {
                f.write_str("no candidate may take it")?;
                for (i, (constraint, count)) in by_constraint.iter().enumerate() {
                    write!(f, "{} {count}: {}", if i == 0 { ":" } else { "," }, constraint.text())?;
                }
                Ok(())
            }
        }
    }
}

impl std::error::Error for Refusal {}

/// Counts refusals by constraint, in the order of [`Constraint`].
pub(crate) fn count_refusals(refused: impl Iterator<Item = Constraint>) -> Vec<(Constraint, u32)> {
    let mut counts = std::collections::BTreeMap::new();
    for constraint in refused {
        *counts.entry(constraint).or_insert(0) += 1;
    }
    counts.into_iter().collect()
}
