//! Names of hosts, domains and resources, as people read and write them.
//!
//! Where a file gives no names, rack 3 is `r3`, its host 7 `r3h7`, pod 0 `p0`, and a host of a mesh `h7`. Links and
//! devices follow their owner after a colon: `r3h7:egress`, `r3:downlink`, `p0:uplink`, `r3h7:disk0`. A pair of a
//! mesh is `h0>h1`, and a link that paths share is `NAME:shared`. Names in files contain no `:` and no `>`, devices may not
//! have the names of links, and shared links may not have the names of hosts, so each name is unambiguous.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::{DomainId, Fabric, HostId, ResourceId, ResourceKind};

/// Index from name to position. It stores no names: the fabric's lists of hosts and domains have them. Every telemetry
/// report names its links, so the index is a hash table rather than a sorted list.
#[derive(Clone, Debug)]
pub(crate) struct Names(HashTable<u32>);

/// Indexes of equal lists are equal. Fabrics compare their lists, so the names are not compared again here.
impl PartialEq for Names {
    fn eq(&self, other: &Names) -> bool {
        self.0.len() == other.0.len()
    }
}

impl Names {
    /// Builds the index of `count` names, by position.
    ///
    /// # Errors
    ///
    /// The position of the first duplicate name.
    pub fn new<'a>(count: usize, name: impl Fn(u32) -> &'a str) -> Result<Names, u32> {
        let mut table = HashTable::with_capacity(count);
        for at in 0..count as u32 {
            match table.entry(hash(name(at)), |&other| name(other) == name(at), |&at| hash(name(at))) {
                Entry::Occupied(_) => return Err(at),
                Entry::Vacant(entry) => {
                    entry.insert(at);
                }
            }
        }
        Ok(Names(table))
    }

    /// The position of a name.
    fn find<'a>(&self, wanted: &str, name: impl Fn(u32) -> &'a str) -> Option<u32> {
        self.0.find(hash(wanted), |&at| name(at) == wanted).copied()
    }
}

fn hash(name: &str) -> u64 {
    FixedState::default().hash_one(name)
}

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
        if let Some(name) = self.shared_link_name(resource) {
            return format!("{name}:shared");
        }
        let host = self.host_of(resource).map(|host| self.host_name(host));
        let owner = host.or_else(|| Some(self.domain_name(self.domain_of_link(resource)?)));
        let end = match self.kind(resource) {
            ResourceKind::HostEgress => "egress",
            ResourceKind::HostIngress => "ingress",
            ResourceKind::RackUplink | ResourceKind::PodUplink => "uplink",
            ResourceKind::RackDownlink | ResourceKind::PodDownlink => "downlink",
            ResourceKind::Device | ResourceKind::Pair | ResourceKind::SharedLink => {
                self.device_of(resource).map_or("", |d| &d.name)
            }
        };
        format!("{}:{end}", owner.unwrap_or_default())
    }

    /// The host with this name.
    pub fn host(&self, name: &str) -> Option<HostId> {
        self.hosts_by_name.find(name, |at| self.host_name(HostId(at))).map(HostId)
    }

    /// The rack or pod with this name.
    pub fn domain(&self, name: &str) -> Option<DomainId> {
        self.domains_by_name.find(name, |at| self.domain_name(DomainId(at))).map(DomainId)
    }

    /// The link or device with this name.
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
                if let Some(link) = self.shared_link(owner).filter(|_| device == "shared") {
                    return Some(link);
                }
                let host = self.host(owner)?;
                let index = self.devices(host).iter().position(|d| &*d.name == device)?;
                self.device(host, index as u16)
            }
        }
    }
}
