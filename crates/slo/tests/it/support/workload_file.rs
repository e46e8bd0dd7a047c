//! Workload files on a small cluster, and the errors of reading them.

use std::path::PathBuf;

use leeward_fabric::Cluster;
use leeward_fabric::input::{Files, InputError, Text};
use leeward_slo::file::Workloads;
use leeward_testing::clusters::cluster;

pub const CLUSTER: &str = "racks: 2\nhosts_per_rack: 3\nnic: 1Gbps\noversubscription: 3\n\
                       devices: [{name: ssd0, read: 500MB/s, write: 400MB/s}]\n";
/// A request of 8 KiB every 10 ms, and every fourth a write.
pub fn trace() -> String {
    let line = |at: u32| {
        let kind = if at.is_multiple_of(4) { "write" } else { "read" };
        format!("{}.{:02},{kind},{}\n", at / 100, at % 100, 8192 + 512 * (at % 7))
    };
    format!("seconds,kind,size\n{}", (0..400).map(line).collect::<String>())
}

pub fn files() -> Files {
    let base = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/slo"));
    Files { base, data: None }
}

pub fn read_on(cluster: &Cluster, text: &str) -> Result<Workloads, InputError> {
    let open = |name: &str| Text::from_bytes(name, trace());
    Workloads::from_text("w.yaml", text, cluster, &files(), &open, None)
}

pub fn read(text: &str) -> Result<Workloads, InputError> {
    read_on(&cluster(CLUSTER), text)
}

/// A file of one workload with these fields, besides a name and a client.
pub fn one(fields: &str) -> String {
    format!("device: ssd.json\nworkloads:\n  - {{name: a, client: r0h0, {fields}}}\n")
}

pub const GOOD: &str = "server: r1h1, slo: {percentile: 99.9, latency: 20ms}, trace: t.csv";

/// Error for a file: from reading it, or from its system.
pub fn error_of(text: &str) -> String {
    error_on(CLUSTER, text)
}

pub fn error_on(cluster_text: &str, text: &str) -> String {
    let cluster = cluster(cluster_text);
    match read_on(&cluster, text).and_then(|workloads| workloads.system(&cluster)) {
        Ok(_) => "nothing is wrong".into(),
        Err(error) => error.to_string(),
    }
}
