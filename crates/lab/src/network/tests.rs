//! Tests of plans: what the batches say is what the cluster says.

use std::collections::{BTreeMap, BTreeSet};

use leeward_fabric::{Cluster, Endpoint, HostId};
use leeward_testing::clusters::cluster;
use proptest::prelude::*;

use super::options::NetworkOptions;
use super::plan::Plan;
use crate::names::LabName;

const CLOUD: &str = "shape: hose
nic: { up: 950Mbps, down: 10Gbps }
racks:
  - { name: east, hosts: [{ name: a }, { name: b }, { name: c }] }
  - { name: west, hosts: [{ name: d }, { name: e }] }
pairs:
  - { from: a, to: b, rate: 4Gbps, same_machine: true }
  - { from: b, to: a, rate: 4Gbps, same_machine: true }
  - { from: c, to: d, rate: 310Mbps }
shared_links:
  - { name: out-of-east, rate: 1900Mbps, out_of: [east] }
  - { name: into-west, rate: 700Mbps, into: [d, e] }
";

fn plan(cluster: &Cluster) -> Plan {
    let name: LabName = "lab".parse().expect("a valid name");
    Plan::of(&name, cluster, NetworkOptions::default()).expect("a lab can have it")
}

fn problem(text: &str) -> String {
    let name: LabName = "lab".parse().expect("a valid name");
    Plan::of(&name, &cluster(text), NetworkOptions::default()).expect_err("a lab cannot have it").to_string()
}

/// Devices of a plan: the machine and device at the other end of each.
fn cables(plan: &Plan) -> BTreeMap<(String, String), (String, String)> {
    let mut ends = BTreeMap::new();
    for line in plan.cables.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        if let ["link", "add", one, "netns", from, "type", "veth", "peer", "name", other, "netns", to] =
            words[..]
        {
            let (one, other) = ((from.to_owned(), one.to_owned()), (to.to_owned(), other.to_owned()));
            assert!(ends.insert(one.clone(), other.clone()).is_none(), "{line}");
            assert!(ends.insert(other, one).is_none(), "{line}");
        }
    }
    ends
}

fn address(text: &str) -> u32 {
    text.parse::<std::net::Ipv4Addr>().expect("an address").to_bits()
}

/// Device by which a machine sends to an address: that of the longest prefix of its routes.
fn device(plan: &Plan, machine: usize, to: u32) -> Option<String> {
    let text = &plan.addresses[machine];
    let mut near: Vec<(u32, u32, String)> = Vec::new();
    let mut best: Option<(u32, String)> = None;
    let mut offer = |length: u32, device: &str| {
        if best.as_ref().is_none_or(|(longest, _)| length > *longest) {
            best = Some((length, device.to_owned()));
        }
    };
    let mask = |length: u32| if length == 0 { 0 } else { u32::MAX << (32 - length) };
    for line in text.lines() {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["addr", "add", prefix, "dev", device] => {
                let (text, length) = prefix.split_once('/').expect("a prefix");
                let length = length.parse().expect("a number");
                near.push((address(text), length, device.to_owned()));
                if (address(text) ^ to) & mask(length) == 0 {
                    offer(length, device);
                }
            }
            ["route", "add", other, "dev", device, "src", _] if address(other) == to => offer(32, device),
            ["route", _, prefix, "via", via, ..] => {
                let gateway = address(via);
                let of_gateway =
                    |(text, length, _): &&(u32, u32, String)| (text ^ gateway) & mask(*length) == 0;
                let (_, _, device) = near.iter().find(of_gateway).expect("a gateway is a neighbour");
                let (text, length) = match prefix {
                    "default" => ("0.0.0.0", "0"),
                    _ => prefix.split_once('/').unwrap_or((prefix, "32")),
                };
                let length = length.parse().expect("a number");
                if (address(text) ^ to) & mask(length) == 0 {
                    offer(length, device);
                }
            }
            _ => {}
        }
    }
    best.map(|(_, device)| device)
}

/// Links that packets between two machines cross, by their names; panics if they do not arrive.
fn crossed(plan: &Plan, from: usize, to: usize) -> Vec<String> {
    let ends = cables(plan);
    let (mut at, mut links) = (from, Vec::new());
    let wanted = plan.machines[to].address.to_bits();
    while at != to {
        let device = device(plan, at, wanted).expect("a route");
        let link = plan.links.iter().find(|(_, link)| link.machine == at && link.device == device);
        links.push(link.expect("every device has a link").0.clone());
        let (namespace, _) = &ends[&(plan.machines[at].namespace.clone(), device)];
        at = plan.machines.iter().position(|machine| machine.namespace == *namespace).expect("a machine");
        assert!(links.len() < 20, "packets go in a circle: {links:?}");
    }
    links
}

/// Checks that the packets of each pair of hosts cross the links of the cluster's path, at their rates.
fn check_paths(cluster: &Cluster, plan: &Plan) {
    let fabric = &cluster.fabric;
    let mut hops = Vec::new();
    for from in fabric.all_hosts() {
        for to in fabric.all_hosts().filter(|&to| to != from) {
            hops.clear();
            fabric.path(&[Endpoint::Host(from), Endpoint::Host(to)], &mut hops);
            let stated: BTreeSet<String> =
                hops.iter().map(|hop| fabric.resource_name(hop.resource)).collect();
            let mut limits = BTreeSet::new();
            for name in crossed(plan, from.index(), to.index()) {
                let link = &plan.links[&name];
                let ends = [to, from].map(|host| plan.machines[host.index()].address);
                if let Some(path) = link.limits.paths.iter().find(|path| ends.contains(&path.end)) {
                    let pair = fabric.pair(from, to).expect("it has a rate");
                    assert_eq!(path.rate as i64, cluster.capacities.get(pair).0);
                    limits.insert(fabric.resource_name(pair));
                }
                if let Some(rate) = link.limits.rate {
                    let resource = fabric.resource(&name).expect("a link of the cluster");
                    assert_eq!(rate as i64, cluster.capacities.get(resource).0, "{name}");
                    limits.insert(name);
                }
            }
            assert_eq!(limits, stated, "{from:?} to {to:?}");
        }
    }
}

/// Small trees and meshes.
fn clusters() -> impl Strategy<Value = String> {
    let tree = (1..4usize, 1..4usize, 1..3usize, 1..9u32).prop_map(|(pods, racks, hosts, ratio)| {
        let pod =
            if pods > 1 { format!("pods: {pods}\npod_oversubscription: {ratio}\n") } else { String::new() };
        format!(
            "racks: {}\nhosts_per_rack: {hosts}\nnic: 100Mbps\noversubscription: {ratio}\n{pod}",
            pods * racks
        )
    });
    let mesh = (1..4usize, 1..4usize, any::<bool>()).prop_map(|(racks, hosts, is_pipe)| {
        let rate = if is_pipe { "shape: pipe\npair: 80Mbps" } else { "shape: hose\nnic: 90Mbps" };
        let shared = if racks > 1 { "shared_links: [{name: all, rate: 9Mbps, out_of: [r0]}]\n" } else { "" };
        format!("{rate}\nracks: {racks}\nhosts_per_rack: {hosts}\n{shared}")
    });
    prop_oneof![tree, mesh]
}

proptest! {
    #[test]
    fn packets_cross_the_links_of_the_cluster_at_their_rates(text in clusters()) {
        let cluster = cluster(&text);
        let plan = plan(&cluster);
        check_paths(&cluster, &plan);
        prop_assert_eq!(plan, super::tests::plan(&cluster));
    }

    #[test]
    fn every_machine_reaches_every_other_one(text in clusters()) {
        let plan = plan(&cluster(&text));
        for from in 0..plan.machines.len() {
            for to in 0..plan.machines.len() {
                crossed(&plan, from, to);
            }
        }
    }
}

#[test]
fn packets_of_a_measured_cloud_cross_its_links() {
    let cluster = cluster(CLOUD);
    check_paths(&cluster, &plan(&cluster));
}

#[test]
fn groups_of_racks_with_shared_links_are_machines() {
    let text = "shape: hose\nnic: 90Mbps\nracks: 4\nhosts_per_rack: 2\nshared_links:
  - {name: half, rate: 99Mbps, out_of: [r0, r1]}
  - {name: rest, rate: 88Mbps, into: [r2, r3]}
  - {name: one, rate: 77Mbps, out_of: [r0]}\n";
    let cluster = cluster(text);
    let plan = plan(&cluster);
    check_paths(&cluster, &plan);
    let names: Vec<&str> = plan.machines[8..].iter().map(|machine| machine.place.as_str()).collect();
    assert_eq!(names, ["r0", "r1", "r2", "r3", "p0", "p1", "core"]);
}

#[test]
fn the_batches_of_a_rack_are_these() {
    let text =
        "racks: [{name: shelf, hosts: [{name: web, nic: {up: 20Mbps, down: 1Tbps}}]}]\nrack_link: 1Gbps\n";
    let plan = plan(&cluster(text));
    assert_eq!(
        plan.cables,
        "netns add leeward-lab-r0h0\nnetns add leeward-lab-r0\nnetns add leeward-lab-core\n\
         link add eth0 netns leeward-lab-r0h0 type veth peer name h0 netns leeward-lab-r0\n\
         link add up0 netns leeward-lab-r0 type veth peer name r0 netns leeward-lab-core\n"
    );
    assert_eq!(
        plan.addresses[0],
        "link set lo up\naddr add 10.0.0.2/30 dev eth0\nlink set eth0 gso_max_segs 1 up\n\
         route add default via 10.0.0.1 src 10.0.0.2\n"
    );
    assert_eq!(
        plan.addresses[2],
        "link set lo up\naddr add 172.16.0.1/30 dev r0\nlink set r0 gso_max_segs 1 up\n\
         addr add 172.31.0.1/32 dev lo\nroute add 10.0.0.0/16 via 172.16.0.2\n"
    );
    assert_eq!(plan.queues(0), "qdisc add dev eth0 root tbf rate 20000000bit burst 16384 limit 1514000\n");
    assert_eq!(plan.queues(1), "qdisc add dev up0 root tbf rate 1000000000bit burst 26514 limit 1514000\n");
    assert_eq!(plan.names, "127.0.0.1 localhost\n10.0.0.2 web r0h0\n172.16.0.2 shelf r0\n172.31.0.1 core\n");
}

#[test]
fn paths_of_a_hose_have_their_rates_behind_the_link_of_their_source() {
    let plan = plan(&cluster(CLOUD));
    assert_eq!(plan.queues(2), "qdisc add dev eth0 root tbf rate 950000000bit burst 25264 limit 1514000\n");
    let into_d = plan.links["d:ingress"].limits.commands("h0", plan.sizes());
    assert_eq!(
        into_d,
        "qdisc add dev h0 root handle 1: htb default 2\n\
         class add dev h0 parent 1: classid 1:1 htb rate 10000000000bit ceil 10000000000bit burst 251514 cburst 251514 quantum 1514\n\
         class add dev h0 parent 1:1 classid 1:2 htb rate 5000000000bit ceil 10000000000bit burst 251514 cburst 251514 quantum 1514\n\
         qdisc add dev h0 parent 1:2 bfifo limit 1514000\n\
         class add dev h0 parent 1:1 classid 1:3 htb rate 310000000bit ceil 310000000bit burst 16384 cburst 16384 quantum 1514\n\
         qdisc add dev h0 parent 1:3 bfifo limit 1514000\n\
         filter add dev h0 parent 1: protocol ip prio 1 u32 match ip src 10.0.2.2/32 flowid 1:3\n"
    );
}

#[test]
fn a_cable_connects_hosts_on_one_machine() {
    let plan = plan(&cluster(CLOUD));
    assert_eq!(crossed(&plan, 0, 1), ["a>b"]);
    assert_eq!(crossed(&plan, 1, 0), ["b>a"]);
    assert_eq!(plan.links["a>b"].limits.rate, Some(4_000_000_000));
    assert!(
        plan.addresses[0]
            .ends_with("link set r0h1 gso_max_segs 1 up\nroute add 10.0.1.2 dev r0h1 src 10.0.0.2\n")
    );
}

#[test]
fn what_namespaces_cannot_have_is_an_error_that_names_the_field() {
    let tree = "nic: 1Gbps\noversubscription: 1\n";
    for (text, expected) in [
        (format!("racks: 257\nhosts_per_rack: 1\n{tree}"), "racks: 257: a lab has addresses for at most 256 racks"),
        (
            format!("racks: 1\nhosts_per_rack: 257\n{tree}"),
            "hosts_per_rack: 257: a lab has addresses for at most 256 hosts in a rack",
        ),
        (format!("racks: 64\nhosts_per_rack: 20\n{tree}"), "racks: 1280 hosts in all: a lab has at most 1024"),
        (format!("racks: 1\nhosts_per_rack: 1\npriorities: 4\n{tree}"), "priorities: links of a lab have no classes"),
        (
            format!("racks: 1\nhosts_per_rack: 2\ncross_traffic: [{{link: r0:uplink, connections: 1}}]\n{tree}"),
            "cross_traffic: a lab has no traffic of others",
        ),
        (
            "shape: hose\nnic: 1Gbps\nracks: 2\nhosts_per_rack: 2\nshared_links: [{name: x, rate: 1Gbps, out_of: [r0h0, r1h0]}]\n"
                .to_owned(),
            "shared_links: `x:shared`: a lab has links that all paths",
        ),
        (
            "shape: hose\nnic: 1Gbps\nracks: 4\nhosts_per_rack: 1\nshared_links: [{name: x, rate: 1Gbps, \
             out_of: [r0, r1]}, {name: y, rate: 1Gbps, out_of: [r1, r2]}]\n"
                .to_owned(),
            "shared_links: `y:shared`: a lab has links",
        ),
    ] {
        let problem = problem(&text);
        assert!(problem.starts_with(expected), "{problem}");
    }
}

#[test]
fn a_scale_divides_all_rates_and_links_faster_than_any_machine_have_no_queue() {
    let cluster = cluster("racks: 1\nhosts_per_rack: 1\nnic: 20Tbps\nrack_link: 40Gbps\n");
    let name: LabName = "lab".parse().expect("a valid name");
    let rates = |scale| {
        let options = NetworkOptions { scale, ..NetworkOptions::default() };
        let plan = Plan::of(&name, &cluster, options).expect("a lab can have it");
        let rate = |link: &str| plan.links[link].limits.rate;
        [rate("r0h0:egress"), rate("r0:uplink")]
    };
    assert_eq!(rates(1), [None, Some(40_000_000_000)]);
    assert_eq!(rates(1000), [Some(20_000_000_000), Some(40_000_000)]);
    let host = HostId(0);
    assert_eq!(plan(&cluster).queues(host.index()), "");
}
