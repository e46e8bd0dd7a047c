//! Paths: the resources that work crosses between endpoints.

use crate::{DomainId, Fabric, HostId, ResourceId, Shape};

/// A resource on a path, with the work that one payload byte causes there.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Hop {
    /// The link or device.
    pub resource: ResourceId,
    /// Native units of work for each payload byte: [`BITS_PER_BYTE`] on a link, nanoseconds of service on a
    /// device. A resource crossed twice, or written with parity, carries a multiple.
    pub work: f64,
}

/// Work of one payload byte on a link.
pub const BITS_PER_BYTE: f64 = 8.0;

/// An endpoint of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Endpoint {
    /// A host's memory.
    Host(HostId),
    /// An unspecified host of a rack or pod. The path leaves out the links of this host.
    Domain(DomainId),
    /// A write to a host's device, by index.
    DeviceWrite(HostId, u16),
    /// A read from a host's device, by index.
    DeviceRead(HostId, u16),
}

/// Position of an endpoint in the domain tree.
#[derive(Clone, Copy, PartialEq)]
struct Position {
    host: Option<HostId>,
    rack: Option<DomainId>,
    top: Option<DomainId>,
}

impl Fabric {
    /// Appends the hops of *one* flow through `endpoints`, in order; a chain-replicated write is one call. A resource
    /// crossed more than once becomes one hop with the work of all crossings. Devices that do not exist contribute
    /// nothing, and neither do domains on a mesh. The function itself allocates nothing.
    pub fn path(&self, endpoints: &[Endpoint], out: &mut Vec<Hop>) {
        let first = out.len();
        let mut previous = None;
        for &endpoint in endpoints {
            let here = self.position(endpoint);
            if let Some(before) = previous.replace(here) {
                self.leg(before, here, first, out);
            }
            let device = match endpoint {
                Endpoint::DeviceWrite(host, index) => self.device_hop(host, index, true),
                Endpoint::DeviceRead(host, index) => self.device_hop(host, index, false),
                Endpoint::Host(_) | Endpoint::Domain(_) => None,
            };
            if let Some(hop) = device {
                cross(out, first, hop.resource, hop.work);
            }
        }
    }

    /// The hop through a host's device, with the service time of one byte. `None` if there is no such device.
    pub fn device_hop(&self, host: HostId, index: u16, write: bool) -> Option<Hop> {
        let device = &self.devices(host).get(usize::from(index))?;
        let work = if write { device.write_ns_per_byte } else { device.read_ns_per_byte };
        self.device(host, index).map(|resource| Hop { resource, work })
    }

    fn position(&self, endpoint: Endpoint) -> Position {
        match endpoint {
            Endpoint::Host(host) | Endpoint::DeviceWrite(host, _) | Endpoint::DeviceRead(host, _) => {
                let rack = self.rack_of(host);
                Position { host: Some(host), rack: Some(rack), top: self.parent(rack) }
            }
            Endpoint::Domain(domain) if domain.index() < self.rack_count() => {
                Position { host: None, rack: Some(domain), top: self.parent(domain) }
            }
            Endpoint::Domain(domain) => Position { host: None, rack: None, top: Some(domain) },
        }
    }

    /// Adds the links between two consecutive endpoints to the hops from index `first` on.
    fn leg(&self, from: Position, to: Position, first: usize, out: &mut Vec<Hop>) {
        if from.host.is_some() && from.host == to.host {
            return;
        }
        let mut link = |resource: Option<ResourceId>| {
            if let Some(resource) = resource {
                cross(out, first, resource, BITS_PER_BYTE);
            }
        };
        let hosts = from.host.zip(to.host);
        if self.shape() != Shape::Tree {
            let within_machine = hosts.is_some_and(|(a, b)| self.is_within_machine(a, b));
            if !within_machine {
                link(from.host.and_then(|host| self.egress(host)));
            }
            if let Some((a, b)) = hosts {
                link(self.pair(a, b));
                self.shared_links(a, b).for_each(|shared| link(Some(shared)));
            }
            if !within_machine {
                link(to.host.and_then(|host| self.ingress(host)));
            }
            return;
        }
        let same_rack = from.rack.is_some() && from.rack == to.rack;
        let same_top = from.top.is_some() && from.top == to.top;
        link(from.host.and_then(|host| self.egress(host)));
        if !same_rack {
            link(from.rack.and_then(|rack| self.out_of_domain(rack)));
            if !same_top {
                link(from.top.and_then(|pod| self.out_of_domain(pod)));
                link(to.top.and_then(|pod| self.into_domain(pod)));
            }
            link(to.rack.and_then(|rack| self.into_domain(rack)));
        }
        link(to.host.and_then(|host| self.ingress(host)));
    }
}

/// Adds a crossing to the hops from index `first` on.
fn cross(out: &mut Vec<Hop>, first: usize, resource: ResourceId, work: f64) {
    match out[first..].iter_mut().find(|hop| hop.resource == resource) {
        Some(hop) => hop.work += work,
        None => out.push(Hop { resource, work }),
    }
}
