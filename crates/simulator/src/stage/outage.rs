//! What is true of capacities: what links can carry, and which hosts and racks are down.

use std::sync::Arc;

use leeward_fabric::{Capacities, DomainId, Fabric, HostId, Load, ResourceId};

/// True capacities, and what is down at the moment. What is down has no capacity until it is up again.
#[derive(Debug)]
pub(crate) struct Outages {
    fabric: Arc<Fabric>,
    /// What each resource carries while it works.
    working: Capacities,
    /// What each resource carries now.
    truth: Capacities,
    host_up: Vec<bool>,
    domain_up: Vec<bool>,
}

impl Outages {
    /// Everything up.
    pub fn new(fabric: Arc<Fabric>, capacities: Capacities) -> Outages {
        let host_up = vec![true; fabric.host_count()];
        let domain_up = vec![true; fabric.domain_count()];
        Outages { fabric, working: capacities.clone(), truth: capacities, host_up, domain_up }
    }

    /// What each resource carries now.
    pub fn truth(&self) -> &Capacities {
        &self.truth
    }

    /// Whether a host is up.
    pub fn is_up(&self, host: HostId) -> bool {
        self.host_up[host.index()]
    }

    /// Whether the switch of a rack or pod is up.
    pub fn is_domain_up(&self, domain: DomainId) -> bool {
        self.domain_up[domain.index()]
    }

    /// A resource carries `capacity` from now on, or once it works again.
    pub fn set_capacity(
        &mut self,
        resource: ResourceId,
        capacity: Load,
        changed: &mut Vec<(ResourceId, Load)>,
    ) {
        self.working.set(resource, capacity);
        self.settle(resource, changed);
    }

    /// A host fails with its links and devices, or works again.
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

    /// The links of a rack or pod fail, or work again.
    pub fn set_domain_up(&mut self, domain: DomainId, up: bool, changed: &mut Vec<(ResourceId, Load)>) {
        self.domain_up[domain.index()] = up;
        for resource in
            [self.fabric.out_of_domain(domain), self.fabric.into_domain(domain)].into_iter().flatten()
        {
            self.settle(resource, changed);
        }
    }

    /// A resource carries what it can, if all it belongs to is up.
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
