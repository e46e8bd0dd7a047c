//! The priority search, compared with all orders.

use std::sync::Arc;

use crate::support::systems::{Draw, demand, draws, on_paths, promise, queue, simple};
use leeward_slo::bound::{BoundSettings, Bounds, Method, Unit};
use leeward_slo::priorities::{LEVELS, by_slo, merge, missed, priority_meister};
use leeward_slo::{Slo, System};
use leeward_traces::Stage;
use proptest::prelude::*;

/// More levels than any test has ranks.
const MANY: u32 = 1000;

fn fluid() -> BoundSettings {
    BoundSettings { unit: Unit::Fluid, ..BoundSettings::default() }
}

/// Three stages of one queue each.
fn in_line(draws: &[Draw]) -> System {
    let share = 8.0 / draws.len() as f64;
    let promises = draws.iter().enumerate().map(|(at, draw)| {
        let stages = [Stage::NetworkIn, Stage::Storage, Stage::NetworkOut].iter().enumerate();
        let stages = stages.map(|(queue, &stage)| {
            let weight = [0.3, 1.0, 0.6][(queue + at) % 3];
            let scaled = Draw { rate: draw.rate * weight, burst: draw.burst * weight, ..draw.clone() };
            let arrivals = scaled.curve(share);
            let largest = arrivals.burst() * draw.packet;
            (demand(stage, arrivals, largest), vec![queue], 0)
        });
        let slo = Some(Slo { percentile: 99.0, latency: draw.latency / 4.0 });
        promise(&format!("w{at}"), slo, stages.collect())
    });
    System {
        queues: ["in", "disk", "out"].map(|name| queue(name, 10.0)).to_vec(),
        promises: promises.collect(),
    }
}

/// True if some order that is the same at all stages keeps all SLOs.
fn some_order(system: &System, method: Method, settings: BoundSettings) -> bool {
    let count = system.promises.len();
    let mut orders: Vec<Vec<u32>> = vec![vec![]];
    for _ in 0..count {
        orders = (orders.iter())
            .flat_map(|order| {
                let free = (0..count as u32).filter(|rank| !order.contains(rank));
                free.map(|rank| [order.as_slice(), &[rank]].concat()).collect::<Vec<_>>()
            })
            .collect();
    }
    orders.iter().any(|order| {
        let mut system = system.clone();
        for (promise, &rank) in system.promises.iter_mut().zip(order) {
            promise.priorities.fill(rank);
        }
        Bounds::new(&system, settings).unwrap().misses(0..count, method).is_empty()
    })
}

fn search(system: &System, method: Method, settings: BoundSettings, levels: u32) -> (System, usize) {
    let mut bound = |system: &System, at: usize| Bounds::new(system, settings)?.bound(at, method);
    let found = priority_meister(system, levels, &mut bound);
    assert_eq!(missed(&found.system, &mut bound), found.missed);
    (found.system, found.missed.len())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_search_succeeds_if_any_order_meets_all_slos(draws in draws(4, true)) {
        let system = in_line(&draws);
        for settings in [fluid(), BoundSettings::default()] {
            if some_order(&system, Method::Dnc, settings) {
                prop_assert_eq!(search(&system, Method::Dnc, settings, MANY).1, 0);
            }
        }
    }

    #[test]
    fn the_search_succeeds_over_several_queues_if_any_order_does(mut draws in draws(4, false), line in any::<bool>()) {
        draws.iter_mut().for_each(|draw| draw.latency /= 3.0);
        let paths: &[&[usize]] = if line { &[&[0, 1], &[1], &[0]] } else { &[&[0, 2], &[1, 2], &[2], &[0]] };
        let system = on_paths(&draws, paths, 0.8);
        if some_order(&system, Method::PriorityMeister, fluid()) {
            prop_assert_eq!(search(&system, Method::PriorityMeister, fluid(), MANY).1, 0);
        }
    }

    #[test]
    fn the_search_gives_distinct_ranks_and_best_effort_the_last(draws in draws(5, true), effort in 0usize..5) {
        let mut system = in_line(&draws);
        let effort = effort % draws.len();
        Arc::make_mut(&mut system.promises[effort].workload).slo = None;
        let (found, _) = search(&system, Method::Dnc, BoundSettings::default(), MANY);
        let last = found.promises[effort].priorities[0];
        for stage in 0..3 {
            let mut ranks: Vec<u32> = found.promises.iter().map(|promise| promise.priorities[stage]).collect();
            prop_assert!(ranks.iter().enumerate().all(|(at, &rank)| at == effort || rank < last));
            ranks.sort_unstable();
            ranks.dedup();
            prop_assert_eq!(ranks.len(), draws.len());
        }
    }

    #[test]
    fn merged_ranks_preserve_the_order_and_fit_the_levels(draws in draws(6, true), levels in 1u32..8) {
        let mut system = in_line(&draws);
        for (at, promise) in system.promises.iter_mut().enumerate() {
            promise.priorities = (0..3).map(|stage| (at * 3 + stage) as u32 * 7 % 23).collect();
        }
        let before = system.clone();
        let ranks = merge(&mut system, levels);
        prop_assert_eq!(ranks.is_some(), draws.len() * 2 > levels as usize);
        let on_network = |system: &System| -> Vec<u32> {
            system.promises.iter().flat_map(|promise| [promise.priorities[0], promise.priorities[2]]).collect()
        };
        let (old, new) = (on_network(&before), on_network(&system));
        for a in 0..old.len() {
            for b in 0..old.len() {
                prop_assert!(old[a] > old[b] || new[a] <= new[b]);
            }
        }
        let mut distinct = new;
        distinct.sort_unstable();
        distinct.dedup();
        prop_assert!(distinct.len() <= draws.len() * 2 && (ranks.is_none() || distinct.len() == levels as usize));
        for (old, new) in before.promises.iter().zip(&system.promises) {
            prop_assert_eq!(old.priorities[1], new.priorities[1]);
        }
    }
}

#[test]
fn the_search_succeeds_where_the_order_of_slos_fails() {
    // At the first priority, the small workload with the tighter SLO would leave 7 of 10 to the large one:
    // a bound of 9.2 / 7. At the last priority, the small one has a bound of 9.2 / 9.
    let large = simple("large", 0, &[(1.0, 9.0)], 0.0, 1.031);
    let small = simple("small", 0, &[(3.0, 0.2)], 0.0, 1.03);
    let mut system = System { queues: vec![queue("link", 10.0)], promises: vec![large, small] };
    by_slo(&mut system);
    let mut bound = |system: &System, at: usize| Bounds::new(system, fluid())?.bound(at, Method::Dnc);
    let misses = missed(&system, &mut bound);
    assert_eq!(misses.iter().map(|miss| miss.promise).collect::<Vec<_>>(), [0]);
    let (found, missed) = search(&system, Method::Dnc, fluid(), LEVELS);
    assert_eq!(missed, 0);
    assert!(found.promises[0].priorities < found.promises[1].priorities);
}

#[test]
fn an_slo_that_no_order_meets_is_reported() {
    let of = |name| simple(name, 0, &[(4.0, 5.0)], 0.0, 0.6);
    let system = System { queues: vec![queue("link", 10.0)], promises: vec![of("a"), of("b"), of("c")] };
    // Load 12 on capacity 10: the first workload has a bound, the last has none.
    assert_eq!(search(&system, Method::Dnc, fluid(), LEVELS).1, 2);
}

#[test]
fn the_search_computes_no_bound_for_an_overloaded_queue() {
    let promises = (0..40).map(|at| simple(&format!("w{at}"), 0, &[(1.0, 1.0)], 0.5, 1000.0)).collect();
    let system = System { queues: vec![queue("link", 10.0)], promises };
    let mut calls = 0;
    let found = priority_meister(&system, MANY, &mut |system, promise| {
        calls += 1;
        Bounds::new(system, fluid()).unwrap().bound(promise, Method::Dnc)
    });
    assert_eq!(found.missed.len(), 30);
    // One bound for each of the remaining ten workloads, which all keep their SLOs, and one for each at the end.
    assert_eq!(calls, 50);
}
