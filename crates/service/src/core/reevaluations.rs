//! Re-evaluation of running apps (Choreo section 2.4): the service's policy for tasks places the remaining transfers
//! again, as a job beside the what-if queries. If the moves are worth their cost, the decision gets the new hosts and
//! holds its remaining transfers there. The decision keeps its last re-evaluation.

use leeward_fabric::Nanos;
use leeward_placement::tasks::{ReevaluationRecord, Worth};
use leeward_records::{
    Change, DecisionDetails, DecisionId, DecisionRecord, Mode, PlacementSpec, RemainingTransfer,
};

use super::completion::WhatIfTo;
use super::error::WhatIfError;
use super::job::{Again, AgainOutput};
use super::reply::WhatIfResult;
use super::what_if::WhatIf;
use super::{Addresses, Coordinator};

/// Re-evaluates the hosts of a running app.
#[derive(Clone, PartialEq, Debug)]
pub struct Reevaluate {
    /// Decision that placed the app.
    pub id: DecisionId,
    /// Remaining transfers; `None` for all transfers of the app.
    pub remaining: Option<Vec<RemainingTransfer>>,
    /// Cost of a move, and the gain that it must bring.
    pub worth: Worth,
}

impl<A: Addresses> Coordinator<A> {
    /// Re-evaluates the hosts of a running app, and moves it if this is worth the cost; a dry run changes nothing. The
    /// reply is a completion: the decision with its re-evaluation.
    pub fn reevaluate(&mut self, now: Nanos, query: Reevaluate, is_dry_run: bool, to: WhatIfTo<A>) {
        self.wake(now);
        let policy = self.labels.tasks.to_string();
        let checked = self.check_what_if(query.id, &policy).and_then(|(record, policy)| {
            let PlacementSpec::Tasks(spec) = &record.details.spec else {
                return Err(invalid(None, format!("decision {} placed no tasks", query.id)));
            };
            let transfers = spec.remaining(query.remaining.as_deref());
            let transfers = transfers.map_err(|message| invalid(Some("remaining"), message))?;
            Ok((record, policy, Again { transfers, worth: query.worth, commits: !is_dry_run }))
        });
        match checked {
            Err(error) => self.reply_to_what_if(to, Err(error)),
            Ok((record, policy, again)) => self.queue_what_if(record, policy, Some(again), to),
        }
    }

    /// Stores the result of a re-evaluation, and moves the app if this is worth the cost.
    pub(super) fn finish_reevaluation(&mut self, what_if: WhatIf<A>, again: &Again, output: AgainOutput) {
        let reply = self.reevaluated(&what_if.record, again, output);
        self.reply_to_what_if(what_if.to, reply);
    }

    fn reevaluated(
        &mut self,
        record: &DecisionRecord,
        again: &Again,
        AgainOutput { request, hosts, result }: AgainOutput,
    ) -> Result<WhatIfResult, WhatIfError> {
        let id = record.id;
        let fabric = self.engine.ledger().fabric().clone();
        let tasks = match &record.details.spec {
            PlacementSpec::Tasks(spec) => spec.tasks.as_slice(),
            _ => &[],
        };
        let names = tasks.iter().map(|task| task.name.as_str());
        let mut outcome = ReevaluationRecord::of(&fabric, names, &hosts, &result, again.worth.margin);
        let mode = self.modes_in_force().tasks;
        let decides = match mode {
            Mode::On => true,
            Mode::Canary(_) => !record.details.by_default,
            Mode::Off | Mode::Shadow => false,
        };
        if outcome.worth_it && !decides {
            outcome.worth_it = false;
            outcome.reason.push_str("; the default policy decides about these tasks, so they stay");
        }
        // The app may have ended or moved while the job ran.
        let current = self.records.get(id).filter(|current| current.released.is_none());
        let current = current.ok_or(WhatIfError::Ended(id))?;
        let details = DecisionDetails { reevaluation: Some(outcome), ..current.details.clone() };
        let is_worth = details.reevaluation.as_ref().is_some_and(|outcome| outcome.worth_it);
        if !again.commits {
            let record = DecisionRecord { details, ..DecisionRecord::clone(current) };
            return Ok(WhatIfResult { record: record.into(), refusal: None, is_stored: false });
        }
        let Some(alternative) = result.ok().filter(|_| is_worth) else {
            let record = self.replace_details(id, details).ok_or(WhatIfError::Ended(id))?;
            self.changes.push(Change::Compared(record.clone()));
            return Ok(WhatIfResult { record, refusal: None, is_stored: true });
        };
        let waits = self.migrations.last().any(|one| one.decision == id && one.state.is_open());
        if waits || details.hosts != record.details.hosts {
            return Err(WhatIfError::Busy);
        }
        let placed = self.engine.commit_again(self.now, &request, alternative.decision, &mut self.outputs);
        self.handle_outputs();
        // A host was taken or closed meanwhile.
        let placed = placed.ok_or(WhatIfError::Busy)?;
        let (spec, choice) = (details.spec.clone(), &placed.decision.choice);
        let moved = DecisionDetails::of(&fabric, &self.labels.tasks, spec, choice, &placed.decision);
        let DecisionDetails { policy, hosts, limit, epoch, oldest, why, .. } = moved;
        let mut details = DecisionDetails { policy, hosts, limit, epoch, oldest, why, ..details };
        details.set_racks(&fabric);
        let (entries, stored) = (placed.entries.clone(), self.stored_entries(&placed.entries));
        let changed = self.records.change(id, |record| (record.details, record.entries) = (details, entries));
        let record = changed.ok_or(WhatIfError::Ended(id))?.clone();
        self.changes.push(Change::Moved(record.clone(), stored));
        Ok(WhatIfResult { record, refusal: None, is_stored: true })
    }
}

fn invalid(field: Option<&str>, message: String) -> WhatIfError {
    WhatIfError::Invalid(field.map(str::to_owned), message)
}
