//! Decisions that the caller made itself. They are facts: the engine commits them as they are, with the objections of its
//! checks.

use leeward_fabric::{Bytes, HostId, Nanos};
use leeward_ledger::EntryId;
use leeward_placement::replicas::{self, Chain, ReplicaRequest};
use leeward_placement::tasks::{self, AppRequest, Assignment};
use leeward_placement::{Constraint, Decision};

use super::{BEST_EFFORT, Engine};
use crate::message::{Comparison, Decider};

/// Name of the policy in decisions of the caller.
const CALLER: &str = "caller";

/// A choice of the caller, before its commit.
#[derive(Clone, PartialEq, Debug)]
pub struct Given<C> {
    /// The choice, with its change to the ledger.
    pub decision: Decision<C>,
    /// For each host, the reason for which a policy would refuse it.
    pub objections: Vec<Option<Constraint>>,
    /// Comparison with the choice of the engine's policy, if it was requested and there is one.
    pub comparison: Option<Comparison<C>>,
}

/// Time at which the work of a caller's choice started, and whether to compare the choice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GivenTerms {
    /// Start of the work.
    pub started: Nanos,
    /// True if telemetry shows the transfer of a block already, so that the ledger needs no entry for it.
    pub seen: bool,
    /// True if the engine's policy chooses too, for a comparison.
    pub compare: bool,
}

impl Engine {
    /// Checks the hosts that a caller chose for the copies of a block. Nothing is committed.
    pub fn check_given_replicas(
        &mut self,
        now: Nanos,
        request: &ReplicaRequest,
        hosts: &[HostId],
        GivenTerms { started, seen, compare }: GivenTerms,
    ) -> Given<Chain> {
        self.advance(now);
        let epoch = self.ledger.epoch();
        let mut decision = replicas::given(CALLER, request, hosts, started, epoch, &self.pool);
        if seen {
            decision.change.add.clear();
        }
        let objections = replicas::objections(&self.pool, request, hosts);
        let chosen = compare.then_some(&decision.choice);
        let comparison = chosen.and_then(|chosen| self.compare_replicas(Decider::Default, request, chosen));
        Given { decision, objections, comparison }
    }

    /// Checks the hosts that a caller chose for the tasks of an app. Nothing is committed.
    pub fn check_given_app(
        &mut self,
        now: Nanos,
        request: &AppRequest,
        hosts: &[HostId],
        GivenTerms { started, compare, .. }: GivenTerms,
    ) -> Given<Assignment> {
        self.advance(now);
        let epoch = self.ledger.epoch();
        let decision = tasks::given(CALLER, request, hosts, started, epoch, &self.pool);
        let objections = tasks::objections(&self.pool, request, hosts);
        let chosen = compare.then_some(&decision.choice);
        let comparison = chosen.and_then(|chosen| self.compare_tasks(Decider::Default, request, chosen));
        Given { decision, objections, comparison }
    }

    /// Commits copies of `size` on the hosts that a caller chose. Returns their entries.
    pub fn commit_given_replicas(&mut self, decision: &mut Decision<Chain>, size: Bytes) -> Vec<EntryId> {
        let change = std::mem::take(&mut decision.change);
        let entries = self.ledger.commit(change, self.now).expect(BEST_EFFORT);
        decision.choice.iter().for_each(|&host| self.pool.store(host, size));
        entries
    }

    /// Commits the tasks of an app on the hosts that a caller chose. Returns their entries.
    pub fn commit_given_app(&mut self, request: &AppRequest, decision: Decision<Assignment>) -> Vec<EntryId> {
        self.commit_placement(request, &request.tasks, decision).entries
    }
}
