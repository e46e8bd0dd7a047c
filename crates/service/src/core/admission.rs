//! Workloads with guaranteed SLOs. An admission runs as a job outside the coordinator ([`super::Job`]), one at a time,
//! with the guarantees active at its start. The ledger accepts the result only if the queues that the job read have no
//! new reservations. Otherwise the admission runs again.

use std::collections::{BTreeMap, VecDeque};
use std::sync::OnceLock;

use leeward_fabric::{Capacities, Cluster, HostId, Nanos, ResourceId};
use leeward_ledger::{CommitError, Entry, EntryId, Epoch, Transaction};
use leeward_placement::{Pool, Reason};
use leeward_records::{
    Change, DecisionDetails, DecisionId, DecisionRecord, Limit, PlacementSpec, StoredEntry,
};
use leeward_registry::PolicySpec;
use leeward_slo::online::{Agreement, Grant, GrantedStage, Rejected};

use super::completion::Completion;
use super::error::{CallError, PlaceError};
use super::idempotency::RequestState;
use super::job::{AdmissionInput, Job, JobKind, JobOutput, JobResult, Panicked};
use super::{Addresses, Coordinator, Waiting};

/// Largest number of attempts for one admission, if other guarantees begin or end meanwhile.
const TRIES: u32 = 8;

/// Admission policies for workloads, with their settings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdmissionPolicies {
    /// Policy that admits a workload whose volume exists.
    pub admission: PolicySpec,
    /// Limit algorithm for the placement of new volumes.
    pub volumes: PolicySpec,
}

impl Default for AdmissionPolicies {
    fn default() -> Self {
        AdmissionPolicies { admission: PolicySpec::named("dnc"), volumes: PolicySpec::named("compactor") }
    }
}

/// Active guarantees, and admissions that wait or run.
#[derive(Debug, Default)]
pub(super) struct Promises {
    pub policies: AdmissionPolicies,
    /// Number of priorities that the fabric has for guarantees, computed on first use; `None` if it has none.
    pub levels: OnceLock<Option<u8>>,
    /// Decisions by name of the workload.
    pub in_force: BTreeMap<String, DecisionId>,
    /// Last reported latency in seconds, with the end of its window.
    pub seen: BTreeMap<String, (Nanos, f64)>,
    /// Ids of requests that wait for admission.
    queue: VecDeque<DecisionId>,
    under_way: Option<UnderWay>,
    jobs: Vec<Job>,
    /// Number of the next job.
    next: u64,
}

/// The admission that runs.
#[derive(Debug)]
struct UnderWay {
    job: u64,
    ask: DecisionId,
    tries: u32,
    /// Versions of the reservations at each resource when the job began.
    versions: Vec<u32>,
    epoch: Epoch,
}

impl Promises {
    /// Records a reported latency of a workload. Returns true if it is newer than the last one, and `None` if the
    /// workload has no guarantee.
    pub fn saw(&mut self, name: &str, until: Nanos, latency: f64) -> Option<bool> {
        self.in_force.get(name)?;
        let (known, seen) = self.seen.entry(name.to_owned()).or_insert((Nanos(0), latency));
        let news = until > *known;
        if news {
            (*known, *seen) = (until, latency);
        }
        Some(news)
    }

    /// Starts the guarantee of a decision about a workload.
    pub fn begin(&mut self, record: &DecisionRecord) {
        if let Some(spec) = record.details.spec.workload() {
            self.in_force.insert(spec.name().to_owned(), record.id);
        }
    }

    /// Ends the guarantee.
    pub fn end(&mut self, record: &DecisionRecord) {
        let Some(spec) = record.details.spec.workload() else { return };
        self.in_force.remove(spec.name());
        self.seen.remove(spec.name());
    }

    /// Queues a job and returns its number.
    pub fn job(&mut self, kind: JobKind) -> u64 {
        let number = self.next;
        self.next += 1;
        self.jobs.push(Job { number, kind });
        number
    }
}

impl<A: Addresses> Coordinator<A> {
    /// The same coordinator with these admission policies.
    pub fn with_admission(mut self, policies: AdmissionPolicies) -> Coordinator<A> {
        self.promises.policies = policies;
        self
    }

    /// Drains the new jobs, whose results go to [`Coordinator::finish_job`].
    pub fn jobs(&mut self) -> std::vec::Drain<'_, Job> {
        self.promises.jobs.drain(..)
    }

    /// Handles the result of a job.
    pub fn finish_job(&mut self, now: Nanos, result: JobResult) {
        self.wake(now);
        let JobResult { number, answer } = result;
        match answer {
            JobOutput::Promise(found) => {
                let under_way = self.promises.under_way.take_if(|under_way| under_way.job == number);
                let Some(under_way) = under_way else { return };
                match found {
                    Ok(found) => self.promise(under_way, found),
                    Err(Panicked) => self.refuse(under_way.ask, &PlaceError::Panicked),
                }
                self.look_into_next();
            }
            JobOutput::App(found) => {
                let Some(app) = self.apps.finish(number) else { return };
                self.app_found(app, found);
                self.decide_next_app();
            }
            JobOutput::WhatIf(found) => {
                let Some(what_if) = self.what_ifs.finish(number) else { return };
                self.tell_what_if(what_if, found);
                self.look_into_next_what_if();
            }
            JobOutput::Score(found) => {
                let Some(asking) = self.scores.finish(number) else { return };
                self.tell_score(asking, found);
                self.score_next();
            }
        }
    }

    /// Queues a request for admission.
    pub(super) fn look_into(&mut self, ask: DecisionId) {
        self.promises.queue.push_back(ask);
        self.look_into_next();
    }

    fn look_into_next(&mut self) {
        while self.promises.under_way.is_none() {
            let Some(ask) = self.promises.queue.pop_front() else { return };
            self.begin_study(ask, 0);
        }
    }

    fn begin_study(&mut self, ask: DecisionId, tries: u32) {
        let Some(waiting) = self.waiting.get_mut(&ask) else { return };
        waiting.callers.retain(A::is_open);
        if waiting.callers.is_empty() {
            // The job takes long, and no caller waits any more. A retry starts it again.
            return self.refuse(ask, &PlaceError::Busy);
        }
        let spec = waiting.placement.spec.clone();
        let Some(workload) = spec.workload() else { return };
        if let Some(&by) = self.promises.in_force.get(workload.name()) {
            return self.refuse(ask, &PlaceError::NameTaken(workload.name().to_owned(), by));
        }
        let policies = &self.promises.policies;
        let policy = match spec {
            PlacementSpec::Volumes(_) => policies.volumes.clone(),
            _ => policies.admission.clone(),
        };
        let asked = self.admission_input(&spec, ask, policy);
        let ledger = self.engine.ledger();
        let view = ledger.view(self.now, &mut self.scratch);
        let versions = ledger.fabric().all_resources().map(|resource| view.version(resource)).collect();
        let epoch = ledger.epoch();
        let job = self.promises.job(JobKind::Promise(asked));
        self.promises.under_way = Some(UnderWay { job, ask, tries, versions, epoch });
    }

    /// Input of an admission at present, without the guarantee of decision `id` itself.
    pub(super) fn admission_input(
        &mut self,
        spec: &PlacementSpec,
        id: DecisionId,
        policy: PolicySpec,
    ) -> AdmissionInput {
        let ledger = self.engine.ledger();
        let fabric = ledger.fabric().clone();
        let view = ledger.view(self.now, &mut self.scratch);
        let capacities = Capacities::new(fabric.all_resources().map(|at| view.capacity(at)).collect());
        let pool = self.engine.pool();
        let closed = |host: &HostId| is_closed(pool, *host);
        let among =
            matches!(spec, PlacementSpec::Volumes(_)).then(|| fabric.all_hosts().filter(closed).collect());
        let mut numbers: Vec<DecisionId> = self.promises.in_force.values().copied().collect();
        numbers.sort_unstable();
        let others = numbers.into_iter().filter(|&number| number != id);
        AdmissionInput {
            standing: others.filter_map(|number| self.records.get(number).cloned()).collect(),
            cluster: Cluster { fabric, capacities },
            form: spec.workload().map(|spec| spec.workload.clone()).unwrap_or_default(),
            id,
            policy,
            among,
        }
    }

    /// Commits the result of an admission, if it still holds.
    fn promise(&mut self, under_way: UnderWay, found: Result<Agreement, Rejected>) {
        let ask = under_way.ask;
        if self.is_forsaken(ask) {
            return self.refuse(ask, &PlaceError::Busy);
        }
        let Some(waiting) = self.waiting.get(&ask) else { return };
        let spec = &waiting.placement.spec;
        let name = spec.workload().map(|spec| spec.name().to_owned()).unwrap_or_default();
        let chooses = matches!(spec, PlacementSpec::Volumes(_));
        let agreement = match found {
            Ok(agreement) => agreement,
            Err(declined) => {
                let error = match reason(declined) {
                    Declination::Slo(why) => PlaceError::SloRejected(why),
                    Declination::Field(field, why) => PlaceError::Invalid(Some(field), why),
                };
                return self.refuse(ask, &error);
            }
        };
        if let Some(&by) = self.promises.in_force.get(&name) {
            return self.refuse(ask, &PlaceError::NameTaken(name, by));
        }
        if chooses && !self.takes_volumes(agreement.agreed.last()) {
            return self.try_again(&under_way);
        }
        let Some((change, changed)) = self.change(&agreement, &under_way) else {
            return self.try_again(&under_way);
        };
        let committed = self.engine.commit_promise(self.now, change, &mut self.outputs);
        self.carry_out();
        match committed {
            Ok(entries) => self.in_force(&under_way, agreement, &changed, entries),
            Err(CommitError::Conflict { .. } | CommitError::NoEntry(_)) => {
                self.try_again(&under_way);
            }
            Err(error) => self.refuse(ask, &PlaceError::SloRejected(error.to_string())),
        }
    }

    /// True if the chosen server still takes volumes: it may have gone down or started draining meanwhile.
    fn takes_volumes(&self, chosen: Option<&Grant>) -> bool {
        let server = chosen.and_then(|agreed| self.engine.ledger().fabric().host(&agreed.server));
        server.is_some_and(|server| !is_closed(self.engine.pool(), server))
    }

    fn try_again(&mut self, under_way: &UnderWay) {
        if under_way.tries + 1 < TRIES {
            self.begin_study(under_way.ask, under_way.tries + 1);
        } else {
            self.refuse(under_way.ask, &PlaceError::Busy);
        }
    }

    /// The ledger transaction, and for each workload except the last, true if its entries change. `None` if one of the
    /// workloads has ended.
    fn change(&self, agreement: &Agreement, under_way: &UnderWay) -> Option<(Transaction, Vec<bool>)> {
        let version = |resource: &ResourceId| Some((*resource, *under_way.versions.get(resource.index())?));
        let mut change = Transaction {
            expect: agreement.read.iter().filter_map(version).collect(),
            ..Transaction::default()
        };
        let mut changed = Vec::new();
        let begins = |entry: &Entry| Entry { starts: Some(self.now), ..entry.clone() };
        let (_, standing) = agreement.agreed.split_last()?;
        for (agreed, entries) in standing.iter().zip(&agreement.entries) {
            let record = self.records.get(*self.promises.in_force.get(&agreed.workload)?)?;
            let differs = record.details.promise.as_ref().is_none_or(|before| !same(before, agreed));
            changed.push(differs);
            if differs {
                change.release.extend(&record.entries);
                change.add.extend(entries.iter().map(begins));
            }
        }
        change.add.extend(agreement.entries.get(standing.len())?.iter().map(begins));
        Some((change, changed))
    }

    /// Records a guarantee that the ledger accepted, and replies to its callers.
    fn in_force(
        &mut self,
        under_way: &UnderWay,
        agreement: Agreement,
        changed: &[bool],
        entries: Vec<EntryId>,
    ) {
        let Agreement { mut agreed, entries: planned, narrowest, .. } = agreement;
        let (Some(new), mut entries) = (agreed.pop(), entries.into_iter()) else { return };
        for ((agreed, &changed), planned) in agreed.into_iter().zip(changed).zip(&planned) {
            let Some(&id) = self.promises.in_force.get(&agreed.workload) else { continue };
            let own: Option<Vec<EntryId>> = changed.then(|| entries.by_ref().take(planned.len()).collect());
            let bound = self.records.get(id).and_then(|record| record.details.promise.as_ref());
            if own.is_some() || bound != Some(&agreed) {
                self.promised_anew(id, agreed, own);
            }
        }
        let own: Vec<EntryId> = entries.collect();
        let Some(Waiting { placement, callers }) = self.waiting.remove(&under_way.ask) else { return };
        let details = self.promise_details(&placement.spec, under_way.epoch, new, narrowest);
        self.record(under_way.ask, placement.caller, placement.lasts, details, own, callers);
        self.release_leaving();
    }

    /// Records the new guarantee of an existing workload.
    fn promised_anew(&mut self, id: DecisionId, agreed: Grant, entries: Option<Vec<EntryId>>) {
        let changed = self.records.change(id, |record: &mut DecisionRecord| {
            record.entries = entries.unwrap_or_else(|| std::mem::take(&mut record.entries));
            record.details.promise = Some(agreed);
        });
        let Some(record) = changed.cloned() else { return };
        let held = self.stored_entries(&record.entries);
        self.changes.push(Change::Moved(record, held));
    }

    /// Entries in their stored form.
    pub(super) fn stored_entries(&self, entries: &[EntryId]) -> Vec<StoredEntry> {
        let ledger = self.engine.ledger();
        let held = entries.iter().filter_map(|&entry| ledger.entry(entry));
        held.map(|entry| StoredEntry::of(ledger.fabric(), entry)).collect()
    }

    /// A guarantee as the details of a decision.
    pub(super) fn promise_details(
        &self,
        spec: &PlacementSpec,
        epoch: Epoch,
        agreed: Grant,
        narrowest: Option<(ResourceId, i64)>,
    ) -> DecisionDetails {
        let fabric = self.engine.ledger().fabric();
        let limit =
            narrowest.map(|(link, left)| Limit { at: Some(fabric.resource_name(link)), value_bps: left });
        let policies = &self.promises.policies;
        let policy = match spec {
            PlacementSpec::Volumes(_) => &policies.volumes,
            _ => &policies.admission,
        };
        let why = Reason {
            candidate: agreed.server.clone(),
            limit: limit.as_ref().and_then(|limit| limit.at.clone()),
            sight: None,
            value_bps: limit.as_ref().map(|limit| limit.value_bps),
            objectives: None,
            verdict: "chosen".into(),
            because: None,
        };
        DecisionDetails {
            spec: spec.clone(),
            policy: policy.label.as_str().into(),
            hosts: vec![agreed.server.clone()],
            limit,
            epoch,
            oldest: None,
            note: None,
            why: vec![why],
            promise: Some(agreed),
        }
    }

    /// Rejects a waiting request. The client may repeat it.
    pub(super) fn refuse(&mut self, ask: DecisionId, error: &PlaceError) {
        let Some(Waiting { placement, callers }) = self.waiting.remove(&ask) else { return };
        self.let_go(&placement.spec);
        placement.caller.iter().for_each(|caller| self.clients.settle(caller, RequestState::Refused));
        let failed = |to| Completion::Place(to, Err(CallError::Failed(error.clone())));
        self.completions.extend(callers.into_iter().map(failed));
    }
}

/// True if a host takes no volumes.
fn is_closed(pool: &Pool, host: HostId) -> bool {
    !pool.is_up(host) || pool.is_draining(host)
}

/// True if both grants enforce the same limits and priorities.
fn same(one: &Grant, other: &Grant) -> bool {
    let of = |agreed: &Grant| -> Vec<_> {
        let stage = |stage: &GrantedStage| (stage.queues.clone(), stage.priority, stage.limits.clone());
        agreed.stages.iter().map(stage).collect()
    };
    of(one) == of(other)
}

/// Reason why a workload is not admitted.
pub(super) enum Declination {
    /// The SLO cannot be guaranteed, or no server has room.
    Slo(String),
    /// The named field of the request is invalid.
    Field(String, String),
}

/// Returns the reason, with the field's name in the request.
pub(super) fn reason(declined: Rejected) -> Declination {
    match declined {
        Rejected::Invalid(error) => {
            let field = error.field.map_or("workload".to_owned(), |field| format!("workload.{field}"));
            Declination::Field(field, error.message)
        }
        Rejected::Policy(message) => Declination::Field("policy".to_owned(), message),
        Rejected::Infeasible(message) => Declination::Slo(message),
    }
}
