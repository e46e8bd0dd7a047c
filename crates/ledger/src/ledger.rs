//! The ledger itself: telemetry in, health, belief, and the passing of time. Commits are in `transact`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use leeward_fabric::{Capacities, Fabric, HostId, Load, Nanos, ResourceId};

use crate::entry::{EntryId, Owner};
use crate::numbers::Sums;
use crate::sample::{Discarded, Sample};
use crate::settings::{Initial, LedgerSettings, Missing, SettingsError};
use crate::state::{Commitments, Gauge, Source};
use crate::transact::Stored;
use crate::view::{Scratch, View};

/// What is known of the load of every link and device of a fabric.
#[derive(Clone, Debug)]
pub struct Ledger {
    pub(crate) fabric: Arc<Fabric>,
    pub(crate) settings: LedgerSettings,
    pub(crate) gauges: Vec<Gauge>,
    pub(crate) commitments: Vec<Commitments>,
    /// When the estimate of a domain's links (out of it, into it) changes without a report.
    pub(crate) derived_due: Vec<Nanos>,
    pub(crate) entries: BTreeMap<EntryId, Stored>,
    pub(crate) owners: BTreeMap<Owner, Vec<EntryId>>,
    pub(crate) next_entry: u64,
    /// When an entry stops being pending by itself.
    pub(crate) deadlines: BTreeSet<(Nanos, EntryId)>,
    /// Under `missing: sinbad`, when a report that does not come takes pressure away.
    pub(crate) pressure_due: BTreeSet<(Nanos, ResourceId)>,
    pub(crate) clients: BTreeMap<u64, u64>,
    pub(crate) epoch: u64,
}

impl Ledger {
    /// A ledger that knows nothing yet but the capacities to believe.
    pub fn new(
        fabric: Arc<Fabric>,
        capacities: &Capacities,
        settings: LedgerSettings,
    ) -> Result<Ledger, SettingsError> {
        settings.check()?;
        let gauges = capacities.as_slice().iter().map(|c| Gauge::new(c.0)).collect();
        let mut ledger = Ledger {
            gauges,
            commitments: vec![Commitments::default(); fabric.resource_count()],
            derived_due: vec![Nanos(u64::MAX); fabric.domain_count()],
            entries: BTreeMap::new(),
            owners: BTreeMap::new(),
            next_entry: 0,
            deadlines: BTreeSet::new(),
            pressure_due: BTreeSet::new(),
            clients: BTreeMap::new(),
            epoch: 0,
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

    /// Takes in samples, in any order of arrival: their windows decide.
    pub fn report(&mut self, samples: &[Sample], now: Nanos) -> Discarded {
        let mut discarded = Discarded::default();
        let mut touched = Vec::new();
        for sample in samples {
            if sample.resource.index() >= self.gauges.len() {
                discarded.unknown += 1;
            } else if sample.window.0 >= sample.window.1 || sample.load.0 < 0 {
                discarded.invalid += 1;
            } else if self.take_in(sample) {
                self.touch(sample.resource, &mut touched);
            } else {
                discarded.stale += 1;
            }
        }
        for domain in touched {
            self.derive(domain, now);
        }
        self.epoch += 1;
        discarded
    }

    /// Moves the estimate of one resource; `false` if the sample is older than what is known.
    fn take_in(&mut self, sample: &Sample) -> bool {
        let settings = &self.settings;
        let gauge = &mut self.gauges[sample.resource.index()];
        let (from, until) = sample.window;
        let first = gauge.source != Source::Direct;
        if gauge.source == Source::Down || (!first && until <= gauge.until) {
            return false;
        }
        if gauge.source == Source::Derived || (first && settings.missing == Missing::Strict) {
            // Its own counter starts here; what was summed up for it before plays no part.
            (gauge.measured, gauge.until) = (0.0, from);
        }
        if settings.missing == Missing::Sinbad {
            let windows = from.since(gauge.until).0 as f64 / settings.interval.0 as f64;
            let missed = windows.round() as u64;
            gauge.measured = fed_full(gauge, missed, settings.alpha);
            gauge.until = gauge.until.plus(Nanos(missed.saturating_mul(settings.interval.0)));
        }
        let weight = match (first, settings.initial) {
            (true, Initial::First) => 1.0,
            _ => settings.weight(until.since(gauge.until)),
        };
        gauge.measured = (1.0 - weight) * gauge.measured + weight * sample.load.0 as f64;
        (gauge.until, gauge.source) = (until, Source::Direct);
        let commitments = &mut self.commitments[sample.resource.index()];
        let before = commitments.measured_guaranteed.unwrap_or(0.0);
        commitments.measured_guaranteed =
            sample.guaranteed.map(|load| (1.0 - weight) * before + weight * load.0.max(0) as f64);
        self.window_passed(sample.resource, sample.window, weight, sample.load.0);
        true
    }

    /// What every new window does to what is pending at a resource, whether its estimate is its own or derived.
    pub(crate) fn window_passed(
        &mut self,
        resource: ResourceId,
        window: (Nanos, Nanos),
        weight: f64,
        latest: i64,
    ) {
        let gauge = &mut self.gauges[resource.index()];
        let commitments = &mut self.commitments[resource.index()];
        commitments.pending.fade(window, weight);
        commitments.pending_guaranteed.fade(window, weight);
        if !commitments.until_window.is_empty() {
            drop_until_window(gauge, commitments, window.1);
        }
        let hot = latest as f64 > self.settings.hot * gauge.capacity as f64;
        commitments.hot_since = hot.then(|| commitments.hot_since.unwrap_or(window.0));
        (commitments.from, commitments.latest) = (window.0, latest);
    }

    /// Changes the capacity to be believed; a negative one counts as none.
    pub fn believe(&mut self, resource: ResourceId, capacity: Load, now: Nanos) {
        self.gauges[resource.index()].capacity = capacity.0.max(0);
        let rack = self.fabric.host_of(resource).map(|host| self.fabric.rack_of(host));
        if let Some(domain) = rack.or(self.fabric.domain_of_link(resource)) {
            self.derive(domain, now);
        }
        self.epoch += 1;
    }

    /// A host is known to be down (it carries nothing), or up again (unknown until it reports).
    pub fn health(&mut self, host: HostId, up: bool, now: Nanos) {
        let fabric = self.fabric.clone();
        let links = [fabric.egress(host), fabric.ingress(host)];
        let devices = (0..fabric.devices(host).len()).map(|index| fabric.device(host, index as u16));
        for resource in links.into_iter().chain(devices).flatten() {
            let gauge = &mut self.gauges[resource.index()];
            if up && gauge.source == Source::Down {
                (gauge.source, gauge.until) = (Source::None, now);
            } else if !up {
                (gauge.source, gauge.measured) = (Source::Down, 0.0);
            }
        }
        self.derive(fabric.rack_of(host), now);
        self.epoch += 1;
    }

    /// Lets time pass: entries that end by themselves, reports that did not come.
    pub fn advance(&mut self, now: Nanos) {
        while let Some(&(at, id)) = self.deadlines.first().filter(|(at, _)| *at <= now) {
            self.deadlines.pop_first();
            self.expire(id, at);
        }
        while let Some(&(at, resource)) = self.pressure_due.first().filter(|(at, _)| *at <= now) {
            self.pressure_due.pop_first();
            let cleared = Nanos(at.0.saturating_sub(self.settings.grace().0));
            let (gauge, commitments) =
                (&mut self.gauges[resource.index()], &mut self.commitments[resource.index()]);
            drop_until_window(gauge, commitments, cleared);
        }
        for at in 0..self.derived_due.len() {
            if self.derived_due[at] <= now {
                self.derive(leeward_fabric::DomainId(at as u32), now);
            }
        }
    }

    /// When [`Ledger::advance`] has something to do next.
    pub fn next_deadline(&self) -> Option<Nanos> {
        let entry = self.deadlines.first().map(|&(at, _)| at);
        let pressure = self.pressure_due.first().map(|&(at, _)| at);
        let derived = self.derived_due.iter().copied().filter(|&at| at != Nanos(u64::MAX)).min();
        [entry, pressure, derived].into_iter().flatten().min()
    }

    /// A borrow of the ledger with a private what-if, kept in `scratch`.
    pub fn view<'a>(&'a self, now: Nanos, scratch: &'a mut Scratch) -> View<'a> {
        View::new(self, now, scratch)
    }

    // ---- reading --------------------------------------------------------------------------------------

    /// How many reports in a row have not come by `now`.
    fn missed(&self, until: Nanos, now: Nanos) -> u64 {
        now.since(until.plus(self.settings.grace())).0 / self.settings.interval.0
    }

    /// Until when a resource last reported at `until` counts as seen, under `missing: strict`.
    pub(crate) fn seen_until(&self, until: Nanos) -> Nanos {
        until.plus(Nanos((self.settings.unknown_after * self.settings.interval.0 as f64) as u64))
    }

    /// M of a resource; `None` where it cannot be seen.
    pub(crate) fn measured(&self, resource: ResourceId, now: Nanos) -> Option<f64> {
        let gauge = &self.gauges[resource.index()];
        match (gauge.source, self.settings.missing) {
            (Source::Down, _) => Some(0.0),
            (Source::Derived, _) => Some(gauge.measured),
            (Source::None, Missing::Strict) => None,
            (Source::Direct, Missing::Strict) => {
                (now <= self.seen_until(gauge.until)).then_some(gauge.measured)
            }
            (Source::None | Source::Direct, Missing::Sinbad) => {
                Some(fed_full(gauge, self.missed(gauge.until, now), self.settings.alpha))
            }
        }
    }

    /// The end of the window that the next report is about, and so takes pressure away.
    pub(crate) fn next_window(&self, resource: ResourceId, now: Nanos) -> Nanos {
        let (until, interval) = (self.gauges[resource.index()].until, self.settings.interval.0);
        let passed = now.since(until).0 / interval;
        until.plus(Nanos(interval.saturating_mul(passed + 1)))
    }

    /// When the estimate of a resource changes next if nothing is reported; `None` if it does not.
    pub(crate) fn changes_at(&self, resource: ResourceId, now: Nanos) -> Option<Nanos> {
        let gauge = &self.gauges[resource.index()];
        match (gauge.source, self.settings.missing) {
            (Source::Down, _) | (Source::None, Missing::Strict) => None,
            (_, Missing::Strict) => {
                let seen = self.seen_until(gauge.until);
                (now <= seen).then(|| seen.plus(Nanos(1)))
            }
            (_, Missing::Sinbad) => {
                let missed = self.missed(gauge.until, now) + 1;
                let interval = Nanos(self.settings.interval.0.saturating_mul(missed));
                Some(gauge.until.plus(self.settings.grace()).plus(interval))
            }
        }
    }

    /// The end of the last window of a resource, missing reports that were counted as full included.
    pub(crate) fn accounted_until(&self, resource: ResourceId, now: Nanos) -> Nanos {
        let until = self.gauges[resource.index()].until;
        match self.settings.missing {
            Missing::Strict => until,
            Missing::Sinbad => {
                let missed = self.missed(until, now);
                until.plus(Nanos(self.settings.interval.0.saturating_mul(missed)))
            }
        }
    }

    pub(crate) fn sums(&self, resource: ResourceId, now: Nanos) -> Sums {
        let commitments = &self.commitments[resource.index()];
        Sums {
            capacity: self.gauges[resource.index()].capacity as f64,
            measured: self.measured(resource, now),
            measured_guaranteed: commitments.measured_guaranteed,
            pending: commitments.pending.total(),
            pending_guaranteed: commitments.pending_guaranteed.total(),
            flows: commitments.flows,
            inelastic: commitments.inelastic,
            reserved_mean: commitments.reserved_mean,
            reserved_rate: commitments.reserved_rate,
        }
    }
}

/// The estimate after `missed` reports that each counted as full: C - (C - v)(1 - alpha)^missed.
fn fed_full(gauge: &Gauge, missed: u64, alpha: f64) -> f64 {
    if missed == 0 {
        return gauge.measured;
    }
    let capacity = gauge.capacity as f64;
    capacity - (capacity - gauge.measured) * (1.0 - alpha).powf(missed as f64)
}

/// Takes away what was committed before `until`.
fn drop_until_window(gauge: &mut Gauge, commitments: &mut Commitments, until: Nanos) {
    let pending = &mut commitments.pending;
    commitments.until_window.retain(|item| {
        let stays = item.committed >= until;
        if !stays {
            gauge.pressure -= item.pressure;
            pending.held -= item.rate;
        }
        stays
    });
}
