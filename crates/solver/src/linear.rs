//! Linear programs: solved, proven, and improved until the proof holds.
//!
//! ```text
//! solve as given --proof?--> solution
//!    \--no--> solve in balanced units --proof?--> solution
//!                \--no--> refine: solve for the remaining errors, enlarged --proof?--> solution
//!                            \--no--> error
//! ```
//!
//! Refinement follows Gleixner, Steffy, Wolter ("Iterative refinement for linear programming", INFORMS Journal on
//! Computing 28, 2016). The verdict that a program has no solution or no optimum is proven too, by programs that have
//! an optimum: the smallest violation of all rows, and the best direction in which no row ends.

use highs::HighsModelStatus as Status;

use crate::certificate::{Certificate, Point, activity, admissible, reduced_costs};
use crate::extended::Sum;
use crate::scaling::Scaling;
use crate::search::{DUAL, PRIMAL, conclusive, solve};
use crate::{Column, Limits, Program, Row, Solution, SolverError};

/// Rounds of refinement.
const ROUNDS: usize = 4;
/// Largest factor by which a round enlarges errors.
const ENLARGE: f64 = 1e12;
/// Least optimum of a program of violations or directions, in balanced units, that is not rounding.
const LEAST: f64 = 1e-9;

/// Outcome of a program, before a verdict without a solution is proven.
enum Outcome {
    Proven(Point, Certificate),
    Infeasible,
    Unbounded,
    Unproven(String),
}

/// Minimises a program without integer variables.
pub(crate) fn minimise(program: &Program) -> Result<Solution, SolverError> {
    if program.columns.iter().any(|column| column.bounds.start() > column.bounds.end()) {
        return Err(SolverError::Infeasible);
    }
    let (scaled, scaling) = Scaling::of(program);
    match outcome(program, &scaled, &scaling) {
        Outcome::Proven(point, certificate) => Ok(solution(program, &scaling, &point, certificate)),
        Outcome::Unproven(why) => Err(SolverError::Unproven(why)),
        Outcome::Infeasible => {
            prove_infeasible(&scaled)?;
            Err(SolverError::Infeasible)
        }
        Outcome::Unbounded => {
            if violations(&scaled)?.bound > LEAST {
                return Err(SolverError::Infeasible);
            }
            prove_unbounded(&scaled)?;
            Err(SolverError::Unbounded)
        }
    }
}

/// The solution in the units of the given program, and the bound that the prices prove.
fn solution(program: &Program, scaling: &Scaling, point: &Point, certificate: Certificate) -> Solution {
    let values = scaling.given(&point.values);
    let mut objective = Sum::default();
    for (column, &value) in program.columns.iter().zip(&values) {
        objective.add(column.cost, value);
    }
    let (objective, bound) = (objective.value(), scaling.given_objective(certificate.bound));
    Solution { values, objective, bound: bound.min(objective), gap: 0.0 }
}

fn outcome(program: &Program, scaled: &Program, scaling: &Scaling) -> Outcome {
    if let Attempt::Optimal(point) = attempt(program) {
        let point =
            Point { values: scaling.scaled(&point.values), prices: scaling.scaled_prices(&point.prices) };
        if let Some(proven) = proven(scaled, point) {
            return proven;
        }
    }
    match attempt(scaled) {
        Attempt::Optimal(point) => refine(scaled, point),
        Attempt::Infeasible => Outcome::Infeasible,
        Attempt::Unbounded => Outcome::Unbounded,
        Attempt::Unknown(why) => Outcome::Unproven(why),
    }
}

enum Attempt {
    Optimal(Point),
    Infeasible,
    Unbounded,
    Unknown(String),
}

/// Solves with HiGHS, without a proof.
fn attempt(program: &Program) -> Attempt {
    let mut solved = solve(program, false, Limits::default(), None, DUAL);
    if !solved.as_ref().is_ok_and(|solved| conclusive(solved.status())) {
        // If nothing satisfies all rows, the dual method sometimes cannot prove it, but the primal method can.
        solved = solve(program, false, Limits::default(), None, PRIMAL);
    }
    let solved = match solved {
        Ok(solved) => solved,
        // HiGHS rejects coefficients of extreme magnitudes; other units may avoid them.
        Err(error) => return Attempt::Unknown(error.to_string()),
    };
    match solved.status() {
        Status::Optimal => {
            let found = solved.get_solution();
            // HiGHS has the prices of rows in the units in which it got them.
            let scaled = found.dual_rows().iter().zip(&program.rows).map(|(price, row)| price / row.scale());
            Attempt::Optimal(Point { values: found.columns().to_vec(), prices: scaled.collect() })
        }
        Status::Infeasible => Attempt::Infeasible,
        Status::Unbounded | Status::UnboundedOrInfeasible => Attempt::Unbounded,
        status => Attempt::Unknown(format!("the solver ended with status {status:?}")),
    }
}

fn proven(program: &Program, mut point: Point) -> Option<Outcome> {
    point.prices = admissible(program, &point.prices);
    let certificate = Certificate::of(program, &point);
    certificate.is_proof().then_some(Outcome::Proven(point, certificate))
}

/// Improves a point of a balanced program until its prices prove it.
fn refine(program: &Program, mut point: Point) -> Outcome {
    point.prices = admissible(program, &point.prices);
    let mut certificate = Certificate::of(program, &point);
    for _ in 0..ROUNDS {
        if certificate.is_proof() {
            break;
        }
        let enlarge =
            |error: f64| if error > 0.0 { (1.0 / error).min(ENLARGE).log2().floor().exp2() } else { ENLARGE };
        let (primal, dual) = (enlarge(certificate.excess), enlarge(certificate.mispriced));
        let reduced = reduced_costs(program, &point.prices);
        let columns =
            program.columns.iter().zip(&point.values).zip(reduced).map(|((column, value), reduced)| Column {
                cost: reduced * dual,
                bounds: (column.bounds.start() - value) * primal..=(column.bounds.end() - value) * primal,
                integer: false,
            });
        let rows = program.rows.iter().map(|row| {
            let sum = activity(row, &point.values);
            let bounds = -sum.less(*row.bounds.start()) * primal..=-sum.less(*row.bounds.end()) * primal;
            Row { bounds, terms: row.terms.clone() }
        });
        let errors = Program { columns: columns.collect(), rows: rows.collect() };
        let Attempt::Optimal(change) = attempt(&errors) else { break };
        let add = |to: &[f64], change: &[f64], by: f64| -> Vec<f64> {
            to.iter().zip(change).map(|(to, change)| to + change / by).collect()
        };
        let next = Point {
            values: add(&point.values, &change.values, primal),
            prices: admissible(program, &add(&point.prices, &change.prices, dual)),
        };
        let better = Certificate::of(program, &next);
        let (error, before) = (better.gap() + better.excess, certificate.gap() + certificate.excess);
        if !error.is_finite() || error >= before {
            break;
        }
        (point, certificate) = (next, better);
    }
    if certificate.is_proof() {
        return Outcome::Proven(point, certificate);
    }
    let share = certificate.gap() / certificate.magnitude.max(f64::MIN_POSITIVE);
    Outcome::Unproven(format!(
        "its values violate a row by {:.0e} of the row, and are up to {share:.0e} from the optimum",
        certificate.violation
    ))
}

/// The smallest sum of violations of rows, proven.
fn violations(scaled: &Program) -> Result<Certificate, SolverError> {
    let mut program = scaled.clone();
    program.columns.iter_mut().for_each(|column| column.cost = 0.0);
    for at in 0..program.rows.len() {
        for sign in [1.0, -1.0] {
            let over = program.add(1.0, 0.0..=f64::INFINITY);
            program.rows[at].terms.push((over, sign));
        }
    }
    optimum(&program, "whether values satisfy all constraints is unknown")
}

fn prove_infeasible(scaled: &Program) -> Result<(), SolverError> {
    let least = violations(scaled)?;
    if least.bound > LEAST {
        return Ok(());
    }
    Err(SolverError::Unproven(format!(
        "it finds no values, but a violation of {:.0e} would suffice",
        least.objective.max(0.0)
    )))
}

/// Proves a direction along which the objective falls and no row or bound ends.
fn prove_unbounded(scaled: &Program) -> Result<(), SolverError> {
    let open = |bounds: &std::ops::RangeInclusive<f64>, most: f64| {
        let start = if bounds.start().is_finite() { 0.0 } else { -most };
        start..=if bounds.end().is_finite() { 0.0 } else { most }
    };
    let columns = scaled.columns.iter();
    let rows = scaled.rows.iter();
    let program = Program {
        columns: columns
            .map(|column| Column { bounds: open(&column.bounds, 1.0), ..column.clone() })
            .collect(),
        rows: rows.map(|row| Row { bounds: open(&row.bounds, f64::INFINITY), ..row.clone() }).collect(),
    };
    let best = optimum(&program, "whether the objective has a lower bound is unknown")?;
    // The direction itself may violate rows by rounding; the bound says what that is worth.
    if best.objective < -LEAST && best.gap() < 0.5 * best.objective.abs() {
        return Ok(());
    }
    Err(SolverError::Unproven("it finds no optimum, but no direction without end either".into()))
}

/// Proven optimum of a balanced program that has one.
fn optimum(program: &Program, unknown: &str) -> Result<Certificate, SolverError> {
    if let Attempt::Optimal(point) = attempt(program)
        && let Outcome::Proven(_, certificate) = refine(program, point)
    {
        return Ok(certificate);
    }
    Err(SolverError::Unproven(unknown.into()))
}
