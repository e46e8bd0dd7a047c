//! Transfers of tasks that move: they go on between the new hosts.

use std::collections::BTreeSet;

use leeward_fabric::{Fabric, HostId, ResourceId};
use leeward_ledger::{Demand, Entry, EntryId, Transaction};
use leeward_placement::tasks::{self, AppRequest, Task, TaskId, Transfer};

use super::{BEST_EFFORT, Engine};

impl Engine {
    /// Puts the transfers of a task that moved from the host `from` on the paths of its present host. All transfers
    /// between two hosts have one entry, so each entry that the task has a part in is replaced. A transfer counts with
    /// all its bytes again, because nobody reports how much of it is left.
    pub(super) fn reroute(&mut self, task: TaskId, from: HostId) {
        let Some(app) = self.cell.transfers_mut(task.app) else { return };
        let (transfers, before) = (app.transfers.clone(), app.entries.clone());
        let fabric = self.pool.fabric().clone();
        let running = self.cell.of_app(task.app);
        let host = |id: &TaskId| self.cell.get(*id).map(|placed| placed.host);
        let Some(hosts) = running.iter().map(host).collect::<Option<Vec<HostId>>>() else { return };
        let former = |index: u32| if index == task.index { from } else { hosts[index as usize] };
        let pair = |transfer: &Transfer| (former(transfer.from), former(transfer.to));
        let own = transfers.iter().filter(|transfer| [transfer.from, transfer.to].contains(&task.index));
        let pairs: BTreeSet<(HostId, HostId)> = own.map(pair).collect();
        let is_replaced = |id: &EntryId| {
            let ends = self.ledger.entry(*id).and_then(|entry| ends_of(&fabric, entry));
            ends.is_some_and(|ends| pairs.contains(&ends))
        };
        let (replaced, mut entries): (Vec<EntryId>, Vec<EntryId>) = before.into_iter().partition(is_replaced);
        let affected = transfers.iter().filter(|transfer| pairs.contains(&pair(transfer))).copied();
        let request = AppRequest {
            id: task.app,
            tasks: vec![Task::default(); hosts.len()],
            transfers: affected.collect(),
            ..AppRequest::default()
        };
        let add = tasks::traffic(&fabric, &request, &hosts, self.now);
        let change = Transaction { add, release: replaced, ..Transaction::default() };
        entries.extend(self.ledger.commit(change, self.now).expect(BEST_EFFORT));
        if let Some(app) = self.cell.transfers_mut(task.app) {
            app.entries = entries;
        }
    }
}

/// Hosts between which an entry transfers data.
fn ends_of(fabric: &Fabric, entry: &Entry) -> Option<(HostId, HostId)> {
    let host = |resource: ResourceId| fabric.host_of(resource);
    let (first, last) = (entry.hops.first()?.resource, entry.hops.last()?.resource);
    matches!(entry.demand, Demand::Elastic { .. }).then_some((host(first)?, host(last)?))
}
