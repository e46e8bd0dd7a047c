//! Measured meshes in the cluster file: measured rates replace the rates of pairs, or of hosts.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::mesh::{rtt_text, shared_link_name, source_rate};
use crate::report;
use crate::rules::Level;

/// Shape of a cluster file that can store a measured mesh: `pipe` or `hose`.
///
/// # Errors
/// A message for a tree: its links are shared, so the rate of a pair of hosts is not the capacity of any link.
pub fn mesh_shape(file: &Value) -> Result<&'static str, String> {
    match file.get("shape").and_then(Value::as_str) {
        Some("pipe") => Ok("pipe"),
        Some("hose") => Ok("hose"),
        _ => Err(
            "the cluster is a tree, which has no rates between pairs of hosts; only a cluster of `shape` \
                  pipe or hose can store a mesh"
                .to_owned(),
        ),
    }
}

/// Puts a measured mesh into a cluster file: measured rates and round-trip times replace the old ones, and everything else
/// stays. A hose gets the limit of each source, and the rate of each path. Measured shared links replace those of earlier surveys.
///
/// # Errors
/// A message for a mesh that does not fit; the file may then be partly changed and must not be used.
pub fn apply_mesh(file: &mut Value, mesh: &report::Mesh) -> Result<(), String> {
    let shape = mesh_shape(file)?;
    let mut rates: BTreeMap<&str, Vec<(&str, f64)>> = BTreeMap::new();
    for path in &mesh.paths {
        let rate = path.rate_bps.filter(|rate| (1.0..1e18).contains(rate));
        let rate = rate.ok_or_else(|| format!("no rate from {} to {}", path.from, path.to))?;
        rates.entry(&path.from).or_default().push((&path.to, rate));
    }
    if shape == "hose" {
        rates.iter().try_for_each(|(host, rates)| replace_nic(file, host, rates, mesh))?;
    }
    replace_shared_links(file, mesh)?;
    replace_pairs(file, &rates, mesh, shape)
}

/// True if both hosts are on one machine, by the hops of the mesh in either direction.
fn is_within_machine(mesh: &report::Mesh, from: &str, to: &str) -> bool {
    let hops = |topology: &report::Topology| {
        let at = |name: &str| topology.hosts.iter().position(|host| host == name);
        let (from, to) = (at(from)?, at(to)?);
        let is_near =
            |from: usize, to: usize| topology.hops.get(from)?.get(to).copied()?.filter(|&hops| hops == 1);
        is_near(from, to).or_else(|| is_near(to, from))
    };
    mesh.topology.as_ref().and_then(hops).is_some()
}

/// Replaces the shared links of earlier surveys by those of this one. The links of other hosts stay.
fn replace_shared_links(file: &mut Value, mesh: &report::Mesh) -> Result<(), String> {
    let Some(found) = &mesh.bottlenecks else { return Ok(()) };
    let Some(file) = file.as_object_mut() else { return Err("the cluster file has no fields".to_owned()) };
    let links = file.entry("shared_links").or_insert_with(|| json!([]));
    let Some(links) = links.as_array_mut() else { return Err("`shared_links` is not a list".to_owned()) };
    let measured = |link: &Value| {
        let names = [Level::Rack, Level::Subtree];
        let mut names =
            mesh.hosts.iter().flat_map(|host| names.map(|level| shared_link_name(level, &host.name)));
        link["name"].as_str().is_some_and(|name| names.any(|measured| measured == name))
    };
    links.retain(|link| !measured(link));
    links.extend(
        found
            .shared_links
            .iter()
            .map(|link| json!({ "name": link.name, "rate": bps(link.rate_bps), "out_of": link.hosts })),
    );
    Ok(())
}

fn bps(rate: f64) -> Value {
    json!(format!("{}bps", rate.round()))
}

/// Replaces the rates of ordered pairs.
fn replace_pairs(
    file: &mut Value,
    rates: &BTreeMap<&str, Vec<(&str, f64)>>,
    mesh: &report::Mesh,
    shape: &str,
) -> Result<(), String> {
    let Some(file) = file.as_object_mut() else { return Err("the cluster file has no fields".to_owned()) };
    // On a pipe mesh without shared links, a path crosses its pair only, so its machine has no effect.
    let has_shared =
        file.get("shared_links").and_then(Value::as_array).is_some_and(|links| !links.is_empty());
    let machines_count = shape == "hose" || has_shared;
    let pairs = file.entry("pairs").or_insert_with(|| json!([]));
    let Some(pairs) = pairs.as_array_mut() else { return Err("`pairs` is not a list".to_owned()) };
    let is_measured = |pair: &Value| {
        let end = |end: &str| pair[end].as_str().unwrap_or_default();
        rates.get(end("from")).is_some_and(|rates| rates.iter().any(|&(to, _)| to == end("to")))
    };
    pairs.retain(|pair| !is_measured(pair));
    let ends = |path: &'_ report::Path| (path.from.clone(), path.to.clone());
    let rtts: BTreeMap<(String, String), f64> =
        mesh.paths.iter().filter_map(|path| Some((ends(path), path.rtt_s?))).collect();
    for (from, rates) in rates {
        pairs.extend(rates.iter().map(|(to, rate)| {
            let mut pair = json!({ "from": from, "to": to, "rate": bps(*rate) });
            if machines_count && is_within_machine(mesh, from, to) {
                pair["same_machine"] = json!(true);
            }
            if let Some(seconds) = rtts.get(&(from.to_string(), to.to_string())) {
                pair["rtt"] = json!(rtt_text((seconds * 1e9) as u64));
            }
            pair
        }));
    }
    Ok(())
}

/// Replaces the outbound rate of a host by its limit as a source. The inbound rate was not measured and stays.
fn replace_nic(
    file: &mut Value,
    host: &str,
    rates: &[(&str, f64)],
    mesh: &report::Mesh,
) -> Result<(), String> {
    let all = || rates.iter().map(|&(_, rate)| rate).collect::<Vec<_>>();
    let leaving = rates.iter().filter(|&&(to, _)| !is_within_machine(mesh, host, to));
    let leaving: Vec<f64> = leaving.map(|&(_, rate)| rate).collect();
    let up = source_rate(&leaving).or_else(|| source_rate(&all())).ok_or("a host without paths")?;
    let file_nic = file.get("nic").cloned();
    let (entry, rack_nic) = find_host(file, host).ok_or_else(|| {
        format!("`{host}` is not in the cluster file by name; list it by its name under `hosts`")
    })?;
    let before = entry.get("nic").cloned().or(rack_nic).or(file_nic).unwrap_or_default();
    let down = before.get("down").cloned().unwrap_or(before);
    entry["nic"] = json!({ "up": bps(up), "down": down });
    Ok(())
}

/// A host in the cluster file, and the `nic` of its rack.
fn find_host<'a>(file: &'a mut Value, name: &str) -> Option<(&'a mut Value, Option<Value>)> {
    fn find_in<'a>(hosts: Option<&'a mut Value>, name: &str) -> Option<&'a mut Value> {
        hosts?.as_array_mut()?.iter_mut().find(|host| host["name"] == name)
    }
    let file = file.as_object_mut()?;
    if file.contains_key("hosts") {
        return find_in(file.get_mut("hosts"), name).map(|host| (host, None));
    }
    file.get_mut("racks")?.as_array_mut()?.iter_mut().find_map(|rack| {
        let nic = rack.get("nic").cloned();
        find_in(rack.get_mut("hosts"), name).map(|host| (host, nic))
    })
}

#[cfg(test)]
mod tests {
    use leeward_fabric::{Bandwidth, Load};
    use leeward_testing::clusters::cluster;

    use super::*;
    use crate::survey::Host;

    /// A mesh between these hosts; `rate` gives the rate of each pair by position.
    fn mesh(hosts: &[&str], rate: impl Fn(usize, usize) -> Option<f64>) -> report::Mesh {
        let mut paths = Vec::new();
        for (i, from) in hosts.iter().enumerate() {
            for (j, to) in hosts.iter().enumerate().filter(|&(j, _)| j != i) {
                let path = json!({ "from": from, "to": to, "rate_bps": rate(i, j) });
                let text = |field: &str| path[field].as_str().unwrap_or_default().to_owned();
                let rate_bps = path["rate_bps"].as_f64();
                paths.push(report::Path {
                    from: text("from"),
                    to: text("to"),
                    rate_bps,
                    ..report::Path::default()
                });
            }
        }
        report::Mesh { hosts: Vec::new(), paths, topology: None, bottlenecks: None, cluster: None }
    }

    fn capacity(file: &Value, name: &str) -> Load {
        let cluster = cluster(&file.to_string());
        cluster.capacities.as_slice()[cluster.fabric.resource(name).expect("a link").index()]
    }

    #[test]
    fn measured_pairs_replace_the_old_rates_and_the_rest_is_unchanged() {
        let mut file = json!({
            "shape": "pipe", "hosts": 3, "pair": "5Mbps", "cpus": 4,
            "pairs": [{ "from": "h0", "to": "h1", "rate": "7Mbps" }, { "from": "h0", "to": "h2", "rate": "8Mbps" }],
        });
        apply_mesh(&mut file, &mesh(&["h0", "h1"], |i, _| Some(1e6 * (i + 1) as f64 + 0.2))).expect("a mesh");
        let expected = [("h0>h1", 1), ("h1>h0", 2), ("h0>h2", 8), ("h2>h1", 5)];
        for (name, mbps) in expected {
            assert_eq!(capacity(&file, name), Bandwidth(mbps * 1_000_000).as_load(), "{name}: {file}");
        }
        assert_eq!(file["cpus"], 4);
        let before = file.clone();
        apply_mesh(&mut file, &mesh(&["h0", "h1"], |i, _| Some(1e6 * (i + 1) as f64 + 0.2))).expect("a mesh");
        assert_eq!(
            file["pairs"].as_array().map(Vec::len),
            before["pairs"].as_array().map(Vec::len),
            "once each"
        );
    }

    #[test]
    fn measured_rates_set_the_hose_rates_of_hosts() {
        let rate = |i: usize, j: usize| Some(1e6 * (10 * i + j) as f64 + 1e6);
        for mut file in [
            json!({ "shape": "hose", "nic": "1Gbps", "hosts": [{ "name": "a" }, { "name": "b" }, { "name": "c" }] }),
            json!({ "shape": "hose", "racks": [
                { "nic": { "up": "2Gbps", "down": "1Gbps" }, "hosts": [{ "name": "a" }, { "name": "b" }] },
                { "hosts": [{ "name": "c", "nic": "1Gbps" }] },
            ]}),
        ] {
            apply_mesh(&mut file, &mesh(&["a", "b", "c"], rate)).expect("a mesh");
            // The lower of two rates that are near each other; of two others, the greater.
            assert_eq!(capacity(&file, "b:egress"), Load(11_000_000), "{file}");
            assert_eq!(capacity(&file, "a:egress"), Load(3_000_000));
            assert_eq!(capacity(&file, "b>a"), Load(11_000_000));
            assert_eq!(capacity(&file, "b:ingress"), Load(1_000_000_000));
        }
    }

    #[test]
    fn found_links_replace_those_of_earlier_surveys_of_the_same_hosts() {
        let mut measured = mesh(&["a", "b", "c"], |_, _| Some(9e6));
        measured.hosts =
            ["a", "b", "c"].map(|name| Host { name: name.to_owned(), address: name.to_owned() }).into();
        let hops = |near: u8| {
            vec![vec![None, Some(near), Some(4)], vec![Some(near), None, Some(4)], vec![Some(4); 3]]
        };
        let hosts = ["a", "b", "c"].map(str::to_owned).to_vec();
        measured.topology =
            Some(report::Topology { hosts, hops: hops(1), racks: vec![], subtrees: vec![], misfits: vec![] });
        let link = |rate_bps| report::SharedLink {
            name: "rack-of-a".to_owned(),
            level: Level::Rack,
            hosts: vec!["a".to_owned(), "b".to_owned()],
            rate_bps,
        };
        measured.bottlenecks = Some(report::Bottlenecks { shared_links: vec![link(6e6)], ..found() });
        let mut file = json!({
            "shape": "hose", "nic": "1Gbps", "hosts": [{ "name": "a" }, { "name": "b" }, { "name": "c" }, { "name": "d" }],
            "shared_links": [
                { "name": "rack-of-a", "rate": "1Mbps", "out_of": ["a"] },
                { "name": "subtree-of-b", "rate": "2Mbps", "out_of": ["b"] },
                { "name": "rack-of-d", "rate": "3Mbps", "out_of": ["d"] },
            ],
        });
        apply_mesh(&mut file, &measured).expect("a mesh");
        assert_eq!(capacity(&file, "rack-of-a:shared"), Load(6_000_000), "{file}");
        assert_eq!(capacity(&file, "rack-of-d:shared"), Load(3_000_000), "another host");
        let cluster = cluster(&file.to_string());
        assert_eq!(cluster.fabric.resource("subtree-of-b:shared"), None, "not found again");
        let host = |name: &str| cluster.fabric.host(name).expect("a host");
        assert!(cluster.fabric.is_within_machine(host("a"), host("b")));
        assert!(!cluster.fabric.is_within_machine(host("a"), host("c")));
    }

    /// A search that found nothing.
    fn found() -> report::Bottlenecks {
        report::Bottlenecks {
            hosts: vec![],
            between_four: vec![],
            from_one: vec![],
            between_four_share: 0,
            from_one_share: 0,
            sum: None,
            kind: None,
            uplinks: vec![],
            subtrees: vec![],
            shared_links: vec![],
            errors: vec![],
            topology: None,
        }
    }

    #[test]
    fn a_mesh_that_does_not_fit_or_lacks_a_rate_is_rejected() {
        let full = mesh(&["h0", "h1"], |_, _| Some(1e6));
        let lacks = mesh(&["h0", "h1"], |i, _| (i == 0).then_some(1e6));
        for (mut file, mesh, part) in [
            (json!({ "racks": 2, "hosts_per_rack": 1 }), &full, "a tree"),
            (
                json!({ "shape": "hose", "hosts": 2, "nic": "1Gbps" }),
                &full,
                "`h0` is not in the cluster file by name",
            ),
            (json!({ "shape": "pipe", "hosts": 2, "pair": "1Mbps" }), &lacks, "no rate from h1 to h0"),
        ] {
            let why = apply_mesh(&mut file, mesh).expect_err("an error");
            assert!(why.contains(part), "{why}");
        }
    }
}
