//! The engine.

mod cancel_move;
mod decisions;
mod reevaluate;
mod resume;

use std::collections::BTreeMap;
use std::sync::Arc;

use leeward_fabric::{Bytes, DomainId, HostId, Load, Nanos};
use leeward_ledger::{DiscardedSamples, EntryId, Ledger, Sample, Scratch};
use leeward_placement::moves::{MoveRequest, Running};
use leeward_placement::replicas::{Chain, ReplicaRequest};
use leeward_placement::tasks::{AppRequest, HostRating, Peer, TaskId, TaskPolicy, Traffic};
use leeward_placement::{Context, Decision, Explain, Policy, Pool, Refusal};

use crate::cell::Cell;
use crate::history::{History, HistorySettings};
use crate::message::{Advice, CommittedDecision, Input, Output, Rates, ReplicasAnswer};

/// Policies by kind. Requests of a kind without a policy are refused.
#[derive(Default)]
pub struct Policies {
    /// Policy for the copies of blocks.
    pub replicas: Option<Box<dyn Policy<ReplicaRequest>>>,
    /// Policy for the hosts of tasks.
    pub tasks: Option<Box<dyn TaskPolicy>>,
    /// Policy for the tasks that leave hot racks, after each report.
    pub moves: Option<Box<dyn Policy<MoveRequest>>>,
    /// Time for which a moved task is not moved again. Zero without moves.
    pub cooldown: Nanos,
    /// Settings for demand estimates from observed rates of jobs' tasks; `None` uses the stated demands.
    pub history: Option<HistorySettings>,
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
    /// Policies, except the policy for tasks, which snapshots share.
    policies: Policies,
    tasks: Option<Arc<dyn TaskPolicy>>,
    cell: Cell,
    history: Option<History>,
    /// Requests that wait for a joint decision, by due time.
    queue: BTreeMap<Nanos, Vec<(u64, ReplicaRequest)>>,
    scratch: Scratch,
    seed: u64,
    explain: Explain,
    now: Nanos,
}

impl Engine {
    /// Creates an engine for the ledger's fabric, with all hosts open.
    pub fn new(ledger: Ledger, policies: impl Into<Policies>, seed: u64, explain: Explain) -> Engine {
        let pool = Pool::new(ledger.fabric().clone());
        let (queue, scratch, cell) = (BTreeMap::new(), Scratch::default(), Cell::new(pool.fabric()));
        let mut policies = policies.into();
        let tasks = policies.tasks.take().map(Arc::from);
        let history = policies.history.map(History::new);
        let now = Nanos(0);
        Engine { ledger, pool, policies, tasks, cell, history, queue, scratch, seed, explain, now }
    }

    /// The ledger, with all known loads.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Eligibility and free capacity of the hosts.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Policy for tasks.
    pub(crate) fn tasks(&self) -> Option<&Arc<dyn TaskPolicy>> {
        self.tasks.as_ref()
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
        let discarded = self.ledger.report(samples, now);
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
            Input::TaskRestarted(task) => self.cell.mark_up(task),
            Input::MoveCancelled(task, host) => self.cancel_move(task, host),
            Input::Started(entries) => entries.iter().for_each(|&entry| self.ledger.mark_started(entry, now)),
            Input::Release(entries) => self.ledger.release(entries, now),
            Input::SetCapacity(resource, capacity) => self.ledger.set_capacity(resource, capacity, now),
            Input::Health(host, up) => {
                self.pool.set_up(host, up);
                self.ledger.set_health(host, up, now);
            }
            Input::Drain(host, draining) => self.pool.set_draining(host, draining),
            Input::Stored(host, stored) => self.pool.set_stored(host, stored),
            Input::Unstored(host, bytes) => self.pool.discard(host, bytes),
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
            let answers = self.decide(batch).into_iter();
            out.extend(answers.map(|(number, answer)| Output::ReplicasPlaced(number, answer)));
        }
        let batch = self.queue.first_key_value().map(|(&at, _)| at);
        let next = [batch, self.ledger.next_deadline()].into_iter().flatten().min();
        out.extend(next.map(|at| Output::WakeAt(at.max(now))));
    }

    /// Decides a batch on the current ledger, and commits it. If an earlier block of the batch took the last free
    /// capacity of a host, the later block is decided again. Returns the answers in the order of the batch.
    fn decide(&mut self, batch: Vec<(u64, ReplicaRequest)>) -> Vec<(u64, ReplicasAnswer)> {
        let (numbers, requests): (Vec<u64>, Vec<ReplicaRequest>) = batch.into_iter().unzip();
        let decisions = self.place(&requests).into_iter().zip(&requests);
        let answers = decisions.map(|(mut decision, request)| {
            let fits = |host: &HostId| self.pool.fits(*host, request.size);
            if decision.as_ref().is_ok_and(|decision| !decision.choice.iter().all(fits)) {
                decision = self.place(std::slice::from_ref(request)).remove(0);
            }
            decision.map(|decision| self.commit(decision, request.size))
        });
        numbers.into_iter().zip(answers).collect()
    }

    fn place(&mut self, batch: &[ReplicaRequest]) -> Vec<Result<Decision<Chain>, Refusal>> {
        let view = &mut self.ledger.view(self.now, &mut self.scratch);
        let (pool, seed, explain) = (&self.pool, self.seed, self.explain);
        let policy = self.policies.replicas.as_ref().expect("requests without a policy are refused before");
        policy.place(batch, &mut Context { view, pool, seed, explain })
    }

    fn commit(&mut self, mut decision: Decision<Chain>, size: Bytes) -> CommittedDecision<Chain> {
        let change = std::mem::take(&mut decision.change);
        let entries = self.ledger.commit(change, self.now);
        let entries = entries.expect(BEST_EFFORT);
        decision.choice.iter().for_each(|&host| self.pool.store(host, size));
        CommittedDecision { decision, entries }
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
        let policy = self.tasks.as_ref()?;
        policy.score_hosts(request, peers, hosts, &Context { view, pool, seed, explain })
    }

    /// Records the current rates of tasks.
    fn record_rates(&mut self, rates: &[(TaskId, Rates)]) {
        for &(task, rates) in rates {
            let counts = self.cell.set_rates(task, rates, self.now);
            if let Some((history, job)) = self.history.as_mut().zip(counts) {
                history.note(job, rates, self.now);
            }
        }
    }

    /// Estimated number of host and link lookups that the policy for tasks needs to decide a request.
    pub fn cost_estimate(&self, request: &AppRequest) -> u64 {
        self.tasks.as_ref().map_or(0, |policy| policy.cost_estimate(request, self.ledger.fabric()))
    }

    fn end_app(&mut self, app: u64) {
        let mut entries = Vec::new();
        for task in self.cell.of_app(app) {
            let placed = self.cell.remove(task).expect("the task was found above");
            self.pool.vacate(placed.host, placed.job, placed.demand.cpus, placed.demand.memory);
            entries.extend(placed.entries);
        }
        self.ledger.release(&entries, self.now);
    }

    /// Moves tasks out of hot racks, if there is a policy for moves.
    fn relieve(&mut self, out: &mut Vec<Output>) {
        let Some(policy) = &self.policies.moves else { return };
        let view = &mut self.ledger.view(self.now, &mut self.scratch);
        let fabric = self.pool.fabric().clone();
        let is_hot = |rack: &DomainId| {
            let links = [fabric.out_of_domain(*rack), fabric.into_domain(*rack)];
            let stays_hot =
                |link| view.utilization_with(link, Load(0)).is_some_and(|now| now > view.hot_above());
            links.into_iter().flatten().any(|link| view.hot_since(link).is_some() && stays_hot(link))
        };
        let racks: Vec<DomainId> = fabric.all_racks().filter(is_hot).collect();
        if racks.is_empty() {
            return;
        }
        let mut request = self.cell.request(&racks, self.policies.cooldown, self.now);
        if let Some(history) = &self.history {
            let estimates = request.budgets.iter().map(|budget| history.estimate(budget.job, self.now));
            let estimates: Vec<[Traffic; 2]> = estimates.collect();
            for running in &mut request.running {
                running.demand = running.demand.with_measured(estimates[running.job as usize]);
            }
        }
        let (pool, seed, explain) = (&self.pool, self.seed, self.explain);
        let mut context = Context { view, pool, seed, explain };
        let answer = policy.place_one(&request, &mut context);
        let Ok(mut decision) = answer else { return };
        let entries = self.ledger.commit(std::mem::take(&mut decision.change), self.now).expect(BEST_EFFORT);
        let mut entries = entries.into_iter();
        let mut advice = Vec::with_capacity(decision.choice.moves.len());
        for planned in &decision.choice.moves {
            let running = &request.running[planned.at as usize];
            let (from, demand) = (running.host, running.demand);
            let job = request.budgets[running.job as usize].job;
            let new = entries.by_ref().take(running.assumed_demand().entry_count()).collect();
            let current = self.cell.entries(running.task).iter();
            let before = current.filter_map(|&entry| self.ledger.entry(entry).cloned()).collect();
            let former = self.cell.move_to(&fabric, running.task, planned.to, (new, before), self.now);
            self.ledger.release(&former, self.now);
            self.pool.vacate(from, job, demand.cpus, demand.memory);
            self.pool.occupy(planned.to, job, demand.cpus, demand.memory);
            advice.push(Advice { task: running.task, from, to: planned.to, link: planned.link });
        }
        if !advice.is_empty() {
            out.push(Output::MovesAdvised(advice));
        }
    }

    /// Ledger entries of an app, task by task.
    pub fn entries_of(&self, app: u64) -> impl Iterator<Item = EntryId> {
        self.cell.of_app(app).into_iter().flat_map(|task| self.cell.entries(task).to_vec())
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
