//! Small linear programs beside an independent method in exact integers: the optimum is the best of all vertices.
//!
//! The feasible points are a bounded polytope, so the optimum is at a vertex: a point where as many constraints as there
//! are variables are equalities. Cramer's rule gives each such point as a quotient of determinants.

use std::cmp::Ordering;

use leeward_solver::{Program, SolverError, Variable};
use proptest::prelude::*;

const VARIABLES: usize = 4;
const MOST: i128 = 10;

/// Constraint `sum of coefficients x variables >= least`.
type Row = ([i128; VARIABLES], i128);

/// A quotient with a positive denominator.
type Fraction = (i128, i128);

/// Every row of a program with 0 <= x <= `MOST`.
fn all_rows(rows: &[Row]) -> Vec<Row> {
    let unit = |at: usize, sign: i128| std::array::from_fn(|index| if index == at { sign } else { 0 });
    let bounds = (0..VARIABLES).flat_map(|at| [(unit(at, 1), 0), (unit(at, -1), -MOST)]);
    rows.iter().copied().chain(bounds).collect()
}

/// Determinant, by the rule of Laplace along the first row.
fn determinant(matrix: &[Vec<i128>]) -> i128 {
    let Some((first, rest)) = matrix.split_first() else { return 1 };
    let minor = |without: usize| -> Vec<Vec<i128>> {
        let kept = |row: &Vec<i128>| {
            row.iter().enumerate().filter(|(at, _)| *at != without).map(|(_, &value)| value).collect()
        };
        rest.iter().map(kept).collect()
    };
    let sign = |at: usize| if at.is_multiple_of(2) { 1 } else { -1 };
    let terms = first.iter().enumerate().filter(|(_, value)| **value != 0);
    terms.map(|(at, value)| sign(at) * value * determinant(&minor(at))).sum()
}

/// The point where these rows are equalities: numerators and their common, positive denominator.
fn meeting(rows: &[Row]) -> Option<([i128; VARIABLES], i128)> {
    let columns = |replaced: Option<usize>| -> Vec<Vec<i128>> {
        let value = |row: &Row, at: usize| if Some(at) == replaced { row.1 } else { row.0[at] };
        rows.iter().map(|row| (0..VARIABLES).map(|at| value(row, at)).collect()).collect()
    };
    let below = determinant(&columns(None));
    let sign = below.signum();
    (below != 0).then(|| {
        let numerators = std::array::from_fn(|at| sign * determinant(&columns(Some(at))));
        (numerators, sign * below)
    })
}

/// Calls `visit` with each choice of `count` of the rows.
fn choices(rows: &[Row], count: usize, chosen: &mut Vec<Row>, visit: &mut impl FnMut(&[Row])) {
    if chosen.len() == count {
        return visit(chosen);
    }
    for (at, &row) in rows.iter().enumerate() {
        chosen.push(row);
        choices(&rows[at + 1..], count, chosen, visit);
        chosen.pop();
    }
}

/// The least cost over all vertices; `None` if there is none.
fn least(costs: &[i128; VARIABLES], rows: &[Row]) -> Option<Fraction> {
    let rows = all_rows(rows);
    let dot =
        |a: &[i128; VARIABLES], b: &[i128; VARIABLES]| -> i128 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let mut best: Option<Fraction> = None;
    choices(&rows, VARIABLES, &mut Vec::new(), &mut |active| {
        let Some((point, below)) = meeting(active) else { return };
        if rows.iter().all(|(row, least)| dot(row, &point) >= least * below) {
            let cost = (dot(costs, &point), below);
            let less = |best: &Fraction| (cost.0 * best.1).cmp(&(best.0 * cost.1)) == Ordering::Less;
            if best.as_ref().is_none_or(less) {
                best = Some(cost);
            }
        }
    });
    best
}

fn row() -> impl Strategy<Value = Row> {
    (prop::array::uniform4(-9_i128..10), -40_i128..60)
}

fn unit() -> impl Strategy<Value = f64> {
    (-40_i32..40).prop_map(|power| f64::from(power).exp2())
}

proptest! {
    #[test]
    fn the_optimum_is_the_best_vertex_in_any_units(
        costs in prop::array::uniform4(-20_i128..21),
        rows in prop::collection::vec(row(), 0..6),
        units in prop::array::uniform4(unit()),
        by in prop::array::uniform6(unit()),
    ) {
        let mut program = Program::new();
        let variables: Vec<Variable> = costs
            .iter()
            .zip(units)
            .map(|(&cost, unit)| program.add(cost as f64 * unit, 0.0..=MOST as f64 / unit))
            .collect();
        for ((row, least), by) in rows.iter().zip(by) {
            let terms: Vec<_> =
                variables.iter().zip(row).zip(units).map(|((&v, &a), unit)| (v, a as f64 * unit * by)).collect();
            program.constrain(*least as f64 * by..=f64::INFINITY, &terms);
        }
        match (least(&costs, &rows), program.minimise(Default::default(), None)) {
            (Some((above, below)), Ok(solution)) => {
                let exact = above as f64 / below as f64;
                let scale = 1e-7 * (1.0 + exact.abs());
                prop_assert!((solution.objective - exact).abs() <= scale, "{} {exact}", solution.objective);
                // A bound is never above the optimum, but for its own rounding to a double.
                prop_assert!(solution.bound <= exact + 1e-12 * (1.0 + exact.abs()), "{} {exact}", solution.bound);
            }
            (None, Err(SolverError::Infeasible)) => {}
            (exact, found) => prop_assert!(false, "exact: {exact:?}, found: {found:?}"),
        }
    }
}
