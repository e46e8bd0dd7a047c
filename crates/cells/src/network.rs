//! Clusters of one cell and of the whole network, from the fields of a cell's cluster.
//!
//! A cell's cluster has counted racks and pods, which become lists: one entry of equal racks for each pod, and one pod
//! with one host for everything outside. The links of this pod are as wide as the core, so that they never limit.

use leeward_fabric::cluster::ClusterSource;
use leeward_fabric::input::InputError;
use leeward_fabric::{Cluster, HostId};
use serde_json::{Map, Value, json};

use crate::geometry::Geometry;

/// Names of the host that stands for everything outside a cell, of its rack and of its pod.
const OUTSIDE: [&str; 3] = ["outside", "outside-rack", "outside-pod"];
/// Rate of their links above the host.
const UNLIMITED: &str = "900Tbps";
/// Largest number of hosts of all cells. With the one for everything outside, a cluster has four million at most.
const MOST_HOSTS: u64 = 3_999_999;
/// Largest number of cells.
const MOST_CELLS: u32 = 1000;

/// Reads the fields of a cell's cluster.
///
/// # Errors
/// Returns an error if the cluster's file cannot be read.
pub(crate) fn fields(
    source: &ClusterSource,
    file: &str,
    base: &std::path::Path,
) -> Result<Map<String, Value>, InputError> {
    if let ClusterSource::File(_) = source {
        // The reader of cluster files names lines.
        source.read(file, base)?;
    }
    source.fields(file, base)
}

/// An error about a field of the cluster.
fn invalid<T>(field: &str, message: String) -> Result<T, InputError> {
    Err(InputError::new("cells", message).in_field(format!("cluster.{field}")))
}

/// Reads the numbers of racks, pods and hosts.
///
/// # Errors
/// Returns an error if they are not counts, or if there are too many hosts.
pub(crate) fn geometry(fields: &Map<String, Value>, cells: u32) -> Result<Geometry, InputError> {
    if !(1..=MOST_CELLS).contains(&cells) {
        let message = format!("{cells}: expected 1 to {MOST_CELLS}");
        return Err(InputError::new("cells", message).in_field("cells"));
    }
    let count = |field: &str, example: u32| match fields.get(field).map(|value| (value, value.as_u64())) {
        Some((_, Some(count @ 1..=MOST_HOSTS))) => Ok(count),
        Some((value, _)) => {
            let what = if value.is_array() { "a list".to_owned() } else { format!("`{value}`") };
            invalid(field, format!("{what}: expected a count, because all cells and their pods are alike"))
        }
        None => invalid(field, format!("missing; expected for example `{field}: {example}`")),
    };
    let (racks, pods, hosts) = (count("racks", 200)?, count("pods", 4)?, count("hosts_per_rack", 20)?);
    if !racks.is_multiple_of(pods) {
        return invalid("pods", format!("{racks} racks cannot be distributed evenly to {pods} pods"));
    }
    let all = racks.saturating_mul(hosts).saturating_mul(u64::from(cells));
    if all > MOST_HOSTS {
        return invalid("racks", format!("{all} hosts in {cells} cells: expected at most {MOST_HOSTS}"));
    }
    let narrow = |count: u64| count as u32;
    Ok(Geometry { cells, pods: narrow(pods), racks: narrow(racks / pods), hosts: narrow(hosts) })
}

/// The network of `cells` cells as one cluster, with the host that stands for everything outside.
///
/// # Errors
/// Returns an error for an invalid field.
pub(crate) fn cluster(
    fields: &Map<String, Value>,
    geometry: &Geometry,
    cells: u32,
) -> Result<Cluster, InputError> {
    let [host, rack, pod] = OUTSIDE;
    let names: Vec<String> = (0..cells * geometry.pods).map(|pod| format!("p{pod}")).collect();
    let mut racks: Vec<Value> =
        names.iter().map(|pod| json!({ "count": geometry.racks, "pod": pod })).collect();
    racks.push(json!({
        "name": rack, "pod": pod, "kind": "disk", "link": UNLIMITED,
        "hosts": [{ "name": host, "devices": [] }],
    }));
    let mut pods: Vec<Value> = names.iter().map(|pod| json!({ "name": pod })).collect();
    pods.push(json!({ "name": pod, "link": UNLIMITED }));
    let mut fields = fields.clone();
    fields.insert("racks".to_owned(), Value::Array(racks));
    fields.insert("pods".to_owned(), Value::Array(pods));
    Cluster::from_json("cells", &Value::Object(fields)).map_err(|error| error.under("cluster"))
}

/// The host that stands for everything outside: the last one.
pub(crate) fn outside(cluster: &Cluster) -> HostId {
    HostId(cluster.fabric.host_count() as u32 - 1)
}

#[cfg(test)]
mod tests {
    use leeward_fabric::{BITS_PER_BYTE, DomainId, Endpoint, ResourceId};

    use super::*;
    use crate::geometry::Direction;

    fn whole() -> (Geometry, Cluster) {
        let fields = json!({
            "racks": 6, "hosts_per_rack": 3, "pods": 2, "nic": "10Gbps", "oversubscription": 2, "pod_link": "40Gbps",
        });
        let Value::Object(fields) = fields else { unreachable!("the literal is an object") };
        let geometry = geometry(&fields, 2).expect("a valid cluster");
        (geometry, cluster(&fields, &geometry, geometry.cells).expect("a valid cluster"))
    }

    #[test]
    fn the_whole_network_has_all_cells_and_one_host_for_the_outside() {
        let (geometry, cluster) = whole();
        assert_eq!(geometry, Geometry { cells: 2, pods: 2, racks: 3, hosts: 3 });
        let fabric = &cluster.fabric;
        assert_eq!((fabric.host_count(), fabric.rack_count(), fabric.domain_count()), (37, 13, 18));
        let outside = outside(&cluster);
        assert_eq!(fabric.host_name(outside), OUTSIDE[0]);
        assert_eq!(fabric.rack_of(outside), DomainId(12));
        for host in fabric.all_hosts().filter(|&host| host != outside) {
            assert_eq!(fabric.rack_of(host).0, geometry.rack_of(host));
            let pod = fabric.parent(fabric.rack_of(host)).expect("racks are in pods");
            assert_eq!(pod.0 - 13, geometry.pod_of(geometry.rack_of(host)));
        }
    }

    #[test]
    fn paths_by_arithmetic_are_those_of_the_fabric() {
        let (geometry, cluster) = whole();
        let fabric = &cluster.fabric;
        let resource = |link: usize| {
            let racks = geometry.rack_links();
            let domain = if link < racks { link / 2 } else { (link - racks) / 2 + 13 };
            let domain = DomainId(domain as u32);
            let up = link % 2 == Direction::Up as usize;
            if up { fabric.out_of_domain(domain) } else { fabric.into_domain(domain) }
        };
        let hosts = geometry.all_hosts();
        for first in 0..hosts {
            for second in 0..hosts {
                let chain = [first, second, (first * 5 + second * 7 + 1) % hosts].map(HostId);
                let mut hops = Vec::new();
                fabric.path(&chain.map(Endpoint::Host), &mut hops);
                hops.retain(|hop| fabric.domain_of_link(hop.resource).is_some());
                let mut expected: Vec<(ResourceId, f64)> =
                    hops.iter().map(|hop| (hop.resource, hop.work / BITS_PER_BYTE)).collect();
                let mut links = Vec::new();
                geometry.path(&chain, &mut links);
                let mut found: Vec<(ResourceId, f64)> = Vec::new();
                for link in links.into_iter().filter_map(resource) {
                    match found.iter_mut().find(|(known, _)| *known == link) {
                        Some((_, crossings)) => *crossings += 1.0,
                        None => found.push((link, 1.0)),
                    }
                }
                expected.sort_by_key(|(link, _)| *link);
                found.sort_by_key(|(link, _)| *link);
                assert_eq!(found, expected, "{chain:?}");
            }
        }
    }
}
