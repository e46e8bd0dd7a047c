//! Increase of bounds over the bounds of a fluid: for work served whole, for work in service, and for arrivals within
//! steps.

use leeward_calculus::mmpp::{Mmpp, Requests, Sigma, Sizes, State};
use leeward_calculus::snc::{Analysis, Network, NetworkError, Queue, Stage, Workload};

/// Relative tolerance for the search's own error.
const ROOM: f64 = 1e-6;

fn bursty() -> Mmpp {
    let state =
        |requests| State { requests: Requests::Poisson(requests), sizes: Sizes::Exponential { mean: 1.0 } };
    let rows = [vec![0.9, 0.1], vec![0.1, 0.9]];
    Mmpp::new(1.0, vec![state(0.05), state(0.3)], &rows, Sigma::Stationary).unwrap()
}

fn queue(name: &str, rate: f64, in_service: f64) -> Queue {
    Queue { name: name.into(), rate, in_service, latency: 0.0 }
}

fn workload(name: &str, priority: u32, path: &[&str], packet: f64) -> Workload {
    let queues = path.iter().map(ToString::to_string).collect();
    let stages = vec![Stage { queues, arrivals: bursty(), packet }];
    Workload { name: name.into(), percentile: 99.0, priority, dependencies: vec![], stages }
}

/// The bound of the first workload.
fn first(queues: &[Queue], workloads: &[Workload], within_steps: bool) -> f64 {
    let mut network = Network::new(queues, workloads).unwrap();
    network.set_within_steps(within_steps);
    network.bound(0, Analysis::Bipartite).unwrap().seconds.unwrap()
}

fn later(bound: f64, fluid: f64, by: f64) {
    assert!(
        (bound - fluid - by).abs() <= ROOM * bound,
        "{bound} is {} after {fluid}, not {by}",
        bound - fluid
    );
}

#[test]
fn work_in_service_delays_at_the_rate_of_the_queue() {
    let own = workload("own", 0, &["a"], 0.0);
    let fluid = first(&[queue("a", 0.5, 0.0)], std::slice::from_ref(&own), false);
    later(first(&[queue("a", 0.5, 3.0)], std::slice::from_ref(&own), false), fluid, 6.0);
    // A packet of a lower priority counts as in service. Packets of higher and equal priorities are part of their
    // arrivals.
    let packet = |priority| [own.clone(), workload("other", priority, &["a"], 2.0)];
    later(first(&[queue("a", 0.5, 0.0)], &packet(1), false), fluid, 4.0);
    let beside =
        |packet| first(&[queue("a", 0.5, 0.0)], &[own.clone(), workload("other", 0, &["a"], packet)], false);
    assert_eq!(beside(2.0), beside(0.0));
    // The bound uses the larger of the two.
    later(first(&[queue("a", 0.5, 3.0)], &packet(1), false), fluid, 6.0);
    later(first(&[queue("a", 0.5, 1.0)], &packet(1), false), fluid, 4.0);
}

#[test]
fn a_packet_is_forwarded_by_all_queues_but_the_last_at_their_own_rates() {
    let queues = [queue("a", 0.5, 0.0), queue("b", 2.0, 0.0), queue("c", 0.8, 0.0)];
    let fluid = first(&queues, &[workload("own", 0, &["a", "b", "c"], 0.0)], false);
    let whole = first(&queues, &[workload("own", 0, &["a", "b", "c"], 1.0)], false);
    later(whole, fluid, 1.0 / 0.5 + 1.0 / 2.0);
    let last = first(&queues, &[workload("own", 0, &["a"], 1.0)], false);
    assert_eq!(last, first(&queues, &[workload("own", 0, &["a"], 0.0)], false));
}

#[test]
fn a_packet_of_cross_traffic_counts_in_part() {
    let queues = [queue("a", 1.0, 0.0), queue("b", 1.0, 0.0), queue("v", 1.0, 0.0)];
    let bound = |packet| {
        let other = workload("other", 0, &["b", "v"], packet);
        first(&queues, &[workload("own", 0, &["a", "v"], 0.0), other], false)
    };
    let (fluid, whole) = (bound(0.0), bound(5.0));
    assert!(whole > fluid + 0.5, "{whole} {fluid}");
    // The output during the five steps of a packet is the arrivals in these steps, not the whole packet at the queue's
    // rate.
    let all = {
        let mut queues = queues.clone();
        queues[2].in_service = 5.0;
        let other = workload("other", 0, &["b", "v"], 0.0);
        first(&queues, &[workload("own", 0, &["a", "v"], 0.0), other], false)
    };
    assert!(whole < all, "{whole} {all}");
}

#[test]
fn moments_within_steps_delay_by_two_steps_per_queue() {
    let queues = [queue("a", 0.5, 0.0), queue("b", 0.5, 0.0)];
    for (path, steps) in [(&["a"][..], 2.0), (&["a", "b"][..], 4.0)] {
        let own = [workload("own", 0, path, 0.0)];
        later(first(&queues, &own, true), first(&queues, &own, false), steps);
    }
}

#[test]
fn a_latency_delays_at_every_queue_of_a_path() {
    let late = |name: &str, rate, latency| Queue { latency, ..queue(name, rate, 0.0) };
    let own = [workload("own", 0, &["a", "b", "c"], 1.0), workload("other", 1, &["b"], 2.0)];
    let bound = |latencies| {
        let [a, b, c]: [f64; 3] = latencies;
        first(&[late("a", 0.5, a), late("b", 2.0, b), late("c", 0.8, c)], &own, true)
    };
    later(bound([3.0, 0.5, 2.0]), bound([0.0; 3]), 5.5);
    // Behind a higher priority, the queue also has to make up for the latency at what is left of its rate.
    let pair = [workload("own", 1, &["a"], 0.0), workload("other", 0, &["a"], 0.0)];
    let behind = |latency| first(&[late("a", 0.8, latency)], &pair, false);
    assert!(behind(5.0) > behind(0.0) + 5.0, "{} {}", behind(5.0), behind(0.0));
    // The output during the latency is the arrivals in that time, not work at the rate of the queue.
    let queues = |before, after| [late("b", 1.0, before), late("v", 1.0, after)];
    let cross = [workload("own", 0, &["v"], 0.0), workload("other", 0, &["b", "v"], 0.0)];
    let (none, before, after) = (queues(0.0, 0.0), queues(5.0, 0.0), queues(0.0, 5.0));
    let [none, before, after] = [none, before, after].map(|queues| first(&queues, &cross, false));
    assert!(none < before && before < after, "{none} {before} {after}");
}

#[test]
fn invalid_work_is_rejected_by_name() {
    for wrong in [-1.0, f64::NAN, f64::INFINITY] {
        let own = workload("own", 0, &["a"], 0.0);
        let error = Network::new(&[queue("a", 1.0, wrong)], &[own]).unwrap_err();
        assert!(matches!(error, NetworkError::InService { .. }));
        assert!(error.to_string().starts_with("queue a: "), "{error}");
        let error = Network::new(&[queue("a", 1.0, 0.0)], &[workload("own", 0, &["a"], wrong)]).unwrap_err();
        assert!(matches!(error, NetworkError::Packet { .. }));
        assert!(error.to_string().starts_with("workload own, stage 0: a packet of "), "{error}");
        let slow = Queue { latency: wrong, ..queue("a", 1.0, 0.0) };
        let error = Network::new(&[slow], &[workload("own", 0, &["a"], 0.0)]).unwrap_err();
        assert!(error.to_string().starts_with("queue a: a latency of "), "{error}");
    }
}

#[test]
fn extremely_large_work_gives_no_bound_and_never_panics() {
    let queues = [queue("a", 0.5, f64::MAX), queue("b", 0.5, f64::MAX)];
    let own = [workload("own", 0, &["a", "b"], f64::MAX), workload("other", 0, &["a"], f64::MAX)];
    let mut network = Network::new(&queues, &own).unwrap();
    network.set_within_steps(true);
    for analysis in [Analysis::Bipartite, Analysis::HopByHop, Analysis::Convolution] {
        let bound = network.bound(0, analysis).unwrap().seconds;
        assert!(bound.is_none_or(f64::is_finite), "{bound:?}");
    }
}
