//! The engine itself.

use std::collections::BTreeMap;

use leeward_fabric::{Bytes, HostId, Nanos};
use leeward_ledger::{Ledger, Scratch};
use leeward_placement::replicas::{Chain, ReplicaRequest};
use leeward_placement::{Context, Decision, Explain, Policy, Pool, Refusal};

use crate::message::{Answer, Ask, Input, Output, Placed};

/// Ledger, policies and queues.
pub struct Engine {
    ledger: Ledger,
    pool: Pool,
    replicas: Box<dyn Policy<ReplicaRequest>>,
    /// Requests that wait to be decided together, by the time they are due.
    queue: BTreeMap<Nanos, Vec<(u64, ReplicaRequest)>>,
    scratch: Scratch,
    seed: u64,
    explain: Explain,
    now: Nanos,
}

impl Engine {
    /// An engine about the ledger's fabric, with all hosts open.
    pub fn new(
        ledger: Ledger,
        replicas: Box<dyn Policy<ReplicaRequest>>,
        seed: u64,
        explain: Explain,
    ) -> Engine {
        let pool = Pool::new(ledger.fabric().clone());
        let (queue, scratch) = (BTreeMap::new(), Scratch::default());
        Engine { ledger, pool, replicas, queue, scratch, seed, explain, now: Nanos(0) }
    }

    /// What is known of load.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Which hosts may take work.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// Takes an input in and appends what follows from it. A time before the last one counts as the last one.
    pub fn handle(&mut self, now: Nanos, input: Input<'_>, out: &mut Vec<Output>) {
        self.now = self.now.max(now);
        let now = self.now;
        self.ledger.advance(now);
        match input {
            Input::Report(samples) => {
                let discarded = self.ledger.report(samples, now);
                if discarded != Default::default() {
                    out.push(Output::Discarded(discarded));
                }
            }
            Input::Ask(ask, Ask::Replicas(request)) => self.ask(ask, request, out),
            Input::Started(entries) => entries.iter().for_each(|&entry| self.ledger.started(entry, now)),
            Input::Release(entries) => self.ledger.release(entries, now),
            Input::Believe(resource, capacity) => self.ledger.believe(resource, capacity, now),
            Input::Health(host, up) => {
                self.pool.set_up(host, up);
                self.ledger.health(host, up, now);
            }
            Input::Drain(host, draining) => self.pool.set_draining(host, draining),
            Input::Stored(host, stored) => self.pool.set_stored(host, stored),
            Input::Unstored(host, bytes) => self.pool.discard(host, bytes),
            Input::Wake => {}
        }
        while let Some(entry) = self.queue.first_entry().filter(|entry| *entry.key() <= now) {
            let batch = entry.remove();
            self.decide(batch, out);
        }
        let queue = self.queue.first_key_value().map(|(&at, _)| at);
        let next = [queue, self.ledger.next_deadline()].into_iter().flatten().min();
        out.extend(next.map(|at| Output::WakeAt(at.max(now))));
    }

    /// Decides at once, or lets the request wait for others: until the next multiple of the time it may wait.
    fn ask(&mut self, ask: u64, request: ReplicaRequest, out: &mut Vec<Output>) {
        match self.replicas.waits(&request) {
            Nanos(0) => self.decide(vec![(ask, request)], out),
            Nanos(interval) => {
                let due = Nanos((self.now.0 / interval + 1).saturating_mul(interval));
                self.queue.entry(due).or_default().push((ask, request));
            }
        }
    }

    /// Decides a batch on the ledger as it is, and commits. Where an earlier block of the batch took the last room of
    /// a host, the later one is decided again.
    fn decide(&mut self, batch: Vec<(u64, ReplicaRequest)>, out: &mut Vec<Output>) {
        let (asks, requests): (Vec<u64>, Vec<ReplicaRequest>) = batch.into_iter().unzip();
        let decisions = self.place(&requests);
        for ((ask, request), mut decision) in asks.into_iter().zip(&requests).zip(decisions) {
            let fits = |host: &HostId| self.pool.fits(*host, request.size);
            if decision.as_ref().is_ok_and(|decision| !decision.choice.iter().all(fits)) {
                decision = self.place(std::slice::from_ref(request)).remove(0);
            }
            let answer = decision.map(|decision| self.commit(decision, request.size));
            out.push(Output::Answer(ask, Answer::Replicas(answer)));
        }
    }

    fn place(&mut self, batch: &[ReplicaRequest]) -> Vec<Result<Decision<Chain>, Refusal>> {
        let view = &mut self.ledger.view(self.now, &mut self.scratch);
        let (pool, seed, explain) = (&self.pool, self.seed, self.explain);
        self.replicas.place(batch, &mut Context { view, pool, seed, explain })
    }

    fn commit(&mut self, mut decision: Decision<Chain>, size: Bytes) -> Placed<Chain> {
        let change = std::mem::take(&mut decision.change);
        let entries = self.ledger.commit(change, self.now);
        let entries =
            entries.expect("a best-effort decision relies on no version and names resources of the fabric");
        decision.choice.iter().for_each(|&host| self.pool.store(host, size));
        Placed { decision, entries }
    }
}
