//! Latencies of queues in every analysis: against the closed forms of rate-latency servers, and as properties.

use crate::support::systems::{
    Draw, curve, demand, draws, model, on_paths, promise, queue, simple, three_stages,
};

use leeward_calculus::Packets;
use leeward_slo::bound::{BoundSettings, Bounds, Method, SystemError, Unbounded, Unit, bounds};
use leeward_slo::limits::{self, Compactor, EffectiveBandwidth, settle};
use leeward_slo::{Promise, Queue, Slo, System};
use leeward_traces::Stage;
use proptest::prelude::*;

const DETERMINISTIC: [Method; 3] = [Method::Dnc, Method::PriorityMeister, Method::Plp];
const TREE: &[&[usize]] = &[&[0, 2], &[0, 3], &[1, 2], &[1, 3], &[2], &[0]];
const LINE: &[&[usize]] = &[&[0, 1, 2, 3], &[0, 1], &[1, 2], &[2, 3], &[1, 2, 3], &[3]];

fn fluid() -> BoundSettings {
    BoundSettings { unit: Unit::Fluid, ..BoundSettings::default() }
}

fn late(name: &str, capacity: f64, latency: f64) -> Queue {
    Queue { latency, ..queue(name, capacity) }
}

fn seconds(system: &System, method: Method, settings: BoundSettings) -> Vec<f64> {
    bounds(system, method, settings).into_iter().map(|bound| bound.unwrap().seconds).collect()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * (1.0 + b.abs())
}

fn with_latencies(mut system: System, latencies: &[f64]) -> System {
    for (queue, &latency) in system.queues.iter_mut().zip(latencies) {
        queue.latency = latency;
    }
    system
}

fn latencies() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(prop_oneof![Just(0.0), 0.0..2.0f64], 10)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_longer_latency_never_lowers_a_bound(
        draws in draws(5, true), line in any::<bool>(), latencies in latencies(), at in 0usize..4, more in 0.0..2.0f64,
    ) {
        let system = with_latencies(on_paths(&draws, if line { LINE } else { TREE }, 0.95), &latencies);
        let mut longer = system.clone();
        longer.queues[at].latency += more;
        for settings in [fluid(), BoundSettings::default()] {
            for method in DETERMINISTIC {
                let pairs = seconds(&longer, method, settings).into_iter().zip(seconds(&system, method, settings));
                for (promise, (longer, shorter)) in system.promises.iter().zip(pairs) {
                    let own = if promise.route[0].contains(&at) { more } else { 0.0 };
                    // A queue of the own path adds at least its own latency, within the precision of a solver.
                    let least = (shorter + if method == Method::Plp { 0.0 } else { own }) * (1.0 - 1e-5);
                    prop_assert!(longer >= least - 1e-9, "{:?}: {} {} {}", method, longer, shorter, own);
                }
            }
        }
    }

    #[test]
    fn the_latencies_of_a_path_are_part_of_every_bound(draws in draws(3, true), latencies in latencies()) {
        let system = three_stages(&draws, 0.5);
        let slower = with_latencies(system.clone(), &latencies);
        let (before, after) = (Bounds::new(&system, BoundSettings::default()), Bounds::new(&slower, BoundSettings::default()));
        let (mut before, mut after) = (before.unwrap(), after.unwrap());
        for at in 0..draws.len() {
            let path: f64 = system.promises[at].route.iter().flatten().map(|&queue| latencies[queue]).sum();
            for method in Method::ALL {
                let (before, after) = (before.bound(at, method).unwrap(), after.bound(at, method).unwrap());
                let least = if method == Method::Plp { before.seconds } else { before.seconds + path };
                prop_assert!(after.seconds >= least * (1.0 - 1e-5), "{:?}: {} {} {}", method, after.seconds, before.seconds, path);
            }
            prop_assert!(after.alone(at).unwrap().seconds <= after.bound(at, Method::Dnc).unwrap().seconds);
        }
    }

    #[test]
    fn limits_that_settle_keep_slos_by_every_fluid_bound(draws in draws(4, true), latencies in latencies()) {
        let system = on_paths(&draws.iter().map(|draw| Draw { latency: 3.0 * draw.latency, ..draw.clone() }).collect::<Vec<_>>(), &[&[0]], 0.6);
        let mut system = with_latencies(system, &latencies);
        let all: Vec<usize> = (0..draws.len()).collect();
        if let Ok(settled) = settle(&system, &all, &Compactor::default(), Packets::Fluid) {
            for (promise, limits) in system.promises.iter_mut().zip(settled.limits) {
                promise.limits = limits;
            }
            for (promise, bound) in system.promises.iter().zip(seconds(&system, Method::Dnc, fluid())) {
                prop_assert!(bound <= promise.workload.slo.unwrap().latency * (1.0 + 1e-9), "{}", bound);
            }
        }
    }
}

fn over(name: &str, route: &[usize], priority: u32, bucket: (f64, f64)) -> Promise {
    let mut of = demand(Stage::NetworkIn, curve(&[bucket]), 0.0);
    of.model = Some(model(bucket.0, 0.1));
    let slo = Some(Slo { percentile: 99.0, latency: 9.0 });
    promise(name, slo, vec![(of, route.to_vec(), priority)])
}

/// Le Boudec and Thiran, *Network Calculus*, sections 1.4.2 and 1.4.3: at one queue the delay is T + b / R, and over
/// several queues the latencies add up while the burst counts once, at the lowest rate.
#[test]
fn bounds_of_rate_latency_queues_are_those_of_the_book() {
    let (first, second, third) = (late("a", 10.0, 0.25), late("b", 8.0, 0.5), late("c", 9.0, 0.125));
    let queues = vec![first, second, third];
    for method in DETERMINISTIC {
        let of =
            |promises: Vec<Promise>| seconds(&System { queues: queues.clone(), promises }, method, fluid());
        assert_eq!(of(vec![over("w", &[0], 0, (2.0, 5.0))]), [0.75], "{method:?}");
        let path = of(vec![over("w", &[0, 1, 2], 0, (2.0, 5.0))])[0];
        assert!(near(path, 0.25 + 0.5 + 0.125 + 5.0 / 8.0), "{method:?}: {path}");
        // A lower priority has what is left of R (t - T): (B + R T) / (R - r).
        let two = of(vec![over("first", &[0], 0, (2.0, 5.0)), over("second", &[0], 1, (1.0, 3.0))]);
        assert!(near(two[0], 0.75) && near(two[1], (8.0 + 2.5) / 8.0), "{method:?}: {two:?}");
    }
    // By models, the same latencies come on top.
    let stochastic = |latencies: [f64; 3]| {
        let queues =
            with_latencies(System { queues: queues.clone(), promises: Vec::new() }, &latencies).queues;
        let promises = vec![over("w", &[0, 1, 2], 0, (2.0, 5.0))];
        seconds(&System { queues, promises }, Method::Snc, BoundSettings::default())[0]
    };
    let (none, all) = (stochastic([0.0; 3]), stochastic([0.25, 0.5, 0.125]));
    assert!(near(all - none, 0.875), "{none} {all}");
}

#[test]
fn a_request_in_service_and_the_latency_add_up() {
    let mut queues = vec![late("link", 10.0, 0.5)];
    let promises = vec![simple("w", 0, &[(2.0, 6.0)], 1.0, 1.0), simple("large", 1, &[(1.0, 4.0)], 4.0, 9.0)];
    let bound = |queues: &[Queue], method| {
        let system = System { queues: queues.to_vec(), promises: promises.clone() };
        seconds(&system, method, BoundSettings::default())[0]
    };
    for method in DETERMINISTIC {
        assert!(near(bound(&queues, method), 0.5 + (4.0 + 6.0) / 10.0));
    }
    let system = System { queues: queues.clone(), promises: promises.clone() };
    let alone = Bounds::new(&system, BoundSettings::default()).unwrap().alone(0).unwrap();
    assert!(near(alone.seconds, 0.1 + 0.5), "{}", alone.seconds);
    for latency in [-1.0, f64::NAN, f64::INFINITY] {
        queues[0].latency = latency;
        let system = System { queues: queues.clone(), promises: promises.clone() };
        let error = bounds(&system, Method::Best, BoundSettings::default()).swap_remove(0).unwrap_err();
        assert!(matches!(error, Unbounded::System(SystemError::Latency { .. })), "{error}");
        assert!(error.to_string().starts_with("queue link: latency "), "{error}");
        let error = limits::bounds(&system, Packets::Fluid).unwrap_err();
        assert!(error.to_string().starts_with("queue `link` of latency "), "{error}");
    }
}

#[test]
fn equation_5_1_counts_the_latency_and_the_growth_of_bursts() {
    let promises = vec![over("first", &[0, 1], 0, (2.0, 5.0)), over("second", &[0, 1], 1, (1.0, 3.0))];
    let of = |latencies: &[f64]| {
        let queues = vec![queue("a", 10.0), queue("b", 10.0)];
        let system = with_latencies(System { queues, promises: promises.clone() }, latencies);
        limits::bounds(&system, Packets::Fluid).unwrap().into_iter().map(|bound| bound.unwrap().seconds())
    };
    // Without latencies, the second queue never has a backlog.
    assert!(of(&[0.0, 0.0]).zip([0.5, 1.0]).all(|(bound, expected)| near(bound, expected)));
    // With a latency, late and punctual work may arrive together there: it counts like any other queue.
    let first = 0.25 + 0.5;
    let after = (5.0 + 2.0 * first) / 10.0;
    let mut found = of(&[0.25, 0.0]);
    assert!(near(found.next().unwrap(), first + after));
    let second = (5.0 + 3.0 + 2.5) / 8.0;
    let behind = (5.0 + 2.0 * first + 3.0 + second + 5.0) / 8.0;
    assert!(near(of(&[0.25, 0.5]).nth(1).unwrap(), second + behind));
}

#[test]
fn limits_leave_room_for_latencies() {
    let arrivals = curve(&[(5.0, 1.0), (1.0, 3.0)]);
    let with = |latency: f64, slo: f64| {
        let of = demand(Stage::Storage, arrivals.clone(), 0.0);
        let slo = Some(Slo { percentile: 99.0, latency: slo });
        let promises = vec![promise("w", slo, vec![(of, vec![0], 0)])];
        System { queues: vec![late("q", 10.0, latency)], promises }
    };
    // An SLO of T + 0.2 s leaves a burst of 2, as an SLO of 0.2 s does without a latency.
    let burst = |latency, slo| {
        let settled = settle(&with(latency, slo), &[0], &Compactor::default(), Packets::Fluid).unwrap();
        settled.limits[0][0].burst()
    };
    let (with_latency, without) = (burst(0.3, 0.5), burst(0.0, 0.2));
    assert!(
        (with_latency - without).abs() < 1e-5 && (without - 2.0).abs() < 1e-5,
        "{with_latency} {without}"
    );
    for way in [&Compactor::default() as &dyn limits::Limiting, &EffectiveBandwidth::default()] {
        assert!(settle(&with(0.3, 0.5), &[0], way, Packets::Fluid).is_ok(), "{}", way.name());
        let error = settle(&with(0.3, 0.29), &[0], way, Packets::Fluid).unwrap_err();
        let shown = error.to_string();
        assert!(shown.contains("no limits keep") || shown.contains("latencies of queues"), "{shown}");
    }
}
