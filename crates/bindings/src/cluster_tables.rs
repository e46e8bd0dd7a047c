//! Parts of a cluster as tables: links, racks and hosts by name, for analyses outside of Rust.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int32Array, Int64Array, StringArray};
use arrow_pyarrow::{PyArrowType, Table};
use leeward_fabric::{Cluster, DomainId, Fabric, HostId, RackKind, ResourceId, ResourceKind};
use pyo3::prelude::*;

use crate::arrow_table::table;

/// Thousandths per processor.
const THOUSANDTHS: f64 = 1000.0;
/// Nanoseconds per second times bits per byte; converts ns/byte to bits per second.
const BIT_NANOS: f64 = 8e9;

/// Position of a link: its cross-section, its direction, and the host, rack or pod at its lower end.
struct Place<'a> {
    cross_section: &'static str,
    direction: &'static str,
    host: Option<&'a str>,
    rack: Option<&'a str>,
    pod: Option<&'a str>,
}

/// All links, one row each, in the order of resources.
pub fn links(cluster: &Cluster) -> PyResult<PyArrowType<Table>> {
    let Cluster { fabric, capacities, .. } = cluster;
    let links: Vec<(ResourceId, Place<'_>)> =
        fabric.all_resources().filter_map(|id| Some((id, place(fabric, id)?))).collect();
    let text = |field: fn(&Place<'_>) -> Option<String>| -> ArrayRef {
        Arc::new(links.iter().map(|(_, place)| field(place)).collect::<StringArray>())
    };
    let names = links.iter().map(|(id, _)| fabric.resource_name(*id));
    let rates = links.iter().map(|(id, _)| capacities.get(*id).0);
    table([
        ("link", Arc::new(Int32Array::from_iter_values((0..links.len()).map(|i| i as i32)))),
        ("name", Arc::new(StringArray::from_iter_values(names))),
        ("cross_section", text(|place| Some(place.cross_section.to_owned()))),
        ("direction", text(|place| Some(place.direction.to_owned()))),
        ("host", text(|place| place.host.map(str::to_owned))),
        ("rack", text(|place| place.rack.map(str::to_owned))),
        ("pod", text(|place| place.pod.map(str::to_owned))),
        ("capacity_bps", Arc::new(Int64Array::from_iter_values(rates))),
    ])
}

fn place(fabric: &Fabric, id: ResourceId) -> Option<Place<'_>> {
    let (cross_section, direction) = match fabric.kind(id) {
        ResourceKind::HostEgress => ("host-ToR", "up"),
        ResourceKind::HostIngress => ("host-ToR", "down"),
        ResourceKind::RackUplink => ("ToR-pod", "up"),
        ResourceKind::RackDownlink => ("ToR-pod", "down"),
        ResourceKind::PodUplink => ("pod-core", "up"),
        ResourceKind::PodDownlink => ("pod-core", "down"),
        ResourceKind::Pair => ("pair", "one-way"),
        ResourceKind::SharedLink => ("shared", "one-way"),
        ResourceKind::Device => return None,
    };
    let host = fabric.host_of(id).or_else(|| fabric.hosts_of_pair(id).map(|(from, _)| from));
    let domain = host.map(|host| fabric.rack_of(host)).or_else(|| fabric.domain_of_link(id));
    let (rack, pod) = match domain {
        Some(rack) if rack.index() < fabric.rack_count() => (Some(rack), fabric.parent(rack)),
        pod => (None, pod),
    };
    let name = |domain: Option<DomainId>| domain.map(|domain| fabric.domain_name(domain));
    let host = host.map(|host| fabric.host_name(host));
    Some(Place { cross_section, direction, host, rack: name(rack), pod: name(pod) })
}

/// All racks, one row each, with the totals of their hosts.
pub fn racks(cluster: &Cluster) -> PyResult<PyArrowType<Table>> {
    let fabric = &cluster.fabric;
    let racks = || fabric.all_racks();
    let hosts = |rack: DomainId| fabric.hosts(rack).map(HostId);
    let names = racks().map(|rack| fabric.domain_name(rack));
    let pods = racks().map(|rack| fabric.parent(rack).map(|pod| fabric.domain_name(pod)));
    let kinds = racks().map(|rack| match fabric.rack_kind(rack) {
        RackKind::Compute => "compute",
        RackKind::Disk => "disk",
        RackKind::Mixed => "mixed",
    });
    let cpus = racks().map(|rack| {
        let thousandths: Option<u64> = hosts(rack).map(|host| fabric.cpus(host).map(|cpus| cpus.0)).sum();
        thousandths.map(|cpus| cpus as f64 / THOUSANDTHS)
    });
    let rates = racks().map(|rack| {
        let devices = hosts(rack).flat_map(|host| fabric.devices(host));
        devices.map(|device| BIT_NANOS / device.read_ns_per_byte).sum::<f64>().round() as i64
    });
    let stored = racks().map(|rack| -> Option<i64> {
        let bytes: Option<u64> = hosts(rack).map(|host| fabric.storage(host).map(|bytes| bytes.0)).sum();
        bytes.and_then(|bytes| i64::try_from(bytes).ok())
    });
    table([
        ("rack", Arc::new(StringArray::from_iter_values(names))),
        ("pod", Arc::new(pods.collect::<StringArray>())),
        ("kind", Arc::new(StringArray::from_iter_values(kinds))),
        (
            "hosts",
            Arc::new(Int32Array::from_iter_values(racks().map(|rack| fabric.hosts(rack).len() as i32))),
        ),
        ("cpus", Arc::new(cpus.collect::<Float64Array>())),
        ("storage_bps", Arc::new(Int64Array::from_iter_values(rates))),
        ("storage_bytes", Arc::new(stored.collect::<Int64Array>())),
    ])
}

/// All hosts, one row each, with their positions.
pub fn hosts(cluster: &Cluster) -> PyResult<PyArrowType<Table>> {
    let fabric = &cluster.fabric;
    let hosts = || fabric.all_hosts();
    let racks = hosts().map(|host| fabric.domain_name(fabric.rack_of(host)));
    let pods = hosts().map(|host| fabric.parent(fabric.rack_of(host)).map(|pod| fabric.domain_name(pod)));
    table([
        ("host", Arc::new(StringArray::from_iter_values(hosts().map(|host| fabric.host_name(host))))),
        ("rack", Arc::new(StringArray::from_iter_values(racks))),
        ("pod", Arc::new(pods.collect::<StringArray>())),
    ])
}
