//! Decisions about promised workloads whose requests have changed. A decision runs as a job beside the what-if queries. If
//! the server keeps the SLO, the promise has the new curves, and maybe other limits or priorities, at once. Otherwise the
//! promise stays as it was, and the decision says where the volume should move.

use leeward_agreements::{Agreement, Form, Grant, Rejected};
use leeward_engine::Decider;
use leeward_fabric::{HostId, Nanos};
use leeward_ledger::CommitError;
use leeward_models::BucketRecord;
use leeward_promises::{ChangeInput, Redecided};
use leeward_records::{
    Change, DecisionDetails, DecisionRecord, Mode, PlacementSpec, Redecision, RedecisionOutcome, WorkloadSpec,
};
use serde_json::Value;

use super::admission::{MAX_ATTEMPTS, RejectionReason, is_closed, rejection_reason};
use super::completion::WhatIfTo;
use super::enforcement::is_applied_alike;
use super::error::WhatIfError;
use super::job::{ChangeQuery, active_workload};
use super::reply::WhatIfResult;
use super::request::ChangeWorkload;
use super::what_if::{MAX_OPEN, WhatIf};
use super::{Addresses, Coordinator};

impl<A: Addresses> Coordinator<A> {
    /// Decides again on a workload with a promise whose requests have changed; a dry run changes nothing. The reply is a
    /// completion: the decision with the result.
    pub fn change_workload(&mut self, now: Nanos, change: ChangeWorkload, is_dry_run: bool, to: WhatIfTo<A>) {
        self.wake(now);
        self.what_ifs.retain(|what_if| A::is_open(&what_if.to));
        let name = change.workload.get("name").and_then(Value::as_str).unwrap_or_default();
        let record = self.promises.active.get(name).and_then(|&id| self.records.get(id)).cloned();
        match record {
            None => {
                let missing = WhatIfError::NoWorkload(name.to_owned());
                self.reply_to_what_if(to, Err(missing));
            }
            Some(_) if self.what_ifs.len() >= MAX_OPEN => self.reply_to_what_if(to, Err(WhatIfError::Busy)),
            Some(record) => {
                let query = ChangeQuery { change, commits: !is_dry_run, attempts: 0, versions: Vec::new() };
                let policy = self.promises.policies.of(&record.details.spec, Decider::Own).clone();
                self.what_ifs.push(WhatIf::about_change(record, policy, query, to));
                self.start_next_what_if();
            }
        }
    }

    /// Input of the decision, from the present state.
    pub(super) fn change_input(
        &mut self,
        record: &DecisionRecord,
        change: &ChangeWorkload,
    ) -> Result<ChangeInput, WhatIfError> {
        let name = record.details.spec.workload().map(WorkloadSpec::name).unwrap_or_default();
        let current = active_workload(record).filter(|_| record.released.is_none());
        let current = current.ok_or_else(|| WhatIfError::NoWorkload(name.to_owned()))?;
        let policies = self.promises.policies.clone();
        let spec = &record.details.spec;
        let input = self.admission_input(spec, record.id, Decider::Own, policies.admission.clone());
        let pool = self.engine.pool();
        let hosts = input.cluster.fabric.all_hosts();
        let closed: Vec<HostId> = hosts.filter(|&host| is_closed(pool, host)).collect();
        let mut form = change.workload.clone();
        if form.get("server").is_none_or(Value::is_null) {
            form.insert("server".to_owned(), current.agreed.volume.clone().into());
        }
        Ok(ChangeInput {
            others: input.active.iter().filter_map(|record| active_workload(record)).collect(),
            cluster: input.cluster,
            current,
            form,
            is_packed: matches!(spec, PlacementSpec::Volumes(_)),
            admission: policies.admission,
            volumes: policies.volumes,
            closed,
            bytes: change.bytes,
        })
    }

    /// Handles the result of the decision. If another promise changed meanwhile, it is made again.
    pub(super) fn finish_change(&mut self, mut what_if: WhatIf<A>, result: Result<Redecided, Rejected>) {
        let Some(mut query) = what_if.change.take() else {
            return self.reply_to_what_if(what_if.to, Err(WhatIfError::Panicked));
        };
        match self.changed(&what_if.record, &query, result) {
            Ok(Some(reply)) => self.reply_to_what_if(what_if.to, Ok(reply)),
            Ok(None) if query.attempts + 1 < MAX_ATTEMPTS => {
                query.attempts += 1;
                what_if.change = Some(query);
                self.what_ifs.push(what_if);
            }
            Ok(None) => self.reply_to_what_if(what_if.to, Err(WhatIfError::Busy)),
            Err(error) => self.reply_to_what_if(what_if.to, Err(error)),
        }
    }

    /// The reply to a decision, after its commit; `None` if it has to be made again.
    fn changed(
        &mut self,
        record: &DecisionRecord,
        query: &ChangeQuery,
        result: Result<Redecided, Rejected>,
    ) -> Result<Option<WhatIfResult>, WhatIfError> {
        let redecided = result.map_err(|rejected| match rejection_reason(rejected) {
            RejectionReason::Slo(reason) => WhatIfError::Invalid(None, reason),
            RejectionReason::Field(field, reason) => WhatIfError::Invalid(Some(field), reason),
        })?;
        // The promise may have ended while the job ran.
        let current = self.records.get(record.id).filter(|current| current.released.is_none()).cloned();
        let name = record.details.spec.workload().map(WorkloadSpec::name).unwrap_or_default();
        let current = current.ok_or_else(|| WhatIfError::NoWorkload(name.to_owned()))?;
        let mut redecision = Redecision {
            outcome: RedecisionOutcome::Nowhere,
            reason: None,
            trace: query.change.trace.clone(),
            server: None,
            volume: None,
            bound_s: None,
            copy: None,
        };
        match redecided {
            Redecided::InPlace(agreement) => self.change_in_place(&current, query, redecision, *agreement),
            Redecided::Elsewhere { reason, place, copy } => {
                redecision.reason = Some(reason);
                if let Some(place) = place {
                    redecision.outcome = RedecisionOutcome::Move;
                    (redecision.server, redecision.volume) = (Some(place.server), Some(place.volume));
                    (redecision.bound_s, redecision.copy) = (place.bound_s, copy);
                }
                let details = DecisionDetails { redecision: Some(redecision), ..current.details.clone() };
                Ok(Some(self.note_redecision(&current, details, query.commits)))
            }
        }
    }

    /// Stores a decision that changes no promise.
    fn note_redecision(
        &mut self,
        current: &DecisionRecord,
        details: DecisionDetails,
        commits: bool,
    ) -> WhatIfResult {
        let stored = commits.then(|| self.replace_details(current.id, details.clone())).flatten();
        if let Some(record) = stored {
            self.changes.push(Change::Compared(record.clone()));
            return WhatIfResult { record, refusal: None, is_stored: true };
        }
        let record = DecisionRecord { details, ..current.clone() };
        WhatIfResult { record: record.into(), refusal: None, is_stored: false }
    }

    /// Gives the workload its new curves, and all workloads their new promises.
    fn change_in_place(
        &mut self,
        current: &DecisionRecord,
        query: &ChangeQuery,
        mut redecision: Redecision,
        agreement: Agreement,
    ) -> Result<Option<WhatIfResult>, WhatIfError> {
        let id = current.id;
        let (Some(before), Some(after)) = (current.details.promise.clone(), agreement.agreed.last()) else {
            return Ok(None);
        };
        redecision.outcome = outcome(&before, after);
        let spec = with_form(&current.details.spec, query.change.workload.clone());
        let policy = self.promises.policies.of(&spec, Decider::Own).label.as_str().into();
        let epoch = self.engine.ledger().epoch();
        let is_alike = is_applied_alike(&before, after);
        let fresh = self.promise_details(&spec, policy, epoch, after.clone(), agreement.narrowest);
        let DecisionDetails { policy, hosts, limit, epoch, why, promise, .. } = fresh;
        let details = current.details.clone();
        let mut details =
            DecisionDetails { spec, policy, hosts, limit, epoch, why, promise, redecision: None, ..details };
        details.set_racks(self.engine.ledger().fabric());
        let modes = self.modes_in_force();
        let mode = if details.spec.kind() == "volumes" { modes.volumes } else { modes.workload };
        if !query.commits || matches!(mode, Mode::Off | Mode::Shadow) {
            if query.commits {
                redecision.reason =
                    Some("the default policy decides now, so the promise stays as it was".into());
                details = current.details.clone();
            }
            details.redecision = Some(redecision);
            return Ok(Some(self.note_redecision(current, details, query.commits)));
        }
        let Some((mut transaction, changed)) = self.promise_transaction(&agreement, &query.versions) else {
            return Ok(None);
        };
        transaction.release.extend(&current.entries);
        let committed = self.engine.commit_promise(self.now, transaction, &mut self.outputs);
        self.handle_outputs();
        let entries = match committed {
            Ok(entries) => entries,
            Err(CommitError::Conflict { .. } | CommitError::NoEntry(_)) => return Ok(None),
            Err(error) => return Err(WhatIfError::Invalid(None, error.to_string())),
        };
        let Agreement { mut agreed, entries: planned, .. } = agreement;
        let Some(after) = agreed.pop() else { return Ok(None) };
        let mut version = details.promise_version;
        if !is_alike || changed.contains(&true) {
            let others = agreed.iter().zip(&changed).filter(|(_, changed)| **changed).map(|(grant, _)| grant);
            // Enforcers at an earlier server learn that the promise is gone.
            version = self.advance_promises(others.chain([&before, &after]));
        }
        let own = self.update_others(agreed, &changed, &planned, version, entries);
        if !is_alike {
            details.promise_version = version;
        }
        details.redecision = Some(redecision);
        let stored = self.stored_entries(id, &own);
        let changed = self.records.change(id, |record| (record.details, record.entries) = (details, own));
        let Some(record) = changed.cloned() else { return Ok(None) };
        self.changes.push(Change::Moved(record.clone(), stored));
        self.release_expired();
        Ok(Some(WhatIfResult { record, refusal: None, is_stored: true }))
    }
}

/// The request of a decision with another workload. A request for a place of a volume has no server.
fn with_form(spec: &PlacementSpec, mut workload: Form) -> PlacementSpec {
    if let PlacementSpec::Volumes(_) = spec {
        workload.remove("server");
        return PlacementSpec::Volumes(WorkloadSpec { workload });
    }
    if let (None, Some(before)) = (workload.get("server").filter(|server| !server.is_null()), spec.workload())
        && let Some(server) = before.workload.get("server")
    {
        workload.insert("server".to_owned(), server.clone());
    }
    PlacementSpec::Workload(WorkloadSpec { workload })
}

/// Outcome of a decision that keeps the SLO.
fn outcome(before: &Grant, after: &Grant) -> RedecisionOutcome {
    let priorities =
        |grant: &Grant| -> Vec<u32> { grant.stages.iter().map(|stage| stage.priority).collect() };
    let limits = |grant: &Grant| -> Vec<Vec<BucketRecord>> {
        grant.stages.iter().map(|stage| stage.limits.clone()).collect()
    };
    if (&before.server, &before.volume) != (&after.server, &after.volume) {
        RedecisionOutcome::Moved
    } else if priorities(before) != priorities(after) {
        RedecisionOutcome::Priority
    } else if limits(before) != limits(after) {
        RedecisionOutcome::Limits
    } else {
        RedecisionOutcome::Keeps
    }
}
