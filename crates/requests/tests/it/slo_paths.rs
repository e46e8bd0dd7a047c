//! Stochastic bounds over paths of three and four links, compared with requests drawn from their models.

use std::sync::Arc;

use leeward_calculus::mmpp::{Mmpp, Requests, Sigma, Sizes, State};
use leeward_calculus::{ArrivalCurve, TokenBucket};
use leeward_fabric::Nanos;
use leeward_requests::{Arrival, OverLimit, Replay, Scheduling};
use leeward_slo::bound::{BoundSettings, Method, Unit};
use leeward_slo::{Demand, Promise, Queue, Slo, System, Workload};
use leeward_traces::{Kind, Stage};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const STEP: f64 = 1e-4;
const SECONDS: f64 = 200.0;
/// Mean duration of a state, in seconds.
const LASTS: f64 = 0.5;
const MEAN: f64 = 2000.0;

/// Model with the requests per second of two states.
fn model(rates: [f64; 2]) -> Mmpp {
    let state = |rate: f64| State {
        requests: Requests::Poisson(rate * STEP),
        sizes: Sizes::Exponential { mean: MEAN },
    };
    let leave = STEP / LASTS;
    let rows = [vec![1.0 - leave, leave], vec![leave, 1.0 - leave]];
    Mmpp::new(STEP, rates.map(state).to_vec(), &rows, Sigma::Stationary).unwrap()
}

fn draw_requests(rates: [f64; 2], seed: u64) -> Arc<[Arrival]> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut exponential = |mean: f64| -mean * (1.0 - random.random::<f64>()).ln();
    let (mut clock, mut state, mut until) = (0.0, (seed % 2) as usize, exponential(LASTS));
    let mut arrivals = Vec::new();
    while clock < SECONDS {
        let gap = exponential(1.0 / rates[state]);
        if clock + gap > until {
            // The process is memoryless: the rest of the gap is drawn again at the rate of the next state.
            (clock, state) = (until, 1 - state);
            until += exponential(LASTS);
            continue;
        }
        clock += gap;
        let at = Nanos::from_secs_f64(clock);
        let work = [exponential(MEAN).max(1.0), 0.0, 0.0];
        arrivals.push(Arrival { at, kind: Kind::Read, size: 1, offset: None, work });
    }
    arrivals.into()
}

/// Workloads with priorities and routes over links of 1 MB/s, each with its own rates.
fn system(flows: &[(u32, &[usize], [f64; 2])], links: usize) -> System {
    let queues =
        (0..links).map(|at| Queue { name: format!("l{at}"), capacity: 1e6, latency: 0.0, resource: None });
    let promises = flows.iter().enumerate().map(|(at, &(priority, route, rates))| {
        // Limits that never delay.
        let mean = MEAN * (rates[0] + rates[1]) / 2.0;
        let arrivals = ArrivalCurve::new(&[TokenBucket::new(mean, 1e9).unwrap()]).unwrap();
        let demand = Demand {
            stage: Stage::NetworkIn,
            arrivals: arrivals.clone(),
            largest: 1e5,
            model: Some(model(rates)),
            unloaded: 0.0,
            outstanding: None,
        };
        let workload = Workload {
            name: format!("w{at}"),
            slo: Some(Slo { percentile: 99.0, latency: 10.0 }),
            demands: vec![demand],
            dependencies: Vec::new(),
        };
        Promise {
            workload: Arc::new(workload),
            route: vec![route.to_vec()],
            priorities: vec![priority],
            limits: vec![arrivals],
        }
    });
    System { queues: queues.collect(), promises: promises.collect() }
}

#[test]
fn percentiles_over_paths_of_up_to_four_links_meet_stochastic_bounds() {
    let flows: [(u32, &[usize], [f64; 2]); 7] = [
        (0, &[0, 1, 2], [20.0, 100.0]),
        (1, &[0, 1], [10.0, 150.0]),
        (1, &[1, 2, 3], [30.0, 60.0]),
        (2, &[4, 2], [50.0, 50.0]),
        (2, &[0, 1, 2, 3], [20.0, 80.0]),
        (3, &[1], [40.0, 90.0]),
        (3, &[0, 1, 2, 3], [20.0, 100.0]),
    ];
    let system = system(&flows, 5);
    let sent = (0..).zip(&flows).map(|(seed, &(.., rates))| Some(draw_requests(rates, seed))).collect();
    let replay = Replay {
        system: &system,
        // Small frames, because the bounds assume a fluid.
        bounds: BoundSettings { unit: Unit::Frames, frame: 64.0, ..BoundSettings::default() },
        method: Method::Snc,
        over: OverLimit::Held,
        order: Scheduling::Priority,
        arrivals: sent,
        tails: Vec::new(),
    };
    for (at, check) in replay.run().unwrap().workloads.into_iter().enumerate() {
        let (bound, measured) = (check.bound.unwrap().seconds, check.measured.unwrap());
        println!("w{at}: bound {bound:.4} s, {:.4} s measured at the 99th", measured.tail.as_secs_f64());
        assert!(measured.tail.as_secs_f64() <= bound, "w{at}: {bound} {measured:?}");
        assert!(measured.tail.0 > 1_000_000, "requests wait in the run");
    }
}
