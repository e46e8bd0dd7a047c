//! What a block would get at each rack and each host: the least of what is left along its whole chain.

use leeward_fabric::{BITS_PER_BYTE, DomainId, HostId, ResourceId, Shape};
use leeward_ledger::View;

use super::device_of;
use crate::Candidate;

/// A rate in bit/s, and what limits it.
pub type Rate = (f64, Option<ResourceId>);

/// The network as one block from one writer sees it.
pub struct Survey<'c, 'l> {
    view: &'c View<'l>,
    writer: HostId,
    block: u64,
    /// The rack of the writer and what it is in, from below.
    above: Vec<DomainId>,
    /// What is left on the way out of the writer: to its rack's switch, through the rack's uplink, and on.
    out: Vec<Rate>,
}

impl<'c, 'l> Survey<'c, 'l> {
    /// What `block` of `writer` sees.
    pub fn new(view: &'c View<'l>, writer: HostId, block: u64) -> Self {
        let mut survey =
            Survey { view, writer, block, above: Vec::with_capacity(2), out: Vec::with_capacity(3) };
        survey.look_out();
        survey
    }

    /// Looks at the links out of the writer.
    fn look_out(&mut self) {
        let fabric = self.view.fabric();
        let mut least = (f64::INFINITY, None);
        let mut link = fabric.egress(self.writer);
        let mut domain = Some(fabric.rack_of(self.writer));
        loop {
            if let Some(link) = link {
                let left = self.left(link);
                if left < least.0 {
                    least = (left, Some(link));
                }
            }
            self.out.push(least);
            let Some(at) = domain else { return };
            self.above.push(at);
            (link, domain) = (fabric.out_of_domain(at), fabric.parent(at));
        }
    }

    /// What a candidate would get, in bit/s, and what limits it.
    pub fn rate(&self, candidate: Candidate) -> Rate {
        let fabric = self.view.fabric();
        let mut least = (f64::INFINITY, None);
        let mut pass = |link: Option<ResourceId>| {
            let Some(link) = link else { return };
            let left = self.left(link);
            if left < least.0 {
                least = (left, Some(link));
            }
        };
        match candidate {
            Candidate::Domain(rack) if fabric.into_domain(rack).is_some() => {
                let (mut into, mut up) = (Some(rack), 0);
                while let Some(domain) = into
                    && self.above.get(up) != Some(&domain)
                {
                    pass(fabric.into_domain(domain));
                    (into, up) = (fabric.parent(domain), up + 1);
                }
                let out = self.out[up.min(self.out.len() - 1)];
                if out.0 < least.0 {
                    least = out;
                }
            }
            Candidate::Domain(rack) => {
                let rates = fabric.hosts(rack).map(|host| self.rate(Candidate::Host(HostId(host))));
                least = rates.max_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or(least);
            }
            Candidate::Host(host) => {
                pass(self.link(candidate));
                let device = device_of(fabric, host, self.block);
                if let Some(hop) = device.and_then(|device| fabric.device_hop(host, device, true)) {
                    let rate = self.left(hop.resource) / hop.work * BITS_PER_BYTE;
                    if rate < least.0 {
                        least = (rate, Some(hop.resource));
                    }
                }
            }
        }
        least
    }

    /// What is left of a resource for one transfer more, in its native unit.
    fn left(&self, resource: ResourceId) -> f64 {
        let view = self.view;
        match view.measured(resource) {
            Some(_) => view.residual(resource).0 as f64,
            // No counters this far down: what was placed there is all that is known.
            None => view.share(resource, 1).0 as f64,
        }
    }

    /// The link into a candidate; on a pipe mesh, the pair from the writer.
    pub fn link(&self, candidate: Candidate) -> Option<ResourceId> {
        let fabric = self.view.fabric();
        match candidate {
            Candidate::Domain(rack) => fabric.into_domain(rack),
            Candidate::Host(host) if fabric.shape() == Shape::Pipe => fabric.pair(self.writer, host),
            Candidate::Host(host) => fabric.ingress(host),
        }
    }
}
