//! Names of hosts, domains and resources, as people read and write them.
//!
//! Where a file gives no names, rack 3 is `r3`, its host 7 `r3h7`, pod 0 `p0`, and a host of a mesh `h7`. Links and
//! devices follow their owner after a colon: `r3h7:egress`, `r3:downlink`, `p0:uplink`, `r3h7:disk0`. A pair of a
//! mesh is `h0>h1`. Names in files have no `:` and no `>`, and devices no names of links, so each name means one thing.

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
        if let Some((from, to)) = self.hosts_of_pair(resource) {
            return format!("{}>{}", self.host_name(from), self.host_name(to));
        }
        let host = self.host_of(resource).map(|host| self.host_name(host));
        let owner = host.or_else(|| Some(self.domain_name(self.domain_of_link(resource)?)));
        let end = match self.kind(resource) {
            ResourceKind::HostEgress => "egress",
            ResourceKind::HostIngress => "ingress",
            ResourceKind::RackUplink | ResourceKind::PodUplink => "uplink",
            ResourceKind::RackDownlink | ResourceKind::PodDownlink => "downlink",
            ResourceKind::Device | ResourceKind::Pair => self.device_of(resource).map_or("", |d| &d.name),
        };
        format!("{}:{end}", owner.unwrap_or_default())
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
