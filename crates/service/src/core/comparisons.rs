//! Comparisons that take too long for the actor's loop, or that would delay the reply to a decision: of large apps, and of
//! guarantees. The choice of the other policy comes from a job, on the state before the decision, and joins the record.

use std::sync::Arc;

use leeward_engine::{Comparison, Decider, EngineSnapshot};
use leeward_placement::tasks::{AppRequest, Assignment};
use leeward_records::{Beside, Change, DecisionId};

use super::admission::guarantee_beside;
use super::job::{AdmissionInput, CompareInput, CompareOutput, JobKind, Panicked};
use super::other_choices::choices;
use super::{Addresses, Coordinator};

/// Largest number of waiting comparisons. Beyond it, decisions have no comparison.
const MAX_WAITING: usize = 4;

/// A comparison that waits or runs.
#[derive(Debug)]
pub(super) struct PendingComparison {
    id: DecisionId,
    /// Input of the job; `None` once it runs.
    input: Option<CompareInput>,
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
        let Some(record) = self.records.get(id) else { return self.follow_none() };
        let fabric = self.engine.ledger().fabric();
        let hosts: Option<Assignment> = record.details.hosts.iter().map(|name| fabric.host(name)).collect();
        let policy = self.policy_label(by.other(), &record.details.spec);
        let Some(hosts) = hosts else { return self.follow_none() };
        let input = Some(CompareInput::App(snapshot.into(), request.into(), by, hosts));
        self.comparisons.push(PendingComparison { id, input, policy });
        self.start_next_comparison();
    }

    /// Queues the comparison of a guarantee, if there is room: `input` has the other policy, and the guarantees before the
    /// decision.
    pub(super) fn queue_guarantee_comparison(&mut self, id: DecisionId, input: AdmissionInput) {
        if self.has_room_for_comparison() {
            let policy = input.policy.label.as_str().into();
            let input = Some(CompareInput::Promise(input));
            self.comparisons.push(PendingComparison { id, input, policy });
            self.start_next_comparison();
        }
    }

    /// Starts the next comparison unless one runs.
    pub(super) fn start_next_comparison(&mut self) {
        while let Some(mut comparison) = self.comparisons.next() {
            let Some(input) = comparison.input.take() else { continue };
            let job = self.jobs.add(JobKind::Compare(input));
            self.comparisons.start(job, comparison);
        }
    }

    /// Adds a comparison to the record of its decision, if that is still in memory.
    pub(super) fn finish_comparison(
        &mut self,
        PendingComparison { id, policy, .. }: PendingComparison,
        output: Result<CompareOutput, Panicked>,
    ) {
        let beside = match output {
            Ok(CompareOutput::App(Some(comparison))) => {
                self.follow_compared(id, &comparison);
                Beside::of(self.engine.ledger().fabric(), &policy, &comparison)
            }
            Ok(CompareOutput::Promise(answer)) => guarantee_beside(&policy, answer),
            Ok(CompareOutput::App(None)) | Err(Panicked) => return self.follow_none(),
        };
        let changed = self.records.change(id, |record| record.details.beside = Some(beside));
        let Some(record) = changed.cloned() else { return };
        self.count_effect(&record.details);
        self.changes.push(Change::Compared(record));
    }

    /// Follows both choices of an app whose comparison is known.
    fn follow_compared(&mut self, id: DecisionId, comparison: &Comparison<Assignment>) {
        let Some(record) = self.records.get(id).filter(|record| record.released.is_none()).cloned() else {
            return self.follow_none();
        };
        let fabric = self.engine.ledger().fabric();
        let hosts: Option<Assignment> = record.details.hosts.iter().map(|name| fabric.host(name)).collect();
        let choices = hosts.as_ref().and_then(|hosts| choices(hosts, Some(comparison)));
        self.follow_choices(id, &record.details.spec, record.details.by_default, choices);
    }
}
