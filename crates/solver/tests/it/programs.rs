//! Programs whose optimum is known from another method.

use leeward_solver::{Limits, Program, SolverError, Variable};
use proptest::prelude::*;

const ANY: f64 = f64::INFINITY;

/// A knapsack problem: items with a value and a weight, and a weight limit.
fn knapsack(items: &[(u32, u32)], most: u32) -> (Program, Vec<Variable>) {
    let mut program = Program::new();
    let variables: Vec<Variable> =
        items.iter().map(|&(worth, _)| program.add_integer(-f64::from(worth), 0.0..=1.0)).collect();
    let weights: Vec<_> =
        variables.iter().zip(items).map(|(&v, &(_, weight))| (v, f64::from(weight))).collect();
    program.constrain(-ANY..=f64::from(most), &weights);
    (program, variables)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn the_best_integer_choice_is_found_and_reproducible(
        items in prop::collection::vec((1_u32..50, 1_u32..50), 1..10), most in 0_u32..150,
    ) {
        let (program, variables) = knapsack(&items, most);
        let solution = program.minimise(Limits::default(), None).expect("a solution");
        let chosen = |mask: u32| items.iter().enumerate().filter(move |(at, _)| mask >> at & 1 == 1);
        let worth = |mask| chosen(mask).map(|(_, item)| item.0).sum::<u32>();
        let fits = |mask: &u32| chosen(*mask).map(|(_, item)| item.1).sum::<u32>() <= most;
        let best = (0..1 << items.len()).filter(fits).map(worth).max().expect("the empty choice fits");
        prop_assert!((solution.objective + f64::from(best)).abs() < 1e-6);
        prop_assert_eq!(solution.gap, 0.0);
        let bit = |(at, &v): (usize, &Variable)| (solution.value(v).round() as u32) << at;
        let mask = variables.iter().enumerate().map(bit).sum();
        prop_assert!(fits(&mask) && worth(mask) == best);
        prop_assert_eq!(program.minimise(Limits::default(), None), Ok(solution));
    }
}

#[test]
fn a_program_without_a_solution_is_an_error_with_its_reason() {
    let mut program = Program::new();
    let x = program.add(1.0, 0.0..=1.0);
    program.constrain(2.0..=ANY, &[(x, 1.0)]);
    assert_eq!(program.minimise(Limits::default(), None), Err(SolverError::Infeasible));
    let mut program = Program::new();
    program.add(-1.0, 0.0..=ANY);
    assert_eq!(program.minimise(Limits::default(), None), Err(SolverError::Unbounded));
    let mut program = Program::new();
    program.add(f64::NAN, 0.0..=ANY);
    assert!(matches!(program.minimise(Limits::default(), None), Err(SolverError::Failed(_))));
}

#[test]
fn a_limited_search_is_no_worse_than_its_start_and_states_its_gap() {
    // Two knapsacks of equal weight, which are hard to prove optimal for odd weights.
    let mut program = Program::new();
    let weights: Vec<f64> = (0..40).map(|i| f64::from((i * i * 7919 + 101) % 9973)).collect();
    let most = program.add(1.0, 0.0..=ANY);
    let sides: Vec<Variable> = weights.iter().map(|_| program.add_integer(0.0, 0.0..=1.0)).collect();
    let total: f64 = weights.iter().sum();
    let mut first: Vec<_> = sides.iter().copied().zip(weights.iter().copied()).collect();
    first.push((most, -1.0));
    program.constrain(-ANY..=0.0, &first);
    let mut second: Vec<_> = sides.iter().copied().zip(weights.iter().map(|weight| -weight)).collect();
    second.push((most, -1.0));
    program.constrain(-ANY..=-total, &second);
    let mut start = vec![0.0; program.len()];
    start[0] = total;
    let solution = program.minimise(Limits { nodes: 1 }, Some(&start)).expect("the start is a solution");
    assert!(solution.objective <= total + 1e-6);
    assert!(solution.gap >= 0.0 && solution.gap.is_finite());
}
