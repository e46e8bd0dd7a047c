//! Scenarios with a list of files on racks of four hosts with disks.

use leeward_fabric::HostId;
use leeward_scenarios::scenario::Scenario;

use super::runs::folder;

pub const HOSTS_PER_RACK: u32 = 4;
/// Rate of the disks, in bytes per second.
pub const DISK: f64 = 50e6;
/// Size of the blocks of most tests, in bytes.
pub const BLOCK: u64 = 16 << 20;

const CLUSTER: &str = "racks: 6\nhosts_per_rack: 4\nnic: 1Gbps\noversubscription: 4\n\
    devices: [{read: 100MB/s, write: 50MB/s}]\n";

/// Creates a scenario in the folder of one test, on six racks: from the first second on, one file of the given bytes is
/// written every second, by one host after another.
pub fn scenario(group: &str, name: &str, files: &[u64], blocks: &str, more: &str) -> Scenario {
    let line = |(at, bytes): (usize, &u64)| format!("{},{},{bytes}\n", at + 1, at * 5 % 24);
    let list: String = files.iter().enumerate().map(line).collect();
    let lists = [("blocks.csv", format!("t_arrival_s,writer,size_bytes\n{list}"))];
    let workloads = format!("  - blocks: {{file: blocks.csv, block: 16MiB, {blocks}}}\n");
    with_lists(group, name, &lists, &format!("{workloads}{more}"))
}

/// Creates a scenario in the folder of one test, on six racks, from lists by name and text. The text begins with the
/// workloads.
pub fn with_lists(group: &str, name: &str, lists: &[(&str, String)], text: &str) -> Scenario {
    let folder = folder(group, name);
    for (file, text) in [("cluster.yaml", CLUSTER.to_owned())].iter().chain(lists) {
        std::fs::write(folder.join(file), text).expect("the folder of the test can be written to");
    }
    let text = format!("cluster: cluster.yaml\nworkloads:\n{text}");
    Scenario::from_text("scenario.yaml", &text, &folder, None).expect("the scenario of the test is valid")
}

/// Number of the rack of a host.
pub fn rack(host: HostId) -> u32 {
    host.0 / HOSTS_PER_RACK
}

/// Name of a host, as in events.
pub fn name(host: HostId) -> String {
    format!("r{}h{}", rack(host), host.0 % HOSTS_PER_RACK)
}

/// One block each of 40 files, on all hosts.
pub fn many() -> Vec<u64> {
    vec![BLOCK; 40]
}
