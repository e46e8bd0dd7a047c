//! Followers: a coordinator that decides nothing and applies the changes that the leader persisted.

use leeward_engine::Input;
use leeward_fabric::{HostId, Nanos};
use leeward_ledger::CommitError;
use leeward_records::{Change, DecisionRecord, PlacementSpec, StoredEntry};

use super::idempotency::RequestState;
use super::{Addresses, Coordinator};

impl<A: Addresses> Coordinator<A> {
    /// Applies a change of the leader. Known changes have no effect; changes of the cluster are handled
    /// elsewhere.
    ///
    /// # Errors
    /// A [`CommitError`] if the ledger rejects the entries.
    pub fn follow(&mut self, now: Nanos, change: Change) -> Result<(), CommitError> {
        self.wake(now);
        match change {
            Change::Decided(record, held) => {
                if self.records.get(record.id).is_none() {
                    if let Some(caller) = &record.caller {
                        self.clients.note(caller, RequestState::Decided(record.id));
                    }
                    self.take_up((*record).clone(), held)?;
                }
            }
            Change::Moved(record, held) => self.put_elsewhere((*record).clone(), held)?,
            Change::Migration(migration) => self.migrations.note(migration),
            Change::Job(name, availability) => self.bound_job(&name, availability),
            Change::JobOver(name) => self.bound_job(&name, Default::default()),
            // Every coordinator releases evicted decisions by its own telemetry.
            Change::Ended { released: None, .. } | Change::Cluster(_) => {}
            Change::Ended { id, released } => {
                if self.end(id).is_none() {
                    // An unknown decision changes nothing.
                    let _ = self.end_evicted(id);
                }
                self.records.change(id, |record| record.released = released);
            }
        }
        // The changes are persisted already.
        self.changes.clear();
        Ok(())
    }

    /// Replaces the entries of a decision whose tasks moved or whose guarantee changed.
    fn put_elsewhere(
        &mut self,
        mut moved: DecisionRecord,
        held: Vec<StoredEntry>,
    ) -> Result<(), CommitError> {
        let id = moved.id;
        let Some(known) = self.records.get(id).cloned() else { return self.take_up(moved, held) };
        if known.released.is_some() || moved.released.is_some() {
            // The decision has ended, here or with the next change. The record holds no entries; readers see its last
            // details.
            self.records.change(id, |record| record.details = moved.details);
            return Ok(());
        }
        let fabric = self.engine.ledger().fabric().clone();
        let hosts: Option<Vec<HostId>> = moved.details.hosts.iter().map(|name| fabric.host(name)).collect();
        let Some(hosts) = hosts else { return Ok(()) };
        let left = match known.details.spec {
            PlacementSpec::Tasks(_) => Input::Ended(id.0),
            _ => Input::Release(&known.entries),
        };
        self.tell(left);
        self.let_go(&known.details.spec);
        let held = held.into_iter().map(|held| held.entry(&fabric)).collect();
        self.put_back(&mut moved, &hosts, held)?;
        self.records.change(id, |record| (record.details, record.entries) = (moved.details, moved.entries));
        Ok(())
    }
}
