//! Re-placement of running apps (Choreo section 2.4).

use leeward_fabric::{HostId, Nanos};
use leeward_placement::tasks::{self, Alternative, AppRequest, Assignment, Task, TaskId, Worth};
use leeward_placement::{Context, Decision, Refusal, Request};

use super::Engine;
use crate::message::{CommittedDecision, Output, Reevaluation};

impl Engine {
    /// Places the remaining transfers of an app again, and returns the placement without a commit. `None` if the app
    /// does not run with these tasks.
    ///
    /// # Errors
    /// Returns the policy's refusal, or [`Refusal::NoPolicy`] without a policy for tasks.
    pub fn consider_again(
        &mut self,
        now: Nanos,
        remaining: &AppRequest,
        worth: &Worth,
    ) -> Result<Option<Alternative>, Refusal> {
        self.advance(now);
        let Some(policy) = &self.tasks.own else {
            return Err(Refusal::NoPolicy { kind: AppRequest::KIND });
        };
        let host = |index| self.cell.get(TaskId { app: remaining.id, index }).map(|placed| placed.host);
        let hosts: Option<Vec<HostId>> = (0..remaining.tasks.len() as u32).map(host).collect();
        let Some(hosts) = hosts else { return Ok(None) };
        // The decision ignores the capacity that the app's own tasks take, as it ignores the app's own load.
        for (task, &host) in remaining.tasks.iter().zip(&hosts) {
            self.pool.vacate(host, remaining.job, task.cpus, task.memory);
        }
        let view = &mut self.ledger.view(self.now, &mut self.scratch);
        let (pool, seed, explain) = (&self.pool, self.seed, self.explain);
        let mut context = Context { view, pool, seed, explain };
        let alternative = tasks::reevaluate(policy.as_ref(), remaining, &hosts, worth, &mut context);
        for (task, &host) in remaining.tasks.iter().zip(&hosts) {
            self.pool.occupy(host, remaining.job, task.cpus, task.memory);
        }
        alternative.map(Some)
    }

    /// Moves a running app to hosts that were chosen on a snapshot ([`crate::EngineSnapshot::consider_again`]). The app
    /// then holds only its remaining transfers. `None`, without a change, if a host can no longer take its task. Appends
    /// the outputs of batches that are due.
    pub fn commit_again(
        &mut self,
        now: Nanos,
        remaining: &AppRequest,
        mut decision: Decision<Assignment>,
        out: &mut Vec<Output>,
    ) -> Option<CommittedDecision<Assignment>> {
        let now = self.advance(now);
        let tasks =
            || (0..).zip(&remaining.tasks).map(|(index, task)| (TaskId { app: remaining.id, index }, task));
        let current: Option<Vec<(HostId, Task)>> =
            tasks().map(|(id, task)| Some((self.host_of(id)?, *task))).collect();
        let current = current?;
        for (host, Task { cpus, memory, .. }) in &current {
            self.pool.vacate(*host, remaining.job, *cpus, *memory);
        }
        let fits = tasks::still_fits(&self.pool, remaining, &decision.choice);
        for (host, Task { cpus, memory, .. }) in &current {
            self.pool.occupy(*host, remaining.job, *cpus, *memory);
        }
        let starts = decision.change.add.iter_mut().map(|entry| &mut entry.starts);
        starts.for_each(|starts| *starts = starts.map(|_| now));
        let placed = fits.then(|| self.commit_placement(remaining, &remaining.tasks, decision));
        self.finish(out);
        placed
    }

    /// Moves a running app to the placement of a re-evaluation, if the gain is worth the cost.
    pub(super) fn place_again(
        &mut self,
        remaining: &AppRequest,
        worth: &Worth,
    ) -> Result<Reevaluation, Refusal> {
        let Some(alternative) = self.consider_again(self.now, remaining, worth)? else {
            return Ok(Reevaluation { placed: None, stays: 0.0, moves: 0.0, cost: 0.0 });
        };
        let is_worth = alternative.is_worth(worth.margin);
        let (stays, moves, cost) = (alternative.stays, alternative.moves, alternative.cost);
        let placed =
            is_worth.then(|| self.commit_placement(remaining, &remaining.tasks, alternative.decision));
        Ok(Reevaluation { placed, stays, moves, cost })
    }
}
