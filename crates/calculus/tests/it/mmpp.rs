//! Models and fits: properties, hard traces, and rejected inputs.

use leeward_calculus::mmpp::{
    FitError, FitSettings, Mmpp, Request, Requests, Sigma, SizeModel, Sizes, State, fit, fit_nanos,
};
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

    #[test]
    fn a_closed_fit_never_brings_less_work_than_its_trace(
        gaps in prop::collection::vec(0.0..0.3f64, 1..300), work in prop::collection::vec(0.0..1e4f64, 300),
    ) {
        let mut at = 0.0;
        let trace: Vec<Request> = gaps.iter().zip(work).map(|(gap, work)| {
            at += gap;
            Request { at, work }
        }).collect();
        for sizes in [SizeModel::Exponential, SizeModel::Hyperexponential, SizeModel::Empirical(8)] {
            let fitted = fit(&trace, &FitSettings { sizes, ..FitSettings::default() }).unwrap();
            prop_assert!(fitted.deviation.work >= -1e-9 && fitted.deviation.requests >= -1e-9, "{:?}", fitted.deviation);
            let total: f64 = trace.iter().map(|request| request.work).sum();
            // A trace of one moment has no known rate, so it counts as a whole interval.
            let seconds = if at > 0.0 { at } else { 0.1 };
            let mean = fitted.model.mean() / fitted.model.step();
            prop_assert!(mean >= total / seconds * (1.0 - 1e-6), "{mean} of {total} in {seconds} s");
        }
    }
}

/// Traces with little information for a fit: (name, trace).
fn hard() -> Vec<(&'static str, Vec<Request>)> {
    let each = |times: &[f64]| times.iter().map(|&at| Request { at, work: 100.0 }).collect::<Vec<_>>();
    let constant: Vec<f64> = (0..200).map(|at| f64::from(at) * 0.05).collect();
    let batches: Vec<f64> = (0..200).map(|at| f64::from(at / 20)).collect();
    vec![
        ("constant rate", each(&constant)),
        ("one request", each(&[3.0])),
        ("one instant", each(&[0.0; 50])),
        ("batches", each(&batches)),
        ("empty intervals", each(&[0.0, 0.01, 0.02, 50.0, 50.01, 99.0])),
        ("no work", vec![Request { at: 1.0, work: 0.0 }, Request { at: 2.0, work: 0.0 }]),
    ]
}

#[test]
fn every_hard_trace_has_a_model_and_a_bound() {
    for (name, trace) in hard() {
        for settings in [FitSettings::default(), FitSettings::published()] {
            let fitted = fit(&trace, &settings).unwrap_or_else(|error| panic!("{name}: {error}"));
            let model = fitted.model;
            let theta = model.limit().min(1.0) / 1e3;
            let bound = model.bound(theta).unwrap_or_else(|| panic!("{name}: no bound at {theta}"));
            assert!(bound.rho >= 0.0 && bound.sigma >= 0.0 && model.mean() >= 0.0, "{name}");
            let deviation = fitted.deviation;
            assert!(
                deviation.requests.is_finite() && deviation.work.is_finite() && deviation.peak.is_finite(),
                "{name}"
            );
        }
    }
}

#[test]
fn a_constant_rate_is_one_state_at_that_rate() {
    let (_, trace) = hard().swap_remove(0);
    let settings = FitSettings { interval: 1.0, ..FitSettings::default() };
    let fitted = fit(&trace, &settings).unwrap();
    assert_eq!(fitted.model.states().len(), 1);
    // The rate of the fullest interval. The last interval includes the rest of the trace: 40 requests in 1.95 s.
    assert!((fitted.model.mean() / fitted.model.step() / (40.0 * 100.0 / 1.95) - 1.0).abs() < 1e-9);
    assert!((0.0..0.03).contains(&fitted.deviation.work));
}

/// Numbers in 0..1 that look random.
fn uniform(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Requests of 1 ms, at exponential times with a mean of 3 ms times `stretch` of the time so far, in groups.
fn stream(seed: u64, count: usize, group: usize, stretch: impl Fn(f64) -> f64) -> Vec<Request> {
    let (mut draw, mut at) = (uniform(seed), 0.0);
    let mut next = |index: usize| {
        if index > 0 && index.is_multiple_of(group) {
            at -= (1.0 - draw()).ln() * 3e-3 * stretch(at) * group as f64;
        }
        Request { at, work: 1e-3 }
    };
    (0..count).map(&mut next).collect()
}

#[test]
fn a_poisson_process_is_one_state_at_its_rate_without_batches() {
    for seed in 1..=20 {
        let trace = stream(seed, 30_000, 1, |_| 1.0);
        let model = fit(&trace, &FitSettings::default()).expect("a model").model;
        let mean = trace.len() as f64 / trace[trace.len() - 1].at * model.step();
        let [state] = model.states() else { panic!("seed {seed}: {} states", model.states().len()) };
        assert!((state.requests.mean() / mean - 1.0).abs() < 1e-9, "seed {seed}");
        assert!((state.sizes.mean() / 1e-3 - 1.0).abs() < 1e-9, "seed {seed}");
    }
}

#[test]
fn what_is_no_poisson_process_keeps_its_batches() {
    let keeps = |trace: &[Request]| {
        let batched = fit(trace, &FitSettings::default()).expect("a model").model;
        let apart = fit(trace, &FitSettings { batch: 0.0, ..FitSettings::default() }).expect("a model").model;
        let mean = |model: &Mmpp| model.states().iter().map(|state| state.sizes.mean()).fold(0.0, f64::max);
        mean(&batched) > mean(&apart)
    };
    // Rates that change fast or slowly, and requests in pairs.
    assert!(keeps(&stream(1, 30_000, 1, |at| if (at / 0.4).fract() < 0.5 { 1.3 } else { 0.7 })));
    assert!(keeps(&stream(1, 30_000, 1, |at| if (at / 20.0).fract() < 0.5 { 1.1 } else { 0.9 })));
    assert!(keeps(&stream(1, 30_000, 2, |_| 1.0)));
    for seed in 1..=5 {
        let poisson = stream(seed, 300_000, 1, |_| 1.0);
        assert!(!keeps(&poisson), "seed {seed}");
        // Bursts of one second, or of ten milliseconds, which the variance of all windows does not show.
        for (count, seconds) in [(300, 2.0), (200, 1.0), (30, 0.01)] {
            let mut trace = poisson.clone();
            let burst = (0..count)
                .map(|at| Request { at: 400.0 + seconds * f64::from(at) / f64::from(count), work: 1e-3 });
            trace.extend(burst);
            trace.sort_by(|one, other| one.at.total_cmp(&other.at));
            assert!(keeps(&trace), "seed {seed}, {count} in {seconds} s");
        }
        // Sizes that are large during half a second of every hundred.
        let mut trace = poisson;
        for request in trace.iter_mut().filter(|request| request.at % 100.0 < 0.5) {
            request.work *= 8.0;
        }
        assert!(keeps(&trace), "seed {seed}");
    }
}

#[test]
fn intervals_longer_than_the_trace_preserve_its_rate() {
    let (_, trace) = hard().swap_remove(0);
    let rate = 200.0 * 100.0 / 9.95;
    for interval in [0.1, 6.0, 9.0, 10.0, 3600.0] {
        let fitted = fit(&trace, &FitSettings { interval, ..FitSettings::default() }).unwrap();
        let mean = fitted.model.mean() / fitted.model.step();
        assert!(mean >= rate * (1.0 - 1e-9), "{interval} s: {mean} where the trace has {rate}");
        assert!(mean <= rate * 1.5, "{interval} s: {mean} where the trace has {rate}");
    }
    // The released method does not preserve the mean, and the deviation shows it.
    let published = fit(&trace, &FitSettings { interval: 3600.0, ..FitSettings::published() }).unwrap();
    assert!((published.deviation.work + 1.0 - 9.95 / 3600.0).abs() < 1e-9, "{:?}", published.deviation);
}

#[test]
fn idle_states_have_no_requests_and_the_idle_share_of_the_trace() {
    // A burst of twenty requests in one of forty intervals; the others are idle.
    let burst: Vec<Request> = (0..20)
        .flat_map(|second| {
            (0..20)
                .map(move |at| Request { at: 4.0 * f64::from(second) + 0.004 * f64::from(at), work: 100.0 })
        })
        .collect();
    let model = fit(&burst, &FitSettings::default()).unwrap().model;
    for state in model.states() {
        assert_eq!(state.requests.mean() > 0.0, state.mean() > 0.0, "{state:?}");
    }
    let idle = model.states().iter().position(|state| state.requests.mean() == 0.0);
    let share = model.stationary()[idle.expect("most intervals are idle")];
    // The last burst ends the trace, in an interval of length 1.76.
    assert!((share - 740.0 / 760.76).abs() < 1e-6, "{share}");
    // A step of a busy interval has a request with the probability of the busy state.
    let step = model.step() / 0.1;
    assert!(model.busy() <= (1.0 - share) * 1.5 * 20.0 * step, "{}", model.busy());
}

#[test]
fn a_merged_batch_has_a_larger_rho_than_its_requests_apart() {
    let (_, trace) = hard().swap_remove(3);
    let batches = fit(&trace, &FitSettings::default()).unwrap().model;
    let apart = fit(&trace, &FitSettings::published()).unwrap().model;
    // At one theta a batch of twenty weighs more than twenty single requests.
    let theta = 1e-3;
    assert!(batches.bound(theta).unwrap().rho > 2.0 * apart.bound(theta).unwrap().rho);
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

#[test]
fn invalid_traces_and_settings_are_rejected_with_a_reason() {
    let good = [Request { at: 0.0, work: 1.0 }, Request { at: 1.0, work: 1.0 }];
    let with = |change: fn(&mut FitSettings)| {
        let mut settings = FitSettings::default();
        change(&mut settings);
        fit(&good, &settings)
    };
    let fit_default = |trace: &[Request]| fit(trace, &FitSettings::default());
    let table: [(Result<_, FitError>, &str); 11] = [
        (fit_default(&[]), "without a request"),
        (fit_default(&[Request { at: f64::NAN, work: 1.0 }]), "request 0 at NaN s"),
        (fit_default(&[good[1], good[0]]), "request 1 at 0 s"),
        (fit_default(&[Request { at: 0.0, work: -1.0 }]), "with work -1"),
        (fit_default(&[Request { at: 1e9, work: 1.0 }]), "intervals: at most"),
        (with(|settings| settings.interval = 0.0), "interval 0: must be positive"),
        (with(|settings| settings.step = f64::NAN), "step NaN: must be positive"),
        (with(|settings| settings.step = 1.0), "step 1: must be no longer than the interval"),
        (with(|settings| settings.batch = -1.0), "batch -1: must be not negative"),
        (with(|settings| settings.batch = f64::NAN), "batch NaN: must be not negative"),
        (with(|settings| settings.states = 0), "states 0: must be 1 to 16"),
    ];
    for (result, reason) in table {
        let error = result.expect_err(reason).to_string();
        assert!(error.contains(reason), "{error:?} does not say {reason:?}");
    }
}

/// Three seconds of a clock with 10, 100 and 20 requests, the first at 0.5 s.
fn three_seconds(origin: u64) -> Vec<(u64, f64)> {
    let second = |(index, count): (u64, u64)| {
        let start = if index == 0 { 500_000_000 } else { 0 };
        (0..count)
            .map(move |at| origin + index * 1_000_000_000 + start + at * (1_000_000_000 - start) / count)
    };
    [(0, 10), (1, 100), (2, 20)].into_iter().flat_map(second).map(|at| (at, 1.0)).collect()
}

#[test]
fn the_published_fit_counts_whole_seconds_of_the_clock_of_the_trace() {
    let settings = FitSettings::published();
    let model = fit_nanos(three_seconds(0), &settings).unwrap().model;
    // The highest level x has x + 2 sqrt(x) = 100.
    let top = (101f64.sqrt() - 1.0).powi(2);
    let highest = model.states().last().unwrap().requests.mean() / settings.step;
    assert!((highest / top - 1.0).abs() < 1e-9, "{highest}, expected {top}");
    let seconds: Vec<Request> =
        three_seconds(0).into_iter().map(|(at, work)| Request { at: at as f64 / 1e9, work }).collect();
    assert_eq!(fit_nanos(three_seconds(0), &settings), fit(&seconds, &settings));
}

#[test]
fn the_fit_of_leeward_does_not_depend_on_the_clock_of_the_trace() {
    let settings = FitSettings { interval: 1.0, ..FitSettings::default() };
    let first = fit_nanos(three_seconds(0), &settings).unwrap();
    for origin in [1, 250_000_000, 1_700_000_000_123_456_789] {
        assert_eq!(fit_nanos(three_seconds(origin), &settings).as_ref(), Ok(&first), "{origin}");
    }
}
