//! Cancellation of moves that were not carried out.

use leeward_fabric::HostId;
use leeward_ledger::Transaction;
use leeward_placement::tasks::TaskId;

use super::{BEST_EFFORT, Engine};

impl Engine {
    /// Cancels the move of a task, which stays on `host`. Its entries there are committed again as work that starts
    /// now. If no report came since the move, the new entries cancel the release of the former ones.
    pub(super) fn cancel_move(&mut self, task: TaskId, host: HostId) {
        let fabric = self.pool.fabric().clone();
        let Some(placed) = self.cell.get(task).filter(|placed| placed.host != host) else { return };
        let (to, job, demand, add) = (placed.host, placed.job, placed.demand, placed.before(self.now));
        let entries = self.ledger.commit(Transaction { add, ..Transaction::default() }, self.now);
        let at_target = self.cell.undo_move(&fabric, task, host, entries.expect(BEST_EFFORT));
        self.ledger.release(&at_target, self.now);
        self.open_moves.remove(task);
        self.reroute(task, to);
        self.pool.vacate(to, job, demand.cpus, demand.memory);
        self.pool.occupy(host, job, demand.cpus, demand.memory);
    }
}
