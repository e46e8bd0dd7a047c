//! Capacity left for a block along its path. The path consists of the links out of its source host, the links into a
//! rack, the link into a host, and that host's disk.
//!
//! If a load is unknown, the estimate assumes no capacity left, with one exception. If neither a resource nor its
//! siblings ever reported, they have no counters. Then only the ledger's own placements count.

use leeward_fabric::{BITS_PER_BYTE, DomainId, HostId, Nanos, ResourceId, Shape};
use leeward_ledger::View;

use super::device_of;
use crate::Candidate;

/// Number of siblings to check for counters, for a link on the path.
const BESIDE: usize = 64;

/// A rate in bit/s, and the resource that limits it.
pub type Rate = (f64, Option<ResourceId>);

/// The lower of two rates.
pub fn lower(a: Rate, b: Rate) -> Rate {
    if b.0 < a.0 { b } else { a }
}

/// The network as seen by one block at one host.
pub struct PathEstimates<'c, 'l> {
    view: &'c View<'l>,
    from: HostId,
    block: u64,
    /// Type of storage that the block requires.
    storage: Option<&'c str>,
    /// The host's rack and its enclosing domains, innermost first.
    above: Vec<DomainId>,
    /// Capacity left on the path out of the host: to its rack's switch, through the rack's uplink, and
    /// further up.
    out: Vec<Rate>,
    /// True if the links into pods have counters.
    pods: bool,
}

/// Missing counters among hosts of one ranking.
#[derive(Clone, Copy)]
pub struct MissingCounters {
    /// None of the links into them was ever reported.
    pub links: bool,
    /// None of their disks was ever reported.
    pub disks: bool,
}

/// Capacity left into a rack.
#[derive(Clone, Copy)]
pub struct Passage {
    /// Capacity left on the path from the source host to the rack's switch.
    pub path: Rate,
    /// Capacity left on the part of this path behind the links out of the source's host, rack and pod, in bit/s;
    /// infinite for the source's own rack.
    pub own: f64,
}

/// Capacity left at a host.
#[derive(Clone, Copy)]
pub struct Room {
    /// True if the load of the link into the host is known.
    pub seen: bool,
    /// Capacity left on the link into the host.
    pub link: Rate,
    /// Capacity left on the disk for the block; infinite without a disk.
    pub disk: Rate,
}

impl<'c, 'l> PathEstimates<'c, 'l> {
    /// Creates the estimates for `block` from a host.
    pub fn new(view: &'c View<'l>, from: HostId, block: u64, storage: Option<&'c str>) -> Self {
        let (above, out) = (Vec::with_capacity(2), Vec::with_capacity(3));
        let fabric = view.fabric();
        let mut estimates = PathEstimates { view, from, block, storage, above, out, pods: false };
        let topmost = fabric.children(None).filter_map(|domain| fabric.into_domain(domain));
        estimates.pods = fabric.parent(fabric.rack_of(from)).is_some() && estimates.any_counted(topmost);
        estimates.estimate_outbound();
        estimates
    }

    /// Sets another source host.
    pub fn set_from(&mut self, from: HostId) {
        if from != self.from {
            *self = PathEstimates::new(self.view, from, self.block, self.storage);
        }
    }

    /// Source host.
    pub fn from(&self) -> HostId {
        self.from
    }

    /// True if persistent load leaves capacity for a transfer between the source's rack and another rack.
    pub fn reaches(&self, rack: DomainId) -> bool {
        let fabric = self.view.fabric();
        let links = [fabric.out_of_domain(fabric.rack_of(self.from)), fabric.into_domain(rack)];
        links.into_iter().flatten().all(|link| self.view.share(link, 1).0 > 0)
    }

    /// Largest capacity of the source host's own links, in bit/s.
    pub fn widest(&self) -> Option<f64> {
        let fabric = self.view.fabric();
        let capacity = |link| self.view.capacity(link).0 as f64;
        match fabric.shape() {
            Shape::Pipe => {
                let pairs = fabric.all_hosts().filter_map(|to| fabric.pair(self.from, to));
                pairs.map(capacity).reduce(f64::max)
            }
            Shape::Tree | Shape::Hose => fabric.egress(self.from).map(capacity),
        }
    }

    /// Computes the capacity left on the links out of the host.
    fn estimate_outbound(&mut self) {
        let fabric = self.view.fabric();
        let rack = fabric.rack_of(self.from);
        let mut least = (f64::INFINITY, None);
        if let Some(link) = fabric.egress(self.from) {
            let beside =
                || self.any_counted(fabric.hosts(rack).filter_map(|host| fabric.egress(HostId(host))));
            least = (self.left(link, beside), Some(link));
        }
        self.out.push(least);
        let mut domain = Some(rack);
        while let Some(at) = domain {
            let parent = fabric.parent(at);
            if let Some(link) = fabric.out_of_domain(at) {
                let beside = || {
                    self.any_counted(fabric.children(parent).filter_map(|other| fabric.out_of_domain(other)))
                };
                least = lower(least, (self.left(link, beside), Some(link)));
            }
            self.out.push(least);
            self.above.push(at);
            domain = parent;
        }
    }

    /// Capacity left into a rack.
    pub fn rack(&self, rack: DomainId) -> Passage {
        let fabric = self.view.fabric();
        let mut least = (f64::INFINITY, None);
        let (mut into, mut up) = (Some(rack), 0);
        while let Some(domain) = into
            && self.above.get(up) != Some(&domain)
        {
            if let Some(link) = fabric.into_domain(domain) {
                least = lower(least, (self.left(link, || up == 0 || self.pods), Some(link)));
            }
            (into, up) = (fabric.parent(domain), up + 1);
        }
        Passage { path: lower(least, self.out[up.min(self.out.len() - 1)]), own: least.0 }
    }

    /// Missing counters among these hosts.
    pub fn missing_counters(&self, hosts: impl Iterator<Item = HostId> + Clone) -> MissingCounters {
        let fabric = self.view.fabric();
        let links = hosts.clone().filter_map(|host| self.link(Candidate::Host(host)));
        let disks = hosts.flat_map(|host| {
            (0..fabric.devices(host).len() as u16).filter_map(move |device| fabric.device(host, device))
        });
        let counted = |resource| self.is_counted(resource);
        MissingCounters { links: !{ links }.any(counted), disks: !{ disks }.any(counted) }
    }

    /// Capacity left at a host. On a pipe mesh, the source host has no link into itself, and so no limit.
    ///
    /// # Errors
    /// The time at which the load became unknown, 0 if it was never known.
    pub fn host(&self, host: HostId, missing: MissingCounters) -> Result<Room, Nanos> {
        let fabric = self.view.fabric();
        let (seen, link) = match self.link(Candidate::Host(host)) {
            Some(link) => {
                let (seen, left) = self.candidate_left(link, missing.links)?;
                (seen, (left, Some(link)))
            }
            None => (false, (f64::INFINITY, None)),
        };
        let device = device_of(fabric, host, self.block, self.storage);
        let disk = match device.and_then(|device| fabric.device_hop(host, device, true)) {
            Some(hop) => {
                let (_, left) = self.candidate_left(hop.resource, missing.disks)?;
                (left / hop.work * BITS_PER_BYTE, Some(hop.resource))
            }
            None => (f64::INFINITY, None),
        };
        Ok(Room { seen, link, disk })
    }

    /// Capacity left on a candidate's resource in its native unit, and true if its load is known. `missing` states that
    /// counters are missing.
    ///
    /// # Errors
    /// The time at which the load became unknown, 0 if it was never known.
    fn candidate_left(&self, resource: ResourceId, missing: bool) -> Result<(bool, f64), Nanos> {
        match self.view.measured(resource) {
            Some(_) => Ok((true, self.view.residual(resource).0 as f64)),
            None if missing => Ok((false, self.view.share(resource, 1).0 as f64)),
            None => Err(self.view.measured_until(resource)),
        }
    }

    /// Capacity left on a link of the path, in bit/s. `beside` returns true if its siblings have counters.
    fn left(&self, link: ResourceId, beside: impl Fn() -> bool) -> f64 {
        match self.view.measured(link) {
            Some(_) => self.view.residual(link).0 as f64,
            None if self.is_counted(link) || beside() => 0.0,
            None => self.view.share(link, 1).0 as f64,
        }
    }

    /// True if a resource was ever reported.
    fn is_counted(&self, resource: ResourceId) -> bool {
        self.view.measured_until(resource) > Nanos(0)
    }

    fn any_counted(&self, links: impl Iterator<Item = ResourceId>) -> bool {
        { links }.by_ref().take(BESIDE).any(|link| self.is_counted(link))
    }

    /// Link into a candidate; on a pipe mesh, the pair from the source host.
    pub fn link(&self, candidate: Candidate) -> Option<ResourceId> {
        let fabric = self.view.fabric();
        match candidate {
            Candidate::Domain(rack) => fabric.into_domain(rack),
            Candidate::Host(host) if fabric.shape() == Shape::Pipe => fabric.pair(self.from, host),
            Candidate::Host(host) => fabric.ingress(host),
        }
    }
}
