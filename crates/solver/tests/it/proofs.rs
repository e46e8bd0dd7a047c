//! Programs whose numbers differ by many orders of magnitude: the optimum is the same in all units, or is refused.

use leeward_solver::{Program, SolverError, Variable};
use proptest::prelude::*;

const ANY: f64 = f64::INFINITY;

/// Minimum of an objective over x in [0, 10]^n with the given rows `a x >= b`, in units of rows and columns.
fn program(costs: &[f64], rows: &[(Vec<f64>, f64)], units: &[f64], by: &[f64]) -> (Program, Vec<Variable>) {
    let mut program = Program::new();
    let variables: Vec<Variable> =
        costs.iter().zip(units).map(|(cost, unit)| program.add(cost * unit, 0.0..=10.0 / unit)).collect();
    for ((row, least), by) in rows.iter().zip(by) {
        let terms: Vec<_> =
            variables.iter().zip(row).zip(units).map(|((&v, a), unit)| (v, a * unit * by)).collect();
        program.constrain(least * by..=ANY, &terms);
    }
    (program, variables)
}

fn unit() -> impl Strategy<Value = f64> {
    (-40_i32..40).prop_map(|power| f64::from(power).exp2())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_optimum_does_not_depend_on_units(
        costs in prop::collection::vec(1_u32..20, 4),
        rows in prop::collection::vec((prop::collection::vec(0_u32..9, 4), 1_u32..9), 1..6),
        units in prop::collection::vec(unit(), 4),
        by in prop::collection::vec(unit(), 6),
    ) {
        let costs: Vec<f64> = costs.into_iter().map(f64::from).collect();
        let rows: Vec<(Vec<f64>, f64)> =
            rows.into_iter().map(|(row, least)| (row.into_iter().map(f64::from).collect(), f64::from(least))).collect();
        let plain = program(&costs, &rows, &[1.0; 4], &[1.0; 6]).0.minimise(Default::default(), None);
        let scaled = program(&costs, &rows, &units, &by).0.minimise(Default::default(), None);
        match (plain, scaled) {
            (Ok(plain), Ok(scaled)) => {
                prop_assert!((plain.objective - scaled.objective).abs() <= 1e-7 * plain.objective.abs());
                for solution in [plain, scaled] {
                    prop_assert!(solution.bound <= solution.objective);
                    prop_assert!(solution.objective - solution.bound <= 1e-7 * solution.objective.abs());
                }
            }
            (plain, scaled) => prop_assert_eq!(plain.err(), scaled.err()),
        }
    }

    /// A chain x1 >= 1, x(k+1) >= x(k) / s, whose coefficients HiGHS drops if s is above 1e9.
    #[test]
    fn small_coefficients_count(factor in 1_i32..70, count in 2_usize..6) {
        let small = f64::from(-factor).exp2();
        let mut program = Program::new();
        let variables: Vec<Variable> = (0..count).map(|at| program.add(if at + 1 == count { 1.0 } else { 0.0 }, 0.0..=ANY)).collect();
        program.constrain(1.0..=ANY, &[(variables[0], 1.0)]);
        for pair in variables.windows(2) {
            program.constrain(0.0..=ANY, &[(pair[1], 1.0), (pair[0], -small)]);
        }
        let expected = small.powi(count as i32 - 1);
        match program.minimise(Default::default(), None) {
            Ok(solution) => prop_assert!((solution.bound / expected - 1.0).abs() < 1e-7, "{} {expected}", solution.bound),
            Err(error) => prop_assert!(matches!(error, SolverError::Unproven(_)), "{error}"),
        }
    }
}

#[test]
fn a_slow_growth_is_not_mistaken_for_the_verdict_unbounded() {
    // y <= x / 1e12 and x <= 1e15 / 1e3: the maximum of y is 1.
    let mut program = Program::new();
    let (x, y) = (program.add(0.0, 0.0..=ANY), program.add(-1.0, 0.0..=ANY));
    program.constrain(-ANY..=0.0, &[(y, 1.0), (x, -1e-12)]);
    program.constrain(-ANY..=1e15, &[(x, 1e3)]);
    let solution = program.minimise(Default::default(), None).expect("a maximum");
    assert!((solution.bound + 1.0).abs() < 1e-8, "{solution:?}");
}

#[test]
fn rows_that_contradict_each_other_by_little_are_infeasible_in_any_units() {
    for unit in [1e-12, 1.0, 1e12] {
        let mut program = Program::new();
        let x = program.add(1.0, 0.0..=ANY);
        program.constrain(-ANY..=1.0 * unit, &[(x, 1.0)]);
        program.constrain(1.001 * unit..=ANY, &[(x, 1.0)]);
        assert_eq!(program.minimise(Default::default(), None), Err(SolverError::Infeasible), "{unit}");
    }
}
