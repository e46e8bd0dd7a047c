//! Names of places and resources as users write them.
//!
//! Names have the same form as in the fabric, and a device may also have a direction: `r3h7:disk0:read` or
//! `r3h7:disk0:write`. A plain `r3h7:disk0` means writing.

use leeward_fabric::{Endpoint, Fabric, ResourceId, ResourceKind, Shape};

/// Direction of work on a device; links ignore it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Read,
    Write,
}

/// Splits `:read` or `:write` off the end of a name.
fn split_direction(name: &str) -> (&str, Option<Direction>) {
    if let Some(device) = name.strip_suffix(":read") {
        (device, Some(Direction::Read))
    } else if let Some(device) = name.strip_suffix(":write") {
        (device, Some(Direction::Write))
    } else {
        (name, None)
    }
}

/// Resource of a name; only a device has a direction.
pub fn resource(fabric: &Fabric, name: &str) -> Option<(ResourceId, Direction)> {
    let (plain, direction) = split_direction(name);
    let resource = fabric.resource(plain)?;
    let directed = direction.is_none() || fabric.kind(resource) == ResourceKind::Device;
    directed.then_some((resource, direction.unwrap_or(Direction::Write)))
}

/// Host, rack, pod or device of a name. Racks of a mesh only group hosts and are not places in it.
pub fn endpoint(fabric: &Fabric, name: &str) -> Option<Endpoint> {
    if let Some(host) = fabric.host(name) {
        return Some(Endpoint::Host(host));
    }
    if let Some(domain) = fabric.domain(name) {
        return (fabric.shape() == Shape::Tree).then_some(Endpoint::Domain(domain));
    }
    let (device, direction) = resource(fabric, name)?;
    let host = fabric.host_of(device)?;
    let index = (0..fabric.devices(host).len() as u16).find(|&i| fabric.device(host, i) == Some(device))?;
    Some(match direction {
        Direction::Read => Endpoint::DeviceRead(host, index),
        Direction::Write => Endpoint::DeviceWrite(host, index),
    })
}

/// Name of a kind of resource, as in a cluster's table of resources.
pub fn kind_name(kind: ResourceKind) -> &'static str {
    match kind {
        ResourceKind::HostEgress => "host_egress",
        ResourceKind::HostIngress => "host_ingress",
        ResourceKind::RackUplink => "rack_uplink",
        ResourceKind::RackDownlink => "rack_downlink",
        ResourceKind::PodUplink => "pod_uplink",
        ResourceKind::PodDownlink => "pod_downlink",
        ResourceKind::Pair => "pair",
        ResourceKind::SharedLink => "shared_link",
        ResourceKind::Device => "device",
    }
}
