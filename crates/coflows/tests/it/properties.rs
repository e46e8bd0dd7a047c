//! Properties of the disciplines on random coflows.

use leeward_coflows::{Arrival, Carrier, Coflow, Sebf, Tracker};
use leeward_fabric::{Capacities, Hop, Load, ResourceId};
use leeward_fluid::{Finished, FlowId, Network};
use proptest::prelude::*;

use crate::plain::{self, Change, Flow};

/// Senders have links 0 to 2, and receivers links 3 to 5. Link 6 is between them, on some paths.
const LINKS: usize = 7;
const CORE: usize = 6;

pub fn hops(links: &[usize]) -> Vec<Hop> {
    links.iter().map(|&link| Hop { resource: ResourceId(link as u32), work: 1.0 }).collect()
}

/// A network of either discipline that tells the rate of a flow.
pub trait Rates: Carrier {
    fn rate_of(&mut self, flow: FlowId) -> Option<f64>;
}

impl Rates for Sebf {
    fn rate_of(&mut self, flow: FlowId) -> Option<f64> {
        self.rate(flow)
    }
}

impl Rates for Network {
    fn rate_of(&mut self, flow: FlowId) -> Option<f64> {
        self.rate(flow)
    }
}

/// Runs flows to their ends, and returns the end of each. Checks at each event that no link has more load than
/// capacity, and at the end that each link has carried all bytes.
pub fn run(network: impl Rates, capacities: &[f64], flows: &[Flow]) -> Vec<f64> {
    run_with(network, capacities, flows, None)
}

/// The same with a change of a capacity.
fn run_with(
    mut network: impl Rates,
    capacities: &[f64],
    flows: &[Flow],
    mut change: Option<Change>,
) -> Vec<f64> {
    let mut capacities = capacities.to_vec();
    let mut order: Vec<usize> = (0..flows.len()).collect();
    order.sort_by(|&a, &b| flows[a].start.total_cmp(&flows[b].start));
    let mut order = order.into_iter().peekable();
    let mut ids: Vec<(FlowId, usize)> = Vec::new();
    let mut ends = vec![f64::NAN; flows.len()];
    let mut finished = Vec::new();
    let mut last = 0.0;
    loop {
        let start = order.peek().map_or(f64::INFINITY, |&f| flows[f].start);
        let changes = change.map_or(f64::INFINITY, |change| change.at);
        let now = network.next_completion().unwrap_or(f64::INFINITY).min(start).min(changes);
        if now == f64::INFINITY {
            break;
        }
        last = now;
        network.advance(now, &mut finished).unwrap();
        for Finished { flow, at } in finished.drain(..) {
            let place = ids.iter().position(|(id, _)| *id == flow).expect("an active flow ends");
            ends[ids.remove(place).1] = at;
        }
        if let Some(change) = change.take_if(|change| change.at <= now) {
            let link = ResourceId(change.link as u32);
            network.set_capacity(now, link, change.capacity).unwrap();
            capacities[change.link] = change.capacity;
        }
        while let Some(f) = order.next_if(|&f| flows[f].start <= now) {
            let Flow { links, bytes, coflow, .. } = &flows[f];
            ids.push((network.start_flow(now, &hops(links), *bytes, None, Some(*coflow)).unwrap(), f));
        }
        for (link, &capacity) in capacities.iter().enumerate() {
            let on_link = ids.iter().filter(|(_, f)| flows[*f].links.contains(&link));
            let load: f64 = on_link.map(|(id, _)| network.rate_of(*id).unwrap_or(0.0)).sum();
            assert!(load <= capacity * (1.0 + 1e-9), "link {link} has {load} of {capacity}");
        }
    }
    for link in 0..capacities.len() {
        let bytes: f64 = flows.iter().filter(|flow| flow.links.contains(&link)).map(|flow| flow.bytes).sum();
        let carried = network.carried(ResourceId(link as u32), last);
        assert!((carried - bytes).abs() <= 1e-9 * bytes, "link {link} carried {carried} of {bytes}");
    }
    ends
}

/// Random flows of up to five coflows, which arrive at up to three times. Each coflow arrives as a whole.
fn flows() -> impl Strategy<Value = Vec<Flow>> {
    let part = (0u32..5, 0usize..3, 3..CORE, any::<bool>(), 1.0..20.0f64);
    let starts = prop::collection::vec(prop::sample::select(vec![0.0, 1.5, 4.0]), 5);
    (prop::collection::vec(part, 1..16), starts).prop_map(|(parts, starts)| {
        let flow = |(coflow, from, to, crosses, bytes): (u32, usize, usize, bool, f64)| Flow {
            coflow,
            start: starts[coflow as usize],
            links: if crosses { vec![from, CORE, to] } else { vec![from, to] },
            bytes,
        };
        parts.into_iter().map(flow).collect()
    })
}

fn capacities() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(1.0..5.0f64, LINKS)
}

/// The coflows of flows with these ends, with their bounds.
fn coflows(capacities: &[f64], flows: &[Flow], ends: &[f64]) -> Vec<Coflow> {
    let truth = Capacities::new(capacities.iter().map(|&capacity| Load((capacity * 1e12) as i64)).collect());
    let arrival = |coflow: u32| {
        let own: Vec<&Flow> = flows.iter().filter(|flow| flow.coflow == coflow).collect();
        let arrive = own.first().map_or(0.0, |flow| flow.start);
        Arrival { id: coflow.to_string(), arrive, flows: own.len() as u32, ..Arrival::default() }
    };
    let mut tracker = Tracker::new(&(0..5).map(arrival).collect::<Vec<_>>());
    for (number, flow) in (0..).zip(flows) {
        let scaled: Vec<Hop> = hops(&flow.links).iter().map(|hop| Hop { work: 1e12, ..*hop }).collect();
        tracker.start(flow.coflow, FlowId::new(number, 0), &scaled, flow.bytes, &truth);
    }
    let mut order: Vec<u32> = (0..flows.len() as u32).collect();
    order.sort_by(|&a, &b| ends[a as usize].total_cmp(&ends[b as usize]));
    for number in order {
        tracker.finish(Finished { flow: FlowId::new(number, 0), at: ends[number as usize] });
    }
    assert!(!tracker.is_open());
    tracker.take()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-6 * a.abs().max(1.0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn sebf_ends_flows_when_the_plain_simulator_does(capacities in capacities(), flows in flows()) {
        let ends = run(Sebf::new(&capacities).unwrap(), &capacities, &flows);
        let expected = plain::sebf(&capacities, &flows, None);
        prop_assert!(ends.iter().zip(&expected).all(|(a, b)| close(*a, *b)), "{ends:?} {expected:?}");
    }

    #[test]
    fn fair_sharing_ends_flows_when_the_plain_simulator_does(capacities in capacities(), flows in flows()) {
        let network = Network::new(&capacities).unwrap().observed();
        let ends = run(network, &capacities, &flows);
        let expected = plain::fair(&capacities, &flows, None);
        prop_assert!(ends.iter().zip(&expected).all(|(a, b)| close(*a, *b)), "{ends:?} {expected:?}");
    }

    #[test]
    fn no_coflow_ends_before_its_bound(capacities in capacities(), flows in flows()) {
        let sebf = run(Sebf::new(&capacities).unwrap(), &capacities, &flows);
        let fair = run(Network::new(&capacities).unwrap().observed(), &capacities, &flows);
        for ends in [sebf, fair] {
            for coflow in coflows(&capacities, &flows, &ends).iter().filter(|coflow| coflow.arrival.flows > 0) {
                let time = coflow.completion_time().expect("every flow ended");
                prop_assert!(time >= coflow.bound * (1.0 - 1e-8), "{time} of {}", coflow.bound);
                prop_assert!(coflow.slowdown().expect("it has bytes") >= 1.0 - 1e-8);
            }
        }
    }

    #[test]
    fn a_coflow_alone_takes_its_bound(capacities in capacities(), mut flows in flows()) {
        for flow in &mut flows {
            (flow.coflow, flow.start) = (0, 0.0);
        }
        let ends = run(Sebf::new(&capacities).unwrap(), &capacities, &flows);
        let coflow = &coflows(&capacities, &flows, &ends)[0];
        let time = coflow.completion_time().expect("every flow ended");
        prop_assert!((time / coflow.bound - 1.0).abs() < 1e-8, "{time} of {}", coflow.bound);
    }

    #[test]
    fn both_networks_agree_with_the_plain_simulators_when_a_capacity_changes(
        capacities in capacities(),
        flows in flows(),
        at in 0.5..6.0f64,
        link in 0..LINKS,
        capacity in 0.5..8.0f64,
    ) {
        let change = Some(Change { at, link, capacity });
        let ends = run_with(Sebf::new(&capacities).unwrap(), &capacities, &flows, change);
        for (end, expected) in ends.iter().zip(plain::sebf(&capacities, &flows, change)) {
            prop_assert!(close(*end, expected), "sebf: {end} and {expected}");
        }
        let ends = run_with(Network::new(&capacities).unwrap().observed(), &capacities, &flows, change);
        for (end, expected) in ends.iter().zip(plain::fair(&capacities, &flows, change)) {
            prop_assert!(close(*end, expected), "fair: {end} and {expected}");
        }
    }

    #[test]
    fn the_order_of_simultaneous_starts_has_no_effect(
        capacities in capacities(),
        (flows, shuffled) in flows().prop_flat_map(|flows| (Just(flows.clone()), Just(flows).prop_shuffle())),
    ) {
        let ends = run(Sebf::new(&capacities).unwrap(), &capacities, &flows);
        let others = run(Sebf::new(&capacities).unwrap(), &capacities, &shuffled);
        let end_of = |ends: &[f64], flows: &[Flow], coflow: u32| {
            let own = ends.iter().zip(flows).filter(|(_, flow)| flow.coflow == coflow);
            own.map(|(end, _)| *end).fold(0.0, f64::max)
        };
        for coflow in 0..5 {
            let (a, b) = (end_of(&ends, &flows, coflow), end_of(&others, &shuffled, coflow));
            prop_assert!(close(a, b), "coflow {}: {} and {}", coflow, a, b);
        }
    }

    /// On one link both disciplines conserve work, so the last flow ends at the same time. Coflows of one flow are then
    /// served by least bytes left, which has the least mean time of all disciplines.
    #[test]
    fn on_one_link_sebf_ends_with_fair_sharing_and_has_no_larger_mean(
        capacity in 1.0..5.0f64,
        starts in prop::collection::vec((0.0..10.0f64, 1.0..20.0f64), 1..12),
    ) {
        let flow = |(coflow, (start, bytes)): (u32, (f64, f64))| Flow { coflow, start, links: vec![0], bytes };
        let flows: Vec<Flow> = (0..).zip(starts).map(flow).collect();
        let sebf = run(Sebf::new(&[capacity]).unwrap(), &[capacity], &flows);
        let fair = run(Network::new(&[capacity]).unwrap().observed(), &[capacity], &flows);
        let last = |ends: &[f64]| ends.iter().copied().fold(0.0, f64::max);
        prop_assert!(close(last(&sebf), last(&fair)));
        prop_assert!(sebf.iter().sum::<f64>() <= fair.iter().sum::<f64>() * (1.0 + 1e-9));
    }

    /// Each coflow has a link of its own, so there is nothing to share between coflows.
    #[test]
    fn coflows_of_one_flow_apart_end_as_under_fair_sharing(
        capacities in capacities(),
        sizes in prop::collection::vec((0.0..10.0f64, 1.0..20.0f64), 1..=LINKS),
    ) {
        let flow = |(link, (start, bytes)): (usize, (f64, f64))| {
            Flow { coflow: link as u32, start, links: vec![link], bytes }
        };
        let flows: Vec<Flow> = sizes.into_iter().enumerate().map(flow).collect();
        let sebf = run(Sebf::new(&capacities).unwrap(), &capacities, &flows);
        let fair = run(Network::new(&capacities).unwrap().observed(), &capacities, &flows);
        prop_assert!(sebf.iter().zip(&fair).all(|(a, b)| close(*a, *b)), "{sebf:?} {fair:?}");
    }
}
