//! The ledger itself: belief, health, and the passing of time. Samples are in `telemetry`, commits in `transact`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use foldhash::{HashMap, HashMapExt};
use leeward_fabric::{Capacities, DomainId, Fabric, HostId, Load, Nanos, ResourceId};

use crate::derived::Below;
use crate::entry::{EntryId, Owner};
use crate::settings::{LedgerSettings, SettingsError};
use crate::state::{Commitments, Gauge, Source};
use crate::transact::Stored;
use crate::view::{Scratch, View};

/// What is known of the load of every link and device of a fabric.
///
/// Time is the caller's, in nanoseconds since it started, and does not run backwards. A method that takes it as `now`
/// first lets it pass ([`Ledger::advance`]); a view shows the ledger as far as it has been advanced.
///
/// Ids of resources and hosts that the fabric does not have are counted ([`Ledger::report`]), refused
/// ([`Ledger::commit`]) or change nothing (the rest).
#[derive(Clone, Debug)]
pub struct Ledger {
    pub(crate) fabric: Arc<Fabric>,
    pub(crate) settings: LedgerSettings,
    /// `settings.unknown_after`, in time.
    pub(crate) unknown_after: Nanos,
    /// What the cluster says that resources carry, whatever is believed.
    pub(crate) full: Arc<Capacities>,
    pub(crate) gauges: Vec<Gauge>,
    pub(crate) commitments: Vec<Commitments>,
    /// What each domain's links add up to.
    pub(crate) below: Vec<Below>,
    /// Domains whose sums are to be brought up to date; empty between calls.
    pub(crate) touched: Vec<DomainId>,
    /// Only looked up, never walked through, like `owners`.
    pub(crate) entries: HashMap<EntryId, Box<Stored>>,
    /// The entries of each, in the order in which they were added.
    pub(crate) owners: HashMap<Owner, Vec<EntryId>>,
    pub(crate) next_entry: u64,
    /// What happens by itself, in order.
    pub(crate) agenda: BTreeSet<(Nanos, Due)>,
    pub(crate) clients: BTreeMap<u64, u64>,
    pub(crate) epoch: u64,
}

/// Something that happens by itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Due {
    /// An entry stops being pending.
    Entry(EntryId),
    /// Under `missing: sinbad`, a report that does not come takes away what waited for it.
    Window(ResourceId),
    /// The sums of a domain change, because a report did not come.
    Domain(DomainId),
}

impl Ledger {
    /// A ledger that knows nothing yet but the capacities to believe, which are those of the same fabric. Nothing that is
    /// believed later makes a silent host count for less in the sum of its rack.
    ///
    /// # Panics
    ///
    /// If there are more or fewer capacities than resources: they are of another fabric.
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
            below: vec![Below::default(); fabric.domain_count()],
            touched: Vec::new(),
            entries: HashMap::new(),
            owners: HashMap::new(),
            next_entry: 0,
            agenda: BTreeSet::new(),
            clients: BTreeMap::new(),
            epoch: 0,
            unknown_after: Nanos((settings.unknown_after * settings.interval.0 as f64) as u64),
            fabric,
            settings,
        };
        ledger.derive_all(Nanos(0));
        Ok(ledger)
    }

    /// The fabric it is about.
    pub fn fabric(&self) -> &Arc<Fabric> {
        &self.fabric
    }

    /// How it reads telemetry.
    pub fn settings(&self) -> &LedgerSettings {
        &self.settings
    }

    /// How many changes it has seen; a later state has a higher one.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Changes the capacity to be believed; a negative one counts as none. What may be promised changes with it, so
    /// a transaction that relied on the capacity before conflicts.
    pub fn believe(&mut self, resource: ResourceId, capacity: Load, now: Nanos) {
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
        self.epoch += 1;
    }

    /// A host is known to be down (it carries nothing), or up again (unknown until it reports). What was starting or
    /// ending on its own links and devices is over with it; entries stay until they are released.
    pub fn health(&mut self, host: HostId, up: bool, now: Nanos) {
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
        self.epoch += 1;
    }

    /// How many elastic flows that are not in the ledger share a resource, as a probe measured (Choreo section
    /// 3.2: c). Not a number and negative ones count as none.
    pub fn cross_traffic(&mut self, resource: ResourceId, flows: f64, now: Nanos) {
        self.advance(now);
        if let Some(commitments) = self.commitments.get_mut(resource.index()) {
            commitments.cross_flows = if flows.is_finite() { flows.max(0.0) } else { 0.0 };
            self.epoch += 1;
        }
    }

    /// Lets time pass: entries that end by themselves, reports that did not come. In how many steps makes no
    /// difference.
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
                    // Those of one moment together, so that what is above them is summed up once.
                    self.touched.push(domain);
                    while let Some((_, Due::Domain(domain))) = self.agenda.first().filter(|due| due.0 == at) {
                        self.touched.push(*domain);
                        self.agenda.pop_first();
                    }
                    self.derive_touched(at);
                }
            }
            self.epoch += 1;
        }
    }

    fn pop_due(&mut self, now: Nanos) -> Option<(Nanos, Due)> {
        self.agenda.first().filter(|(at, _)| *at <= now)?;
        self.agenda.pop_first()
    }

    /// When [`Ledger::advance`] has something to do next.
    pub fn next_deadline(&self) -> Option<Nanos> {
        self.agenda.first().map(|&(at, _)| at)
    }

    /// A borrow of the ledger with a private what-if, kept in `scratch`.
    pub fn view<'a>(&'a self, now: Nanos, scratch: &'a mut Scratch) -> View<'a> {
        View::new(self, now, scratch)
    }
}
