//! Limits from every algorithm meet the SLOs, and invalid systems are rejected.

use crate::support::loads;
use std::sync::Arc;

use crate::support::loads::{LINK, bucket, curve, demand};
use leeward_calculus::{ArrivalCurve, Packets, stage_delay};
use leeward_slo::limits::{
    self, Compactor, Constraint, Limiting, NoLimits, Problem, SystemError, Unmet, Unsettled, bounds, settle,
    with_margin,
};
use leeward_slo::{Promise, Queue, Slo, System, Workload};
use leeward_traces::Stage;
use proptest::prelude::*;

fn queue(name: &str, capacity: f64) -> Queue {
    Queue { name: name.to_owned(), capacity, latency: 0.0, resource: None }
}

/// Workloads of two clients on one server, with priorities by SLO and limits to be chosen.
fn system(workloads: &[Arc<Workload>]) -> System {
    let queues = vec![
        queue("a-out", LINK),
        queue("b-out", LINK),
        queue("s-in", LINK),
        queue("ssd", 1.0),
        queue("s-out", LINK),
        queue("a-in", LINK),
        queue("b-in", LINK),
    ];
    let mut slos: Vec<f64> = workloads.iter().map(|workload| workload.slo.unwrap().latency).collect();
    slos.sort_by(f64::total_cmp);
    slos.dedup();
    let promises = workloads.iter().enumerate().map(|(at, workload)| {
        let client = at % 2;
        let latency = workload.slo.unwrap().latency;
        let priority = slos.iter().position(|&slo| slo == latency).unwrap() as u32;
        Promise {
            workload: workload.clone(),
            route: vec![vec![client, 2], vec![3], vec![4, 5 + client]],
            priorities: vec![priority; 3],
            limits: workload.demands.iter().map(|demand| demand.arrivals.clone()).collect(),
        }
    });
    System { promises: promises.collect(), queues }
}

/// One device, with workloads that use nothing else.
fn device(workloads: &[(f64, ArrivalCurve)]) -> System {
    let promises = workloads.iter().enumerate().map(|(at, (latency, arrivals))| {
        let workload = Workload {
            name: format!("w{at}"),
            slo: Some(Slo { percentile: 99.9, latency: *latency }),
            demands: vec![demand(Stage::Storage, arrivals.clone(), 0.0)],
            dependencies: Vec::new(),
        };
        Promise {
            workload: Arc::new(workload),
            route: vec![vec![0]],
            priorities: vec![0],
            limits: vec![arrivals.clone()],
        }
    });
    System { promises: promises.collect(), queues: vec![queue("ssd", 1.0)] }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn settled_limits_meet_every_slo_and_are_not_below_arrivals(
        workloads in loads::workloads(1..7), whole in any::<bool>(),
        index in 0..limits::REGISTRY.entries.len(),
    ) {
        let mut system = system(&workloads);
        let packets = if whole { Packets::Whole } else { Packets::Fluid };
        let registration = &limits::REGISTRY.entries[index];
        let algorithm = (registration.make)("").unwrap();
        let all: Vec<usize> = (0..workloads.len()).collect();
        let Ok(settled) = settle(&system, &all, &*algorithm, packets) else {
            // Limits that an algorithm chooses for each workload by itself are refused only if they miss an SLO. The
            // next test compares the algorithm that chooses all limits together.
            let chosen = algorithm.choose(&Problem::of(&system, &all, packets));
            if let (false, Ok(chosen)) = (algorithm.is_joint(), chosen) {
                for (promise, limits) in system.promises.iter_mut().zip(chosen) {
                    promise.limits = limits;
                }
                let bounds = bounds(&system, packets).unwrap();
                let misses = system.promises.iter().zip(bounds).any(|(promise, bound)| {
                    let slo = promise.workload.slo.unwrap().latency;
                    bound.map_or(true, |bound| bound.seconds() > slo * (1.0 - 1e-6))
                });
                prop_assert!(misses, "{}", registration.name);
            }
            return Ok(());
        };
        prop_assert_eq!(settled.limits.len(), workloads.len());
        for (promise, limits) in system.promises.iter_mut().zip(settled.limits) {
            promise.limits = limits;
        }
        for (promise, bound) in system.promises.iter().zip(bounds(&system, packets).unwrap()) {
            let seconds = bound.unwrap().seconds();
            prop_assert!(seconds <= promise.workload.slo.unwrap().latency);
            if registration.name != "effective-bandwidth" {
                for (demand, limits) in promise.workload.demands.iter().zip(&promise.limits) {
                    for limit in limits.buckets() {
                        // The smallest burst is a difference of two amounts of work, so its error grows with them.
                        let least = demand.arrivals.burst_at(limit.rate()).unwrap();
                        let most = demand.arrivals.vertices().map(|(_, work)| work).fold(least, f64::max);
                        prop_assert!(
                            limit.burst() >= least - 1e-12 * most,
                            "{}: {} of {least}", registration.name, limit.burst()
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn the_compactor_succeeds_where_other_algorithms_do_and_at_lower_rates(
        curves in prop::collection::vec(curve(1.0), 1..8), slo in 0.05..1.0_f64,
    ) {
        // With one stage and one priority the program is exact.
        let workloads: Vec<_> = curves.into_iter().map(|curve| (slo, curve)).collect();
        let system = device(&workloads);
        let all: Vec<usize> = (0..workloads.len()).collect();
        let rates = |limits: &[Vec<ArrivalCurve>]| limits.iter().map(|limits| limits[0].rate()).sum::<f64>();
        let ours = settle(&system, &all, &Compactor::default(), Packets::Fluid);
        // These algorithms set one token bucket at a point of the curve, as the compactor does.
        for (name, settings) in [("knee", ""), ("average", "multiple: 1.5"), ("average", "multiple: 2")] {
            let other = limits::REGISTRY.make(name, settings).unwrap();
            if let Ok(other) = settle(&system, &all, &*other, Packets::Fluid) {
                // The program leaves a millionth unused, so it rejects workloads that need the exact limit.
                let tight = other.bounds.iter().any(|bound| bound.seconds() > slo * (1.0 - 2e-6));
                let full = rates(&other.limits) > 1.0 - 2e-6;
                prop_assert!(tight || full || ours.is_ok(), "{name}");
                if let Ok(ours) = &ours {
                    prop_assert!(rates(&ours.limits) <= rates(&other.limits) * (1.0 + 1e-6) + 1e-9, "{name}");
                }
            }
        }
    }

    #[test]
    fn one_queue_gives_equation_5_1_and_more_buckets_never_raise_it(
        flows in prop::collection::vec((curve(0.5), 0..3_u32), 1..8),
    ) {
        let workloads: Vec<_> = flows.iter().map(|(curve, _)| (1.0, curve.clone())).collect();
        let mut system = device(&workloads);
        for (promise, (_, priority)) in system.promises.iter_mut().zip(&flows) {
            promise.priorities = vec![*priority];
        }
        let several = bounds(&system, Packets::Fluid).unwrap();
        let last: Vec<_> = flows.iter().map(|(curve, p)| (*p, *curve.buckets().last().unwrap())).collect();
        for (promise, (_, bucket)) in system.promises.iter_mut().zip(&last) {
            promise.limits = vec![(*bucket).into()];
        }
        let single = bounds(&system, Packets::Fluid).unwrap();
        for (at, (priority, _)) in last.iter().enumerate() {
            match (stage_delay(1.0, &last, *priority), &single[at], &several[at]) {
                (Ok(expected), Ok(single), Ok(several)) => {
                    prop_assert!((single.seconds() - expected).abs() <= 1e-9 * expected);
                    prop_assert!(several.seconds() <= single.seconds() * (1.0 + 1e-9));
                }
                (Err(_), Err(Unmet::Overload { .. }), Err(Unmet::Overload { .. })) => {}
                found => prop_assert!(false, "{found:?}"),
            }
        }
    }
}

#[test]
fn a_burst_behind_a_queue_grows_by_the_arrivals_during_the_delay() {
    // Each workload waits 0.1 s at its own link, and arrives at the next link with a burst of 1 + 2 x 0.1.
    let mut queues = vec![queue("a", 10.0), queue("b", 10.0), queue("both", 10.0)];
    let promise = |name: &str, from: usize| {
        let arrivals: ArrivalCurve = bucket(2.0, 1.0).into();
        let workload = Workload {
            name: name.to_owned(),
            slo: None,
            demands: vec![demand(Stage::NetworkIn, arrivals.clone(), 0.0)],
            dependencies: Vec::new(),
        };
        let route = vec![vec![from, 2]];
        Promise { workload: Arc::new(workload), route, priorities: vec![0], limits: vec![arrivals] }
    };
    let mut system = System { queues: queues.clone(), promises: vec![promise("x", 0), promise("y", 1)] };
    for bound in bounds(&system, Packets::Fluid).unwrap() {
        assert!((bound.unwrap().seconds() - (0.1 + 2.4 / 10.0)).abs() < 1e-12);
    }
    // Without other traffic, work from a queue of the same rate does not wait again. At a slower queue the work waits
    // again.
    system.promises.pop();
    assert!((bounds(&system, Packets::Fluid).unwrap()[0].clone().unwrap().seconds() - 0.1).abs() < 1e-12);
    queues[2].capacity = 5.0;
    system.queues = queues;
    assert!((bounds(&system, Packets::Fluid).unwrap()[0].clone().unwrap().seconds() - 0.34).abs() < 1e-12);
}

#[test]
fn limits_come_in_the_requested_order() {
    let curve = |scale: f64| {
        ArrivalCurve::new(&[bucket(0.4 * scale, 0.01 * scale), bucket(0.1 * scale, 0.2 * scale)]).unwrap()
    };
    let system = device(&[(2.0, curve(1.0)), (3.0, curve(0.5)), (4.0, curve(0.7))]);
    // The compactor may have several optima. `average` has one result, since it chooses for each workload alone.
    let average = limits::REGISTRY.make("average", "").unwrap();
    let settled = |free: &[usize]| settle(&system, free, &*average, Packets::Fluid).unwrap().limits;
    let (forward, backward) = (settled(&[0, 1, 2]), settled(&[2, 1, 0]));
    assert_eq!(forward, backward.into_iter().rev().collect::<Vec<_>>());
    assert_ne!(forward[0], forward[2]);
}

#[test]
fn the_violated_slo_or_capacity_is_named() {
    let big: ArrivalCurve = bucket(0.1, 0.5).into();
    let small: ArrivalCurve = bucket(0.1, 0.1).into();
    let system = device(&[(0.4, big.clone()), (1.0, small.clone())]);
    let compactor = Compactor::default();
    let result = settle(&system, &[0, 1], &compactor, Packets::Fluid);
    assert_eq!(result, Err(Unsettled::NoLimits(NoLimits::Together)));
    let binding = compactor.binding(&Problem::of(&system, &[0, 1], Packets::Fluid)).unwrap().unwrap();
    assert_eq!(binding.excess[0].constraint, Constraint::Slo("w0".to_owned()));
    assert!(binding.excess[0].by > 0.2, "{binding:?}");
    let full: ArrivalCurve = bucket(0.7, 0.1).into();
    let system = device(&[(9.0, full.clone()), (9.0, full)]);
    let binding = compactor.binding(&Problem::of(&system, &[0, 1], Packets::Fluid)).unwrap().unwrap();
    assert_eq!(binding.excess[0].constraint, Constraint::Queue("ssd".to_owned()));
    assert!((binding.excess[0].by - 0.4).abs() < 1e-3, "{binding:?}");
    let fits = device(&[(1.0, big), (1.0, small)]);
    assert_eq!(compactor.binding(&Problem::of(&fits, &[0, 1], Packets::Fluid)), Ok(None));
}

#[test]
fn invalid_systems_are_rejected_by_name() {
    let arrivals: ArrivalCurve = bucket(0.1, 0.1).into();
    let valid = device(&[(1.0, arrivals)]);
    let error_after = |change: fn(&mut System)| {
        let mut system = valid.clone();
        change(&mut system);
        bounds(&system, Packets::Fluid).unwrap_err().to_string()
    };
    let capacity = error_after(|system| system.queues[0].capacity = f64::NAN);
    assert!(capacity.contains("`ssd` of capacity NaN"), "{capacity}");
    assert!(error_after(|system| system.promises[0].priorities.clear()).contains("0 priorities"));
    assert!(error_after(|system| system.promises[0].route[0][0] = 7).contains("queue 7"));
    let cycle = |system: &mut System| {
        system.queues.push(Queue { name: "other".to_owned(), ..system.queues[0].clone() });
        let mut back = system.promises[0].clone();
        system.promises[0].route[0] = vec![0, 1];
        back.route[0] = vec![1, 0];
        system.promises.push(back);
    };
    let mut system = valid.clone();
    cycle(&mut system);
    assert!(matches!(bounds(&system, Packets::Fluid), Err(SystemError::Cycle { .. })));
    for free in [&[1][..], &[0, 0]] {
        let result = settle(&valid, free, &Compactor::default(), Packets::Fluid);
        assert!(matches!(result, Err(Unsettled::System(SystemError::Promise { .. }))), "{result:?}");
    }
    let mut none = valid.clone();
    Arc::make_mut(&mut none.promises[0].workload).slo = None;
    let result = settle(&none, &[0], &Compactor::default(), Packets::Fluid);
    assert!(matches!(result, Err(Unsettled::NoLimits(NoLimits::BestEffort { .. }))), "{result:?}");
    for margin in [-0.1, f64::NAN, f64::INFINITY] {
        assert!(with_margin(&valid.promises[0].workload, margin).is_err());
    }
    for (name, settings) in [
        ("compactor", "slack: 0.6"),
        ("average", "multiple: 0.5"),
        ("average", "multiple: .nan"),
        ("none", ""),
    ] {
        assert!(limits::REGISTRY.make(name, settings).is_err(), "{name} {settings}");
    }
}
