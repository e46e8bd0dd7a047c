//! The search itself, by HiGHS.

use std::num::NonZeroU32;

use highs::{Col, HighsModelStatus, HighsSolutionStatus, Model, RowProblem, Sense, SolvedModel};

use crate::{Limits, Program, Row, Solution, SolverError};

/// Tolerance of a row of a linear program, after division by its largest coefficient; the minimum in HiGHS is 1e-10.
const TOLERANCE: f64 = 1e-9;

/// Numbers in HiGHS of the dual and the primal simplex method.
const DUAL: i32 = 1;
const PRIMAL: i32 = 4;

/// Minimises the objective of a program whose numbers were checked.
pub(crate) fn minimise(
    program: &Program,
    limits: Limits,
    start: Option<&[f64]>,
) -> Result<Solution, SolverError> {
    let has_integers = program.columns.iter().any(|column| column.integer);
    let mut solved = solve(program, has_integers, limits, start, DUAL)?;
    let conclusive = [
        HighsModelStatus::Optimal,
        HighsModelStatus::Infeasible,
        HighsModelStatus::Unbounded,
        HighsModelStatus::UnboundedOrInfeasible,
    ];
    if !has_integers && !conclusive.contains(&solved.status()) {
        // If nothing satisfies all rows, the dual method sometimes cannot prove it, but the primal method can.
        solved = solve(program, has_integers, limits, start, PRIMAL)?;
        if !conclusive.contains(&solved.status()) {
            return Err(SolverError::Failed(format!("status {:?}", solved.status())));
        }
    }
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
    let gap = if has_integers && !optimal { solved.mip_gap().max(0.0) } else { 0.0 };
    let (values, objective) = (solved.get_solution().columns().to_vec(), solved.objective_value());
    Ok(Solution { values, objective, gap })
}

/// Solves the program with HiGHS. `method` is the simplex method for a linear program.
fn solve(
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
    fn scale(&self) -> f64 {
        let largest = self.terms.iter().map(|(_, coefficient)| coefficient.abs()).fold(0.0, f64::max);
        if largest > 0.0 { largest } else { 1.0 }
    }
}
