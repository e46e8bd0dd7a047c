//! Tests of stationarity and independence: known processes, errors of the first kind, and short or hostile traces.

use leeward_calculus::assumptions::{Activity, Dependence, Stationarity, dependences, stationarity};
use proptest::prelude::*;

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

/// Ten minutes of requests of 1 to 3 units of work, at `rate` times `shape` of the time, in requests per second. `bursts`
/// has times of bursts; each adds 40 requests within a second.
fn trace(seed: u64, rate: f64, shape: impl Fn(f64) -> f64, bursts: &[f64]) -> Activity {
    let mut draw = uniform(seed);
    let (mut at, mut times) = (0.0, Vec::new());
    loop {
        at -= (1.0 - draw()).ln() / (2.0 * rate);
        if at > 600.0 {
            break;
        }
        // Thinning: the shape is at most 2.
        if draw() < shape(at) / 2.0 {
            times.push(at);
        }
    }
    times.extend(bursts.iter().flat_map(|begin| (0..40).map(move |at| begin + 0.025 * f64::from(at))));
    times.sort_by(f64::total_cmp);
    let mut activity = Activity::default();
    for at in times {
        activity.push((at * 1e9) as u64, 1.0 + 2.0 * draw());
    }
    activity
}

/// About one burst in ten seconds.
fn bursts(seed: u64) -> Vec<f64> {
    let mut draw = uniform(seed);
    (0..60).map(|_| 599.0 * draw()).collect()
}

fn p(activity: &Activity) -> f64 {
    stationarity(activity).expect("a long trace").p
}

/// A rate at a time, as a share of the usual rate.
type Shape = fn(f64) -> f64;

#[test]
fn constant_loads_pass_and_changes_are_found() {
    let of = |seed: u64, shape: Shape| trace(seed, 50.0, shape, &bursts(seed + 100));
    println!("{:<12} {:>10}", "load", "p");
    let table: [(&str, Shape, bool); 6] = [
        ("constant", |_| 1.0, false),
        ("fast waves", |at| 1.0 + 0.9 * (at * 2.0).sin(), false),
        ("step", |at| if at < 300.0 { 1.0 } else { 1.5 }, true),
        ("trend", |at| 0.7 + at / 1000.0, true),
        ("busy middle", |at| if (200.0..400.0).contains(&at) { 1.6 } else { 1.0 }, true),
        ("slow wave", |at| 1.0 + 0.5 * (at / 100.0).sin(), true),
    ];
    for (name, shape, changes) in table {
        for seed in 1..=5 {
            let p = p(&of(seed, shape));
            println!("{name:<12} {p:>10.2e}");
            assert_eq!(p < Stationarity::SIGNIFICANT, changes, "{name}, seed {seed}: {p}");
        }
    }
    let step = stationarity(&of(1, |at| if at < 300.0 { 1.0 } else { 1.5 })).unwrap();
    let [first, second] = step.halves;
    assert!(step.is_rejected() && (1.2..1.7).contains(&(second / first)), "{first} {second}");
}

#[test]
fn few_constant_loads_seem_to_change() {
    // p-values of a valid test are below a share in at most this share of all traces.
    let values: Vec<f64> =
        (1..=400).map(|seed| p(&trace(seed, 20.0, |_| 1.0, &bursts(seed + 1000)))).collect();
    for share in [0.01, 0.05, 0.2] {
        let below = values.iter().filter(|&&p| p <= share).count() as f64 / values.len() as f64;
        let deviation = (share / values.len() as f64).sqrt();
        assert!(below <= share + 3.0 * deviation, "{below} of traces at {share}");
    }
}

fn pairs(activities: &[Activity]) -> Vec<Dependence> {
    dependences(&activities.iter().collect::<Vec<_>>(), |_, _| true)
}

#[test]
fn traces_with_common_bursts_are_dependent_and_others_are_not() {
    for seed in 1..=5 {
        let common = bursts(seed + 500);
        let with = |number: u64, bursts: &[f64]| trace(seed * 100 + number, 20.0, |_| 1.0, bursts);
        let own = |number: u64| bursts(seed * 1000 + number);
        let late: Vec<f64> = common.iter().map(|at| at + 0.4).collect();
        let traces = [with(1, &common), with(2, &own(2)), with(3, &common), with(4, &own(4)), with(5, &late)];
        let found: Vec<(usize, usize)> = pairs(&traces).into_iter().map(|pair| pair.traces).collect();
        assert_eq!(found, [(0, 2), (0, 4), (2, 4)], "seed {seed}");
    }
}

#[test]
fn independent_traces_are_seldom_called_dependent() {
    let traces: Vec<Activity> =
        (1..=40).map(|seed| trace(seed, 20.0, |_| 1.0, &bursts(seed + 1000))).collect();
    // 780 pairs: the probability of a single one is 1 %.
    assert!(pairs(&traces).is_empty(), "{:?}", pairs(&traces));
}

#[test]
fn one_common_burst_of_many_is_chance() {
    let (mut first, mut second) = (bursts(7), bursts(8));
    // A burst of each that is a hundred times larger than the others, at the same time.
    first.extend([300.0; 100]);
    second.extend([300.0; 100]);
    let traces = [trace(1, 20.0, |_| 1.0, &first), trace(2, 20.0, |_| 1.0, &second)];
    assert!(pairs(&traces).is_empty(), "{:?}", pairs(&traces));
}

#[test]
fn pairs_that_are_not_selected_or_have_no_common_time_are_not_tested() {
    let common = bursts(3);
    let traces = [trace(1, 20.0, |_| 1.0, &common), trace(2, 20.0, |_| 1.0, &common)];
    assert_eq!(pairs(&traces).len(), 1);
    assert!(dependences(&[&traces[0], &traces[1]], |_, _| false).is_empty());
    let mut later = Activity::default();
    (0..60_000).for_each(|at| later.push(10_000_000_000_000 + at * 10_000_000, 1.0));
    assert!(pairs(&[traces[0].clone(), later, Activity::default()]).is_empty());
}

#[test]
fn a_trace_and_its_copy_are_dependent_even_if_all_sections_are_alike() {
    let mut periodic = Activity::default();
    for at in 0..12_800_u64 {
        (0..1 + 9 * u64::from(at % 10 == 0)).for_each(|_| periodic.push(at * 10_000_000, 1.0));
    }
    let [pair] = pairs(&[periodic.clone(), periodic])[..] else { panic!("one pair") };
    assert!((pair.correlation - 1.0).abs() < 1e-9 && pair.p < 1e-6, "{pair:?}");
}

proptest! {
    #[test]
    fn results_are_probabilities_for_any_times_and_work(
        times in prop::collection::vec(0u64..u64::MAX, 0..200), work in 0.0..1e18f64, short in any::<bool>(),
    ) {
        let mut times = times;
        if short {
            times.iter_mut().for_each(|at| *at %= 10_000_000_000);
        }
        times.sort_unstable();
        let mut activity = Activity::default();
        times.iter().for_each(|&at| activity.push(at, work));
        if let Some(Stationarity { p, halves }) = stationarity(&activity) {
            prop_assert!((0.0..=1.0).contains(&p) && halves.iter().all(|half| half.is_finite()));
        }
        for pair in pairs(&[activity.clone(), activity, Activity::default()]) {
            prop_assert!((0.0..=1.0).contains(&pair.p) && pair.correlation.is_finite(), "{pair:?}");
        }
    }
}
