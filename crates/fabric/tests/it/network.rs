//! Properties of every network: random trees and meshes, checked against the plan they came from.

use crate::support::{Plan, plans};
use leeward_fabric::{BITS_PER_BYTE, Cluster, DomainId, Endpoint, Fabric, Hop, HostId, ResourceKind};
use proptest::prelude::*;
use proptest::sample::Index;

/// Names of the links from one host to another, from a walk up from both ends to the common domain.
fn route(plan: &Plan, from: usize, to: usize) -> Vec<String> {
    let hosts = plan.hosts();
    if from == to {
        return Vec::new();
    }
    if plan.shape == "pipe" {
        return vec![format!("{}>{}", hosts[from].0.name, hosts[to].0.name)];
    }
    // For each step up: the domain, and the names of the links out of it and into it.
    let chain = |at: usize| {
        let (host, rack, pod) = hosts[at];
        let mut chain = vec![(host.name.clone(), "egress", "ingress")];
        if plan.shape == "tree" {
            chain.push((rack.name.clone(), "uplink", "downlink"));
            chain.extend(pod.map(|pod| (Plan::pod_name(pod), "uplink", "downlink")));
        }
        chain
    };
    let (up, down) = (chain(from), chain(to));
    let levels = up.iter().zip(&down).take_while(|(a, b)| a != b).count();
    let out = up[..levels].iter().map(|(name, out, _)| format!("{name}:{out}"));
    let into = down[..levels].iter().rev().map(|(name, _, into)| format!("{name}:{into}"));
    out.chain(into).collect()
}

/// Round-trip times of a tree: the time of the smallest group that has both hosts and states one.
#[test]
fn two_hosts_have_the_round_trip_time_of_their_smallest_group() {
    let text =
        "racks: 4\npods: 2\nhosts_per_rack: 2\nnic: 1Gbps\noversubscription: 1\npod_oversubscription: 1\n";
    let times = |rtt: &str| {
        let file = format!("{text}rtt: {rtt}\n");
        let fabric = Cluster::from_text("c.yaml", &file).expect("a valid file").fabric;
        assert!(fabric.has_round_trips());
        [(0, 0), (0, 1), (1, 2), (3, 4)].map(|(one, other)| {
            let time = fabric.round_trip(HostId(one), HostId(other));
            assert_eq!(time, fabric.round_trip(HostId(other), HostId(one)));
            time.map(|time| time.0)
        })
    };
    assert_eq!(
        times("{rack: 10us, pod: 20us, network: 30us}"),
        [Some(0), Some(10_000), Some(20_000), Some(30_000)]
    );
    assert_eq!(times("{network: 30us}"), [Some(0), Some(30_000), Some(30_000), Some(30_000)]);
    assert_eq!(times("{rack: 10us}"), [Some(0), Some(10_000), None, None]);
    let fabric = Cluster::from_text("c.yaml", text).expect("a valid file").fabric;
    assert!(!fabric.has_round_trips());
    assert_eq!(fabric.round_trip(HostId(0), HostId(1)), None);
}

#[test]
fn a_host_has_its_cost_or_that_of_its_rack_or_of_the_file() {
    let text = "shape: hose\nnic: 1Gbps\ncost: 0.25\nracks: [{hosts: [{name: a, cost: 3}, {name: b}]}, {cost: 0.000001}, {}]\n";
    let fabric = Cluster::from_text("c.yaml", text).expect("a valid file").fabric;
    assert_eq!(
        fabric.all_hosts().map(|host| fabric.cost(host).0).collect::<Vec<_>>(),
        [3_000_000, 250_000, 1, 250_000]
    );
    let free = Cluster::from_text(
        "c.yaml",
        &text.replace(": 0.25", ": 0").replace(": 3", ": 0").replace("0.000001", "0"),
    );
    assert!(fabric.has_costs() && !free.expect("a valid file").fabric.has_costs());
}

fn path(fabric: &Fabric, endpoints: &[Endpoint]) -> Vec<Hop> {
    let mut hops = Vec::new();
    fabric.path(endpoints, &mut hops);
    hops
}

fn named(fabric: &Fabric, hops: &[Hop]) -> Vec<(String, f64)> {
    hops.iter().map(|hop| (fabric.resource_name(hop.resource), hop.work)).collect()
}

proptest! {
    #[test]
    fn the_domains_of_each_level_partition_all_hosts_into_ranges(plan in plans()) {
        let fabric = plan.load().fabric;
        let top: Vec<DomainId> = fabric.children(None).collect();
        for level in [top, fabric.all_racks().collect()] {
            let mut next = 0;
            for domain in level {
                let hosts = fabric.hosts(domain);
                prop_assert_eq!(hosts.start, next);
                prop_assert!(hosts.end > hosts.start);
                next = hosts.end;
            }
            prop_assert_eq!(next as usize, fabric.host_count());
        }
        for rack in fabric.all_racks() {
            prop_assert!(fabric.hosts(rack).all(|host| fabric.rack_of(HostId(host)) == rack));
            if let Some(pod) = fabric.parent(rack) {
                prop_assert!(fabric.children(Some(pod)).any(|child| child == rack));
                prop_assert!(fabric.hosts(pod).start <= fabric.hosts(rack).start);
                prop_assert!(fabric.hosts(pod).end >= fabric.hosts(rack).end);
            }
        }
    }

    #[test]
    fn the_hosts_and_racks_of_a_file_are_those_of_the_network(plan in plans()) {
        let fabric = plan.load().fabric;
        prop_assert_eq!(fabric.shape().to_string(), plan.shape);
        prop_assert_eq!(fabric.rack_count(), plan.racks.len());
        prop_assert_eq!(fabric.domain_count(), plan.racks.len() + plan.pods.len());
        prop_assert_eq!(fabric.host_count(), plan.hosts().len());
        for (host, (planned, rack, pod)) in fabric.all_hosts().zip(plan.hosts()) {
            prop_assert_eq!(fabric.host_name(host), &planned.name);
            prop_assert_eq!(fabric.domain_name(fabric.rack_of(host)), &rack.name);
            let parent = fabric.parent(fabric.rack_of(host)).map(|pod| fabric.domain_name(pod).to_owned());
            prop_assert_eq!(parent, pod.map(Plan::pod_name));
            prop_assert_eq!(fabric.devices(host).len(), planned.devices);
        }
    }

    #[test]
    fn every_path_is_the_tree_path(plan in plans(), from: Index, to: Index) {
        let fabric = plan.load().fabric;
        let (from, to) = (from.index(fabric.host_count()), to.index(fabric.host_count()));
        let ends = [from, to].map(|host| Endpoint::Host(HostId(host as u32)));
        let expected: Vec<(String, f64)> =
            route(&plan, from, to).into_iter().map(|link| (link, BITS_PER_BYTE)).collect();
        prop_assert_eq!(named(&fabric, &path(&fabric, &ends)), expected);
    }

    #[test]
    fn a_path_through_many_endpoints_is_the_sum_of_its_legs(
        plan in plans(),
        stops in prop::collection::vec((any::<Index>(), any::<bool>()), 1..6),
    ) {
        let fabric = plan.load().fabric;
        let mut endpoints = Vec::new();
        let mut work = std::collections::BTreeMap::<String, f64>::new();
        let mut before = None;
        for (stop, write) in stops {
            let at = stop.index(fabric.host_count());
            let host = HostId(at as u32);
            endpoints.push(if write { Endpoint::DeviceWrite(host, 0) } else { Endpoint::DeviceRead(host, 0) });
            for link in before.replace(at).map_or(Vec::new(), |before| route(&plan, before, at)) {
                *work.entry(link).or_default() += 8.0;
            }
            if plan.hosts()[at].0.devices > 0 {
                // 50MB/s read, 25MB/s written.
                let name = format!("{}:disk0", fabric.host_name(host));
                *work.entry(name).or_default() += if write { 40.0 } else { 20.0 };
            }
        }
        let hops = path(&fabric, &endpoints);
        let mut actual = named(&fabric, &hops);
        actual.sort_by(|a, b| a.0.cmp(&b.0));
        // Each resource appears once, with all of its work.
        prop_assert_eq!(actual, work.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn a_path_is_appended_to_the_hops_before_it(plan in plans(), from: Index, to: Index) {
        let fabric = plan.load().fabric;
        let ends = [from, to].map(|host| Endpoint::Host(HostId(host.index(fabric.host_count()) as u32)));
        let once = path(&fabric, &ends);
        let mut twice = once.clone();
        fabric.path(&ends, &mut twice);
        prop_assert_eq!(&twice[..once.len()], &once[..]);
        prop_assert_eq!(&twice[once.len()..], &once[..]);
    }

    #[test]
    fn a_path_between_domains_is_the_host_path_without_host_links(plan in plans(), from: Index, to: Index) {
        let fabric = plan.load().fabric;
        let (from, to) = (from.index(fabric.host_count()), to.index(fabric.host_count()));
        let (from, to) = (HostId(from as u32), HostId(to as u32));
        let domain = |host| Endpoint::Domain(fabric.rack_of(host));
        let between = path(&fabric, &[domain(from), domain(to)]);
        let mut expected = path(&fabric, &[Endpoint::Host(from), Endpoint::Host(to)]);
        expected.retain(|hop| fabric.domain_of_link(hop.resource).is_some());
        prop_assert_eq!(between, expected);
    }

    #[test]
    fn every_name_resolves_to_its_id(plan in plans()) {
        let fabric = plan.load().fabric;
        for resource in fabric.all_resources() {
            prop_assert_eq!(fabric.resource(&fabric.resource_name(resource)), Some(resource));
        }
        for host in fabric.all_hosts() {
            prop_assert_eq!(fabric.host(fabric.host_name(host)), Some(host));
        }
        for domain in (0..fabric.domain_count() as u32).map(DomainId) {
            prop_assert_eq!(fabric.domain(fabric.domain_name(domain)), Some(domain));
        }
        for unknown in ["", ":", ">", "nobody", "nobody:egress", "rack-90:egress", "9.0:uplink", "9.0>9.0"] {
            prop_assert_eq!(fabric.resource(unknown), None);
        }
    }

    #[test]
    fn every_resource_belongs_to_its_host_or_domain(plan in plans()) {
        let fabric = plan.load().fabric;
        let mut seen = vec![0; fabric.resource_count()];
        for host in fabric.all_hosts() {
            for (link, kind) in [
                (fabric.egress(host), ResourceKind::HostEgress),
                (fabric.ingress(host), ResourceKind::HostIngress),
            ] {
                if let Some(link) = link {
                    prop_assert_eq!((fabric.kind(link), fabric.host_of(link)), (kind, Some(host)));
                    seen[link.index()] += 1;
                }
            }
            for other in fabric.all_hosts() {
                if let Some(pair) = fabric.pair(host, other) {
                    prop_assert_eq!(fabric.hosts_of_pair(pair), Some((host, other)));
                    prop_assert_eq!((fabric.kind(pair), fabric.host_of(pair)), (ResourceKind::Pair, None));
                    seen[pair.index()] += 1;
                }
            }
            let devices = fabric.devices(host).len() as u16;
            prop_assert_eq!(fabric.device(host, devices), None);
            for device in (0..devices).filter_map(|index| fabric.device(host, index)) {
                prop_assert_eq!((fabric.kind(device), fabric.host_of(device)), (ResourceKind::Device, Some(host)));
                seen[device.index()] += 1;
            }
        }
        for domain in (0..fabric.domain_count() as u32).map(DomainId) {
            for link in [fabric.out_of_domain(domain), fabric.into_domain(domain)].into_iter().flatten() {
                prop_assert_eq!(fabric.domain_of_link(link), Some(domain));
                seen[link.index()] += 1;
            }
        }
        prop_assert!(seen.iter().all(|&times| times == 1), "each resource once: {:?}", seen);
    }

    #[test]
    fn links_carry_the_rates_below_divided_by_the_oversubscription(plan in plans()) {
        let cluster = plan.load();
        let fabric = &cluster.fabric;
        prop_assert_eq!(cluster.capacities.as_slice().len(), fabric.resource_count());
        prop_assert!(cluster.capacities.as_slice().iter().all(|capacity| capacity.0 > 0));
        let rate = |name: String| fabric.resource(&name).map(|resource| cluster.capacities.get(resource).0);
        for (host, ..) in plan.hosts() {
            if plan.shape != "pipe" {
                let (up, down) = plan.host_nic(host);
                prop_assert_eq!(rate(format!("{}:egress", host.name)), Some(i64::from(up) * 1_000_000));
                prop_assert_eq!(rate(format!("{}:ingress", host.name)), Some(i64::from(down) * 1_000_000));
            }
        }
        if plan.shape != "tree" {
            return Ok(());
        }
        let divided = |sum: i64, ratio: u32| (sum as f64 / f64::from(ratio)).round() as i64;
        let mut pods = vec![(0, 0); plan.pods.len()];
        for (r, rack) in plan.racks.iter().enumerate() {
            let mbps = rack.hosts.iter().map(|host| plan.host_nic(host));
            let below = mbps.fold((0, 0), |sum, nic| (sum.0 + i64::from(nic.0), sum.1 + i64::from(nic.1)));
            let up = divided(below.0 * 1_000_000, rack.ratio);
            let down = divided(below.1 * 1_000_000, rack.ratio);
            prop_assert_eq!(rate(format!("{}:uplink", rack.name)), Some(up));
            prop_assert_eq!(rate(format!("{}:downlink", rack.name)), Some(down));
            if let Some(pod) = plan.pod_of(r) {
                pods[pod].0 += up;
                pods[pod].1 += down;
            }
        }
        for (pod, below) in pods.into_iter().enumerate() {
            let name = Plan::pod_name(pod);
            prop_assert_eq!(rate(format!("{name}:uplink")), Some(divided(below.0, plan.pod_ratio)));
            prop_assert_eq!(rate(format!("{name}:downlink")), Some(divided(below.1, plan.pod_ratio)));
        }
    }
}
