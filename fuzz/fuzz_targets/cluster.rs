//! Cluster files.
#![no_main]

use leeward_fabric::Cluster;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match Cluster::from_text("cluster", text) {
        Ok(cluster) => {
            assert!(cluster.fabric.host_count() > 0);
            assert_eq!(cluster.capacities.as_slice().len(), cluster.fabric.resource_count());
        }
        Err(error) => leeward_fuzz::one_line(&error),
    }
});
