//! The engine's view at a moment, for what takes longer than a turn or must change nothing: where does this app go, and what
//! would another policy do?

use std::sync::Arc;

use leeward_fabric::{Fabric, HostId, Nanos, ResourceId};
use leeward_ledger::{Owner, Scratch, Snapshot};
use leeward_placement::replicas::{Chain, ReplicaRequest};
use leeward_placement::tasks::{AppRequest, Assignment};
use leeward_placement::{Context, Decision, Explain, Peer, Policy, Pool, Rating, Refusal, Request};

use crate::Engine;

/// What is asked of an engine's view: what there is no need to know for it is not copied.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct About {
    /// The job whose tasks are spread.
    pub job: Option<u64>,
    /// Whose load plays no part.
    pub without: Option<Owner>,
}

/// Ledger, hosts and the policy for tasks at a moment. Copies of it are one.
#[derive(Clone)]
pub struct Published {
    ledger: Arc<Snapshot>,
    pool: Arc<Pool>,
    tasks: Option<Arc<dyn Policy<AppRequest>>>,
    without: Option<Owner>,
    seed: u64,
    explain: Explain,
}

impl Engine {
    /// Ledger and hosts as they are now.
    pub fn publish(&self, About { job, without }: About) -> Published {
        Published {
            ledger: self.ledger().publish(self.now(), without.as_ref()),
            // No job has the number of one that nothing is asked of.
            pool: Arc::new(self.pool().of_job(job.unwrap_or(u64::MAX))),
            tasks: self.tasks().cloned(),
            without,
            seed: self.seed(),
            explain: self.explain(),
        }
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

    /// Where the engine's policy puts the tasks of an app, by what these state; to be handed in as [`crate::Ask::Found`].
    ///
    /// # Errors
    /// The policy's refusal.
    pub fn place(&self, request: &AppRequest) -> Result<Decision<Assignment>, Refusal> {
        let Some(policy) = &self.tasks else { return Err(Refusal::NoPolicy { kind: AppRequest::KIND }) };
        self.decide(policy.as_ref(), request, &self.pool)
    }

    /// Where a policy would put the copies of a block that are on `hosts`, were they not there: what they store is not in its
    /// way. No hosts if they count no more.
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
        self.decide(policy, request, &pool)
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
        self.decide(policy, request, &pool)
    }

    /// How good hosts would be for the one task of a request, by the engine's policy for tasks; `None` if there is none, or
    /// it ranks no hosts.
    pub fn rate(&self, request: &AppRequest, peers: &[Peer], hosts: &[HostId]) -> Option<Vec<Rating>> {
        let mut scratch = Scratch::default();
        let view = &mut self.ledger.view(&mut scratch);
        let (pool, seed, explain) = (&*self.pool, self.seed, self.explain);
        self.tasks.as_ref()?.rate(request, peers, hosts, &Context { view, pool, seed, explain })
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
        policy.place(std::slice::from_ref(request), &mut context).remove(0)
    }
}
