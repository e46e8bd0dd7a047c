//! True capacities: capacities of links, and failed hosts and racks.

use std::sync::Arc;

use leeward_fabric::{Capacities, DomainId, Fabric, HostId, Load, ResourceId};

/// True capacities, and current failures. Failed elements have no capacity until they recover.
#[derive(Debug)]
pub(crate) struct Outages {
    fabric: Arc<Fabric>,
    /// Capacity of each resource while it works.
    working: Capacities,
    /// Current capacity of each resource.
    truth: Capacities,
    host_up: Vec<bool>,
    domain_up: Vec<bool>,
}

impl Outages {
    /// Creates a state without failures.
    pub fn new(fabric: Arc<Fabric>, capacities: Capacities) -> Outages {
        let host_up = vec![true; fabric.host_count()];
        let domain_up = vec![true; fabric.domain_count()];
        Outages { fabric, working: capacities.clone(), truth: capacities, host_up, domain_up }
    }

    /// Current capacity of each resource.
    pub fn truth(&self) -> &Capacities {
        &self.truth
    }

    /// Returns true if a host is up.
    pub fn is_up(&self, host: HostId) -> bool {
        self.host_up[host.index()]
    }

    /// Returns true if the switch of a rack or pod is up.
    pub fn is_domain_up(&self, domain: DomainId) -> bool {
        self.domain_up[domain.index()]
    }

    /// Sets the capacity of a resource. It takes effect now, or when the resource works again.
    pub fn set_capacity(
        &mut self,
        resource: ResourceId,
        capacity: Load,
        changed: &mut Vec<(ResourceId, Load)>,
    ) {
        self.working.set(resource, capacity);
        self.settle(resource, changed);
    }

    /// A host fails with its links and devices, or recovers.
    pub fn set_host_up(&mut self, host: HostId, up: bool, changed: &mut Vec<(ResourceId, Load)>) {
        self.host_up[host.index()] = up;
        let fabric = self.fabric.clone();
        let links = [fabric.egress(host), fabric.ingress(host)];
        let devices = (0..fabric.devices(host).len() as u16).map(|index| fabric.device(host, index));
        let pairs = fabric.all_hosts().flat_map(|other| [fabric.pair(host, other), fabric.pair(other, host)]);
        for resource in links.into_iter().chain(devices).chain(pairs).flatten() {
            self.settle(resource, changed);
        }
    }

    /// The links of a rack or pod fail, or recover.
    pub fn set_domain_up(&mut self, domain: DomainId, up: bool, changed: &mut Vec<(ResourceId, Load)>) {
        self.domain_up[domain.index()] = up;
        for resource in
            [self.fabric.out_of_domain(domain), self.fabric.into_domain(domain)].into_iter().flatten()
        {
            self.settle(resource, changed);
        }
    }

    /// Updates the current capacity of a resource: 0 if one of its hosts, its rack or its pod is down.
    fn settle(&mut self, resource: ResourceId, changed: &mut Vec<(ResourceId, Load)>) {
        let fabric = &self.fabric;
        let pair = fabric.hosts_of_pair(resource);
        let mut hosts =
            fabric.host_of(resource).into_iter().chain(pair.into_iter().flat_map(|(a, b)| [a, b]));
        let works = hosts.all(|host| self.is_up(host))
            && fabric.domain_of_link(resource).is_none_or(|domain| self.is_domain_up(domain));
        let capacity = if works { self.working.get(resource) } else { Load(0) };
        if self.truth.get(resource) != capacity {
            self.truth.set(resource, capacity);
            changed.push((resource, capacity));
        }
    }
}
