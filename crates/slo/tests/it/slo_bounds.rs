//! Bounds of systems against the closed form, one another, the stochastic calculus, and published numbers.

use crate::support::systems;
use std::sync::Arc;

use crate::support::systems::{curve, demand, draws, on_paths, promise, queue, simple, three_stages};
use leeward_calculus::snc::{self, Analysis};
use leeward_calculus::{TokenBucket, stage_delay};
use leeward_slo::bound::{BoundSettings, Bounds, Method, SystemError, Unbounded, Unit, attainable, bounds};
use leeward_slo::{Demand, Promise, Slo, System};
use leeward_traces::Stage;
use proptest::prelude::*;

const FLUID: BoundSettings = BoundSettings {
    unit: Unit::Fluid,
    frame: 1538.0,
    paced: false,
    fifo: true,
    buckets: 32,
    by_request: true,
    outstanding: None,
    lyapunov: false,
    blocks: true,
};
const TREE: &[&[usize]] = &[&[0, 2], &[0, 3], &[1, 2], &[1, 3], &[2], &[0]];
const LINE: &[&[usize]] = &[&[0, 1, 2, 3], &[0, 1], &[1, 2], &[2, 3], &[1, 2, 3], &[3]];
/// Paths that part and meet again. One time per queue would not suffice for them.
const DIAMOND: &[&[usize]] = &[&[0, 1, 3], &[0, 2, 3], &[0, 3], &[1, 3], &[2, 3], &[0, 1]];
const PATHS: [&[&[usize]]; 3] = [TREE, LINE, DIAMOND];
const DETERMINISTIC: [Method; 3] = [Method::Dnc, Method::PriorityMeister, Method::Plp];

/// True if `a` is at most `b`, within the precision of a solver.
fn at_most(a: f64, b: f64) -> bool {
    a <= b * (1.0 + 1e-5) + 1e-9
}

fn seconds(system: &System, method: Method, settings: BoundSettings) -> Vec<Option<f64>> {
    bounds(system, method, settings).into_iter().map(|bound| bound.ok().map(|bound| bound.seconds)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn one_queue_and_one_bucket_per_workload_give_the_closed_form(draws in draws(6, false)) {
        let system = on_paths(&draws, &[&[0]], 1.0);
        let workloads: Vec<(u32, TokenBucket)> = (system.promises.iter())
            .map(|promise| (promise.priorities[0], promise.limits[0].buckets()[0]))
            .collect();
        for method in DETERMINISTIC {
            for (bound, (priority, _)) in bounds(&system, method, FLUID).into_iter().zip(&workloads) {
                let closed = stage_delay(system.queues[0].capacity, &workloads, *priority).unwrap();
                prop_assert!((bound.unwrap().seconds - closed).abs() <= 1e-9 * closed);
            }
        }
    }

    // The program takes traffic of higher priority in any order; the curves use the priorities within it. If paths part
    // and meet again, the program contains the earlier queues once per path.
    #[test]
    fn the_program_is_at_most_the_curves_at_the_last_priority(
        draws in draws(5, true), paths in 0usize..2,
    ) {
        // For whole packets, the program counts one packet at each queue but the last; the hop-by-hop analysis counts
        // none.
        let mut system = on_paths(&draws, PATHS[paths], 0.95);
        system.promises.iter_mut().for_each(|promise| promise.priorities[0] = 0);
        for at in 0..draws.len() {
            system.promises[at].priorities[0] = 1;
            let of = |method| seconds(&system, method, FLUID)[at].unwrap();
            let (curves, program) = (of(Method::Dnc), of(Method::PriorityMeister));
            prop_assert!(at_most(program, curves), "{} {}", program, curves);
            system.promises[at].priorities[0] = 0;
        }
    }

    // The method analyses each priority alone. With a single priority, it uses everything that the curves use.
    #[test]
    fn requests_in_order_are_never_later_than_the_curves_for_one_priority(draws in draws(5, true), paths in 0usize..3) {
        let mut system = on_paths(&draws, PATHS[paths], 0.95);
        system.promises.iter_mut().for_each(|promise| promise.priorities[0] = 0);
        for settings in [FLUID, BoundSettings::default()] {
            let (plp, dnc) = (seconds(&system, Method::Plp, settings), seconds(&system, Method::Dnc, settings));
            for (plp, dnc) in plp.into_iter().zip(dnc) {
                prop_assert!(at_most(plp.unwrap(), dnc.unwrap()), "{:?} {:?}", plp, dnc);
            }
        }
    }

    #[test]
    fn another_workload_never_lowers_a_deterministic_bound(draws in draws(5, true), paths in 0usize..3) {
        for method in DETERMINISTIC {
            let whole = on_paths(&draws, PATHS[paths], 0.95);
            let mut less = whole.clone();
            less.promises.pop();
            let settings = BoundSettings::default();
            let (less, whole) = (seconds(&less, method, settings), seconds(&whole, method, settings));
            for (less, whole) in less.into_iter().zip(whole) {
                prop_assert!(at_most(less.unwrap(), whole.unwrap()));
            }
        }
    }

    #[test]
    fn more_capacity_never_raises_a_deterministic_bound(
        draws in draws(5, true), paths in 0usize..3, at in 0usize..4, more in 1.0..3.0f64,
    ) {
        // With service in order of arrival a bound may grow: a faster link passes a larger part of a burst at once to
        // the next.
        for method in [Method::Dnc, Method::PriorityMeister] {
            let system = on_paths(&draws, PATHS[paths], 0.95);
            let mut faster = system.clone();
            faster.queues[at].capacity *= more;
            let settings = BoundSettings::default();
            let pairs = seconds(&faster, method, settings).into_iter().zip(seconds(&system, method, settings));
            for (faster, slower) in pairs {
                prop_assert!(at_most(faster.unwrap(), slower.unwrap()));
            }
        }
    }

    #[test]
    fn the_best_bound_is_the_minimum_and_names_its_method(draws in draws(5, true)) {
        let system = three_stages(&draws, 0.6);
        let settings = BoundSettings::default();
        let mut bounds = Bounds::new(&system, settings).unwrap();
        for at in 0..draws.len() {
            let best = bounds.bound(at, Method::Best).unwrap();
            prop_assert!(best.seconds.is_finite() && best.method != Method::Best);
            prop_assert_eq!(&bounds.bound(at, best.method).unwrap(), &best);
            prop_assert!((best.stages.iter().sum::<f64>() - best.seconds).abs() < 1e-12);
            for method in Method::ALL {
                let bound = bounds.bound(at, method);
                prop_assert!(bound.is_err() || best.seconds <= bound.unwrap().seconds);
            }
        }
    }

    // Limits hold back a workload that would overload its queues. It has no bound, but the others have.
    #[test]
    fn the_best_bound_exists_and_is_the_minimum_wherever_any_method_has_one(
        draws in draws(5, true), load in 0.4..2.0f64, held in 0.05..1.0f64, which in 0usize..5,
    ) {
        let mut system = three_stages(&draws, load);
        for limit in &mut system.promises[which % draws.len()].limits {
            let buckets: Vec<(f64, f64)> =
                limit.buckets().iter().map(|bucket| (held * bucket.rate(), bucket.burst())).collect();
            *limit = curve(&buckets);
        }
        let mut bounds = Bounds::new(&system, BoundSettings::default()).unwrap();
        for at in 0..draws.len() {
            let best = bounds.bound(at, Method::Best);
            let single = [Method::Dnc, Method::PriorityMeister, Method::Plp, Method::Snc];
            let least = single.iter().filter_map(|&method| Some(bounds.bound(at, method).ok()?.seconds));
            let least = least.reduce(f64::min);
            prop_assert_eq!(best.as_ref().ok().map(|best| best.seconds), least);
            // The miss of an SLO is that of all methods.
            let slo = system.promises[at].workload.slo.unwrap();
            let missed = bounds.miss(at, Method::Best).is_some();
            prop_assert_eq!(missed, least.is_none_or(|least| least > slo.latency));
        }
    }

    #[test]
    fn an_overloaded_queue_has_no_bound(draws in draws(5, true), paths in 0usize..3, over in 1.01..3.0f64) {
        // One more workload passes the first queue at the highest priority, with a rate above its capacity.
        let mut system = on_paths(&draws, PATHS[paths], 0.95);
        let capacity = system.queues[0].capacity;
        let arrivals = curve(&[(over * capacity, 1.0)]);
        let stages = vec![(demand(Stage::NetworkIn, arrivals, 0.5), vec![0], 0)];
        system.promises.push(promise("too much", Some(Slo { percentile: 99.0, latency: 1e9 }), stages));
        for method in DETERMINISTIC {
            for (promise, bound) in system.promises.iter().zip(bounds(&system, method, BoundSettings::default())) {
                if promise.route[0].contains(&0) {
                    let overload = matches!(bound, Err(Unbounded::Overload { .. }));
                    prop_assert!(overload, "{:?}", bound);
                }
                prop_assert!(bound.is_err() || bound.unwrap().seconds.is_finite());
            }
        }
    }

    #[test]
    fn stochastic_bounds_match_the_calculus_for_equal_priorities(draws in draws(5, true)) {
        let mut system = three_stages(&draws, 0.5);
        for (promise, draw) in system.promises.iter_mut().zip(&draws) {
            promise.priorities.fill(draw.priorities[0]);
        }
        let first = system.promises[0].workload.name.clone();
        if let Some(last) = system.promises.last_mut() && draws.len() > 2 {
            Arc::make_mut(&mut last.workload).dependencies = vec![first, "nobody".into()];
        }
        // A device with tails may be busy with any of its requests.
        let inside = |at: usize| {
            let all = system.promises.iter().flat_map(|promise| promise.workload.demands.iter().zip(&promise.route));
            let of = all.filter(|(demand, route)| demand.unloaded > 0.0 && route.contains(&at));
            of.map(|(of, _)| of.largest + of.unloaded * system.queues[at].capacity).fold(0.0, f64::max)
        };
        let queues: Vec<snc::Queue> = (system.queues.iter().enumerate())
            .map(|(at, queue)| snc::Queue { name: queue.name.clone(), rate: queue.capacity, in_service: inside(at), latency: 0.0 })
            .collect();
        let workloads: Vec<snc::Workload> = system.promises.iter().map(|promise| snc_workload(&system, promise)).collect();
        let mut network = snc::Network::new(&queues, &workloads).unwrap();
        network.set_by_request(true);
        network.set_blocks(true);
        network.set_within_steps(true);
        let found = bounds(&system, Method::Snc, BoundSettings::default());
        for (at, bound) in found.into_iter().enumerate() {
            let expected = network.bound(at, Analysis::Bipartite).unwrap().seconds.unwrap() + 0.05;
            let found = bound.unwrap().seconds;
            prop_assert!((found - expected).abs() <= 1e-6 * expected, "{} {}", found, expected);
        }
    }
}

fn snc_workload(system: &System, promise: &Promise) -> snc::Workload {
    let workload = &promise.workload;
    snc::Workload {
        name: workload.name.clone(),
        percentile: workload.slo.unwrap().percentile,
        priority: promise.priorities[0],
        dependencies: workload.dependencies.iter().filter(|&name| name != "nobody").cloned().collect(),
        stages: (workload.demands.iter().zip(&promise.route))
            .map(|(demand, route)| snc::Stage {
                queues: route.iter().map(|&queue| system.queues[queue].name.clone()).collect(),
                arrivals: demand.model.clone().unwrap(),
                packet: demand.largest,
            })
            .collect(),
    }
}

fn bound_of(system: &System, at: usize, method: Method) -> Result<f64, Unbounded> {
    bounds(system, method, BoundSettings::default())[at].clone().map(|bound| bound.seconds)
}

fn one_queue(promises: Vec<Promise>) -> System {
    System { queues: vec![queue("link", 10.0)], promises }
}

#[test]
fn bounds_for_requests_in_order_are_at_most_the_published_ones() {
    // Two queues of rate 10. At each queue, a flow of the first priority takes 0.1 s. Of the other flows, two cross
    // both queues, and one crosses each queue alone. They have one priority, and take half of each queue.
    let of = |name: &str, rate: f64, priority: u32, route: &[usize]| {
        let of = demand(Stage::NetworkIn, curve(&[(rate, 1.0)]), 1.0);
        promise(name, None, vec![(of, route.to_vec(), priority)])
    };
    let rate = 5.0 / 3.0;
    let promises = vec![
        of("one", rate, 1, &[0, 1]),
        of("other", rate, 1, &[0, 1]),
        of("up", rate, 1, &[0]),
        of("down", rate, 1, &[1]),
        of("first up", 0.0, 0, &[0]),
        of("first down", 0.0, 0, &[1]),
    ];
    let system = System { queues: vec![queue("up", 10.0), queue("down", 10.0)], promises };
    let found = seconds(&system, Method::Plp, FLUID);
    // The bound of each of two separate flows is 0.6333. Separated flow analysis merges both flows into one, so the
    // bound here is a little lower.
    assert!(found[0] == found[1] && found[0].unwrap() <= 0.633_333_4, "{found:?}");
    assert!((found[2].unwrap() - 0.4).abs() < 1e-9 && (found[4].unwrap() - 0.1).abs() < 1e-9, "{found:?}");
    assert!(found[0].unwrap() < seconds(&system, Method::Dnc, FLUID)[0].unwrap());
}

#[test]
fn requests_out_of_order_have_no_bound_for_one_order() {
    let on = |stage: Stage, unloaded: f64| {
        let of = Demand { unloaded, ..demand(stage, curve(&[(1.0, 2.0)]), 0.5) };
        let of = promise("w", Some(Slo { percentile: 99.0, latency: 9.0 }), vec![(of, vec![0, 1], 0)]);
        System { queues: vec![queue("a", 10.0), queue("b", 10.0)], promises: vec![of] }
    };
    let any = BoundSettings { fifo: false, ..BoundSettings::default() };
    let order = |system: &System, settings| match &bounds(system, Method::Plp, settings)[0] {
        Err(error @ Unbounded::Order { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    // Equal priorities in any order, and a device with parallel requests that forwards traffic.
    insta::assert_snapshot!(order(&on(Stage::NetworkIn, 0.0), any));
    order(&on(Stage::Storage, 0.1), BoundSettings::default());
    assert!(bounds(&on(Stage::Storage, 0.0), Method::Plp, BoundSettings::default())[0].is_ok());
    assert!(bounds(&on(Stage::NetworkIn, 0.0), Method::Best, any)[0].is_ok());
}

#[test]
fn limits_below_the_arrivals_add_their_shaping_delay() {
    let mut held = simple("held", 0, &[(2.0, 6.0)], 1.0, 1.0);
    let alone = one_queue(vec![held.clone()]);
    assert_eq!(bound_of(&alone, 0, Method::Dnc), Ok(0.6));
    held.limits[0] = curve(&[(4.0, 2.0)]);
    let alone = one_queue(vec![held.clone()]);
    assert_eq!(bound_of(&alone, 0, Method::Dnc), Ok(1.0 + 0.2));
    assert_eq!(bound_of(&alone, 0, Method::PriorityMeister), Ok(1.0 + 0.2));
    held.limits[0] = curve(&[(1.0, 2.0)]);
    assert!(matches!(bound_of(&one_queue(vec![held]), 0, Method::Dnc), Err(Unbounded::Limits { .. })));
}

#[test]
fn the_best_bound_holds_beside_a_workload_that_limits_hold_back() {
    let own = simple("own", 1, &[(2.0, 4.0)], 0.5, 9.0);
    let mut flood = simple("flood", 0, &[(20.0, 3.0)], 0.5, 9.0);
    flood.limits[0] = curve(&[(5.0, 3.0)]);
    let system = one_queue(vec![own, flood]);
    let curves = bound_of(&system, 0, Method::Dnc).unwrap();
    assert!(bound_of(&system, 0, Method::Best).unwrap() <= curves);
    // A flood without limits has no bound, and leaves none.
    assert!(matches!(bound_of(&system, 1, Method::Best), Err(Unbounded::Overload { .. })));
    let mut free = system;
    free.promises[1].limits[0] = curve(&[(20.0, 3.0)]);
    assert!(matches!(bound_of(&free, 0, Method::Best), Err(Unbounded::Overload { .. })));
}

#[test]
fn a_request_larger_than_its_bucket_counts_whole() {
    let mut small = simple("small", 0, &[(2.0, 6.0)], 5.0, 1.0);
    small.limits[0] = curve(&[(2.0, 6.0), (20.0, 1.0)]);
    let beside = simple("beside", 1, &[(1.0, 1.0)], 1.0, 1.0);
    // At least (5 + 1) / 10 / (1 - the rate of higher priorities): the bucket of 1 passes a request of 5.
    let bound = bound_of(&one_queue(vec![small, beside]), 1, Method::Dnc).unwrap();
    assert!(bound >= 0.6, "{bound}");
}

#[test]
fn best_effort_at_the_last_priority_adds_one_request() {
    let first = simple("first", 0, &[(2.0, 6.0)], 1.0, 1.0);
    let alone = bound_of(&one_queue(vec![first.clone()]), 0, Method::Dnc).unwrap();
    let mut effort = simple("effort", u32::MAX, &[(50.0, 1e6)], 3.0, 1.0);
    Arc::make_mut(&mut effort.workload).slo = None;
    let both = one_queue(vec![first, effort]);
    for method in DETERMINISTIC {
        assert!((bound_of(&both, 0, method).unwrap() - alone - 0.3).abs() < 1e-12);
        assert!(matches!(bound_of(&both, 1, method), Err(Unbounded::Overload { .. })));
    }
    assert_eq!(bound_of(&both, 1, Method::Snc), Err(Unbounded::NoSlo { workload: "effort".into() }));
}

#[test]
fn a_missing_model_is_named_and_affects_only_later_workloads() {
    let mut with = simple("with", 0, &[(2.0, 6.0)], 1.0, 1.0);
    Arc::make_mut(&mut with.workload).demands[0].model = Some(systems::model(2.0, 0.5));
    let without = simple("without", 1, &[(2.0, 6.0)], 1.0, 1.0);
    let mut last = with.clone();
    Arc::make_mut(&mut last.workload).name = "last".into();
    last.priorities = vec![2];
    let system = one_queue(vec![with, without, last]);
    assert!(bound_of(&system, 0, Method::Snc).is_ok());
    for at in [1, 2] {
        let Err(Unbounded::NoModel { of, stage, .. }) = bound_of(&system, at, Method::Snc) else { panic!() };
        assert_eq!((of.as_str(), stage), ("without", Stage::NetworkIn));
    }
}

#[test]
fn curves_above_the_capacity_are_an_overload_with_any_models() {
    let modelled = |name: &str, rate: f64, route: Vec<usize>, priority: u32| {
        let mut of = demand(Stage::NetworkIn, curve(&[(rate, 2.0)]), 0.5);
        of.model = Some(systems::model(1.0, 0.1));
        promise(name, Some(Slo { percentile: 99.0, latency: 9.0 }), vec![(of, route, priority)])
    };
    let queues = vec![queue("up", 10.0), queue("down", 100.0), queue("other", 10.0)];
    let promises = vec![
        modelled("first", 4.0, vec![0, 1], 0),
        modelled("second", 7.0, vec![0, 1], 1),
        modelled("behind", 1.0, vec![2, 1], 2),
        modelled("before", 1.0, vec![2, 1], 0),
    ];
    let system = System { queues, promises };
    for method in [Method::Snc, Method::Best] {
        for at in [0, 3] {
            assert!(bound_of(&system, at, method).is_ok(), "{method:?} {at}");
        }
        // The last workload shares a queue with traffic that has passed the overloaded queue.
        for at in [1, 2] {
            let Err(Unbounded::Overload { queue, overload, .. }) = bound_of(&system, at, method) else {
                panic!("{method:?} {at}: {:?}", bound_of(&system, at, method));
            };
            assert_eq!((queue.as_str(), overload.load, overload.service), ("up", 11.0, 10.0));
        }
    }
}

#[test]
fn stochastic_bounds_cover_paths_of_any_length_but_no_cycles() {
    let modelled = |name: &str, route: Vec<usize>| {
        let mut of = demand(Stage::NetworkIn, curve(&[(1.0, 2.0)]), 0.5);
        of.model = Some(systems::model(1.0, 0.1));
        promise(name, Some(Slo { percentile: 99.0, latency: 9.0 }), vec![(of, route, 0)])
    };
    let queues = (0..3).map(|at| queue(&format!("q{at}"), 10.0)).collect();
    let mut system = System { queues, promises: vec![modelled("long", vec![0, 1, 2])] };
    let alone = bound_of(&system, 0, Method::Snc).unwrap();
    system.promises.extend([modelled("a", vec![0, 1]), modelled("b", vec![1, 2])]);
    let beside = bound_of(&system, 0, Method::Snc).unwrap();
    assert!(beside > alone, "{beside} beside others, {alone} alone");
    system.promises.push(modelled("back", vec![2, 0]));
    let Err(Unbounded::Cycle { queue, .. }) = bound_of(&system, 0, Method::Snc) else { panic!() };
    assert!(queue.starts_with('q'), "{queue}");
}

#[test]
fn cyclic_paths_are_rejected_by_name() {
    let on = |name: &str, route: Vec<usize>| {
        let of = demand(Stage::NetworkIn, curve(&[(1.0, 2.0)]), 0.5);
        promise(name, Some(Slo { percentile: 99.0, latency: 9.0 }), vec![(of, route, 0)])
    };
    let queues = (0..2).map(|at| queue(&format!("q{at}"), 10.0)).collect();
    let system = System { queues, promises: vec![on("a", vec![0, 1]), on("b", vec![1, 0])] };
    for method in DETERMINISTIC {
        assert!(matches!(bound_of(&system, 0, method), Err(Unbounded::Cycle { .. })), "{method:?}");
    }
}

#[test]
fn an_invalid_system_is_rejected_by_name_and_never_panics() {
    let valid = one_queue(vec![simple("w", 0, &[(2.0, 6.0)], 1.0, 1.0)]);
    let of = |change: &dyn Fn(&mut System)| {
        let mut system = valid.clone();
        change(&mut system);
        match bound_of(&system, 0, Method::Best) {
            Err(Unbounded::System(error)) => error.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let workload = |system: &mut System, change: &dyn Fn(&mut leeward_slo::Workload)| {
        change(Arc::make_mut(&mut system.promises[0].workload));
    };
    let table = [
        of(&|system| system.queues[0].capacity = f64::NAN),
        of(&|system| system.promises[0].route[0] = vec![]),
        of(&|system| system.promises[0].route[0] = vec![7]),
        of(&|system| system.promises[0].route[0] = vec![0, 0]),
        of(&|system| system.promises[0].priorities.clear()),
        of(&|system| workload(system, &|of| of.slo = Some(Slo { percentile: 100.0, latency: 1.0 }))),
        of(&|system| workload(system, &|of| of.slo = Some(Slo { percentile: 99.0, latency: f64::NAN }))),
        of(&|system| workload(system, &|of| of.demands[0].unloaded = f64::INFINITY)),
        of(&|system| workload(system, &|of| of.demands.clear())),
        of(&|system| system.promises.push(system.promises[0].clone())),
    ];
    insta::assert_snapshot!(table.join("\n"));
    let settings = BoundSettings { frame: f64::NAN, ..BoundSettings::default() };
    assert!(matches!(Bounds::new(&valid, settings), Err(SystemError::Setting { setting: "frame", .. })));
}

#[test]
fn an_slo_below_the_unloaded_tails_names_the_stage() {
    let mut of = promise(
        "w",
        Some(Slo { percentile: 99.0, latency: 0.01 }),
        vec![
            (demand(Stage::NetworkIn, curve(&[(1.0, 1.0)]), 0.1), vec![0], 0),
            (demand(Stage::Storage, curve(&[(1.0, 1.0)]), 0.1), vec![0], 0),
        ],
    );
    assert_eq!(attainable(&of.workload), Ok(()));
    Arc::make_mut(&mut of.workload).demands[1].unloaded = 0.02;
    let error = attainable(&of.workload).unwrap_err();
    assert_eq!((error.stage, error.slo, error.unloaded), (Stage::Storage, 0.01, 0.02));
    Arc::make_mut(&mut of.workload).slo = None;
    assert_eq!(attainable(&of.workload), Ok(()));
}
