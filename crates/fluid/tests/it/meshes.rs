//! Flows on meshes that state rates of pairs, rates of hosts and shared links together.

use leeward_fabric::{Endpoint, HostId};
use leeward_fluid::Network;
use leeward_testing::clusters::cluster;
use proptest::prelude::*;

/// Cluster file of a mesh of six hosts. A rate of 0 leaves a pair out.
fn mesh(hose: bool, nics: &[(u32, u32)], pairs: &[u32], groups: &[(bool, u32, u32)]) -> String {
    let mut text = format!("shape: {}\nhosts:\n", if hose { "hose" } else { "pipe" });
    for (host, (up, down)) in nics.iter().enumerate() {
        let nic = if hose { format!(", nic: {{up: {up}Mbps, down: {down}Mbps}}") } else { String::new() };
        text += &format!("  - {{name: h{host}{nic}}}\n");
    }
    text += if hose { "" } else { "pair: 90Mbps\n" };
    text += "pairs:\n  - {from: h0, to: h1, rate: 500Mbps, same_machine: true}\n";
    text += "  - {from: h1, to: h0, rate: 500Mbps, same_machine: true}\n";
    for (at, rate) in pairs.iter().enumerate().filter(|(_, rate)| **rate > 0) {
        let (from, to) = (at / 6, at % 6);
        if from != to && from + to > 1 {
            text += &format!("  - {{from: h{from}, to: h{to}, rate: {rate}Mbps}}\n");
        }
    }
    text += "shared_links:\n  - {name: up, rate: 60Mbps, out_of: [h0, h1, h2]}\n";
    for (number, (out, bits, rate)) in groups.iter().enumerate() {
        let names: Vec<String> =
            (0..6).filter(|host| bits >> host & 1 == 1).map(|host| format!("h{host}")).collect();
        let key = if *out { "out_of" } else { "into" };
        text += &format!("  - {{name: s{number}, rate: {rate}Mbps, {key}: [{}]}}\n", names.join(", "));
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn rates_respect_every_stated_bound_and_each_flow_meets_one(
        hose: bool, nics in prop::collection::vec((20_u32..200, 20_u32..200), 6),
        pairs in prop::collection::vec(prop_oneof![Just(0), 10_u32..150], 36),
        groups in prop::collection::vec((any::<bool>(), 1_u32..63, 20_u32..200), 0..4),
        flows in prop::collection::vec((0_u32..6, 0_u32..6), 1..12),
    ) {
        let cluster = cluster(&mesh(hose, &nics, &pairs, &groups));
        let fabric = &cluster.fabric;
        let capacities: Vec<f64> = cluster.capacities.as_slice().iter().map(|capacity| capacity.0 as f64).collect();
        let mut network = Network::new(&capacities).unwrap();
        let mut started = Vec::new();
        for &(from, to) in flows.iter().filter(|(from, to)| from != to) {
            let mut hops = Vec::new();
            fabric.path(&[Endpoint::Host(HostId(from)), Endpoint::Host(HostId(to))], &mut hops);
            let flow = network.start(0.0, &hops, 1e6, 1.0, f64::INFINITY, None).unwrap();
            started.push((flow, hops));
        }
        let mut loads = vec![0.0; capacities.len()];
        for (flow, hops) in &started {
            let rate = network.rate(*flow).unwrap();
            hops.iter().for_each(|hop| loads[hop.resource.index()] += rate * hop.work);
        }
        for (load, capacity) in loads.iter().zip(&capacities) {
            prop_assert!(*load <= capacity * (1.0 + 1e-9), "{load} of {capacity}");
        }
        for (_, hops) in &started {
            let full = |hop: &&leeward_fabric::Hop| loads[hop.resource.index()] >= capacities[hop.resource.index()] * (1.0 - 1e-9);
            prop_assert!(hops.iter().find(full).is_some(), "a flow without a bottleneck");
        }
    }
}
