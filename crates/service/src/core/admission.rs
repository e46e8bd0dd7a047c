//! Workloads with guaranteed SLOs. An admission runs as a job outside the coordinator ([`super::Job`]), one at a time,
//! with the guarantees active at its start. The ledger accepts the result only if the queues that the job read have no
//! new reservations. Otherwise the admission runs again.

use std::sync::Arc;

use leeward_agreements::{Agreement, Grant, GrantedStage, Rejected};
use leeward_engine::{Decider, Ruling};
use leeward_fabric::{Capacities, Cluster, HostId, ResourceId};
use leeward_ledger::{CommitError, Entry, EntryId, Epoch, Transaction};
use leeward_placement::{Pool, Reason};
use leeward_records::{
    Beside, Change, DecisionDetails, DecisionId, DecisionRecord, Limit, PlacementSpec, RequestState,
    StoredEntry,
};
use leeward_registry::PolicySpec;

use super::admission_policies::AdmissionPolicies;
use super::completion::Completion;
use super::error::{CallError, PlaceError};
use super::job::{AdmissionInput, JobKind};
use super::{Addresses, Coordinator, Waiting};

/// Largest number of attempts for one admission, if other guarantees begin or end meanwhile.
pub(super) const MAX_ATTEMPTS: u32 = 8;

/// An admission that waits or runs.
#[derive(Debug)]
pub(super) struct Admission {
    /// Id of the request.
    pub id: DecisionId,
    /// Number of earlier attempts.
    attempts: u32,
    /// Versions of the reservations at each resource when the job began; empty while the admission waits.
    versions: Vec<u32>,
    /// Epoch of the ledger when the job began.
    epoch: Epoch,
    /// Input of the comparison that follows the decision, if there is one.
    comparison: Option<AdmissionInput>,
}

impl<A: Addresses> Coordinator<A> {
    /// The same coordinator with these admission policies.
    pub fn with_admission(mut self, policies: AdmissionPolicies) -> Coordinator<A> {
        self.promises.policies = policies;
        self
    }

    /// Queues a request for admission.
    pub(super) fn queue_admission(&mut self, id: DecisionId) {
        self.promises.admissions.push(Admission {
            id,
            attempts: 0,
            versions: Vec::new(),
            epoch: Epoch::default(),
            comparison: None,
        });
        self.start_next_admission();
    }

    /// Starts the next admission unless one runs.
    pub(super) fn start_next_admission(&mut self) {
        while let Some(admission) = self.promises.admissions.next() {
            self.start_admission(admission);
        }
    }

    fn start_admission(&mut self, admission: Admission) {
        let id = admission.id;
        let Some(waiting) = self.waiting.get_mut(&id) else { return };
        waiting.callers.retain(A::is_open);
        if waiting.callers.is_empty() {
            // The job takes long, and no caller waits any more. A repeated request starts it again.
            return self.reject(id, &PlaceError::Busy);
        }
        let spec = waiting.placement.spec.clone();
        let Some(workload) = spec.workload() else { return };
        if let Some(other) = self.promises.named(workload.name()) {
            return self.reject(id, &PlaceError::NameTaken(workload.name().to_owned(), other));
        }
        let Some(Ruling { by, compare }) = self.renew_ruling(id) else { return };
        let policy = self.promises.policies.of(&spec, by).clone();
        let input = self.admission_input(&spec, id, by, policy);
        let comparison = compare.then(|| {
            let policy = self.promises.policies.of(&spec, by.other()).clone();
            self.admission_input(&spec, id, by.other(), policy)
        });
        let (versions, epoch) = (self.reservation_versions(), self.engine.ledger().epoch());
        let job = self.jobs.add(JobKind::Promise(input));
        self.promises.admissions.start(job, Admission { versions, epoch, comparison, ..admission });
    }

    /// Versions of the reservations at each resource. A decision that read a queue is valid while its version stays.
    pub(super) fn reservation_versions(&mut self) -> Vec<u32> {
        let ledger = self.engine.ledger();
        let view = ledger.view(self.now, &mut self.scratch);
        ledger.fabric().all_resources().map(|resource| view.version(resource)).collect()
    }

    /// Input of an admission at present, without the guarantee of decision `id` itself. Leeward's policies know the
    /// guarantees alone, and the default policies also what they placed themselves.
    pub(super) fn admission_input(
        &mut self,
        spec: &PlacementSpec,
        id: DecisionId,
        by: Decider,
        policy: PolicySpec,
    ) -> AdmissionInput {
        let ledger = self.engine.ledger();
        let fabric = ledger.fabric().clone();
        let view = ledger.view(self.now, &mut self.scratch);
        let capacities =
            Capacities::new(fabric.all_resources().map(|resource| view.capacity(resource)).collect());
        let pool = self.engine.pool();
        let closed = |host: &HostId| is_closed(pool, *host);
        let closed_hosts =
            matches!(spec, PlacementSpec::Volumes(_)).then(|| fabric.all_hosts().filter(closed).collect());
        let placed = (by == Decider::Default).then(|| self.promises.unguaranteed.values());
        let mut ids: Vec<DecisionId> =
            self.promises.active.values().chain(placed.into_iter().flatten()).copied().collect();
        ids.sort_unstable();
        let others = ids.into_iter().filter(|&other| other != id);
        AdmissionInput {
            active: others.filter_map(|other| self.records.get(other).cloned()).collect(),
            cluster: Cluster { fabric, capacities, cross_traffic: Vec::new(), source: Arc::default() },
            form: spec.workload().map(|spec| spec.workload.clone()).unwrap_or_default(),
            id,
            policy,
            closed_hosts,
        }
    }

    /// Commits the result of an admission, if the result is still valid.
    pub(super) fn finish_admission(&mut self, running: Admission, result: Result<Agreement, Rejected>) {
        let id = running.id;
        if self.is_abandoned(id) {
            return self.reject(id, &PlaceError::Busy);
        }
        let Some(waiting) = self.waiting.get(&id) else { return };
        let spec = &waiting.placement.spec;
        let name = spec.workload().map(|spec| spec.name().to_owned()).unwrap_or_default();
        let chooses_server = matches!(spec, PlacementSpec::Volumes(_));
        let agreement = match result {
            Ok(agreement) => agreement,
            Err(rejected) => {
                let error = match rejection_reason(rejected) {
                    RejectionReason::Slo(reason) => PlaceError::SloRejected(reason),
                    RejectionReason::Field(field, reason) => PlaceError::Invalid(Some(field), reason),
                };
                return self.reject(id, &error);
            }
        };
        if let Some(other) = self.promises.named(&name) {
            return self.reject(id, &PlaceError::NameTaken(name, other));
        }
        if waiting.ruling.by == Decider::Default {
            return self.record_unguaranteed(running, agreement);
        }
        if chooses_server && !self.takes_volumes(agreement.agreed.last()) {
            return self.retry(running);
        }
        let Some((transaction, changed)) = self.promise_transaction(&agreement, &running.versions) else {
            return self.retry(running);
        };
        let committed = self.engine.commit_promise(self.now, transaction, &mut self.outputs);
        self.handle_outputs();
        match committed {
            Ok(entries) => self.record_guarantee(running, agreement, &changed, entries),
            Err(CommitError::Conflict { .. } | CommitError::NoEntry(_)) => self.retry(running),
            Err(error) => self.reject(id, &PlaceError::SloRejected(error.to_string())),
        }
    }

    /// True if the chosen server still takes volumes: it may have gone down or started draining meanwhile.
    fn takes_volumes(&self, chosen: Option<&Grant>) -> bool {
        let server = chosen.and_then(|grant| self.engine.ledger().fabric().host(&grant.server));
        server.is_some_and(|server| !is_closed(self.engine.pool(), server))
    }

    fn retry(&mut self, admission: Admission) {
        let attempts = admission.attempts + 1;
        if attempts < MAX_ATTEMPTS {
            self.start_admission(Admission { attempts, ..admission });
        } else {
            self.reject(admission.id, &PlaceError::Busy);
        }
    }

    /// Returns the ledger transaction of an agreement, and for each workload except the last, true if its entries
    /// change. `versions` are those of the reservations at the begin of the decision. `None` if one of the workloads has
    /// ended.
    pub(super) fn promise_transaction(
        &self,
        agreement: &Agreement,
        versions: &[u32],
    ) -> Option<(Transaction, Vec<bool>)> {
        let version = |resource: &ResourceId| Some((*resource, *versions.get(resource.index())?));
        let mut transaction = Transaction {
            expect: agreement.read.iter().filter_map(version).collect(),
            ..Transaction::default()
        };
        let mut changed = Vec::new();
        let begins = |entry: &Entry| Entry { starts: Some(self.now), ..entry.clone() };
        let (_, active) = agreement.agreed.split_last()?;
        for (grant, entries) in active.iter().zip(&agreement.entries) {
            let record = self.records.get(*self.promises.active.get(&grant.workload)?)?;
            let differs =
                record.details.promise.as_ref().is_none_or(|before| !has_same_limits(before, grant));
            changed.push(differs);
            if differs {
                transaction.release.extend(&record.entries);
                transaction.add.extend(entries.iter().map(begins));
            }
        }
        transaction.add.extend(agreement.entries.get(active.len())?.iter().map(begins));
        Some((transaction, changed))
    }

    /// Records a guarantee that the ledger accepted, and the changes to others. Replies to the callers.
    fn record_guarantee(
        &mut self,
        running: Admission,
        agreement: Agreement,
        changed: &[bool],
        entries: Vec<EntryId>,
    ) {
        let Agreement { mut agreed, entries: planned, narrowest, .. } = agreement;
        let Some(new) = agreed.pop() else { return };
        let others = agreed.iter().zip(changed).filter(|(_, changed)| **changed).map(|(grant, _)| grant);
        let version = self.advance_promises(others.chain([&new]));
        let own = self.update_others(agreed, changed, &planned, version, entries);
        self.record_promise(running, new, narrowest, version, own);
        self.release_expired();
    }

    /// Updates the guarantees of other workloads after a decision, with the number of its version. `entries` are the new
    /// entries of the ledger: those of changed workloads, then those of the decided one, which are returned.
    pub(super) fn update_others(
        &mut self,
        agreed: Vec<Grant>,
        changed: &[bool],
        planned: &[Vec<Entry>],
        version: u64,
        entries: Vec<EntryId>,
    ) -> Vec<EntryId> {
        let mut entries = entries.into_iter();
        for ((grant, &changed), planned) in agreed.into_iter().zip(changed).zip(planned) {
            let Some(&id) = self.promises.active.get(&grant.workload) else { continue };
            let own: Option<Vec<EntryId>> = changed.then(|| entries.by_ref().take(planned.len()).collect());
            let current = self.records.get(id).and_then(|record| record.details.promise.as_ref());
            if own.is_some() || current != Some(&grant) {
                self.update_guarantee(id, grant, own.map(|own| (own, version)));
            }
        }
        entries.collect()
    }

    /// Records the decision of the default policy about a workload. It holds nothing, so no guarantee depends on it, and
    /// the agreed changes of other workloads do not apply.
    fn record_unguaranteed(&mut self, running: Admission, agreement: Agreement) {
        let Agreement { mut agreed, narrowest, .. } = agreement;
        if let Some(new) = agreed.pop() {
            self.record_promise(running, new, narrowest, 0, Vec::new());
        }
    }

    /// Records a decision about a workload, replies to its callers, and queues its comparison.
    fn record_promise(
        &mut self,
        running: Admission,
        grant: Grant,
        narrowest: Option<(ResourceId, i64)>,
        version: u64,
        entries: Vec<EntryId>,
    ) {
        let Admission { id, epoch, comparison, .. } = running;
        let Some(Waiting { placement, reserve, mode, ruling, policies, callers }) = self.waiting.remove(&id)
        else {
            return;
        };
        let [policy, _] = policies;
        let mut details = self.promise_details(&placement.spec, policy, epoch, grant, narrowest);
        Self::mark(&mut details, mode, ruling.by);
        details.promise_version = version;
        (details.reference, details.digest) = (placement.reference, placement.digest);
        details.reserved_until = reserve.map(|reserve| self.now.plus(reserve));
        self.record(id, placement.caller, placement.lasts, details, entries, callers);
        if let Some(input) = comparison {
            self.queue_guarantee_comparison(id, input);
        }
    }

    /// Records the new guarantee of an existing workload. With other priorities or limits, it has new entries and a new
    /// version.
    fn update_guarantee(&mut self, id: DecisionId, grant: Grant, entries: Option<(Vec<EntryId>, u64)>) {
        let changed = self.records.change(id, |record: &mut DecisionRecord| {
            if let Some((entries, version)) = entries {
                (record.entries, record.details.promise_version) = (entries, version);
            }
            record.details.promise = Some(grant);
        });
        let Some(record) = changed.cloned() else { return };
        let stored = self.stored_entries(id, &record.entries);
        self.changes.push(Change::Moved(record, stored));
    }

    /// Entries of a decision in their stored form.
    pub(super) fn stored_entries(&self, id: DecisionId, entries: &[EntryId]) -> Vec<StoredEntry> {
        let (ledger, tasks) = (self.engine.ledger(), self.engine.task_entries(id.0));
        let entries = entries.iter().filter_map(|&entry| Some((entry, ledger.entry(entry)?)));
        let stored = |(number, entry)| StoredEntry::of(ledger.fabric(), entry, tasks.get(&number).copied());
        entries.map(stored).collect()
    }

    /// A guarantee as the details of a decision.
    pub(super) fn promise_details(
        &self,
        spec: &PlacementSpec,
        policy: Arc<str>,
        epoch: Epoch,
        grant: Grant,
        narrowest: Option<(ResourceId, i64)>,
    ) -> DecisionDetails {
        let fabric = self.engine.ledger().fabric();
        let limit =
            narrowest.map(|(link, value_bps)| Limit { at: Some(fabric.resource_name(link)), value_bps });
        let reason = Reason {
            candidate: grant.server.clone(),
            limit: limit.as_ref().and_then(|limit| limit.at.clone()),
            sight: None,
            value_bps: limit.as_ref().map(|limit| limit.value_bps),
            objectives: None,
            verdict: "chosen".into(),
            because: None,
        };
        DecisionDetails {
            policy,
            hosts: vec![grant.server.clone()],
            limit,
            epoch,
            why: vec![reason],
            promise: Some(grant),
            ..DecisionDetails::empty(spec.clone())
        }
    }

    /// Rejects a waiting request. The client may repeat it.
    pub(super) fn reject(&mut self, id: DecisionId, error: &PlaceError) {
        let Some(Waiting { placement, callers, .. }) = self.waiting.remove(&id) else { return };
        self.count_refusal(&placement.spec);
        self.release_job(&placement.spec, id);
        placement.caller.iter().for_each(|caller| self.clients.settle(caller, RequestState::Rejected));
        let failed = |to| Completion::Place(to, Err(CallError::Failed(error.clone())));
        self.completions.extend(callers.into_iter().map(failed));
    }
}

/// Answer of the policy that did not decide about a guarantee.
pub(super) fn guarantee_beside(policy: &str, answer: Result<Agreement, Rejected>) -> Beside {
    let (hosts, refused) = match answer {
        Ok(mut agreement) => (agreement.agreed.pop().into_iter().map(|grant| grant.server).collect(), None),
        Err(rejected) => {
            let reason = match rejection_reason(rejected) {
                RejectionReason::Slo(reason) | RejectionReason::Field(_, reason) => reason,
            };
            (Vec::new(), Some(reason))
        }
    };
    Beside { policy: policy.to_owned(), hosts, refused, load: None, decided: None }
}

/// True if a host takes no volumes.
pub(super) fn is_closed(pool: &Pool, host: HostId) -> bool {
    !pool.is_up(host) || pool.is_draining(host)
}

/// True if both grants enforce the same limits and priorities.
fn has_same_limits(one: &Grant, other: &Grant) -> bool {
    let limits = |grant: &Grant| -> Vec<_> {
        let stage = |stage: &GrantedStage| (stage.queues.clone(), stage.priority, stage.limits.clone());
        grant.stages.iter().map(stage).collect()
    };
    limits(one) == limits(other)
}

/// Reason why a workload is not admitted.
pub(super) enum RejectionReason {
    /// The SLO cannot be guaranteed, or no server has room.
    Slo(String),
    /// The named field of the request is invalid.
    Field(String, String),
}

/// Returns the reason, with the field's name in the request.
pub(super) fn rejection_reason(rejected: Rejected) -> RejectionReason {
    match rejected {
        Rejected::Invalid(error) => {
            let field = error.field.map_or("workload".to_owned(), |field| format!("workload.{field}"));
            RejectionReason::Field(field, error.message)
        }
        Rejected::Policy(message) => RejectionReason::Field("policy".to_owned(), message),
        Rejected::Infeasible(message) => RejectionReason::Slo(message),
    }
}
