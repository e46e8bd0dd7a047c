//! Limits `compactor`: the pairs (r, b) that pack best, chosen for all workloads together by a linear program
//! (SLO section 5.2.2, equations 5.4 to 5.7).
//!
//! ```text
//! minimise   sum of r
//! such that  (r, b) of each workload and stage on or above its r-b curve
//!            sum of r <= C                                                          at each queue
//!            sum over queues of T + (sum of b up to and including p) / C + R SLO <= SLO   for each workload, of priority p
//!            (sum of r before p) / C <= R                                           at each of its queues
//! ```
//!
//! The last two rows are stricter than equation 5.1. At each queue they count R: the largest share that higher
//! priorities take, over all queues of the workload. T is the latency of a queue. Limits within these rows keep the
//! SLO, but not all limits that keep the SLO are within them. As in the thesis, rates and bursts are in units of the
//! capacity. If a stage crosses queues of different capacities, the objective uses the capacity of the first queue.
//!
//! | | thesis, released code | here |
//! | --- | --- | --- |
//! | queues | one per stage; the first of each flow | every queue of every stage, except those without backlog |
//! | SLO | all of it | minus the profiled tails |
//! | others | all workloads that share queues, directly or not, get new limits | any can stay fixed: their limits count, and their SLOs are kept too |
//! | rounding | 0.1 % of each SLO and capacity stays unused | a millionth, and a setting |

use leeward_calculus::ArrivalCurve;
use leeward_fabric::input::{InputError, format_number};
use leeward_registry::{Registration, schema, setting_error, settings};
use leeward_solver::SolverError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::binding::{Binding, Excess};
use super::program::{Compaction, Queues};
use super::{Limiting, NoLimits, Problem};

/// Settings of `compactor`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CompactorSettings {
    /// Queues in the program.
    pub queues: Queues,
    /// Share of each SLO and capacity that stays unused, against rounding. The released code has 0.001.
    #[schemars(range(min = 0.0, max = 0.5))]
    pub slack: f64,
}

impl Default for CompactorSettings {
    fn default() -> Self {
        CompactorSettings { queues: Queues::All, slack: 1e-6 }
    }
}

/// Limits by a linear program over all workloads.
#[derive(Clone, Debug, Default)]
pub struct Compactor {
    settings: CompactorSettings,
}

pub(super) const REGISTRATION: Registration<dyn Limiting> = Registration {
    name: "compactor",
    aliases: &[],
    summary: "the least rates with which all workloads together keep their SLOs, by a linear program",
    source: "SLO section 5.2.2, equations 5.4 to 5.7 (WorkloadCompactor)",
    schema: schema::<CompactorSettings>,
    make: |text| Compactor::new(settings("compactor", text)?).map(|way| Box::new(way) as Box<dyn Limiting>),
};

impl Compactor {
    /// Creates the algorithm from settings.
    ///
    /// # Errors
    /// [`InputError`] for an invalid slack.
    pub fn new(settings: CompactorSettings) -> Result<Compactor, InputError> {
        if (0.0..=0.5).contains(&settings.slack) {
            return Ok(Compactor { settings });
        }
        let message = format!("{}: expected a share from 0 to 0.5", format_number(settings.slack));
        Err(setting_error("compactor", "slack", &message))
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

    fn is_joint(&self) -> bool {
        true
    }

    /// The violated SLOs and capacities, from a second program with soft rows. The program minimises the sum
    /// of violations, each as a share of its SLO or capacity. `None` if all are kept.
    fn binding(&self, problem: &Problem<'_>) -> Result<Option<Binding>, NoLimits> {
        possible(problem)?;
        let program = Compaction::new(problem, self.settings.queues, self.settings.slack, true);
        if program.is_impossible() {
            return Err(NoLimits::Together);
        }
        let solution = program.solve().map_err(|error| failed(problem, &error))?;
        let over = program.excess(solution.as_ref()).into_iter().filter(|(_, by)| *by > 1e-9);
        let mut excess: Vec<Excess> = over.map(|(constraint, by)| Excess { constraint, by }).collect();
        excess.sort_by(|a, b| b.by.total_cmp(&a.by));
        Ok((!excess.is_empty()).then_some(Binding { excess }))
    }
}

/// Checks that the SLO of each workload exceeds its tails.
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
