//! Comparisons of decided apps that take too long for the actor's loop. The default policy decides a large app at once;
//! the choice of Leeward's policy then comes from a job, on the state before the decision, and joins the record.

use std::sync::Arc;

use leeward_engine::{Comparison, Decider, EngineSnapshot};
use leeward_placement::tasks::{AppRequest, Assignment};
use leeward_records::{Beside, Change, DecisionId};

use super::job::{JobKind, Panicked};
use super::{Addresses, Coordinator};

/// Largest number of waiting comparisons. Beyond it, decisions have no comparison.
const MAX_WAITING: usize = 4;

/// A comparison that waits or runs.
#[derive(Debug)]
pub(super) struct PendingComparison {
    id: DecisionId,
    by: Decider,
    /// State before the decision, the app, and its hosts.
    input: Option<(EngineSnapshot, AppRequest, Assignment)>,
    /// Label of the other policy.
    policy: Arc<str>,
}

impl<A: Addresses> Coordinator<A> {
    /// True if there is room for another comparison.
    pub(super) fn has_room_for_comparison(&self) -> bool {
        self.comparisons.len() < MAX_WAITING
    }

    /// Queues the comparison of a decided app.
    pub(super) fn queue_comparison(
        &mut self,
        id: DecisionId,
        by: Decider,
        snapshot: EngineSnapshot,
        request: AppRequest,
    ) {
        let Some(record) = self.records.get(id) else { return };
        let fabric = self.engine.ledger().fabric();
        let hosts: Option<Assignment> = record.details.hosts.iter().map(|name| fabric.host(name)).collect();
        let policy = self.policy_label(by.other(), &record.details.spec);
        let Some(hosts) = hosts else { return };
        let input = Some((snapshot, request, hosts));
        self.comparisons.push(PendingComparison { id, by, input, policy });
        self.start_next_comparison();
    }

    /// Starts the next comparison unless one runs.
    pub(super) fn start_next_comparison(&mut self) {
        while let Some(mut comparison) = self.comparisons.next() {
            let Some((snapshot, request, hosts)) = comparison.input.take() else { continue };
            let job = self.jobs.add(JobKind::Compare(snapshot, request, comparison.by, hosts));
            self.comparisons.start(job, comparison);
        }
    }

    /// Adds a comparison to the record of its decision, if that is still in memory.
    pub(super) fn finish_comparison(
        &mut self,
        PendingComparison { id, policy, .. }: PendingComparison,
        output: Result<Option<Comparison<Assignment>>, Panicked>,
    ) {
        let Ok(Some(comparison)) = output else { return };
        let fabric = self.engine.ledger().fabric().clone();
        let beside = Beside::of(&fabric, &policy, &comparison);
        let changed = self.records.change(id, |record| record.details.beside = Some(beside));
        self.changes.extend(changed.map(|record| Change::Compared(record.clone())));
    }
}
