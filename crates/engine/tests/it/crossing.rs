//! Blocks that cross the border of an engine's network: the ledger has the part of their load that is on this network.

use leeward_engine::{Engine, Input};
use leeward_fabric::{Bytes, DomainId, HostId, Load, Nanos, ResourceId};
use leeward_ledger::{Sample, Scratch};
use leeward_placement::replicas::{self, Layout, ReplicaRequest};
use leeward_placement::{Constraints, Explain};
use leeward_testing::clusters::{cluster, ledger};

const NOW: Nanos = Nanos::SECOND;
/// Two pods of three racks, and a pod with one host for everything outside.
const CLUSTER: &str = "
racks:
- {count: 3, pod: p0}
- {count: 3, pod: p1}
- {name: outside-rack, pod: outside-pod, kind: disk, link: 900Tbps, hosts: [{name: outside, devices: []}]}
pods: [{name: p0}, {name: p1}, {name: outside-pod, link: 900Tbps}]
hosts_per_rack: 4
nic: 10Gbps
oversubscription: 2
pod_oversubscription: 2
devices: [{read: 250MB/s, write: 250MB/s, capacity: 10TB}]
";
const OUTSIDE: HostId = HostId(24);

/// An engine whose links are idle by their reports.
fn engine(policy: &str) -> Engine {
    let policy = replicas::REGISTRY.make(policy, "").expect("a policy of the registry");
    let mut engine = Engine::new(ledger(&cluster(CLUSTER)), policy, 7, Explain::Off);
    let resources = 0..engine.ledger().fabric().resource_count() as u32;
    let window = (Nanos(0), NOW);
    let sample =
        |resource| Sample { resource: ResourceId(resource), window, load: Load(0), guaranteed: None };
    let samples: Vec<Sample> = resources.map(sample).collect();
    engine.report(NOW, &samples, &mut Vec::new());
    engine.handle(NOW, Input::Drain(OUTSIDE, true), &mut Vec::new());
    engine
}

fn block(id: u64, writer: HostId) -> ReplicaRequest {
    ReplicaRequest {
        id,
        file: id,
        writer: Some(writer),
        size: Bytes(256 << 20),
        replicas: 2,
        layout: Layout::Chain,
        fault_domains: 1,
        blocks_left: 1,
        job: None,
        constraints: Constraints { existing: vec![writer], ..Constraints::default() },
    }
}

/// Flows on a link of a domain: out of it, and into it.
fn flows(engine: &Engine, domain: DomainId) -> [f64; 2] {
    let (ledger, mut scratch) = (engine.ledger(), Scratch::default());
    let view = ledger.view(NOW, &mut scratch);
    let links = [ledger.fabric().out_of_domain(domain), ledger.fabric().into_domain(domain)];
    links.map(|link| link.map_or(0.0, |link| view.flows(link)))
}

/// The rack and the pod of a host.
fn domains(engine: &Engine, host: HostId) -> [DomainId; 2] {
    let fabric = engine.ledger().fabric();
    let rack = fabric.rack_of(host);
    [rack, fabric.parent(rack).expect("racks are in pods")]
}

fn has_no_load_outside(engine: &Engine) {
    for domain in domains(engine, OUTSIDE) {
        assert_eq!(flows(engine, domain), [0.0; 2]);
    }
    let (ledger, mut scratch) = (engine.ledger(), Scratch::default());
    let view = ledger.view(NOW, &mut scratch);
    let links = [ledger.fabric().egress(OUTSIDE), ledger.fabric().ingress(OUTSIDE)];
    assert!(links.into_iter().flatten().all(|link| view.flows(link) == 0.0));
}

#[test]
fn a_block_from_outside_loads_the_links_into_its_pod_and_rack_alone() {
    for policy in replicas::REGISTRY.names() {
        let mut engine = engine(policy);
        let before = engine.ledger().sums_bytes();
        let placed = engine.place_inbound(NOW, &block(3, OUTSIDE), &mut Vec::new());
        let placed = placed.unwrap_or_else(|refusal| panic!("{policy}: {refusal}"));
        let hosts = &placed.decision.choice;
        assert_eq!(hosts.len(), 2, "{policy}");
        assert!(!hosts.contains(&OUTSIDE), "{policy}");
        for domain in domains(&engine, hosts[0]) {
            let [out, into] = flows(&engine, domain);
            assert!(out == 0.0 && into >= 1.0, "{policy}: {out} out of {domain:?}, {into} into it");
        }
        has_no_load_outside(&engine);
        engine.handle(NOW, Input::Release(&placed.entries), &mut Vec::new());
        assert_eq!(engine.ledger().sums_bytes(), before, "{policy}");
    }
}

#[test]
fn a_block_on_its_way_out_loads_the_links_out_of_its_rack_and_pod_alone() {
    let mut engine = engine("leeward");
    let before = engine.ledger().sums_bytes();
    let writer = HostId(5);
    let entries = engine.commit_outbound(NOW, &block(3, writer), OUTSIDE, &mut Vec::new());
    let own = domains(&engine, writer);
    for domain in (0..engine.ledger().fabric().domain_count() as u32).map(DomainId) {
        let expected = if own.contains(&domain) { [1.0, 0.0] } else { [0.0; 2] };
        assert_eq!(flows(&engine, domain), expected, "{domain:?}");
    }
    has_no_load_outside(&engine);
    // The fastest disk writes 2 Gb/s.
    let uplink = engine.ledger().fabric().out_of_domain(own[0]).expect("a rack of a tree has an uplink");
    assert_eq!(engine.residual(NOW, uplink), Load(20_000_000_000 - 2_000_000_000));
    engine.handle(NOW, Input::Release(&entries), &mut Vec::new());
    assert_eq!(engine.ledger().sums_bytes(), before);
    assert_eq!(engine.residual(NOW, uplink), Load(20_000_000_000));
}
