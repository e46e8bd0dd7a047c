//! Examples that can be checked by hand.

use leeward_coflows::{Arrival, Class, Coflow, Sebf};
use leeward_fabric::{Hop, ResourceId};
use leeward_fluid::{FluidError, Network};

use crate::plain::Flow;
use crate::properties::{hops, run};

fn flow(coflow: u32, links: &[usize], bytes: f64) -> Flow {
    Flow { coflow, start: 0.0, links: links.to_vec(), bytes }
}

/// The ends of coflows 0 and 1 on links of one byte per second.
fn ends(network: impl crate::properties::Rates, links: usize, flows: &[Flow]) -> [f64; 2] {
    let ends = run(network, &vec![1.0; links], flows);
    [0, 1].map(|coflow| {
        let own = ends.iter().zip(flows).filter(|(_, flow)| flow.coflow == coflow);
        own.map(|(end, _)| *end).fold(0.0, f64::max)
    })
}

fn both(links: usize, flows: &[Flow]) -> ([f64; 2], [f64; 2]) {
    let capacities = vec![1.0; links];
    let fair = ends(Network::new(&capacities).unwrap().observed(), links, flows);
    let sebf = ends(Sebf::new(&capacities).unwrap(), links, flows);
    let round = |times: [f64; 2]| times.map(|time| (time * 1e6).round() / 1e6);
    (round(fair), round(sebf))
}

/// Two receivers. Coflow 0 has one flow of 2 to the first; coflow 1 has 3 to the first and 4 to the second.
///
/// Fair: the first receiver halves itself until coflow 0 ends at 4, with 1 of the 3 left, which ends at 5; the flow of 4
/// has its receiver alone and ends at 4. Mean 4.5. A scheduler of flows by least bytes would send 2 first as well.
/// SEBF: bottlenecks are 2 and 4. Coflow 0 has its receiver until 2, and the 3 follow until 5. Mean 3.5.
#[test]
fn two_coflows_at_two_receivers() {
    let flows = [flow(0, &[0, 3], 2.0), flow(1, &[1, 3], 3.0), flow(1, &[2, 4], 4.0)];
    assert_eq!(both(5, &flows), ([4.0, 5.0], [2.0, 5.0]));
}

/// Two senders. Coflow 0 has 3 at each. Coflow 1 has 2 at the first and 5 at the second. Receivers limit nothing.
///
/// Fair: at the first sender, coflow 1 ends at 4, and coflow 0 at 5; at the second, coflow 0 ends at 6, and coflow 1 at
/// 8. Times are 6 and 8.
/// Least bytes first, flow by flow: at the first sender coflow 1 goes first, and coflow 0 ends at 5; at the second
/// coflow 0 ends at 3, and coflow 1 at 8. Times are 5 and 8.
/// SEBF: bottlenecks are 3 and 5, so coflow 0 goes first at both senders. Times are 3 and 8.
#[test]
fn coflows_matter_where_flows_by_size_go_wrong() {
    let flows = [flow(0, &[0, 2], 3.0), flow(0, &[1, 3], 3.0), flow(1, &[0, 4], 2.0), flow(1, &[1, 5], 5.0)];
    assert_eq!(both(6, &flows), ([6.0, 8.0], [3.0, 8.0]));
}

/// A coflow whose bottleneck is elsewhere leaves bandwidth to the next at once: coflow 0 has 4 at the first sender and 2
/// at the second, so MADD would send the 2 at half the rate. Work conservation gives them the whole rate until 2, and
/// then the second sender to coflow 1.
#[test]
fn what_the_first_coflow_leaves_is_used() {
    let flows = [flow(0, &[0, 2], 4.0), flow(0, &[1, 3], 2.0), flow(1, &[1, 4], 6.0)];
    let (_, sebf) = both(5, &flows);
    assert_eq!(sebf, [4.0, 8.0]);
}

#[test]
fn a_smaller_coflow_that_arrives_later_goes_first() {
    let mut network = Sebf::new(&[1.0]).unwrap();
    let path = hops(&[0]);
    let large = network.start(0.0, &path, 10.0, Some(0)).unwrap();
    // At 2 it has 8 left, and 9 are more than that: no change. At 4 it has 6 left, and 5 are less.
    network.start(2.0, &path, 9.0, Some(1)).unwrap();
    assert_eq!(network.rate(large), Some(1.0));
    let small = network.start(4.0, &path, 5.0, None).unwrap();
    assert_eq!((network.rate(large), network.rate(small)), (Some(0.0), Some(1.0)));
    let mut finished = Vec::new();
    network.advance(100.0, &mut finished).unwrap();
    assert_eq!(finished.iter().map(|done| done.at).collect::<Vec<_>>(), [9.0, 15.0, 24.0]);
    assert_eq!(network.carried(ResourceId(0)), 24.0);
    assert_eq!(network.next_completion(), None);
}

#[test]
fn flows_stall_without_capacity_and_share_what_background_leaves() {
    let mut network = Sebf::new(&[1.0]).unwrap();
    let flow = network.start(0.0, &hops(&[0]), 4.0, Some(7)).unwrap();
    network.set_capacity(1.0, ResourceId(0), 0.0).unwrap();
    assert_eq!(network.next_completion(), None);
    network.set_capacity(2.0, ResourceId(0), 2.0).unwrap();
    network.set_background(2.0, ResourceId(0), 1.5).unwrap();
    assert_eq!(network.rate(flow), Some(0.5));
    assert_eq!(network.next_completion(), Some(8.0));
}

#[test]
fn empty_flows_end_at_once_and_invalid_calls_are_rejected() {
    let mut network = Sebf::new(&[1.0]).unwrap();
    let empty = network.start(3.0, &hops(&[0]), 0.0, Some(0)).unwrap();
    let mut finished = Vec::new();
    network.advance(3.0, &mut finished).unwrap();
    assert_eq!((finished[0].flow, finished[0].at), (empty, 3.0));
    assert_eq!(network.rate(empty), None);
    let late = network.start(1.0, &hops(&[0]), 1.0, None).unwrap_err();
    assert_eq!(late, FluidError::Time { given: 1.0, now: 3.0 });
    let unknown = network.start(4.0, &hops(&[1]), 1.0, None).unwrap_err();
    assert_eq!(unknown, FluidError::UnknownResource { resource: ResourceId(1), last: 0 });
    let work = [Hop { resource: ResourceId(0), work: -1.0 }];
    assert!(matches!(network.start(4.0, &work, 1.0, None), Err(FluidError::Work { .. })));
    assert!(matches!(network.start(4.0, &hops(&[0]), f64::NAN, None), Err(FluidError::Bytes { .. })));
    assert!(matches!(network.set_capacity(4.0, ResourceId(0), -1.0), Err(FluidError::Capacity { .. })));
    assert!(matches!(Sebf::new(&[f64::INFINITY]), Err(FluidError::Capacity { .. })));
}

#[test]
fn classes_are_by_the_longest_flow_and_the_number_of_flows() {
    let class = |longest, flows| {
        let arrival = Arrival { longest, flows, ..Arrival::default() };
        Coflow { arrival, bound: 0.0, finished: None }.class().map(Class::name)
    };
    let mib = 1 << 20;
    assert_eq!(class(5 * mib - 1, 50), Some("SN"));
    assert_eq!(class(5 * mib, 50), Some("LN"));
    assert_eq!(class(5 * mib - 1, 51), Some("SW"));
    assert_eq!(class(5 * mib, 51), Some("LW"));
    assert_eq!(class(0, 0), None);
}
