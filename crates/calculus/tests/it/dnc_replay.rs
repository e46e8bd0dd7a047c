//! Bounds against a replay: arrivals within their buckets are never delayed by more than the bound.

use leeward_calculus::{Flow, InOrder, Network, Packets, TokenBucket, arrivals, stage_delay};
use proptest::prelude::*;

/// A packet at a queue.
#[derive(Clone, Copy)]
struct Packet {
    at: f64,
    size: f64,
    flow: usize,
    sent: f64,
}

/// A queue: capacity in work per second, the time for which it stands still when work arrives at an empty queue, and the
/// longest time for which work stays after its service.
#[derive(Clone, Copy)]
struct Queue {
    capacity: f64,
    stands: f64,
    keeps: f64,
}

/// Serves packets by priority, and by arrival within a priority. Returns (departure of the last bit, packet) in order
/// of departure.
fn serve(mut packets: Vec<Packet>, queue: Queue, flows: &[Flow], preempts: bool) -> Vec<(f64, Packet)> {
    packets.sort_by(|a, b| a.at.total_cmp(&b.at));
    let Queue { capacity, stands, keeps } = queue;
    let (mut clock, mut next, mut departures) = (0.0f64, 0, Vec::<(f64, Packet)>::new());
    let mut waiting: Vec<(Packet, f64)> = Vec::new();
    while next < packets.len() || !waiting.is_empty() {
        if waiting.is_empty() && packets[next].at > clock {
            clock = packets[next].at + stands;
        }
        while next < packets.len() && packets[next].at <= clock {
            waiting.push((packets[next], packets[next].size));
            next += 1;
        }
        // The first of equal minima: packets wait in order of arrival.
        let best = (0..waiting.len()).min_by_key(|&index| flows[waiting[index].0.flow].priority).unwrap();
        let until = clock + waiting[best].1 / capacity;
        match packets.get(next) {
            Some(coming) if preempts && coming.at < until => {
                waiting[best].1 -= capacity * (coming.at - clock);
                clock = coming.at;
            }
            _ => {
                clock = until;
                // Every other group of eight packets stays as long as it may, so late packets leave with punctual ones.
                let leaves = until + if departures.len() / 8 % 2 == 0 { keeps } else { 0.0 };
                let last = departures.last().map_or(0.0, |&(last, _)| last);
                departures.push((leaves.max(last), waiting.remove(best).0));
            }
        }
    }
    departures
}

/// The largest delay of each flow. Queues are numbered in an order that all paths follow.
fn replay(queues: &[Queue], flows: &[Flow], sent: &[Vec<(f64, f64)>], preempts: bool) -> Vec<f64> {
    let mut at: Vec<Vec<Packet>> = vec![Vec::new(); queues.len()];
    for (flow, packets) in sent.iter().enumerate() {
        let first = flows[flow].path[0];
        at[first].extend(packets.iter().map(|&(sent, size)| Packet { at: sent, size, flow, sent }));
    }
    let mut delays = vec![0.0f64; flows.len()];
    for queue in 0..queues.len() {
        for (end, packet) in serve(std::mem::take(&mut at[queue]), queues[queue], flows, preempts) {
            let path = &flows[packet.flow].path;
            match path.iter().position(|&hop| hop == queue).and_then(|hop| path.get(hop + 1)) {
                Some(&next) => at[next].push(Packet { at: end, ..packet }),
                None => delays[packet.flow] = delays[packet.flow].max(end - packet.sent),
            }
        }
    }
    delays
}

/// Sends as early as the buckets allow, except for pauses: (time, size).
fn greedy(flow: &Flow, start: f64, pauses: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let buckets = flow.arrivals.buckets();
    let (mut levels, mut clock) = (vec![0.0f64; buckets.len()], start);
    pauses
        .iter()
        .map(|&(share, pause)| {
            let size = flow.packet * share;
            let waits = buckets
                .iter()
                .zip(&levels)
                .map(|(bucket, level)| (level + size - bucket.burst()) / bucket.rate());
            let wait = waits.fold(pause, f64::max);
            clock += wait;
            for (bucket, level) in buckets.iter().zip(&mut levels) {
                *level = (*level - bucket.rate() * wait).max(0.0) + size;
            }
            (clock, size)
        })
        .collect()
}

#[derive(Clone, Debug)]
struct Case {
    flows: Vec<Flow>,
    sent: Vec<Vec<(f64, f64)>>,
}

const CAPACITIES: [f64; 4] = [10.0, 8.0, 9.0, 10.0];
const LATENCIES: [f64; 4] = [0.3, 0.05, 1.0, 0.4];

/// Queues without latency, queues that stand still at first, queues that keep work after its service, and queues that do
/// both for half of their latency.
const QUEUES: [(f64, f64); 4] = [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (0.5, 0.5)];

/// Flows with one or two buckets over `paths`, with a total of up to nine tenths of the smallest capacity, and their
/// packets.
fn cases(paths: Vec<Vec<usize>>) -> impl Strategy<Value = Case> {
    let path = prop::sample::select(paths);
    let pause = prop_oneof![6 => Just(0.0), 1 => 0.0..0.5f64, 1 => 0.5..5.0f64];
    let size = prop_oneof![3 => Just(1.0), 1 => 0.1..1.0f64];
    let buckets = (0.02..1.0f64, 0.5..10.0f64, prop::option::of((1.5..4.0f64, 0.2..0.9f64)));
    let sends = (0.0..2.0f64, prop::collection::vec((size, pause), 1..60));
    let flow = (buckets, 0u32..3, path, 0.05..0.5f64, sends);
    (prop::collection::vec(flow, 1..6), prop::bool::ANY).prop_map(|(rows, together)| {
        let count = rows.len() as f64;
        let (mut flows, mut sent) = (Vec::new(), Vec::new());
        for ((rate, burst, second), priority, path, packet, (start, pauses)) in rows {
            let rate = rate * 0.9 * 8.0 / count;
            let mut buckets = vec![TokenBucket::new(rate, burst).unwrap()];
            if let Some((faster, smaller)) = second {
                buckets.push(TokenBucket::new(rate * faster, burst * smaller).unwrap());
            }
            let arrivals = leeward_calculus::ArrivalCurve::new(&buckets).unwrap();
            let packet = packet * arrivals.burst();
            let flow = Flow { arrivals, priority, path, packet };
            sent.push(greedy(&flow, if together { 0.0 } else { start }, &pauses));
            flows.push(flow);
        }
        Case { flows, sent }
    })
}

fn check_bounds(case: &Case, packets: Packets, preempts: bool) -> Result<(), TestCaseError> {
    QUEUES.into_iter().try_for_each(|shares| check_queues(case, packets, preempts, shares))
}

fn check_queues(
    case: &Case,
    packets: Packets,
    preempts: bool,
    (stands, keeps): (f64, f64),
) -> Result<(), TestCaseError> {
    let network = Network::new(CAPACITIES.to_vec(), case.flows.clone(), packets).unwrap();
    let network =
        network.with_latencies(LATENCIES.map(|latency| latency * (stands + keeps)).to_vec()).unwrap();
    let queue = |(capacity, latency)| Queue { capacity, stands: stands * latency, keeps: keeps * latency };
    let queues: Vec<Queue> = CAPACITIES.into_iter().zip(LATENCIES).map(queue).collect();
    let delays = replay(&queues, &case.flows, &case.sent, preempts);
    for bounds in [network.aggregate(), network.hop_by_hop()] {
        for (delay, bound) in delays.iter().zip(bounds) {
            let bound = bound.unwrap();
            prop_assert!(*delay <= bound * (1.0 + 1e-9), "delay {} above the bound {}", delay, bound);
        }
    }
    let in_order = InOrder::new(network);
    for (flow, delay) in case.flows.iter().zip(delays) {
        let tandem = in_order.tandem(&flow.path, flow.priority).unwrap();
        let total: f64 = tandem.total_flow().unwrap().iter().sum();
        let separated = tandem.separated_flow()[0].unwrap();
        prop_assert!(
            delay <= total.min(separated) * (1.0 + 1e-9),
            "delay {} above {} or {}",
            delay,
            total,
            separated
        );
    }
    Ok(())
}

proptest! {
    #[test]
    fn the_replay_sends_no_more_than_the_buckets_admit(case in cases(vec![vec![0]])) {
        for (flow, sent) in case.flows.iter().zip(&case.sent) {
            for (index, first) in sent.iter().enumerate() {
                let mut work = 0.0;
                for last in &sent[index..] {
                    work += last.1;
                    prop_assert!(work <= arrivals(flow.arrivals.buckets(), last.0 - first.0) * (1.0 + 1e-9));
                }
            }
        }
    }

    #[test]
    fn a_preemptive_queue_meets_the_fluid_bounds(case in cases(vec![vec![0]])) {
        check_bounds(&case, Packets::Fluid, true)?;
    }

    #[test]
    fn one_queue_of_whole_packets_meets_the_bounds(case in cases(vec![vec![0]])) {
        check_bounds(&case, Packets::Whole, false)?;
    }

    #[test]
    fn two_hops_of_whole_packets_meet_the_bounds(case in cases(vec![vec![0, 2], vec![0, 3], vec![1, 2], vec![1, 3], vec![1], vec![2]])) {
        check_bounds(&case, Packets::Whole, false)?;
    }

    #[test]
    fn lines_of_whole_packets_meet_the_bounds(case in cases(vec![vec![0, 1, 2, 3], vec![1, 2, 3], vec![0, 1, 2], vec![1, 2], vec![2, 3], vec![0, 2, 3], vec![3]])) {
        check_bounds(&case, Packets::Whole, false)?;
    }
}

const PLAIN: Queue = Queue { capacity: 10.0, stands: 0.0, keeps: 0.0 };

#[test]
fn a_simultaneous_burst_attains_the_bound_of_the_first_priority() {
    let flow = |burst, priority| Flow {
        arrivals: TokenBucket::new(1.0, burst).unwrap().into(),
        priority,
        path: vec![0],
        packet: 0.5,
    };
    let flows = vec![flow(3.0, 0), flow(4.0, 0), flow(2.0, 1)];
    let sent: Vec<Vec<(f64, f64)>> = flows
        .iter()
        .map(|flow| greedy(flow, 0.0, &vec![(1.0, 0.0); (flow.arrivals.burst() / 0.5) as usize]))
        .collect();
    let delays = replay(&[PLAIN], &flows, &sent, true);
    let workloads: Vec<(u32, TokenBucket)> =
        flows.iter().map(|flow| (flow.priority, flow.arrivals.buckets()[0])).collect();
    let bound = stage_delay(10.0, &workloads, 0).unwrap();
    assert!((delays[0].max(delays[1]) - bound).abs() < 1e-12);
    // The other flows' rate counts in the bound of the next flow. Nine tenths of the work are the burst, and the rest
    // arrives while the burst drains.
    assert!(delays[2] <= stage_delay(10.0, &workloads, 1).unwrap());
    assert!(delays[2] >= 0.9);
}

#[test]
fn a_packet_in_service_delays_higher_priorities() {
    let flow = |burst, priority| Flow {
        arrivals: TokenBucket::new(1.0, burst).unwrap().into(),
        priority,
        path: vec![0],
        packet: burst,
    };
    let flows = vec![flow(1.0, 0), flow(5.0, 1)];
    let delays = replay(&[PLAIN], &flows, &[vec![(1e-9, 1.0)], vec![(0.0, 5.0)]], false);
    let bound = |packets| Network::new(vec![10.0], flows.clone(), packets).unwrap().aggregate()[0].unwrap();
    assert_eq!((bound(Packets::Fluid), bound(Packets::Whole)), (0.1, 0.6));
    assert!(delays[0] > 0.59 && delays[0] <= 0.6);
}
