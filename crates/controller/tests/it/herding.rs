//! Simultaneous placements do not herd: they share one ledger, each sees the earlier placements, and they spread.

use crate::support;
use std::sync::Barrier;

use crate::support::{Numbers, Server, decision_of, frozen_clock, labels, place_now, service};
use leeward_engine::Engine;
use leeward_fabric::{Bytes, Cluster, Fabric, HostId, Load, Nanos};
use leeward_ledger::{Sample, Scratch, find_link};
use leeward_placement::replicas::{self, ReplicaRequest};
use leeward_placement::{Context, Explain, Pool};
use leeward_records::{PlacementSpec, ReplicasSpec};
use leeward_service::{Coordinator, Limits, Placement};
use leeward_testing::clusters::{cluster, ledger};
use serde_json::json;

const PLACERS: u64 = 100;
const RACKS: usize = 20;
const NOW: Nanos = Nanos(10 * Nanos::SECOND.0);

/// Links and disks are fast, so that free bandwidth decides and not a disk. Each block takes only a part of a link.
const CLUSTER: &str = "racks: 20\nhosts_per_rack: 10\nnic: 25Gbps\noversubscription: 2\n";

fn racks() -> Cluster {
    cluster(CLUSTER)
}

/// Light loads of racks and hosts, different for every rack.
fn loads() -> Vec<(String, f64)> {
    let rack = |rack: usize| {
        let hosts = (0..10).map(move |host| (format!("r{rack}h{host}:ingress"), 1e9));
        hosts.chain([(format!("r{rack}:downlink"), 2e9 * rack as f64)])
    };
    (0..RACKS).flat_map(rack).collect()
}

fn samples(fabric: &Fabric) -> Vec<Sample> {
    let window = (Nanos(NOW.0 - Nanos::SECOND.0), NOW);
    let sample = |(name, load): (String, f64)| {
        let resource = find_link(fabric, &name).expect("a link of the cluster");
        Sample { resource, window, load: Load(load as i64), guaranteed: None }
    };
    loads().into_iter().map(sample).collect()
}

fn request(fabric: &Fabric, id: u64) -> ReplicaRequest {
    ReplicasSpec::new(Bytes(256 << 20)).request(fabric, id).expect("a valid request")
}

/// Replica chains by host name, sorted.
type Chains = Vec<Vec<String>>;

fn names(fabric: &Fabric, chain: &[HostId]) -> Vec<String> {
    chain.iter().map(|&host| fabric.host_name(host).to_owned()).collect()
}

/// Placements one after another, by a coordinator without a service around it.
fn sequential(limits: Limits) -> Chains {
    let cluster = racks();
    let policy = replicas::REGISTRY.make("sinbad", "").expect("a policy of the registry");
    let mut engine = Engine::new(ledger(&cluster), policy, 1, Explain::Top(8));
    engine.report(NOW, &samples(&cluster.fabric), &mut Vec::new());
    let mut coordinator = Coordinator::<Numbers>::new(engine, labels(), limits);
    let mut chains = Chains::new();
    for _ in 0..PLACERS {
        let spec = PlacementSpec::Replicas(ReplicasSpec::new(Bytes(256 << 20)));
        let placement = Placement { spec, caller: None, lasts: None, reference: None, digest: None };
        let (record, _) = decision_of(place_now(&mut coordinator, NOW, placement));
        chains.push(record.details.hosts.clone());
    }
    chains.sort();
    chains
}

/// Simultaneous placements, each over its own connection.
fn concurrent() -> Chains {
    let server = Server::start(service(CLUSTER, "", frozen_clock()));
    server.report(&loads());
    let together = Barrier::new(PLACERS as usize);
    let place = || {
        let agent = support::agent();
        let body = json!({ "size": "256MiB" }).to_string();
        together.wait();
        let url = server.url("/v1/place/replicas");
        let sent = agent.post(url).header("content-type", "application/json").send(body);
        let text = sent.expect("the server answers").body_mut().read_to_string().expect("text");
        let body: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        serde_json::from_value(body["hosts"].clone()).expect("names of hosts")
    };
    let mut chains: Chains = std::thread::scope(|scope| {
        let placers: Vec<_> = (0..PLACERS).map(|_| scope.spawn(place)).collect();
        placers.into_iter().map(|placer| placer.join().expect("the placement succeeds")).collect()
    });
    chains.sort();
    chains
}

/// Placements by independent placers that share one frozen snapshot and do not see each other.
fn on_a_frozen_snapshot() -> Chains {
    let cluster = racks();
    let mut ledger = ledger(&cluster);
    ledger.report(&samples(&cluster.fabric), NOW);
    let policy = replicas::REGISTRY.make("sinbad", "").expect("a policy of the registry");
    let (pool, mut scratch) = (Pool::new(cluster.fabric.clone()), Scratch::default());
    let mut place = |id| {
        let view = &mut ledger.view(NOW, &mut scratch);
        let mut context = Context { view, pool: &pool, seed: 1, explain: Explain::Off };
        let decision = policy.place(&[request(&cluster.fabric, id)], &mut context).remove(0);
        names(&cluster.fabric, &decision.expect("the cluster has room").choice)
    };
    (0..PLACERS).map(&mut place).collect()
}

/// Largest number of blocks that one rack received over its downlink.
fn most_in_a_rack(chains: &Chains) -> usize {
    let mut racks = [0; RACKS];
    for chain in chains {
        let rack = chain[1].split('h').next().and_then(|rack| rack[1..].parse::<usize>().ok());
        racks[rack.expect("hosts have names like r3h7")] += 1;
    }
    racks.into_iter().max().unwrap_or(0)
}

#[test]
fn a_hundred_concurrent_placements_spread_as_sequential_ones() {
    assert_eq!(concurrent(), sequential(Limits::default()));
}

#[test]
fn a_hundred_concurrent_placers_do_not_herd_as_on_a_frozen_snapshot() {
    let (shared, frozen) = (most_in_a_rack(&concurrent()), most_in_a_rack(&on_a_frozen_snapshot()));
    println!(
        "most blocks in one rack, of {PLACERS} on {RACKS} racks: {shared} on a shared ledger, {frozen} on a \
         frozen snapshot"
    );
    // On one snapshot, all blocks go to the best rack, except blocks from that rack itself, which must leave it.
    assert!(frozen >= 90, "{frozen} of {PLACERS} on a frozen snapshot");
    // With a shared ledger, no rack gets four times its share.
    assert!(shared <= 4 * PLACERS as usize / RACKS, "{shared} of {PLACERS}");
}

#[test]
fn placements_spread_the_same_for_any_decision_limit() {
    let kept = sequential(Limits::default());
    assert_eq!(sequential(Limits { decisions: 3, ..Limits::default() }), kept);
    assert_eq!(sequential(Limits { decisions: 0, ..Limits::default() }), kept);
    // Placements herd if entries count only while their decisions are in memory.
    let counted = sequential(Limits { decisions: 3, evicted: 0, ..Limits::default() });
    assert!(most_in_a_rack(&counted) > most_in_a_rack(&kept), "{counted:?}");
}
