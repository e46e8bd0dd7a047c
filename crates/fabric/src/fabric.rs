//! The immutable shape of a network: hosts, the domain tree, links and devices.
//!
//! Hosts are numbered rack by rack and racks pod by pod. The hosts of any domain are therefore a range of host ids,
//! and its children a range of domain ids. Resource ids are laid out in blocks (host links or pairs, rack links, pod
//! links, pairs of a hose, shared links, devices) and found by arithmetic, except the pairs of a hose, which are found by
//! binary search. Names are looked up by hashing.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::mesh_links::MeshLinks;
use crate::names::Names;
use crate::round_trips::RoundTrips;
use crate::units::{Bytes, Cost, Cpus};
use crate::{DomainId, FaultDomainId, HostId, ResourceId};

/// Topology between the hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    /// Racks, optional pods, and a non-blocking core.
    #[default]
    Tree,
    /// A rate for each ordered pair of hosts, independent of the others (Choreo section 3.3).
    Pipe,
    /// A rate out of and into each host, and a non-blocking network in between (Choreo section 3.3).
    Hose,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Shape::Tree => "tree",
            Shape::Pipe => "pipe",
            Shape::Hose => "hose",
        })
    }
}

/// Main use of the hosts of a rack.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RackKind {
    /// Hosts for tasks.
    Compute,
    /// Hosts for disks.
    Disk,
    /// Hosts for both.
    #[default]
    Mixed,
}

/// Kind of a resource.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceKind {
    /// Host to its rack's switch.
    HostEgress,
    /// Rack's switch to the host.
    HostIngress,
    /// Rack to the layer above.
    RackUplink,
    /// Layer above to the rack.
    RackDownlink,
    /// Pod to the core.
    PodUplink,
    /// Core to the pod.
    PodDownlink,
    /// One ordered pair of hosts of a mesh.
    Pair,
    /// A link of a mesh that several paths share.
    SharedLink,
    /// A disk or SSD.
    Device,
}

/// Queueing discipline of a resource. Only a resource that separates classes of traffic can guarantee a rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Discipline {
    /// First in, first out: no rate can be reserved.
    Fifo,
    /// Strict priority among this many classes.
    StrictPriority {
        /// Number of classes.
        classes: u8,
    },
}

/// A node of the domain tree.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Domain {
    pub name: Box<str>,
    pub parent: Option<DomainId>,
    pub hosts: Range<u32>,
    pub children: Range<u32>,
}

/// A disk or SSD in the fabric.
#[derive(Clone, PartialEq, Debug)]
pub struct Device {
    /// Name of the device, unique within the host.
    pub name: Box<str>,
    /// Service time of a byte read, in ns.
    pub read_ns_per_byte: f64,
    /// Service time of a byte written, in ns.
    pub write_ns_per_byte: f64,
    /// Storage capacity; `None` is unlimited.
    pub capacity: Option<Bytes>,
    /// Type of the storage, such as `ssd`; `None` without one.
    pub storage: Option<Box<str>>,
}

/// Tag that stands for a label.
pub fn label_tag(key: &str, value: &str) -> String {
    format!("{key}={value}")
}

impl Device {
    /// True if the device has this type of storage, or if no type is required.
    pub fn is_of(&self, storage: Option<&str>) -> bool {
        storage.is_none_or(|storage| self.storage.as_deref() == Some(storage))
    }
}

/// The shape of a network. Immutable; holds no loads and no capacities.
#[derive(Clone, PartialEq, Debug)]
pub struct Fabric {
    pub(crate) name: Box<str>,
    pub(crate) shape: Shape,
    pub(crate) discipline: Discipline,
    pub(crate) host_names: Vec<Box<str>>,
    pub(crate) host_racks: Vec<DomainId>,
    pub(crate) host_tags: Vec<u64>,
    pub(crate) host_compute: Vec<(Option<Cpus>, Option<Bytes>)>,
    /// Costs of hosts; empty if no host has one.
    pub(crate) host_costs: Vec<Cost>,
    pub(crate) tag_names: Vec<String>,
    /// Racks first, then pods.
    pub(crate) domains: Vec<Domain>,
    pub(crate) racks: u32,
    pub(crate) rack_kinds: Vec<RackKind>,
    pub(crate) rack_fault_domains: Vec<FaultDomainId>,
    pub(crate) fault_domain_count: usize,
    /// Devices by host; identical hosts share one list.
    pub(crate) devices: Vec<Arc<[Device]>>,
    /// For each host, the number of devices of all hosts before it; at the end, the number of all devices.
    pub(crate) first_device: Vec<u32>,
    /// Pairs of a hose and shared links; empty on a tree.
    pub(crate) mesh_links: MeshLinks,
    pub(crate) round_trips: RoundTrips,
    pub(crate) hosts_by_name: Names,
    pub(crate) domains_by_name: Names,
}

impl Fabric {
    /// The name of this network.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The topology between the hosts.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Number of hosts.
    pub fn host_count(&self) -> usize {
        self.host_names.len()
    }

    /// Number of racks (on a mesh: groups of hosts).
    pub fn rack_count(&self) -> usize {
        self.racks as usize
    }

    /// Number of domains, racks and pods together.
    pub fn domain_count(&self) -> usize {
        self.domains.len()
    }

    /// All hosts.
    pub fn all_hosts(&self) -> impl ExactSizeIterator<Item = HostId> + use<> {
        (0..self.host_names.len() as u32).map(HostId)
    }

    /// All racks.
    pub fn all_racks(&self) -> impl ExactSizeIterator<Item = DomainId> + use<> {
        (0..self.racks).map(DomainId)
    }

    /// The domains directly below `domain`, or the topmost domains for `None`. A rack has no domains below it.
    pub fn children(&self, domain: Option<DomainId>) -> impl ExactSizeIterator<Item = DomainId> + use<> {
        let range = match domain {
            Some(domain) => self.domains[domain.index()].children.clone(),
            None if self.domains.len() as u32 > self.racks => self.racks..self.domains.len() as u32,
            None => 0..self.racks,
        };
        range.map(DomainId)
    }

    /// The hosts below `domain`, as a range of host ids.
    pub fn hosts(&self, domain: DomainId) -> Range<u32> {
        self.domains[domain.index()].hosts.clone()
    }

    /// The domain directly above `domain`; `None` for a topmost domain.
    pub fn parent(&self, domain: DomainId) -> Option<DomainId> {
        self.domains[domain.index()].parent
    }

    /// The rack of a host.
    pub fn rack_of(&self, host: HostId) -> DomainId {
        self.host_racks[host.index()]
    }

    /// Main use of the hosts of a rack.
    pub fn rack_kind(&self, rack: DomainId) -> RackKind {
        self.rack_kinds[rack.index()]
    }

    /// The fault domain of a rack.
    pub fn fault_domain(&self, rack: DomainId) -> FaultDomainId {
        self.rack_fault_domains[rack.index()]
    }

    /// Number of fault domains.
    pub fn fault_domain_count(&self) -> usize {
        self.fault_domain_count
    }

    /// The tags of a host, as a set of bits; see [`Fabric::tag_mask`].
    pub fn tags(&self, host: HostId) -> u64 {
        self.host_tags[host.index()]
    }

    /// The bit of a tag; `None` if no host has the tag.
    pub fn tag_mask(&self, tag: &str) -> Option<u64> {
        self.tag_names.iter().position(|name| name == tag).map(|bit| 1 << bit)
    }

    /// True if a device of the cluster has this type of storage.
    pub fn has_storage_type(&self, storage: &str) -> bool {
        self.devices.iter().flat_map(|devices| devices.iter()).any(|device| device.is_of(Some(storage)))
    }

    /// The processors of a host for tasks; `None` is unlimited.
    pub fn cpus(&self, host: HostId) -> Option<Cpus> {
        self.host_compute[host.index()].0
    }

    /// The memory of a host for tasks; `None` is unlimited.
    pub fn memory(&self, host: HostId) -> Option<Bytes> {
        self.host_compute[host.index()].1
    }

    /// The cost of a host with tasks, per hour.
    pub fn cost(&self, host: HostId) -> Cost {
        self.host_costs.get(host.index()).copied().unwrap_or_default()
    }

    /// The cost of these hosts together, each counted once.
    pub fn cost_of(&self, hosts: &[HostId]) -> Cost {
        if self.host_costs.is_empty() {
            return Cost(0);
        }
        let distinct: BTreeSet<HostId> = hosts.iter().copied().collect();
        Cost(distinct.into_iter().map(|host| self.cost(host).0).sum())
    }

    /// True if a host has a cost.
    pub fn has_costs(&self) -> bool {
        !self.host_costs.is_empty()
    }

    /// The devices of a host.
    pub fn devices(&self, host: HostId) -> &[Device] {
        &self.devices[host.index()]
    }

    /// Storage capacity of all devices of a host together. `None` is unlimited: a device states no capacity, or no
    /// host of the cluster has a device.
    pub fn storage(&self, host: HostId) -> Option<Bytes> {
        let add = |total: u64, device: &Device| Some(total.saturating_add(device.capacity?.0));
        let has_devices = self.first_device.last().is_some_and(|&devices| devices > 0);
        self.devices(host).iter().try_fold(0, add).filter(|_| has_devices).map(Bytes)
    }

    /// Queueing discipline of `resource`.
    pub fn discipline(&self, _resource: ResourceId) -> Discipline {
        self.discipline
    }

    // ---- resources ------------------------------------------------------------------------------------

    pub(crate) fn host_links(&self) -> u32 {
        let hosts = self.host_names.len() as u32;
        if self.shape == Shape::Pipe { hosts * (hosts - 1) } else { 2 * hosts }
    }

    pub(crate) fn domain_links(&self) -> u32 {
        if self.shape == Shape::Tree { 2 * self.domains.len() as u32 } else { 0 }
    }

    fn links(&self) -> u32 {
        self.first_mesh_link() + self.mesh_links.count()
    }

    /// Number of links. Their ids precede those of the devices.
    pub fn link_count(&self) -> usize {
        self.links() as usize
    }

    /// Number of links and devices.
    pub fn resource_count(&self) -> usize {
        (self.links() + self.first_device[self.host_count()]) as usize
    }

    /// All links and devices.
    pub fn all_resources(&self) -> impl ExactSizeIterator<Item = ResourceId> + use<> {
        (0..self.resource_count() as u32).map(ResourceId)
    }

    /// The link out of a host. `None` on a pipe mesh.
    pub fn egress(&self, host: HostId) -> Option<ResourceId> {
        (self.shape != Shape::Pipe).then_some(ResourceId(2 * host.0))
    }

    /// The link into a host. `None` on a pipe mesh.
    pub fn ingress(&self, host: HostId) -> Option<ResourceId> {
        (self.shape != Shape::Pipe).then_some(ResourceId(2 * host.0 + 1))
    }

    /// The link out of a rack or pod, towards the core. `None` on a mesh.
    pub fn out_of_domain(&self, domain: DomainId) -> Option<ResourceId> {
        (self.shape == Shape::Tree).then(|| ResourceId(self.host_links() + 2 * domain.0))
    }

    /// The link into a rack or pod, from the core. `None` on a mesh.
    pub fn into_domain(&self, domain: DomainId) -> Option<ResourceId> {
        (self.shape == Shape::Tree).then(|| ResourceId(self.host_links() + 2 * domain.0 + 1))
    }

    /// The `index`th device of a host.
    pub fn device(&self, host: HostId, index: u16) -> Option<ResourceId> {
        let index = u32::from(index);
        let first = self.first_device[host.index()];
        (first + index < self.first_device[host.index() + 1])
            .then(|| ResourceId(self.links() + first + index))
    }

    /// Kind of a resource.
    pub fn kind(&self, resource: ResourceId) -> ResourceKind {
        let host_links = self.host_links();
        let up = resource.0.is_multiple_of(2);
        if resource.0 < host_links {
            match (self.shape, up) {
                (Shape::Pipe, _) => ResourceKind::Pair,
                (_, true) => ResourceKind::HostEgress,
                (_, false) => ResourceKind::HostIngress,
            }
        } else if resource.0 < host_links + self.domain_links() {
            match ((resource.0 - host_links) / 2 < self.racks, up) {
                (true, true) => ResourceKind::RackUplink,
                (true, false) => ResourceKind::RackDownlink,
                (false, true) => ResourceKind::PodUplink,
                (false, false) => ResourceKind::PodDownlink,
            }
        } else if let Some(at) = self.mesh_link(resource) {
            match self.mesh_links.hosts_of_pair(at) {
                Some(_) => ResourceKind::Pair,
                None => ResourceKind::SharedLink,
            }
        } else {
            ResourceKind::Device
        }
    }

    /// The domain of an uplink or downlink; `None` for any other resource.
    pub fn domain_of_link(&self, resource: ResourceId) -> Option<DomainId> {
        let index = resource.0.checked_sub(self.host_links())?;
        (index < self.domain_links()).then_some(DomainId(index / 2))
    }

    /// The host that a host link or a device belongs to.
    pub fn host_of(&self, resource: ResourceId) -> Option<HostId> {
        match self.kind(resource) {
            ResourceKind::HostEgress | ResourceKind::HostIngress => Some(HostId(resource.0 / 2)),
            ResourceKind::Device => {
                let device = resource.0 - self.links();
                Some(HostId(self.first_device.partition_point(|&first| first <= device) as u32 - 1))
            }
            _ => None,
        }
    }

    /// The device behind a resource, with the cost of a byte on it. `None` for a link.
    pub fn device_of(&self, resource: ResourceId) -> Option<&Device> {
        let device = resource.0.checked_sub(self.links())?;
        let host = self.host_of(resource)?;
        self.devices(host).get((device - self.first_device[host.index()]) as usize)
    }
}
