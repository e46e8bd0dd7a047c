//! Queries without a commitment: scores of hosts, and what another policy would decide.

use std::sync::Arc;

use leeward_engine::SnapshotScope;
use leeward_fabric::{Fabric, HostId, Nanos};
use leeward_ledger::{Epoch, Owner, OwnerKind};
use leeward_placement::{Decision, JobId, Refusal, replicas, tasks};
use leeward_records::{DecisionDetails, DecisionId, DecisionRecord, PlacementSpec};
use leeward_registry::PolicySpec;
use leeward_slo::{admit, limits};

use super::admission::{Declination, reason};
use super::completion::{Completion, ScoreTo, WhatIfTo};
use super::error::{CallError, ScoreError, WhatIfError};
use super::job::{JobKind, Panicked, ScoresFound, WhatIfJob, WhatIfOutput};
use super::job_names::job_of;
use super::reply::{Rated, Scores, WhatIfResult};
use super::request::Score;
use super::{Addresses, Coordinator};

/// Limit on open what-if queries, and on open score queries.
const OPEN: usize = 4;
/// Number of pairs of hosts and peers to score inside the actor's loop: about ten milliseconds. Larger queries run as
/// jobs.
const AT_ONCE: usize = 10_000;
/// Limit on host and link look-ups of a what-if query: about ten seconds. Later queries wait for this time.
const MOST_LOOKS: u64 = 1_000_000_000;

/// A what-if query that waits or runs.
pub(super) struct WhatIf<A: Addresses> {
    record: Arc<DecisionRecord>,
    policy: PolicySpec,
    epoch: Epoch,
    /// Address for the reply.
    pub to: WhatIfTo<A>,
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
        if pairs <= AT_ONCE {
            score.request.job = self.job_names.named(score.job.as_ref()).unwrap_or(JobId::NONE);
            let scores = self.score_now(&score);
            return self.reply_to_score(to, scores);
        }
        self.scores.retain(|asking| A::is_open(&asking.to));
        if self.scores.len() >= OPEN {
            return self.reply_to_score(to, Err(ScoreError::Busy));
        }
        self.scores.wait(ScoreQuery { score, to });
        self.score_next();
    }

    fn reply_to_score(&mut self, to: ScoreTo<A>, scores: Result<Scores, ScoreError>) {
        self.completions.push(Completion::Score(to, scores.map_err(CallError::Failed)));
    }

    fn reply_to_what_if(&mut self, to: WhatIfTo<A>, result: Result<WhatIfResult, WhatIfError>) {
        self.completions.push(Completion::WhatIf(to, result.map_err(CallError::Failed)));
    }

    /// Starts the next score query of many hosts unless one runs. Queries without a caller are dropped.
    pub(super) fn score_next(&mut self) {
        self.scores.retain(|asking| A::is_open(&asking.to));
        let Some(mut asking) = self.scores.next() else { return };
        let Score { request, job, .. } = &mut asking.score;
        // The job may have started or ended after the query was sent.
        request.job = self.job_names.named(job.as_ref()).unwrap_or(JobId::NONE);
        let published =
            self.engine.snapshot(SnapshotScope { job: Some(asking.score.request.job), without: None });
        let job = self.promises.job(JobKind::Score(published, asking.score.clone()));
        self.scores.begin(job, asking);
    }

    fn score_now(&mut self, score: &Score) -> Result<Scores, ScoreError> {
        let ratings = self.engine.score_hosts(&score.request, &score.peers, &score.hosts);
        let ratings = ratings.ok_or_else(|| ScoreError::Unsupported(self.labels.tasks.clone()))?;
        let ledger = self.engine.ledger();
        let view = ledger.view(self.now, &mut self.scratch);
        let oldest =
            ratings.iter().filter_map(|rating| rating.limit).map(|link| view.measured_until(link)).min();
        let (policy, epoch) = (self.labels.tasks.clone(), ledger.epoch());
        let ratings = Rated::new(ledger.fabric(), ratings);
        Ok(Scores { ratings, policy, epoch, age: oldest.map(|oldest| self.now.since(oldest)) })
    }

    /// Replies to a score query.
    pub(super) fn tell_score(&mut self, asking: ScoreQuery<A>, found: Result<Option<ScoresFound>, Panicked>) {
        let policy = self.labels.tasks.clone();
        let reply = match found {
            Ok(Some(ScoresFound { ratings, epoch, age })) => Ok(Scores { ratings, policy, epoch, age }),
            Ok(None) => Err(ScoreError::Unsupported(policy)),
            Err(Panicked) => Err(ScoreError::Panicked),
        };
        self.reply_to_score(asking.to, reply);
    }

    /// Decides a decision's request again under another policy, with settings after colons. The reply is a completion.
    /// The operation commits nothing.
    pub fn what_if(&mut self, now: Nanos, id: DecisionId, policy: &str, to: WhatIfTo<A>) {
        self.wake(now);
        match self.another(id, policy) {
            Err(error) => self.reply_to_what_if(to, Err(error)),
            Ok((record, policy)) => {
                self.what_ifs.wait(WhatIf { record, policy, epoch: Epoch::default(), to });
                self.look_into_next_what_if();
            }
        }
    }

    /// Starts the next what-if query unless one runs. Queries without a caller are dropped.
    pub(super) fn look_into_next_what_if(&mut self) {
        self.what_ifs.retain(|what_if| A::is_open(&what_if.to));
        while let Some(mut what_if) = self.what_ifs.next() {
            // The decision may have ended meanwhile.
            if let Some(record) = self.records.get(what_if.record.id) {
                what_if.record = record.clone();
            }
            match self.kind(&what_if) {
                Err(error) => self.reply_to_what_if(what_if.to, Err(error)),
                Ok(kind) => {
                    what_if.epoch = self.epoch();
                    let job = self.promises.job(JobKind::WhatIf(kind));
                    self.what_ifs.begin(job, what_if);
                }
            }
        }
    }

    /// The decision of an id and the parsed policy, if there is room for another query.
    fn another(
        &mut self,
        id: DecisionId,
        policy: &str,
    ) -> Result<(Arc<DecisionRecord>, PolicySpec), WhatIfError> {
        let wrong = |message: String| WhatIfError::Invalid(Some("policy".to_owned()), message);
        let left =
            || if self.is_evicted(id) { WhatIfError::NotInMemory(id) } else { WhatIfError::NotFound(id) };
        let record = self.records.get(id).cloned().ok_or_else(left)?;
        let spec: PolicySpec = policy.parse().map_err(wrong)?;
        let fabric = self.engine.ledger().fabric();
        let looks = cost_estimate(&spec, &record.details.spec, fabric).map_err(wrong)?;
        // The cost of the service's own policy is always allowed.
        let own = match &record.details.spec {
            PlacementSpec::Tasks(spec) => {
                self.engine.cost_estimate(&spec.request(fabric, DecisionId::default(), JobId::NONE))
            }
            PlacementSpec::Replicas(_) | PlacementSpec::Workload(_) | PlacementSpec::Volumes(_) => 0,
        };
        let most = MOST_LOOKS.max(own);
        if looks > most {
            let message = format!(
                "`{}` would look at hosts and links about {looks} times, and {most} is the most here: set `effort` or \
                 `nodes` lower, or ask `leeward place tasks`",
                spec.label
            );
            return Err(wrong(message));
        }
        self.what_ifs.retain(|what_if| A::is_open(&what_if.to));
        if self.what_ifs.len() >= OPEN { Err(WhatIfError::Busy) } else { Ok((record, spec)) }
    }

    fn kind(&mut self, what_if: &WhatIf<A>) -> Result<WhatIfJob, WhatIfError> {
        let (record, policy) = (&what_if.record, what_if.policy.clone());
        let fabric = self.engine.ledger().fabric().clone();
        // An ended decision has no load to remove.
        let there = record.details.hosts.iter().filter(|_| record.released.is_none());
        let hosts: Vec<HostId> = there.filter_map(|name| fabric.host(name)).collect();
        let id = record.id;
        Ok(match &record.details.spec {
            PlacementSpec::Replicas(spec) => {
                let request = spec.request(&fabric, id.0);
                let request = request.map_err(|error| WhatIfError::Invalid(None, error.message))?;
                let own = Owner { kind: OwnerKind::File, id: request.file };
                let published = self.engine.snapshot(SnapshotScope { job: None, without: Some(own) });
                WhatIfJob::Replicas(published, policy, request, hosts)
            }
            spec @ PlacementSpec::Tasks(tasks) => {
                let job = self.job_names.number(job_of(spec), id).unwrap_or(JobId::NONE);
                let request = tasks.request(&fabric, id, job);
                let own = Owner { kind: OwnerKind::App, id: id.0 };
                let published = self.engine.snapshot(SnapshotScope { job: Some(job), without: Some(own) });
                WhatIfJob::Tasks(published, policy, request, hosts)
            }
            spec @ (PlacementSpec::Workload(_) | PlacementSpec::Volumes(_)) => {
                WhatIfJob::Promise(self.admission_input(spec, id, policy))
            }
        })
    }

    /// Replies to a what-if query.
    pub(super) fn tell_what_if(&mut self, what_if: WhatIf<A>, found: Result<WhatIfOutput, Panicked>) {
        let WhatIf { record, policy, epoch, to } = what_if;
        let policy: Arc<str> = policy.label.as_str().into();
        let spec = &record.details.spec;
        let (mut details, refusal) = match found {
            Ok(WhatIfOutput::Replicas(found)) => self.would(found, |chain| chain.clone(), spec, &policy),
            Ok(WhatIfOutput::Tasks(found)) => self.would(found, |hosts| hosts.clone(), spec, &policy),
            Ok(WhatIfOutput::Promise(Ok(mut agreement))) => match agreement.agreed.pop() {
                Some(agreed) => (Some(self.promise_details(spec, epoch, agreed, agreement.narrowest)), None),
                None => (None, None),
            },
            Ok(WhatIfOutput::Promise(Err(declined))) => match reason(declined) {
                Declination::Slo(why) => {
                    (Some(DecisionDetails { note: Some(why), ..DecisionDetails::empty(spec.clone()) }), None)
                }
                Declination::Field(field, why) => {
                    return self.reply_to_what_if(to, Err(WhatIfError::Invalid(Some(field), why)));
                }
            },
            Ok(WhatIfOutput::Policy(error)) => {
                let invalid = WhatIfError::Invalid(Some("policy".to_owned()), error.to_string());
                return self.reply_to_what_if(to, Err(invalid));
            }
            Err(Panicked) => {
                return self.reply_to_what_if(to, Err(WhatIfError::Panicked));
            }
        };
        let mut details = details.take().unwrap_or_else(|| DecisionDetails::empty(spec.clone()));
        details.policy = policy;
        details.epoch = epoch;
        if details.note.is_none() && is_truncated(spec) {
            details.note = Some(
                "the request named more than 32 hosts to leave out or to keep to, which are not kept: it is asked without them"
                    .to_owned(),
            );
        }
        let (id, at) = (record.id, self.now);
        let would = DecisionRecord {
            id,
            at,
            caller: None,
            details,
            entries: Vec::new(),
            expires: None,
            released: None,
        };
        self.reply_to_what_if(to, Ok(WhatIfResult { record: Arc::new(would), refusal }));
    }

    fn would<C>(
        &self,
        found: Result<Decision<C>, Refusal>,
        hosts: impl Fn(&C) -> Vec<HostId>,
        spec: &PlacementSpec,
        policy: &Arc<str>,
    ) -> (Option<DecisionDetails>, Option<Refusal>) {
        let fabric = self.engine.ledger().fabric();
        match found {
            Ok(decision) => {
                let hosts = hosts(&decision.choice);
                (Some(DecisionDetails::of(fabric, policy, spec.clone(), &hosts, &decision)), None)
            }
            Err(refusal) => (None, Some(refusal)),
        }
    }
}

/// Estimated number of host and link look-ups of a policy for a request, or the error in the policy.
fn cost_estimate(
    PolicySpec { name, settings, .. }: &PolicySpec,
    spec: &PlacementSpec,
    fabric: &Fabric,
) -> Result<u64, String> {
    let made = match spec {
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
    made.map_err(|error| error.to_string())
}

/// True if parts of the request that the policy would use were too large to store.
fn is_truncated(spec: &PlacementSpec) -> bool {
    match spec {
        PlacementSpec::Replicas(spec) => spec.forgotten,
        PlacementSpec::Tasks(spec) => spec.forgotten,
        PlacementSpec::Workload(_) | PlacementSpec::Volumes(_) => false,
    }
}
