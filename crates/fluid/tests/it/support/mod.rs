//! Helpers of the fluid tests: a plain water-filling solver for comparison, and the optimality conditions.

use leeward_fabric::{Hop, ResourceId};

/// An entry in the tests.
#[derive(Clone, Debug)]
pub struct Demand {
    pub hops: Vec<Hop>,
    pub weight: f64,
    pub cap: f64,
    pub flows: u32,
}

impl Demand {
    /// Work per byte at a resource, over all hops of the path there.
    pub fn work(&self, resource: usize) -> f64 {
        self.hops.iter().filter(|hop| hop.resource.index() == resource).map(|hop| hop.work).sum()
    }
}

pub fn hop(resource: usize, work: f64) -> Hop {
    Hop { resource: ResourceId(resource as u32), work }
}

/// Rates of all demands, by raising all levels together until a cap or a resource stops some of them.
pub fn water_filling(capacities: &[f64], demands: &[Demand]) -> Vec<f64> {
    let mut rates: Vec<Option<f64>> = vec![None; demands.len()];
    loop {
        let mut lowest = f64::INFINITY;
        let mut stopped: Vec<usize> = Vec::new();
        let mut stop = |level: f64, entries: Vec<usize>| {
            if level < lowest {
                (lowest, stopped) = (level, entries);
            }
        };
        for (index, demand) in demands.iter().enumerate() {
            if rates[index].is_none() {
                stop(demand.cap / demand.weight, vec![index]);
            }
        }
        for (resource, &capacity) in capacities.iter().enumerate() {
            let (mut left, mut gain, mut rising) = (capacity, 0.0, Vec::new());
            for (index, demand) in demands.iter().enumerate() {
                let work = f64::from(demand.flows) * demand.work(resource);
                match rates[index] {
                    Some(rate) if work > 0.0 => left -= work * rate,
                    None if work > 0.0 => {
                        gain += work * demand.weight;
                        rising.push(index);
                    }
                    _ => {}
                }
            }
            if gain > 0.0 {
                stop((left / gain).max(0.0), rising);
            }
        }
        if lowest == f64::INFINITY {
            return rates.into_iter().map(|rate| rate.unwrap_or(f64::INFINITY)).collect();
        }
        for index in stopped {
            rates[index] = Some(demands[index].weight * lowest);
        }
    }
}

/// Checks the conditions that characterize weighted max-min fair rates. No resource carries more than its capacity.
/// Each demand is at its cap, or crosses a full resource on which no demand has more per weight.
pub fn check_max_min_fair(capacities: &[f64], demands: &[Demand], rates: &[f64]) -> Result<(), String> {
    const TOLERANCE: f64 = 1e-9;
    let load = |resource: usize| -> f64 {
        let work = |(demand, rate): (&Demand, &f64)| f64::from(demand.flows) * demand.work(resource) * rate;
        demands.iter().zip(rates).filter(|(demand, _)| demand.work(resource) > 0.0).map(work).sum()
    };
    for (resource, &capacity) in capacities.iter().enumerate() {
        if load(resource) > capacity * (1.0 + TOLERANCE) {
            return Err(format!("resource {resource}: {} of {capacity}", load(resource)));
        }
    }
    for (index, (demand, &rate)) in demands.iter().zip(rates).enumerate() {
        let bottleneck = |resource: usize| {
            let level = rate / demand.weight;
            let others = demands.iter().zip(rates).filter(|(other, _)| other.work(resource) > 0.0);
            load(resource) >= capacities[resource] * (1.0 - TOLERANCE)
                && others.into_iter().all(|(other, rate)| rate / other.weight <= level * (1.0 + TOLERANCE))
        };
        let is_limited = rate >= demand.cap * (1.0 - TOLERANCE)
            || (0..capacities.len()).any(|resource| demand.work(resource) > 0.0 && bottleneck(resource));
        if !is_limited {
            return Err(format!("demand {index}: no cap and no resource limits it to {rate}"));
        }
    }
    Ok(())
}

/// Equal within a billionth.
pub fn same(one: f64, other: f64) -> bool {
    one == other || (one - other).abs() <= 1e-9 * one.abs().max(other.abs())
}
