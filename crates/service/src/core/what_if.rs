//! Queries that commit nothing: scores of hosts, and decisions of another policy.

use std::sync::Arc;

use leeward_engine::{Decider, Ruling, SnapshotScope};
use leeward_fabric::{Fabric, HostId, Nanos};
use leeward_ledger::{Epoch, Owner, OwnerKind};
use leeward_placement::tasks::AppRequest;
use leeward_placement::{Decision, JobId, Refusal, replicas, tasks};
use leeward_records::{Beside, DecisionDetails, DecisionId, DecisionRecord, LinkLoad, PlacementSpec};
use leeward_registry::PolicySpec;
use leeward_slo::{admit, limits};

use super::admission::{RejectionReason, rejection_reason};
use super::completion::{Completion, ScoreTo, WhatIfTo};
use super::error::{CallError, ScoreError, WhatIfError};
use super::job::{
    Again, ChangeQuery, JobKind, JobScores, Panicked, WhatIfHosts, WhatIfJob, WhatIfLoads, WhatIfOutput,
};
use super::reply::{Rated, Scores, WhatIfResult};
use super::request::{Placement, Score};
use super::{Addresses, Coordinator};

/// Limit on open what-if queries, and on open score queries.
pub(super) const MAX_OPEN: usize = 4;
/// Largest number of pairs of hosts and peers to score inside the actor's loop: about ten milliseconds. Larger queries
/// run as jobs.
const MAX_LOOP_PAIRS: usize = 10_000;
/// Limit on host and link lookups of a what-if query: about ten seconds. Later queries wait until it ends.
const MAX_COST: u64 = 1_000_000_000;

/// A what-if query that waits or runs.
pub(super) struct WhatIf<A: Addresses> {
    /// The decision; in a dry run, the request with its mode and without hosts.
    pub record: Arc<DecisionRecord>,
    /// True for a dry run: no decision has this id yet.
    is_dry_run: bool,
    policy: PolicySpec,
    epoch: Epoch,
    /// Set if the query is a re-evaluation.
    again: Option<Again>,
    /// Set if the query is about a changed workload.
    pub change: Option<ChangeQuery>,
    /// Address for the reply.
    pub to: WhatIfTo<A>,
}

impl<A: Addresses> WhatIf<A> {
    /// A query about a changed workload, whose promise this decision made.
    pub fn about_change(
        record: Arc<DecisionRecord>,
        policy: PolicySpec,
        change: ChangeQuery,
        to: WhatIfTo<A>,
    ) -> WhatIf<A> {
        let (epoch, change) = (Epoch::default(), Some(change));
        WhatIf { record, is_dry_run: false, policy, epoch, again: None, change, to }
    }
}

/// Score query of many hosts that waits or runs.
pub(super) struct ScoreQuery<A: Addresses> {
    score: Score,
    /// Address for the reply.
    pub to: ScoreTo<A>,
}

impl<A: Addresses> Coordinator<A> {
    /// Scores hosts for a task, at once, or as a job if the hosts are many. The reply is a completion. The operation
    /// commits nothing.
    pub fn score(&mut self, now: Nanos, mut score: Score, to: ScoreTo<A>) {
        self.wake(now);
        let pairs = score.hosts.len().saturating_mul(1 + score.peers.len());
        if pairs <= MAX_LOOP_PAIRS {
            score.request.job = self.named_job(score.job.as_ref());
            score.request = self.engine.with_history(score.request);
            let scores = self.score_now(&score);
            return self.reply_to_score(to, scores);
        }
        self.scores.retain(|query| A::is_open(&query.to));
        if self.scores.len() >= MAX_OPEN {
            return self.reply_to_score(to, Err(ScoreError::Busy));
        }
        self.scores.push(ScoreQuery { score, to });
        self.start_next_score();
    }

    fn reply_to_score(&mut self, to: ScoreTo<A>, scores: Result<Scores, ScoreError>) {
        self.completions.push(Completion::Score(to, scores.map_err(CallError::Failed)));
    }

    pub(super) fn reply_to_what_if(&mut self, to: WhatIfTo<A>, result: Result<WhatIfResult, WhatIfError>) {
        self.completions.push(Completion::WhatIf(to, result.map_err(CallError::Failed)));
    }

    /// Starts the next score query of many hosts, unless one runs. Queries without a caller are dropped.
    pub(super) fn start_next_score(&mut self) {
        self.scores.retain(|query| A::is_open(&query.to));
        let Some(mut query) = self.scores.next() else { return };
        let Score { request, job, .. } = &mut query.score;
        // The job may have started or ended after the query was sent.
        request.job = self.named_job(job.as_ref());
        let snapshot =
            self.engine.snapshot(SnapshotScope { job: Some(query.score.request.job), without: None });
        let mut score = query.score.clone();
        score.request = self.engine.with_history(score.request);
        let job = self.jobs.add(JobKind::Score(snapshot, score));
        self.scores.start(job, query);
    }

    fn score_now(&mut self, score: &Score) -> Result<Scores, ScoreError> {
        let ratings = self.engine.score_hosts(&score.request, &score.peers, &score.hosts);
        let ratings = ratings.ok_or_else(|| ScoreError::Unsupported(self.labels.tasks.clone()))?;
        let ledger = self.engine.ledger();
        let view = ledger.view(self.now, &mut self.scratch);
        let oldest =
            ratings.iter().filter_map(|rating| rating.limit).filter_map(|link| view.window_end(link)).min();
        let (policy, epoch) = (self.labels.tasks.clone(), ledger.epoch());
        let ratings = Rated::new(ledger.fabric(), ratings);
        Ok(Scores { ratings, policy, epoch, age: oldest.map(|oldest| self.now.since(oldest)) })
    }

    /// Replies to a score query.
    pub(super) fn finish_score(&mut self, query: ScoreQuery<A>, output: Result<Option<JobScores>, Panicked>) {
        let policy = self.labels.tasks.clone();
        let reply = match output {
            Ok(Some(JobScores { ratings, epoch, age })) => Ok(Scores { ratings, policy, epoch, age }),
            Ok(None) => Err(ScoreError::Unsupported(policy)),
            Err(Panicked) => Err(ScoreError::Panicked),
        };
        self.reply_to_score(query.to, reply);
    }

    /// Decides the request of a decision again under another policy, such as `sinbad:remote_racks=2`. The reply is a
    /// completion. The operation commits nothing.
    pub fn what_if(&mut self, now: Nanos, id: DecisionId, policy: &str, to: WhatIfTo<A>) {
        self.wake(now);
        match self.check_what_if(id, policy) {
            Err(error) => self.reply_to_what_if(to, Err(error)),
            Ok((record, policy)) => self.queue_what_if(record, policy, None, to),
        }
    }

    /// Queues a query about a decision.
    pub(super) fn queue_what_if(
        &mut self,
        record: Arc<DecisionRecord>,
        policy: PolicySpec,
        again: Option<Again>,
        to: WhatIfTo<A>,
    ) {
        let epoch = Epoch::default();
        self.what_ifs.push(WhatIf { record, is_dry_run: false, policy, epoch, again, change: None, to });
        self.start_next_what_if();
    }

    /// Decides a request as it would be decided now, and commits nothing: no id, key or sequence number is used. The
    /// reply is a completion. Its decision has the id that the next decision would have.
    pub fn dry_run(&mut self, now: Nanos, placement: Placement, to: WhatIfTo<A>) {
        self.wake(now);
        self.what_ifs.retain(|what_if| A::is_open(&what_if.to));
        if self.what_ifs.len() >= MAX_OPEN {
            return self.reply_to_what_if(to, Err(WhatIfError::Busy));
        }
        match self.dry_run_query(placement) {
            Err(error) => self.reply_to_what_if(to, Err(error)),
            Ok((record, policy)) => {
                let (epoch, again, change) = (Epoch::default(), None, None);
                self.what_ifs.push(WhatIf { record, is_dry_run: true, policy, epoch, again, change, to });
                self.start_next_what_if();
            }
        }
    }

    /// Record without hosts of a request, and the policy that would decide it.
    fn dry_run_query(
        &mut self,
        placement: Placement,
    ) -> Result<(Arc<DecisionRecord>, PolicySpec), WhatIfError> {
        let id = self.next;
        self.request_of(id, &placement.spec)
            .map_err(|error| WhatIfError::Invalid(error.field, error.message))?;
        if let Some(workload) = placement.spec.workload()
            && let Some(other) = self.promises.named(workload.name())
        {
            return Err(WhatIfError::NameTaken(workload.name().to_owned(), other));
        }
        let (mode, Ruling { by, .. }) = self.ruling(id, &placement);
        let label = self.policy_label(by, &placement.spec);
        let policy = label.parse().map_err(|message| WhatIfError::Invalid(None, message))?;
        let (at, expires) = (self.now, placement.lasts.map(|lasts| self.now.plus(lasts)));
        let mut details = DecisionDetails::empty(placement.spec);
        Self::mark(&mut details, mode, by);
        let (caller, entries, released) = (placement.caller, Vec::new(), None);
        Ok((Arc::new(DecisionRecord { id, at, caller, details, entries, expires, released }), policy))
    }

    /// Starts the next what-if query unless one runs. Queries without a caller are dropped.
    pub(super) fn start_next_what_if(&mut self) {
        self.what_ifs.retain(|what_if| A::is_open(&what_if.to));
        while let Some(mut what_if) = self.what_ifs.next() {
            // The decision may have ended meanwhile.
            if let Some(record) = self.records.get(what_if.record.id).filter(|_| !what_if.is_dry_run) {
                what_if.record = record.clone();
            }
            if let Some(change) = &mut what_if.change {
                change.versions = self.reservation_versions();
            }
            match self.what_if_job(&what_if) {
                Err(error) => self.reply_to_what_if(what_if.to, Err(error)),
                Ok(input) => {
                    what_if.epoch = self.epoch();
                    let job = self.jobs.add(JobKind::WhatIf(input));
                    self.what_ifs.start(job, what_if);
                }
            }
        }
    }

    /// Returns the decision of an id and the parsed policy, if the query is valid and the queue has room for it.
    pub(super) fn check_what_if(
        &mut self,
        id: DecisionId,
        policy: &str,
    ) -> Result<(Arc<DecisionRecord>, PolicySpec), WhatIfError> {
        let invalid = |message: String| WhatIfError::Invalid(Some("policy".to_owned()), message);
        let missing =
            || if self.is_evicted(id) { WhatIfError::NotInMemory(id) } else { WhatIfError::NotFound(id) };
        let record = self.records.get(id).cloned().ok_or_else(missing)?;
        let spec: PolicySpec = policy.parse().map_err(invalid)?;
        let fabric = self.engine.ledger().fabric();
        let cost = cost_estimate(&spec, &record.details.spec, fabric).map_err(invalid)?;
        // The cost of the service's own policy is always allowed.
        let own = match &record.details.spec {
            PlacementSpec::Tasks(spec) => {
                let request = spec.request(fabric, DecisionId::default(), JobId::NONE);
                self.engine.cost_estimate(Decider::Own, &request)
            }
            PlacementSpec::Replicas(_) | PlacementSpec::Workload(_) | PlacementSpec::Volumes(_) => 0,
        };
        let limit = MAX_COST.max(own);
        if cost > limit {
            let message = format!(
                "`{}` needs about {cost} lookups of hosts and links, and the limit is {limit}: set a lower `effort` or \
                 `nodes`, or use `leeward place tasks`",
                spec.label
            );
            return Err(invalid(message));
        }
        self.what_ifs.retain(|what_if| A::is_open(&what_if.to));
        if self.what_ifs.len() >= MAX_OPEN { Err(WhatIfError::Busy) } else { Ok((record, spec)) }
    }

    /// Builds the job of a query from the present state.
    fn what_if_job(&mut self, what_if: &WhatIf<A>) -> Result<WhatIfJob, WhatIfError> {
        let (record, policy) = (&what_if.record, what_if.policy.clone());
        let fabric = self.engine.ledger().fabric().clone();
        let decided: Option<Vec<HostId>> =
            record.details.hosts.iter().map(|name| fabric.host(name)).collect();
        let decided = decided.filter(|hosts| !hosts.is_empty());
        // An ended decision has no load to remove.
        let hosts = decided.clone().filter(|_| record.released.is_none()).unwrap_or_default();
        let hosts = WhatIfHosts { load: hosts, decided };
        let id = record.id;
        let by =
            if record.details.by_default && what_if.is_dry_run { Decider::Default } else { Decider::Own };
        Ok(match &record.details.spec {
            PlacementSpec::Replicas(spec) => {
                let request = spec.request(&fabric, id.0);
                let request = request.map_err(|error| WhatIfError::Invalid(None, error.message))?;
                let request = self.engine.with_source(self.now, request);
                let own = Owner { kind: OwnerKind::File, id: request.file };
                let snapshot = self.engine.snapshot(SnapshotScope { job: None, without: Some(own) });
                WhatIfJob::Replicas(snapshot, policy, request, hosts)
            }
            spec @ PlacementSpec::Tasks(tasks) => {
                let job = self.job_number(spec, id).unwrap_or(JobId::NONE);
                let request = self.tasks_request(tasks, id, job, &hosts.load);
                let own = Owner { kind: OwnerKind::App, id: id.0 };
                let snapshot = self.engine.snapshot(SnapshotScope { job: Some(job), without: Some(own) });
                match &what_if.again {
                    None => WhatIfJob::Tasks(snapshot, policy, self.engine.with_history(request), hosts),
                    Some(_) if hosts.load.is_empty() => return Err(WhatIfError::Ended(id)),
                    Some(Again { transfers, worth, .. }) => {
                        let request = AppRequest { transfers: transfers.clone(), ..request };
                        WhatIfJob::Again(snapshot, request, hosts.load, *worth)
                    }
                }
            }
            spec @ (PlacementSpec::Workload(_) | PlacementSpec::Volumes(_)) => match &what_if.change {
                None => WhatIfJob::Promise(self.admission_input(spec, id, by, policy)),
                Some(query) => WhatIfJob::Change(Box::new(self.change_input(record, &query.change)?)),
            },
        })
    }

    /// Replies to a what-if query.
    pub(super) fn finish_what_if(&mut self, what_if: WhatIf<A>, output: Result<WhatIfOutput, Panicked>) {
        let output = match (output, what_if.again.clone()) {
            (Ok(WhatIfOutput::Again(output)), Some(again)) => {
                return self.finish_reevaluation(what_if, &again, *output);
            }
            (Ok(WhatIfOutput::Change(result)), _) => return self.finish_change(what_if, result),
            (output, _) => output,
        };
        let WhatIf { record, is_dry_run, policy, epoch, to, .. } = what_if;
        let policy: Arc<str> = policy.label.as_str().into();
        let spec = &record.details.spec;
        let fabric = self.engine.ledger().fabric().clone();
        let mut loads = WhatIfLoads::default();
        let (mut details, refusal) = match output {
            Ok(WhatIfOutput::Replicas(result, of)) => {
                loads = of;
                self.details(result, spec, &policy)
            }
            Ok(WhatIfOutput::Tasks(result, of)) => {
                loads = of;
                self.details(result, spec, &policy)
            }
            Ok(WhatIfOutput::Promise(Ok(mut agreement))) => match agreement.agreed.pop() {
                Some(grant) => {
                    let policy = policy.clone();
                    (Some(self.promise_details(spec, policy, epoch, grant, agreement.narrowest)), None)
                }
                None => (None, None),
            },
            Ok(WhatIfOutput::Promise(Err(rejected))) => match rejection_reason(rejected) {
                RejectionReason::Slo(reason) => (
                    Some(DecisionDetails { note: Some(reason), ..DecisionDetails::empty(spec.clone()) }),
                    None,
                ),
                RejectionReason::Field(field, reason) => {
                    return self.reply_to_what_if(to, Err(WhatIfError::Invalid(Some(field), reason)));
                }
            },
            Ok(WhatIfOutput::Policy(error)) => {
                let invalid = WhatIfError::Invalid(Some("policy".to_owned()), error.to_string());
                return self.reply_to_what_if(to, Err(invalid));
            }
            Ok(WhatIfOutput::Again(_) | WhatIfOutput::Change(_)) | Err(Panicked) => {
                return self.reply_to_what_if(to, Err(WhatIfError::Panicked));
            }
        };
        let mut details = details.take().unwrap_or_else(|| DecisionDetails::empty(spec.clone()));
        details.policy = policy;
        details.epoch = epoch;
        if is_dry_run {
            (details.mode, details.by_default) = (record.details.mode, record.details.by_default);
        } else if let Some(load) = loads.decided {
            // The decision stands beside the choice of the other policy.
            details.beside = Some(Beside {
                policy: record.details.policy.to_string(),
                hosts: record.details.hosts.clone(),
                refused: None,
                load: Some(LinkLoad::of(&fabric, &load)),
                decided: loads.chosen.map(|load| LinkLoad::of(&fabric, &load)),
            });
        }
        if details.note.is_none() && is_truncated(spec) {
            details.note = Some(
                "a list of hosts of the request had more than 32 names; such a list is not stored, so this decision \
                 ignores it"
                    .to_owned(),
            );
        }
        let (id, at, entries) = (record.id, self.now, Vec::new());
        let (caller, expires) =
            if is_dry_run { (record.caller.clone(), record.expires) } else { (None, None) };
        let record = DecisionRecord { id, at, caller, details, entries, expires, released: None };
        self.reply_to_what_if(to, Ok(WhatIfResult { record: Arc::new(record), refusal, is_stored: false }));
    }

    /// Details of a decision, or the refusal.
    fn details(
        &self,
        result: Result<Decision<Vec<HostId>>, Refusal>,
        spec: &PlacementSpec,
        policy: &Arc<str>,
    ) -> (Option<DecisionDetails>, Option<Refusal>) {
        let fabric = self.engine.ledger().fabric();
        match result {
            Ok(decision) => {
                let details = DecisionDetails::of(fabric, policy, spec.clone(), &decision.choice, &decision);
                (Some(details), None)
            }
            Err(refusal) => (None, Some(refusal)),
        }
    }
}

/// Estimated number of host and link lookups of a policy for a request, or the error in the policy.
fn cost_estimate(
    PolicySpec { name, settings, .. }: &PolicySpec,
    spec: &PlacementSpec,
    fabric: &Fabric,
) -> Result<u64, String> {
    let cost = match spec {
        PlacementSpec::Replicas(_) => replicas::REGISTRY.make(name, settings).map(|_| 0),
        PlacementSpec::Tasks(spec) => {
            // The estimate does not depend on the ids.
            tasks::REGISTRY.make(name, settings).map(|policy| {
                policy.cost_estimate(&spec.request(fabric, DecisionId::default(), JobId::NONE), fabric)
            })
        }
        PlacementSpec::Workload(_) => admit::REGISTRY.make(name, settings).map(|_| 0),
        PlacementSpec::Volumes(_) => limits::REGISTRY.make(name, settings).map(|_| 0),
    };
    cost.map_err(|error| error.to_string())
}

/// True if parts of the request that the policy would use were too large to store.
fn is_truncated(spec: &PlacementSpec) -> bool {
    match spec {
        PlacementSpec::Replicas(spec) => spec.truncated,
        PlacementSpec::Tasks(spec) => spec.truncated,
        PlacementSpec::Workload(_) | PlacementSpec::Volumes(_) => false,
    }
}
