//! Systems for tests: workloads on a few clients, servers and devices.

use std::sync::Arc;

use leeward_calculus::mmpp::{Mmpp, Requests, Sigma, Sizes, State};
use leeward_calculus::{ArrivalCurve, TokenBucket};
use leeward_slo::{Demand, Promise, Queue, Slo, System, Workload};
use leeward_traces::Stage;
use proptest::prelude::*;

pub fn curve(buckets: &[(f64, f64)]) -> ArrivalCurve {
    let buckets: Vec<TokenBucket> = buckets.iter().map(|&(r, b)| TokenBucket::new(r, b).unwrap()).collect();
    ArrivalCurve::new(&buckets).unwrap()
}

pub fn queue(name: &str, capacity: f64) -> Queue {
    Queue { name: name.to_owned(), capacity, latency: 0.0, resource: None }
}

pub fn demand(stage: Stage, arrivals: ArrivalCurve, largest: f64) -> Demand {
    Demand { stage, arrivals, largest, model: None, unloaded: 0.0, outstanding: None }
}

/// A promise whose limits are its arrival curves.
pub fn promise(name: &str, slo: Option<Slo>, stages: Vec<(Demand, Vec<usize>, u32)>) -> Promise {
    let limits = stages.iter().map(|stage| stage.0.arrivals.clone()).collect();
    let route = stages.iter().map(|stage| stage.1.clone()).collect();
    let priorities = stages.iter().map(|stage| stage.2).collect();
    let demands = stages.into_iter().map(|stage| stage.0).collect();
    let workload = Workload { name: name.to_owned(), slo, demands, dependencies: Vec::new() };
    Promise { workload: Arc::new(workload), route, priorities, limits }
}

/// A promise of one stage at queue 0.
pub fn simple(name: &str, priority: u32, buckets: &[(f64, f64)], largest: f64, latency: f64) -> Promise {
    let slo = Some(Slo { percentile: 99.9, latency });
    promise(name, slo, vec![(demand(Stage::NetworkIn, curve(buckets), largest), vec![0], priority)])
}

/// Arrivals with exponential work and on average `rate` requests per second; the rate alternates between 0.5 and 1.5
/// times `rate`.
pub fn model(rate: f64, mean: f64) -> Mmpp {
    const STEP: f64 = 1e-4;
    let state = |share: f64| State {
        requests: Requests::Poisson(rate * share * STEP),
        sizes: Sizes::Exponential { mean },
    };
    let rows = [vec![1.0 - 1e-4, 1e-4], vec![1e-4, 1.0 - 1e-4]];
    Mmpp::new(STEP, vec![state(0.5), state(1.5)], &rows, Sigma::Stationary).unwrap()
}

/// Random parameters of a workload.
#[derive(Clone, Debug)]
pub struct Draw {
    pub rate: f64,
    pub burst: f64,
    pub second: Option<(f64, f64)>,
    pub packet: f64,
    pub path: usize,
    pub priorities: [u32; 3],
    pub latency: f64,
}

impl Draw {
    /// Curve with rates multiplied by `share`.
    pub fn curve(&self, share: f64) -> ArrivalCurve {
        let mut buckets = vec![(self.rate * share, self.burst)];
        if let Some((faster, smaller)) = self.second {
            buckets.push((self.rate * share * faster, self.burst * smaller));
        }
        curve(&buckets)
    }
}

pub fn draws(most: usize, buckets: bool) -> impl Strategy<Value = Vec<Draw>> {
    let second: BoxedStrategy<Option<(f64, f64)>> =
        if buckets { prop::option::of((1.5..6.0f64, 0.1..0.9f64)).boxed() } else { Just(None).boxed() };
    let draw =
        (0.05..1.0f64, 0.5..8.0f64, second, 0.05..0.4f64, 0usize..1000, [0u32..3, 0..3, 0..3], 0.5..20.0f64);
    let draw = draw.prop_map(|(rate, burst, second, packet, path, priorities, latency)| Draw {
        rate,
        burst,
        second,
        packet,
        path,
        priorities,
        latency,
    });
    prop::collection::vec(draw, 1..=most)
}

pub const CAPACITY: f64 = 10.0;

/// One stage over paths of queues with about [`CAPACITY`] each, and a load of at most the share `load` of it.
pub fn on_paths(draws: &[Draw], paths: &[&[usize]], load: f64) -> System {
    let queues = (0..4).map(|at| queue(&format!("q{at}"), [1.0, 0.9, 0.95, 1.1][at] * CAPACITY)).collect();
    let share = load * 0.9 * CAPACITY / draws.len() as f64;
    let promises = draws.iter().enumerate().map(|(at, draw)| {
        let arrivals = draw.curve(share);
        let largest = draw.packet * arrivals.burst();
        let route = paths[draw.path % paths.len()].to_vec();
        let slo = Some(Slo { percentile: 99.0, latency: draw.latency });
        let stages = vec![(demand(Stage::NetworkIn, arrivals, largest), route, draw.priorities[0])];
        promise(&format!("w{at}"), slo, stages)
    });
    System { queues, promises: promises.collect() }
}

/// Three stages: two clients, two servers with a device each. Network in, storage, network out.
pub fn three_stages(draws: &[Draw], load: f64) -> System {
    let names = ["c0-up", "c1-up", "s0-down", "s1-down", "d0", "d1", "s0-up", "s1-up", "c0-down", "c1-down"];
    let queues = names.iter().map(|name| queue(name, if name.starts_with('d') { 1.0 } else { CAPACITY }));
    let promises = draws.iter().enumerate().map(|(at, draw)| {
        let (client, server) = (draw.path % 2, draw.path / 2 % 2);
        let share = load * CAPACITY / draws.len() as f64;
        let stage = |stage: Stage, route: Vec<usize>, weight: f64, priority: u32| {
            let device = stage == Stage::Storage;
            let unit = if device { weight / CAPACITY } else { weight };
            let scaled = Draw { rate: draw.rate * unit, burst: draw.burst * unit, ..draw.clone() };
            let arrivals = scaled.curve(share);
            let largest = draw.packet * arrivals.burst();
            let rate = scaled.rate * share / (largest / 2.0);
            let model = Some(model(rate, largest / 2.0));
            let unloaded = if device { 0.05 } else { 0.0 };
            (Demand { unloaded, model, ..demand(stage, arrivals, largest) }, route, priority)
        };
        let slo = Some(Slo { percentile: 99.0, latency: draw.latency });
        let [first, second, third] = draw.priorities;
        promise(
            &format!("w{at}"),
            slo,
            vec![
                stage(Stage::NetworkIn, vec![client, 2 + server], 0.3, first),
                stage(Stage::Storage, vec![4 + server], 1.0, second),
                stage(Stage::NetworkOut, vec![6 + server, 8 + client], 1.0, third),
            ],
        )
    });
    System { queues: queues.collect(), promises: promises.collect() }
}
