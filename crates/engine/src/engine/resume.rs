//! Restoration of decisions from before a restart: ledger and hosts end up as if this engine had made them.

use std::sync::Arc;

use leeward_fabric::{Bytes, HostId, Nanos, ResourceId};
use leeward_ledger::{CommitError, Demand, Entry, EntryId, Estimate, Transaction};
use leeward_placement::tasks::{AppRequest, Task};

use super::Engine;
use crate::cell::{self, AppTransfers};

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
        let owned = self.entries_by_task(hosts, &ids);
        self.assign(request, None, hosts, owned);
        Ok(ids)
    }

    /// Entries of an app by task, from the links that they load: in the order of the tasks, egress before ingress. A
    /// history or a move may have given a task more entries than its stated demand has.
    pub(super) fn entries_by_task(&self, hosts: &[HostId], entries: &[EntryId]) -> AppEntries {
        let fabric = self.ledger.fabric();
        let mut owned = AppEntries { transfers: Vec::new(), tasks: vec![Vec::new(); hosts.len()] };
        // The task whose entries come next, and true once its ingress came, which is last.
        let (mut next, mut is_complete) = (0, false);
        for &id in entries {
            let entry = self.ledger.entry(id);
            let is_stream = entry.is_some_and(|entry| matches!(entry.demand, Demand::Stream { .. }));
            if !is_stream {
                owned.transfers.push(id);
                continue;
            }
            let first = entry.and_then(|entry| entry.hops.first()).map(|hop| hop.resource);
            let side = |host: HostId| {
                let rack = fabric.rack_of(host);
                let out = fabric.egress(host).or_else(|| fabric.out_of_domain(rack));
                let into = fabric.ingress(host).or_else(|| fabric.into_domain(rack));
                first.map(|_| (first == out, first == into))
            };
            let fits = |at: usize| match side(hosts[at]) {
                Some((true, _)) => owned.tasks[at].is_empty(),
                Some((_, true)) => at != next || !is_complete,
                _ => false,
            };
            let Some(at) = (next..hosts.len()).find(|&at| fits(at)) else {
                owned.transfers.push(id);
                continue;
            };
            is_complete = side(hosts[at]).is_some_and(|(out, _)| !out);
            next = at;
            owned.tasks[at].push(id);
        }
        owned
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

    /// Puts the tasks of an app on their hosts, also on those of the default policy. `stated` has the stated demands of its
    /// tasks, if other demands determined the placement.
    pub(super) fn assign(
        &mut self,
        request: &AppRequest,
        stated: Option<&[Task]>,
        hosts: &[HostId],
        AppEntries { transfers, tasks }: AppEntries,
    ) {
        self.default_hosts.place(request, hosts);
        let constraints = request.constraints.beside_tags().map(Arc::new);
        let mut moves = false;
        for (index, ((task, &host), own)) in (0..).zip(request.tasks.iter().zip(hosts).zip(tasks)) {
            self.pool.occupy(host, request.job, task.cpus, task.memory);
            let demand = stated.map_or(*task, |stated| stated[index as usize]);
            let placed = cell::RunningTask::new(request, constraints.as_ref(), index, demand, host, own);
            moves |= placed.may_ever_move();
            self.cell.insert(self.pool.fabric(), placed);
        }
        if !transfers.is_empty() || !request.transfers.is_empty() {
            let known = if moves { request.transfers.as_slice().into() } else { Arc::from([]) };
            self.cell.add_transfers(request.id, AppTransfers { transfers: known, entries: transfers });
        }
    }
}

/// Ledger entries of an app.
pub(super) struct AppEntries {
    /// Entries of its transfers.
    pub transfers: Vec<EntryId>,
    /// Entries of the own traffic of each task.
    pub tasks: Vec<Vec<EntryId>>,
}

impl AppEntries {
    /// The entries of a decision on a request: first those of transfers, then those of each task.
    pub fn of_decision(request: &AppRequest, entries: &[EntryId]) -> AppEntries {
        let own: usize = request.tasks.iter().map(|task| task.entry_count()).sum();
        let (transfers, mut own) = entries.split_at(entries.len().saturating_sub(own));
        let take = |task: &Task| {
            let (first, rest) = own.split_at(task.entry_count().min(own.len()));
            own = rest;
            first.to_vec()
        };
        AppEntries { tasks: request.tasks.iter().map(take).collect(), transfers: transfers.to_vec() }
    }
}
