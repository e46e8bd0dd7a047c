//! Restoration of decisions from before a restart: ledger and hosts end up as if this engine had made them.

use leeward_fabric::{Bytes, HostId, Nanos, ResourceId};
use leeward_ledger::{CommitError, Entry, EntryId, Estimate, Transaction};
use leeward_placement::tasks::{AppRequest, Task};

use super::Engine;
use crate::cell;

impl Engine {
    /// Restores the copies of a block placed at time `at`, which must not be before the last restored one.
    /// Their traffic since then appears with the next reports.
    ///
    /// # Errors
    /// Returns an error if the ledger rejects an entry: a resource that is not in its fabric.
    pub fn resume_chain(
        &mut self,
        at: Nanos,
        hosts: &[HostId],
        size: Bytes,
        entries: Vec<Entry>,
    ) -> Result<Vec<EntryId>, CommitError> {
        let ids = self.recommit(at, entries)?;
        hosts.iter().for_each(|&host| self.pool.store(host, size));
        Ok(ids)
    }

    /// Restores a running app placed at time `at`, which must not be before the last restored one. Its
    /// entries are in the order of their commit.
    ///
    /// # Errors
    /// Returns an error if the ledger rejects an entry: a resource that is not in its fabric.
    pub fn resume_app(
        &mut self,
        at: Nanos,
        request: &AppRequest,
        hosts: &[HostId],
        entries: Vec<Entry>,
    ) -> Result<Vec<EntryId>, CommitError> {
        let ids = self.recommit(at, entries)?;
        self.assign(request, None, hosts, &ids);
        Ok(ids)
    }

    /// Restores the promise to a workload made at time `at`, which must not be before the last restored one.
    ///
    /// # Errors
    /// Returns an error if the ledger rejects an entry: a resource that is not in its fabric, or on which no rate can
    /// be promised.
    pub fn resume_promise(&mut self, at: Nanos, entries: Vec<Entry>) -> Result<Vec<EntryId>, CommitError> {
        self.recommit(at, entries)
    }

    /// Continues with the estimates of another engine, after the entries are restored. Returns the resources of the
    /// estimates that count now. No move is advised before the next report.
    pub fn restore_estimates(&mut self, now: Nanos, estimates: &[Estimate]) -> Vec<ResourceId> {
        let now = self.advance(now);
        self.ledger.restore(estimates, now)
    }

    fn recommit(&mut self, at: Nanos, add: Vec<Entry>) -> Result<Vec<EntryId>, CommitError> {
        self.now = self.now.max(at);
        self.ledger.commit(Transaction { add, ..Transaction::default() }, self.now)
    }

    /// Puts the tasks of an app on their hosts, also on those of the default policy. `entries` starts with the entries of
    /// its transfers; each task's own entries follow.
    pub(super) fn assign(
        &mut self,
        request: &AppRequest,
        stated: Option<&[Task]>,
        hosts: &[HostId],
        entries: &[EntryId],
    ) {
        self.default_hosts.place(request, hosts);
        // Entries of transfers belong to the app and end with it. The app's first task holds them.
        let own: usize = request.tasks.iter().map(|task| task.entry_count()).sum();
        let (shared, mut own) = entries.split_at(entries.len().saturating_sub(own));
        for (index, (task, &host)) in (0..).zip(request.tasks.iter().zip(hosts)) {
            let (first, rest) = own.split_at(task.entry_count().min(own.len()));
            own = rest;
            let mut kept = first.to_vec();
            if index == 0 {
                kept.extend_from_slice(shared);
            }
            self.pool.occupy(host, request.job, task.cpus, task.memory);
            let demand = stated.map_or(*task, |stated| stated[index as usize]);
            let placed = cell::RunningTask::new(request, index, demand, host, kept);
            self.cell.insert(self.pool.fabric(), placed);
        }
    }
}
