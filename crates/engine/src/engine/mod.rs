//! The engine.

mod cancel_move;
mod compare;
mod copies;
mod decisions;
mod default_hosts;
mod given;
mod learned_capacity;
mod moves;
mod reevaluate;
mod relief;
mod reroute;
mod resume;

use std::collections::BTreeMap;
use std::sync::Arc;

use leeward_fabric::{Bytes, DomainId, HostId, Nanos};
use leeward_ledger::{DiscardedSamples, EntryId, Ledger, LedgerSettings, Sample, Scratch, SettingsError};
use leeward_moves::{HotTest, MoveRequest, Running, Stays};
use leeward_placement::replicas::{Chain, ReplicaRequest};
use leeward_placement::tasks::{AppRequest, HostRating, Peer, TaskId, TaskPolicy};
use leeward_placement::{Context, Decision, Explain, JobId, Policy, Pool, Refusal, Request};

pub(crate) use self::compare::catch;
use self::default_hosts::DefaultHosts;
pub use self::given::{Given, GivenTerms};
use crate::cell::Cell;
use crate::history::{History, HistorySettings, JobHistory, Observed};
use crate::lost_capacity::LostCapacity;
use crate::message::{
    CommittedDecision, Comparison, Decider, Input, MoveRule, Output, Rates, ReplicasAnswer,
};
use crate::open_moves::OpenMoves;

/// Policies by kind. Requests of a kind without a policy are refused.
#[derive(Default)]
pub struct Policies {
    /// Policy for the copies of blocks.
    pub replicas: Option<Box<dyn Policy<ReplicaRequest>>>,
    /// Default policy for the copies of blocks ([`Decider::Default`]).
    pub default_replicas: Option<Box<dyn Policy<ReplicaRequest>>>,
    /// Policy for the hosts of tasks.
    pub tasks: Option<Box<dyn TaskPolicy>>,
    /// Default policy for the hosts of tasks ([`Decider::Default`]).
    pub default_tasks: Option<Box<dyn TaskPolicy>>,
    /// Policy for the tasks that leave hot racks, after each report.
    pub moves: Option<Box<dyn Policy<MoveRequest>>>,
    /// Time for which a moved task is not moved again. Zero without moves.
    pub cooldown: Nanos,
    /// Settings for demand estimates from observed rates of jobs' tasks; `None` uses the stated demands.
    pub history: Option<HistorySettings>,
    /// Test for the links from which tasks move.
    pub hot_test: HotTest,
}

impl Policies {
    /// A policy for the copies of blocks.
    fn replicas(&self, by: Decider) -> Option<&dyn Policy<ReplicaRequest>> {
        match by {
            Decider::Own => self.replicas.as_deref(),
            Decider::Default => self.default_replicas.as_deref(),
        }
    }
}

impl From<Box<dyn Policy<ReplicaRequest>>> for Policies {
    fn from(replicas: Box<dyn Policy<ReplicaRequest>>) -> Policies {
        Policies { replicas: Some(replicas), ..Policies::default() }
    }
}

const BEST_EFFORT: &str = "a best-effort decision relies on no version and names resources of the fabric";

/// Ledger, policies and queues.
pub struct Engine {
    ledger: Ledger,
    pool: Pool,
    default_hosts: DefaultHosts,
    /// Policies, except the policies for tasks, which snapshots share.
    policies: Policies,
    tasks: TaskPolicies,
    move_rule: MoveRule,
    /// Under [`MoveRule::Shadow`], time of the last moves that were considered out of each rack.
    considered: BTreeMap<DomainId, Nanos>,
    cell: Cell,
    history: Option<History>,
    /// Moves beside the ledger, if tasks move by the last windows.
    open_moves: OpenMoves,
    /// Capacity that racks' links lost, if the policy for tasks learns it.
    lost_capacity: LostCapacity,
    /// Requests that wait for a joint decision by the engine's policy, by due time.
    queue: BTreeMap<Nanos, Vec<QueuedBlock>>,
    scratch: Scratch,
    seed: u64,
    explain: Explain,
    now: Nanos,
}

/// The policies for tasks, which snapshots of the engine share.
#[derive(Clone, Default)]
pub(crate) struct TaskPolicies {
    pub own: Option<Arc<dyn TaskPolicy>>,
    pub default: Option<Arc<dyn TaskPolicy>>,
}

impl TaskPolicies {
    /// Takes the policies for tasks out of the policies of an engine.
    fn take(policies: &mut Policies) -> TaskPolicies {
        TaskPolicies {
            own: policies.tasks.take().map(Arc::from),
            default: policies.default_tasks.take().map(Arc::from),
        }
    }

    pub fn get(&self, by: Decider) -> Option<&Arc<dyn TaskPolicy>> {
        match by {
            Decider::Own => self.own.as_ref(),
            Decider::Default => self.default.as_ref(),
        }
    }
}

/// A block that waits for a joint decision.
struct QueuedBlock {
    number: u64,
    request: ReplicaRequest,
    compare: bool,
}

impl Engine {
    /// Creates an engine for the ledger's fabric, with all hosts open.
    pub fn new(ledger: Ledger, policies: impl Into<Policies>, seed: u64, explain: Explain) -> Engine {
        let pool = Pool::new(ledger.fabric().clone());
        let default_hosts = DefaultHosts::new(ledger.fabric().clone());
        let (queue, scratch, cell) = (BTreeMap::new(), Scratch::default(), Cell::new(pool.fabric()));
        let mut policies = policies.into();
        let tasks = TaskPolicies::take(&mut policies);
        let history = policies.history.map(History::new);
        let (now, move_rule) = (Nanos(0), MoveRule::On);
        let considered = BTreeMap::new();
        Engine {
            ledger,
            pool,
            default_hosts,
            policies,
            tasks,
            move_rule,
            considered,
            cell,
            history,
            open_moves: OpenMoves::default(),
            lost_capacity: LostCapacity::default(),
            queue,
            scratch,
            seed,
            explain,
            now,
        }
    }

    /// Replaces the policies. Decisions and running tasks stay. Blocks that wait for a joint decision are decided by the
    /// new policy, at the time for which they waited. Observed rates stay unless the window of the history changes.
    pub fn set_policies(&mut self, mut policies: Policies) {
        self.history = History::reconfigured(self.history.take(), policies.history);
        self.tasks = TaskPolicies::take(&mut policies);
        self.policies = policies;
        if !self.learns_capacity() {
            for (resource, full) in self.lost_capacity.clear() {
                self.ledger.set_capacity(resource, full, self.now);
            }
        }
    }

    /// Replaces the settings of the ledger, without a loss of telemetry ([`Ledger::set_settings`]).
    ///
    /// # Errors
    /// Returns an error for a setting that is out of its range, or that only a new ledger can have.
    pub fn set_ledger_settings(&mut self, now: Nanos, settings: LedgerSettings) -> Result<(), SettingsError> {
        let now = self.advance(now);
        self.ledger.set_settings(settings, now)
    }

    /// The ledger, with all known loads.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Eligibility and free capacity of the hosts.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Policies for tasks.
    pub(crate) fn tasks(&self) -> &TaskPolicies {
        &self.tasks
    }

    /// The time of the last input.
    pub(crate) fn now(&self) -> Nanos {
        self.now
    }

    /// Seed of tie breaks.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// Number of reasons to return with a decision.
    pub(crate) fn explain(&self) -> Explain {
        self.explain
    }

    /// Accepts a telemetry report. Returns the rejected samples, counted by reason. Appends advice to move tasks, and
    /// the outputs of batches that are due.
    pub fn report(&mut self, now: Nanos, samples: &[Sample], out: &mut Vec<Output>) -> DiscardedSamples {
        let now = self.advance(now);
        let windows = self.windows_to_learn_from(samples);
        let discarded = self.ledger.report(samples, now);
        windows.iter().for_each(|sample| self.learn_capacity(sample));
        self.relieve(out);
        self.finish(out);
        discarded
    }

    /// Processes an input and appends the resulting outputs. An earlier time than the last one counts as the last one.
    pub fn handle(&mut self, now: Nanos, input: Input<'_>, out: &mut Vec<Output>) {
        let now = self.advance(now);
        match input {
            Input::CrossTraffic(measured) => {
                measured
                    .iter()
                    .for_each(|&(resource, flows)| self.ledger.set_cross_traffic(resource, flows, now));
            }
            Input::Ended(app) => self.end_app(app),
            Input::Job(job, availability) => self.cell.set_availability(job, availability),
            Input::Rates(rates) => self.record_rates(rates),
            Input::Queues(queues) => self.record_queues(queues),
            Input::TaskRestarted(task) => {
                self.cell.mark_up(task);
                self.open_moves.finish(task, now);
            }
            Input::MoveCancelled(task, host) => self.cancel_move(task, host),
            Input::Started(entries) => entries.iter().for_each(|&entry| self.ledger.mark_started(entry, now)),
            Input::Release(entries) => self.ledger.release(entries, now),
            Input::SetCapacity(resource, capacity) => {
                let capacity = self.lost_capacity.believe(resource, capacity);
                self.ledger.set_capacity(resource, capacity, now);
            }
            Input::Health(host, up) => {
                self.pool.set_up(host, up);
                self.default_hosts.set_up(host, up);
                self.ledger.set_health(host, up, now);
            }
            Input::Drain(host, draining) => {
                self.pool.set_draining(host, draining);
                self.default_hosts.set_draining(host, draining);
            }
            Input::Stored(host, stored) => self.pool.set_stored(host, stored),
            Input::Storage(host, storage) => self.pool.set_storage(host, storage),
            Input::Unstored(host, bytes) => self.pool.discard(host, bytes),
            Input::MoveRule(rule) => self.move_rule = rule,
            Input::Wake => {}
        }
        self.finish(out);
    }

    /// Advances the clock and the ledger. Returns the time, which never goes back.
    fn advance(&mut self, now: Nanos) -> Nanos {
        self.now = self.now.max(now);
        self.ledger.advance(self.now);
        self.now
    }

    /// Ends the handling of an input: decides due batches, and outputs the next wake-up time.
    fn finish(&mut self, out: &mut Vec<Output>) {
        let now = self.now;
        while let Some(entry) = self.queue.first_entry().filter(|entry| *entry.key() <= now) {
            let batch = entry.remove();
            let answers = self.decide(Decider::Own, batch).into_iter();
            out.extend(answers.map(|(number, answer)| Output::ReplicasPlaced(number, answer)));
        }
        let batch = self.queue.first_key_value().map(|(&at, _)| at);
        let next = [batch, self.ledger.next_deadline()].into_iter().flatten().min();
        out.extend(next.map(|at| Output::WakeAt(at.max(now))));
    }

    /// Decides a batch on the current ledger, and commits it. If an earlier block of the batch took the last free
    /// capacity of a host, the later block is decided again. Returns the answers in the order of the batch.
    fn decide(&mut self, by: Decider, batch: Vec<QueuedBlock>) -> Vec<(u64, ReplicasAnswer)> {
        let queued =
            batch.into_iter().map(|QueuedBlock { number, request, compare }| ((number, compare), request));
        let (callers, requests): (Vec<(u64, bool)>, Vec<ReplicaRequest>) = queued.unzip();
        let decisions = self.place(by, &requests).into_iter().zip(callers.iter().zip(&requests));
        let answers = decisions.map(|(mut decision, (&(number, compare), request))| {
            let fits = |host: &HostId| self.pool.fits(*host, request.size);
            if decision.as_ref().is_ok_and(|decision| !decision.choice.iter().all(fits)) {
                decision = self.place(by, std::slice::from_ref(request)).remove(0);
            }
            let answer = decision.map(|decision| {
                let chosen = compare.then_some(&decision.choice);
                let comparison = chosen.and_then(|chosen| self.compare_replicas(by, request, chosen));
                self.commit(decision, request.size, comparison)
            });
            (number, answer)
        });
        answers.collect()
    }

    fn place(&mut self, by: Decider, batch: &[ReplicaRequest]) -> Vec<Result<Decision<Chain>, Refusal>> {
        let view = &mut self.ledger.view(self.now, &mut self.scratch);
        let (pool, seed, explain) = (&self.pool, self.seed, self.explain);
        match self.policies.replicas(by) {
            Some(policy) => policy.place(batch, &mut Context { view, pool, seed, explain }),
            // The policy was removed while the blocks waited.
            None => batch.iter().map(|_| Err(Refusal::NoPolicy { kind: ReplicaRequest::KIND })).collect(),
        }
    }

    fn commit(
        &mut self,
        mut decision: Decision<Chain>,
        size: Bytes,
        comparison: Option<Comparison<Chain>>,
    ) -> CommittedDecision<Chain> {
        let change = std::mem::take(&mut decision.change);
        let entries = self.ledger.commit(change, self.now);
        let entries = entries.expect(BEST_EFFORT);
        decision.choice.iter().for_each(|&host| self.pool.store(host, size));
        CommittedDecision { decision, entries, comparison }
    }

    /// Scores hosts for the single task of a request, by the policy for tasks. `None` without a policy, or if it does
    /// not score hosts. The engine's state does not change.
    pub fn score_hosts(
        &mut self,
        request: &AppRequest,
        peers: &[Peer],
        hosts: &[HostId],
    ) -> Option<Vec<HostRating>> {
        let view = &mut self.ledger.view(self.now, &mut self.scratch);
        let (pool, seed, explain) = (&self.pool, self.seed, self.explain);
        let policy = self.tasks.own.as_ref()?;
        policy.score_hosts(request, peers, hosts, &Context { view, pool, seed, explain })
    }

    /// Records the current rates of tasks.
    fn record_rates(&mut self, rates: &[(TaskId, Rates)]) {
        for &(task, rates) in rates {
            self.open_moves.set_rates(task, rates);
            let counts = self.cell.set_rates(task, rates, self.now);
            if let Some((history, job)) = self.history.as_mut().zip(counts) {
                history.note(job, rates, self.now);
            }
        }
    }

    /// Adds observed rates of a job's task that the engine has not placed. `before` is the time of the last rates of this
    /// task that counted. Returns true if these count.
    pub fn note_rates(&mut self, job: JobId, rates: Rates, before: Option<Nanos>) -> bool {
        let history = self.history.as_mut().filter(|_| History::counts(before, self.now));
        let counts = history.is_some();
        history.into_iter().for_each(|history| history.note(job, rates, self.now));
        counts
    }

    /// Observed traffic of a job's tasks; `None` without a history, or without observations in its window.
    pub fn observed(&self, job: JobId) -> Option<Observed> {
        let observed = self.history.as_ref()?.observed(job, self.now);
        Some(observed).filter(|observed| observed.count > 0)
    }

    /// Settings of the history, if there is one.
    pub fn history_settings(&self) -> Option<HistorySettings> {
        self.policies.history
    }

    /// The request with the observed traffic of its job, where that exceeds the stated demand of a task.
    #[must_use]
    pub fn with_history(&self, mut request: AppRequest) -> AppRequest {
        if let Some(history) = &self.history {
            let estimate = history.estimate(request.job, self.now);
            request.tasks.iter_mut().for_each(|task| *task = task.with_measured(estimate));
        }
        request
    }

    /// Time for which the observed traffic of a job counts; `None` if there is none.
    pub fn history_of(&self, job: JobId) -> Option<Nanos> {
        self.history.as_ref()?.window_of(job)
    }

    /// Forgets the observed traffic of a job. Returns it for another engine ([`Engine::restore_history`]).
    pub fn take_history(&mut self, job: JobId) -> Option<JobHistory> {
        self.history.as_mut()?.take(job)
    }

    /// Jobs with observed traffic.
    pub fn observed_jobs(&self) -> impl Iterator<Item = JobId> {
        self.history.iter().flat_map(History::jobs)
    }

    /// Continues with the observed traffic of a job from another engine, if the history has the same window.
    pub fn restore_history(&mut self, job: JobId, observed: JobHistory) {
        if let Some(history) = &mut self.history {
            history.restore(job, observed);
        }
    }

    /// Estimated number of host and link lookups that a policy for tasks needs to decide a request.
    pub fn cost_estimate(&self, by: Decider, request: &AppRequest) -> u64 {
        self.tasks.get(by).map_or(0, |policy| policy.cost_estimate(request, self.ledger.fabric()))
    }

    fn end_app(&mut self, app: u64) {
        self.open_moves.remove_app(app);
        let mut entries = self.cell.remove_transfers(app);
        for task in self.cell.of_app(app) {
            let placed = self.cell.remove(task).expect("the task was found above");
            self.pool.vacate(placed.host, placed.job, placed.demand.cpus, placed.demand.memory);
            entries.extend(placed.entries);
        }
        self.default_hosts.end(app);
        self.ledger.release(&entries, self.now);
    }

    /// Ledger entries of an app: of its transfers, and of each task.
    pub fn entries_of(&self, app: u64) -> Vec<EntryId> {
        self.cell.app_entries(app)
    }

    /// Entries of an app that belong to one of its tasks, with the index of the task.
    pub fn task_entries(&self, app: u64) -> BTreeMap<EntryId, u32> {
        self.cell.task_entries(app).collect()
    }

    /// Reason for which a task may not be moved now; `None` for a task that may, or does not run.
    pub fn stays(&self, task: TaskId) -> Option<Stays> {
        self.cell.reason_of(task, self.policies.cooldown, self.now)
    }

    /// Number of tasks that run on a host.
    pub fn tasks_on(&self, host: HostId) -> u32 {
        self.cell.task_count(host)
    }

    /// Tasks that run in a rack, with their hosts, demands and last reported rates. The positions of their
    /// jobs are meaningless here.
    pub fn tasks_in(&self, rack: DomainId) -> impl Iterator<Item = Running> {
        self.cell.in_rack(rack)
    }

    /// Returns the host of a task; `None` if it does not run.
    pub fn host_of(&self, task: TaskId) -> Option<HostId> {
        self.cell.get(task).map(|placed| placed.host)
    }
}
