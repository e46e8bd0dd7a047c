//! Short description of a cluster: the number of each kind of resource, and the ratios between tiers of links.

use std::collections::BTreeMap;

use leeward_fabric::input::InputError;
use leeward_fabric::{
    Bandwidth, Bytes, Capacities, Cluster, Fabric, HostId, Nanos, ResourceId, ResourceKind, Shape,
};
use pyo3::prelude::*;
use serde::Serialize;

use crate::errors::PyInputError;
use crate::names::kind_name;

/// Description of a cluster. Equal links and equal devices share one line.
#[derive(Serialize)]
pub struct Description {
    name: String,
    shape: Shape,
    hosts: usize,
    racks: usize,
    pods: usize,
    links: Vec<Links>,
    devices: Vec<Devices>,
}

/// Links of one kind, with the smallest and the largest value of each property.
#[derive(Serialize)]
struct Links {
    kind: &'static str,
    count: usize,
    least_bps: i64,
    most_bps: i64,
    /// Sum of the capacities below divided by the capacity, if there are links below.
    least_oversubscription: Option<f64>,
    most_oversubscription: Option<f64>,
}

/// Devices with the same name and properties.
#[derive(Serialize)]
struct Devices {
    name: String,
    count: usize,
    read_bps: u64,
    write_bps: u64,
    capacity_bytes: Option<u64>,
}

impl Description {
    pub fn of(cluster: &Cluster) -> Description {
        let fabric = &cluster.fabric;
        Description {
            name: fabric.name().to_owned(),
            shape: fabric.shape(),
            hosts: fabric.host_count(),
            racks: fabric.rack_count(),
            pods: fabric.domain_count() - fabric.rack_count(),
            links: links(cluster),
            devices: devices(fabric),
        }
    }
}

fn links(Cluster { fabric, capacities, .. }: &Cluster) -> Vec<Links> {
    let mut kinds = BTreeMap::<ResourceKind, Links>::new();
    for link in fabric.all_resources() {
        let (kind, capacity) = (fabric.kind(link), capacities.get(link).0);
        if kind == ResourceKind::Device {
            continue;
        }
        let ratio = below(fabric, capacities, link).map(|below| below as f64 / capacity as f64);
        let links = kinds.entry(kind).or_insert(Links {
            kind: kind_name(kind),
            count: 0,
            least_bps: capacity,
            most_bps: capacity,
            least_oversubscription: ratio,
            most_oversubscription: ratio,
        });
        links.count += 1;
        links.least_bps = links.least_bps.min(capacity);
        links.most_bps = links.most_bps.max(capacity);
        links.least_oversubscription = links.least_oversubscription.zip(ratio).map(|(a, b)| a.min(b));
        links.most_oversubscription = links.most_oversubscription.zip(ratio).map(|(a, b)| a.max(b));
    }
    kinds.into_values().collect()
}

/// Total capacity of the links into an uplink or out of a downlink.
fn below(fabric: &Fabric, capacities: &Capacities, link: ResourceId) -> Option<i64> {
    let domain = fabric.domain_of_link(link)?;
    let hosts = || fabric.hosts(domain).map(HostId);
    let racks = || fabric.children(Some(domain));
    let sum = |links: &mut dyn Iterator<Item = Option<ResourceId>>| {
        links.flatten().fold(0_i64, |sum, link| sum.saturating_add(capacities.get(link).0))
    };
    match fabric.kind(link) {
        ResourceKind::RackUplink => Some(sum(&mut hosts().map(|host| fabric.egress(host)))),
        ResourceKind::RackDownlink => Some(sum(&mut hosts().map(|host| fabric.ingress(host)))),
        ResourceKind::PodUplink => Some(sum(&mut racks().map(|rack| fabric.out_of_domain(rack)))),
        ResourceKind::PodDownlink => Some(sum(&mut racks().map(|rack| fabric.into_domain(rack)))),
        _ => None,
    }
}

fn devices(fabric: &Fabric) -> Vec<Devices> {
    let bps = |ns_per_byte: f64| (8e9 / ns_per_byte).round() as u64;
    let mut counts = BTreeMap::new();
    for device in fabric.all_hosts().flat_map(|host| fabric.devices(host)) {
        let (read, write) = (bps(device.read_ns_per_byte), bps(device.write_ns_per_byte));
        *counts.entry((&*device.name, read, write, device.capacity.map(|bytes| bytes.0))).or_insert(0) += 1;
    }
    let line = |((name, read_bps, write_bps, capacity_bytes), count): ((&str, _, _, _), _)| Devices {
        name: name.to_owned(),
        count,
        read_bps,
        write_bps,
        capacity_bytes,
    };
    counts.into_iter().map(line).collect()
}

/// A rate in the form of cluster files: `10Gbps`; negative rates keep their sign.
#[pyfunction]
pub fn rate_text(bps: i64) -> String {
    let sign = if bps < 0 { "-" } else { "" };
    format!("{sign}{}", Bandwidth(bps.unsigned_abs()))
}

/// A size in the form of cluster files: `256MiB`.
#[pyfunction]
pub fn bytes_text(bytes: u64) -> String {
    Bytes(bytes).to_string()
}

/// Parses a time in the form of cluster files, such as `5min`, to seconds.
#[pyfunction]
pub fn seconds(text: &str) -> Result<f64, PyInputError> {
    let time: Nanos = text.parse().map_err(|error| InputError::new("time", format!("{error}")))?;
    Ok(time.as_secs_f64())
}
