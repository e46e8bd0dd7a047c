//! Bounds of systems whose capacities differ by many orders of magnitude, as with links that are written as infinite.

use crate::support::systems::{Draw, curve, demand, draws, on_paths, promise, queue};
use leeward_slo::bound::{BoundSettings, Method, Unbounded, Unit, bounds};
use leeward_slo::{Slo, System};
use leeward_traces::Stage;
use proptest::prelude::*;

const PATHS: &[&[usize]] = &[&[0, 1], &[1, 2], &[2, 3], &[0, 1, 2], &[3]];

/// A system on [`PATHS`] with a queue of the given capacity between any two queues, or without these queues.
fn with_fast_queues(draws: &[Draw], capacity: Option<f64>) -> System {
    let mut system = on_paths(draws, PATHS, 0.9);
    if let Some(capacity) = capacity {
        system.queues.extend((0..4).map(|at| queue(&format!("fast{at}"), capacity)));
        for promise in &mut system.promises {
            let own = promise.route[0].clone();
            promise.route[0] = own.into_iter().flat_map(|queue| [queue, 4 + queue]).collect();
        }
    }
    system
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A queue can only add to a bound, and a queue that is never full adds nothing that can be measured. `plp` relaxes
    /// the order of events: a queue between two others divides its periods, which may tighten its bound a little.
    #[test]
    fn fast_queues_do_not_lower_a_bound(draws in draws(4, true), power in 3_i32..24) {
        let settings = BoundSettings { unit: Unit::Fluid, ..BoundSettings::default() };
        for method in [Method::Dnc, Method::PriorityMeister, Method::Plp] {
            let tolerance = if method == Method::Plp { 0.02 } else { 1e-6 };
            let without = bounds(&with_fast_queues(&draws, None), method, settings);
            let with = bounds(&with_fast_queues(&draws, Some(10f64.powi(power))), method, settings);
            for (without, with) in without.into_iter().zip(with) {
                let without = without.expect("a bound");
                match with {
                    Ok(with) => prop_assert!(
                        with.seconds >= without.seconds * (1.0 - tolerance),
                        "{method:?} {power}: {} {}", with.seconds, without.seconds
                    ),
                    Err(error) => prop_assert!(matches!(error, Unbounded::Solver { .. }), "{error}"),
                }
            }
        }
    }

    /// Work in bits, bytes or petabytes, and time in hours or nanoseconds: bounds are the same.
    #[test]
    fn bounds_do_not_depend_on_the_unit_of_work(draws in draws(4, true), power in -40_i32..40) {
        let settings = BoundSettings { unit: Unit::Fluid, ..BoundSettings::default() };
        let system = on_paths(&draws, PATHS, 0.9);
        let unit = f64::from(power).exp2();
        let mut other = system.clone();
        other.queues.iter_mut().for_each(|queue| queue.capacity *= unit);
        for (other, given) in other.promises.iter_mut().zip(&system.promises) {
            let buckets: Vec<(f64, f64)> =
                given.limits[0].buckets().iter().map(|b| (b.rate() * unit, b.burst() * unit)).collect();
            let largest = given.workload.demands[0].largest * unit;
            let demand = demand(Stage::NetworkIn, curve(&buckets), largest);
            let stages = vec![(demand, given.route[0].clone(), given.priorities[0])];
            *other = promise(&given.workload.name, given.workload.slo, stages);
        }
        for method in [Method::Dnc, Method::PriorityMeister, Method::Plp] {
            let pairs = bounds(&system, method, settings).into_iter().zip(bounds(&other, method, settings));
            for (given, other) in pairs {
                let (given, other) = (given.expect("a bound").seconds, other.expect("a bound").seconds);
                prop_assert!((given - other).abs() <= 1e-6 * given, "{method:?}: {given} {other}");
            }
        }
    }
}

#[test]
fn two_hops_behind_a_higher_priority_take_the_same_time_beside_links_of_any_rate() {
    // At each of two links of 20, a flow of 10 and a burst of 100 goes first. The flow of rate 5 waits 10 at each, and
    // its own burst of 25 leaves at 10: 22.5 in total, which is reached.
    let slo = Some(Slo { percentile: 99.0, latency: 15.0 });
    for fast in [20.0, 1e3, 1e6, 1e10, 1.25e10, 1e13, 1e16] {
        let flow = |name, bucket, route: &[usize], priority| {
            let demand = demand(Stage::NetworkIn, curve(&[bucket]), 1.0);
            promise(name, slo, vec![(demand, route.to_vec(), priority)])
        };
        let system = System {
            queues: [("a", 20.0), ("b", 20.0), ("c", fast), ("d", fast)].map(|(n, c)| queue(n, c)).to_vec(),
            promises: vec![
                flow("f", (5.0, 25.0), &[0, 1], 1),
                flow("h1", (10.0, 100.0), &[0, 2], 0),
                flow("h2", (10.0, 100.0), &[3, 1], 0),
            ],
        };
        let settings = BoundSettings { unit: Unit::Fluid, ..BoundSettings::default() };
        for method in Method::ALL.into_iter().filter(|method| *method != Method::Snc) {
            let bound = bounds(&system, method, settings).remove(0).expect("a bound").seconds;
            assert!(
                (bound - 22.5).abs() < 1e-5 || method == Method::Plp && bound > 22.5,
                "{fast} {method:?}: {bound}"
            );
        }
    }
}
