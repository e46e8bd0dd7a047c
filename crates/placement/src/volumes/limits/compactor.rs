//! `compactor`: the pairs (r, b) that pack best, chosen for all workloads together by a linear program (SLO section 5.2.2,
//! equations 5.4 to 5.7).
//!
//! ```text
//! minimise   sum of r
//! such that  (r, b) of each workload and stage on or above its r-b curve
//!            sum of r <= C                                                  at each queue
//!            sum over queues of (sum of b up to and with p) / C + R SLO <= SLO    for each workload, of priority p
//!            (sum of r before p) / C <= R                                   at each of its queues
//! ```
//!
//! The last two are equation 5.1 with the share R left out of account at all queues but the worst: what they allow keeps
//! the SLO, and some of what keeps it they do not allow. Capacities are units of rate and burst here as in the thesis; where a
//! stage crosses queues of different capacities the objective counts its first.
//!
//! | | thesis, released code | here |
//! | --- | --- | --- |
//! | queues | one a stage; the first of each flow | every queue of every stage, but those that cannot have a backlog |
//! | SLO | all of it | less the profiled tails |
//! | others | all workloads that share queues, directly or not, are chosen again | any can stand: they count as they are, and their SLOs are kept too |
//! | rounding | 0.1 % of each SLO and capacity is left unused | a millionth, and a setting |

use std::fmt;

use leeward_calculus::ArrivalCurve;
use leeward_fabric::input::{InputError, shown};
use leeward_solver::SolverError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::words::percent;
use super::program::Compaction;
use super::{Limiting, NoLimits, Problem, Registration};
use crate::policy::{setting_error, settings};

/// Settings of `compactor`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CompactorSettings {
    /// Which queues count.
    pub queues: Queues,
    /// The share of each SLO and capacity that is left unused, against rounding: the released code has 0.001.
    #[schemars(range(min = 0.0, max = 0.5))]
    pub slack: f64,
}

/// Which queues count.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Queues {
    /// All.
    #[default]
    All,
    /// The first of each stage, as in the released code. What it finds may miss SLOs behind it.
    First,
}

impl Default for CompactorSettings {
    fn default() -> Self {
        CompactorSettings { queues: Queues::All, slack: 1e-6 }
    }
}

/// The way.
#[derive(Clone, Debug, Default)]
pub struct Compactor {
    settings: CompactorSettings,
}

/// What stands in the way where nothing keeps all SLOs.
#[derive(Clone, PartialEq, Debug)]
pub struct Binding {
    /// What cannot be kept, where as little as possible is given up; most first.
    pub excess: Vec<Excess>,
}

/// Something that cannot be kept.
#[derive(Clone, PartialEq, Debug)]
pub struct Excess {
    /// What.
    pub over: Over,
    /// By how much, as a share of it: of the SLO less its tails, or of the capacity.
    pub by: f64,
}

/// What cannot be kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Over {
    /// The SLO of a workload, by name; of those that wait alike, the tightest.
    Slo(String),
    /// The capacity of a queue, by name.
    Queue(String),
}

/// The first few of what cannot be kept.
impl fmt::Display for Binding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 3;
        for (at, excess) in self.excess.iter().take(MOST).enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            let by = percent(excess.by);
            match &excess.over {
                Over::Slo(workload) => write!(f, "{comma}the SLO of `{workload}` by {by}")?,
                Over::Queue(queue) => write!(f, "{comma}the capacity of {queue} by {by}")?,
            }
        }
        match self.excess.len().saturating_sub(MOST) {
            0 => Ok(()),
            more => write!(f, ", and {more} more"),
        }
    }
}

pub(super) const REGISTRATION: Registration = Registration {
    name: "compactor",
    summary: "the least rates with which all workloads together keep their SLOs, by a linear program",
    source: "SLO section 5.2.2, equations 5.4 to 5.7 (WorkloadCompactor)",
    schema: || schemars::schema_for!(CompactorSettings).to_value(),
    make: |text| Compactor::new(settings("compactor", text)?).map(|way| Box::new(way) as Box<dyn Limiting>),
};

impl Compactor {
    /// The way with these settings.
    ///
    /// # Errors
    /// An invalid slack.
    pub fn new(settings: CompactorSettings) -> Result<Compactor, InputError> {
        if (0.0..=0.5).contains(&settings.slack) {
            return Ok(Compactor { settings });
        }
        let message = format!("{}: expected a share from 0 to 0.5", shown(settings.slack));
        Err(setting_error("compactor", "slack", &message))
    }

    /// What stands in the way: a second program in which each SLO and each capacity may be broken, and as little as possible is,
    /// each counted as a share of itself. None where all are kept.
    ///
    /// # Errors
    /// A workload that no limits could help, or a failure of the solver.
    pub fn binding(&self, problem: &Problem<'_>) -> Result<Option<Binding>, NoLimits> {
        possible(problem)?;
        let program = Compaction::new(problem, self.settings.queues, self.settings.slack, true);
        if program.is_impossible() {
            return Err(NoLimits::Together);
        }
        let solution = program.solve().map_err(|error| failed(problem, &error))?;
        let over = program.excess(solution.as_ref()).into_iter().filter(|(_, by)| *by > 1e-9);
        let mut excess: Vec<Excess> = over.map(|(over, by)| Excess { over, by }).collect();
        excess.sort_by(|a, b| b.by.total_cmp(&a.by));
        Ok((!excess.is_empty()).then_some(Binding { excess }))
    }
}

impl Limiting for Compactor {
    fn name(&self) -> &'static str {
        "compactor"
    }

    fn choose(&self, problem: &Problem<'_>) -> Result<Vec<Vec<ArrivalCurve>>, NoLimits> {
        possible(problem)?;
        let program = Compaction::new(problem, self.settings.queues, self.settings.slack, false);
        let solution = program.solve().map_err(|error| failed(problem, &error))?;
        Ok(program.limits(solution.as_ref()))
    }

    fn together(&self) -> bool {
        true
    }

    fn binding(&self, problem: &Problem<'_>) -> Result<Option<Binding>, NoLimits> {
        Compactor::binding(self, problem)
    }
}

/// Whether each workload has an SLO, and one that its tails leave something of.
fn possible(problem: &Problem<'_>) -> Result<(), NoLimits> {
    for free in &problem.free {
        let workload = || free.workload.name.clone();
        match free.budget() {
            None => return Err(NoLimits::BestEffort { workload: workload() }),
            Some(budget) if budget.is_nan() || budget <= 0.0 => {
                let why = "the profiled tails alone take all of its SLO".to_owned();
                return Err(NoLimits::Alone { workload: workload(), why });
            }
            Some(_) => {}
        }
    }
    Ok(())
}

fn failed(problem: &Problem<'_>, error: &SolverError) -> NoLimits {
    match error {
        SolverError::Infeasible => NoLimits::Together,
        error => NoLimits::Solver { workloads: problem.free.len(), why: error.to_string() },
    }
}
