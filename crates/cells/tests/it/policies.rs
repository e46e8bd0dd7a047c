//! Each policy for replicas decides inside cells.

use leeward_placement::replicas;

use crate::support::runs;

#[test]
fn every_policy_places_all_blocks_with_one_ledger_and_in_cells() {
    for policy in replicas::REGISTRY.names() {
        // `ccp` ranks racks by storage.
        let cluster = "cluster: {racks: 8, hosts_per_rack: 4, pods: 2, nic: 10Gbps, oversubscription: 2, \
                       pod_oversubscription: 2, devices: [{read: 250MB/s, write: 250MB/s, capacity: 100TB}]}";
        let runs = runs(&format!("policy: {policy}\n{cluster}\nhorizon: 5s"));
        for run in &runs {
            let counts = run.counts;
            assert!(counts.placed > 50, "{policy}, {}: {counts:?}", run.arm.name());
            assert_eq!((counts.refused, counts.unplaced), (0, 0), "{policy}, {}", run.arm.name());
        }
    }
}
