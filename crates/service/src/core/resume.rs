//! Resumption of a coordinator from stored state.

use std::sync::Arc;

use leeward_engine::PastMove;
use leeward_fabric::{HostId, Nanos};
use leeward_ledger::CommitError;
use leeward_placement::tasks::TaskId;
use leeward_records::{
    Caller, Change, ClusterVersion, DecisionId, DecisionRecord, Migration, MigrationState, PlacementSpec,
    RequestState, State, StoredEntry,
};

use super::{Addresses, Coordinator};

impl<A: Addresses> Coordinator<A> {
    /// Restores the stored state at the time `now`. Decisions are in memory again, and their entries count from the time
    /// of the decision until telemetry shows their load. A decision ends if the cluster no longer has its hosts, and a
    /// guarantee ends if the cluster cannot keep it. Call this before any operation.
    ///
    /// # Errors
    /// A [`CommitError`] if the ledger rejects the entries.
    pub fn resume(&mut self, state: State, now: Nanos) -> Result<(), CommitError> {
        self.resumes_at = now;
        self.next = self.next.max(state.next);
        self.enforcement.restore(state.promises, state.enforcers, now);
        self.version = state.cluster.map_or_else(ClusterVersion::default, |cluster| cluster.number);
        let decided = state.decisions.iter();
        let decided = decided.filter_map(|(record, _)| Some((record.caller.as_ref()?, record.id)));
        let callers = state.callers.iter().map(|(caller, id)| (caller, *id));
        let mut callers: Vec<(&Caller, DecisionId)> = callers.chain(decided).collect();
        callers.sort_by_key(|&(_, id)| id);
        for (caller, id) in callers {
            self.clients.note(caller, RequestState::Decided(id));
        }
        for (name, availability) in state.jobs {
            self.set_job_limits(&name, availability);
        }
        for (record, entries) in state.decisions {
            self.restore(record, entries)?;
        }
        for migration in state.migrations {
            self.resume_move(&migration);
            self.migrations.note(migration);
        }
        self.resumes_at = Nanos(0);
        self.restore_modes(state.modes);
        Ok(())
    }

    /// Restores a move in the engine, so that it counts as it did: an open move until its windows show it, and each move
    /// towards the cooldown and the budget.
    fn resume_move(&mut self, migration: &Migration) {
        let fabric = self.engine.ledger().fabric();
        let past = match (migration.state, fabric.host(&migration.from)) {
            (MigrationState::Considered, _) => return,
            (MigrationState::Advised | MigrationState::Taken, Some(from)) => PastMove::Open(from),
            // The cluster lost the old host, so the task runs at its destination or not at all.
            (MigrationState::Advised | MigrationState::Taken, None) | (MigrationState::Done, _) => {
                PastMove::Done
            }
            (MigrationState::Refused | MigrationState::Failed | MigrationState::Expired, _) => {
                PastMove::Undone
            }
        };
        let task = TaskId { app: migration.decision.0, index: migration.index };
        self.engine.resume_move(task, self.decided_at(migration.at), past);
    }

    /// Time of a stored decision for this coordinator: at most the current time. The machine's clock may have been set
    /// back in the meantime. A coordinator that resumed at a later time would treat all new reports as old.
    pub(super) fn decided_at(&self, at: Nanos) -> Nanos {
        at.min(self.now.max(self.resumes_at))
    }

    /// Restores a decision and its entries.
    pub(super) fn restore(
        &mut self,
        record: DecisionRecord,
        entries: Vec<StoredEntry>,
    ) -> Result<(), CommitError> {
        self.next = self.next.max(record.id.next());
        self.now = self.now.max(self.decided_at(record.at));
        let fabric = self.engine.ledger().fabric().clone();
        let hosts: Option<Vec<HostId>> = record.details.hosts.iter().map(|name| fabric.host(name)).collect();
        let mut record = DecisionRecord { entries: Vec::new(), ..record };
        let hosts = hosts.filter(|_| self.can_keep(&record.details));
        match hosts {
            Some(hosts) if record.released.is_none() => {
                self.restore_entries(&mut record, &hosts, entries)?;
            }
            None if record.released.is_none() => {
                record.released = Some(self.now.max(self.resumes_at));
                self.changes.push(Change::Ended { id: record.id, released: record.released });
                self.end_promise(&record);
            }
            _ => {}
        }
        self.keep(Arc::new(record));
        self.release_expired();
        Ok(())
    }

    /// Restores the ledger entries of a decision whose hosts exist.
    pub(super) fn restore_entries(
        &mut self,
        record: &mut DecisionRecord,
        hosts: &[HostId],
        entries: Vec<StoredEntry>,
    ) -> Result<(), CommitError> {
        let (id, at) = (record.id, self.decided_at(record.at));
        let fabric = self.engine.ledger().fabric().clone();
        let entries = entries.into_iter().map(|entry| (entry.task(), entry.entry(&fabric)));
        record.entries = match &record.details.spec {
            PlacementSpec::Replicas(spec) => {
                hosts.iter().for_each(|&host| self.hosts.add_copy(host, at, spec.piece()));
                self.engine.resume_chain(
                    at,
                    hosts,
                    spec.piece(),
                    entries.map(|(_, entry)| entry).collect(),
                )?
            }
            spec @ PlacementSpec::Tasks(tasks) => {
                let job = self.hold_job(spec, id);
                let request = tasks.request(&fabric, id, job);
                self.engine.resume_app(at, &request, hosts, entries.collect())?
            }
            PlacementSpec::Workload(_) | PlacementSpec::Volumes(_) => {
                self.engine.resume_promise(at, entries.map(|(_, entry)| entry).collect())?
            }
        };
        Ok(())
    }
}
