//! Decisions that the engine makes or commits at once: blocks, apps, decisions made on a snapshot, moves of apps,
//! promises.

use leeward_fabric::Nanos;
use leeward_ledger::{CommitError, EntryId, Transaction};
use leeward_placement::replicas::{self, ReplicaRequest};
use leeward_placement::tasks::{self, AppRequest, Assignment, Task, Worth};
use leeward_placement::{Context, Decision, Refusal, Request};

use super::resume::AppEntries;
use super::{BEST_EFFORT, Engine, QueuedBlock};
use crate::message::{CommittedDecision, Comparison, Decider, Output, Reevaluation, ReplicasAnswer, Ruling};

impl Engine {
    /// Places the copies of a block and commits the decision. `None` if the policy decides requests jointly. The
    /// request then waits for the next multiple of the policy's batching delay, and its answer is an
    /// [`Output::ReplicasPlaced`] with `number`. The default policy decides at once. Appends the outputs of batches that
    /// are due.
    pub fn place_replicas(
        &mut self,
        now: Nanos,
        number: u64,
        request: ReplicaRequest,
        Ruling { by, compare }: Ruling,
        out: &mut Vec<Output>,
    ) -> Option<ReplicasAnswer> {
        let now = self.advance(now);
        let delay = self.policies.replicas(by).map(|policy| match by {
            Decider::Own => policy.batching_delay(&request),
            Decider::Default => Nanos(0),
        });
        let queued = QueuedBlock { number, request, compare };
        let answer = match delay {
            None => Some(Err(Refusal::NoPolicy { kind: ReplicaRequest::KIND })),
            Some(Nanos(0)) => self.decide(by, vec![queued]).pop().map(|(_, answer)| answer),
            Some(Nanos(interval)) => {
                let due = Nanos((now.0 / interval + 1).saturating_mul(interval));
                self.queue.entry(due).or_default().push(queued);
                None
            }
        };
        self.finish(out);
        answer
    }

    /// Places the copies of several blocks together, without the policy's batching delay, and commits the decisions in the
    /// order of the requests. Appends the outputs of batches that are due.
    pub fn place_batch(
        &mut self,
        now: Nanos,
        requests: Vec<ReplicaRequest>,
        out: &mut Vec<Output>,
    ) -> Vec<ReplicasAnswer> {
        self.advance(now);
        let queued =
            (0..).zip(requests).map(|(number, request)| QueuedBlock { number, request, compare: false });
        let batch: Vec<QueuedBlock> = queued.collect();
        let answers = self.decide(Decider::Own, batch).into_iter().map(|(_, answer)| answer).collect();
        self.finish(out);
        answers
    }

    /// The request with the host that sends its copies, if the block has existing copies and the request names no writer.
    #[must_use]
    pub fn with_source(&mut self, now: Nanos, mut request: ReplicaRequest) -> ReplicaRequest {
        let now = self.advance(now);
        if !request.constraints.existing.is_empty() {
            let view = self.ledger.view(now, &mut self.scratch);
            replicas::set_source(&mut request, &self.pool, &view, self.seed);
        }
        request
    }

    /// Places the tasks of an app and commits the decision. A running app of the same number ends first. Appends the
    /// outputs of batches that are due.
    ///
    /// # Errors
    /// Returns the policy's refusal, or [`Refusal::NoPolicy`] without a policy for tasks.
    pub fn place_app(
        &mut self,
        now: Nanos,
        request: AppRequest,
        ruling: Ruling,
        out: &mut Vec<Output>,
    ) -> Result<CommittedDecision<Assignment>, Refusal> {
        self.advance(now);
        let placed = self.place_tasks(request, ruling);
        self.finish(out);
        placed
    }

    /// Commits a placement of an app that was decided on a snapshot ([`crate::EngineSnapshot::place`]), as work that
    /// starts now. `None`, without a change, if a host can no longer take its task. `request` has the stated demands of the
    /// tasks, and `decided` those of the decision ([`Engine::with_history`]). Its comparison, if any, stays with it. Appends
    /// the outputs of batches that are due.
    pub fn commit_decision(
        &mut self,
        now: Nanos,
        request: &AppRequest,
        decided: &[Task],
        (decision, comparison): (Decision<Assignment>, Option<Comparison<Assignment>>),
        out: &mut Vec<Output>,
    ) -> Option<CommittedDecision<Assignment>> {
        self.advance(now);
        let placed = self.commit_if_fits(request, decided, decision);
        let placed = placed.map(|placed| CommittedDecision { comparison, ..placed });
        self.finish(out);
        placed
    }

    /// Places a running app again, and moves it if the gain is worth the cost. The request has all tasks of the app and
    /// their remaining transfers. Appends the outputs of batches that are due.
    ///
    /// # Errors
    /// Returns the policy's refusal, or [`Refusal::NoPolicy`] without a policy for tasks; the app stays.
    pub fn reevaluate(
        &mut self,
        now: Nanos,
        app: &AppRequest,
        worth: Worth,
        out: &mut Vec<Output>,
    ) -> Result<Reevaluation, Refusal> {
        self.advance(now);
        let reevaluation = self.place_again(app, &worth);
        self.finish(out);
        reevaluation
    }

    /// Commits a promise that was decided on a snapshot, unless the promises at its expected queues have changed.
    /// Returns the entries of the whole promise. Appends the outputs of batches that are due.
    ///
    /// # Errors
    /// Returns the conflict or the entry that the ledger rejects; the ledger then has none of the entries.
    pub fn commit_promise(
        &mut self,
        now: Nanos,
        change: Transaction,
        out: &mut Vec<Output>,
    ) -> Result<Vec<EntryId>, CommitError> {
        let now = self.advance(now);
        let entries = self.ledger.commit(change, now);
        self.finish(out);
        entries
    }

    fn place_tasks(
        &mut self,
        request: AppRequest,
        Ruling { by, compare }: Ruling,
    ) -> Result<CommittedDecision<Assignment>, Refusal> {
        let Some(policy) = self.tasks.get(by) else {
            return Err(Refusal::NoPolicy { kind: AppRequest::KIND });
        };
        // Observed rates of the job may change before a task is moved, so the cell keeps the stated demand.
        let decided = self.history.is_some().then(|| self.with_history(request.clone()));
        let decided = decided.as_ref().unwrap_or(&request);
        let view = &mut self.ledger.view(self.now, &mut self.scratch);
        let (pool, seed, explain) = (&self.pool, self.seed, self.explain);
        let mut context = Context { view, pool, seed, explain };
        let decision = policy.place_one(decided, &mut context)?;
        let chosen = compare.then_some(&decision.choice);
        let comparison = chosen.and_then(|chosen| self.compare_tasks(by, decided, chosen));
        let placed = self.commit_placement(&request, &decided.tasks, decision);
        if let (Decider::Own, Some(Comparison { other: Ok((hosts, _)), .. })) = (by, &comparison) {
            self.default_hosts.place(&request, hosts);
        }
        Ok(CommittedDecision { comparison, ..placed })
    }

    fn commit_if_fits(
        &mut self,
        request: &AppRequest,
        decided: &[Task],
        mut decision: Decision<Assignment>,
    ) -> Option<CommittedDecision<Assignment>> {
        let starts = decision.change.add.iter_mut().map(|entry| &mut entry.starts);
        starts.for_each(|starts| *starts = starts.map(|_| self.now));
        let fits = tasks::still_fits(&self.pool, request, &decision.choice);
        fits.then(|| self.commit_placement(request, decided, decision))
    }

    /// Commits the placement of an app; its tasks are on their hosts from now on. A running app of the same number ends
    /// first. `request` has the stated demands of the tasks, and `decided` those of the decision.
    pub(super) fn commit_placement(
        &mut self,
        request: &AppRequest,
        decided: &[Task],
        mut decision: Decision<Assignment>,
    ) -> CommittedDecision<Assignment> {
        self.end_app(request.id);
        let change = std::mem::take(&mut decision.change);
        let entries = self.ledger.commit(change, self.now).expect(BEST_EFFORT);
        let owned = AppEntries::of_decision(decided, &entries);
        self.assign(request, &decision.choice, owned);
        CommittedDecision { decision, entries, comparison: None }
    }
}
