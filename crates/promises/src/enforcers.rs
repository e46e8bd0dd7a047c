//! Enforcers with their leases. Each acknowledgement renews a lease. An enforcer whose lease has run out is expected to
//! treat all traffic as best effort, so its promises do not count as enforced.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use leeward_fabric::Nanos;
use leeward_records::{Enforcer, EnforcerKind, PromisesVersion};

use crate::acknowledgement::{AcknowledgeError, Acknowledged, Acknowledgement};
use crate::seen::{Counters, Latency};

/// Largest number of enforcers. Beyond it, a new one replaces one whose lease has run out.
pub const MAX_ENFORCERS: usize = 100_000;

/// An enforcer at present.
#[derive(Clone, PartialEq, Debug)]
pub struct EnforcerState {
    /// The enforcer.
    pub record: Arc<Enforcer>,
    /// Time of its last acknowledgement; `None` if this service has received none.
    pub heard: Option<Nanos>,
    /// End of its lease.
    pub ends: Nanos,
    /// Counters of its workloads at the last acknowledgement.
    pub counters: BTreeMap<String, Counters>,
}

/// Growth of a workload's counters, and its latencies.
pub struct Growth {
    pub workload: String,
    pub growth: Counters,
    pub latencies: Vec<Latency>,
}

/// All enforcers.
#[derive(Clone, Debug, Default)]
pub struct Enforcers {
    all: BTreeMap<String, EnforcerState>,
    by_host: BTreeMap<String, BTreeSet<String>>,
    /// Ends of leases that have not run out.
    ends: BTreeSet<(Nanos, String)>,
}

impl Enforcers {
    /// Enforcer of a name.
    pub fn get(&self, name: &str) -> Option<&EnforcerState> {
        self.all.get(name)
    }

    /// Enforcers with names after `after` (or all), in the order of their names.
    pub fn after<'a>(&'a self, after: Option<&str>) -> impl Iterator<Item = &'a EnforcerState> + use<'a> {
        let from = after.map_or(std::ops::Bound::Unbounded, std::ops::Bound::Excluded);
        self.all.range::<str, _>((from, std::ops::Bound::Unbounded)).map(|(_, state)| state)
    }

    /// Enforcers of a kind at a host. An enforcer of one device counts only for this device.
    pub fn at<'a>(
        &'a self,
        kind: EnforcerKind,
        host: &str,
        device: Option<&'a str>,
    ) -> impl Iterator<Item = &'a EnforcerState> + use<'a> {
        let names = self.by_host.get(host).into_iter().flatten();
        let states = names.filter_map(move |name| self.all.get(name));
        states.filter(move |state| {
            let own = state.record.device.as_deref();
            state.record.kind == kind && (own.is_none() || own == device)
        })
    }

    /// Addresses of a host, as its enforcers state them, in order and once each.
    pub fn addresses(&self, host: &str) -> BTreeSet<IpAddr> {
        let names = self.by_host.get(host).into_iter().flatten();
        let states = names.filter_map(|name| self.all.get(name));
        states.flat_map(|state| state.record.addresses.iter().copied()).collect()
    }

    /// Numbers of enforcers with a lease, and of those without.
    pub fn counts(&self) -> (usize, usize) {
        (self.ends.len(), self.all.len() - self.ends.len())
    }

    /// End of the next lease.
    pub fn due(&self) -> Option<Nanos> {
        self.ends.first().map(|(at, _)| *at)
    }

    /// Adds or replaces an enforcer from the store. A lease that had not run out begins now.
    pub fn note(&mut self, record: Arc<Enforcer>, now: Nanos) {
        let ends = now.plus(record.ttl);
        self.insert(EnforcerState { record, heard: None, ends, counters: BTreeMap::new() });
    }

    /// Removes an enforcer.
    pub fn remove(&mut self, name: &str) -> Option<Arc<Enforcer>> {
        let state = self.all.remove(name)?;
        self.ends.remove(&(state.ends, name.to_owned()));
        if let Some(names) = self.by_host.get_mut(&state.record.host) {
            names.remove(name);
            if names.is_empty() {
                self.by_host.remove(&state.record.host);
            }
        }
        Some(state.record)
    }

    fn insert(&mut self, state: EnforcerState) {
        let name = state.record.name.clone();
        self.remove(&name);
        self.by_host.entry(state.record.host.clone()).or_default().insert(name.clone());
        if !state.record.expired {
            self.ends.insert((state.ends, name.clone()));
        }
        self.all.insert(name, state);
    }

    /// Takes an acknowledgement, and renews the lease. Returns the result, and what the enforcer counted since its last
    /// acknowledgement. `is_own` is true for workloads with a promise at this enforcer.
    ///
    /// # Errors
    /// [`AcknowledgeError`]; nothing has changed then.
    pub fn acknowledge(
        &mut self,
        acknowledgement: Acknowledgement,
        present: PromisesVersion,
        now: Nanos,
        is_own: &dyn Fn(&str) -> bool,
    ) -> Result<(Acknowledged, Vec<Growth>), AcknowledgeError> {
        let Acknowledgement { name, kind, host, device, mut addresses, ttl, applied, workloads } =
            acknowledgement;
        let before = self.all.get(&name);
        let record = before.map(|state| state.record.clone());
        check_version(applied, record.as_deref(), present)?;
        if let Some(record) = &record
            && (record.kind, &record.host) != (kind, &host)
        {
            return Err(AcknowledgeError::NameTaken(record.kind, record.host.clone()));
        }
        let replaced = match before {
            None if self.all.len() >= MAX_ENFORCERS => Some(self.oldest_expired()?),
            _ => None,
        };
        addresses.sort_unstable();
        addresses.dedup();
        let earlier = before.map(|state| &state.counters);
        let (mut states, mut counters) = (BTreeMap::new(), BTreeMap::new());
        let (mut growths, mut unknown) = (Vec::new(), Vec::new());
        for workload in workloads {
            if !is_own(&workload.name) {
                unknown.push(workload.name);
                continue;
            }
            // Without earlier counters, it is unknown since when these count.
            let last = earlier.and_then(|earlier| earlier.get(&workload.name));
            let growth = last.map(|&last| workload.counters.since(last)).unwrap_or_default();
            growths.push(Growth { workload: workload.name.clone(), growth, latencies: workload.latencies });
            counters.insert(workload.name.clone(), workload.counters);
            states.insert(workload.name, workload.state);
        }
        let since = record.as_ref().filter(|record| !record.expired).map_or(now, |record| record.since);
        let enforcer = Enforcer {
            name,
            kind,
            host,
            device,
            addresses,
            ttl,
            applied: applied.map(|version| version.number),
            workloads: states,
            expired: false,
            since,
        };
        let changed = record.as_deref() != Some(&enforcer);
        let enforcer =
            if let (false, Some(record)) = (changed, record) { record } else { Arc::new(enforcer) };
        if let Some(replaced) = &replaced {
            self.remove(replaced);
        }
        let addresses_before = self.addresses(&enforcer.host);
        let ends = now.plus(enforcer.ttl);
        self.insert(EnforcerState { record: enforcer.clone(), heard: Some(now), ends, counters });
        let moved = self.addresses(&enforcer.host) != addresses_before;
        Ok((Acknowledged { enforcer, changed, moved, replaced, unknown }, growths))
    }

    /// Name of the enforcer whose lease ran out first.
    fn oldest_expired(&self) -> Result<String, AcknowledgeError> {
        let expired = self.all.values().filter(|state| state.record.expired);
        let oldest = expired.min_by_key(|state| state.record.since);
        oldest.map(|state| state.record.name.clone()).ok_or(AcknowledgeError::TooMany(MAX_ENFORCERS))
    }

    /// Marks enforcers whose lease has run out, and returns them.
    pub fn expire(&mut self, now: Nanos) -> Vec<Arc<Enforcer>> {
        let mut expired = Vec::new();
        while let Some((at, name)) = self.ends.first().cloned()
            && at <= now
        {
            self.ends.pop_first();
            if let Some(state) = self.all.get_mut(&name) {
                let record = Arc::make_mut(&mut state.record);
                (record.expired, record.since) = (true, now);
                expired.push(state.record.clone());
            }
        }
        expired
    }
}

/// Checks the version of an acknowledgement.
fn check_version(
    applied: Option<PromisesVersion>,
    before: Option<&Enforcer>,
    present: PromisesVersion,
) -> Result<(), AcknowledgeError> {
    let Some(applied) = applied else { return Ok(()) };
    let acknowledged = applied.number;
    if applied.set != present.set {
        return Err(AcknowledgeError::OtherSet(present));
    }
    if acknowledged > present.number {
        return Err(AcknowledgeError::FutureVersion { acknowledged, present: present.number });
    }
    match before.and_then(|before| before.applied) {
        Some(before) if acknowledged < before => Err(AcknowledgeError::OlderVersion { acknowledged, before }),
        _ => Ok(()),
    }
}
