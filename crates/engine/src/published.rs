//! The engine's view at a moment, for questions that take longer than a turn or must change nothing: what would another
//! policy do?

use std::sync::Arc;

use leeward_fabric::{Fabric, HostId, Nanos, ResourceId};
use leeward_ledger::{Owner, OwnerKind, Scratch, Snapshot};
use leeward_placement::replicas::{Chain, ReplicaRequest};
use leeward_placement::tasks::{AppRequest, Assignment};
use leeward_placement::{Context, Decision, Explain, Peer, Policy, Pool, Rating, Refusal};

use crate::Engine;

/// Moments apart by less, between which nothing was heard, are taken for one.
const ALIKE: Nanos = Nanos::SECOND;

/// Ledger, hosts and the policy for tasks at a moment. Copies of it are one.
#[derive(Clone)]
pub struct Published {
    ledger: Arc<Snapshot>,
    pool: Arc<Pool>,
    tasks: Option<Arc<dyn Policy<AppRequest>>>,
    seed: u64,
    explain: Explain,
}

impl Engine {
    /// Ledger and hosts as they are now. A copy of all that is in the ledger, made once for all who ask before anything
    /// changes.
    pub fn publish(&mut self) -> Published {
        let (now, epoch) = (self.now(), self.ledger().epoch());
        let is_so = |last: &&Published| last.epoch() == epoch && now.since(last.at()) < ALIKE;
        if let Some(last) = self.published.as_ref().filter(is_so) {
            return last.clone();
        }
        let (ledger, pool) = (self.ledger().publish(now), Arc::new(self.pool().clone()));
        let (tasks, seed, explain) = (self.tasks().cloned(), self.seed(), self.explain());
        let published = Published { ledger, pool, tasks, seed, explain };
        self.published = Some(published.clone());
        published
    }
}

impl std::fmt::Debug for Published {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Published").field("epoch", &self.epoch()).finish_non_exhaustive()
    }
}

impl Published {
    /// The fabric that it is about.
    pub fn fabric(&self) -> &Fabric {
        self.pool.fabric()
    }

    /// The state of the ledger.
    pub fn epoch(&self) -> u64 {
        self.ledger.epoch()
    }

    /// When it was.
    pub fn at(&self) -> Nanos {
        self.ledger.at()
    }

    /// The earliest of the ends of the last windows that were taken in of some links.
    pub fn measured_until(&self, links: impl IntoIterator<Item = ResourceId>) -> Option<Nanos> {
        let mut scratch = Scratch::default();
        let view = self.ledger.view(&mut scratch);
        links.into_iter().map(|link| view.measured_until(link)).min()
    }

    /// Where a policy would put the copies of a block that are on `hosts`, were they not there: their load is not in its
    /// way, nor what they store. No hosts if they count no more.
    ///
    /// # Errors
    /// The policy's refusal.
    pub fn replicas(
        &self,
        policy: &dyn Policy<ReplicaRequest>,
        request: &ReplicaRequest,
        hosts: &[HostId],
    ) -> Result<Decision<Chain>, Refusal> {
        let mut pool = Pool::clone(&self.pool);
        hosts.iter().for_each(|&host| pool.discard(host, request.size));
        self.decide(policy, request, &pool, Owner { kind: OwnerKind::File, id: request.file })
    }

    /// Where a policy would put the tasks that are on `hosts`, were they not there. No hosts if they have ended.
    ///
    /// # Errors
    /// The policy's refusal.
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
        self.decide(policy, request, &pool, Owner { kind: OwnerKind::App, id: request.id })
    }

    /// How good hosts would be for the one task of a request, by the engine's policy for tasks; `None` if there is none, or
    /// it ranks no hosts.
    pub fn rate(&self, request: &AppRequest, peers: &[Peer], hosts: &[HostId]) -> Option<Vec<Rating>> {
        let mut scratch = Scratch::default();
        let view = &mut self.ledger.view(&mut scratch);
        let (pool, seed, explain) = (&*self.pool, self.seed, self.explain);
        self.tasks.as_ref()?.rate(request, peers, hosts, &Context { view, pool, seed, explain })
    }

    fn decide<Q: leeward_placement::Request>(
        &self,
        policy: &dyn Policy<Q>,
        request: &Q,
        pool: &Pool,
        own: Owner,
    ) -> Result<Decision<Q::Choice>, Refusal> {
        let mut scratch = Scratch::default();
        let view = &mut self.ledger.view(&mut scratch);
        view.without(&own);
        let (seed, explain) = (self.seed, self.explain);
        let mut context = Context { view, pool, seed, explain };
        policy.place(std::slice::from_ref(request), &mut context).remove(0)
    }
}
