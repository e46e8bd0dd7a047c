//! The choice of the policy that does not decide a request, beside the choice that is committed. A panic of that policy,
//! a bug, leaves the decision without a comparison: it must not harm a decision that it does not make.

use std::panic::{AssertUnwindSafe, catch_unwind};

use leeward_fabric::HostId;
use leeward_placement::replicas::{self, Chain, ReplicaRequest};
use leeward_placement::tasks::{self, AppRequest, Assignment};
use leeward_placement::{Context, Explain, PathLoad};

use super::Engine;
use crate::message::{Comparison, Decider};

impl Engine {
    /// Compares the chosen hosts of a block with the choice of the other policy, on the ledger before the commit.
    /// `None` without another policy. The other policy decides the block alone, and at once.
    pub(super) fn compare_replicas(
        &mut self,
        by: Decider,
        request: &ReplicaRequest,
        chosen: &Chain,
    ) -> Option<Comparison<Chain>> {
        let policy = self.policies.replicas(by.other())?;
        let (pool, seed, explain) = (&self.pool, self.seed, Explain::Off);
        let (ledger, scratch, now) = (&self.ledger, &mut self.scratch, self.now);
        let other = catch(|| {
            let view = &mut ledger.view(now, scratch);
            policy.place_one(request, &mut Context { view, pool, seed, explain })
        })?;
        let (fabric, view) = (pool.fabric(), &mut self.ledger.view(self.now, &mut self.scratch));
        let mut load =
            |hosts: &[HostId]| PathLoad::of(view, &replicas::traffic(fabric, request, hosts, self.now));
        let committed = load(chosen);
        let other = other.map(|decision| {
            let at = load(&decision.choice);
            (decision.choice, at)
        });
        Some(Comparison { committed, other })
    }

    /// Compares the chosen hosts of an app with the choice of the other policy, on the ledger before the commit. `None`
    /// without another policy.
    pub(super) fn compare_tasks(
        &mut self,
        by: Decider,
        request: &AppRequest,
        chosen: &Assignment,
    ) -> Option<Comparison<Assignment>> {
        let policy = self.tasks.get(by.other())?;
        let (pool, seed, explain) = (&self.pool, self.seed, Explain::Off);
        let (ledger, scratch, now) = (&self.ledger, &mut self.scratch, self.now);
        let other = catch(|| {
            let view = &mut ledger.view(now, scratch);
            policy.place_one(request, &mut Context { view, pool, seed, explain })
        })?;
        let (fabric, view) = (pool.fabric(), &mut self.ledger.view(self.now, &mut self.scratch));
        let mut load =
            |hosts: &[HostId]| PathLoad::of(view, &tasks::traffic(fabric, request, hosts, self.now));
        let committed = load(chosen);
        let other = other.map(|decision| {
            let at = load(&decision.choice);
            (decision.choice, at)
        });
        Some(Comparison { committed, other })
    }
}

/// Runs a choice that is only compared; `None` if it panics. A view resets its memory when it is made, so nothing of a
/// choice that panics remains.
pub(crate) fn catch<T>(choose: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(choose)).ok()
}
