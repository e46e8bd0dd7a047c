//! What was decided before this engine began: in its ledger, on its hosts, as if it had decided it.

use leeward_fabric::{Bytes, HostId, Nanos};
use leeward_ledger::{CommitError, Entry, EntryId, Transaction};
use leeward_placement::tasks::{AppRequest, Task};

use super::Engine;
use crate::cell;

impl Engine {
    /// The copies of a block that were placed at a time not before the last one's. What telemetry has shown of them since
    /// is for the next reports to say.
    ///
    /// # Errors
    /// What the ledger cannot take: a resource that is not in its fabric.
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

    /// An app that was placed at a time not before the last one's, and runs. Its entries are in the order in which they
    /// were committed.
    ///
    /// # Errors
    /// What the ledger cannot take: a resource that is not in its fabric.
    pub fn resume_app(
        &mut self,
        at: Nanos,
        request: &AppRequest,
        hosts: &[HostId],
        entries: Vec<Entry>,
    ) -> Result<Vec<EntryId>, CommitError> {
        let ids = self.recommit(at, entries)?;
        self.seat(request, None, hosts, &ids);
        Ok(ids)
    }

    /// What was promised to a workload at a time not before the last one's.
    ///
    /// # Errors
    /// What the ledger cannot take: a resource that is not in its fabric, or on which nothing can be promised.
    pub fn resume_promise(&mut self, at: Nanos, entries: Vec<Entry>) -> Result<Vec<EntryId>, CommitError> {
        self.recommit(at, entries)
    }

    fn recommit(&mut self, at: Nanos, add: Vec<Entry>) -> Result<Vec<EntryId>, CommitError> {
        self.now = self.now.max(at);
        self.ledger.commit(Transaction { add, ..Transaction::default() }, self.now)
    }

    /// Tasks of an app are on their hosts from now on. `entries` are those of its transfers and then each task's own.
    pub(super) fn seat(
        &mut self,
        request: &AppRequest,
        stated: Option<&[Task]>,
        hosts: &[HostId],
        entries: &[EntryId],
    ) {
        // Those of transfers belong to the app, and end with it; they are kept by its first task.
        let own: usize = request.tasks.iter().map(|task| task.entries()).sum();
        let (shared, mut own) = entries.split_at(entries.len().saturating_sub(own));
        for (index, (task, &host)) in (0..).zip(request.tasks.iter().zip(hosts)) {
            let (first, rest) = own.split_at(task.entries().min(own.len()));
            own = rest;
            let mut kept = first.to_vec();
            if index == 0 {
                kept.extend_from_slice(shared);
            }
            self.pool.occupy(host, request.job, task.cpus, task.memory);
            let demand = stated.map_or(*task, |stated| stated[index as usize]);
            let placed = cell::Placed::new(request, index, demand, host, kept);
            self.cell.insert(self.pool.fabric(), placed);
        }
    }
}
