//! Flows over time against a plain simulation that solves everything again at each event.

use leeward_fabric::{Hop, ResourceId};
use leeward_fluid::{Finished, FlowId, FluidError, MaxMin, Network};
use leeward_testing::numbers::Numbers;
use proptest::prelude::*;

use crate::support::{Demand, hop, same, water_filling};

/// Arrival of a flow.
#[derive(Clone, Debug)]
struct Arrival {
    at: f64,
    bytes: f64,
    /// Index of the flow's kind in [`Case::kinds`].
    kind: usize,
}

/// Kinds of flow (path, weight, cap), arrivals in order of time, and changes of capacity (time, resource, capacity).
#[derive(Clone, Debug)]
struct Case {
    capacities: Vec<f64>,
    kinds: Vec<Demand>,
    arrivals: Vec<Arrival>,
    changes: Vec<(f64, usize, f64)>,
}

fn amount() -> impl Strategy<Value = f64> {
    prop_oneof![3 => (1..6u32).prop_map(f64::from), 1 => 0.01..100.0]
}

fn case() -> impl Strategy<Value = Case> {
    let capacities = prop::collection::vec(amount().prop_map(|amount| 10.0 * amount), 1..6);
    capacities
        .prop_flat_map(|capacities| {
            let resources = capacities.len();
            let hops = prop::collection::vec((0..resources, amount()), 1..5);
            let cap = prop_oneof![3 => Just(f64::INFINITY), 1 => amount()];
            let kind = (hops, amount(), cap).prop_map(|(hops, weight, cap)| Demand {
                hops: hops.into_iter().map(|(resource, work)| hop(resource, work)).collect(),
                weight,
                cap,
                flows: 1,
            });
            // Times on a grid, so that several events coincide.
            let time = prop_oneof![(0..12u32).prop_map(f64::from), 0.0..12.0];
            let bytes = prop_oneof![6 => amount(), 1 => Just(0.0)];
            let arrival = (time, bytes, 0..100usize);
            // Times of changes are off the grid. If a resource went down just as its flow finishes, rounding would
            // decide which comes first.
            let change = (0.0..12.0f64, 0..resources, prop_oneof![Just(0.0), amount()]);
            let kinds = prop::collection::vec(kind, 1..5);
            let arrivals = prop::collection::vec(arrival, 1..40);
            (Just(capacities), kinds, arrivals, prop::collection::vec(change, 0..6))
        })
        .prop_map(|(capacities, kinds, arrivals, mut changes)| {
            let kind = |index: usize| index % kinds.len();
            let mut arrivals: Vec<Arrival> = arrivals
                .into_iter()
                .map(|(at, bytes, index)| Arrival { at, bytes, kind: kind(index) })
                .collect();
            arrivals.sort_by(|one, other| one.at.total_cmp(&other.at));
            changes.sort_by(|one, other| one.0.total_cmp(&other.0));
            // All resources work again at the end, so that all flows finish.
            for (resource, &capacity) in capacities.iter().enumerate() {
                changes.push((13.0, resource, capacity));
            }
            Case { capacities, kinds, arrivals, changes }
        })
}

/// Finish times, computed by solving everything again at each event.
fn plain_simulation(case: &Case) -> Vec<f64> {
    let mut capacities = case.capacities.clone();
    let mut finish = vec![f64::INFINITY; case.arrivals.len()];
    let mut active: Vec<(usize, f64)> = Vec::new();
    let (mut now, mut next_arrival, mut next_change) = (0.0, 0, 0);
    loop {
        let demands: Vec<Demand> =
            active.iter().map(|&(flow, _)| case.kinds[case.arrivals[flow].kind].clone()).collect();
        let rates = water_filling(&capacities, &demands);
        let ends = active
            .iter()
            .zip(&rates)
            .map(|(&(_, left), rate)| if left > 0.0 { now + left / rate } else { now });
        let next = ends.fold(f64::INFINITY, f64::min);
        let next = next.min(case.arrivals.get(next_arrival).map_or(f64::INFINITY, |arrival| arrival.at));
        let next = next.min(case.changes.get(next_change).map_or(f64::INFINITY, |change| change.0));
        if next == f64::INFINITY {
            return finish;
        }
        for ((_, left), rate) in active.iter_mut().zip(&rates) {
            *left -= rate * (next - now);
            if *left < 1e-12 * rate.max(1.0) {
                *left = 0.0;
            }
        }
        now = next;
        for &(flow, _) in active.iter().filter(|(_, left)| *left == 0.0) {
            finish[flow] = now;
        }
        active.retain(|(_, left)| *left > 0.0);
        while let Some(arrival) = case.arrivals.get(next_arrival).filter(|arrival| arrival.at == now) {
            match arrival.bytes {
                0.0 => finish[next_arrival] = now,
                bytes => active.push((next_arrival, bytes)),
            }
            next_arrival += 1;
        }
        while let Some(&(_, resource, capacity)) =
            case.changes.get(next_change).filter(|change| change.0 == now)
        {
            capacities[resource] = capacity;
            next_change += 1;
        }
    }
}

/// Finish times of the network, with a class for each kind of flow if `classes` is true. After each event, `probe`
/// receives the network, and the active flow of each arrival.
fn simulate(case: &Case, classes: bool, mut probe: impl FnMut(&mut Network, &[Option<FlowId>])) -> Vec<f64> {
    let mut network = Network::new(&case.capacities).unwrap().observed();
    let mut flows: Vec<Option<FlowId>> = vec![None; case.arrivals.len()];
    let mut finish = vec![f64::INFINITY; case.arrivals.len()];
    let (mut next_arrival, mut next_change) = (0, 0);
    let mut finished: Vec<Finished> = Vec::new();
    loop {
        let next = network.next_completion().unwrap_or(f64::INFINITY);
        let next = next.min(case.arrivals.get(next_arrival).map_or(f64::INFINITY, |arrival| arrival.at));
        let next = next.min(case.changes.get(next_change).map_or(f64::INFINITY, |change| change.0));
        if next == f64::INFINITY {
            return finish;
        }
        network.advance(next, &mut finished).unwrap();
        for Finished { flow, at } in finished.drain(..) {
            let index = flows.iter().position(|&active| active == Some(flow)).unwrap();
            flows[index] = None;
            finish[index] = at;
        }
        while let Some(arrival) = case.arrivals.get(next_arrival).filter(|arrival| arrival.at == next) {
            let Demand { hops, weight, cap, .. } = &case.kinds[arrival.kind];
            let class = classes.then_some(arrival.kind as u64);
            flows[next_arrival] =
                Some(network.start(next, hops, arrival.bytes, *weight, *cap, class).unwrap());
            next_arrival += 1;
        }
        while let Some(&(at, resource, capacity)) =
            case.changes.get(next_change).filter(|change| change.0 == next)
        {
            network.set_capacity(at, ResourceId(resource as u32), capacity).unwrap();
            next_change += 1;
        }
        probe(&mut network, &flows);
    }
}

fn check_close(one: &[f64], other: &[f64]) -> Result<(), TestCaseError> {
    for (index, (&one, &other)) in one.iter().zip(other).enumerate() {
        prop_assert!((one - other).abs() <= 1e-8 + 1e-9 * other, "flow {index}: {one} and {other}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn flows_finish_as_in_a_plain_simulation(case in case()) {
        check_close(&simulate(&case, false, |_, _| ()), &plain_simulation(&case))?;
    }

    #[test]
    fn flows_of_a_class_finish_as_separate_flows(case in case()) {
        check_close(&simulate(&case, true, |_, _| ()), &simulate(&case, false, |_, _| ()))?;
    }

    #[test]
    fn the_same_inputs_give_the_same_bits(case in case(), classes: bool) {
        prop_assert_eq!(simulate(&case, classes, |_, _| ()), simulate(&case, classes, |_, _| ()));
    }

    #[test]
    fn the_order_of_arrivals_at_one_time_does_not_matter(case in case()) {
        let mut reversed = case.clone();
        reversed.arrivals.reverse();
        reversed.arrivals.sort_by(|one, other| one.at.total_cmp(&other.at));
        // A stable sort of the reversed list reverses exactly the groups of equal times.
        let mut order: Vec<usize> = (0..case.arrivals.len()).rev().collect();
        order.sort_by(|&one, &other| case.arrivals[one].at.total_cmp(&case.arrivals[other].at));
        let reversed_finish = simulate(&reversed, false, |_, _| ());
        let mut reordered = vec![0.0; reversed_finish.len()];
        for (place, &index) in order.iter().enumerate() {
            reordered[index] = reversed_finish[place];
        }
        check_close(&simulate(&case, false, |_, _| ()), &reordered)?;
    }

    #[test]
    fn resources_carry_the_bytes_of_their_flows(case in case(), classes: bool) {
        let mut fault = None;
        let mut arrived = vec![false; case.arrivals.len()];
        simulate(&case, classes, |network, flows| {
            let now = network.now();
            for (index, arrival) in case.arrivals.iter().enumerate() {
                arrived[index] |= arrival.at <= now;
            }
            for resource in 0..case.capacities.len() {
                let expected: f64 = (0..flows.len())
                    .filter(|&index| arrived[index])
                    .map(|index| {
                        let left = flows[index].and_then(|flow| network.remaining(flow, now)).unwrap_or(0.0);
                        let Arrival { bytes, kind, .. } = case.arrivals[index];
                        case.kinds[kind].work(resource) * (bytes - left)
                    })
                    .sum();
                let carried = network.carried(ResourceId(resource as u32), now);
                if (carried - expected).abs() > 1e-9 * expected.max(1.0) {
                    fault = Some(format!("resource {resource} at {now}: {carried} instead of {expected}"));
                }
            }
        });
        prop_assert_eq!(fault, None);
    }

    #[test]
    fn carried_bytes_are_the_integral_of_the_load(case in case()) {
        let resources = case.capacities.len();
        let mut sums = vec![0.0; resources];
        let mut before = (0.0, vec![0.0; resources]);
        let mut fault = None;
        simulate(&case, false, |network, _| {
            let now = network.now();
            let ids = || (0..resources).map(|resource| ResourceId(resource as u32));
            let carried: Vec<f64> = ids().map(|resource| network.carried(resource, now)).collect();
            for (resource, sum) in sums.iter_mut().enumerate() {
                *sum += before.1[resource] * (now - before.0);
                if (*sum - carried[resource]).abs() > 1e-8 * sum.max(1.0) {
                    fault = Some(format!("resource {resource} at {now}: {sum} and {}", carried[resource]));
                }
            }
            before = (now, ids().map(|resource| network.load(resource)).collect());
        });
        prop_assert_eq!(fault, None);
    }

    #[test]
    fn remaining_bytes_fall_at_the_rate_until_the_next_completion(case in case(), classes: bool) {
        let mut fault = None;
        simulate(&case, classes, |network, flows| {
            let now = network.now();
            let Some(next) = network.next_completion() else { return };
            let soon = now + 0.5 * (next - now);
            for &flow in flows.iter().flatten() {
                let Some(left) = network.remaining(flow, now) else { continue };
                let rate = network.rate(flow).unwrap();
                // A flow may finish early by a rounding error.
                let then = network.remaining(flow, soon).unwrap_or(0.0);
                if (left - rate * (soon - now) - then).abs() > 1e-9 * left.max(1.0) {
                    fault = Some(format!("{flow:?} at {now}: {left} at {rate}, then {then} at {soon}"));
                }
            }
        });
        prop_assert_eq!(fault, None);
    }
}

const UNCAPPED: f64 = f64::INFINITY;

fn finished_by(network: &mut Network, time: f64) -> Vec<(u32, f64)> {
    let mut finished = Vec::new();
    network.advance(time, &mut finished).unwrap();
    finished.iter().map(|done| (done.flow.slot(), done.at)).collect()
}

#[test]
fn a_flow_pauses_while_its_resource_is_down() {
    let mut network = Network::new(&[10.0]).unwrap();
    let flow = network.start(0.0, &[hop(0, 1.0)], 100.0, 1.0, UNCAPPED, None).unwrap();
    network.set_capacity(4.0, ResourceId(0), 0.0).unwrap();
    assert_eq!(network.next_completion(), None);
    assert_eq!(network.rate(flow), Some(0.0));
    assert_eq!(network.remaining(flow, 50.0), Some(60.0));
    network.set_capacity(100.0, ResourceId(0), 20.0).unwrap();
    assert_eq!(finished_by(&mut network, 200.0), vec![(flow.slot(), 103.0)]);
}

#[test]
fn background_load_reduces_the_capacity_but_not_below_zero() {
    let mut network = Network::new(&[10.0]).unwrap();
    let flow = network.start(0.0, &[hop(0, 1.0)], 100.0, 1.0, UNCAPPED, None).unwrap();
    network.set_background(0.0, ResourceId(0), 4.0).unwrap();
    assert_eq!(network.rate(flow), Some(6.0));
    network.set_background(5.0, ResourceId(0), 1000.0).unwrap();
    assert_eq!(network.rate(flow), Some(0.0));
    network.set_capacity(6.0, ResourceId(0), 1007.0).unwrap();
    assert_eq!(network.rate(flow), Some(7.0));
    assert_eq!(finished_by(&mut network, 100.0), vec![(flow.slot(), 16.0)]);
}

#[test]
fn a_cancelled_flow_releases_its_share_and_returns_its_remaining_bytes() {
    let mut network = Network::new(&[10.0]).unwrap().observed();
    for class in [None, Some(7)] {
        let start = network.now();
        let kept_flow = network.start(start, &[hop(0, 1.0)], 50.0, 1.0, UNCAPPED, class).unwrap();
        let cancelled = network.start(start, &[hop(0, 1.0)], 40.0, 1.0, UNCAPPED, class).unwrap();
        assert_eq!(network.cancel(start + 2.0, cancelled), Ok(30.0));
        assert_eq!(
            network.cancel(start + 2.0, cancelled),
            Err(FluidError::UnknownFlow { flow: cancelled.to_bits() })
        );
        assert_eq!(finished_by(&mut network, start + 10.0), vec![(kept_flow.slot(), start + 6.0)]);
        assert_eq!(network.active(), 0);
    }
    assert_eq!(network.carried(ResourceId(0), network.now()), 120.0);
}

#[test]
fn flows_without_bytes_or_without_limits_finish_at_once() {
    let mut network = Network::new(&[10.0]).unwrap();
    let empty = network.start(1.0, &[hop(0, 1.0)], 0.0, 1.0, UNCAPPED, None).unwrap();
    assert_eq!(network.next_completion(), Some(1.0));
    assert_eq!(finished_by(&mut network, 1.0), vec![(empty.slot(), 1.0)]);
    let local = network.start(2.0, &[], 5.0, 1.0, UNCAPPED, None).unwrap();
    assert_eq!(finished_by(&mut network, 2.0), vec![(local.slot(), 2.0)]);
    let paced = network.start(3.0, &[], 5.0, 1.0, 10.0, None).unwrap();
    assert_eq!(network.next_completion(), Some(3.5));
    assert_eq!(finished_by(&mut network, 9.0), vec![(paced.slot(), 3.5)]);
}

#[test]
fn skipped_completions_are_returned_with_their_own_times() {
    let mut network = Network::new(&[10.0]).unwrap();
    let early = network.start(0.0, &[hop(0, 1.0)], 10.0, 1.0, UNCAPPED, None).unwrap();
    let late = network.start(5.0, &[hop(0, 1.0)], 10.0, 1.0, UNCAPPED, None).unwrap();
    assert_eq!(network.next_completion(), Some(1.0));
    assert_eq!(finished_by(&mut network, 7.0), vec![(early.slot(), 1.0), (late.slot(), 6.0)]);
    assert_ne!(early, late);
}

#[test]
fn invalid_calls_are_rejected_and_change_nothing() {
    let mut network = Network::new(&[10.0]).unwrap();
    let path: [Hop; 1] = [hop(0, 1.0)];
    let flow = network.start(5.0, &path, 100.0, 1.0, UNCAPPED, None).unwrap();
    for time in [4.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let assert_rejected = |result: Result<(), FluidError>| {
            assert!(matches!(result, Err(FluidError::Time { .. })), "{time}")
        };
        assert_rejected(network.start(time, &path, 1.0, 1.0, UNCAPPED, None).map(drop));
        assert_rejected(network.advance(time, &mut Vec::new()));
        assert_rejected(network.cancel(time, flow).map(drop));
        assert_rejected(network.set_capacity(time, ResourceId(0), 1.0));
        assert_rejected(network.set_background(time, ResourceId(0), 1.0));
    }
    for bytes in [-1.0, f64::NAN, f64::INFINITY] {
        let result = network.start(6.0, &path, bytes, 1.0, UNCAPPED, None);
        assert!(matches!(result, Err(FluidError::Bytes { .. })), "{bytes}");
    }
    for weight in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let result = network.start(6.0, &path, 1.0, weight, UNCAPPED, None);
        assert!(matches!(result, Err(FluidError::Weight { .. })), "{weight}");
    }
    for cap in [-1.0, f64::NAN] {
        let result = network.start(6.0, &path, 1.0, 1.0, cap, None);
        assert!(matches!(result, Err(FluidError::Cap { .. })), "{cap}");
    }
    for work in [-1.0, f64::NAN, f64::INFINITY, 1e-300] {
        let result = network.start(6.0, &[hop(0, work)], 1.0, 1.0, UNCAPPED, None);
        assert!(matches!(result, Err(FluidError::Work { .. })), "{work}");
    }
    for capacity in [-1.0, f64::NAN, f64::INFINITY] {
        let result = network.set_capacity(6.0, ResourceId(0), capacity);
        assert!(matches!(result, Err(FluidError::Capacity { .. })), "{capacity}");
        assert!(MaxMin::new(&[capacity]).is_err());
    }
    let elsewhere = network.start(6.0, &[hop(1, 1.0)], 1.0, 1.0, UNCAPPED, None);
    assert_eq!(elsewhere.unwrap_err().to_string(), "resource 1: unknown: this network has resources 0 to 0");
    assert_eq!((network.now(), network.active()), (5.0, 1));
    assert_eq!(finished_by(&mut network, 20.0), vec![(flow.slot(), 15.0)]);
}

/// Runs 200,000 flows over a few racks, and compares rates and loads with those of a new solver. Some flows are always
/// active, so the network never starts afresh and rounding errors could accumulate.
#[test]
fn loads_do_not_drift_over_a_long_run() {
    let racks = 6;
    let mut network = Network::new(&vec![1e9; 2 * racks]).unwrap().observed();
    let mut numbers = Numbers::new(11);
    let mut finished = Vec::new();
    let (mut bytes, mut time) = (0.0, 0.0);
    let mut under_way = std::collections::BTreeMap::new();
    for flow in 0..200_000 {
        time += numbers.exponential(4e-3);
        let (from, to) = (numbers.below(racks), numbers.below(racks));
        let size = (1e4 * 100f64.powf(numbers.unit())).round() * 12.0;
        let path = [hop(from, 8.0), hop(racks + to, 8.0)];
        let class = (flow % 3 == 0).then_some((from * racks + to) as u64);
        let id = network.start(time, &path, size, 1.0, UNCAPPED, class).unwrap();
        under_way.insert(id, (path, size));
        bytes += size;
        network.advance(time, &mut finished).unwrap();
        for done in finished.drain(..) {
            under_way.remove(&done.flow).unwrap();
        }
    }
    assert!(under_way.len() > 10, "the run keeps its resources busy");
    let mut fresh = MaxMin::new(&vec![1e9; 2 * racks]).unwrap();
    let ids: Vec<_> =
        under_way.values().map(|(path, _)| fresh.add(path, 1.0, UNCAPPED, 1).unwrap()).collect();
    fresh.solve();
    for (&flow, &id) in under_way.keys().zip(&ids) {
        assert!(same(network.rate(flow).unwrap(), fresh.rate(id).unwrap()));
    }
    for resource in 0..2 * racks {
        let resource = ResourceId(resource as u32);
        assert!(same(network.load(resource), fresh.load(resource)));
    }
    let left: f64 = under_way.keys().map(|&flow| network.remaining(flow, time).unwrap()).sum();
    let carried: f64 = (0..racks).map(|resource| network.carried(ResourceId(resource as u32), time)).sum();
    assert!(
        (carried - 8.0 * (bytes - left)).abs() <= 1e-12 * carried,
        "{carried} and {}",
        8.0 * (bytes - left)
    );
}
