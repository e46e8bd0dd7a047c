//! The engine's view at a moment, for questions that take longer than a turn or must change nothing: what would another
//! policy do?

use std::sync::Arc;

use leeward_fabric::{Fabric, HostId};
use leeward_ledger::{Owner, OwnerKind, Scratch, Snapshot};
use leeward_placement::replicas::{Chain, ReplicaRequest};
use leeward_placement::tasks::{AppRequest, Assignment};
use leeward_placement::{Context, Decision, Explain, Policy, Pool, Refusal};

use crate::Engine;

/// Ledger and hosts at a moment.
#[derive(Clone, Debug)]
pub struct Published {
    ledger: Arc<Snapshot>,
    pool: Pool,
    seed: u64,
    explain: Explain,
}

impl Engine {
    /// Ledger and hosts as they are now. A copy of all that is in the ledger: for what is asked now and then.
    pub fn publish(&self) -> Published {
        let ledger = self.ledger().publish(self.now());
        Published { ledger, pool: self.pool().clone(), seed: self.seed(), explain: self.explain() }
    }
}

impl Published {
    /// The fabric that it is about.
    pub fn fabric(&self) -> &Fabric {
        self.pool.fabric()
    }

    /// Where a policy would put the copies of a block that are on `hosts`, were they not there: their load is not in its
    /// way, nor what they store. No hosts if they count no more.
    ///
    /// # Errors
    /// The policy's refusal.
    pub fn replicas(
        &mut self,
        policy: &dyn Policy<ReplicaRequest>,
        request: &ReplicaRequest,
        hosts: &[HostId],
    ) -> Result<Decision<Chain>, Refusal> {
        hosts.iter().for_each(|&host| self.pool.discard(host, request.size));
        let decision = self.decide(policy, request, OwnerKind::File, request.file);
        hosts.iter().for_each(|&host| self.pool.store(host, request.size));
        decision
    }

    /// Where a policy would put the tasks that are on `hosts`, were they not there. No hosts if they have ended.
    ///
    /// # Errors
    /// The policy's refusal.
    pub fn tasks(
        &mut self,
        policy: &dyn Policy<AppRequest>,
        request: &AppRequest,
        hosts: &[HostId],
    ) -> Result<Decision<Assignment>, Refusal> {
        let placed = || request.tasks.iter().zip(hosts);
        placed().for_each(|(task, &host)| self.pool.vacate(host, request.job, task.cpus, task.memory));
        let decision = self.decide(policy, request, OwnerKind::App, request.id);
        placed().for_each(|(task, &host)| self.pool.occupy(host, request.job, task.cpus, task.memory));
        decision
    }

    fn decide<Q: leeward_placement::Request>(
        &self,
        policy: &dyn Policy<Q>,
        request: &Q,
        kind: OwnerKind,
        id: u64,
    ) -> Result<Decision<Q::Choice>, Refusal> {
        let mut scratch = Scratch::default();
        let view = &mut self.ledger.view(&mut scratch);
        view.without(&Owner { kind, id });
        let (pool, seed, explain) = (&self.pool, self.seed, self.explain);
        let mut context = Context { view, pool, seed, explain };
        policy.place(std::slice::from_ref(request), &mut context).remove(0)
    }
}
