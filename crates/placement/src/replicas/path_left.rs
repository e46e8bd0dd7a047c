//! Capacity left on the way from a stored copy.

use std::cmp::Reverse;

use leeward_fabric::{BITS_PER_BYTE, Endpoint, Fabric, Hop, HostId, Nanos, ResourceId};
use leeward_ledger::View;

use crate::decision::oldest_of;

/// Capacity left on links and a disk. Resources with unknown load are counted, and do not limit it. If hosts have no
/// counters, all ways have as many of them; if one host has stopped to report, its way has more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PathLeft {
    /// Number of resources with unknown load.
    pub unknown: u32,
    /// Least capacity left on the others, in bit/s; `None` if there is none.
    pub left: Option<i64>,
    /// The resource with this capacity.
    pub limit: Option<ResourceId>,
    /// End of the oldest window used.
    pub oldest: Option<Nanos>,
}

impl PathLeft {
    /// Capacity left on these hops.
    pub fn of(view: &View<'_>, hops: &[Hop]) -> PathLeft {
        let known = || hops.iter().filter(|hop| view.measured(hop.resource).is_some());
        let left = |hop: &Hop| (view.residual(hop.resource).0 as f64 / hop.work * BITS_PER_BYTE) as i64;
        let least = known().map(|hop| (left(hop), hop.resource)).min();
        PathLeft {
            unknown: (hops.len() - known().count()) as u32,
            left: least.map(|(left, _)| left),
            limit: least.map(|(_, limit)| limit),
            oldest: oldest_of(view, known().map(|hop| hop.resource)),
        }
    }

    /// Rank among ways: fewer unknown loads, then more capacity left.
    pub fn rank(self) -> (Reverse<u32>, i64) {
        (Reverse(self.unknown), self.left.unwrap_or(i64::MAX))
    }
}

/// Start of the path from a host with a copy. A host with several devices may have the copy on any of them, so only the
/// device of a host with one device counts.
pub(super) fn sender(fabric: &Fabric, host: HostId) -> Endpoint {
    match fabric.devices(host) {
        [_] => Endpoint::DeviceRead(host, 0),
        _ => Endpoint::Host(host),
    }
}

/// Hops from the disk of a host out of all its domains.
pub(super) fn outward(fabric: &Fabric, host: HostId) -> Vec<Hop> {
    let disk = match sender(fabric, host) {
        Endpoint::DeviceRead(host, device) => fabric.device_hop(host, device, false),
        _ => None,
    };
    let domains = std::iter::successors(Some(fabric.rack_of(host)), |&domain| fabric.parent(domain));
    let links = domains.filter_map(|domain| fabric.out_of_domain(domain));
    let links = fabric.egress(host).into_iter().chain(links);
    disk.into_iter().chain(links.map(|resource| Hop { resource, work: BITS_PER_BYTE })).collect()
}

/// Hops from the disk of a host to a reader; `None` for a reader outside the cluster.
pub(super) fn to_reader(fabric: &Fabric, host: HostId, reader: Option<HostId>) -> Vec<Hop> {
    let Some(reader) = reader else { return outward(fabric, host) };
    let mut hops = Vec::new();
    fabric.path(&[sender(fabric, host), Endpoint::Host(reader)], &mut hops);
    hops
}
