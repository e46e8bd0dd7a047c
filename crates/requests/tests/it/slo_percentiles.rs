//! Stochastic bounds of whole requests, large and small, over paths of one to four links, compared with requests drawn
//! from their models.
//!
//! A bound covers a percentile that a run of finite length only estimates, so a run may exceed it by chance. Of a
//! thousand requests with a given exact 99th percentile, more than 1 % exceed it in half of all runs. The bounds are so
//! loose that no observed run exceeded one.

use std::sync::Arc;

use leeward_calculus::mmpp::{Mmpp, Requests, Sigma, Sizes, State};
use leeward_calculus::{ArrivalCurve, TokenBucket};
use leeward_fabric::Nanos;
use leeward_requests::{Arrival, Assumption, BoundCheck, OverLimit, Replay, Scheduling};
use leeward_slo::bound::{BoundSettings, Method, Unit};
use leeward_slo::{Demand, Promise, Queue, Slo, System, Workload};
use leeward_traces::{Kind, Stage};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::support::cases;

const STEP: f64 = 1e-4;
/// Bytes per second of every link.
const CAPACITY: f64 = 1e6;
const REQUESTS: f64 = 1500.0;

/// Paths of a line of four links.
const PATHS: [&[usize]; 7] = [&[0, 1, 2, 3], &[0], &[0, 1], &[1, 2], &[2, 3], &[1, 2, 3], &[0, 1, 2]];

#[derive(Clone, Debug)]
struct Draw {
    path: usize,
    priority: u32,
    /// Bytes of each request.
    size: f64,
    /// Share of the links' rate.
    load: f64,
    /// True for a workload with an SLO and a model; false for best effort, which comes after all others.
    promised: bool,
    seed: u64,
}

fn draw(sizes: &'static [f64]) -> impl Strategy<Value = Draw> {
    let size = prop::sample::select(sizes);
    (0..PATHS.len(), 0u32..3, size, 0.02..0.12, prop::bool::weighted(0.8), any::<u64>()).prop_map(
        |(path, priority, size, load, promised, seed)| Draw { path, priority, size, load, promised, seed },
    )
}

impl Draw {
    fn per_second(&self) -> f64 {
        self.load * CAPACITY / self.size
    }

    fn promise(&self, at: usize) -> Promise {
        let state = State {
            requests: Requests::Poisson(self.per_second() * STEP),
            sizes: Sizes::Empirical { atoms: vec![(1.0, self.size)] },
        };
        let model = Mmpp::new(STEP, vec![state], &[vec![1.0]], Sigma::Stationary).unwrap();
        // Limits that never delay.
        let limits = ArrivalCurve::new(&[TokenBucket::new(self.load * CAPACITY, 1e12).unwrap()]).unwrap();
        let demand = Demand {
            stage: Stage::NetworkIn,
            arrivals: limits.clone(),
            largest: self.size,
            model: self.promised.then_some(model),
            unloaded: 0.0,
            outstanding: None,
        };
        let workload = Workload {
            name: format!("w{at}"),
            slo: self.promised.then_some(Slo { percentile: 99.0, latency: 1e3 }),
            demands: vec![demand],
            dependencies: Vec::new(),
        };
        Promise {
            workload: Arc::new(workload),
            route: vec![PATHS[self.path].to_vec()],
            priorities: vec![if self.promised { self.priority } else { u32::MAX }],
            limits: vec![limits],
        }
    }

    fn sent(&self, seconds: f64) -> Arc<[Arrival]> {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        let (mut clock, mut arrivals) = (0.0, Vec::new());
        loop {
            clock += -(1.0 - random.random::<f64>()).ln() / self.per_second();
            if clock > seconds {
                return arrivals.into();
            }
            let (at, work) = (Nanos::from_secs_f64(clock), [self.size, 0.0, 0.0]);
            arrivals.push(Arrival { at, kind: Kind::Read, size: 1, offset: None, work });
        }
    }
}

/// Replays the draws over the four links. The run is long enough that even the rarest workload sends enough requests
/// for a 99th percentile.
fn replay_draws(draws: &[Draw], unit: Unit, latencies: &[f64]) -> Vec<BoundCheck> {
    let queue =
        |(at, &latency)| Queue { name: format!("l{at}"), capacity: CAPACITY, latency, resource: None };
    let queues = latencies.iter().enumerate().map(queue);
    let promises = draws.iter().enumerate().map(|(at, draw)| draw.promise(at));
    let system = System { queues: queues.collect(), promises: promises.collect() };
    let seconds = REQUESTS / draws.iter().map(Draw::per_second).fold(f64::INFINITY, f64::min);
    let replay = Replay {
        system: &system,
        bounds: BoundSettings { unit, ..BoundSettings::default() },
        method: Method::Snc,
        over: OverLimit::Held,
        order: Scheduling::Priority,
        arrivals: draws.iter().map(|draw| Some(draw.sent(seconds))).collect(),
        tails: Vec::new(),
    };
    replay.run().unwrap().workloads
}

fn all_within(draws: &[Draw], unit: Unit, latencies: &[f64]) -> Result<(), TestCaseError> {
    for (check, draw) in replay_draws(draws, unit, latencies).into_iter().zip(draws) {
        if draw.promised {
            prop_assert!(check.bound.is_ok(), "{:?}", check.bound);
            prop_assert!(
                check.violated.is_empty(),
                "{:?} above {:?}: {:?}",
                check.measured,
                check.bound,
                check.violated
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn percentiles_of_whole_requests_over_links_meet_stochastic_bounds(
        draws in prop::collection::vec(draw(&[1e3, 2e4, 2e5]), 1..7),
        unit in prop_oneof![2 => Just(Unit::Requests), 1 => Just(Unit::Frames)],
        latencies in prop_oneof![Just(vec![0.0; 4]), prop::collection::vec(0.0..0.05f64, 4)],
    ) {
        all_within(&draws, unit, &latencies)?;
    }

    #[test]
    fn percentiles_of_requests_below_one_step_meet_stochastic_bounds(draws in prop::collection::vec(draw(&[30.0, 70.0, 200.0]), 1..4)) {
        all_within(&draws, Unit::Requests, &[0.0; 4])?;
    }
}

/// Returns the 99th percentile of a workload, alone or with another: its bound, its measured value, and violated
/// assumptions.
fn replay_first(unit: Unit, first: Draw, other: Option<Draw>) -> (f64, f64, Vec<Assumption>) {
    let draws: Vec<Draw> = std::iter::once(first).chain(other).collect();
    let check = replay_draws(&draws, unit, &[0.0; 4]).swap_remove(0);
    (check.bound.unwrap().seconds, check.measured.unwrap().tail.as_secs_f64(), check.violated)
}

#[test]
fn fluid_bounds_are_too_low_for_store_and_forward_links() {
    let first = Draw { path: 0, priority: 0, size: 2e5, load: 0.02, promised: true, seed: 1 };
    let (fluid, _, violated) = replay_first(Unit::Fluid, first.clone(), None);
    let (whole, measured, none_violated) = replay_first(Unit::Requests, first, None);
    // Four links, 0.2 s each.
    assert!(measured >= 0.8, "{measured}");
    assert!(fluid < measured && measured <= whole, "{fluid} {measured} {whole}");
    assert!(matches!(violated[0], Assumption::Fluid { .. }) && none_violated.is_empty(), "{violated:?}");
}

#[test]
fn a_started_best_effort_request_delays_the_first_priority() {
    let first = Draw { path: 1, priority: 0, size: 1e3, load: 0.02, promised: true, seed: 1 };
    let large = Draw { path: 1, priority: 0, size: 2e5, load: 0.1, promised: false, seed: 2 };
    let (fluid, _, violated) = replay_first(Unit::Fluid, first.clone(), Some(large.clone()));
    let (whole, measured, none_violated) = replay_first(Unit::Requests, first, Some(large));
    assert!(measured > 0.1, "{measured}");
    assert!(fluid < measured && measured <= whole, "{fluid} {measured} {whole}");
    assert!(matches!(violated[0], Assumption::Fluid { .. }) && none_violated.is_empty(), "{violated:?}");
}
