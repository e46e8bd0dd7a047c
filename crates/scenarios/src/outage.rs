//! True state of the network: capacities of resources, and failed hosts, racks and pods.

use std::sync::Arc;

use leeward_fabric::{Capacities, DomainId, Fabric, HostId, Load, ResourceId};

/// True capacities, and current failures. Resources of a failed host, rack or pod have no capacity until it recovers.
#[derive(Debug)]
pub(crate) struct Outages {
    fabric: Arc<Fabric>,
    /// Capacity of each resource without failures.
    working: Capacities,
    /// Current capacity of each resource; 0 during a failure.
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

    /// Returns the current capacity of each resource; 0 during a failure.
    pub fn truth(&self) -> &Capacities {
        &self.truth
    }

    /// Returns true if a host is up.
    pub fn is_up(&self, host: HostId) -> bool {
        self.host_up[host.index()]
    }

    /// Returns true if the links of a rack or pod are up.
    pub fn is_domain_up(&self, domain: DomainId) -> bool {
        self.domain_up[domain.index()]
    }

    /// Sets the capacity of a resource, and adds changes to `changed`. The capacity of a failed resource takes effect when
    /// it recovers.
    pub fn set_capacity(
        &mut self,
        resource: ResourceId,
        capacity: Load,
        changed: &mut Vec<(ResourceId, Load)>,
    ) {
        self.working.set(resource, capacity);
        self.update(resource, changed);
    }

    /// Marks a host, with its links and devices, as up or failed, and adds changes to `changed`.
    pub fn set_host_up(&mut self, host: HostId, up: bool, changed: &mut Vec<(ResourceId, Load)>) {
        self.host_up[host.index()] = up;
        let fabric = self.fabric.clone();
        let links = [fabric.egress(host), fabric.ingress(host)];
        let devices = (0..fabric.devices(host).len() as u16).map(|index| fabric.device(host, index));
        let pairs = fabric.all_hosts().flat_map(|other| [fabric.pair(host, other), fabric.pair(other, host)]);
        for resource in links.into_iter().chain(devices).chain(pairs).flatten() {
            self.update(resource, changed);
        }
    }

    /// Marks the links of a rack or pod as up or failed, and adds changes to `changed`.
    pub fn set_domain_up(&mut self, domain: DomainId, up: bool, changed: &mut Vec<(ResourceId, Load)>) {
        self.domain_up[domain.index()] = up;
        for resource in
            [self.fabric.out_of_domain(domain), self.fabric.into_domain(domain)].into_iter().flatten()
        {
            self.update(resource, changed);
        }
    }

    /// Updates the current capacity of a resource: 0 if one of its hosts, its rack or its pod has failed.
    fn update(&mut self, resource: ResourceId, changed: &mut Vec<(ResourceId, Load)>) {
        let fabric = &self.fabric;
        let pair = fabric.hosts_of_pair(resource);
        let mut hosts =
            fabric.host_of(resource).into_iter().chain(pair.into_iter().flat_map(|(a, b)| [a, b]));
        let is_up = hosts.all(|host| self.is_up(host))
            && fabric.domain_of_link(resource).is_none_or(|domain| self.is_domain_up(domain));
        let capacity = if is_up { self.working.get(resource) } else { Load(0) };
        if self.truth.get(resource) != capacity {
            self.truth.set(resource, capacity);
            changed.push((resource, capacity));
        }
    }
}
