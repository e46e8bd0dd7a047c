//! True state of the network: capacities of resources, and failed or slow hosts, racks and pods.

use std::collections::BTreeSet;
use std::sync::Arc;

use leeward_engine::Input;
use leeward_fabric::{Capacities, DomainId, Fabric, HostId, Load, ResourceId};
use leeward_placement::Candidate;

use crate::scenario::{Change, Event, HostState};

/// True capacities, and current failures. Resources of a failed host, rack or pod have no capacity until it recovers.
#[derive(Debug)]
pub(crate) struct Outages {
    fabric: Arc<Fabric>,
    /// Capacity of each resource without failures.
    working: Capacities,
    /// Current capacity of each resource; 0 during a failure.
    truth: Capacities,
    /// Capacity of each resource as it is announced. Links and devices of hosts have it as if the host were up, because the
    /// health of hosts is announced apart.
    nominal: Capacities,
    host_up: Vec<bool>,
    domain_up: Vec<bool>,
    /// Factor by which the links and devices of each host are slower than without events; 1 for most hosts.
    slowdown: Vec<f64>,
}

/// Effects of an event.
pub(crate) struct Effects {
    /// Hosts that the event names.
    pub hosts: Vec<HostId>,
    /// New state of these hosts; `None` if the event changes a capacity alone.
    pub state: Option<HostState>,
    /// Changed capacities.
    pub changed: Changes,
    announced: bool,
}

/// Changed capacities of an event.
#[derive(Default)]
pub(crate) struct Changes {
    /// True capacities.
    pub truth: Vec<(ResourceId, Load)>,
    /// Capacities as they are announced, if the event is.
    pub nominal: Vec<(ResourceId, Load)>,
}

impl Effects {
    /// Returns the input that informs the engine of a host's new state. The engine is informed of announced events. A
    /// host whose failure was `detected` is detected as up again.
    pub fn input(&self, host: HostId, detected: &mut BTreeSet<HostId>) -> Option<Input<'static>> {
        match self.state? {
            up @ (HostState::Down | HostState::Up) => {
                let up = up == HostState::Up;
                // A host that is down and fails again, with its rack, is still detected as down.
                let was_detected = up && detected.remove(&host);
                (self.announced || was_detected).then_some(Input::Health(host, up))
            }
            drain => self.announced.then_some(Input::Drain(host, drain == HostState::Draining)),
        }
    }
}

impl Outages {
    /// Creates a state without failures.
    pub fn new(fabric: Arc<Fabric>, capacities: Capacities) -> Outages {
        let host_up = vec![true; fabric.host_count()];
        let domain_up = vec![true; fabric.domain_count()];
        let slowdown = vec![1.0; fabric.host_count()];
        let (working, truth) = (capacities.clone(), capacities.clone());
        Outages { fabric, working, truth, nominal: capacities, host_up, domain_up, slowdown }
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

    /// Returns true if a host, or the switch of a rack or pod, can send reports.
    pub fn can_report(&self, source: Candidate) -> bool {
        match source {
            Candidate::Host(host) => self.is_up(host),
            Candidate::Domain(domain) => self.is_domain_up(domain),
        }
    }

    /// Applies an event: links lose capacity, hosts and racks fail or recover.
    pub fn apply(&mut self, event: Event) -> Effects {
        let mut changed = Changes::default();
        let mut hosts = Vec::new();
        let state = match event.change {
            Change::Capacity(resource, capacity) => {
                self.set_capacity(resource, capacity, &mut changed);
                None
            }
            Change::Slowdown(host, factor) => {
                self.slowdown[host.index()] = factor;
                self.update_host(host, &mut changed);
                None
            }
            Change::Host(host, state) => {
                hosts.push(host);
                Some(state)
            }
            Change::Domain(domain, state) => {
                hosts.extend(self.fabric.hosts(domain).map(HostId));
                if matches!(state, HostState::Down | HostState::Up) {
                    self.set_domain_up(domain, state == HostState::Up, &mut changed);
                }
                Some(state)
            }
        };
        if let Some(state @ (HostState::Down | HostState::Up)) = state {
            hosts.iter().for_each(|&host| self.set_host_up(host, state == HostState::Up, &mut changed));
        }
        Effects { hosts, state, changed, announced: event.announced }
    }

    /// Sets the capacity of a resource, and adds changes to `changed`. The capacity of a failed resource takes effect when
    /// it recovers.
    fn set_capacity(&mut self, resource: ResourceId, capacity: Load, changed: &mut Changes) {
        self.working.set(resource, capacity);
        self.update(resource, changed);
    }

    /// Marks a host, with its links and devices, as up or failed, and adds changes to `changed`.
    fn set_host_up(&mut self, host: HostId, up: bool, changed: &mut Changes) {
        self.host_up[host.index()] = up;
        self.update_host(host, changed);
    }

    /// Updates the links and devices of a host, and adds changes to `changed`.
    fn update_host(&mut self, host: HostId, changed: &mut Changes) {
        let fabric = self.fabric.clone();
        let links = [fabric.egress(host), fabric.ingress(host)];
        let devices = (0..fabric.devices(host).len() as u16).map(|index| fabric.device(host, index));
        let pairs = fabric.all_hosts().flat_map(|other| [fabric.pair(host, other), fabric.pair(other, host)]);
        for resource in links.into_iter().chain(devices).chain(pairs).flatten() {
            self.update(resource, changed);
        }
    }

    /// Marks the links of a rack or pod as up or failed, and adds changes to `changed`.
    fn set_domain_up(&mut self, domain: DomainId, up: bool, changed: &mut Changes) {
        self.domain_up[domain.index()] = up;
        for resource in
            [self.fabric.out_of_domain(domain), self.fabric.into_domain(domain)].into_iter().flatten()
        {
            self.update(resource, changed);
        }
    }

    /// Updates the current capacity of a resource: 0 if one of its hosts, its rack or its pod has failed, and less if one
    /// of its hosts is slow.
    fn update(&mut self, resource: ResourceId, changed: &mut Changes) {
        let fabric = &self.fabric;
        let pair = fabric.hosts_of_pair(resource);
        let hosts = || fabric.host_of(resource).into_iter().chain(pair.into_iter().flat_map(|(a, b)| [a, b]));
        let is_up = hosts().all(|host| self.is_up(host))
            && fabric.domain_of_link(resource).is_none_or(|domain| self.is_domain_up(domain));
        let slowdown = hosts().map(|host| self.slowdown[host.index()]).fold(1.0, f64::max);
        let working = self.working.get(resource);
        let slowed =
            if slowdown == 1.0 { working } else { Load((working.0 as f64 / slowdown).round() as i64) };
        let truth = if is_up { slowed } else { Load(0) };
        let nominal = if fabric.host_of(resource).is_some() { slowed } else { truth };
        if self.truth.get(resource) != truth {
            self.truth.set(resource, truth);
            changed.truth.push((resource, truth));
        }
        if self.nominal.get(resource) != nominal {
            self.nominal.set(resource, nominal);
            changed.nominal.push((resource, nominal));
        }
    }
}

#[cfg(test)]
mod tests {
    use leeward_fabric::Nanos;
    use leeward_testing::clusters::{RACKS_4X4_WITH_DISKS, cluster};
    use proptest::prelude::*;

    use super::*;

    fn event(change: Change, announced: bool) -> Event {
        Event { at: Nanos(0), change, announced }
    }

    fn change() -> impl Strategy<Value = Change> {
        let state = || prop::sample::select(vec![HostState::Down, HostState::Up]);
        // Few hosts and links, so that changes meet.
        prop_oneof![
            (0u32..3, state()).prop_map(|(host, state)| Change::Host(HostId(host), state)),
            (0u32..2, state()).prop_map(|(rack, state)| Change::Domain(DomainId(rack), state)),
            (0u32..3, prop::sample::select(vec![1.0, 4.0]))
                .prop_map(|(host, factor)| Change::Slowdown(HostId(host), factor)),
            (prop::sample::select(vec![0u32, 3, 32, 33]), 1i64..4)
                .prop_map(|(link, capacity)| Change::Capacity(ResourceId(link), Load(capacity))),
        ]
    }

    proptest! {
        #[test]
        fn announced_capacities_are_the_true_ones_of_all_that_is_up(
            changes in prop::collection::vec(change(), 0..12),
        ) {
            let cluster = cluster(RACKS_4X4_WITH_DISKS);
            let mut outages = Outages::new(cluster.fabric.clone(), cluster.capacities.clone());
            let mut ledger = cluster.capacities.clone();
            for change in changes {
                let effects = outages.apply(event(change, true));
                effects.changed.nominal.iter().for_each(|&(resource, capacity)| ledger.set(resource, capacity));
                for resource in cluster.fabric.all_resources() {
                    let host_up = cluster.fabric.host_of(resource).is_none_or(|host| outages.is_up(host));
                    if host_up {
                        prop_assert_eq!(ledger.get(resource), outages.truth().get(resource));
                    }
                }
            }
        }
    }

    #[test]
    fn a_detected_host_that_fails_again_is_still_detected_as_up() {
        let cluster = cluster(RACKS_4X4_WITH_DISKS);
        let mut outages = Outages::new(cluster.fabric.clone(), cluster.capacities.clone());
        let host = HostId(8);
        let mut detected = BTreeSet::from([host]);
        let mut input = |state: HostState| {
            let effects = outages.apply(event(Change::Domain(DomainId(2), state), false));
            effects.input(host, &mut detected)
        };
        assert!(input(HostState::Down).is_none());
        assert!(matches!(input(HostState::Up), Some(Input::Health(HostId(8), true))));
        assert!(input(HostState::Up).is_none(), "the engine knows it");
    }
}
