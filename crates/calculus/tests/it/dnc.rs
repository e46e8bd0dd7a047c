//! Operators against their definitions, and properties of every analysis.

use leeward_calculus::{
    ArrivalCurve, Flow, InOrder, Network, NetworkError, Overload, Packets, RateLatency, ServiceCurve,
    StageError, TokenBucket, Unbounded, stage_delay,
};
use proptest::prelude::*;

fn bucket(rate: f64, burst: f64) -> TokenBucket {
    TokenBucket::new(rate, burst).unwrap()
}

fn piece(rate: f64, latency: f64) -> RateLatency {
    RateLatency::new(rate, latency).unwrap()
}

fn arrivals() -> impl Strategy<Value = ArrivalCurve> {
    let number = || prop_oneof![1 => Just(0.0), 6 => 0.0..10.0f64];
    prop::collection::vec((number(), number()), 1..5).prop_map(|rows| {
        ArrivalCurve::new(&rows.into_iter().map(|(rate, burst)| bucket(rate, burst)).collect::<Vec<_>>())
            .unwrap()
    })
}

fn services() -> impl Strategy<Value = ServiceCurve> {
    let latency = prop_oneof![1 => Just(0.0), 6 => 0.0..5.0f64];
    prop::collection::vec((0.1..20.0f64, latency), 1..5).prop_map(|rows| {
        ServiceCurve::new(&rows.into_iter().map(|(rate, latency)| piece(rate, latency)).collect::<Vec<_>>())
            .unwrap()
    })
}

/// Every time at which a service may bend: the start of a piece, and the intersection of two.
fn turns(service: &ServiceCurve) -> Vec<f64> {
    let pieces = service.pieces();
    let mut turns: Vec<f64> = pieces.iter().map(RateLatency::latency).chain([0.0]).collect();
    for (index, a) in pieces.iter().enumerate() {
        for b in &pieces[index + 1..] {
            turns.push((b.rate() * b.latency() - a.rate() * a.latency()) / (b.rate() - a.rate()));
        }
    }
    turns
}

/// Every time at which arrivals may bend.
fn bends(arrivals: &ArrivalCurve) -> Vec<f64> {
    arrivals.vertices().map(|vertex| vertex.0).collect()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-7 * (1.0 + a.abs() + b.abs())
}

proptest! {
    #[test]
    fn the_delay_is_the_largest_horizontal_distance(alpha in arrivals(), beta in services()) {
        let Ok(delay) = beta.delay(&alpha) else {
            prop_assert!(alpha.rate() > beta.rate());
            return Ok(());
        };
        let mut at = bends(&alpha);
        for done in turns(&beta) {
            at.extend(alpha.buckets().iter().map(|bucket| (beta.work(done) - bucket.burst()) / bucket.rate()));
        }
        at.retain(|at| at.is_finite() && *at >= 0.0);
        let idle = alpha.arrivals(1e9) == 0.0;
        let distances = at.iter().map(|&at| if idle { 0.0 } else { beta.seconds_for(alpha.arrivals(at)) - at });
        let most = distances.fold(0.0, f64::max);
        prop_assert!(near(delay, most), "{} {}", delay, most);
    }

    #[test]
    fn the_output_is_the_deconvolution(alpha in arrivals(), beta in services(), t in 0.0..20.0f64) {
        let Ok(output) = beta.output(&alpha) else {
            prop_assert!(alpha.rate() > beta.rate());
            return Ok(());
        };
        for t in bends(&output).into_iter().chain([0.0, t]) {
            let back = turns(&beta).into_iter().chain(bends(&alpha).into_iter().map(|at| at - t));
            let sup = back.filter(|&u| u >= 0.0).map(|u| alpha.arrivals(t + u) - beta.work(u)).fold(0.0, f64::max);
            prop_assert!(near(output.arrivals(t), sup), "at {}: {} {}", t, output.arrivals(t), sup);
        }
        prop_assert!(near(output.rate(), alpha.rate()));
    }

    #[test]
    fn the_leftover_is_the_service_minus_the_arrivals(alpha in arrivals(), beta in services(), t in 0.0..50.0f64) {
        match beta.leftover(&alpha) {
            Ok(left) => {
                for t in turns(&beta).into_iter().chain(bends(&alpha)).chain([t]) {
                    let expected = (beta.work(t) - alpha.arrivals(t)).max(0.0);
                    prop_assert!(near(left.work(t), expected), "at {}: {} {}", t, left.work(t), expected);
                }
            }
            Err(overload) => prop_assert!(overload.load >= overload.service),
        }
    }

    #[test]
    fn the_leftover_in_order_is_the_service_minus_delayed_arrivals(alpha in arrivals(), beta in services(), t in 0.0..50.0f64) {
        match (beta.delay(&alpha), beta.leftover_in_order(&alpha)) {
            (Ok(theta), Ok(left)) => {
                // The leftover is as large as possible for a curve that neither falls nor jumps.
                prop_assert!(near(left.work(theta), 0.0));
                for t in turns(&beta).into_iter().chain(bends(&alpha).into_iter().map(|t| t + theta)).chain([t]) {
                    let most = if t > theta { beta.work(t) - alpha.arrivals(t - theta) } else { 0.0 };
                    let blind = beta.leftover(&alpha).map_or(0.0, |left| left.work(t));
                    prop_assert!(left.work(t) <= most.max(0.0) + 1e-7 * (1.0 + most.abs()), "at {}: {} {}", t, left.work(t), most);
                    prop_assert!(left.work(t) >= blind - 1e-7 * (1.0 + blind), "at {}: {} {}", t, left.work(t), blind);
                }
            }
            (_, left) => prop_assert!(left.is_err() && alpha.rate() >= beta.rate()),
        }
    }

    #[test]
    fn delayed_arrivals_are_those_of_a_longer_interval(alpha in arrivals(), other in arrivals(), late in 0.0..5.0f64, t in 0.0..20.0f64) {
        let later = alpha.delayed(late).unwrap();
        prop_assert!(near(later.arrivals(t), alpha.arrivals(t + late)));
        prop_assert!(near(alpha.min(&other).arrivals(t), alpha.arrivals(t).min(other.arrivals(t))));
    }

    #[test]
    fn one_service_after_another_is_their_convolution(a in services(), b in services(), t in 0.0..40.0f64) {
        let both = a.then(&b).unwrap();
        for t in turns(&both).into_iter().chain([t]) {
            let splits = turns(&a).into_iter().chain(turns(&b).into_iter().map(|at| t - at)).chain([0.0, t]);
            let least = splits.filter(|s| (0.0..=t).contains(s)).map(|s| a.work(s) + b.work(t - s)).fold(f64::INFINITY, f64::min);
            prop_assert!(near(both.work(t), least), "at {}: {} {}", t, both.work(t), least);
        }
        prop_assert_eq!(Some(both), b.then(&a));
    }

    #[test]
    fn a_shaper_delays_nothing_exactly_on_or_above_the_rb_curve(alpha in arrivals(), rate in 0.1..10.0f64, burst in 0.0..10.0f64) {
        match (alpha.shaper_delay(bucket(rate, burst)), alpha.burst_at(rate)) {
            (Ok(delay), Some(least)) => {
                prop_assert!(near(delay, 0.0) || burst < least);
                prop_assert!(delay > 0.0 || burst >= least * (1.0 - 1e-12));
                for (at, work) in alpha.vertices() {
                    prop_assert!(work <= (burst + rate * (at + delay)) * (1.0 + 1e-9));
                }
            }
            (delay, least) => prop_assert!(delay.is_err() && least.is_none() && alpha.rate() > rate),
        }
    }
}

/// Flows over one of two first queues, over one of two second queues, or over a first and a second queue. Their rates
/// never exceed the capacities.
fn bipartite() -> impl Strategy<Value = Vec<Flow>> {
    let flow = (0.0..1.0f64, 0.0..5.0f64, 0u32..3, 0usize..2, 2usize..4, 0..6);
    prop::collection::vec(flow, 1..8).prop_map(|rows| {
        rows.into_iter()
            .map(|(rate, burst, priority, first, second, kind)| Flow {
                arrivals: bucket(rate, burst).into(),
                priority,
                path: match kind {
                    0 => vec![first],
                    1 => vec![second],
                    _ => vec![first, second],
                },
                packet: burst / 4.0,
            })
            .collect()
    })
}

fn network(flows: &[Flow], packets: Packets) -> Network {
    Network::new(vec![10.0, 9.0, 8.0, 11.0], flows.to_vec(), packets).unwrap()
}

fn bounds(flows: &[Flow], packets: Packets) -> [Vec<f64>; 2] {
    let network = network(flows, packets);
    [network.aggregate(), network.hop_by_hop()].map(|bounds| bounds.into_iter().map(Result::unwrap).collect())
}

proptest! {
    #[test]
    fn no_bound_falls_when_a_flow_sends_more(flows in bipartite(), which in 0usize..8, rate in 0.0..0.1f64, burst in 0.0..2.0f64) {
        let mut more = flows.clone();
        let flow = &mut more[which % flows.len()];
        let old = flow.arrivals.buckets()[0];
        flow.arrivals = bucket(old.rate() + rate, old.burst() + burst).into();
        for packets in [Packets::Fluid, Packets::Whole] {
            for (before, after) in bounds(&flows, packets).into_iter().zip(bounds(&more, packets)) {
                for (before, after) in before.into_iter().zip(after) {
                    prop_assert!(after >= before * (1.0 - 1e-9));
                }
            }
        }
    }

    #[test]
    fn no_bound_falls_when_a_flow_is_added_or_packets_count(flows in bipartite()) {
        let (fewer, _) = flows.split_at(flows.len() - 1);
        let all = bounds(&flows, Packets::Fluid);
        for (fewer, all) in bounds(fewer, Packets::Fluid).iter().zip(&all) {
            prop_assert!(fewer.iter().zip(all).all(|(fewer, all)| *all >= fewer * (1.0 - 1e-9)));
        }
        for (whole, fluid) in bounds(&flows, Packets::Whole).iter().zip(&all) {
            prop_assert!(whole.iter().zip(fluid).all(|(whole, fluid)| *whole >= fluid * (1.0 - 1e-9)));
        }
    }

    #[test]
    fn a_lower_priority_never_has_a_smaller_aggregate_bound(flows in bipartite(), which in 0usize..8) {
        let which = which % flows.len();
        let mut lowered = flows.clone();
        lowered[which].priority += 1;
        let (before, after) = (&bounds(&flows, Packets::Fluid)[0], &bounds(&lowered, Packets::Fluid)[0]);
        prop_assert!(after[which] >= before[which] * (1.0 - 1e-9));
    }

    #[test]
    fn in_order_bounds_are_at_most_hop_by_hop_and_links_never_loosen_them(flows in bipartite()) {
        // With one priority, the service at each queue is the queue's own, not a leftover.
        let flows: Vec<Flow> = flows.into_iter().map(|flow| Flow { priority: 0, ..flow }).collect();
        for packets in [Packets::Fluid, Packets::Whole] {
            let in_order = InOrder::new(network(&flows, packets));
            let hops = network(&flows, packets).hop_by_hop();
            for (flow, hops) in flows.iter().zip(hops) {
                let mut tandem = in_order.tandem(&flow.path, 0).unwrap();
                let total = tandem.total_flow().unwrap();
                prop_assert!(total.iter().sum::<f64>() <= hops.unwrap() * (1.0 + 1e-9));
                tandem.links.clear();
                tandem.crossings.iter_mut().for_each(|crossing| crossing.link = None);
                tandem.servers.iter_mut().for_each(|server| server.link = None);
                let unlimited = tandem.total_flow().unwrap();
                prop_assert!(total.iter().zip(unlimited).all(|(with, without)| *with <= without * (1.0 + 1e-9)));
            }
        }
    }

    #[test]
    fn at_one_queue_the_analysis_is_the_closed_form(flows in bipartite()) {
        let one: Vec<Flow> = flows.into_iter().map(|flow| Flow { path: vec![0], ..flow }).collect();
        let workloads: Vec<(u32, TokenBucket)> =
            one.iter().map(|flow| (flow.priority, flow.arrivals.buckets()[0])).collect();
        let in_order = InOrder::new(network(&one, Packets::Fluid));
        for (flow, bound) in one.iter().zip(&bounds(&one, Packets::Fluid)[0]) {
            prop_assert!(near(*bound, stage_delay(10.0, &workloads, flow.priority).unwrap()));
            let tandem = in_order.tandem(&[0], flow.priority).unwrap();
            prop_assert!(near(*bound, tandem.total_flow().unwrap()[0]));
            prop_assert!(near(*bound, tandem.separated_flow()[0].unwrap()));
        }
    }
}

proptest! {
    #[test]
    fn no_bound_falls_when_a_latency_rises_and_a_latency_of_0_changes_nothing(
        flows in bipartite(),
        latencies in prop::collection::vec(prop_oneof![Just(0.0), 0.0..2.0f64], 4),
        more in (0usize..4, 0.0..2.0f64),
    ) {
        let mut longer = latencies.clone();
        longer[more.0] += more.1;
        for packets in [Packets::Fluid, Packets::Whole] {
            let of = |latencies: &[f64]| network(&flows, packets).with_latencies(latencies.to_vec()).unwrap();
            prop_assert_eq!(of(&[0.0; 4]), network(&flows, packets));
            let (before, after) = (of(&latencies), of(&longer));
            for (before, after) in [(before.aggregate(), after.aggregate()), (before.hop_by_hop(), after.hop_by_hop())] {
                for (before, after) in before.into_iter().zip(after) {
                    prop_assert!(after.unwrap() >= before.unwrap() * (1.0 - 1e-9));
                }
            }
            let (before, after) = (InOrder::new(before), InOrder::new(after));
            for flow in &flows {
                let [before, after] = [&before, &after].map(|all| all.tandem(&flow.path, flow.priority).unwrap());
                let [before, after] = [before, after].map(|tandem| {
                    (tandem.total_flow().unwrap().iter().sum::<f64>(), tandem.separated_flow()[0].unwrap())
                });
                prop_assert!(after.0 >= before.0 * (1.0 - 1e-9), "{:?} {:?}", before, after);
                prop_assert!(after.1 >= before.1 * (1.0 - 1e-9), "{:?} {:?}", before, after);
            }
        }
    }
}

/// Le Boudec and Thiran, *Network Calculus*, sections 1.4 and 6.2.
#[test]
fn rate_latency_queues_have_the_delays_and_outputs_of_the_book() {
    let flow = |rate, burst, priority, path: &[usize]| Flow {
        arrivals: bucket(rate, burst).into(),
        priority,
        path: path.to_vec(),
        packet: 0.0,
    };
    let of = |flows: &[Flow], latencies: &[f64]| {
        let capacities = [10.0, 8.0][..latencies.len()].to_vec();
        let network = Network::new(capacities, flows.to_vec(), Packets::Fluid).unwrap();
        network.with_latencies(latencies.to_vec()).unwrap()
    };
    // One queue: the delay is T + b / R, and the output has a burst of b + r T.
    let (rate, latency, arrivals) = (10.0, 0.25, bucket(2.0, 5.0));
    let service = ServiceCurve::from(piece(rate, latency));
    assert_eq!(service.delay(&arrivals.into()), Ok(0.75));
    assert_eq!(service.output(&arrivals.into()).unwrap().buckets(), [bucket(2.0, 5.5)]);
    let alone = of(&[flow(2.0, 5.0, 0, &[0])], &[latency]);
    assert_eq!(alone.hop_by_hop(), [Ok(0.75)]);
    assert_eq!(alone.aggregate(), [Ok(0.75)]);
    // Two queues: the burst counts once, at the lower rate; hop by hop it counts twice, and has grown.
    let path = of(&[flow(2.0, 5.0, 0, &[0, 1])], &[0.25, 0.5]);
    let once = 0.25 + 0.5 + 5.0 / 8.0;
    assert!(near(path.aggregate()[0].unwrap(), once));
    assert!(near(path.hop_by_hop()[0].unwrap(), 0.75 + 0.5 + 5.5 / 8.0));
    let tandem = InOrder::new(path).tandem(&[0, 1], 0).unwrap();
    assert!(near(tandem.separated_flow()[0].unwrap(), once));
    // In order of arrival, flows of one priority have one delay; a lower priority has (B + R T) / (R - r).
    let shared = of(&[flow(2.0, 5.0, 0, &[0]), flow(1.0, 3.0, 0, &[0]), flow(1.0, 2.0, 1, &[0])], &[0.25]);
    let expected = [0.25 + 0.8, 0.25 + 0.8, (10.0 + 2.5) / 7.0];
    for (bound, expected) in shared.aggregate().into_iter().zip(expected) {
        assert!(near(bound.unwrap(), expected), "{bound:?} {expected}");
    }
    // Work may leave up to the latency after its service: the link behind a queue brings C (t + T).
    let together = of(&[flow(2.0, 5.0, 0, &[0, 1]), flow(3.0, 5.0, 0, &[0, 1])], &[0.25, 0.5]);
    let tandem = InOrder::new(together).tandem(&[0, 1], 0).unwrap();
    assert_eq!(tandem.servers[0].link, Some(bucket(10.0, 2.5)));
}

#[test]
fn a_tandem_with_cross_traffic_matches_the_hand_calculation() {
    let flow = |rate, burst, priority, path: &[usize]| Flow {
        arrivals: bucket(rate, burst).into(),
        priority,
        path: path.to_vec(),
        packet: 0.0,
    };
    let flows = vec![
        flow(1.0, 5.0, 0, &[0, 2]),
        flow(2.0, 3.0, 0, &[1, 2]),
        flow(0.5, 1.0, 1, &[0, 2]),
        flow(1.0, 2.0, 0, &[1, 3]),
    ];
    let network = Network::new(vec![10.0; 4], flows, Packets::Fluid).unwrap();
    // At queue 1, flow 3 leaves a service of 9 per second after 2/9 s for flow 1. The output of flow 1 then has a burst
    // of 3 + 2 x 2/9 = 31/9. Beside flow 1, queue 2 serves 8 per second after 31/72 s, and flow 0 takes another 5/8 s.
    let by_hand = [31.0 / 72.0 + 5.0 / 8.0, 10.0 / 9.0, 85.0 / 63.0, 5.0 / 8.0];
    for (bound, expected) in network.aggregate().into_iter().zip(by_hand) {
        assert!(near(bound.unwrap(), expected));
    }
}

#[test]
fn an_overload_names_the_queue_and_spares_those_before_it() {
    let flow = |rate, priority, path: &[usize]| Flow {
        arrivals: bucket(rate, 1.0).into(),
        priority,
        path: path.to_vec(),
        packet: 0.0,
    };
    let flows = vec![flow(4.0, 0, &[0, 1]), flow(5.0, 1, &[1]), flow(2.0, 2, &[0, 1]), flow(1.0, 3, &[0])];
    let network = Network::new(vec![20.0, 10.0], flows, Packets::Fluid).unwrap();
    let unbounded = Unbounded { queue: 1, overload: Overload { load: 11.0, service: 10.0 } };
    let in_order = InOrder::new(network.clone());
    assert!([0, 1].iter().all(|&priority| in_order.tandem(&[0, 1], priority).unwrap().total_flow().is_ok()));
    assert_eq!(in_order.tandem(&[0, 1], 2).unwrap().total_flow().unwrap_err().0, 1);
    assert_eq!(in_order.overloaded(1, 2), unbounded);
    // Flows behind the queue have no bound either. The same holds for flows that share queues with those flows.
    assert_eq!(in_order.tandem(&[1], 3), Err(unbounded));
    for bounds in [network.aggregate(), network.hop_by_hop()] {
        assert!(bounds[0].unwrap() > 0.0 && bounds[1].unwrap() > 0.0 && bounds[3].unwrap() > 0.0);
        assert_eq!(bounds[2], Err(unbounded));
    }
    assert_eq!(unbounded.to_string(), "queue 1: overload: 11 work/s arrive, 10 work/s are served");
}

#[test]
fn a_full_queue_has_a_bound_and_one_without_leftover_service_has_none() {
    let full = [(0, bucket(4.0, 1.0)), (1, bucket(6.0, 2.0))];
    assert_eq!(stage_delay(10.0, &full, 1), Ok(0.5));
    assert_eq!(stage_delay(10.0, &full[1..], 0), Ok(0.0));
    let overload = |load, service| Err(StageError::Overload(Overload { load, service }));
    assert_eq!(stage_delay(9.9, &full, 1), overload(10.0, 9.9));
    assert_eq!(stage_delay(4.0, &[full[0], (1, bucket(0.0, 1.0))], 1), overload(4.0, 4.0));
    assert_eq!(stage_delay(4.0, &full, 0), Ok(0.25));
    for capacity in [0.0, -1.0, f64::INFINITY] {
        assert_eq!(stage_delay(capacity, &full, 0), Err(StageError::Capacity(capacity)));
    }
    assert!(stage_delay(f64::NAN, &full, 0).is_err());
}

#[test]
fn an_invalid_network_is_rejected_with_a_reason() {
    let flow = |path: &[usize], packet| Flow {
        arrivals: bucket(1.0, 2.0).into(),
        priority: 0,
        path: path.to_vec(),
        packet,
    };
    let check = |capacities: &[f64], flows: &[Flow], error: &str| {
        let actual = Network::new(capacities.to_vec(), flows.to_vec(), Packets::Whole).unwrap_err();
        assert_eq!(actual.to_string(), error);
    };
    for (capacity, shown) in [(0.0, "0"), (-1.0, "-1"), (f64::NAN, "NaN"), (f64::INFINITY, "inf")] {
        check(&[1.0, capacity], &[], &format!("queue 1 of capacity {shown}: must be finite and above 0"));
    }
    check(&[1.0], &[flow(&[], 0.0)], "flow 0 has no path: it must cross at least one queue");
    check(
        &[1.0],
        &[flow(&[0], 0.0), flow(&[1], 0.0)],
        "flow 1 crosses queue 1: there are 1 queues, numbered from 0",
    );
    let cycle = "the paths form a cycle through queue 0: they must all follow one order of queues";
    check(&[1.0, 1.0], &[flow(&[0, 1], 0.0), flow(&[1, 0], 0.0)], cycle);
    check(&[1.0], &[flow(&[0, 0], 0.0)], cycle);
    for (packet, shown) in [(3.0, "3"), (-1.0, "-1"), (f64::NAN, "NaN")] {
        check(
            &[1.0],
            &[flow(&[0], packet)],
            &format!("flow 0 has packets of {shown}: must be from 0 to its burst, 2"),
        );
    }
    for (latencies, error) in [
        (vec![0.0, -1.0], "queue 1 of latency -1 s: must be finite and not negative"),
        (vec![f64::INFINITY, 0.0], "queue 0 of latency inf s: must be finite and not negative"),
        (vec![0.0], "1 latencies for 2 queues: must be one for each"),
    ] {
        let network = Network::new(vec![1.0; 2], vec![flow(&[0, 1], 0.0)], Packets::Whole).unwrap();
        assert_eq!(network.with_latencies(latencies).unwrap_err().to_string(), error);
    }
    let none: Result<Network, NetworkError> = Network::new(vec![], vec![], Packets::Fluid);
    assert_eq!(none.unwrap().aggregate(), []);
}

#[test]
fn numbers_at_the_edge_give_a_number_or_an_overload() {
    let (tiny, huge) = (f64::MIN_POSITIVE, f64::MAX);
    for (rate, burst, capacity) in
        [(huge, huge, huge), (tiny, huge, tiny), (0.0, huge, tiny), (huge / 4.0, tiny, huge)]
    {
        let flow = |priority| Flow {
            arrivals: bucket(rate, burst).into(),
            priority,
            path: vec![0, 1],
            packet: burst,
        };
        for packets in [Packets::Fluid, Packets::Whole] {
            let flows = vec![flow(0), flow(0), flow(1)];
            let network = Network::new(vec![capacity; 2], flows, packets).unwrap();
            for bound in network.aggregate().into_iter().chain(network.hop_by_hop()) {
                assert!(bound.is_err() || bound.is_ok_and(f64::is_finite));
            }
            let in_order = InOrder::new(network);
            for tandem in (0..2).filter_map(|priority| in_order.tandem(&[0, 1], priority).ok()) {
                let delays = tandem.total_flow();
                assert!(delays.is_err() || delays.is_ok_and(|delays| delays.into_iter().all(f64::is_finite)));
                assert!(tandem.separated_flow().into_iter().flatten().all(f64::is_finite));
            }
        }
    }
}
