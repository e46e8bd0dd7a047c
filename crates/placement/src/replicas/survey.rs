//! What is left for a block along its way: on the links out of the host it comes from, on those into a rack, and at a
//! host on the link into it and on the disk it would be written to.
//!
//! Where a load cannot be seen, nothing is taken to be left. The exception is where no counters reach: if neither a
//! resource nor those beside it were ever reported, what was placed there is all that is known, and counts.

use leeward_fabric::{BITS_PER_BYTE, DomainId, HostId, Nanos, ResourceId, Shape};
use leeward_ledger::View;

use super::device_of;
use crate::Candidate;

/// Beside how many others a link on the way is looked for counters.
const BESIDE: usize = 64;

/// A rate in bit/s, and what limits it.
pub type Rate = (f64, Option<ResourceId>);

/// The lower of two rates.
pub fn lower(a: Rate, b: Rate) -> Rate {
    if b.0 < a.0 { b } else { a }
}

/// The network as one block sees it from one host.
pub struct Survey<'c, 'l> {
    view: &'c View<'l>,
    from: HostId,
    block: u64,
    /// The rack of the host and what it is in, from below.
    above: Vec<DomainId>,
    /// What is left on the way out of the host: to its rack's switch, through the rack's uplink, and on.
    out: Vec<Rate>,
    /// Whether pods count what goes into them.
    pods: bool,
}

/// Where no counters reach among hosts that are ranked together.
#[derive(Clone, Copy)]
pub struct Blind {
    /// None of the links into them was ever reported.
    pub links: bool,
    /// None of their disks was.
    pub disks: bool,
}

/// What is left at a host.
#[derive(Clone, Copy)]
pub struct Room {
    /// Whether the load of the link into it is seen.
    pub seen: bool,
    /// Of the link into it.
    pub link: Rate,
    /// Of the disk that the block would be written to; infinite where there is none.
    pub disk: Rate,
}

impl<'c, 'l> Survey<'c, 'l> {
    /// What `block` sees from a host.
    pub fn new(view: &'c View<'l>, from: HostId, block: u64) -> Self {
        let (above, out) = (Vec::with_capacity(2), Vec::with_capacity(3));
        let fabric = view.fabric();
        let mut survey = Survey { view, from, block, above, out, pods: false };
        let topmost = fabric.children(None).filter_map(|domain| fabric.into_domain(domain));
        survey.pods = fabric.parent(fabric.rack_of(from)).is_some() && survey.any_counted(topmost);
        survey.look_out();
        survey
    }

    /// Looks from another host from here on.
    pub fn set_from(&mut self, from: HostId) {
        if from != self.from {
            *self = Survey::new(self.view, from, self.block);
        }
    }

    /// The host it looks from.
    pub fn from(&self) -> HostId {
        self.from
    }

    /// Whether what stays leaves a transfer anything on the links from the rack of the host into another.
    pub fn reaches(&self, rack: DomainId) -> bool {
        let fabric = self.view.fabric();
        let links = [fabric.out_of_domain(fabric.rack_of(self.from)), fabric.into_domain(rack)];
        links.into_iter().flatten().all(|link| self.view.share(link, 1).0 > 0)
    }

    /// What the links of the host itself carry at most, in bit/s.
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

    /// Looks at the links out of the host.
    fn look_out(&mut self) {
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

    /// What is left on the links to the switch of a rack, from those out of the host on.
    pub fn rack(&self, rack: DomainId) -> Rate {
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
        lower(least, self.out[up.min(self.out.len() - 1)])
    }

    /// Where no counters reach among these hosts.
    pub fn blind(&self, hosts: impl Iterator<Item = HostId> + Clone) -> Blind {
        let fabric = self.view.fabric();
        let links = hosts.clone().filter_map(|host| self.link(Candidate::Host(host)));
        let disks = hosts.flat_map(|host| {
            (0..fabric.devices(host).len() as u16).filter_map(move |device| fabric.device(host, device))
        });
        let counted = |resource| self.is_counted(resource);
        Blind { links: !{ links }.any(counted), disks: !{ disks }.any(counted) }
    }

    /// What is left at a host; if it cannot be seen, since when, zero for never. A host that the block comes from on a pipe mesh has no
    /// link into it, and so no limit.
    pub fn host(&self, host: HostId, blind: Blind) -> Result<Room, Nanos> {
        let fabric = self.view.fabric();
        let (seen, link) = match self.link(Candidate::Host(host)) {
            Some(link) => {
                let (seen, left) = self.left_here(link, blind.links)?;
                (seen, (left, Some(link)))
            }
            None => (false, (f64::INFINITY, None)),
        };
        let device = device_of(fabric, host, self.block);
        let disk = match device.and_then(|device| fabric.device_hop(host, device, true)) {
            Some(hop) => {
                let (_, left) = self.left_here(hop.resource, blind.disks)?;
                (left / hop.work * BITS_PER_BYTE, Some(hop.resource))
            }
            None => (f64::INFINITY, None),
        };
        Ok(Room { seen, link, disk })
    }

    /// Whether a resource of a candidate is seen, and what is left of it in its native unit; `blind` where no counters
    /// reach.
    fn left_here(&self, resource: ResourceId, blind: bool) -> Result<(bool, f64), Nanos> {
        match self.view.measured(resource) {
            Some(_) => Ok((true, self.view.residual(resource).0 as f64)),
            None if blind => Ok((false, self.view.share(resource, 1).0 as f64)),
            None => Err(self.view.measured_until(resource)),
        }
    }

    /// What is left of a link on the way, in bit/s; `beside` says whether those beside it are counted.
    fn left(&self, link: ResourceId, beside: impl Fn() -> bool) -> f64 {
        match self.view.measured(link) {
            Some(_) => self.view.residual(link).0 as f64,
            None if self.is_counted(link) || beside() => 0.0,
            None => self.view.share(link, 1).0 as f64,
        }
    }

    /// Whether a resource was ever reported.
    fn is_counted(&self, resource: ResourceId) -> bool {
        self.view.measured_until(resource) > Nanos(0)
    }

    fn any_counted(&self, links: impl Iterator<Item = ResourceId>) -> bool {
        { links }.by_ref().take(BESIDE).any(|link| self.is_counted(link))
    }

    /// The link into a candidate; on a pipe mesh, the pair from the host that the block comes from.
    pub fn link(&self, candidate: Candidate) -> Option<ResourceId> {
        let fabric = self.view.fabric();
        match candidate {
            Candidate::Domain(rack) => fabric.into_domain(rack),
            Candidate::Host(host) if fabric.shape() == Shape::Pipe => fabric.pair(self.from, host),
            Candidate::Host(host) => fabric.ingress(host),
        }
    }
}
