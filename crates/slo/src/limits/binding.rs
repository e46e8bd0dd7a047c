//! SLOs and capacities that cannot be kept together, and the size of each violation.

use std::fmt;

use super::super::format::percent;

/// SLOs and capacities that cannot be kept together.
#[derive(Clone, PartialEq, Debug)]
pub struct Binding {
    /// Violations in a solution of least total violation; the largest first.
    pub excess: Vec<Excess>,
}

/// A violated SLO or capacity.
#[derive(Clone, PartialEq, Debug)]
pub struct Excess {
    /// The SLO or the capacity.
    pub constraint: Constraint,
    /// Violation as a share: of the SLO minus its tails, or of the capacity.
    pub by: f64,
}

/// An SLO or a capacity.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Constraint {
    /// SLO of a workload, by name. If several workloads have the same priorities at the same queues, the workload with
    /// the tightest SLO.
    Slo(String),
    /// Capacity of a queue, by name.
    Queue(String),
}

/// Shows the first few violations.
impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 3;
        for (at, excess) in self.excess.iter().take(MOST).enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            let by = percent(excess.by);
            match &excess.constraint {
                Constraint::Slo(workload) => write!(f, "{comma}the SLO of `{workload}` by {by}")?,
                Constraint::Queue(queue) => write!(f, "{comma}the capacity of {queue} by {by}")?,
            }
        }
        match self.excess.len().saturating_sub(MOST) {
            0 => Ok(()),
            more => write!(f, ", and {more} more"),
        }
    }
}
