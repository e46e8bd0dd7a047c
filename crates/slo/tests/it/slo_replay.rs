//! Bounds against a simulation: a device that serves whole requests by priority, in one slot or several.

use crate::support::systems::{Draw, curve, demand, draws, promise, queue};
use leeward_slo::bound::{BoundSettings, Method, bounds};
use leeward_slo::{Demand, System};
use leeward_traces::Stage;
use proptest::prelude::*;

/// A request: arrival time, work and workload.
#[derive(Clone, Copy)]
struct Request {
    at: f64,
    work: f64,
    workload: usize,
}

/// Longest latency of each workload's requests at a device with `places` parallel slots, each with one `places`th of
/// the speed. Service is not interrupted, and the next request is the first waiting request of the highest priority.
fn serve(mut requests: Vec<Request>, priorities: &[u32], places: usize) -> Vec<f64> {
    requests.sort_by(|a, b| a.at.total_cmp(&b.at));
    let (mut free, mut longest) = (vec![0.0f64; places], vec![0.0f64; priorities.len()]);
    let mut waiting: Vec<Request> = Vec::new();
    let mut next = 0;
    while next < requests.len() || !waiting.is_empty() {
        let place = (0..places).min_by(|&a, &b| free[a].total_cmp(&free[b])).unwrap();
        let mut now = free[place];
        if waiting.is_empty() {
            now = now.max(requests[next].at);
        }
        while next < requests.len() && requests[next].at <= now {
            waiting.push(requests[next]);
            next += 1;
        }
        let first = (0..waiting.len()).min_by_key(|&at| priorities[waiting[at].workload]).unwrap();
        let request = waiting.remove(first);
        free[place] = now + request.work * places as f64;
        longest[request.workload] = longest[request.workload].max(free[place] - request.at);
    }
    longest
}

/// Requests as early as the buckets allow, with pauses.
fn greedy(
    arrivals: &leeward_calculus::ArrivalCurve,
    sizes: &[(f64, f64)],
    workload: usize,
    start: f64,
) -> Vec<Request> {
    let (mut levels, mut clock) = (vec![0.0f64; arrivals.buckets().len()], start);
    sizes
        .iter()
        .map(|&(work, pause)| {
            let buckets = arrivals.buckets().iter().zip(&levels);
            let wait = buckets
                .map(|(bucket, level)| (level + work - bucket.burst()) / bucket.rate())
                .fold(pause, f64::max);
            clock += wait;
            for (bucket, level) in arrivals.buckets().iter().zip(&mut levels) {
                *level = (*level - bucket.rate() * wait).max(0.0) + work;
            }
            Request { at: clock, work, workload }
        })
        .collect()
}

/// Relative sizes of requests, and the pauses before them.
fn request_sizes() -> impl Strategy<Value = Vec<(f64, f64)>> {
    let size = prop_oneof![3 => Just(1.0), 1 => 0.1..1.0f64];
    let pause = prop_oneof![6 => Just(0.0), 1 => 0.0..0.5f64, 1 => 0.5..5.0f64];
    prop::collection::vec((size, pause), 1..60)
}

/// Workloads at one device of capacity 1, each with its requests.
fn device(
    draws: &[Draw],
    sends: &[Vec<(f64, f64)>],
    together: bool,
    places: usize,
) -> (System, Vec<Request>) {
    let share = 0.95 / draws.len() as f64;
    let (mut promises, mut requests) = (Vec::new(), Vec::new());
    for (at, draw) in draws.iter().enumerate() {
        let scaled = Draw { burst: draw.burst / 10.0, ..draw.clone() };
        let arrivals = scaled.curve(share);
        let largest = draw.packet * arrivals.burst();
        let sizes: Vec<(f64, f64)> =
            sends[at % sends.len()].iter().map(|&(size, pause)| (size * largest, pause)).collect();
        let start = if together { 0.0 } else { draw.latency / 10.0 };
        requests.extend(greedy(&arrivals, &sizes, at, start));
        // Without other requests, a request takes its work times the number of slots.
        let unloaded = (places - 1) as f64 * largest;
        let demand = Demand { unloaded, ..demand(Stage::Storage, arrivals, largest) };
        promises.push(promise(&format!("w{at}"), None, vec![(demand, vec![0], draw.priorities[0])]));
    }
    (System { queues: vec![queue("disk", 1.0)], promises }, requests)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_request_at_a_device_exceeds_its_bounds(
        draws in draws(5, true),
        sends in prop::collection::vec(request_sizes(), 1..6),
        together in any::<bool>(),
        places in 1usize..6,
    ) {
        let (system, requests) = device(&draws, &sends, together, places);
        let priorities: Vec<u32> = system.promises.iter().map(|promise| promise.priorities[0]).collect();
        let longest = serve(requests, &priorities, places);
        for method in [Method::Dnc, Method::PriorityMeister, Method::Plp] {
            for (bound, &longest) in bounds(&system, method, BoundSettings::default()).into_iter().zip(&longest) {
                let bound = bound.unwrap().seconds;
                prop_assert!(longest <= bound * (1.0 + 1e-9), "{} above {}", longest, bound);
            }
        }
    }
}

#[test]
fn several_device_slots_exceed_the_bound_of_a_single_server() {
    // Seven of eight slots are taken when a burst arrives: the bound of a single server does not suffice.
    let places = 8;
    let promise_with = |name: &str, priority, unloaded| {
        let demand = Demand { unloaded, ..demand(Stage::Storage, curve(&[(0.01, 0.8)]), 0.1) };
        promise(name, None, vec![(demand, vec![0], priority)])
    };
    let mut requests: Vec<Request> = (0..8).map(|_| Request { at: 0.0, work: 0.1, workload: 1 }).collect();
    requests.extend((0..8).map(|_| Request { at: 1e-9, work: 0.1, workload: 0 }));
    let longest = serve(requests, &[0, 1], places);
    let bound = |unloaded| {
        let promises = vec![promise_with("first", 0, unloaded), promise_with("second", 1, unloaded)];
        let system = System { queues: vec![queue("disk", 1.0)], promises };
        bounds(&system, Method::Dnc, BoundSettings::default())[0].clone().unwrap().seconds
    };
    assert!((longest[0] - 1.6).abs() < 1e-6);
    assert!(bound(0.0) < longest[0]);
    assert!(bound(0.7) >= longest[0]);
}
