//! Models: properties of their bounds, and rejected inputs.

use leeward_calculus::mmpp::{Mmpp, Requests, Sigma, Sizes, State};
use proptest::prelude::*;

fn state(requests: f64, mean: f64) -> State {
    State { requests: Requests::Poisson(requests), sizes: Sizes::Exponential { mean } }
}

/// A chain whose states reach one another; their rates are random and in no order.
fn chain() -> impl Strategy<Value = Mmpp> {
    (2usize..6).prop_flat_map(|n| {
        let rows = prop::collection::vec(prop::collection::vec(1e-3..1.0f64, n), n);
        let states = prop::collection::vec((0.0..0.5f64, 0.1..2.0f64), n);
        (rows, states).prop_map(|(rows, states)| {
            let normal = |row: &Vec<f64>| {
                let sum: f64 = row.iter().sum();
                row.iter().map(|p| p / sum).collect()
            };
            let rows: Vec<Vec<f64>> = rows.iter().map(normal).collect();
            let states = states.into_iter().map(|(requests, mean)| state(requests, mean)).collect();
            Mmpp::new(1.0, states, &rows, Sigma::Stationary).unwrap()
        })
    })
}

proptest! {
    #[test]
    fn the_bound_holds_for_the_exact_moments_of_any_chain(model in chain(), theta in 0.01..0.45f64) {
        let n = model.states().len();
        let bound = model.bound(theta).unwrap();
        let moment = |state: &State| {
            let Sizes::Exponential { mean } = state.sizes else { unreachable!() };
            (state.requests.mean() * theta * mean / (1.0 - theta * mean)).exp()
        };
        // pi E (Q E)^(k - 1) 1, from the right.
        let mut tail = vec![1.0; n];
        for steps in 1..30 {
            let weighted: Vec<f64> = (0..n).map(|at| moment(&model.states()[at]) * tail[at]).collect();
            let exact: f64 = (0..n).map(|at| model.stationary()[at] * weighted[at]).sum();
            let limit = (theta * (bound.rho * f64::from(steps) + bound.sigma)).exp();
            prop_assert!(exact <= limit * (1.0 + 1e-9), "{steps} steps: {exact} above {limit}");
            tail = (0..n).map(|from| (0..n).map(|to| model.transition(from, to) * weighted[to]).sum()).collect();
        }
    }

    #[test]
    fn a_reversible_chain_has_a_small_sigma_valid_for_its_exact_moments(
        model in chain(), theta in 0.01..0.45f64, leave in 1e-6..1.0f64,
    ) {
        let n = model.states().len();
        let law = model.stationary();
        let flow = |from: usize, to: usize| law[from] * model.transition(from, to);
        // The mean of the chain and its reverse, with rarer transitions if steps are short.
        let rows: Vec<Vec<f64>> = (0..n)
            .map(|from| {
                let back = |to: usize| leave * (flow(from, to) + flow(to, from)) / (2.0 * law[from]);
                let leaves: f64 = (0..n).filter(|&to| to != from).map(back).sum();
                (0..n).map(|to| if to == from { 1.0 - leaves } else { back(to) }).collect()
            })
            .collect();
        let both = Mmpp::new(1.0, model.states().to_vec(), &rows, Sigma::Stationary).unwrap();
        let bound = both.bound(theta).unwrap();
        let moment = |state: &State| {
            let Sizes::Exponential { mean } = state.sizes else { unreachable!() };
            (state.requests.mean() * theta * mean / (1.0 - theta * mean)).exp()
        };
        let step: f64 = (0..n).map(|at| law[at] * moment(&both.states()[at])).sum();
        prop_assert!(bound.sigma <= step.ln() / theta * (1.0 + 1e-9), "sigma exceeds the work of one step");
        let mut tail = vec![1.0; n];
        for steps in 1..200 {
            let weighted: Vec<f64> = (0..n).map(|at| moment(&both.states()[at]) * tail[at]).collect();
            let exact: f64 = (0..n).map(|at| law[at] * weighted[at]).sum();
            let limit = (theta * (bound.rho * f64::from(steps) + bound.sigma)).exp();
            prop_assert!(exact <= limit * (1.0 + 1e-9), "{steps} steps: {exact} above {limit}");
            tail = (0..n).map(|from| (0..n).map(|to| rows[from][to] * weighted[to]).sum()).collect();
        }
    }

    #[test]
    fn the_reversible_form_of_a_slow_chain_bounds_the_chain(
        model in chain(), theta in 0.01..0.45f64, leave in 1e-5..1e-3f64,
    ) {
        let n = model.states().len();
        let law = model.stationary();
        // Requests become as rare as changes of state: the same process in short steps.
        let states: Vec<State> = (model.states().iter())
            .map(|state| {
                let Sizes::Exponential { mean } = state.sizes else { unreachable!() };
                self::state(state.requests.mean() * leave, mean)
            })
            .collect();
        let slow = |symmetric: bool| {
            let flow = |from: usize, to: usize| law[from] * model.transition(from, to);
            let row = |from: usize| {
                let next = |to: usize| {
                    let back = if symmetric { (flow(from, to) + flow(to, from)) / 2.0 } else { flow(from, to) };
                    leave * back / law[from]
                };
                let leaves: f64 = (0..n).filter(|&to| to != from).map(next).sum();
                (0..n).map(|to| if to == from { 1.0 - leaves } else { next(to) }).collect()
            };
            (0..n).map(row).collect::<Vec<Vec<f64>>>()
        };
        let bound = Mmpp::new(1.0, states.clone(), &slow(true), Sigma::Stationary).unwrap().bound(theta).unwrap();
        let moment = |state: &State| {
            let Sizes::Exponential { mean } = state.sizes else { unreachable!() };
            (state.requests.mean() * theta * mean / (1.0 - theta * mean)).exp()
        };
        let (rows, mut tail) = (slow(false), vec![1.0; n]);
        for steps in 1..3000 {
            let weighted: Vec<f64> = (0..n).map(|at| moment(&states[at]) * tail[at]).collect();
            let exact: f64 = (0..n).map(|at| law[at] * weighted[at]).sum();
            let limit = (theta * (bound.rho * f64::from(steps) + bound.sigma)).exp();
            // Terms of second order in the probability that a step leaves a state.
            let room = 1.0 + f64::from(steps) * leave * leave;
            prop_assert!(exact <= limit * room, "{steps} steps: {exact} above {limit}");
            tail = (0..n).map(|from| (0..n).map(|to| rows[from][to] * weighted[to]).sum()).collect();
        }
    }

    #[test]
    fn rho_rises_with_theta_from_the_mean(model in chain()) {
        let mut before = model.mean() * (1.0 - 1e-6);
        for theta in [1e-6, 1e-3, 0.01, 0.1, 0.2, 0.4] {
            let rho = model.bound(theta).unwrap().rho;
            prop_assert!(rho >= before, "{rho} at {theta} after {before}");
            before = rho * (1.0 - 1e-12);
        }
        prop_assert!((model.bound(1e-7).unwrap().rho / model.mean() - 1.0).abs() < 1e-4);
    }
}

#[test]
fn invalid_models_are_rejected_with_a_reason() {
    let two = || vec![state(0.1, 1.0), state(0.2, 1.0)];
    let even = || vec![vec![0.5, 0.5], vec![0.5, 0.5]];
    let table = [
        (Mmpp::new(0.0, two(), &even(), Sigma::Zero), "step of 0 s"),
        (Mmpp::new(f64::NAN, two(), &even(), Sigma::Zero), "step of NaN s"),
        (Mmpp::new(1.0, Vec::new(), &[], Sigma::Zero), "a chain of 0 states"),
        (Mmpp::new(1.0, vec![state(0.1, 1.0); 17], &[], Sigma::Zero), "a chain of 17 states"),
        (Mmpp::new(1.0, two(), &[vec![1.0]], Sigma::Zero), "1 rows of transitions for 2 states"),
        (Mmpp::new(1.0, two(), &[vec![1.0, 0.0], vec![-0.5, 1.5]], Sigma::Zero), "probability -0.5"),
        (Mmpp::new(1.0, two(), &[vec![f64::NAN, 0.0], vec![0.5, 0.5]], Sigma::Zero), "probability NaN"),
        (Mmpp::new(1.0, two(), &[vec![0.5, 0.4], vec![0.5, 0.5]], Sigma::Zero), "sum to 0.9"),
        (Mmpp::new(1.0, vec![state(f64::NAN, 1.0)], &[vec![1.0]], Sigma::Zero), "NaN requests"),
        (Mmpp::new(1.0, vec![state(-1.0, 1.0)], &[vec![1.0]], Sigma::Zero), "-1 requests"),
        (Mmpp::new(1.0, vec![state(1.0, f64::INFINITY)], &[vec![1.0]], Sigma::Zero), "mean size inf"),
        (
            Mmpp::new(1.0, two(), &[vec![1.0, 0.0], vec![0.5, 0.5]], Sigma::Stationary),
            "state 0 never leads to state 1",
        ),
    ];
    for (result, reason) in table {
        let error = result.expect_err(reason).to_string();
        assert!(error.contains(reason), "{error:?} does not say {reason:?}");
    }
    let bernoulli = State { requests: Requests::Bernoulli(1.5), sizes: Sizes::Exponential { mean: 1.0 } };
    assert!(Mmpp::new(1.0, vec![bernoulli], &[vec![1.0]], Sigma::Zero).is_err());
}
