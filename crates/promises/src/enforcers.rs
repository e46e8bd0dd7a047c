//! Enforcers with their leases. Each acknowledgement renews a lease. An enforcer whose lease has run out is expected to
//! treat all traffic as best effort, so its promises do not count as enforced.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use leeward_fabric::Nanos;
use leeward_records::{Enforcer, EnforcerKind, PromisesVersion};

use crate::acknowledgement::{AcknowledgeError, Acknowledged, Acknowledgement};
use crate::former::FormerAddresses;
use crate::seen::{Latency, RequestCounters};

/// Largest number of enforcers. Beyond it, a new one replaces one whose lease has run out.
pub const MAX_ENFORCERS: usize = 100_000;

/// An enforcer at present.
#[derive(Clone, PartialEq, Debug)]
pub struct EnforcerState {
    /// The enforcer.
    pub record: Arc<Enforcer>,
    /// Instance of its last acknowledgement; `None` if it states none, or if this service has received none.
    pub instance: Option<String>,
    /// Time of its last acknowledgement; `None` if this service has received none.
    pub heard: Option<Nanos>,
    /// End of its lease.
    pub ends: Nanos,
    /// Counters of its workloads at the last acknowledgement.
    pub counters: BTreeMap<String, RequestCounters>,
}

/// Growth of a workload's counters, and its latencies.
pub struct Growth {
    pub workload: String,
    pub growth: RequestCounters,
    pub latencies: Vec<Latency>,
}

/// All enforcers.
#[derive(Clone, Debug, Default)]
pub struct Enforcers {
    all: BTreeMap<String, EnforcerState>,
    by_host: BTreeMap<String, BTreeSet<String>>,
    /// Ends of leases that have not run out.
    ends: BTreeSet<(Nanos, String)>,
    former: FormerAddresses,
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

    /// Addresses of a host, as its enforcers state them, in order and once each. Those of an enforcer that has ended count
    /// for the length of its lease.
    pub fn addresses(&self, host: &str) -> BTreeSet<IpAddr> {
        let names = self.by_host.get(host).into_iter().flatten();
        let states = names.filter_map(|name| self.all.get(name));
        let stated = states.flat_map(|state| state.record.addresses.iter().copied());
        stated.chain(self.former.of(host)).collect()
    }

    /// Numbers of enforcers with a lease, and of those without.
    pub fn counts(&self) -> (usize, usize) {
        (self.ends.len(), self.all.len() - self.ends.len())
    }

    /// End of the next lease, or of the addresses of an enforcer that has ended.
    pub fn due(&self) -> Option<Nanos> {
        let lease = self.ends.first().map(|(at, _)| *at);
        [lease, self.former.due()].into_iter().flatten().min()
    }

    /// Adds or replaces an enforcer from the store. A lease that had not run out begins now.
    pub fn note(&mut self, record: Arc<Enforcer>, now: Nanos) {
        let ends = now.plus(record.ttl);
        let (instance, heard, counters) = (None, None, BTreeMap::new());
        self.insert(EnforcerState { record, instance, heard, ends, counters });
    }

    /// Removes an enforcer that has ended. Its addresses still count for the length of its lease.
    pub fn end(&mut self, name: &str, now: Nanos) -> Option<Arc<Enforcer>> {
        let record = self.remove(name)?;
        self.former.keep(&record.host, name, &record.addresses, now.plus(record.ttl));
        Some(record)
    }

    /// Forgets addresses of enforcers that ended long ago. Returns the hosts whose addresses differ from before.
    pub fn forget_addresses(&mut self, now: Nanos) -> Vec<String> {
        let ended = self.former.expire(now);
        // An enforcer of the host may state the same addresses.
        let differs = |(host, all): &(String, BTreeSet<IpAddr>)| !all.is_subset(&self.addresses(host));
        ended.into_iter().filter(differs).map(|(host, _)| host).collect()
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
        let Acknowledgement { name, kind, host, device, instance, mut addresses, ttl, applied, workloads } =
            acknowledgement;
        let named = self.all.get(&name);
        let is_same = |state: &&EnforcerState| (state.record.kind, &state.record.host) == (kind, &host);
        // Without a lease, the name is free for another kind or host.
        if let Some(other) = named.filter(|state| !is_same(state) && !state.record.expired) {
            return Err(AcknowledgeError::NameTaken(other.record.kind, other.record.host.clone()));
        }
        let replaced = match named {
            None if self.all.len() >= MAX_ENFORCERS => Some(self.oldest_expired()?),
            _ => None,
        };
        let former_host = named.map(|state| state.record.host.clone()).filter(|former| *former != host);
        let before = named.filter(is_same);
        let record = before.map(|state| state.record.clone());
        check_version(applied, record.as_deref(), present)?;
        let is_other = |state: &&EnforcerState| {
            instance.as_ref().zip(state.instance.as_ref()).is_some_and(|(own, other)| own != other)
        };
        let other = before.filter(is_other);
        if let Some(state) = other.filter(|state| !state.record.expired) {
            return Err(AcknowledgeError::OtherInstance(state.ends));
        }
        let is_new = other.is_some();
        let instance = instance.or_else(|| before?.instance.clone());
        addresses.sort_unstable();
        addresses.dedup();
        let earlier = before.filter(|_| !is_new).map(|state| &state.counters);
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
        let concerned = std::iter::once(enforcer.host.clone()).chain(former_host);
        let concerned: Vec<_> = concerned.map(|host| (self.addresses(&host), host)).collect();
        let (ends, heard) = (now.plus(enforcer.ttl), Some(now));
        self.former.forget(&enforcer.host, &enforcer.name);
        self.insert(EnforcerState { record: enforcer.clone(), instance, heard, ends, counters });
        let moved = concerned.into_iter().filter(|(before, host)| self.addresses(host) != *before);
        let moved = moved.map(|(_, host)| host).collect();
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
