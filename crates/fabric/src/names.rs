//! Names of hosts, domains and resources, as people read and write them.
//!
//! Rack 3 is `r3`, its host 7 `r3h7`; a host of a mesh is `h7`; pods are `p0`. Links and devices follow their owner after
//! a colon: `r3h7:egress`, `r3:downlink`, `p0:uplink`, `r3h7:disk0`. A pair of a mesh is `h0>h1`.

use crate::{DomainId, Fabric, HostId, ResourceId, ResourceKind};

impl Fabric {
    /// The name of a host.
    pub fn host_name(&self, host: HostId) -> &str {
        &self.host_names[host.index()]
    }

    /// The name of a rack or pod.
    pub fn domain_name(&self, domain: DomainId) -> &str {
        &self.domains[domain.index()].name
    }

    /// The name of a resource.
    pub fn resource_name(&self, resource: ResourceId) -> String {
        let host = |end| format!("{}:{end}", self.host_of(resource).map_or("?", |h| self.host_name(h)));
        let domain =
            |end| format!("{}:{end}", self.domain_of_link(resource).map_or("?", |d| self.domain_name(d)));
        match self.kind(resource) {
            ResourceKind::HostEgress => host("egress"),
            ResourceKind::HostIngress => host("ingress"),
            ResourceKind::RackUplink | ResourceKind::PodUplink => domain("uplink"),
            ResourceKind::RackDownlink | ResourceKind::PodDownlink => domain("downlink"),
            ResourceKind::Pair => {
                let hosts = self.host_count() as u32;
                let (from, to) = (HostId(resource.0 / hosts), HostId(resource.0 % hosts));
                format!("{}>{}", self.host_name(from), self.host_name(to))
            }
            ResourceKind::Device => {
                let index = resource.index() - (self.resource_count() - self.devices.len());
                host(&self.devices[index].name)
            }
        }
    }

    /// The host of that name.
    pub fn host(&self, name: &str) -> Option<HostId> {
        let found = self.hosts_by_name.binary_search_by(|&host| self.host_name(host).cmp(name)).ok()?;
        Some(self.hosts_by_name[found])
    }

    /// The rack or pod of that name.
    pub fn domain(&self, name: &str) -> Option<DomainId> {
        let found =
            self.domains_by_name.binary_search_by(|&domain| self.domain_name(domain).cmp(name)).ok()?;
        Some(self.domains_by_name[found])
    }

    /// The link or device of that name.
    pub fn resource(&self, name: &str) -> Option<ResourceId> {
        if let Some((from, to)) = name.split_once('>') {
            return self.pair(self.host(from)?, self.host(to)?);
        }
        let (owner, end) = name.split_once(':')?;
        match end {
            "egress" => self.egress(self.host(owner)?),
            "ingress" => self.ingress(self.host(owner)?),
            "uplink" => self.out_of_domain(self.domain(owner)?),
            "downlink" => self.into_domain(self.domain(owner)?),
            device => {
                let host = self.host(owner)?;
                let index = self.devices(host).iter().position(|d| &*d.name == device)?;
                self.device(host, index as u16)
            }
        }
    }
}
