//! Time to copy the state of the network into a snapshot for readers. The cluster has 10,000 hosts in 500 racks. Agents
//! report loads, speeds, queues and a disk of every host, and placed blocks use their links.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

#[path = "../tests/it/support/mod.rs"]
#[allow(dead_code, reason = "the benchmark uses some of the helpers")]
mod support;

use std::collections::VecDeque;
use std::time::Instant;

use leeward_engine::Engine;
use leeward_fabric::{Bytes, Cluster, HostId, Load, Nanos, ResourceId, ResourceKind};
use leeward_placement::Explain;
use leeward_records::{PlacementSpec, ReplicasSpec};
use leeward_service::{Coordinator, Limits, Placement, Reading, Report, Requests};
use leeward_testing::clusters::{cluster, ledger};
use support::{Numbers, labels, place, policies, samples};

const CLUSTER: &str = "racks: 500\nhosts_per_rack: 20\nnic: 10Gbps\noversubscription: 4\n\
                       devices: [{read: 200MB/s, write: 200MB/s}]\n";
const NOW: Nanos = Nanos(10 * Nanos::SECOND.0);
const PLACEMENTS: u32 = 20_000;
const RUNS: usize = 400;

fn main() {
    let mut coordinator = loaded_coordinator(&cluster(CLUSTER));
    // A snapshot reuses the memory of an old snapshot, as in the service. Readers may still use the two snapshots in
    // between.
    let mut past = VecDeque::new();
    let mut micros: Vec<f64> = (0..RUNS)
        .map(|run| {
            let unused = if run < 3 { None } else { past.pop_front() };
            let start = Instant::now();
            let snapshot = coordinator.snapshot_in(unused);
            let micros = start.elapsed().as_secs_f64() * 1e6;
            assert_eq!(snapshot.devices.len(), 10_000, "the snapshot has the disk of every host");
            past.push_back(snapshot);
            micros
        })
        .collect();
    micros.sort_unstable_by(f64::total_cmp);
    println!(
        "10,000 hosts, {PLACEMENTS} blocks: median {:.0} us, 99th percentile {:.0} us",
        micros[RUNS / 2],
        micros[RUNS * 99 / 100]
    );
}

/// A coordinator with a report of every link and disk, and with placed blocks.
fn loaded_coordinator(cluster: &Cluster) -> Coordinator<Numbers> {
    let engine = Engine::new(ledger(cluster), policies(""), 1, Explain::Off);
    let mut coordinator = Coordinator::new(engine, labels(), Limits::default());
    coordinator.report(NOW, report(cluster)).expect("a valid report");
    for number in 0..PLACEMENTS {
        let writer = Some(cluster.fabric.host_name(HostId(number * 7_919 % 10_000)).to_owned());
        let spec = ReplicasSpec { size: Bytes(64 << 20), replicas: 3, writer, ..ReplicasSpec::default() };
        let spec = PlacementSpec::Replicas(spec);
        place(
            &mut coordinator,
            NOW,
            Placement { spec, caller: None, lasts: None, reference: None, digest: None },
            0,
        );
    }
    coordinator
}

fn report(cluster: &Cluster) -> Report {
    let fabric = &cluster.fabric;
    let share = |resource: ResourceId| i64::from(resource.0.wrapping_mul(2_654_435_761) >> 25);
    let load =
        |resource: ResourceId| (resource, Load(cluster.capacities.get(resource).0 / 256 * share(resource)));
    let (devices, links): (Vec<ResourceId>, Vec<ResourceId>) =
        fabric.all_resources().partition(|&resource| fabric.kind(resource) == ResourceKind::Device);
    let link = |&link: &ResourceId| {
        let speed = Some(cluster.capacities.get(link)).filter(|_| fabric.host_of(link).is_some());
        (link, Reading { speed, queue: speed.map(|_| 0.0), requests: None })
    };
    let device = |&device: &ResourceId| {
        let requests = Requests { read_bps: Some(1e6), write_bps: Some(1e6), in_flight: Some(1) };
        (device, Reading { speed: None, queue: Some(0.5), requests: Some(requests) })
    };
    let window = (Nanos(9 * Nanos::SECOND.0), NOW);
    Report {
        window,
        readings: links.iter().map(link).chain(devices.iter().map(device)).collect(),
        loads: samples(window, links.into_iter().map(load)),
        devices: samples(window, devices.into_iter().map(load)),
        ..Report::default()
    }
}
