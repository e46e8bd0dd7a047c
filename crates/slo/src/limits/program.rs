//! The linear program of the compactor.
//!
//! The thesis has variables r and b for each workload and stage, and one row for each linear segment of its r-b curve.
//! Here the segments are the variables, each from 0 (unused) to 1 (fully used). From the curve's first vertex, r falls
//! over a segment by its length, and b rises by its height. Segments get steeper one after another, and every row
//! prefers a smaller b. So an optimal solution can use them in order. Then (r, b) is on the curve, and the objective
//! equals the objective of the thesis. The program needs tens of rows instead of hundreds, its coefficients have
//! similar magnitudes, and b is never below the curve.

use std::collections::BTreeMap;

use leeward_calculus::{ArrivalCurve, Packets, TokenBucket};
use leeward_solver::{Limits, Program, Solution, SolverError, Variable};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::binding::Constraint;
use super::problem::Problem;

/// Queues in the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Queues {
    /// All queues.
    #[default]
    All,
    /// The first queue of each stage, as in the released code. The result may miss SLOs at later queues.
    First,
}

/// The program, and the meaning of its variables and rows.
pub(super) struct Compaction<'p, 'a> {
    problem: &'p Problem<'a>,
    program: Program,
    /// Curve variables, for each free workload and demand.
    choices: Vec<Vec<Pieces>>,
    /// Flows at each queue: (free workload, demand, hop).
    flows: Vec<Vec<(usize, usize, usize)>>,
    /// Violation variable of each row, if rows are soft.
    over: Option<Vec<(Constraint, Variable)>>,
    impossible: bool,
}

/// An r-b curve as variables.
struct Pieces {
    first: TokenBucket,
    lowest: f64,
    /// Segments: the variable, the decrease of r and the increase of b over the segment.
    pieces: Vec<(Variable, f64, f64)>,
}

/// Coefficients of a row by (free workload, demand): of the rate, and of the burst.
type Weights = BTreeMap<(usize, usize), (f64, f64)>;

impl<'p, 'a> Compaction<'p, 'a> {
    /// Builds the program. With `over`, rows are soft and the objective is the sum of violations.
    pub fn new(problem: &'p Problem<'a>, queues: Queues, slack: f64, over: bool) -> Compaction<'p, 'a> {
        let mut program = Program::new();
        let cost = if over { 0.0 } else { -1.0 };
        let mut flows = vec![Vec::new(); problem.queues.len()];
        let mut choices = Vec::with_capacity(problem.free.len());
        for (at, free) in problem.free.iter().enumerate() {
            let mut demands = Vec::with_capacity(free.route.len());
            for (index, (path, demand)) in free.route.iter().zip(&free.workload.demands).enumerate() {
                let capacities = path.iter().map(|&queue| problem.queues[queue].capacity);
                // A burst whose service at the fastest queue takes longer than the SLO is useless. Without that part of
                // the curve, all numbers have a similar magnitude.
                let most = match free.budget().filter(|_| !over) {
                    Some(budget) => budget * capacities.clone().fold(0.0, f64::max),
                    None => f64::INFINITY,
                };
                // A demand without queues (its client is its server) delays no workload at any rate.
                let unit = capacities.clone().next();
                demands.push(Pieces::new(&demand.arrivals, unit, most, cost, &mut program));
                for (hop, &queue) in path.iter().enumerate() {
                    if counts(problem, queues, queue, hop) {
                        flows[queue].push((at, index, hop));
                    }
                }
            }
            choices.push(demands);
        }
        let over = over.then(Vec::new);
        let mut this = Compaction { problem, program, choices, flows, over, impossible: false };
        this.rates(1.0 - slack);
        this.latencies(queues, 1.0 - slack);
        this
    }

    /// Adds a row for the sum of rates at each queue.
    fn rates(&mut self, most: f64) {
        for (queue, shared) in self.problem.queues.iter().enumerate() {
            if self.flows[queue].is_empty() {
                continue;
            }
            let mut weights = Weights::new();
            for &(free, demand, _) in &self.flows[queue] {
                weights.entry((free, demand)).or_default().0 += 1.0 / shared.capacity;
            }
            let fixed: f64 = shared.fixed.iter().map(|(_, bucket, _)| bucket.rate() / shared.capacity).sum();
            let over = self.add_violation(|| Constraint::Queue(shared.name.to_owned()));
            let extra: Vec<(Variable, f64)> = over.map(|over| (over, -1.0)).into_iter().collect();
            self.row(&weights, &extra, most - fixed);
        }
    }

    /// Adds a row for the latency of each workload. Workloads with the same priorities at the same queues share a row.
    fn latencies(&mut self, queues: Queues, share: f64) {
        let problem = self.problem;
        // For each set of (priority, queue): the smallest budget, and its workload.
        let mut waits: BTreeMap<Vec<(u64, usize)>, (f64, &str)> = BTreeMap::new();
        let mut add = |at: Vec<(u64, usize)>, budget: f64, name: &'a str| {
            let least = waits.entry(at).or_insert((budget, name));
            if budget < least.0 {
                *least = (budget, name);
            }
        };
        for free in &problem.free {
            // The slack is a share of the whole SLO, before the tails are subtracted.
            let (Some(slo), Some(budget)) = (free.workload.slo, free.budget()) else { continue };
            let hops = free.route.iter().zip(&free.levels).flat_map(|(path, &level)| {
                path.iter().enumerate().map(move |(hop, &queue)| (level, queue, hop))
            });
            let at = hops.filter(|&(_, queue, hop)| counts(problem, queues, queue, hop));
            let at = at.map(|(level, queue, _)| (level, queue)).collect();
            add(at, budget - (1.0 - share) * slo.latency, &free.workload.name);
        }
        for other in &problem.others {
            let at = other.at.iter().copied().filter(|&(_, queue)| !problem.queues[queue].idle);
            add(at.collect(), share * other.budget, other.name);
        }
        for (at, (budget, name)) in waits {
            self.latency(&at, budget, name);
        }
    }

    /// Keeps the waits at these queues within a budget: bursts / C + R x budget <= budget. R is the largest
    /// share of a queue that higher priorities take.
    fn latency(&mut self, at: &[(u64, usize)], mut budget: f64, name: &str) {
        let problem = self.problem;
        let mut weights = Weights::new();
        let (mut fixed, mut before) = (0.0, Vec::new());
        let mut touched = false;
        for &(level, queue) in at {
            let shared = &problem.queues[queue];
            let ours = self.flows[queue].iter().map(|&(free, demand, hop)| {
                let of = &problem.free[free];
                (of.levels[demand], (free, demand), of.late[demand][hop])
            });
            let delays = |traffic: &(u64, TokenBucket, f64)| traffic.0 <= level;
            let burst: f64 =
                shared.fixed.iter().filter(|traffic| delays(traffic)).map(|(_, b, _)| b.burst()).sum();
            let rate: f64 =
                shared.fixed.iter().filter(|(other, ..)| *other < level).map(|(_, b, _)| b.rate()).sum();
            let burst = burst + self.block(level, queue) + shared.capacity * shared.latency;
            if ours.clone().all(|(other, ..)| other > level) {
                // Only fixed traffic delays the workload here.
                budget -= burst / (shared.capacity - rate).max(0.0);
                continue;
            }
            touched = true;
            fixed += burst / shared.capacity;
            let mut higher = Weights::new();
            for (other, key, late) in ours.filter(|(other, ..)| *other <= level) {
                let weight = weights.entry(key).or_default();
                weight.0 += late / shared.capacity;
                weight.1 += 1.0 / shared.capacity;
                if other < level {
                    higher.entry(key).or_default().0 += 1.0 / shared.capacity;
                }
            }
            before.push((higher, rate / shared.capacity));
        }
        if !touched {
            return;
        }
        if budget <= 0.0 || !budget.is_finite() {
            self.impossible = true;
            return;
        }
        for (rate, burst) in weights.values_mut() {
            (*rate, *burst) = (*rate / budget, *burst / budget);
        }
        let over = self.add_violation(|| Constraint::Slo(name.to_owned()));
        let mut extra: Vec<(Variable, f64)> = over.map(|over| (over, -1.0)).into_iter().collect();
        let least = before.iter().map(|(_, fixed)| *fixed).fold(0.0, f64::max);
        if before.iter().all(|(higher, _)| higher.is_empty()) {
            return self.row(&weights, &extra, 1.0 - fixed / budget - least);
        }
        let taken = self.program.add(0.0, least..=f64::INFINITY);
        for (higher, fixed) in before.iter().filter(|(higher, _)| !higher.is_empty()) {
            self.row(higher, &[(taken, -1.0)], -fixed);
        }
        extra.push((taken, 1.0));
        self.row(&weights, &extra, 1.0 - fixed / budget);
    }

    /// Largest request that may be in service and has a priority after `level`.
    fn block(&self, level: u64, queue: usize) -> f64 {
        if self.problem.packets == Packets::Fluid {
            return 0.0;
        }
        let fixed =
            self.problem.queues[queue].fixed.iter().map(|&(priority, _, largest)| (priority, largest));
        let free = self.flows[queue].iter().map(|&(free, demand, _)| {
            let of = &self.problem.free[free];
            (of.levels[demand], of.workload.demands[demand].largest)
        });
        fixed
            .chain(free)
            .filter(|(priority, _)| *priority > level)
            .map(|(_, largest)| largest)
            .fold(0.0, f64::max)
    }

    /// Adds the violation variable of a row if rows are soft.
    fn add_violation(&mut self, constraint: impl FnOnce() -> Constraint) -> Option<Variable> {
        let over = self.over.as_mut()?;
        let variable = self.program.add(1.0, 0.0..=f64::INFINITY);
        over.push((constraint(), variable));
        Some(variable)
    }

    /// Constrains a sum of rates, bursts and variables to at most `most`.
    fn row(&mut self, weights: &Weights, extra: &[(Variable, f64)], most: f64) {
        let mut terms = extra.to_vec();
        let mut constant = 0.0;
        for (&(free, demand), &(rate, burst)) in weights {
            let choice = &self.choices[free][demand];
            constant += rate * choice.first.rate() + burst * choice.first.burst();
            let piece =
                |&(variable, fall, rise): &(Variable, f64, f64)| (variable, burst * rise - rate * fall);
            terms.extend(choice.pieces.iter().map(piece));
        }
        if terms.is_empty() {
            self.impossible |= constant > most;
            return;
        }
        self.program.constrain(f64::NEG_INFINITY..=most - constant, &terms);
    }

    /// Optimal values; `None` if the program has no variables.
    pub fn solve(&self) -> Result<Option<Solution>, SolverError> {
        if self.impossible {
            return Err(SolverError::Infeasible);
        }
        if self.program.is_empty() {
            return Ok(None);
        }
        self.program.minimise(Limits::default(), None).map(Some)
    }

    /// True if some row cannot be satisfied.
    pub fn is_impossible(&self) -> bool {
        self.impossible
    }

    /// Violation of each row, as a share of its bound.
    pub fn excess(&self, solution: Option<&Solution>) -> Vec<(Constraint, f64)> {
        let over = self.over.iter().flatten();
        let by = |variable: &Variable| solution.map_or(0.0, |solution| solution.value(*variable));
        over.map(|(constraint, variable)| (constraint.clone(), by(variable))).collect()
    }

    /// Buckets of a solution: r from the solution, b from the curve.
    pub fn limits(&self, solution: Option<&Solution>) -> Vec<Vec<ArrivalCurve>> {
        let of = |(free, choices): (usize, &Vec<Pieces>)| {
            let demands = &self.problem.free[free].workload.demands;
            choices
                .iter()
                .zip(demands)
                .map(|(choice, demand)| choice.at(solution, &demand.arrivals))
                .collect()
        };
        self.choices.iter().enumerate().map(of).collect()
    }
}

/// True if the program includes the queue at position `hop` of a route.
fn counts(problem: &Problem<'_>, queues: Queues, queue: usize, hop: usize) -> bool {
    match queues {
        Queues::All => !problem.queues[queue].idle,
        Queues::First => hop == 0,
    }
}

impl Pieces {
    fn new(
        arrivals: &ArrivalCurve,
        unit: Option<f64>,
        most: f64,
        cost: f64,
        program: &mut Program,
    ) -> Pieces {
        let first = arrivals.buckets()[0];
        let mut this = Pieces { first, lowest: first.rate(), pieces: Vec::new() };
        let Some(unit) = unit else { return this };
        for pair in arrivals.buckets().windows(2) {
            let (length, rise) = (pair[0].rate() - pair[1].rate(), pair[1].burst() - pair[0].burst());
            let part = ((most - pair[0].burst()) / rise).min(1.0);
            if part <= 0.0 {
                break;
            }
            let (fall, rise) = (part * length, part * rise);
            this.lowest = if part < 1.0 { pair[0].rate() - fall } else { pair[1].rate() };
            this.pieces.push((program.add(cost * fall / unit, 0.0..=1.0), fall, rise));
        }
        this
    }

    fn at(&self, solution: Option<&Solution>, arrivals: &ArrivalCurve) -> ArrivalCurve {
        let fallen = |solution: &Solution| {
            self.pieces.iter().map(|&(piece, fall, _)| fall * solution.value(piece)).sum::<f64>()
        };
        let rate = self.first.rate() - solution.map_or(0.0, fallen);
        let rate = rate.clamp(self.lowest, self.first.rate());
        let burst = arrivals.burst_at(rate).expect("a rate from the mean on has a burst");
        TokenBucket::new(rate, burst).expect("a vertex of a curve is a bucket").into()
    }
}
