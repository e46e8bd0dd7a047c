//! Bounds hold: no simulated request exceeds the deterministic bound of its workload, for workloads within
//! their buckets and for arbitrary traffic.

use leeward_calculus::{ArrivalCurve, Flow, Network, Packets, TokenBucket, stage_delay};
use leeward_fabric::Nanos;
use leeward_requests::{Arrival, Device, Enforced, OverLimit, Server, Setup, Source, StageLimits, run};
use leeward_traces::Kind;
use proptest::prelude::*;

use crate::support::{cases, greedy};

/// A workload of a random system.
#[derive(Clone, Debug)]
struct Sends {
    curve: ArrivalCurve,
    priority: u32,
    path: Vec<usize>,
    largest: f64,
    /// Start time, and requests as (share of the largest request, pause before it in seconds).
    start: f64,
    requests: Vec<(f64, f64)>,
}

#[derive(Clone, Debug)]
struct Case {
    capacities: Vec<f64>,
    workloads: Vec<Sends>,
}

/// Work is in bytes, and the servers serve a few thousand requests per second, so rounding to nanoseconds is
/// negligible.
const CAPACITIES: [f64; 4] = [10e6, 8e6, 9e6, 10e6];

/// Workloads of one or two buckets over `paths`, with a total of up to nine tenths of the smallest capacity. Each
/// workload is greedy from some time on, or has pauses.
fn systems(paths: Vec<Vec<usize>>, buckets: usize) -> impl Strategy<Value = Case> {
    let path = prop::sample::select(paths);
    let pause = prop_oneof![6 => Just(0.0), 1 => 0.0..0.05f64, 1 => 0.05..0.5f64];
    let size = prop_oneof![3 => Just(1.0), 1 => 0.1..1.0f64];
    let second = prop::option::of((1.5..4.0f64, 0.2..0.9f64));
    let sends = (0.0..0.2f64, prop::collection::vec((size, pause), 1..60));
    let workload = (0.02..1.0f64, 0.05..1.0f64, second, 0u32..3, path, 0.05..0.5f64, sends);
    (prop::collection::vec(workload, 1..7), prop::bool::ANY).prop_map(move |(rows, together)| {
        let count = rows.len() as f64;
        let workloads =
            rows.into_iter().map(|(rate, burst, second, priority, path, largest, (start, requests))| {
                let (rate, burst) = (rate * 0.9 * 8e6 / count, burst * 1e6);
                let mut all = vec![TokenBucket::new(rate, burst).unwrap()];
                if let Some((faster, smaller)) = second.filter(|_| buckets > 1) {
                    all.push(TokenBucket::new(rate * faster, burst * smaller).unwrap());
                }
                let curve = ArrivalCurve::new(&all).unwrap();
                let largest = (largest * curve.burst()).floor();
                let start = if together { 0.0 } else { start };
                Sends { curve, priority, path, largest, start, requests }
            });
        Case { capacities: CAPACITIES.to_vec(), workloads: workloads.collect() }
    })
}

/// Requests of a workload, as early as its buckets allow, in whole bytes.
fn arrivals(sends: &Sends, stage: usize) -> Vec<Arrival> {
    let sizes: Vec<(f64, f64)> =
        sends.requests.iter().map(|&(share, pause)| ((share * sends.largest).ceil(), pause)).collect();
    greedy(&sends.curve, sends.start, &sizes)
        .into_iter()
        .map(|(at, size)| {
            let mut work = [0.0; 3];
            work[stage] = size;
            Arrival { at, kind: Kind::Read, size: size as u64, offset: None, work }
        })
        .collect()
}

/// A case with enforced buckets.
fn setup(case: &Case, servers: Vec<Server>, stage: usize, over: OverLimit) -> Setup {
    let workloads = case.workloads.iter().enumerate().map(|(index, sends)| {
        let mut stages: [StageLimits; 3] = Default::default();
        stages[stage] = StageLimits {
            route: sends.path.clone(),
            priority: sends.priority,
            limits: sends.curve.buckets().to_vec(),
            over,
        };
        Enforced { name: format!("w{index}"), slo: None, weight: 1.0, stages }
    });
    Setup::new(servers, workloads.collect())
}

/// Returns the largest latency of each workload in the run of a case, and the time for which servers were
/// starved.
fn largest(
    case: &Case,
    servers: Vec<Server>,
    stage: usize,
    over: OverLimit,
    packet: Option<f64>,
) -> (Vec<u64>, u64) {
    let setup = Setup { packet, ..setup(case, servers, stage, over) };
    let sources = case.workloads.iter().map(|sends| Source::open(arrivals(sends, stage))).collect();
    let report = run(&setup, sources).unwrap();
    let starved = report.servers.iter().map(|server| server.starved.0).sum();
    (report.workloads.iter().map(|measured| measured.latency.largest().0).collect(), starved)
}

fn links(case: &Case) -> Vec<Server> {
    case.capacities
        .iter()
        .enumerate()
        .map(|(at, &capacity)| Server::link(&format!("q{at}"), capacity))
        .collect()
}

fn flows(case: &Case) -> Vec<Flow> {
    let flows = case.workloads.iter().map(|sends| Flow {
        arrivals: sends.curve.clone(),
        priority: sends.priority,
        path: sends.path.clone(),
        packet: sends.largest,
    });
    flows.collect()
}

fn network(case: &Case, packets: Packets) -> Network {
    Network::new(case.capacities.clone(), flows(case), packets).unwrap()
}

/// Checks latencies against both analyses; each hop may round up by a nanosecond.
fn within(case: &Case, packet: Option<f64>) -> Result<(), TestCaseError> {
    let network = network(case, Packets::Whole);
    for over in [OverLimit::Held, OverLimit::Demoted] {
        let (latencies, _) = largest(case, links(case), 0, over, packet);
        for bounds in [network.aggregate(), network.hop_by_hop()] {
            for ((latency, bound), sends) in latencies.iter().zip(bounds).zip(&case.workloads) {
                let bound = bound.unwrap() * 1e9;
                let slack = 2.0 * sends.path.len() as f64;
                prop_assert!(
                    *latency as f64 <= bound * (1.0 + 1e-9) + slack,
                    "{} ns above the bound {}",
                    latency,
                    bound
                );
            }
        }
    }
    Ok(())
}

/// Checks that other workloads keep their bounds if the first one sends everything at once, ignoring its
/// buckets.
fn others_within(case: &Case) -> Result<(), TestCaseError> {
    for over in [OverLimit::Held, OverLimit::Demoted] {
        let mut flows = flows(case);
        if over == OverLimit::Demoted {
            // Demoted requests are served after all others, and one of them may be in service.
            let Sends { path, largest, .. } = case.workloads[0].clone();
            let arrivals = TokenBucket::new(0.0, largest).unwrap().into();
            flows.push(Flow { arrivals, priority: u32::MAX, path, packet: largest });
        }
        let bounds = Network::new(case.capacities.clone(), flows, Packets::Whole).unwrap().aggregate();
        let setup = setup(case, links(case), 0, over);
        let mut sent: Vec<Vec<Arrival>> = case.workloads.iter().map(|sends| arrivals(sends, 0)).collect();
        let start = sent[0][0].at;
        sent[0].iter_mut().for_each(|arrival| arrival.at = start);
        let report = run(&setup, sent.into_iter().map(Source::open).collect()).unwrap();
        for ((measured, bound), sends) in report.workloads.iter().zip(bounds).zip(&case.workloads).skip(1) {
            let (latency, bound) = (measured.latency.largest().0, bound.unwrap() * 1e9);
            let slack = 2.0 * sends.path.len() as f64;
            prop_assert!(
                latency as f64 <= bound * (1.0 + 1e-9) + slack,
                "{:?}: {} ns above the bound {}",
                over,
                latency,
                bound
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(1500))]

    #[test]
    fn one_link_meets_the_bounds(case in systems(vec![vec![0]], 2)) {
        within(&case, None)?;
    }

    #[test]
    fn one_link_meets_the_closed_form_plus_one_lower_priority_request(case in systems(vec![vec![0]], 1)) {
        let (latencies, _) = largest(&case, links(&case), 0, OverLimit::Held, None);
        let buckets: Vec<(u32, TokenBucket)> =
            case.workloads.iter().map(|sends| (sends.priority, sends.curve.buckets()[0])).collect();
        for (latency, sends) in latencies.iter().zip(&case.workloads) {
            let later = case.workloads.iter().filter(|other| other.priority > sends.priority);
            let blocks = later.map(|other| other.largest).fold(0.0, f64::max);
            let with = [buckets.clone(), vec![(0, TokenBucket::new(0.0, blocks).unwrap())]].concat();
            let bound = stage_delay(case.capacities[0], &with, sends.priority).unwrap() * 1e9;
            prop_assert!(*latency as f64 <= bound * (1.0 + 1e-9) + 2.0, "{} ns above the bound {}", latency, bound);
        }
    }

    #[test]
    fn links_in_a_line_meet_the_bounds(
        case in systems(vec![vec![0, 1, 2, 3], vec![1, 2, 3], vec![0, 1, 2], vec![1, 2], vec![2, 3], vec![3]], 2),
    ) {
        within(&case, None)?;
    }

    #[test]
    fn links_of_a_tree_meet_the_bounds(
        case in systems(vec![vec![0, 2, 3], vec![1, 2, 3], vec![1, 3], vec![2, 3], vec![0, 2], vec![1], vec![3]], 2),
    ) {
        within(&case, None)?;
    }

    #[test]
    fn an_excessive_sender_does_not_break_the_bounds_of_others(
        case in prop_oneof![
            systems(vec![vec![0]], 2),
            systems(vec![vec![0, 2, 3], vec![1, 2, 3], vec![1, 3], vec![2, 3], vec![0, 2], vec![1], vec![3]], 2),
        ],
    ) {
        others_within(&case)?;
    }

    #[test]
    fn packetized_links_meet_the_bounds_of_whole_requests(
        case in systems(vec![vec![0, 2, 3], vec![1, 2, 3], vec![2, 3], vec![1]], 2),
        packet in 1000.0..100_000.0f64,
    ) {
        within(&case, Some(packet.floor()))?;
    }

    #[test]
    fn a_device_meets_its_bound_plus_requests_inside_and_latency(
        case in systems(vec![vec![0]], 2),
        (places, latency) in (1u32..8, 0u64..2_000_000),
        over in prop_oneof![Just(OverLimit::Held), Just(OverLimit::Demoted)],
    ) {
        // During a latency, slots are occupied without service, so enough slots must exist.
        let least = case.workloads.iter().flat_map(|sends| sends.requests.iter().map(|r| (r.0 * sends.largest).ceil()))
            .fold(f64::INFINITY, f64::min);
        let spare = (latency as f64 / (least / case.capacities[0] * 1e9)).ceil() as u32 + 1;
        let outstanding = places + if latency > 0 { spare } else { 0 };
        let device = Device { read_latency: Nanos(latency), ..Device::ssd(outstanding) };
        let server = Server { capacity: case.capacities[0], ..Server::device("d", device) };
        let (latencies, starved) = largest(&case, vec![server], 1, over, None);
        prop_assert_eq!(starved, 0);
        let most = case.workloads.iter().map(|sends| sends.largest).fold(0.0, f64::max);
        for (index, latency_of) in latencies.iter().enumerate() {
            let own = &case.workloads[index];
            // Requests that are inside the device when a request of a later priority was last started go first.
            let has_later = case.workloads.iter().any(|other| other.priority > own.priority) || over == OverLimit::Demoted;
            let inside = if has_later { most * f64::from(outstanding) } else { 0.0 };
            let mut flows: Vec<Flow> = case.workloads.iter().map(|sends| Flow {
                arrivals: sends.curve.clone(), priority: sends.priority, path: vec![0], packet: 0.0,
            }).collect();
            flows.push(Flow {
                arrivals: TokenBucket::new(0.0, inside).unwrap().into(), priority: 0, path: vec![0], packet: 0.0,
            });
            let network = Network::new(vec![case.capacities[0]], flows, Packets::Fluid).unwrap();
            let bound = network.aggregate()[index].unwrap() * 1e9 + latency as f64;
            prop_assert!(*latency_of as f64 <= bound * (1.0 + 1e-9) + 2.0, "{} ns above the bound {}", latency_of, bound);
        }
    }
}

#[test]
fn a_simultaneous_burst_attains_the_bound_of_the_first_priority() {
    let sends = |burst: f64, priority, start| Sends {
        curve: TokenBucket::new(1e6, burst).unwrap().into(),
        priority,
        path: vec![0],
        largest: 0.5e6,
        start,
        requests: vec![(1.0, 0.0); (burst / 0.5e6) as usize],
    };
    let case = Case {
        capacities: vec![10e6],
        workloads: vec![sends(3e6, 0, 1e-9), sends(4e6, 0, 1e-9), sends(2e6, 1, 0.0)],
    };
    let (latencies, _) = largest(&case, links(&case), 0, OverLimit::Held, None);
    let bounds = network(&case, Packets::Whole).aggregate();
    // One request of the later priority is in service when the others arrive.
    assert_eq!(latencies[0].max(latencies[1]), 750_000_000 - 1);
    assert!((bounds[0].unwrap() - 0.75).abs() < 1e-12);
    assert!(latencies[2] as f64 <= bounds[2].unwrap() * 1e9 && latencies[2] >= 850_000_000);
}
