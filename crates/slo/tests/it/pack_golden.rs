//! Packings of the released code's examples (`golden/qos/placement`, `golden/qos/bench`). The benchmark has the
//! packings of 1000 workloads.

use crate::support::reference;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use crate::support::reference::text;
use leeward_slo::Workload;
use leeward_slo::pack::{PackSettings, Packing, Request};
use leeward_testing::golden;
use leeward_testing::golden::array;
use serde_json::Value;

fn packing(topology: &Value, fast: bool) -> Packing {
    let settings = PackSettings { fast, margin: 0.0, pruning: 0.0, ..PackSettings::default() };
    Packing::new(reference::site(topology), settings, "").expect("valid settings")
}

/// Places a workload. The packing records a refusal.
fn place(packing: &mut Packing, workload: Workload) {
    drop(packing.place(&Request { workload: Arc::new(workload), client: None }));
}

/// All workloads of a topology, one after another.
fn pack(folder: &Path, file: &str, fast: bool) -> Packing {
    let topology = reference::topology(&folder.join(file));
    let mut packing = packing(&topology, fast);
    for workload in reference::workloads(folder, &topology) {
        place(&mut packing, workload);
    }
    packing
}

#[test]
fn examples_take_about_as_many_servers_as_with_the_released_code() {
    let Some(folder) = golden::folder("qos") else { return };
    // Lowest rates are equal but not unique; the configured rates determine the servers that fast first fit skips.
    let cases = [
        ("placement/topo-example.txt", false, 11, 11),
        ("placement/topo-example.txt", true, 11, 11),
        ("bench/topo_100.json", false, 23, 23),
        ("bench/topo_100.json", true, 22, 22),
        ("bench/topo_300.json", true, 77, 78),
    ];
    for (file, fast, released, most) in cases {
        let packing = pack(&folder, file, fast);
        let servers = packing.servers_used();
        println!("{file}, fast {fast}: {servers} servers, {released} with the released code");
        assert!(servers <= most, "{file}, fast {fast}: {servers}");
        assert!(packing.refused().is_empty(), "{file}: {:?}", packing.refused());
    }
}

#[test]
fn the_arrival_and_departure_example_needs_no_more_servers() {
    let Some(folder) = golden::folder("qos") else { return };
    let topology = reference::topology(&folder.join("placement/topo-example.txt"));
    let events = std::fs::read_to_string(folder.join("placement/event-example.txt")).unwrap();
    let workloads = reference::workloads(&folder, &topology);
    let mut packing = packing(&topology, true);
    let mut counts: BTreeMap<usize, u32> = BTreeMap::new();
    for line in events.lines().filter(|line| !line.trim().is_empty()) {
        let (client, action) = line.split_once(',').unwrap();
        let client: usize = client.parse().unwrap();
        let count = counts.entry(client).or_default();
        if action == "addClient" {
            *count += 1;
            place(&mut packing, workloads[client].clone());
        } else {
            *count -= 1;
            packing.remove(&workloads[client].name);
        }
        assert!(*count <= 1, "the example has each workload once at a time");
    }
    assert!(packing.refused().is_empty(), "{:?}", packing.refused());
    let output = reference::topology(&folder.join("placement/output-exampleFFFEvent.txt"));
    let placed: BTreeSet<&str> = packing.placed().map(|placed| placed.0).collect();
    let expected: BTreeMap<&str, &str> = array(&output["clients"])
        .iter()
        .filter(|client| client["serverHost"].is_string())
        .map(|client| (text(&client["name"]), text(&client["serverHost"])))
        .collect();
    println!("{} and {} placed", placed.len(), expected.len());
    let servers: BTreeSet<&str> = expected.values().copied().collect();
    println!("{} servers, {} with the released code", packing.servers_used(), servers.len());
    assert!(packing.servers_used() <= servers.len());
}
