//! The allocation compared with its definition: every solution is weighted max-min fair, after any history.

use leeward_fabric::ResourceId;
use leeward_fluid::{EntryId, Limit, MaxMin};
use leeward_testing::numbers::Numbers;
use proptest::prelude::*;

use crate::support::{Demand, check_max_min_fair, hop, same, water_filling};

/// A change of an allocation; indices are taken modulo the number of elements.
#[derive(Clone, Debug)]
enum Change {
    Add(Demand),
    Remove(usize),
    Flows(usize, u32),
    Capacity(usize, f64),
    Solve,
}

/// Few distinct values, so that levels are often equal, and some unique ones.
fn amount() -> impl Strategy<Value = f64> {
    prop_oneof![3 => (1..6u32).prop_map(f64::from), 1 => 0.01..100.0]
}

fn demand(resources: usize) -> impl Strategy<Value = Demand> {
    let cap = prop_oneof![4 => Just(f64::INFINITY), 3 => amount(), 1 => Just(0.0)];
    let hops = prop::collection::vec((0..resources, amount()), 0..6);
    (hops, amount(), cap, 1..4u32).prop_map(|(hops, weight, cap, flows)| Demand {
        hops: hops.into_iter().map(|(resource, work)| hop(resource, work)).collect(),
        weight,
        cap,
        flows,
    })
}

fn change(resources: usize) -> impl Strategy<Value = Change> {
    let capacity = prop_oneof![1 => Just(0.0), 6 => amount().prop_map(|amount| 10.0 * amount)];
    prop_oneof![
        6 => demand(resources).prop_map(Change::Add),
        3 => (0..100usize).prop_map(Change::Remove),
        2 => (0..100usize, 1..5u32).prop_map(|(index, flows)| Change::Flows(index, flows)),
        2 => (0..resources, capacity).prop_map(|(resource, capacity)| Change::Capacity(resource, capacity)),
        5 => Just(Change::Solve),
    ]
}

fn history() -> impl Strategy<Value = (Vec<f64>, Vec<Change>)> {
    prop::collection::vec(amount().prop_map(|amount| 10.0 * amount), 1..8).prop_flat_map(|capacities| {
        let changes = prop::collection::vec(change(capacities.len()), 1..80);
        (Just(capacities), changes)
    })
}

/// An allocation, and the changes applied to it.
struct Pair {
    maxmin: MaxMin,
    capacities: Vec<f64>,
    demands: Vec<(EntryId, Demand)>,
}

impl Pair {
    fn new(capacities: &[f64]) -> Pair {
        let maxmin = MaxMin::new(capacities).unwrap();
        Pair { maxmin, capacities: capacities.to_vec(), demands: Vec::new() }
    }

    fn apply(&mut self, change: &Change) {
        let count = self.demands.len();
        match change {
            Change::Add(demand) => {
                let Demand { hops, weight, cap, flows } = demand;
                let id = self.maxmin.add(hops, *weight, *cap, *flows).unwrap();
                self.demands.push((id, demand.clone()));
            }
            Change::Remove(index) if count > 0 => {
                let (id, _) = self.demands.swap_remove(index % count);
                self.maxmin.remove(id).unwrap();
            }
            Change::Flows(index, flows) if count > 0 => {
                let (id, demand) = &mut self.demands[index % count];
                demand.flows = *flows;
                self.maxmin.set_flows(*id, *flows).unwrap();
            }
            Change::Capacity(resource, capacity) => {
                self.capacities[*resource] = *capacity;
                self.maxmin.set_capacity(ResourceId(*resource as u32), *capacity).unwrap();
            }
            Change::Solve => self.maxmin.solve(),
            _ => {}
        }
    }

    fn rates(&self) -> Vec<f64> {
        self.demands.iter().map(|&(id, _)| self.maxmin.rate(id).unwrap()).collect()
    }

    fn check(&self) -> Result<(), TestCaseError> {
        let demands: Vec<Demand> = self.demands.iter().map(|(_, demand)| demand.clone()).collect();
        let rates = self.rates();
        check_max_min_fair(&self.capacities, &demands, &rates).map_err(TestCaseError::fail)?;
        for (index, (&rate, expected)) in
            rates.iter().zip(water_filling(&self.capacities, &demands)).enumerate()
        {
            prop_assert!(same(rate, expected), "demand {index}: {rate} instead of {expected}");
        }
        for resource in 0..self.capacities.len() {
            let load = self.maxmin.load(ResourceId(resource as u32));
            let work =
                |(demand, rate): (&Demand, &f64)| f64::from(demand.flows) * demand.work(resource) * rate;
            let crossing = demands.iter().zip(&rates).filter(|(demand, _)| demand.work(resource) > 0.0);
            let expected: f64 = crossing.map(work).sum();
            prop_assert!(same(load, expected), "resource {resource}: load {load} instead of {expected}");
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_solution_is_max_min_fair_after_any_history((capacities, changes) in history()) {
        let mut pair = Pair::new(&capacities);
        for change in &changes {
            pair.apply(change);
            if let Change::Solve = change {
                pair.check()?;
            }
        }
        pair.maxmin.solve();
        pair.check()?;
        prop_assert_eq!(pair.maxmin.effort().fillings, 0);
    }

    #[test]
    fn a_solution_by_filling_is_also_max_min_fair((capacities, changes) in history()) {
        let mut pair = Pair::new(&capacities);
        pair.maxmin = pair.maxmin.with_visit_limit(0);
        for change in &changes {
            pair.apply(change);
            if let Change::Solve = change {
                pair.check()?;
            }
        }
    }

    #[test]
    fn the_order_of_arrivals_does_not_matter(
        (capacities, demands) in prop::collection::vec(amount(), 1..8).prop_flat_map(|capacities| {
            let demands = prop::collection::vec(demand(capacities.len()), 1..20);
            (Just(capacities), demands)
        }),
        turn in 0..20usize,
    ) {
        let mut one = Pair::new(&capacities);
        let mut other = Pair::new(&capacities);
        let turn = turn % demands.len();
        for demand in &demands {
            one.apply(&Change::Add(demand.clone()));
        }
        for demand in demands[turn..].iter().chain(&demands[..turn]).rev() {
            other.apply(&Change::Add(demand.clone()));
            other.apply(&Change::Solve);
        }
        one.maxmin.solve();
        let mut other_rates = other.rates();
        other_rates.reverse();
        other_rates.rotate_right(turn);
        for (one, other) in one.rates().into_iter().zip(other_rates) {
            prop_assert!(same(one, other), "{one} and {other}");
        }
    }

    #[test]
    fn every_entry_whose_rate_changed_is_reported((capacities, changes) in history()) {
        let mut pair = Pair::new(&capacities);
        let mut before: std::collections::BTreeMap<EntryId, f64> = Default::default();
        for change in &changes {
            pair.apply(change);
            let Change::Solve = change else { continue };
            let changed = pair.maxmin.changed();
            let rates = pair.demands.iter().map(|&(id, _)| (id, pair.maxmin.rate(id).unwrap()));
            let rates: std::collections::BTreeMap<EntryId, f64> = rates.collect();
            for (id, rate) in &rates {
                if before.get(id) != Some(rate) {
                    prop_assert!(changed.contains(id), "{id:?} went to {rate}");
                }
            }
            before = rates;
        }
    }
}

#[test]
fn the_limit_of_a_flow_names_its_full_resource() {
    let mut maxmin = MaxMin::new(&[100.0, 30.0]).unwrap();
    let wide = maxmin.add(&[hop(0, 1.0)], 1.0, f64::INFINITY, 1).unwrap();
    let narrow = maxmin.add(&[hop(0, 1.0), hop(1, 1.0)], 1.0, f64::INFINITY, 2).unwrap();
    let capped = maxmin.add(&[hop(0, 1.0)], 1.0, 5.0, 1).unwrap();
    maxmin.solve();
    assert_eq!(maxmin.limit(wide), Some(Limit::Resource(ResourceId(0))));
    assert_eq!(maxmin.limit(narrow), Some(Limit::Resource(ResourceId(1))));
    assert_eq!(maxmin.limit(capped), Some(Limit::Ceiling));
    assert_eq!(maxmin.rate(wide), Some(65.0));
    assert_eq!(maxmin.rate(narrow), Some(15.0));
    assert_eq!(maxmin.level(ResourceId(0)), Some(65.0));
}

#[test]
fn a_resource_without_capacity_pauses_its_flows() {
    let mut maxmin = MaxMin::new(&[100.0, 100.0]).unwrap();
    let both = maxmin.add(&[hop(0, 1.0), hop(1, 1.0)], 1.0, f64::INFINITY, 1).unwrap();
    let one = maxmin.add(&[hop(0, 1.0)], 1.0, f64::INFINITY, 1).unwrap();
    maxmin.set_capacity(ResourceId(1), 0.0).unwrap();
    maxmin.solve();
    assert_eq!((maxmin.rate(both), maxmin.rate(one)), (Some(0.0), Some(100.0)));
    maxmin.set_capacity(ResourceId(1), 100.0).unwrap();
    maxmin.solve();
    assert_eq!((maxmin.rate(both), maxmin.rate(one)), (Some(50.0), Some(50.0)));
}

#[test]
fn a_resource_crossed_twice_counts_twice() {
    let mut maxmin = MaxMin::new(&[90.0]).unwrap();
    let twice = maxmin.add(&[hop(0, 1.0), hop(0, 1.0)], 1.0, f64::INFINITY, 1).unwrap();
    let once = maxmin.add(&[hop(0, 1.0)], 1.0, f64::INFINITY, 1).unwrap();
    maxmin.solve();
    assert_eq!((maxmin.rate(twice), maxmin.rate(once)), (Some(30.0), Some(30.0)));
}

/// Two resources with nearly the same level; each can take over the other's members. If both are visited alternately
/// before either reaches its own level, they do not settle.
#[test]
fn resources_that_contend_for_the_same_members_settle() {
    let mut pair = Pair::new(&[10.0, 20.0]);
    let add = |path: &[(usize, f64)], weight, cap, flows| {
        let hops = path.iter().map(|&(resource, work)| hop(resource, work)).collect();
        Change::Add(Demand { hops, weight, cap, flows })
    };
    for change in [
        add(&[(0, 14.0), (1, 91.09010270095655)], 31.1537447124907, 0.0, 3),
        add(&[(0, 1.0)], 1.0, f64::INFINITY, 1),
        add(&[(0, 4.0)], 52.36886112386185, f64::INFINITY, 2),
        Change::Solve,
        add(&[(0, 2.0), (1, 61.698507214442294)], 65.5948137484986, f64::INFINITY, 2),
        add(&[(1, 1.0)], 1.0, 1.0, 1),
        Change::Solve,
        add(&[(1, 97.43281148061942), (0, 86.55565902046415)], 89.49499797670978, f64::INFINITY, 1),
        Change::Solve,
    ] {
        pair.apply(&change);
    }
    pair.check().unwrap();
    assert_eq!(pair.maxmin.effort().fillings, 0);
}

/// Racks under a bottleneck tree. The history is long enough that many levels change at once and sums could drift.
#[test]
fn a_long_history_on_a_tree_ends_where_a_fresh_start_does() {
    let (racks, hosts) = (12, 4);
    let count = racks * hosts;
    let mut capacities = vec![10.0; 2 * count];
    capacities.extend(vec![20.0; 2 * racks]);
    let mut pair = Pair::new(&capacities);
    let mut numbers = Numbers::new(3);
    for step in 0..60_000 {
        if pair.demands.len() < 150 && numbers.unit() < 0.52 {
            let (from, to) = (numbers.below(count), numbers.below(count));
            let racks_between = [2 * count + from / hosts, 2 * count + racks + to / hosts];
            let path = [from, racks_between[0], racks_between[1], count + to];
            let hops = path.iter().map(|&resource| hop(resource, 8.0)).collect();
            let weight = if numbers.unit() < 0.8 { 1.0 } else { numbers.unit() + 0.1 };
            pair.apply(&Change::Add(Demand { hops, weight, cap: f64::INFINITY, flows: 1 }));
        } else if numbers.unit() < 0.02 {
            let resource = 2 * count + numbers.below(2 * racks);
            pair.apply(&Change::Capacity(resource, 20.0 * (1.0 + numbers.unit())));
        } else {
            pair.apply(&Change::Remove(numbers.below(1000)));
        }
        pair.apply(&Change::Solve);
        if step % 1000 == 999 {
            pair.check().unwrap();
        }
    }
    assert_eq!(pair.maxmin.effort().fillings, 0);
}
