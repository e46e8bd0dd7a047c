//! The example cluster files load, and mean what their comments say.

use leeward_fabric::{Bandwidth, Cluster, Discipline, Endpoint, HostId, RackKind};

fn example(name: &str) -> Cluster {
    let path = format!("{}/../../examples/clusters/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    Cluster::from_file(&path).unwrap_or_else(|error| panic!("{error}"))
}

/// Capacity by name of resource, as people write it.
fn capacity(cluster: &Cluster, name: &str) -> String {
    let resource = cluster.fabric.resource(name).unwrap_or_else(|| panic!("{name}: no such resource"));
    Bandwidth(cluster.capacities.get(resource).0 as u64).to_string()
}

fn hops(cluster: &Cluster, endpoints: &[Endpoint]) -> Vec<(String, f64)> {
    let mut hops = Vec::new();
    cluster.fabric.path(endpoints, &mut hops);
    hops.iter().map(|hop| (cluster.fabric.resource_name(hop.resource), hop.work)).collect()
}

fn host(cluster: &Cluster, name: &str) -> HostId {
    cluster.fabric.host(name).unwrap_or_else(|| panic!("{name}: no such host"))
}

#[test]
fn the_reference_cluster_is_3000_hosts_behind_uplinks_of_2_gbps() {
    let cluster = example("reference");
    assert_eq!((cluster.fabric.rack_count(), cluster.fabric.host_count()), (150, 3_000));
    for (name, expected) in [
        ("r0h0:egress", "1Gbps"),
        ("r149h19:ingress", "1Gbps"),
        ("r0:uplink", "2Gbps"),
        ("r149:downlink", "2Gbps"),
    ] {
        assert_eq!(capacity(&cluster, name), expected, "{name}");
    }
    let disk = &cluster.fabric.devices(host(&cluster, "r3h7"))[0];
    assert_eq!((disk.read_ns_per_byte, disk.write_ns_per_byte), (20.0, 20.0));
    assert_eq!(cluster.fabric.storage(HostId(0)), None);
}

#[test]
fn a_chain_write_crosses_both_disks_and_each_link_on_its_way() {
    let cluster = example("reference");
    let [source, first, second] = ["r0h0", "r7h3", "r7h4"].map(|name| host(&cluster, name));
    let chain = [Endpoint::Host(source), Endpoint::DeviceWrite(first, 0), Endpoint::DeviceWrite(second, 0)];
    let expected = [
        ("r0h0:egress", 8.0),
        ("r0:uplink", 8.0),
        ("r7:downlink", 8.0),
        ("r7h3:ingress", 8.0),
        ("r7h3:disk0", 20.0),
        ("r7h3:egress", 8.0),
        ("r7h4:ingress", 8.0),
        ("r7h4:disk0", 20.0),
    ];
    assert_eq!(hops(&cluster, &chain), expected.map(|(name, work)| (name.to_owned(), work)));
}

#[test]
fn a_link_crossed_twice_is_one_hop_with_the_work_of_both() {
    let cluster = example("reference");
    let [source, away, home] = ["r0h0", "r7h3", "r0h1"].map(|name| host(&cluster, name));
    let there_and_back =
        [Endpoint::Host(source), Endpoint::Host(away), Endpoint::Host(home), Endpoint::Host(away)];
    let expected = [
        ("r0h0:egress", 8.0),
        ("r0:uplink", 16.0),
        ("r7:downlink", 16.0),
        ("r7h3:ingress", 16.0),
        ("r7h3:egress", 8.0),
        ("r7:uplink", 8.0),
        ("r0:downlink", 8.0),
        ("r0h1:ingress", 8.0),
        ("r0h1:egress", 8.0),
    ];
    assert_eq!(hops(&cluster, &there_and_back), expected.map(|(name, work)| (name.to_owned(), work)));
}

#[test]
fn between_pods_a_path_crosses_six_links() {
    let cluster = example("pods");
    let ends = ["r0h0", "r12h0"].map(|name| Endpoint::Host(host(&cluster, name)));
    let expected = ["r0h0:egress", "r0:uplink", "p0:uplink", "p1:downlink", "r12:downlink", "r12h0:ingress"];
    assert_eq!(hops(&cluster, &ends), expected.map(|name| (name.to_owned(), 8.0)));
    assert_eq!(capacity(&cluster, "r0:uplink"), "100Gbps");
    assert_eq!(capacity(&cluster, "p7:downlink"), "400Gbps");
    let discipline =
        cluster.fabric.all_resources().map(|resource| cluster.fabric.discipline(resource)).next();
    assert_eq!(discipline, Some(Discipline::StrictPriority { classes: 8 }));
}

#[test]
fn a_pipe_mesh_has_the_rate_of_each_pair() {
    let cluster = example("pipe");
    assert_eq!(cluster.fabric.resource_count(), 90);
    for (pair, expected) in [
        ("h0>h1", "4Gbps"),
        ("h1>h0", "4Gbps"),
        ("h3>h7", "310Mbps"),
        ("h7>h3", "950Mbps"),
        ("h9>h8", "950Mbps"),
    ] {
        assert_eq!(capacity(&cluster, pair), expected, "{pair}");
    }
}

#[test]
fn a_hose_mesh_is_limited_at_its_hosts() {
    let cluster = example("hose");
    let fabric = &cluster.fabric;
    let ends = ["web-1", "store-1"].map(|name| Endpoint::Host(host(&cluster, name)));
    assert_eq!(hops(&cluster, &ends), ["web-1:egress", "store-1:ingress"].map(|name| (name.to_owned(), 8.0)));
    assert_eq!(capacity(&cluster, "web-1:egress"), "300Mbps");
    assert_eq!(capacity(&cluster, "web-1:ingress"), "1Gbps");
    assert_eq!(capacity(&cluster, "store-1:egress"), "2Gbps");
    assert_eq!((fabric.rack_count(), fabric.host_count()), (4, 4));
    assert_eq!(fabric.domain_name(fabric.rack_of(host(&cluster, "web-2"))), "web-2");
}

#[test]
fn the_irregular_cluster_matches_its_comments() {
    let cluster = example("irregular");
    let fabric = &cluster.fabric;
    let mut table = format!("{} hosts, {} racks\n", fabric.host_count(), fabric.rack_count());
    for rack in fabric.all_racks() {
        let pod = fabric.parent(rack).map_or("-", |pod| fabric.domain_name(pod));
        let (name, kind) = (fabric.domain_name(rack), fabric.rack_kind(rack));
        let [up, down] = ["uplink", "downlink"].map(|end| capacity(&cluster, &format!("{name}:{end}")));
        let fault = fabric.fault_domain(rack).index();
        table += &format!("{name}: {kind:?} in {pod}, up {up}, down {down}, fault domain {fault}\n");
        for host in fabric.hosts(rack).map(HostId) {
            let name = fabric.host_name(host);
            let [up, down] = ["egress", "ingress"].map(|end| capacity(&cluster, &format!("{name}:{end}")));
            let tags = ["gpu", "archive", "gateway"].into_iter();
            let tags: Vec<_> =
                tags.filter(|tag| fabric.tags(host) & fabric.tag_mask(tag).unwrap_or(0) != 0).collect();
            let devices: Vec<_> = fabric.devices(host).iter().map(|device| &*device.name).collect();
            let storage = fabric.storage(host).map_or("-".into(), |bytes| bytes.to_string());
            table += &format!("    {name}: up {up}, down {down}, {tags:?} {devices:?} {storage}\n");
        }
    }
    for pod in ["east", "west"] {
        let [up, down] = ["uplink", "downlink"].map(|end| capacity(&cluster, &format!("{pod}:{end}")));
        table += &format!("{pod}: up {up}, down {down}\n");
    }
    assert_eq!(fabric.tag_mask("no-such-tag"), None);
    assert_eq!(fabric.rack_kind(fabric.domain("old-2").expect("a rack of the file")), RackKind::Disk);
    insta::assert_snapshot!(table);
}

#[test]
fn a_measured_cloud_states_paths_sources_and_shared_links() {
    let cluster = example("cloud");
    for (name, expected) in [
        ("vm0:egress", "950Mbps"),
        ("vm0>vm1", "4Gbps"),
        ("vm2>vm5", "310Mbps"),
        ("out-of-r0:shared", "1.9Gbps"),
    ] {
        assert_eq!(capacity(&cluster, name), expected, "{name}");
    }
    let uplink = cluster.fabric.resource("out-of-r0:shared").expect("a link of the file");
    assert_eq!(cluster.cross_traffic, [(uplink, 1.0)]);
    for (from, to, links) in [
        ("vm0", "vm1", &["vm0>vm1"][..]),
        ("vm2", "vm5", &["vm2:egress", "vm2>vm5", "out-of-r0:shared", "vm5:ingress"]),
        ("vm2", "vm3", &["vm2:egress", "vm3:ingress"]),
        ("vm6", "vm3", &["vm6:egress", "vm6>vm3", "vm3:ingress"]),
    ] {
        let ends = [from, to].map(|name| Endpoint::Host(host(&cluster, name)));
        let crossed: Vec<String> = hops(&cluster, &ends).into_iter().map(|(name, _)| name).collect();
        assert_eq!(crossed, links, "{from} to {to}");
    }
}

#[test]
fn clusters_with_the_same_network_are_equal_in_any_form() {
    for name in ["four-racks", "irregular", "pods", "pipe", "cloud"] {
        let cluster = example(name);
        let json: serde_json::Value =
            leeward_fabric::input::read_yaml("cluster", &cluster.source).expect("a valid file");
        let same = Cluster::from_json("cluster", &json).expect("a valid value");
        assert_eq!(cluster, same, "{name}");
        assert_eq!(Cluster::from_text("again", &same.source).expect("its own text"), cluster, "{name}");
    }
    let cluster = example("four-racks");
    let faster = Cluster::from_text("faster", &cluster.source.replace("nic: 1Gbps", "nic: 2Gbps"));
    assert_ne!(faster.expect("a valid file"), cluster);
    let renamed = Cluster::from_text("renamed", &cluster.source.replace("name: four racks", "name: racks"));
    assert_ne!(renamed.expect("a valid file"), cluster);
}
