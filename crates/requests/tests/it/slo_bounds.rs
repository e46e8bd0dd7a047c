//! A replay keeps the guarantees of its system. No request exceeds the deterministic bounds of `leeward_slo::bound`,
//! over clients' and servers' links and devices that accept several requests at once.

use std::sync::Arc;

use leeward_calculus::{ArrivalCurve, TokenBucket};
use leeward_fabric::Nanos;
use leeward_requests::{Arrival, Assumption, OverLimit, Replay, Scheduling};
use leeward_slo::bound::{BoundSettings, Method, Unit};
use leeward_slo::{Demand, Promise, Queue, Slo, System, Workload};
use leeward_traces::{Kind, Stage};
use proptest::prelude::*;

use crate::support::{cases, greedy};

/// A workload of a random system: its allowed traffic, and its actual traffic.
#[derive(Clone, Debug)]
struct Draw {
    rate: f64,
    burst: f64,
    second: Option<(f64, f64)>,
    /// The largest request, as a share of the burst.
    largest: f64,
    client: usize,
    server: usize,
    priorities: [u32; 3],
    /// Limits in addition to its own curve, as factors of its rate and of its burst.
    limit: Option<(f64, f64)>,
    tail: f64,
    start: f64,
    /// Shares of the largest request, and pauses before each in seconds.
    requests: Vec<(f64, f64)>,
}

const CAPACITY: f64 = 10e6;

fn draws() -> impl Strategy<Value = Vec<Draw>> {
    let size = prop_oneof![3 => Just(1.0), 1 => 0.1..1.0f64];
    let pause = prop_oneof![6 => Just(0.0), 1 => 0.0..0.05f64, 1 => 0.05..0.5f64];
    let second = prop::option::of((1.5..4.0f64, 0.2..0.9f64));
    let limit = prop::option::weighted(0.4, (1.0..2.0f64, 0.1..1.2f64));
    let tail = prop_oneof![Just(0.0), 0.0..0.05f64];
    let place = (0usize..2, 0usize..2, [0u32..3, 0..3, 0..3]);
    let sends = (0.0..0.2f64, prop::collection::vec((size, pause), 1..40));
    let draw = (0.05..1.0f64, 0.05..1.0f64, second, 0.05..0.5f64, place, limit, tail, sends).prop_map(
        |(rate, burst, second, largest, (client, server, priorities), limit, tail, (start, requests))| Draw {
            rate,
            burst,
            second,
            largest,
            client,
            server,
            priorities,
            limit,
            tail,
            start,
            requests,
        },
    );
    prop::collection::vec(draw, 1..6)
}

/// Latencies of queues, in seconds. Half of all systems have none.
fn latencies() -> impl Strategy<Value = Vec<f64>> {
    let some = prop::collection::vec(prop_oneof![Just(0.0), 0.0..0.05f64], 10);
    prop_oneof![Just(vec![0.0; 10]), some]
}

fn set_latencies(system: &mut System, latencies: &[f64]) {
    for (queue, latency) in system.queues.iter_mut().zip(latencies) {
        queue.latency = *latency;
    }
}

/// Two clients, and two servers with one device each, with a load of up to nine tenths. Requests come as early as
/// curves allow.
fn random_system(draws: &[Draw]) -> (System, Vec<Option<Arc<[Arrival]>>>) {
    let names = ["c0-out", "c1-out", "s0-in", "s1-in", "d0", "d1", "s0-out", "s1-out", "c0-in", "c1-in"];
    let queue = |name: &&str| {
        let capacity = if name.starts_with('d') { 1.0 } else { CAPACITY };
        Queue { name: (*name).to_owned(), capacity, latency: 0.0, resource: None }
    };
    let share = 0.9 / draws.len() as f64;
    let (mut promises, mut sent) = (Vec::new(), Vec::new());
    for (at, draw) in draws.iter().enumerate() {
        // Shares of a second of each stage; a request has the same share at each.
        let bucket = |rate: f64, burst: f64, unit: f64| {
            TokenBucket::new(rate * share * unit, burst * 0.1 * unit).unwrap()
        };
        let curve = |unit: f64| {
            let first = bucket(draw.rate, draw.burst, unit);
            let second =
                draw.second.map(|(faster, less)| bucket(draw.rate * faster, draw.burst * less, unit));
            ArrivalCurve::new(&[Some(first), second].into_iter().flatten().collect::<Vec<_>>()).unwrap()
        };
        let least = curve(1.0).burst();
        let units = [CAPACITY * 0.5, 1.0, CAPACITY];
        let demand = |stage: Stage| {
            let unit = units[stage as usize];
            let unloaded = if stage == Stage::Storage { draw.tail } else { 0.0 };
            let arrivals = curve(unit);
            Demand {
                stage,
                arrivals,
                largest: draw.largest * least * unit,
                model: None,
                unloaded,
                outstanding: None,
            }
        };
        let demands: Vec<Demand> = Stage::ALL.map(demand).to_vec();
        let limits = demands.iter().map(|demand| {
            let Some((rate, burst)) = draw.limit else { return demand.arrivals.clone() };
            let unit = units[demand.stage as usize];
            bucket(draw.rate * rate, draw.burst * burst, unit).into()
        });
        let (client, server) = (draw.client, draw.server);
        let workload = Workload {
            name: format!("w{at}"),
            slo: Some(Slo { percentile: 99.0, latency: 1.0 }),
            demands: demands.clone(),
            dependencies: Vec::new(),
        };
        promises.push(Promise {
            workload: Arc::new(workload),
            route: vec![vec![client, 2 + server], vec![4 + server], vec![6 + server, 8 + client]],
            priorities: draw.priorities.to_vec(),
            limits: limits.collect(),
        });
        let sizes: Vec<(f64, f64)> =
            draw.requests.iter().map(|&(size, pause)| (size * draw.largest * least, pause)).collect();
        let arrivals = greedy(&curve(1.0), draw.start, &sizes);
        let arrival = |(at, work): (Nanos, f64)| Arrival {
            at,
            kind: Kind::Read,
            size: 4096,
            offset: None,
            work: units.map(|unit| work * unit),
        };
        sent.push(Some(arrivals.into_iter().map(arrival).collect()));
    }
    (System { queues: names.iter().map(queue).collect(), promises }, sent)
}

/// Paths of a line, and of a diamond that splits and joins.
const LINE: [&[usize]; 6] = [&[0, 1, 2, 3], &[0, 1], &[1, 2], &[2, 3], &[1, 2, 3], &[3]];
const DIAMOND: [&[usize]; 6] = [&[0, 1, 3], &[0, 2, 3], &[0, 3], &[1, 3], &[2, 3], &[0, 1]];

/// One stage over several links, with a load of up to nine tenths. Requests come as early as curves allow.
fn links(draws: &[Draw], paths: &[&[usize]], priorities: u32) -> (System, Vec<Option<Arc<[Arrival]>>>) {
    let queue = |at: usize| Queue {
        name: format!("l{at}"),
        capacity: [1.0, 0.9, 0.95, 1.1][at] * CAPACITY,
        latency: 0.0,
        resource: None,
    };
    let share = 0.9 * 0.9 * CAPACITY / draws.len() as f64;
    let (mut promises, mut sent) = (Vec::new(), Vec::new());
    for (at, draw) in draws.iter().enumerate() {
        let bucket = |rate: f64, burst: f64| TokenBucket::new(rate * share, burst * 0.1 * CAPACITY).unwrap();
        let first = bucket(draw.rate, draw.burst);
        let second = draw.second.map(|(faster, less)| bucket(draw.rate * faster, draw.burst * less));
        let arrivals =
            ArrivalCurve::new(&[Some(first), second].into_iter().flatten().collect::<Vec<_>>()).unwrap();
        let largest = draw.largest * arrivals.burst();
        let sizes: Vec<(f64, f64)> =
            draw.requests.iter().map(|&(size, pause)| (size * largest, pause)).collect();
        let arrival = |(at, work): (Nanos, f64)| Arrival {
            at,
            kind: Kind::Read,
            size: 4096,
            offset: None,
            work: [work, 0.0, 0.0],
        };
        let requests = greedy(&arrivals, draw.start, &sizes);
        sent.push(Some(requests.into_iter().map(arrival).collect()));
        let demand = Demand {
            stage: Stage::NetworkIn,
            arrivals: arrivals.clone(),
            largest,
            model: None,
            unloaded: 0.0,
            outstanding: None,
        };
        let workload = Workload {
            name: format!("w{at}"),
            slo: Some(Slo { percentile: 99.0, latency: 1.0 }),
            demands: vec![demand],
            dependencies: Vec::new(),
        };
        promises.push(Promise {
            workload: Arc::new(workload),
            route: vec![
                paths[(draw.client + 2 * draw.server + 4 * draw.priorities[1] as usize) % paths.len()]
                    .to_vec(),
            ],
            priorities: vec![draw.priorities[0] % priorities],
            limits: vec![arrivals],
        });
    }
    (System { queues: (0..4).map(queue).collect(), promises }, sent)
}

proptest! {
    #![proptest_config(cases(1500))]

    #[test]
    fn no_request_over_several_links_exceeds_its_deterministic_bound(
        draws in draws(),
        line in any::<bool>(),
        priorities in 1u32..4,
        latencies in latencies(),
    ) {
        let (mut system, sent) = links(&draws, if line { &LINE } else { &DIAMOND }, priorities);
        set_latencies(&mut system, &latencies);
        for method in [Method::Dnc, Method::PriorityMeister, Method::Plp] {
            let bounds = BoundSettings::default();
            let replay = Replay { system: &system, bounds, method, over: OverLimit::Held, order: Scheduling::Priority, arrivals: sent.clone(), tails: Vec::new() };
            for (check, sent) in replay.run().unwrap().workloads.iter().zip(&sent) {
                prop_assert_eq!(check.measured.unwrap().requests, sent.as_ref().unwrap().len() as u64);
                prop_assert!(check.bound.is_ok(), "{:?}: {:?}", method, check.bound);
                prop_assert!(check.violated.is_empty(), "{:?}: {:?} above {:?}: {:?}", method, check.measured, check.bound, check.violated);
            }
        }
    }

    #[test]
    fn no_replayed_request_exceeds_its_deterministic_bound(
        draws in draws(),
        outstanding in prop_oneof![2 => Just(1u32), 1 => 2u32..9],
        latencies in latencies(),
    ) {
        let (mut system, sent) = random_system(&draws);
        set_latencies(&mut system, &latencies);
        for method in [Method::Dnc, Method::PriorityMeister, Method::Plp] {
            let bounds = BoundSettings { outstanding: Some(outstanding), ..BoundSettings::default() };
            let replay = Replay { system: &system, bounds, method, over: OverLimit::Held, order: Scheduling::Priority, arrivals: sent.clone(), tails: Vec::new() };
            let replayed = replay.run().unwrap();
            for (check, sent) in replayed.workloads.iter().zip(&sent) {
                // Two buckets may exceed the capacity. Then no bound exists, and the test requires none.
                prop_assert_eq!(check.measured.unwrap().requests, sent.as_ref().unwrap().len() as u64);
                prop_assert!(check.violated.is_empty(), "{:?}: {:?} above {:?}: {:?}", method, check.measured, check.bound, check.violated);
            }
        }
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn deterministic_bounds_hold_for_frames_and_limits_below_a_request(
        draws in draws(),
        frame in prop::sample::select(vec![9000.0, 65536.0]),
        latencies in latencies(),
    ) {
        let (mut system, sent) = random_system(&draws);
        set_latencies(&mut system, &latencies);
        for method in [Method::Dnc, Method::PriorityMeister, Method::Plp] {
            let bounds = BoundSettings { unit: Unit::Frames, frame, ..BoundSettings::default() };
            let replay = Replay { system: &system, bounds, method, over: OverLimit::Held, order: Scheduling::Priority, arrivals: sent.clone(), tails: Vec::new() };
            for check in replay.run().unwrap().workloads {
                prop_assert!(check.violated.is_empty(), "{:?}: {:?} above {:?}: {:?}", method, check.measured, check.bound, check.violated);
            }
        }
    }
}

fn storage_promise(name: &str, priority: u32, largest: f64, unloaded: f64) -> Promise {
    let arrivals: ArrivalCurve = TokenBucket::new(0.1, 2.0 * largest).unwrap().into();
    let workload = Workload {
        name: name.to_owned(),
        slo: Some(Slo { percentile: 99.0, latency: 1.0 }),
        demands: vec![Demand {
            stage: Stage::Storage,
            arrivals: arrivals.clone(),
            largest,
            model: None,
            unloaded,
            outstanding: None,
        }],
        dependencies: Vec::new(),
    };
    Promise {
        workload: Arc::new(workload),
        route: vec![vec![0]],
        priorities: vec![priority],
        limits: vec![arrivals],
    }
}

fn burst(at: u64, work: f64, count: usize) -> Option<Arc<[Arrival]>> {
    let arrival =
        Arrival { at: Nanos(at), kind: Kind::Read, size: 4096, offset: None, work: [0.0, work, 0.0] };
    Some(vec![arrival; count].into())
}

fn device(promises: Vec<Promise>) -> System {
    System {
        queues: vec![Queue { name: "disk".to_owned(), capacity: 1.0, latency: 0.0, resource: None }],
        promises,
    }
}

#[test]
fn a_broken_bound_names_its_assumptions() {
    let system = device(vec![storage_promise("first", 0, 0.01, 0.0), storage_promise("last", 1, 0.2, 0.0)]);
    let sent = vec![burst(1, 0.01, 2), burst(0, 0.2, 2)];
    let run = |unit, order| {
        let bounds = BoundSettings { unit, ..BoundSettings::default() };
        let replay = Replay {
            system: &system,
            bounds,
            method: Method::Dnc,
            over: OverLimit::Held,
            order,
            arrivals: sent.clone(),
            tails: Vec::new(),
        };
        replay.run().unwrap().workloads[0].clone()
    };
    // With whole requests, the bound includes the request of the last priority in service, and the replay
    // reaches it.
    let whole = run(Unit::Requests, Scheduling::Priority);
    assert!(whole.violated.is_empty(), "{whole:?}");
    assert_eq!(whole.measured.unwrap().worst, Nanos(220_000_000 - 1));
    let fluid = run(Unit::Fluid, Scheduling::Priority);
    let expected = Assumption::Fluid { whole: Some(whole.bound.clone().unwrap().seconds) };
    assert_eq!(fluid.violated, [expected]);
    let fifo = run(Unit::Requests, Scheduling::Fifo);
    assert_eq!(fifo.violated, [Assumption::Scheduling]);
}

#[test]
fn a_broken_bound_names_a_trace_above_its_curve() {
    let system = device(vec![storage_promise("first", 0, 0.01, 0.0)]);
    let replay = Replay {
        system: &system,
        bounds: BoundSettings::default(),
        method: Method::Dnc,
        over: OverLimit::Held,
        order: Scheduling::Priority,
        arrivals: vec![burst(0, 0.01, 20)],
        tails: Vec::new(),
    };
    let check = replay.run().unwrap().workloads[0].clone();
    assert_eq!(check.violated, [Assumption::Curve { stage: Stage::Storage }]);
}

#[test]
fn several_requests_inside_a_device_exceed_the_bound_for_one() {
    let system = device(vec![storage_promise("first", 0, 0.01, 0.0), storage_promise("last", 1, 0.2, 0.0)]);
    let sent = vec![burst(1, 0.01, 1), burst(0, 0.2, 2)];
    let worst = |outstanding| {
        let bounds = BoundSettings { outstanding: Some(outstanding), ..BoundSettings::default() };
        let replay = Replay {
            system: &system,
            bounds,
            method: Method::Dnc,
            over: OverLimit::Held,
            order: Scheduling::Priority,
            arrivals: sent.clone(),
            tails: Vec::new(),
        };
        let check = replay.run().unwrap().workloads[0].clone();
        assert!(check.violated.is_empty(), "{check:?}");
        (check.measured.unwrap().worst, check.bound.unwrap().seconds)
    };
    let ((worst_of_one, bound_of_one), (worst_of_two, bound_of_two)) = (worst(1), worst(2));
    assert_eq!((worst_of_one.0, worst_of_two.0), (210_000_000 - 1, 410_000_000 - 1));
    assert!(
        (bound_of_one - 0.22).abs() < 1e-9 && (bound_of_two - 0.42).abs() < 1e-9,
        "{bound_of_one} {bound_of_two}"
    );
}

#[test]
fn a_workload_without_requests_has_no_measurement() {
    let system = device(vec![storage_promise("first", 0, 0.01, 0.0), storage_promise("last", 1, 0.2, 0.0)]);
    let replay = Replay {
        system: &system,
        bounds: BoundSettings::default(),
        method: Method::Dnc,
        over: OverLimit::Held,
        order: Scheduling::Priority,
        arrivals: vec![None, burst(0, 0.2, 1)],
        tails: Vec::new(),
    };
    let replayed = replay.run().unwrap();
    assert_eq!(replayed.workloads[0].measured, None);
    assert!(replayed.workloads[0].bound.is_ok());
    assert_eq!(replayed.workloads[1].measured.unwrap().requests, 1);
}
