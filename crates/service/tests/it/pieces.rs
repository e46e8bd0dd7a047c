//! Snapshots that are copied in pieces.

use leeward_engine::Engine;
use leeward_fabric::{Cluster, HostId, Load, Nanos, ResourceId, ResourceKind};
use leeward_placement::Explain;
use leeward_service::{Coordinator, Limits, NetworkSnapshot, Report};
use leeward_testing::clusters::{cluster, ledger};

use crate::support::{Numbers, labels, policies, samples};

const CLUSTER: &str = "racks: 3\nhosts_per_rack: 4\nnic: 1Gbps\noversubscription: 2\n\
                       devices: [{read: 200MB/s, write: 200MB/s}]\n";

/// Reports that all links, and the devices of every second host, have this load.
fn report(cluster: &Cluster, coordinator: &mut Coordinator<Numbers>, second: u64, load: i64) {
    let window = (Nanos((second - 1) * Nanos::SECOND.0), Nanos(second * Nanos::SECOND.0));
    let fabric = &cluster.fabric;
    let (devices, links): (Vec<ResourceId>, Vec<ResourceId>) =
        fabric.all_resources().partition(|&resource| fabric.kind(resource) == ResourceKind::Device);
    let loads = samples(window, links.into_iter().map(|link| (link, Load(load))));
    let devices = devices.into_iter().step_by(2).map(|device| (device, Load(load)));
    let reading = |(device, _): (ResourceId, Load)| {
        (device, leeward_service::Reading { queue: Some(1.0), ..Default::default() })
    };
    let readings = devices.clone().map(reading).collect();
    let devices = samples(window, devices);
    let report = Report { window, loads, devices, readings, ..Report::default() };
    coordinator.report(window.1, report).expect("a valid report");
}

fn parts(snapshot: &NetworkSnapshot) -> impl PartialEq + std::fmt::Debug {
    let NetworkSnapshot { at, epoch, links, devices, hosts, clients, counts, .. } = snapshot.clone();
    (at, epoch, links, devices, hosts, clients, counts)
}

#[test]
fn a_snapshot_in_pieces_of_any_size_equals_the_snapshot_at_once() {
    let cluster = cluster(CLUSTER);
    let engine = Engine::new(ledger(&cluster), policies(""), 1, Explain::Off);
    let mut coordinator = Coordinator::<Numbers>::new(engine, labels(), Limits::default());
    report(&cluster, &mut coordinator, 2, 1_000_000);
    let whole = coordinator.snapshot();
    assert_eq!((whole.links.len(), whole.devices.len(), whole.hosts.len()), (30, 6, 12));
    let mut past = None;
    for most in [1, 2, 5, 12, 29, 30, 36, 47, 48, usize::MAX] {
        let mut snapshot = coordinator.begin_snapshot(past.take());
        let mut pieces = 1;
        while !coordinator.extend_snapshot(&mut snapshot, most) {
            pieces += 1;
            assert!(pieces < 100, "pieces of {most}: the snapshot ends");
        }
        assert_eq!(parts(&snapshot), parts(&whole), "pieces of {most}");
        past = Some(snapshot);
    }
}

#[test]
fn changes_between_two_pieces_are_in_the_later_ones_and_the_begin_stays() {
    let cluster = cluster(CLUSTER);
    let engine = Engine::new(ledger(&cluster), policies(""), 1, Explain::Off);
    let mut coordinator = Coordinator::<Numbers>::new(engine, labels(), Limits::default());
    report(&cluster, &mut coordinator, 2, 1_000_000);
    let before = coordinator.snapshot();
    let mut snapshot = coordinator.begin_snapshot(None);
    assert!(!coordinator.extend_snapshot(&mut snapshot, 10));
    report(&cluster, &mut coordinator, 3, 500_000_000);
    assert!(coordinator.extend_snapshot(&mut snapshot, usize::MAX));
    let after = coordinator.snapshot();
    assert_eq!((snapshot.at, snapshot.epoch, snapshot.counts), (before.at, before.epoch, before.counts));
    assert_eq!(snapshot.links[..10], before.links[..10]);
    assert_eq!(snapshot.links[10..], after.links[10..]);
    assert_eq!(snapshot.devices, after.devices);
    assert_eq!(snapshot.hosts.last().map(|host| host.host), Some(HostId(11)));
}
