//! A snapshot of the engine, for queries that take longer than one input or must not change the state: placements of
//! apps, and decisions of other policies.

use std::sync::Arc;

use leeward_fabric::{Fabric, HostId, Nanos, ResourceId};
use leeward_ledger::{Entry, Epoch, Owner, Scratch, Snapshot};
use leeward_placement::replicas::{self, Chain, ReplicaRequest};
use leeward_placement::tasks::{self, Alternative, AppRequest, Assignment, HostRating, Peer, Worth};
use leeward_placement::{Context, Decision, Explain, JobId, PathLoad, Policy, Pool, Refusal, Request};

use crate::Engine;
use crate::engine::{TaskPolicies, catch};
use crate::message::{Comparison, Decider, Ruling};

/// Scope of a snapshot, to omit unneeded data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SnapshotScope {
    /// Job whose tasks are spread.
    pub job: Option<JobId>,
    /// Owner whose load the snapshot omits.
    pub without: Option<Owner>,
}

/// Snapshot of ledger, hosts and the policies for tasks. Clones share it.
#[derive(Clone)]
pub struct EngineSnapshot {
    ledger: Arc<Snapshot>,
    pool: Arc<Pool>,
    tasks: TaskPolicies,
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
            tasks: self.tasks().clone(),
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

    /// Returns the earliest end of the last accepted windows of some links; `None` without a window.
    pub fn measured_until(&self, links: impl IntoIterator<Item = ResourceId>) -> Option<Nanos> {
        let mut scratch = Scratch::default();
        let view = self.ledger.view(&mut scratch);
        links.into_iter().filter_map(|link| view.window_end(link)).min()
    }

    /// Places the tasks of an app by a policy of the engine and the demands of the request, for
    /// [`crate::Engine::commit_decision`].
    ///
    /// # Errors
    /// Returns the policy's refusal, or [`Refusal::NoPolicy`] without a policy for tasks.
    pub fn place(
        &self,
        request: &AppRequest,
        Ruling { by, compare }: Ruling,
    ) -> Result<(Decision<Assignment>, Option<Comparison<Assignment>>), Refusal> {
        let Some(policy) = self.tasks.get(by) else {
            return Err(Refusal::NoPolicy { kind: AppRequest::KIND });
        };
        let decision = self.decide(policy.as_ref(), request, &self.pool)?;
        let comparison = compare.then(|| self.compare(by, request, &decision.choice)).flatten();
        Ok((decision, comparison))
    }

    /// Compares the chosen hosts of an app with the choice of the other policy. `None` without another policy.
    pub fn compare(
        &self,
        by: Decider,
        request: &AppRequest,
        chosen: &Assignment,
    ) -> Option<Comparison<Assignment>> {
        let policy = self.tasks.get(by.other())?;
        let other = catch(|| self.decide(policy.as_ref(), request, &self.pool))?;
        let other = other.map(|decision| {
            let load = self.load_of_tasks(request, &decision.choice);
            (decision.choice, load)
        });
        Some(Comparison { committed: self.load_of_tasks(request, chosen), other })
    }

    /// Load on the links of an app's traffic, if its tasks were on these hosts.
    pub fn load_of_tasks(&self, request: &AppRequest, hosts: &[HostId]) -> PathLoad {
        self.load_of(&tasks::traffic(self.fabric(), request, hosts, self.at()))
    }

    /// Load on the links of a block's traffic, if its copies were on these hosts.
    pub fn load_of_replicas(&self, request: &ReplicaRequest, hosts: &[HostId]) -> PathLoad {
        self.load_of(&replicas::traffic(self.fabric(), request, hosts, self.at()))
    }

    fn load_of(&self, traffic: &[Entry]) -> PathLoad {
        let mut scratch = Scratch::default();
        let view = &mut self.ledger.view(&mut scratch);
        self.without.iter().for_each(|own| view.without(own));
        PathLoad::of(view, traffic)
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

    /// Places the remaining transfers of an app that runs on `hosts` again, as [`Engine::consider_again`] does.
    ///
    /// # Errors
    /// Returns the policy's refusal, or [`Refusal::NoPolicy`] without a policy for tasks.
    pub fn consider_again(
        &self,
        remaining: &AppRequest,
        hosts: &[HostId],
        worth: &Worth,
    ) -> Result<Alternative, Refusal> {
        let Some(policy) = &self.tasks.own else {
            return Err(Refusal::NoPolicy { kind: AppRequest::KIND });
        };
        let mut pool = Pool::clone(&self.pool);
        for (task, &host) in remaining.tasks.iter().zip(hosts) {
            pool.vacate(host, remaining.job, task.cpus, task.memory);
        }
        let mut scratch = Scratch::default();
        let view = &mut self.ledger.view(&mut scratch);
        let (pool, seed, explain) = (&pool, self.seed, self.explain);
        tasks::reevaluate(
            policy.as_ref(),
            remaining,
            hosts,
            worth,
            &mut Context { view, pool, seed, explain },
        )
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
        self.tasks.own.as_ref()?.score_hosts(request, peers, hosts, &Context { view, pool, seed, explain })
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
