//! A measured mesh as a cluster file.

use std::collections::BTreeMap;

use leeward_fabric::{Endpoint, Hop, Nanos, Shape as Fabric};
use leeward_probe::ProbeError;
use leeward_probe::mesh::{Mesh, Parts, Shape};
use leeward_probe::rules::Level;
use leeward_probe::shared_links::{Group, SharedLink};
use leeward_testing::clusters::cluster;
use proptest::prelude::*;

fn meshes() -> impl Strategy<Value = Mesh> {
    (2..8_usize).prop_flat_map(|count| {
        let rates = prop::collection::vec(prop::collection::vec(1.0..1e12, count), count);
        rates.prop_map(move |rates_bps| Mesh {
            hosts: (0..count).map(|host| format!("10.0.0.{host}")).collect(),
            rates_bps,
        })
    })
}

proptest! {
    #[test]
    fn a_pipe_has_the_rate_of_each_pair(mesh in meshes()) {
        let text = mesh.cluster("net", Shape::Pipe, &Parts::default()).unwrap();
        let cluster = cluster(&text);
        prop_assert_eq!(cluster.fabric.shape(), Fabric::Pipe);
        for (i, from) in mesh.hosts.iter().enumerate() {
            for (j, to) in mesh.hosts.iter().enumerate().filter(|&(j, _)| j != i) {
                let link = cluster.fabric.resource(&format!("{from}>{to}")).unwrap();
                let rate = cluster.capacities.get(link);
                prop_assert_eq!(rate.0 as f64, mesh.rates_bps[i][j].round());
            }
        }
    }

    #[test]
    fn a_hose_keeps_its_shape_and_known_racks(mesh in meshes()) {
        let racks = vec![vec![0], (1..mesh.hosts.len()).collect()];
        let parts = Parts { racks: Some(racks), ..Parts::default() };
        let text = mesh.cluster("net", Shape::Hose, &parts).unwrap();
        let cluster = cluster(&text);
        prop_assert_eq!(cluster.fabric.shape(), Fabric::Hose);
        prop_assert_eq!(cluster.fabric.rack_count(), 2);
    }
}

#[test]
fn a_file_states_paths_sources_machines_and_shared_links() {
    let hosts: Vec<String> = ["a", "b", "c", "d"].map(str::to_owned).into();
    // a and b are on one machine; the path from a to d is slow.
    let rates_bps = vec![
        vec![0.0, 4e9, 950e6, 300e6],
        vec![4e9, 0.0, 900e6, 950e6],
        vec![960e6, 955e6, 0.0, 950e6],
        vec![940e6, 930e6, 920e6, 0.0],
    ];
    let link = |hosts: &[usize], level, rate_bps| SharedLink {
        group: Group { level, hosts: hosts.to_vec() },
        rate_bps,
    };
    let parts = Parts {
        racks: Some(vec![vec![0, 1], vec![2], vec![3]]),
        same_machine: vec![(0, 1), (1, 0)],
        shared_links: vec![link(&[0, 1], Level::Rack, 1200e6), link(&[0, 1, 2], Level::Subtree, 1500e6)],
        rtts_ns: BTreeMap::from([((0, 1), 30_000), ((1, 0), 40_400), ((0, 2), 12)]),
    };
    let mesh = Mesh { hosts, rates_bps };
    for shape in [Shape::Hose, Shape::Pipe] {
        let cluster = cluster(&mesh.cluster("net", shape, &parts).unwrap());
        let path = |from: &str, to: &str| {
            let ends = [from, to].map(|name| Endpoint::Host(cluster.fabric.host(name).unwrap()));
            let mut hops = Vec::new();
            cluster.fabric.path(&ends, &mut hops);
            let name = |hop: &Hop| cluster.fabric.resource_name(hop.resource);
            let own = |name: &String| !name.ends_with(":egress") && !name.ends_with(":ingress");
            hops.iter().map(name).filter(own).collect::<Vec<_>>()
        };
        assert_eq!(path("a", "b"), ["a>b"]);
        let host = |name: &str| cluster.fabric.host(name).unwrap();
        let rtt = |from, to| cluster.fabric.round_trip(host(from), host(to));
        assert_eq!(
            [rtt("a", "b"), rtt("c", "a"), rtt("a", "d")],
            [Some(Nanos(41_000)), Some(Nanos(1000)), None]
        );
        assert_eq!(path("a", "c"), ["a>c", "rack-of-a:shared"]);
        assert_eq!(path("a", "d"), ["a>d", "rack-of-a:shared", "subtree-of-a:shared"]);
        let mbps =
            |name: &str| cluster.fabric.resource(name).map(|link| cluster.capacities.get(link).0 / 1_000_000);
        let hose = |rate| (shape == Shape::Hose).then_some(rate);
        assert_eq!(
            ["a:egress", "b:egress"].map(mbps),
            [hose(950), hose(900)],
            "not 4 Gb/s, and not 300 Mb/s"
        );
        assert_eq!(["a>d", "rack-of-a:shared"].map(mbps), [Some(300), Some(1200)]);
    }
}

#[test]
fn missing_rates_are_named_in_the_error() {
    let rates_bps = vec![vec![0.0, 1e9], vec![f64::NAN, 0.0]];
    let mesh = Mesh { hosts: vec!["a".to_owned(), "b".to_owned()], rates_bps };
    let error = mesh.cluster("net", Shape::Pipe, &Parts::default()).unwrap_err();
    assert_eq!(error, ProbeError::Nothing("no rate from b to a".to_owned()));
}
