//! Clusters and ledgers that several tests and benches share.

use leeward_fabric::Cluster;
use leeward_ledger::{Ledger, LedgerSettings};

/// Two racks of two hosts, without oversubscription.
pub const RACKS_2X2: &str = "{racks: 2, hosts_per_rack: 2, nic: 1Gbps, oversubscription: 1}";

/// Three racks of two hosts, without oversubscription.
pub const RACKS_3X2: &str = "{racks: 3, hosts_per_rack: 2, nic: 1Gbps, oversubscription: 1}";

/// Four racks of three hosts, without oversubscription.
pub const RACKS_4X3: &str = "{racks: 4, hosts_per_rack: 3, nic: 1Gbps, oversubscription: 1}";

/// Two racks of two hosts with an SSD each, without oversubscription, with four priorities.
pub const RACKS_2X2_WITH_SSDS: &str = "{racks: 2, hosts_per_rack: 2, nic: 1Gbps, oversubscription: 1, \
    priorities: 4, devices: [{name: ssd, read: 500MB/s, write: 400MB/s}]}";

/// Two racks of three hosts with an SSD each, without oversubscription, with four priorities.
pub const RACKS_2X3_WITH_SSDS: &str = "racks: 2\nhosts_per_rack: 3\nnic: 1Gbps\noversubscription: 1\n\
    priorities: 4\ndevices: [{name: ssd, read: 500MB/s, write: 400MB/s}]\n";

/// The cluster `volumes`: two racks of three hosts with an SSD each, without oversubscription, with eight priorities.
pub const VOLUMES: &str = "name: volumes\nracks: 2\nhosts_per_rack: 3\nnic: 1Gbps\noversubscription: 1\n\
    priorities: 8\ndevices: [{name: ssd, read: 500MB/s, write: 400MB/s}]\n";

/// Four racks of four hosts with slow disks, fourfold oversubscribed.
pub const RACKS_4X4_WITH_DISKS: &str = "racks: 4\nhosts_per_rack: 4\nnic: 1Gbps\noversubscription: 4\n\
    devices: [{read: 50MB/s, write: 50MB/s}]\n";

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

/// Text of a cluster file: racks of twenty hosts with slow disks, tenfold oversubscribed, as in Sinbad's section 7.1.
pub fn racks_of_twenty(racks: u32) -> String {
    format!(
        "racks: {racks}\nhosts_per_rack: 20\nnic: 1Gbps\noversubscription: 10\n\
         devices: [{{read: 50MB/s, write: 50MB/s}}]\n"
    )
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
    ledger_with(cluster, &LedgerSettings::default())
}

/// Creates an empty ledger of a cluster.
///
/// # Panics
/// Panics if the settings are out of range.
pub fn ledger_with(cluster: &Cluster, settings: &LedgerSettings) -> Ledger {
    let ledger = Ledger::of_cluster(cluster, settings.clone());
    ledger.unwrap_or_else(|error| panic!("{error}"))
}
