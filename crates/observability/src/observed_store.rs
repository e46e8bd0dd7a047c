//! A store that publishes events for its changes once they are stored, and never before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use leeward_promises::EnforcerChange;
use leeward_records::{
    Change, ClusterVersion, DecisionDetails, DecisionId, DecisionRecord, Enforcer, Modes, ModesState, State,
};
use leeward_store::{Kind, Leadership, Reader, Store, StoreError, Updates};

use super::{Event, Events, Metrics};

/// A store with metrics and events.
pub struct ObservedStore {
    /// The actual store.
    pub store: Box<dyn Store>,
    /// Metrics of transactions.
    pub metrics: Arc<Metrics>,
    /// Events for decisions and clusters.
    pub events: Arc<Events>,
    /// True if the last operation failed.
    failed: bool,
    /// Last stored or loaded version of the cluster; 0 before the first.
    version: ClusterVersion,
    /// Last stored or loaded modes.
    modes: Modes,
    /// Reasons of decisions by the default policy that were logged; policies have few.
    noted: BTreeSet<String>,
    /// Known enforcers by name; true if the lease of one has run out.
    expired: BTreeMap<String, bool>,
}

impl ObservedStore {
    /// Wraps a store. `modes` are in force until a change of modes is stored.
    pub fn new(
        store: Box<dyn Store>,
        metrics: Arc<Metrics>,
        events: Arc<Events>,
        modes: Modes,
    ) -> ObservedStore {
        ObservedStore {
            store,
            metrics,
            events,
            failed: false,
            version: ClusterVersion::default(),
            modes,
            noted: BTreeSet::new(),
            expired: BTreeMap::new(),
        }
    }

    /// Publishes stored changes, of this service or of the leader.
    fn publish(&mut self, changes: &[Change]) {
        for change in changes {
            match change {
                Change::Decided(record, _) => {
                    self.warn_of_fallback(&record.details);
                    self.events.publish(Event::Decision(record.clone()));
                }
                Change::Modes(state) => self.publish_modes(state),
                Change::Enforcer(enforcer) => self.publish_enforcer(enforcer),
                Change::EnforcerGone(name) => {
                    self.expired.remove(name);
                }
                Change::Cluster(version) => {
                    tracing::info!(version = version.number.0, origin = ?version.origin, "cluster replaced");
                    self.version = version.number;
                    self.events.publish(Event::Cluster(version.number));
                }
                Change::Ended { .. }
                | Change::Compared(_)
                | Change::Confirmed(_)
                | Change::Moved(..)
                | Change::Migration(_)
                | Change::Job(..)
                | Change::Period(_)
                | Change::LinkNames(..)
                | Change::Promises(_)
                | Change::JobOver(_) => {}
            }
        }
    }

    /// Logs the first decision that a policy left to the default policy, for each reason. An operator would otherwise not
    /// notice that, for example, all blocks are smaller than the threshold of `sinbad`.
    fn warn_of_fallback(&mut self, details: &DecisionDetails) {
        let Some(note) = details.note.as_ref().filter(|note| !self.noted.contains(*note)) else { return };
        let (kind, policy) = (details.spec.kind(), &*details.policy);
        tracing::warn!(kind, policy, note, "the policy leaves decisions to the default policy");
        self.noted.insert(note.clone());
    }

    /// Logs and publishes new modes.
    fn publish_modes(&mut self, state: &ModesState) {
        let ModesState { modes, by, reason, .. } = state;
        let before = std::mem::replace(&mut self.modes, *modes);
        for (kind, old, new) in before.differences(modes) {
            tracing::warn!(kind, %old, %new, by, reason, "mode changed");
        }
        self.events.publish(Event::Modes(state.clone()));
    }

    /// Logs and publishes that the lease of an enforcer has begun, or has run out.
    fn publish_enforcer(&mut self, enforcer: &Enforcer) {
        let Enforcer { name, kind, host, expired, .. } = enforcer;
        if self.expired.insert(name.clone(), *expired) == Some(*expired) {
            return;
        }
        if *expired {
            tracing::warn!(name, kind = kind.name(), host, "the lease of an enforcer has run out");
        } else {
            tracing::info!(name, kind = kind.name(), host, "an enforcer has a lease");
        }
        self.events.publish(Event::Enforcer(EnforcerChange::of(enforcer)));
    }

    /// Logs the first failure of the store, and its recovery.
    fn log_outcome<T>(&mut self, result: &Result<T, StoreError>) {
        match result {
            Ok(_) if std::mem::take(&mut self.failed) => tracing::info!("store available again"),
            Err(error) if !std::mem::replace(&mut self.failed, true) => {
                tracing::error!(%error, "store unavailable");
            }
            _ => {}
        }
    }
}

impl Store for ObservedStore {
    fn kind(&self) -> Kind {
        self.store.kind()
    }

    fn renew_lease(&mut self, address: &str) -> Result<Leadership, StoreError> {
        let leadership = self.store.renew_lease(address);
        self.log_outcome(&leadership);
        if let Ok(Leadership::Follower { updates: Updates::Changes(changes), .. }) = &leadership {
            self.publish(changes);
        }
        leadership
    }

    fn load(&mut self, decisions: usize, keys: usize) -> Result<State, StoreError> {
        let loaded = self.store.load(decisions, keys);
        if let Err(error) = &loaded
            && !std::mem::replace(&mut self.failed, true)
        {
            tracing::error!(%error, "read from the store failed");
        }
        if let Ok(State { enforcers, .. }) = &loaded {
            let leases = enforcers.iter().map(|enforcer| (enforcer.name.clone(), enforcer.expired));
            self.expired = leases.collect();
        }
        if let Ok(State { modes: Some(state), .. }) = &loaded {
            self.modes = state.modes;
        }
        if let Ok(State { cluster: Some(cluster), .. }) = &loaded {
            // Another service changed the cluster.
            if self.version != ClusterVersion::default() && self.version != cluster.number {
                self.events.publish(Event::Cluster(cluster.number));
            }
            self.version = cluster.number;
        }
        loaded
    }

    fn reader(&self) -> Result<Reader, StoreError> {
        self.store.reader()
    }

    fn decisions(&mut self, ids: &[DecisionId]) -> Result<Vec<DecisionRecord>, StoreError> {
        self.store.decisions(ids)
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the duration of a transaction is a metric, and affects no decision"
    )]
    fn apply(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        let began = std::time::Instant::now();
        let applied = self.store.apply(changes);
        self.metrics.transaction(applied.is_ok(), changes.len(), began.elapsed());
        if let Err(error) = &applied {
            tracing::error!(%error, changes = changes.len(), "write to the store failed");
            self.failed = true;
        }
        applied?;
        self.metrics.persisted(changes);
        self.publish(changes);
        Ok(())
    }
}
