//! Meshes that state rates of pairs, rates of hosts and shared links together.

use std::collections::BTreeSet;

use leeward_fabric::{Cluster, Endpoint, HostId, Load, ResourceKind};
use proptest::prelude::*;

fn load(text: &str) -> Cluster {
    Cluster::from_text("mesh.yaml", text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Names of the links on the path between two hosts.
fn path(cluster: &Cluster, from: &str, to: &str) -> Vec<String> {
    let ends = [from, to].map(|name| Endpoint::Host(cluster.fabric.host(name).expect("a host of the file")));
    let mut hops = Vec::new();
    cluster.fabric.path(&ends, &mut hops);
    assert!(hops.iter().all(|hop| hop.work == 8.0));
    hops.iter().map(|hop| cluster.fabric.resource_name(hop.resource)).collect()
}

fn capacity(cluster: &Cluster, name: &str) -> Load {
    cluster.capacities.get(cluster.fabric.resource(name).unwrap_or_else(|| panic!("no link {name}")))
}

const CLOUD: &str = "
shape: hose
nic: 1Gbps
racks:
  - {name: r0, hosts: [{name: a, devices: [{name: shared, read: 1MB/s, write: 1MB/s}]}, {name: b}, {name: c}]}
  - {name: r1, hosts: [{name: d}, {name: e}]}
pairs:
  - {from: a, to: b, rate: 4Gbps, same_machine: true}
  - {from: b, to: a, rate: 4Gbps, same_machine: true}
  - {from: a, to: d, rate: 300Mbps}
shared_links:
  - {name: up, rate: 60Mbps, out_of: [r0]}
  - {name: down, rate: 70Mbps, into: [d, c]}
  - {name: two, rate: 80Mbps, paths: [{from: d, to: e}, {from: a, to: d}]}
";

#[test]
fn a_path_crosses_its_pair_both_hosts_and_the_shared_links() {
    let cluster = load(CLOUD);
    for (from, to, links) in [
        ("a", "b", &["a>b"][..]),
        ("b", "a", &["b>a"]),
        ("a", "c", &["a:egress", "down:shared", "c:ingress"]),
        ("a", "d", &["a:egress", "a>d", "up:shared", "two:shared", "down:shared", "d:ingress"]),
        ("b", "e", &["b:egress", "up:shared", "e:ingress"]),
        ("c", "d", &["c:egress", "up:shared", "d:ingress"]),
        ("d", "e", &["d:egress", "two:shared", "e:ingress"]),
        ("e", "d", &["e:egress", "down:shared", "d:ingress"]),
        ("e", "e", &[]),
    ] {
        assert_eq!(path(&cluster, from, to), links, "{from} to {to}");
    }
    let mbps = |name: &str| capacity(&cluster, name).0 / 1_000_000;
    let rates = ["a>b", "a>d", "up:shared", "down:shared", "two:shared", "a:egress"].map(mbps);
    assert_eq!(rates, [4000, 300, 60, 70, 80, 1000]);
    // A device may be called `shared`: no shared link has the name of a host.
    assert_eq!(cluster.fabric.kind(cluster.fabric.resource("a:shared").unwrap()), ResourceKind::Device);
    let rack = cluster.fabric.domain("r1").map(Endpoint::Domain).unwrap();
    let mut hops = Vec::new();
    cluster.fabric.path(&[Endpoint::Host(HostId(0)), rack], &mut hops);
    assert_eq!(hops.len(), 1, "only the host's own link is certain");
}

/// A random mesh: the number of hosts, pairs, those on one machine, and groups out of which a shared link leads.
type Plan = (usize, BTreeSet<(usize, usize)>, BTreeSet<(usize, usize)>, Vec<(bool, BTreeSet<usize>)>);

fn plans() -> impl Strategy<Value = Plan> {
    (2..7_usize).prop_flat_map(|hosts| {
        let pair = (0..hosts, 0..hosts).prop_filter("two hosts", |(from, to)| from != to);
        let pairs = || prop::collection::btree_set(pair.clone(), 0..8);
        let group = prop::collection::btree_set(0..hosts, 1..hosts);
        let groups = prop::collection::vec((any::<bool>(), group), 0..4);
        // A machine is that of both directions.
        let within =
            pairs().prop_map(|one_way| one_way.iter().flat_map(|&(a, b)| [(a, b), (b, a)]).collect());
        (Just(hosts), pairs(), within, groups)
    })
}

/// The hosts and the fields of a random mesh.
fn file(shape: &str, plan: &Plan) -> (String, String) {
    let (hosts, pairs, within, groups) = plan;
    let rate = if shape == "hose" { "nic: 1Gbps" } else { "pair: 1Gbps" };
    let mut fields = "pairs:\n".to_owned();
    for (from, to) in pairs.union(within) {
        let within = shape == "hose" && within.contains(&(*from, *to));
        fields += &format!("  - {{from: h{from}, to: h{to}, rate: 50Mbps, same_machine: {within}}}\n");
    }
    if pairs.is_empty() && within.is_empty() {
        fields.clear();
    }
    if !groups.is_empty() {
        fields += "shared_links:\n";
    }
    for (number, (out, group)) in groups.iter().enumerate() {
        let names: Vec<String> = group.iter().map(|host| format!("h{host}")).collect();
        let key = if *out { "out_of" } else { "into" };
        fields += &format!("  - {{name: s{number}, rate: 7Mbps, {key}: [{}]}}\n", names.join(", "));
    }
    (format!("shape: {shape}\nhosts: {hosts}\n{rate}\n"), fields)
}

proptest! {
    #[test]
    fn the_paths_of_random_meshes_match_their_plan(plan in plans(), hose: bool) {
        let shape = if hose { "hose" } else { "pipe" };
        let (head, fields) = file(shape, &plan);
        let cluster = load(&format!("{head}{fields}"));
        let (hosts, pairs, within, groups) = &plan;
        for from in 0..*hosts {
            for to in (0..*hosts).filter(|&to| to != from) {
                let inside = hose && within.contains(&(from, to));
                let has_pair = !hose || pairs.contains(&(from, to)) || within.contains(&(from, to));
                let mut expected = BTreeSet::new();
                expected.extend(has_pair.then(|| format!("h{from}>h{to}")));
                expected.extend((hose && !inside).then(|| format!("h{from}:egress")));
                expected.extend((hose && !inside).then(|| format!("h{to}:ingress")));
                let crosses = |&(out, ref group): &(bool, BTreeSet<usize>)| {
                    let (inner, outer) = if out { (from, to) } else { (to, from) };
                    !inside && group.contains(&inner) && !group.contains(&outer)
                };
                let shared = groups.iter().enumerate().filter(|(_, group)| crosses(group));
                expected.extend(shared.map(|(number, _)| format!("s{number}:shared")));
                let links = path(&cluster, &format!("h{from}"), &format!("h{to}"));
                prop_assert_eq!(links.len(), expected.len(), "each once: {:?}", links);
                prop_assert_eq!(links.into_iter().collect::<BTreeSet<_>>(), expected);
            }
        }
    }

    #[test]
    fn every_link_of_a_mesh_has_a_name_a_kind_and_a_capacity(plan in plans(), hose: bool) {
        let (head, fields) = file(if hose { "hose" } else { "pipe" }, &plan);
        let cluster = load(&format!("{head}{fields}"));
        let fabric = &cluster.fabric;
        let mut shared = 0;
        for resource in fabric.all_resources() {
            prop_assert_eq!(fabric.resource(&fabric.resource_name(resource)), Some(resource));
            prop_assert!(cluster.capacities.get(resource).0 > 0);
            let pair = fabric.hosts_of_pair(resource);
            prop_assert_eq!(pair.is_some(), fabric.kind(resource) == ResourceKind::Pair);
            prop_assert_eq!(pair.and_then(|(from, to)| fabric.pair(from, to)), pair.map(|_| resource));
            shared += usize::from(fabric.kind(resource) == ResourceKind::SharedLink);
        }
        prop_assert_eq!(shared, plan.3.len());
        prop_assert_eq!(fabric.link_count(), fabric.resource_count());
    }

    #[test]
    fn the_links_of_a_mesh_without_these_fields_come_first(plan in plans(), hose: bool) {
        let (head, fields) = file(if hose { "hose" } else { "pipe" }, &plan);
        let (before, after) = (load(&head), load(&format!("{head}{fields}")));
        for resource in before.fabric.all_resources() {
            prop_assert_eq!(before.fabric.resource_name(resource), after.fabric.resource_name(resource));
            prop_assert_eq!(before.fabric.kind(resource), after.fabric.kind(resource));
        }
        let more = if hose { plan.1.union(&plan.2).count() } else { 0 } + plan.3.len();
        prop_assert_eq!(before.fabric.resource_count() + more, after.fabric.resource_count());
    }
}
