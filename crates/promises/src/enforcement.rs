//! The state machine of promises in force: versions, enforcers and what they count. Time is an argument.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use leeward_agreements::Grant;
use leeward_fabric::Nanos;
use leeward_records::{AppliedState, Enforcer, EnforcerKind, PromisesVersion};

use crate::acknowledgement::{AcknowledgeError, Acknowledged, Acknowledgement};
use crate::burn::{BurnAlert, WINDOWS};
use crate::enforcers::{EnforcerState, Enforcers, Growth};
use crate::recent::RecentChanges;
use crate::seen::{RequestCounters, Seen};
use crate::status::{Place, PlaceState, PlaceStatus, PromiseState, PromiseStatus, Reported, places};

/// Age up to which a latency shows that a promise is seen: the shortest window of burn rates.
const RECENT: Nanos = WINDOWS[0];

/// Versions of promises, enforcers, and what they count.
#[derive(Clone, Debug, Default)]
pub struct Enforcement {
    /// Version of the set, and the last changes.
    recent: RecentChanges,
    /// Version at which this state began. Changes before it are unknown, so all hosts may have changed then.
    began: u64,
    /// Version of the last change of the promises of a host, by name.
    changed: BTreeMap<String, u64>,
    enforcers: Enforcers,
    seen: BTreeMap<String, Seen>,
}

impl Enforcement {
    /// Restores stored state at the time `now`. Leases that had not run out begin then, because no service received
    /// acknowledgements before.
    pub fn restore(&mut self, version: Option<PromisesVersion>, enforcers: Vec<Enforcer>, now: Nanos) {
        self.follow(version.unwrap_or_default());
        for record in enforcers {
            self.enforcers.note(Arc::new(record), now);
        }
    }

    /// Version of the set of promises.
    pub fn version(&self) -> PromisesVersion {
        self.recent.version
    }

    /// Version of the set of promises, with the hosts that the last versions concern.
    pub fn recent(&self) -> &RecentChanges {
        &self.recent
    }

    /// Begins the next version, in which the promises of these hosts have changed.
    pub fn advance<'a>(&mut self, hosts: impl IntoIterator<Item = &'a str>, now: Nanos) -> PromisesVersion {
        let version = self.recent.version.next(now);
        let hosts: BTreeSet<String> = hosts.into_iter().map(str::to_owned).collect();
        self.changed.extend(hosts.iter().map(|host| (host.clone(), version.number)));
        self.recent.advance(version, hosts);
        version
    }

    /// Takes on a version from the store. It is unknown which hosts have changed.
    pub fn follow(&mut self, version: PromisesVersion) {
        self.recent.follow(version);
        self.began = version.number;
    }

    /// Number of the version of the last change of a host's promises.
    pub fn version_of(&self, host: &str) -> u64 {
        self.changed.get(host).copied().unwrap_or(0).max(self.began)
    }

    /// Enforcers.
    pub fn enforcers(&self) -> &Enforcers {
        &self.enforcers
    }

    /// Adds or replaces an enforcer from the store.
    pub fn note(&mut self, record: Arc<Enforcer>, now: Nanos) {
        self.enforcers.note(record, now);
    }

    /// Removes an enforcer, as the leader did.
    pub fn remove(&mut self, name: &str) -> Option<Arc<Enforcer>> {
        self.enforcers.remove(name)
    }

    /// Removes an enforcer that has ended. Its addresses still count for the length of its lease.
    pub fn end_enforcer(&mut self, name: &str, now: Nanos) -> Option<Arc<Enforcer>> {
        self.enforcers.end(name, now)
    }

    /// Forgets addresses of enforcers that ended a lease ago. Returns the hosts whose addresses differ from before.
    pub fn forget_addresses(&mut self, now: Nanos) -> Vec<String> {
        self.enforcers.forget_addresses(now)
    }

    /// Takes an acknowledgement, renews the lease of the enforcer, and counts what it counted. `is_own` is true for
    /// workloads with a promise at this enforcer.
    ///
    /// # Errors
    /// [`AcknowledgeError`]; nothing has changed then.
    pub fn acknowledge(
        &mut self,
        acknowledgement: Acknowledgement,
        now: Nanos,
        is_own: &dyn Fn(&str) -> bool,
    ) -> Result<Acknowledged, AcknowledgeError> {
        let (acknowledged, growths) =
            self.enforcers.acknowledge(acknowledgement, self.recent.version, now, is_own)?;
        let is_net = acknowledged.enforcer.kind == EnforcerKind::Net;
        for Growth { workload, growth, latencies } in growths {
            // An enforcer of packets sees no requests, and the server counts the same bytes.
            let growth = if is_net {
                RequestCounters { over_limit: growth.over_limit, ..RequestCounters::default() }
            } else {
                growth
            };
            let seen = self.seen.entry(workload).or_default();
            if !is_net {
                seen.begin(now);
            }
            seen.add(now, growth);
            seen.set_latencies(now, &acknowledged.enforcer.name, latencies);
        }
        Ok(acknowledged)
    }

    /// End of the next lease, or of the addresses of an enforcer that has ended.
    pub fn due(&self) -> Option<Nanos> {
        self.enforcers.due()
    }

    /// Marks enforcers whose lease has run out, and returns them.
    pub fn expire(&mut self, now: Nanos) -> Vec<Arc<Enforcer>> {
        self.enforcers.expire(now)
    }

    /// Forgets what was counted for a workload whose promise has ended.
    pub fn end(&mut self, workload: &str) {
        self.seen.remove(workload);
    }

    /// State of a promise with this version. `reported` is the last latency that a client reported, with its time.
    pub fn status(
        &self,
        grant: &Grant,
        version: u64,
        reported: Option<(Nanos, f64)>,
        now: Nanos,
    ) -> PromiseStatus {
        let workload = &grant.workload;
        let places: Vec<PlaceStatus> =
            places(grant).into_iter().map(|place| self.place(place, workload, version)).collect();
        let none = Seen::default();
        let seen = self.seen.get(workload).unwrap_or(&none);
        let rates = seen.burn().rates(now, 1.0 - grant.slo.percentile / 100.0);
        let by_enforcer = seen
            .latency(now, grant.slo.percentile, RECENT)
            .map(|(at, seconds, enforcer)| Reported { at, seconds, enforcer: Some(enforcer.to_owned()) });
        let by_client = reported.map(|(at, seconds)| Reported { at, seconds, enforcer: None });
        let latest = [by_enforcer, by_client].into_iter().flatten().max_by_key(|reported| reported.at);
        let is_seen = latest.as_ref().is_some_and(|reported| now.since(reported.at) <= RECENT);
        PromiseStatus {
            workload: workload.clone(),
            version,
            slo: grant.slo,
            bound_s: grant.bound_s,
            state: PromiseState::of(&places, is_seen),
            places,
            seen: latest,
            total: seen.total(),
            counted_since: seen.since(),
            alerts: BurnAlert::of(&rates),
            rates,
        }
    }

    /// State of a promise at a place.
    fn place(&self, place: Place, workload: &str, version: u64) -> PlaceStatus {
        let state = |enforcer: &EnforcerState| PlaceState::at(&enforcer.record, workload, version);
        let first = self
            .enforcers
            .at(place.kind, &place.host, place.device.as_deref())
            .min_by_key(|&enforcer| state(enforcer));
        let Some(enforcer) = first else {
            let (state, enforcer, applied, detail) = (PlaceState::Absent, None, None, None);
            return PlaceStatus { place, state, enforcer, applied, detail };
        };
        let detail = match enforcer.record.workloads.get(workload) {
            Some(AppliedState::Refused(reason) | AppliedState::Drifted(reason)) => Some(reason.clone()),
            Some(AppliedState::Applied) | None => None,
        };
        let (state, applied) = (state(enforcer), enforcer.record.applied);
        let enforcer = Some(enforcer.record.name.clone());
        PlaceStatus { place, state, enforcer, applied, detail }
    }
}
