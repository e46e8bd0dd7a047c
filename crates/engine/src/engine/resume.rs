//! Restoration of decisions from before a restart: ledger and hosts end up as if this engine had made them.

use std::sync::Arc;

use leeward_fabric::{Bytes, HostId, Nanos, ResourceId};
use leeward_ledger::{CommitError, Entry, EntryId, Estimate, Sign, Transaction};
use leeward_moves::{HotLoad, traffic};
use leeward_placement::tasks::{AppRequest, Task, TaskId};

use super::Engine;
use crate::cell::{self, AppTransfers};
use crate::message::{PastMove, Rates};
use crate::open_moves::OpenMove;

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

    /// Restores a running app placed at time `at`, which must not be before the last restored one. Each entry has the
    /// index of its task; entries of transfers have none. An earlier version stored no indices: without any, the entries
    /// are those of the stated demands, in the order of their commit.
    ///
    /// # Errors
    /// Returns an error if the ledger rejects an entry: a resource that is not in its fabric.
    pub fn resume_app(
        &mut self,
        at: Nanos,
        request: &AppRequest,
        hosts: &[HostId],
        entries: Vec<(Option<u32>, Entry)>,
    ) -> Result<Vec<EntryId>, CommitError> {
        let (tasks, entries): (Vec<Option<u32>>, Vec<Entry>) = entries.into_iter().unzip();
        let ids = self.recommit(at, entries)?;
        let owned = if tasks.iter().all(Option::is_none) {
            AppEntries::of_decision(&request.tasks, &ids)
        } else {
            AppEntries::of_tasks(request.tasks.len(), tasks.into_iter().zip(ids.iter().copied()))
        };
        self.assign(request, hosts, owned);
        Ok(ids)
    }

    /// Restores the last move of a task that runs, which was decided at the time `at`. Moves of a task come in the order of
    /// their decisions. The ledger counts the task on its present host, unless the move was undone.
    pub fn resume_move(&mut self, task: TaskId, at: Nanos, past: PastMove) {
        let Some(placed) = self.cell.get(task) else { return };
        let before = match past {
            PastMove::Done | PastMove::Undone => None,
            PastMove::Open(from) => {
                let (fabric, to) = (self.pool.fabric().clone(), placed.host);
                let entries = placed.entries.iter().filter_map(|&entry| self.ledger.entry(entry));
                let assumed = Rates::of_entries(&fabric, to, entries, true);
                let stated = [placed.demand.total_egress(), placed.demand.total_ingress()];
                if self.policies.hot_test.load == HotLoad::Window {
                    // The task had at most the assumed rates on its old host, until it reports others.
                    let (measured, released) = (assumed, Rates::default());
                    let open = OpenMove { from, to, at, measured, released, assumed, done: None };
                    self.open_moves.add(task, open);
                }
                Some(traffic(&fabric, task, stated, from, Sign::Adds, at).collect())
            }
        };
        self.cell.resume_move(task, at, past == PastMove::Undone, before);
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

    /// Puts the tasks of an app on their hosts, also on those of the default policy. The request has their stated demands.
    pub(super) fn assign(
        &mut self,
        request: &AppRequest,
        hosts: &[HostId],
        AppEntries { transfers, tasks }: AppEntries,
    ) {
        self.default_hosts.place(request, hosts);
        let constraints = request.constraints.other_than_tags().map(Arc::new);
        let mut moves = false;
        for (index, ((task, &host), own)) in (0..).zip(request.tasks.iter().zip(hosts).zip(tasks)) {
            self.pool.occupy(host, request.job, task.cpus, task.memory);
            let placed = cell::RunningTask::new(request, constraints.as_ref(), index, *task, host, own);
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
    /// The entries of a decision about tasks with these demands: first those of transfers, then those of each task.
    pub fn of_decision(tasks: &[Task], entries: &[EntryId]) -> AppEntries {
        let own: usize = tasks.iter().map(|task| task.entry_count()).sum();
        let (transfers, mut own) = entries.split_at(entries.len().saturating_sub(own));
        let take = |task: &Task| {
            let (first, rest) = own.split_at(task.entry_count().min(own.len()));
            own = rest;
            first.to_vec()
        };
        AppEntries { tasks: tasks.iter().map(take).collect(), transfers: transfers.to_vec() }
    }

    /// Entries with the indices of their tasks; those of transfers have none.
    fn of_tasks(count: usize, entries: impl Iterator<Item = (Option<u32>, EntryId)>) -> AppEntries {
        let mut owned = AppEntries { transfers: Vec::new(), tasks: vec![Vec::new(); count] };
        for (task, entry) in entries {
            let own = task.and_then(|index| owned.tasks.get_mut(index as usize));
            own.unwrap_or(&mut owned.transfers).push(entry);
        }
        owned
    }
}
