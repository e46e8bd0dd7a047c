//! A measured mesh as a cluster file.

use leeward_fabric::Shape as Fabric;
use leeward_probe::ProbeError;
use leeward_probe::mesh::{Mesh, Shape};
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
        let text = mesh.cluster("net", Shape::Pipe, None).unwrap();
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
        let racks = [vec![0], (1..mesh.hosts.len()).collect()];
        let text = mesh.cluster("net", Shape::Hose, Some(&racks)).unwrap();
        let cluster = cluster(&text);
        prop_assert_eq!(cluster.fabric.shape(), Fabric::Hose);
        prop_assert_eq!(cluster.fabric.rack_count(), 2);
    }
}

#[test]
fn missing_rates_are_named_in_the_error() {
    let rates_bps = vec![vec![0.0, 1e9], vec![f64::NAN, 0.0]];
    let mesh = Mesh { hosts: vec!["a".to_owned(), "b".to_owned()], rates_bps };
    let error = mesh.cluster("net", Shape::Pipe, None).unwrap_err();
    assert_eq!(error, ProbeError::Nothing("no rate from b to a".to_owned()));
}
