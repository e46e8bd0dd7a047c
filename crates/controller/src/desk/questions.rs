//! Questions that commit nothing: how good are these hosts, and what would another policy do?

use std::sync::Arc;

use leeward_fabric::{HostId, Nanos};
use leeward_placement::volumes::{admit, limits};
use leeward_placement::{Decision, PolicySpec, Refusal, replicas, tasks};

use super::message::{Rated, Refused, Reply, Score};
use super::promises::refused;
use super::record::{Record, Shown};
use super::study::{Finding, Found, Lane, Question};
use super::wish::Wish;
use super::{Desk, Replies};

/// So many questions about other policies are open at once, and so many about hosts; each may keep a copy of the ledger.
const OPEN: usize = 4;
/// Hosts and their peers that are scored in a turn: about ten milliseconds. More are looked into.
const AT_ONCE: usize = 10_000;

/// Somebody who asks what another policy would do.
pub(super) struct WhatIf<R> {
    record: Arc<Record>,
    /// What the other policy is called.
    policy: Arc<str>,
    epoch: u64,
    asker: R,
}

impl<R> WhatIf<R> {
    /// Who asks.
    pub fn into_asker(self) -> R {
        self.asker
    }
}

impl<R> Desk<R> {
    pub(super) fn score(&mut self, mut score: Score, asker: R, out: &mut Replies<R>) {
        let job = score.job.as_ref().and_then(|name| self.jobs.get(name));
        // A number that no job has.
        score.request.job = job.copied().unwrap_or(u64::MAX);
        let pairs = score.hosts.len().saturating_mul(1 + score.peers.len());
        if pairs <= AT_ONCE {
            let reply = self.score_now(&score);
            return out.push((asker, reply));
        }
        if self.scores.len() >= OPEN {
            return out.push((asker, Err(Refused::Busy)));
        }
        let question = Question::Score(self.engine.publish(), score);
        let number = self.promises.study(Lane::Scores, question);
        self.scores.insert(number, asker);
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

    /// Tells who asked something that commits nothing.
    pub(super) fn tell_found(&mut self, finding: Finding, out: &mut Replies<R>) {
        if let Some(asker) = self.scores.remove(&finding.number) {
            let policy = self.labels.tasks.clone();
            let reply = match finding.answer {
                Found::Score(Some((ratings, epoch, age))) => {
                    Ok(Reply::Scores { ratings, policy, epoch, age })
                }
                Found::Score(None) => Err(Refused::NoScores(policy)),
                _ => Err(Refused::Failed),
            };
            out.push((asker, reply));
        } else if let Some(what_if) = self.what_ifs.remove(&finding.number) {
            self.tell_what_if(what_if, finding.answer, out);
        }
    }

    /// Has it looked into what another policy would do with what a decision was asked.
    pub(super) fn what_if(&mut self, id: u64, policy: &str, asker: R, out: &mut Replies<R>) {
        match self.question(id, policy) {
            Err(refused) => out.push((asker, Err(refused))),
            Ok((record, spec, question)) => {
                let number = self.promises.study(Lane::WhatIfs, question);
                let (policy, epoch) = (spec.label.as_str().into(), self.epoch());
                self.what_ifs.insert(number, WhatIf { record, policy, epoch, asker });
            }
        }
    }

    fn question(&mut self, id: u64, policy: &str) -> Result<(Arc<Record>, PolicySpec, Question), Refused> {
        let wrong = |message: String| Refused::Wrong(Some("policy".to_owned()), message);
        let record = self.records.get(id).cloned().ok_or(Refused::NoDecision(id))?;
        let spec: PolicySpec = policy.parse().map_err(wrong)?;
        let (name, settings) = (&spec.name, &spec.settings);
        match record.shown.wish {
            Wish::Replicas(_) => replicas::make(name, settings).map(drop).map_err(|error| error.to_string()),
            Wish::Tasks(_) => tasks::make(name, settings).map(drop).map_err(|error| error.to_string()),
            Wish::Workload(_) => admit::make(name, settings).map(drop).map_err(|error| error.to_string()),
            Wish::Volumes(_) => limits::make(name, settings).map(drop).map_err(|error| error.to_string()),
        }
        .map_err(wrong)?;
        if self.what_ifs.len() >= OPEN {
            return Err(Refused::Busy);
        }
        let fabric = self.engine.ledger().fabric().clone();
        // What ended is not there to be taken out.
        let there = record.shown.hosts.iter().filter(|_| record.released.is_none());
        let hosts: Vec<HostId> = there.filter_map(|name| fabric.host(name)).collect();
        let question = match &record.shown.wish {
            Wish::Replicas(wish) => {
                let request = wish.request(&fabric, id);
                let request = request.map_err(|error| Refused::Wrong(None, error.message))?;
                Question::Replicas(self.engine.publish(), spec.clone(), request, hosts)
            }
            wish @ Wish::Tasks(tasks) => {
                let job = self.job_of(wish, id);
                let request = tasks.request(&fabric, id, job);
                Question::Tasks(self.engine.publish(), spec.clone(), request, hosts)
            }
            wish @ (Wish::Workload(_) | Wish::Volumes(_)) => {
                let wish = wish.clone();
                Question::Promise(self.asked(&wish, id, spec.clone()))
            }
        };
        Ok((record, spec, question))
    }

    fn tell_what_if(&mut self, what_if: WhatIf<R>, answer: Found, out: &mut Replies<R>) {
        let WhatIf { record, policy, epoch, asker } = what_if;
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
            Found::Score(_) | Found::Failed => return out.push((asker, Err(Refused::Failed))),
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
