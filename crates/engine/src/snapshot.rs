//! A snapshot of the engine, for queries that take longer than one input or must not change the state: placements of
//! apps, and decisions of other policies.

use std::sync::Arc;

use leeward_fabric::{Fabric, HostId, Nanos, ResourceId};
use leeward_ledger::{Epoch, Owner, Scratch, Snapshot};
use leeward_placement::replicas::{Chain, ReplicaRequest};
use leeward_placement::tasks::{AppRequest, Assignment, HostRating, Peer, TaskPolicy};
use leeward_placement::{Context, Decision, Explain, JobId, Policy, Pool, Refusal, Request};

use crate::Engine;

/// Scope of a snapshot, to omit unneeded data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SnapshotScope {
    /// Job whose tasks are spread.
    pub job: Option<JobId>,
    /// Owner whose load the snapshot omits.
    pub without: Option<Owner>,
}

/// Snapshot of ledger, hosts and the policy for tasks. Clones share it.
#[derive(Clone)]
pub struct EngineSnapshot {
    ledger: Arc<Snapshot>,
    pool: Arc<Pool>,
    tasks: Option<Arc<dyn TaskPolicy>>,
    without: Option<Owner>,
    seed: u64,
    explain: Explain,
}

impl Engine {
    /// Takes a snapshot of ledger and hosts.
    pub fn snapshot(&self, SnapshotScope { job, without }: SnapshotScope) -> EngineSnapshot {
        EngineSnapshot {
            ledger: self.ledger().snapshot(self.now(), without.as_ref()),
            pool: Arc::new(self.pool().of_job(job.unwrap_or(JobId::NONE))),
            tasks: self.tasks().cloned(),
            without,
            seed: self.seed(),
            explain: self.explain(),
        }
    }
}

impl std::fmt::Debug for EngineSnapshot {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("EngineSnapshot").field("epoch", &self.epoch()).finish_non_exhaustive()
    }
}

impl EngineSnapshot {
    /// Fabric of the snapshot.
    pub fn fabric(&self) -> &Fabric {
        self.pool.fabric()
    }

    /// Epoch of the ledger.
    pub fn epoch(&self) -> Epoch {
        self.ledger.epoch()
    }

    /// Time of the snapshot.
    pub fn at(&self) -> Nanos {
        self.ledger.at()
    }

    /// Returns the earliest end of the last accepted windows of some links.
    pub fn measured_until(&self, links: impl IntoIterator<Item = ResourceId>) -> Option<Nanos> {
        let mut scratch = Scratch::default();
        let view = self.ledger.view(&mut scratch);
        links.into_iter().map(|link| view.measured_until(link)).min()
    }

    /// Places the tasks of an app by the engine's policy and their stated demands, for
    /// [`crate::Engine::commit_decision`].
    ///
    /// # Errors
    /// Returns the policy's refusal, or [`Refusal::NoPolicy`] without a policy for tasks.
    pub fn place(&self, request: &AppRequest) -> Result<Decision<Assignment>, Refusal> {
        let Some(policy) = &self.tasks else { return Err(Refusal::NoPolicy { kind: AppRequest::KIND }) };
        self.decide(policy.as_ref(), request, &self.pool)
    }

    /// Places the copies of a block by a policy, as if they were not on `hosts` yet: their storage there does not
    /// count. `hosts` is empty if the copies no longer exist.
    ///
    /// # Errors
    /// Returns the policy's refusal.
    pub fn replicas(
        &self,
        policy: &dyn Policy<ReplicaRequest>,
        request: &ReplicaRequest,
        hosts: &[HostId],
    ) -> Result<Decision<Chain>, Refusal> {
        let mut pool = Pool::clone(&self.pool);
        hosts.iter().for_each(|&host| pool.discard(host, request.size));
        self.decide(policy, request, &pool)
    }

    /// Places tasks by a policy, as if they were not on `hosts` yet. `hosts` is empty if the tasks have ended.
    ///
    /// # Errors
    /// Returns the policy's refusal.
    pub fn tasks(
        &self,
        policy: &dyn Policy<AppRequest>,
        request: &AppRequest,
        hosts: &[HostId],
    ) -> Result<Decision<Assignment>, Refusal> {
        let mut pool = Pool::clone(&self.pool);
        for (task, &host) in request.tasks.iter().zip(hosts) {
            pool.vacate(host, request.job, task.cpus, task.memory);
        }
        self.decide(policy, request, &pool)
    }

    /// Scores hosts for the single task of a request, by the engine's policy for tasks. `None` without a policy, or if
    /// it does not score hosts.
    pub fn score_hosts(
        &self,
        request: &AppRequest,
        peers: &[Peer],
        hosts: &[HostId],
    ) -> Option<Vec<HostRating>> {
        let mut scratch = Scratch::default();
        let view = &mut self.ledger.view(&mut scratch);
        let (pool, seed, explain) = (&*self.pool, self.seed, self.explain);
        self.tasks.as_ref()?.score_hosts(request, peers, hosts, &Context { view, pool, seed, explain })
    }

    fn decide<Q: Request>(
        &self,
        policy: &dyn Policy<Q>,
        request: &Q,
        pool: &Pool,
    ) -> Result<Decision<Q::Choice>, Refusal> {
        let mut scratch = Scratch::default();
        let view = &mut self.ledger.view(&mut scratch);
        self.without.iter().for_each(|own| view.without(own));
        let (seed, explain) = (self.seed, self.explain);
        let mut context = Context { view, pool, seed, explain };
        policy.place_one(request, &mut context)
    }
}
