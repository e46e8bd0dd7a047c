//! HiGHS: the simplex method for linear programs, and the search for integer variables.

use std::num::NonZeroU32;

use highs::{Col, HighsModelStatus, HighsSolutionStatus, Model, RowProblem, Sense, SolvedModel};

use crate::certificate::activity;
use crate::{Limits, Program, Row, Solution, SolverError};

/// Tolerance of a row of a linear program, after division by its largest coefficient; the minimum in HiGHS is 1e-10.
const TOLERANCE: f64 = 1e-9;

/// HiGHS drops smaller coefficients; this is its minimum.
const SMALLEST: f64 = 1e-12;

/// Numbers in HiGHS of the dual and the primal simplex method.
pub(crate) const DUAL: i32 = 1;
pub(crate) const PRIMAL: i32 = 4;

/// Largest distance of an integer variable from an integer, and largest violation of a row by the rounded values, as a
/// share of its terms.
const ROUNDING: f64 = 1e-5;

/// Minimises the objective of a program with integer variables, whose numbers were checked.
pub(crate) fn minimise(
    program: &Program,
    limits: Limits,
    start: Option<&[f64]>,
) -> Result<Solution, SolverError> {
    let solved = solve(program, true, limits, start, DUAL)?;
    match solved.status() {
        HighsModelStatus::Infeasible => return Err(SolverError::Infeasible),
        HighsModelStatus::Unbounded | HighsModelStatus::UnboundedOrInfeasible => {
            return Err(SolverError::Unbounded);
        }
        _ if solved.primal_solution_status() != HighsSolutionStatus::Feasible => {
            return Err(SolverError::Limit { nodes: limits.nodes });
        }
        _ => {}
    }
    let optimal = solved.status() == HighsModelStatus::Optimal;
    let gap = if optimal { 0.0 } else { solved.mip_gap().max(0.0) };
    let (values, objective) = (solved.get_solution().columns().to_vec(), solved.objective_value());
    check_integers(program, &values)?;
    let bound = objective - gap * objective.abs();
    Ok(Solution { values, objective, bound, gap })
}

/// Checks that values satisfy the program with integer variables rounded.
///
/// # Errors
/// [`SolverError::Unproven`] with the violation.
fn check_integers(program: &Program, values: &[f64]) -> Result<(), SolverError> {
    let rounded: Vec<f64> = (program.columns.iter().zip(values))
        .map(|(column, value)| if column.integer { value.round() } else { *value })
        .collect();
    let moved = rounded.iter().zip(values).map(|(rounded, value)| (rounded - value).abs());
    if let Some(by) = moved.reduce(f64::max).filter(|by| *by > ROUNDING) {
        return Err(SolverError::Unproven(format!("an integer variable is {by:.0e} from an integer")));
    }
    for row in &program.rows {
        let sum = activity(row, &rounded);
        let beyond = (-sum.less(*row.bounds.start())).max(sum.less(*row.bounds.end()));
        let scale = sum.magnitude.max(row.scale());
        if beyond.is_nan() || beyond > ROUNDING * scale {
            let share = beyond / scale;
            return Err(SolverError::Unproven(format!("its values violate a row by {share:.0e} of the row")));
        }
    }
    Ok(())
}

/// True if a status is a solution, or the verdict that there is none.
pub(crate) fn conclusive(status: HighsModelStatus) -> bool {
    matches!(
        status,
        HighsModelStatus::Optimal
            | HighsModelStatus::Infeasible
            | HighsModelStatus::Unbounded
            | HighsModelStatus::UnboundedOrInfeasible
    )
}

/// Solves the program with HiGHS. `method` is the simplex method for a linear program.
pub(crate) fn solve(
    program: &Program,
    has_integers: bool,
    limits: Limits,
    start: Option<&[f64]>,
    method: i32,
) -> Result<SolvedModel, SolverError> {
    let failed = |message: &str| SolverError::Failed(message.to_owned());
    let mut problem = RowProblem::default();
    let columns: Vec<Col> = (program.columns.iter())
        .map(|column| problem.add_column_with_integrality(column.cost, column.bounds.clone(), column.integer))
        .collect();
    for row in &program.rows {
        let scale = if has_integers { 1.0 } else { row.scale() };
        let terms =
            row.terms.iter().map(|&(variable, coefficient)| (columns[variable.0], coefficient / scale));
        let bounds = row.bounds.start() / scale..=row.bounds.end() / scale;
        problem.add_row(bounds, terms.collect::<Vec<_>>());
    }
    let mut model: Model = problem.try_optimise(Sense::Minimise).map_err(|e| failed(&format!("{e:?}")))?;
    model.make_quiet();
    model.set_threads(NonZeroU32::MIN);
    model.set_option("random_seed", 0);
    model.set_option("mip_rel_gap", 0.0);
    model.set_option("mip_max_nodes", limits.nodes.min(i32::MAX as u32) as i32);
    if !has_integers {
        model.set_option("presolve", "off");
        model.set_option("small_matrix_value", SMALLEST);
        model.set_option("solver", "simplex");
        model.set_option("simplex_strategy", method);
        model.set_option("primal_feasibility_tolerance", TOLERANCE);
        model.set_option("dual_feasibility_tolerance", TOLERANCE);
    }
    if let Some(start) = start {
        let result = model.try_set_solution(Some(start), None, None, None);
        result.map_err(|e| failed(&format!("start values rejected: {e:?}")))?;
    }
    model.try_solve().map_err(|e| failed(&format!("{e:?}")))
}

impl Row {
    /// The largest coefficient, or 1 for a row without coefficients.
    pub(crate) fn scale(&self) -> f64 {
        let largest = self.terms.iter().map(|(_, coefficient)| coefficient.abs()).fold(0.0, f64::max);
        if largest > 0.0 { largest } else { 1.0 }
    }
}
