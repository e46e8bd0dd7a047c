//! Clusters and ledgers that the tests of several crates share.

use leeward_fabric::Cluster;
use leeward_ledger::{Ledger, LedgerSettings};

/// Two racks of two hosts, without oversubscription.
pub const RACKS_2X2: &str = "{racks: 2, hosts_per_rack: 2, nic: 1Gbps, oversubscription: 1}";

/// Three racks of two hosts, without oversubscription.
pub const RACKS_3X2: &str = "{racks: 3, hosts_per_rack: 2, nic: 1Gbps, oversubscription: 1}";

/// Four racks of three hosts, without oversubscription.
pub const RACKS_4X3: &str = "{racks: 4, hosts_per_rack: 3, nic: 1Gbps, oversubscription: 1}";

/// Six racks of four hosts with slow disks of 1 GiB, twofold oversubscribed.
pub const RACKS_WITH_SMALL_DISKS: &str = "racks: 6\nhosts_per_rack: 4\nnic: 1Gbps\noversubscription: 2\n\
    devices: [{read: 50MB/s, write: 50MB/s, capacity: 1GiB}]\n";

/// Six racks of four hosts with disks that are faster than the links, twofold oversubscribed.
pub const RACKS_WITH_FAST_DISKS: &str = "racks: 6\nhosts_per_rack: 4\nnic: 1Gbps\noversubscription: 2\n\
    devices: [{read: 5GB/s, write: 5GB/s}]\n";

/// Text of a cluster file: racks of four hosts, twofold oversubscribed, with these devices (a YAML list).
pub fn racks_of_four(racks: u32, devices: &str) -> String {
    format!("racks: {racks}\nhosts_per_rack: 4\nnic: 1Gbps\noversubscription: 2\ndevices: {devices}\n")
}

/// Reads a cluster file.
///
/// # Panics
/// Panics if the text is not a valid cluster file.
pub fn cluster(text: &str) -> Cluster {
    Cluster::from_text("test", text).unwrap_or_else(|error| panic!("{error}"))
}

/// Creates an empty ledger of a cluster with default settings.
///
/// # Panics
/// Panics if the ledger cannot be created.
pub fn ledger(cluster: &Cluster) -> Ledger {
    let ledger = Ledger::new(cluster.fabric.clone(), &cluster.capacities, LedgerSettings::default());
    ledger.unwrap_or_else(|error| panic!("{error}"))
}
