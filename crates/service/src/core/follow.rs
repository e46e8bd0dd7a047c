//! Followers: a coordinator that decides nothing and applies the changes that the leader persisted.

use leeward_engine::Input;
use leeward_fabric::{HostId, Nanos};
use leeward_ledger::CommitError;
use leeward_records::{Change, DecisionRecord, PlacementSpec, RequestState, StoredEntry};

use super::{Addresses, Coordinator};

impl<A: Addresses> Coordinator<A> {
    /// Applies a change of the leader. Known changes have no effect. The actor handles changes of the cluster.
    ///
    /// # Errors
    /// A [`CommitError`] if the ledger rejects the entries.
    pub fn follow(&mut self, now: Nanos, change: Change) -> Result<(), CommitError> {
        self.wake(now);
        match change {
            Change::Decided(record, entries) => {
                if self.records.get(record.id).is_none() {
                    if let Some(caller) = &record.caller {
                        self.clients.note(caller, RequestState::Decided(record.id));
                    }
                    self.restore((*record).clone(), entries)?;
                }
            }
            Change::Moved(record, entries) => self.replace_entries((*record).clone(), entries)?,
            Change::Migration(migration) => self.migrations.note(migration),
            Change::Modes(modes) => self.follow_modes(modes),
            Change::Promises(version) => self.enforcement.follow(version),
            Change::Enforcer(enforcer) => self.enforcement.note(enforcer, self.now),
            Change::EnforcerGone(name) => drop(self.enforcement.remove(&name)),
            Change::Compared(record) | Change::Confirmed(record) => {
                self.replace_details(record.id, record.details.clone());
            }
            Change::Job(name, availability) => self.set_job_limits(&name, availability),
            Change::JobOver(name) => self.set_job_limits(&name, Default::default()),
            // Every coordinator releases evicted decisions by its own telemetry.
            Change::Ended { released: None, .. }
            | Change::Cluster(_)
            | Change::Period(_)
            | Change::LinkNames(..) => {}
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
    fn replace_entries(
        &mut self,
        mut moved: DecisionRecord,
        entries: Vec<StoredEntry>,
    ) -> Result<(), CommitError> {
        let id = moved.id;
        let Some(known) = self.records.get(id).cloned() else { return self.restore(moved, entries) };
        if known.released.is_some() || moved.released.is_some() {
            // The decision has ended in this coordinator, or the next change ends it. The record holds no entries;
            // readers see its last details.
            self.records.change(id, |record| record.details = moved.details);
            return Ok(());
        }
        let fabric = self.engine.ledger().fabric().clone();
        let hosts: Option<Vec<HostId>> = moved.details.hosts.iter().map(|name| fabric.host(name)).collect();
        let Some(hosts) = hosts else { return Ok(()) };
        let release = match known.details.spec {
            PlacementSpec::Tasks(_) => Input::Ended(id.0),
            _ => Input::Release(&known.entries),
        };
        self.apply(release);
        self.release_job(&known.details.spec, id);
        self.restore_entries(&mut moved, &hosts, entries)?;
        self.records.change(id, |record| (record.details, record.entries) = (moved.details, moved.entries));
        Ok(())
    }
}
