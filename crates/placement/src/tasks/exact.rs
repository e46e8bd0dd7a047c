//! Policy `choreo-exact`: the placement with the shortest completion time (Choreo appendix).
//!
//! The module solves the appendix's program; see `exact_program`. If hosts have costs, it solves two programs: the first
//! for the goal that comes first, and the second for the other goal, without a loss in the first.
//!
//! The search starts from the placement of `leeward`, or without a placement if `leeward` finds none. It visits at
//! most `nodes` nodes and has no time limit. If it stops early, the decision states the remaining gap of each goal.

use leeward_fabric::{BITS_PER_BYTE, Fabric};
use leeward_registry::{Registration, schema, settings};
use leeward_solver::{Limits, SolverError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::capacity_check::still_fits;
use super::completion::{Completion, completion};
use super::exact_program::{Aim, MOST_VARIABLES, Model, ROUNDING, variables};
use super::rates::Rates;
use super::transaction::{self, Notes};
use super::{AppRequest, Assignment, Goal, Leeward, LeewardSettings, TaskPolicy};
use crate::estimate::Estimate;
use crate::{Context, Decision, Gaps, Policy, Refusal};

/// Estimated cost of a search node per variable, in link lookups. Callers of the estimate move expensive requests out of
/// their loop, or refuse them.
const LOOKUPS_PER_VARIABLE: u64 = 20;

/// Settings of `choreo-exact`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExactSettings {
    /// Largest number of search nodes. Default 2000.
    pub nodes: u32,
    /// On a hose mesh, counts the links into hosts too. Default false, as in the paper.
    pub into_hosts: bool,
    /// Computes rates from the number of flows only, as C / (N + 1) with N flows on a link of capacity C, and ignores
    /// telemetry. Default false.
    pub flows_only: bool,
}

impl Default for ExactSettings {
    fn default() -> Self {
        ExactSettings { nodes: 2000, into_hosts: false, flows_only: false }
    }
}

/// Exact placement by mixed-integer programming.
#[derive(Clone, Debug)]
pub struct Exact {
    settings: ExactSettings,
    /// Policy that finds the starting placement.
    greedy: Leeward,
}

pub(super) const REGISTRATION: Registration<dyn TaskPolicy> = Registration {
    name: "choreo-exact",
    aliases: &[],
    summary: "apps: the placement with the shortest completion time, by mixed-integer programming",
    source: "LaCurts et al., Choreo (IMC 2013), appendix",
    schema: schema::<ExactSettings>,
    make: |text| {
        let settings: ExactSettings = settings("choreo-exact", text)?;
        let ExactSettings { into_hosts, flows_only, .. } = settings;
        let greedy = Leeward::new(LeewardSettings { into_hosts, flows_only, ..LeewardSettings::default() });
        Ok(Box::new(Exact { settings, greedy }))
    },
};

impl Exact {
    fn assign(
        &self,
        request: &AppRequest,
        context: &Context<'_, '_>,
        notes: &mut Notes,
    ) -> Result<Assignment, Refusal> {
        let estimate = self.greedy.estimate();
        notes.estimate = Some(estimate);
        let fabric = context.pool.fabric();
        let of = |hosts: Assignment| Placement::new(hosts, request, context, estimate);
        let (mut best, refusal) = match self.greedy.assign(request, context) {
            Ok(first) => (Some(of(first)), None),
            Err(refusal @ Refusal::NoHost { alone: false, .. }) => (None, Some(refusal)),
            Err(refusal) => return Err(refusal),
        };
        let goals = match (fabric.has_costs(), request.goal) {
            (false, _) => &[Goal::Time][..],
            (true, Goal::Time) => &[Goal::Time, Goal::Cost],
            (true, Goal::Cost) => &[Goal::Cost, Goal::Time],
        };
        let mut gaps = Gaps { time: 0.0, cost: fabric.has_costs().then_some(0.0) };
        for (stage, &goal) in goals.iter().enumerate() {
            // No placement improves on a time of zero. If a link has no capacity, the first placement never completes.
            // The search is skipped then, although another placement may avoid such links.
            let done = |best: &&Placement| match goal {
                Goal::Time => best.seconds == 0.0 || !best.seconds.is_finite(),
                Goal::Cost => best.cost == 0,
            };
            if let Some(done) = best.as_ref().filter(done) {
                set_gap(&mut gaps, goal, if goal == Goal::Time { done.seconds } else { 0.0 });
                continue;
            }
            let aim = match goal {
                Goal::Time => Aim::Time(best.as_ref().filter(|_| stage > 0).map(|best| best.cost)),
                Goal::Cost => Aim::Cost(best.as_ref().filter(|_| stage > 0).map(|best| best.seconds)),
            };
            match self.solve(request, context, best.as_ref(), aim, refusal.as_ref())? {
                Some((hosts, open)) => {
                    let found = of(hosts);
                    set_gap(&mut gaps, goal, open);
                    // The solver's numbers are rounded, so both placements are compared again.
                    if best.as_ref().is_none_or(|best| found.beats(best, request.goal)) {
                        best = Some(found);
                    }
                }
                None => set_gap(&mut gaps, goal, f64::INFINITY),
            }
        }
        notes.gaps = Some(gaps);
        Ok(best.expect("a stage without a placement finds one or fails").hosts)
    }

    /// Solves a program, beginning with the best placement so far. Returns the placement and its gap; `None` if there is
    /// none better within the limit of nodes.
    ///
    /// # Errors
    /// Without a placement to begin with: `refusal`, that of the greedy policy, if the solver finds no placement within
    /// the limit, or [`Refusal::NotTogether`] if none exists.
    fn solve(
        &self,
        request: &AppRequest,
        context: &Context<'_, '_>,
        best: Option<&Placement>,
        aim: Aim,
        refusal: Option<&Refusal>,
    ) -> Result<Option<(Assignment, f64)>, Refusal> {
        let estimate = self.greedy.estimate();
        let first_s = best.map(|best| best.seconds).filter(|&seconds| seconds > 0.0 && seconds.is_finite());
        let unit = first_s.unwrap_or_else(|| least_seconds(request, context, estimate));
        let model = match (Model::new(request, context, estimate, unit, aim), refusal) {
            (Err(_), Some(refusal)) if best.is_none() => return Err(refusal.clone()),
            (model, _) => model?,
        };
        let start = best.map(|best| model.values_of(&best.hosts, &best.phases));
        let solution = model.program.minimise(Limits { nodes: self.settings.nodes }, start.as_deref());
        let solution = match (solution, best.is_some()) {
            (Ok(solution), _) => solution,
            // The placement to begin with is a solution, so it stays; only a build without a solver cannot continue.
            (Err(SolverError::Absent), true) => {
                return Err(Refusal::SolverFailed { message: SolverError::Absent.to_string() });
            }
            (Err(_), true) => return Ok(None),
            // Times and costs are not negative, so the program is never unbounded; the solver may confuse the two cases.
            (Err(SolverError::Infeasible | SolverError::Unbounded), false) => {
                let far = match refusal {
                    Some(Refusal::NoHost { task, far_from, .. }) => far_from.map(|peer| (*task, peer)),
                    _ => None,
                };
                return Err(Refusal::NotTogether { far });
            }
            (Err(SolverError::Limit { .. }), false) => {
                return Err(refusal.cloned().unwrap_or(Refusal::NotTogether { far: None }));
            }
            (Err(error), _) => return Err(Refusal::SolverFailed { message: error.to_string() }),
        };
        let hosts = model.hosts_of(&solution);
        // The solver's numbers are rounded, so its placement may violate a constraint.
        if !still_fits(context.pool, request, &hosts) {
            return match refusal {
                Some(refusal) if best.is_none() => Err(refusal.clone()),
                _ => Ok(None),
            };
        }
        Ok(Some((hosts, solution.gap)))
    }
}

fn set_gap(gaps: &mut Gaps, goal: Goal, gap: f64) {
    match goal {
        Goal::Time => gaps.time = gap,
        Goal::Cost => gaps.cost = Some(gap),
    }
}

/// A placement with its objectives.
struct Placement {
    hosts: Assignment,
    /// Completion time, and the duration of each phase, in seconds.
    seconds: f64,
    phases: Vec<f64>,
    /// Cost of the hosts, in millionths.
    cost: u64,
}

impl Placement {
    fn new(
        hosts: Assignment,
        request: &AppRequest,
        context: &Context<'_, '_>,
        estimate: Estimate,
    ) -> Placement {
        let Completion { seconds, phases, .. } =
            completion(context.view, &request.transfers, &hosts, estimate);
        let cost = context.pool.fabric().cost_of(&hosts).0;
        Placement { hosts, seconds, phases, cost }
    }

    /// True if this placement is at least as good as another one by the goal that comes first, and among equals by the
    /// other goal. A time that is longer by the solver's rounding only counts as equal if hosts become cheaper.
    fn beats(&self, other: &Placement, goal: Goal) -> bool {
        let is_cheaper = self.cost < other.cost;
        let slack = if is_cheaper { 1.0 + ROUNDING } else { 1.0 };
        let is_fast = self.seconds <= other.seconds * slack;
        match goal {
            Goal::Time => is_fast && (self.seconds < other.seconds || self.cost <= other.cost),
            Goal::Cost => is_cheaper || (self.cost == other.cost && is_fast),
        }
    }
}

impl Policy<AppRequest> for Exact {
    fn name(&self) -> &'static str {
        "choreo-exact"
    }

    fn place_one(
        &self,
        request: &AppRequest,
        context: &mut Context<'_, '_>,
    ) -> Result<Decision<Assignment>, Refusal> {
        let mut notes = transaction::Notes::default();
        let hosts = self.assign(request, context, &mut notes)?;
        Ok(transaction::decision(self.name(), request, hosts, notes, context))
    }
}

impl TaskPolicy for Exact {
    fn cost_estimate(&self, request: &AppRequest, fabric: &Fabric) -> u64 {
        let first = self.greedy.lookups_for_app(request, fabric);
        let variables = variables(request.tasks.len(), request.transfers.len(), fabric.host_count());
        // Some hosts may be closed, and several transfers may connect one pair of tasks, so the program may be smaller.
        // Programs above the limit are not solved.
        let variables = variables.min(MOST_VARIABLES);
        let node = (variables as u64).saturating_mul(LOOKUPS_PER_VARIABLE);
        first.saturating_add(node.saturating_mul(u64::from(self.settings.nodes)))
    }
}

/// Time of the largest transfer on the fastest path, in seconds; the unit for other times.
fn least_seconds(request: &AppRequest, context: &Context<'_, '_>, estimate: Estimate) -> f64 {
    let bytes = request.transfers.iter().map(|transfer| transfer.bytes.0).max().unwrap_or(0);
    let mut rates = Rates::new(context.view, estimate);
    let hosts = || context.pool.fabric().all_hosts();
    let pairs = hosts().flat_map(|from| hosts().map(move |to| (from, to)));
    let fastest = pairs.map(|(from, to)| rates.between(from, to)).filter(|rate| rate.is_finite());
    let seconds = bytes as f64 * BITS_PER_BYTE / fastest.fold(0.0, f64::max);
    if seconds > 0.0 && seconds.is_finite() { seconds } else { 1.0 }
}
