//! The ledger itself: assumed capacities, host health, and the passing of time. Samples are in `telemetry`, commits in
//! `transact`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};
use leeward_fabric::{Capacities, Cluster, DomainId, Fabric, HostId, Load, Nanos, ResourceId};

use crate::domain_sums::DomainSums;
use crate::entry::{EntryId, Owner};
use crate::epoch::Epoch;
use crate::settings::{LedgerSettings, SettingsError};
use crate::state::{Commitments, Gauge, Source};
use crate::stored::Stored;

/// The known load of every link and device of a fabric.
///
/// The caller provides the time, in nanoseconds since its start; it must not run backwards. A method with a `now`
/// argument first advances the ledger to it ([`Ledger::advance`]). A view shows the ledger as far as it has advanced.
///
/// Unknown resource and host ids are counted by [`Ledger::report`], rejected by [`Ledger::commit`], and ignored by
/// the other methods.
#[derive(Clone, Debug)]
pub struct Ledger {
    pub(crate) fabric: Arc<Fabric>,
    pub(crate) settings: LedgerSettings,
    /// `settings.unknown_after` as a duration.
    pub(crate) unknown_after: Nanos,
    /// Capacities from the cluster file; [`Ledger::set_capacity`] does not change them.
    pub(crate) full: Arc<Capacities>,
    pub(crate) gauges: Vec<Gauge>,
    pub(crate) commitments: Vec<Commitments>,
    /// Sums of the resources below the links of each domain.
    pub(crate) below: Vec<DomainSums>,
    /// Domains whose sums need an update; empty between calls.
    pub(crate) touched: Vec<DomainId>,
    /// Only looked up, never iterated, like `owners`.
    pub(crate) entries: HashMap<EntryId, Box<Stored>>,
    /// Entries of each owner, in the order of their commits.
    pub(crate) owners: HashMap<Owner, Vec<EntryId>>,
    pub(crate) next_entry: u64,
    /// Scheduled changes, in order of time.
    pub(crate) agenda: BTreeSet<(Nanos, Due)>,
    pub(crate) clients: BTreeMap<u64, u64>,
    pub(crate) epoch: Epoch,
}

/// A scheduled change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Due {
    /// The entry stops being pending.
    Entry(EntryId),
    /// Under `missing: sinbad`, a missing report removes the pressure and rates that waited for it.
    Window(ResourceId),
    /// The sums of a domain change because a report is missing.
    Domain(DomainId),
}

impl Ledger {
    /// An empty ledger with the given capacities, which must belong to `fabric`. A silent host adds its capacity given
    /// here to the sum of its rack, even after [`Ledger::set_capacity`].
    ///
    /// # Errors
    ///
    /// Fails if a setting is out of its range.
    ///
    /// # Panics
    ///
    /// If the number of capacities differs from the number of resources: they belong to another fabric.
    pub fn new(
        fabric: Arc<Fabric>,
        capacities: &Capacities,
        settings: LedgerSettings,
    ) -> Result<Ledger, SettingsError> {
        settings.check()?;
        let resources = fabric.resource_count();
        assert_eq!(capacities.as_slice().len(), resources, "capacities of the same fabric");
        let mut ledger = Ledger {
            full: Arc::new(capacities.clone()),
            gauges: capacities.as_slice().iter().map(|c| Gauge::new(c.0)).collect(),
            commitments: vec![Commitments::default(); resources],
            below: vec![DomainSums::default(); fabric.domain_count()],
            touched: Vec::new(),
            entries: HashMap::new(),
            owners: HashMap::new(),
            next_entry: 0,
            agenda: BTreeSet::new(),
            clients: BTreeMap::new(),
            epoch: Epoch::default(),
            unknown_after: settings.known_for(),
            fabric,
            settings,
        };
        ledger.derive_all(Nanos(0));
        Ok(ledger)
    }

    /// The fabric of this ledger.
    pub fn fabric(&self) -> &Arc<Fabric> {
        &self.fabric
    }

    /// Settings of the estimator.
    pub fn settings(&self) -> &LedgerSettings {
        &self.settings
    }

    /// Number of changes so far; it only grows.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Sets the capacity that the ledger assumes; a negative one becomes zero. The rate that may be promised changes
    /// with it, so a transaction that relied on the old capacity conflicts.
    pub fn set_capacity(&mut self, resource: ResourceId, capacity: Load, now: Nanos) {
        self.advance(now);
        let Some(gauge) = self.gauges.get_mut(resource.index()) else { return };
        let before = std::mem::replace(&mut gauge.capacity, capacity.0.max(0));
        if before != gauge.capacity {
            let version = &mut self.commitments[resource.index()].version;
            *version = version.wrapping_add(1);
        }
        let rack = self.fabric.host_of(resource).map(|host| self.fabric.rack_of(host));
        if let Some(domain) = rack.or(self.fabric.domain_of_link(resource)) {
            self.derive_upwards(domain, now);
        }
        self.epoch.0 += 1;
    }

    /// Marks a host as down (it carries nothing), or as up again (unknown until it reports). Rates that were starting
    /// or ending on its own links and devices no longer count; entries stay until their release.
    pub fn set_health(&mut self, host: HostId, up: bool, now: Nanos) {
        self.advance(now);
        if host.index() >= self.fabric.host_count() {
            return;
        }
        let fabric = self.fabric.clone();
        let links = [fabric.egress(host), fabric.ingress(host)];
        let devices = (0..fabric.devices(host).len()).map(|index| fabric.device(host, index as u16));
        for resource in links.into_iter().chain(devices).flatten() {
            let gauge = &mut self.gauges[resource.index()];
            if up && gauge.source == Source::Down {
                (gauge.source, gauge.until) = (Source::None, now);
            } else if !up {
                (gauge.source, gauge.measured) = (Source::Down, 0.0);
                let commitments = &mut self.commitments[resource.index()];
                commitments.pending.forget(now);
                commitments.pending_guaranteed.forget(now);
                (commitments.measured_guaranteed, commitments.hot_since) = (None, None);
            }
        }
        self.derive_upwards(fabric.rack_of(host), now);
        self.epoch.0 += 1;
    }

    /// Creates an empty ledger of a cluster, with the capacities and the cross traffic of its file.
    ///
    /// # Errors
    ///
    /// Fails if a setting is out of its range.
    pub fn of_cluster(cluster: &Cluster, settings: LedgerSettings) -> Result<Ledger, SettingsError> {
        let mut ledger = Ledger::new(cluster.fabric.clone(), &cluster.capacities, settings)?;
        for &(link, connections) in &cluster.cross_traffic {
            ledger.set_cross_traffic(link, connections, Nanos(0));
        }
        Ok(ledger)
    }

    /// Sets the number of elastic flows outside the ledger that share a resource, as measured by a probe (Choreo
    /// section 3.2: c). NaN and negative values count as zero.
    pub fn set_cross_traffic(&mut self, resource: ResourceId, flows: f64, now: Nanos) {
        self.advance(now);
        if let Some(commitments) = self.commitments.get_mut(resource.index()) {
            commitments.cross_flows = if flows.is_finite() { flows.max(0.0) } else { 0.0 };
            self.epoch.0 += 1;
        }
    }

    /// Advances the time: applies the scheduled ends of entries and the effects of missing reports. The result does
    /// not depend on the number of steps.
    pub fn advance(&mut self, now: Nanos) {
        while let Some((at, due)) = self.pop_due(now) {
            match due {
                Due::Entry(id) => self.expire(id, at),
                Due::Window(resource) => {
                    let grace = self.settings.grace();
                    let gauge = &mut self.gauges[resource.index()];
                    self.commitments[resource.index()]
                        .drop_until_window(gauge, |item| item.awaited.plus(grace) <= at);
                }
                Due::Domain(domain) => {
                    // Domains due at the same time are handled together, so that the sums above them are updated
                    // once.
                    self.touched.push(domain);
                    while let Some((_, Due::Domain(domain))) = self.agenda.first().filter(|due| due.0 == at) {
                        self.touched.push(*domain);
                        self.agenda.pop_first();
                    }
                    self.derive_touched(at);
                }
            }
            self.epoch.0 += 1;
        }
    }

    fn pop_due(&mut self, now: Nanos) -> Option<(Nanos, Due)> {
        self.agenda.first().filter(|(at, _)| *at <= now)?;
        self.agenda.pop_first()
    }

    /// Time of the next scheduled change.
    pub fn next_deadline(&self) -> Option<Nanos> {
        self.agenda.first().map(|&(at, _)| at)
    }
}
