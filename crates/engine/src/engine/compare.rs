//! The choice of the policy that does not decide a request, beside the choice that is committed. A panic of that policy,
//! a bug, leaves the decision without a comparison: it must not harm a decision that it does not make.

use std::panic::{AssertUnwindSafe, catch_unwind};

use leeward_fabric::{Fabric, HostId, Nanos};
use leeward_ledger::{Entry, Ledger, Scratch};
use leeward_placement::replicas::{self, Chain, ReplicaRequest};
use leeward_placement::tasks::{self, AppRequest, Assignment};
use leeward_placement::{Context, Explain, PathLoad, Policy, Pool, Request};

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
        let at = State { ledger: &self.ledger, pool: &self.pool, seed: self.seed, now: self.now };
        compare(at, &mut self.scratch, policy, request, chosen, replicas::traffic)
    }

    /// Compares the chosen hosts of an app with the choice of the other policy, on the ledger before the commit. The
    /// default policy chooses among the hosts with its own earlier tasks. `None` without another policy.
    pub(super) fn compare_tasks(
        &mut self,
        by: Decider,
        request: &AppRequest,
        chosen: &Assignment,
    ) -> Option<Comparison<Assignment>> {
        let policy = self.tasks.get(by.other())?;
        let pool = match by.other() {
            Decider::Own => &self.pool,
            Decider::Default => self.default_hosts.pool(),
        };
        let at = State { ledger: &self.ledger, pool, seed: self.seed, now: self.now };
        compare(at, &mut self.scratch, policy.as_ref(), request, chosen, tasks::traffic)
    }
}

/// State of an engine before a commit.
struct State<'a> {
    ledger: &'a Ledger,
    pool: &'a Pool,
    seed: u64,
    now: Nanos,
}

/// Compares chosen hosts with the choice of another policy. `traffic` returns the traffic of a request at its hosts.
fn compare<Q: Request<Choice = Vec<HostId>>, P: Policy<Q> + ?Sized>(
    State { ledger, pool, seed, now }: State<'_>,
    scratch: &mut Scratch,
    policy: &P,
    request: &Q,
    chosen: &[HostId],
    traffic: fn(&Fabric, &Q, &[HostId], Nanos) -> Vec<Entry>,
) -> Option<Comparison<Vec<HostId>>> {
    let other = catch(|| {
        let view = &mut ledger.view(now, scratch);
        policy.place_one(request, &mut Context { view, pool, seed, explain: Explain::Off })
    })?;
    let view = &mut ledger.view(now, scratch);
    let mut load = |hosts: &[HostId]| PathLoad::of(view, &traffic(pool.fabric(), request, hosts, now));
    let committed = load(chosen);
    let other = other.map(|decision| {
        let at = load(&decision.choice);
        (decision.choice, at)
    });
    Some(Comparison { committed, other })
}

/// Runs a choice that is only compared; `None` if it panics. A view resets its memory when it is made, so nothing of a
/// choice that panics remains.
pub(crate) fn catch<T>(choose: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(choose)).ok()
}
