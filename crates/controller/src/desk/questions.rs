//! Questions that commit nothing: how good are these hosts, and what would another policy do?

use std::sync::Arc;

use leeward_engine::About;
use leeward_fabric::{Fabric, HostId, Nanos};
use leeward_ledger::{Owner, OwnerKind};
use leeward_placement::{Decision, Refusal, replicas, tasks};
use leeward_registry::PolicySpec;
use leeward_slo::{admit, limits};

use super::jobs::job_of;
use super::message::{Rated, Refused, Reply, Score};
use super::promises::refused;
use super::record::{Record, Shown};
use super::study::{Found, Lane, Question};
use super::wish::Wish;
use super::{Desk, Replies};

/// So many questions about other policies are open at once, and so many about hosts.
const OPEN: usize = 4;
/// Hosts and their peers that are scored in a turn: about ten milliseconds. More are looked into.
const AT_ONCE: usize = 10_000;
/// Looks at hosts and links that another policy may take: about ten seconds. Others wait for as long.
const MOST_LOOKS: u64 = 1_000_000_000;
/// A number that no job has.
const NO_JOB: u64 = u64::MAX;

/// Somebody who asks what another policy would do.
pub(super) struct WhatIf<R> {
    record: Arc<Record>,
    policy: PolicySpec,
    epoch: u64,
    asker: R,
}

impl<R> WhatIf<R> {
    /// Who asks.
    pub fn into_asker(self) -> R {
        self.asker
    }
}

/// Somebody who asks how good many hosts are.
pub(super) struct Asking<R> {
    score: Score,
    asker: R,
}

impl<R> Asking<R> {
    /// Who asks.
    pub fn into_asker(self) -> R {
        self.asker
    }
}

impl<R> Desk<R> {
    pub(super) fn score(&mut self, mut score: Score, asker: R, out: &mut Replies<R>) {
        let pairs = score.hosts.len().saturating_mul(1 + score.peers.len());
        if pairs <= AT_ONCE {
            score.request.job = self.jobs.number(score.job.as_ref(), NO_JOB).unwrap_or(NO_JOB);
            let reply = self.score_now(&score);
            return out.push((asker, reply));
        }
        self.scores.retain(|asking| (self.listens)(&asking.asker));
        if self.scores.len() >= OPEN {
            return out.push((asker, Err(Refused::Busy)));
        }
        self.scores.wait(Asking { score, asker });
        self.score_next();
    }

    /// Has the next question about many hosts looked into, if none is; those who ask no more are passed over.
    pub(super) fn score_next(&mut self) {
        self.scores.retain(|asking| (self.listens)(&asking.asker));
        let Some(mut asking) = self.scores.next() else { return };
        let Score { request, job, .. } = &mut asking.score;
        // Its job may have begun, or ended, since it was asked.
        request.job = self.jobs.number(job.as_ref(), NO_JOB).unwrap_or(NO_JOB);
        let published = self.engine.publish(About { job: Some(asking.score.request.job), without: None });
        let study = self.promises.study(Lane::Scores, Question::Score(published, asking.score.clone()));
        self.scores.begin(study, asking);
    }

    fn score_now(&mut self, score: &Score) -> Result<Reply, Refused> {
        let ratings = self.engine.rate(&score.request, &score.peers, &score.hosts);
        let ratings = ratings.ok_or_else(|| Refused::NoScores(self.labels.tasks.clone()))?;
        let ledger = self.engine.ledger();
        let view = ledger.view(self.now, &mut self.scratch);
        let oldest =
            ratings.iter().filter_map(|rating| rating.limit).map(|link| view.measured_until(link)).min();
        let (policy, epoch) = (self.labels.tasks.clone(), ledger.epoch());
        let ratings = Rated::new(ledger.fabric(), ratings);
        Ok(Reply::Scores { ratings, policy, epoch, age: oldest.map(|oldest| self.now.since(oldest)) })
    }

    /// Tells who asked how good many hosts are.
    pub(super) fn tell_score(&mut self, asking: Asking<R>, answer: Found, out: &mut Replies<R>) {
        let policy = self.labels.tasks.clone();
        let reply = match answer {
            Found::Score(Some((ratings, epoch, age))) => Ok(Reply::Scores { ratings, policy, epoch, age }),
            Found::Score(None) => Err(Refused::NoScores(policy)),
            _ => Err(Refused::Failed),
        };
        out.push((asking.asker, reply));
    }

    /// Has it looked into what another policy would do with what a decision was asked.
    pub(super) fn what_if(&mut self, id: u64, policy: &str, asker: R, out: &mut Replies<R>) {
        match self.another(id, policy) {
            Err(refused) => out.push((asker, Err(refused))),
            Ok((record, policy)) => {
                self.what_ifs.wait(WhatIf { record, policy, epoch: 0, asker });
                self.look_into_next_what_if(out);
            }
        }
    }

    /// Has the next question about another policy looked into, if none is; those who ask no more are passed over.
    pub(super) fn look_into_next_what_if(&mut self, out: &mut Replies<R>) {
        self.what_ifs.retain(|what_if| (self.listens)(&what_if.asker));
        while let Some(mut what_if) = self.what_ifs.next() {
            // It may have ended since.
            if let Some(record) = self.records.get(what_if.record.id) {
                what_if.record = record.clone();
            }
            match self.question(&what_if) {
                Err(refused) => out.push((what_if.asker, Err(refused))),
                Ok(question) => {
                    what_if.epoch = self.epoch();
                    let study = self.promises.study(Lane::WhatIfs, question);
                    self.what_ifs.begin(study, what_if);
                }
            }
        }
    }

    /// The decision of a number, and the policy of its kind that is asked about, if there is room for one more question.
    fn another(&mut self, id: u64, policy: &str) -> Result<(Arc<Record>, PolicySpec), Refused> {
        let wrong = |message: String| Refused::Wrong(Some("policy".to_owned()), message);
        let left = || if id < self.next { Refused::NotInMemory(id) } else { Refused::NoDecision(id) };
        let record = self.records.get(id).cloned().ok_or_else(left)?;
        let spec: PolicySpec = policy.parse().map_err(wrong)?;
        let fabric = self.engine.ledger().fabric();
        let looks = looks(&spec, &record.shown.wish, fabric).map_err(wrong)?;
        // What the service does itself is not too much.
        let own = match &record.shown.wish {
            Wish::Tasks(wish) => self.engine.looks(&wish.request(fabric, 0, 0)),
            Wish::Replicas(_) | Wish::Workload(_) | Wish::Volumes(_) => 0,
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
        self.what_ifs.retain(|what_if| (self.listens)(&what_if.asker));
        if self.what_ifs.len() >= OPEN { Err(Refused::Busy) } else { Ok((record, spec)) }
    }

    fn question(&mut self, what_if: &WhatIf<R>) -> Result<Question, Refused> {
        let (record, policy) = (&what_if.record, what_if.policy.clone());
        let fabric = self.engine.ledger().fabric().clone();
        // What ended is not there to be taken out.
        let there = record.shown.hosts.iter().filter(|_| record.released.is_none());
        let hosts: Vec<HostId> = there.filter_map(|name| fabric.host(name)).collect();
        let id = record.id;
        Ok(match &record.shown.wish {
            Wish::Replicas(wish) => {
                let request = wish.request(&fabric, id);
                let request = request.map_err(|error| Refused::Wrong(None, error.message))?;
                let own = Owner { kind: OwnerKind::File, id: request.file };
                let published = self.engine.publish(About { job: None, without: Some(own) });
                Question::Replicas(published, policy, request, hosts)
            }
            wish @ Wish::Tasks(tasks) => {
                let job = self.jobs.number(job_of(wish), id).unwrap_or(NO_JOB);
                let request = tasks.request(&fabric, id, job);
                let own = Owner { kind: OwnerKind::App, id };
                let published = self.engine.publish(About { job: Some(job), without: Some(own) });
                Question::Tasks(published, policy, request, hosts)
            }
            wish @ (Wish::Workload(_) | Wish::Volumes(_)) => Question::Promise(self.asked(wish, id, policy)),
        })
    }

    /// Tells who asked what another policy would do.
    pub(super) fn tell_what_if(&mut self, what_if: WhatIf<R>, answer: Found, out: &mut Replies<R>) {
        let WhatIf { record, policy, epoch, asker } = what_if;
        let policy: Arc<str> = policy.label.as_str().into();
        let wish = &record.shown.wish;
        let (mut shown, refusal) = match answer {
            Found::Replicas(found) => self.would(found, |chain| chain.clone(), wish, &policy),
            Found::Tasks(found) => self.would(found, |hosts| hosts.clone(), wish, &policy),
            Found::Promise(Ok(mut agreement)) => match agreement.agreed.pop() {
                Some(agreed) => (Some(self.shown(wish, epoch, agreed, agreement.narrowest)), None),
                None => (None, None),
            },
            Found::Promise(Err(declined)) => match refused(declined) {
                Refused::Promise(why) => (Some(Shown { note: Some(why), ..nowhere(wish) }), None),
                wrong => return out.push((asker, Err(wrong))),
            },
            Found::Policy(error) => {
                let wrong = Refused::Wrong(Some("policy".to_owned()), error.to_string());
                return out.push((asker, Err(wrong)));
            }
            Found::App(_) | Found::Score(_) | Found::Failed => {
                return out.push((asker, Err(Refused::Failed)));
            }
        };
        let mut shown = shown.take().unwrap_or_else(|| nowhere(wish));
        shown.policy = policy;
        shown.epoch = epoch;
        if shown.note.is_none() && forgotten(wish) {
            shown.note = Some(
                "the request named more than 32 hosts to leave out or to keep to, which are not kept: it is asked without them"
                    .to_owned(),
            );
        }
        let (id, at) = (record.id, self.now);
        let would =
            Record { id, at, caller: None, shown, entries: Vec::new(), expires: None, released: None };
        out.push((asker, Ok(Reply::WouldBe(Arc::new(would), refusal))));
    }

    fn would<C>(
        &self,
        found: Result<Decision<C>, Refusal>,
        hosts: impl Fn(&C) -> Vec<HostId>,
        wish: &Wish,
        policy: &Arc<str>,
    ) -> (Option<Shown>, Option<Refusal>) {
        let fabric = self.engine.ledger().fabric();
        match found {
            Ok(decision) => {
                let hosts = hosts(&decision.choice);
                (Some(Shown::of(fabric, policy, wish.clone(), &hosts, &decision)), None)
            }
            Err(refusal) => (None, Some(refusal)),
        }
    }
}

/// How often a policy looks at a host or a link for what was asked, or what is wrong with the policy.
fn looks(
    PolicySpec { name, settings, .. }: &PolicySpec,
    wish: &Wish,
    fabric: &Fabric,
) -> Result<u64, String> {
    let made = match wish {
        Wish::Replicas(_) => replicas::REGISTRY.make(name, settings).map(|_| 0),
        Wish::Tasks(wish) => {
            // Whichever it is and whichever its job.
            tasks::REGISTRY
                .make(name, settings)
                .map(|policy| policy.looks(&wish.request(fabric, 0, 0), fabric))
        }
        Wish::Workload(_) => admit::REGISTRY.make(name, settings).map(|_| 0),
        Wish::Volumes(_) => limits::REGISTRY.make(name, settings).map(|_| 0),
    };
    made.map_err(|error| error.to_string())
}

/// A policy would do nothing.
fn nowhere(wish: &Wish) -> Shown {
    Shown {
        wish: wish.clone(),
        policy: "".into(),
        hosts: Vec::new(),
        limit: None,
        epoch: 0,
        oldest: None::<Nanos>,
        note: None,
        why: Vec::new(),
        promise: None,
    }
}

/// Whether something of a request was not kept that a policy would want to know.
fn forgotten(wish: &Wish) -> bool {
    match wish {
        Wish::Replicas(wish) => wish.forgotten,
        Wish::Tasks(wish) => wish.forgotten,
        Wish::Workload(_) | Wish::Volumes(_) => false,
    }
}
