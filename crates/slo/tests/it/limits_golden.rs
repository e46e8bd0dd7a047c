//! The compactor against optima of the thesis' released code (`golden/qos/compactor`) and of independent solvers
//! (`golden/qos/lp`).

use crate::support::reference;
use leeward_calculus::{Flow, Network, Packets};
use leeward_slo::System;
use leeward_slo::limits::{
    Compactor, CompactorSettings, Limiting, NoLimits, Problem, Queues, Unsettled, bounds, settle,
};
use leeward_testing::golden;
use leeward_testing::golden::number;

/// Sum of rates as shares of the first queues' capacities.
fn objective(system: &System) -> f64 {
    let of = |promise: &leeward_slo::Promise| -> f64 {
        let rates = promise.limits.iter().zip(&promise.route);
        rates.map(|(limit, path)| limit.rate() / system.queues[path[0]].capacity).sum()
    };
    system.promises.iter().map(of).sum()
}

fn released() -> Compactor {
    Compactor::new(CompactorSettings { queues: Queues::First, slack: 0.001 }).unwrap()
}

/// Chooses all limits of a system and sets them.
fn choose(system: &mut System, way: &Compactor) -> Result<(), NoLimits> {
    let all: Vec<usize> = (0..system.promises.len()).collect();
    let limits = way.choose(&Problem::of(system, &all, Packets::Fluid))?;
    for (promise, limits) in system.promises.iter_mut().zip(limits) {
        promise.limits = limits;
    }
    Ok(())
}

#[test]
fn least_rates_match_the_released_code() {
    let Some(folder) = golden::folder("qos") else { return };
    let (mut feasible, mut infeasible) = (0, 0);
    for path in golden::files(&folder.join("compactor"), |name| name.ends_with(".in.json")) {
        let (name, input) = (golden::name(&path), golden::json(&path));
        let output = golden::json(&folder.join("compactor").join(name.replace(".in.", ".out.")));
        let expected = number(&output["workload_compactor"]["lp_objective_sum_r_over_bw"]);
        let mut system = reference::system(&input);
        match choose(&mut system, &released()) {
            Ok(()) => {
                let found = objective(&system);
                let near = (found - expected).abs() <= 1e-5 * expected;
                assert!(near, "{name}: {found}, expected {expected}");
                feasible += 1;
            }
            Err(NoLimits::Together) => {
                assert_eq!(expected, 0.0, "{name}: expected {expected}, found none");
                infeasible += 1;
            }
            Err(error) => panic!("{name}: {error}"),
        }
    }
    println!("{feasible} with limits, {infeasible} without");
    assert!(feasible > 10);
}

/// For each workload, the lower of the two bounds of another analysis.
fn by_network(system: &System) -> Vec<f64> {
    let flows = system.promises.iter().flat_map(|promise| {
        (0..promise.route.len()).map(|demand| Flow {
            arrivals: promise.limits[demand].clone(),
            priority: promise.priorities[demand],
            path: promise.route[demand].clone(),
            packet: 0.0,
        })
    });
    let capacities = system.queues.iter().map(|queue| queue.capacity).collect();
    let network = Network::new(capacities, flows.collect(), Packets::Fluid).unwrap();
    let [one, other] = [network.aggregate(), network.hop_by_hop()];
    let mut delays = one.into_iter().zip(other).map(|(a, b)| match (a, b) {
        (Ok(a), Ok(b)) => a.min(b),
        (a, b) => a.or(b).unwrap_or(f64::INFINITY),
    });
    let sum = |promise: &leeward_slo::Promise| delays.by_ref().take(promise.route.len()).sum();
    system.promises.iter().map(sum).collect()
}

#[test]
fn limits_of_first_queues_miss_slos_that_settled_limits_meet() {
    let Some(folder) = golden::folder("qos") else { return };
    let mut kept = 0;
    for path in golden::files(&folder.join("compactor"), |name| name.ends_with(".in.json")) {
        let (name, input) = (golden::name(&path), golden::json(&path));
        let mut system = reference::system(&input);
        let all: Vec<usize> = (0..system.promises.len()).collect();
        if name.starts_with("w08") {
            let first = settle(&system, &all, &released(), Packets::Fluid);
            assert!(matches!(first, Err(Unsettled::Missed { .. })), "{name}: {first:?}");
        }
        match settle(&system, &all, &Compactor::default(), Packets::Fluid) {
            Ok(settled) => {
                for (promise, limits) in system.promises.iter_mut().zip(settled.limits) {
                    promise.limits = limits;
                }
                let found = bounds(&system, Packets::Fluid).unwrap();
                let others = by_network(&system);
                for ((promise, bound), other) in system.promises.iter().zip(found).zip(others) {
                    let (seconds, slo) = (bound.unwrap().seconds(), promise.workload.slo.unwrap().latency);
                    assert!(seconds <= slo, "{name}: {seconds} of {slo}");
                    println!(
                        "{name} {}: {seconds} s, {other} s by the network, of {slo} s",
                        promise.workload.name
                    );
                }
                kept += 1;
            }
            Err(why) => {
                assert!(!name.starts_with("w08"), "{name}: {why}");
                println!("{name}: {why}");
            }
        }
    }
    println!("{kept} settled");
    assert!(kept > 8);
}
