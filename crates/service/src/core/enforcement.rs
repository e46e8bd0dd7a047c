//! Promises in force: the version of the set, which each change of priorities or limits raises, and enforcers, which
//! acknowledge what they have applied. The state machine is [`Enforcement`](leeward_promises::Enforcement); here it is
//! joined with the decisions. Followers take on the leader's versions and enforcers, and leases run out at the leader only.

use std::collections::BTreeMap;
use std::sync::Arc;

use leeward_agreements::Grant;
use leeward_fabric::{Nanos, ResourceKind};
use leeward_promises::bodies::LEASE;
use leeward_promises::document::{EnforcerPromises, document};
use leeward_promises::{
    AcknowledgeError, Acknowledged, Acknowledgement, EnforcerState, PromiseStatus, PromisesTable,
    RecentChanges, places,
};
use leeward_records::{Change, DecisionRecord, Enforcer, EnforcerKind, PromisesVersion};

use super::{Addresses, Coordinator};

/// No enforcer has this name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoEnforcer(pub String);

/// Reason why an acknowledgement is rejected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EnforcerError {
    /// The cluster has no such host.
    UnknownHost(String),
    /// The host has no such device.
    UnknownDevice(String),
    /// The state of the enforcer does not allow it.
    Rejected(AcknowledgeError),
}

/// Kind and place of an enforcer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EnforcerPlace {
    /// Kind of the enforcer.
    pub kind: EnforcerKind,
    /// Host whose promises it applies.
    pub host: String,
    /// Device whose volumes it serves; `None` for all volumes of the host.
    pub device: Option<String>,
}

/// An enforcer, with the present version of its promises.
#[derive(Clone, PartialEq, Debug)]
pub struct EnforcerReply {
    /// The enforcer.
    pub state: EnforcerState,
    /// Version of the set of promises.
    pub version: PromisesVersion,
    /// Number of the version of the last change of its promises.
    pub current: u64,
    /// Acknowledged workloads without a promise at this enforcer; empty in other replies.
    pub unknown: Vec<String>,
}

impl<A: Addresses> Coordinator<A> {
    /// Version of the set of promises.
    pub fn promises_version(&self) -> PromisesVersion {
        self.enforcement.version()
    }

    /// Version of the set of promises, with the hosts that the last versions concern.
    pub fn recent_promises(&self) -> &RecentChanges {
        self.enforcement.recent()
    }

    /// Begins the next version of the set, in which these promises have changed or ended. Returns its number.
    pub(super) fn advance_promises<'a>(&mut self, changed: impl IntoIterator<Item = &'a Grant>) -> u64 {
        let now = self.now.max(self.resumes_at);
        let hosts = changed.into_iter().flat_map(|grant| [grant.client.as_str(), grant.server.as_str()]);
        let version = self.enforcement.advance(hosts, now);
        self.changes.push(Change::Promises(version));
        version.number
    }

    /// Handles the end of a decision, which may have been a promise. A follower learns the version from the leader.
    pub(super) fn end_promise(&mut self, record: &DecisionRecord) {
        let details = &record.details;
        let Some(grant) = details.promise.as_ref().filter(|_| !details.by_default) else { return };
        self.enforcement.end(&grant.workload);
        if !self.is_follower() {
            self.advance_promises([grant]);
        }
    }

    /// Records that leases have run out.
    pub(super) fn expire_enforcers(&mut self) {
        if !self.is_follower() {
            self.changes.extend(self.enforcement.expire(self.now).into_iter().map(Change::Enforcer));
            let moved = self.enforcement.forget_addresses(self.now);
            moved.iter().for_each(|host| self.update_peers(host));
        }
    }

    /// Takes an acknowledgement, and renews the lease of the enforcer.
    ///
    /// # Errors
    /// The cluster has no such host or device, or the acknowledgement does not fit what was acknowledged before.
    pub fn acknowledge(
        &mut self,
        now: Nanos,
        acknowledgement: Acknowledgement,
    ) -> Result<EnforcerReply, EnforcerError> {
        self.wake(now);
        self.check_place(&acknowledgement.host, acknowledgement.device.as_deref())?;
        let Acknowledgement { kind, host, device, .. } = &acknowledgement;
        let (kind, host, device) = (*kind, host.clone(), device.clone());
        let (active, records) = (&self.promises.active, &self.records);
        // An enforcer counts only for promises that it applies.
        let is_own = |name: &str| {
            let grant = active.get(name).and_then(|&id| records.get(id)?.details.promise.as_ref());
            grant.is_some_and(|grant| {
                places(grant).iter().any(|place| place.is_of(kind, &host, device.as_deref()))
            })
        };
        let acknowledged = self.enforcement.acknowledge(acknowledgement, self.now, &is_own);
        let Acknowledged { enforcer, changed, moved, replaced, unknown } =
            acknowledged.map_err(EnforcerError::Rejected)?;
        self.changes.extend(replaced.map(Change::EnforcerGone));
        if changed {
            self.changes.push(Change::Enforcer(enforcer.clone()));
        }
        moved.iter().for_each(|host| self.update_peers(host));
        let reply = self.enforcer_reply(&enforcer.name).map(|reply| EnforcerReply { unknown, ..reply });
        reply.ok_or_else(|| EnforcerError::UnknownHost(enforcer.host.clone()))
    }

    /// Checks that the cluster has a host, and the host a device.
    fn check_place(&self, host: &str, device: Option<&str>) -> Result<(), EnforcerError> {
        let fabric = self.engine.ledger().fabric();
        let own = fabric.host(host).ok_or_else(|| EnforcerError::UnknownHost(host.to_owned()))?;
        if let Some(name) = device {
            let known = fabric.resource(name).filter(|&device| fabric.kind(device) == ResourceKind::Device);
            if known.and_then(|device| fabric.host_of(device)) != Some(own) {
                return Err(EnforcerError::UnknownDevice(name.to_owned()));
            }
        }
        Ok(())
    }

    /// Begins a version for hosts whose promises name the addresses of this one.
    fn update_peers(&mut self, host: &str) {
        let grants = self.promises.active.values().filter_map(|&id| self.records.get(id));
        let grants = grants.filter_map(|record| record.details.promise.clone());
        let concerned: Vec<Grant> =
            grants.filter(|grant| grant.client == host || grant.server == host).collect();
        if !concerned.is_empty() {
            self.advance_promises(&concerned);
        }
    }

    /// Removes an enforcer that has ended. Its promises then have no enforcer. Its addresses stay in the promises of other
    /// hosts for the length of its lease: an upgrade would otherwise change their filters twice.
    ///
    /// # Errors
    /// No enforcer has this name.
    pub fn remove_enforcer(&mut self, now: Nanos, name: &str) -> Result<Arc<Enforcer>, NoEnforcer> {
        self.wake(now);
        let removed = self.enforcement.end_enforcer(name, self.now);
        let removed = removed.ok_or_else(|| NoEnforcer(name.to_owned()))?;
        self.changes.push(Change::EnforcerGone(name.to_owned()));
        Ok(removed)
    }

    /// Enforcers with names after `after`, in the order of their names.
    pub fn enforcers(&mut self, now: Nanos, after: Option<&str>, limit: usize) -> Vec<EnforcerReply> {
        self.wake(now);
        let states = self.enforcement.enforcers().after(after).take(limit);
        states.map(|state| self.reply_of(state)).collect()
    }

    /// The enforcer of a name.
    ///
    /// # Errors
    /// No enforcer has this name.
    pub fn enforcer(&mut self, now: Nanos, name: &str) -> Result<EnforcerReply, NoEnforcer> {
        self.wake(now);
        self.enforcer_reply(name).ok_or_else(|| NoEnforcer(name.to_owned()))
    }

    fn enforcer_reply(&self, name: &str) -> Option<EnforcerReply> {
        self.enforcement.enforcers().get(name).map(|state| self.reply_of(state))
    }

    fn reply_of(&self, state: &EnforcerState) -> EnforcerReply {
        let (state, version) = (state.clone(), self.enforcement.version());
        let current = self.enforcement.version_of(&state.record.host);
        EnforcerReply { state, version, current, unknown: Vec::new() }
    }

    /// The promises of an enforcer.
    ///
    /// # Errors
    /// No enforcer has this name.
    pub fn enforcer_promises(&mut self, now: Nanos, name: &str) -> Result<EnforcerPromises, NoEnforcer> {
        self.wake(now);
        let state = self.enforcement.enforcers().get(name).ok_or_else(|| NoEnforcer(name.to_owned()))?;
        Ok(self.promises_of(&state.record))
    }

    /// The promises that an enforcer of this kind and place would apply; those of a registered one are its own.
    ///
    /// # Errors
    /// The cluster has no such host or device.
    pub fn preview_promises(
        &mut self,
        now: Nanos,
        name: &str,
        place: EnforcerPlace,
    ) -> Result<EnforcerPromises, EnforcerError> {
        self.wake(now);
        if let Some(state) = self.enforcement.enforcers().get(name) {
            return Ok(self.promises_of(&state.record));
        }
        let EnforcerPlace { kind, host, device } = place;
        self.check_place(&host, device.as_deref())?;
        Ok(self.promises_of(&Enforcer {
            name: name.to_owned(),
            kind,
            host,
            device,
            addresses: Vec::new(),
            ttl: LEASE,
            applied: None,
            workloads: BTreeMap::new(),
            expired: true,
            since: now,
        }))
    }

    fn promises_of(&self, enforcer: &Enforcer) -> EnforcerPromises {
        let enforcers = self.enforcement.enforcers();
        let (set, version) = (self.enforcement.version().set, self.enforcement.version_of(&enforcer.host));
        let records = self.promises.active.values().filter_map(|&id| self.records.get(id));
        let grants = records.filter_map(|record| record.details.promise.as_ref());
        let addresses = |host: &str| -> Vec<String> {
            enforcers.addresses(host).iter().map(ToString::to_string).collect()
        };
        document(enforcer, set, version, grants, addresses)
    }

    /// State of a promise that holds; `None` for other decisions.
    pub(super) fn promise_status(&self, record: &DecisionRecord) -> Option<PromiseStatus> {
        let grant = record.details.promise.as_ref()?;
        if record.released.is_some() || record.details.by_default {
            return None;
        }
        let reported = self.promises.latencies.get(&grant.workload).copied();
        Some(self.enforcement.status(grant, record.details.promise_version, reported, self.now))
    }

    /// Promises and enforcers, for readers of snapshots.
    pub(super) fn promises_table(&self) -> PromisesTable {
        let records = self.promises.active.values().filter_map(|&id| self.records.get(id));
        let promises = records.filter_map(|record| self.promise_status(record)).collect();
        let (live, expired) = self.enforcement.enforcers().counts();
        PromisesTable { version: self.enforcement.version(), promises, live, expired }
    }
}

/// True if enforcers apply both grants alike: priorities, limits, and the SLO by which they count late requests.
pub(super) fn is_applied_alike(one: &Grant, other: &Grant) -> bool {
    let parts = |grant: &Grant| {
        let stages: Vec<_> = grant
            .stages
            .iter()
            .map(|stage| (stage.stage.clone(), stage.queues.clone(), stage.priority, stage.limits.clone()))
            .collect();
        (grant.client.clone(), grant.server.clone(), grant.volume.clone(), grant.slo, stages)
    };
    parts(one) == parts(other)
}
