//! Apps that take longer to place than others can be made to wait. They are decided off the desk ([`super::Study`]), one
//! after another, each on what is known when its turn comes: so it sees those before it, and they do not herd. In the ledger
//! they are once they are found, if their hosts can still take them, and are decided again if not.

use leeward_engine::{About, Ask, Input};
use leeward_placement::tasks::AppRequest;

use super::message::{Refused, Request};
use super::study::{Found, Lane, Question};
use super::{Desk, Replies};

/// Looks at hosts and links for which everybody else can wait: about a millisecond, a fifth of what a placement may take. For
/// what is decided elsewhere a copy of what is known of the links is made in the turn, about a millisecond too on a large cluster.
const IN_A_TURN: u64 = 20_000;
/// How often an app is decided because hosts that it was to be on were taken or went down meanwhile.
const TRIES: u32 = 8;
/// Bytes of memory that what waits may take together, about. One that waits alone may take more.
const WAITING: usize = 64 << 20;

/// An app that waits or is decided.
#[derive(Debug)]
pub(super) struct App {
    ask: u64,
    /// How often it was decided.
    tries: u32,
    bytes: usize,
}

impl<R> Desk<R> {
    /// Whether others must not wait for this to be decided.
    pub(super) fn takes_long(&self, request: &AppRequest) -> bool {
        self.engine.looks(request) > IN_A_TURN
    }

    /// Puts an app in its turn.
    pub(super) fn decide_later(&mut self, ask: u64, out: &mut Replies<R>) {
        let bytes = self.waiting.get(&ask).map_or(0, |waiting| waiting.placement.wish.bytes());
        if self.apps_bytes > 0 && self.apps_bytes + bytes > WAITING {
            return self.refuse(ask, &Refused::Busy, out);
        }
        self.apps_bytes += bytes;
        self.apps.wait(App { ask, tries: 0, bytes });
        self.decide_next_app(out);
    }

    pub(super) fn decide_next_app(&mut self, out: &mut Replies<R>) {
        while let Some(app) = self.apps.next() {
            let asked = self.waiting.get_mut(&app.ask);
            if asked.is_some_and(|asked| {
                asked.askers.retain(self.listens);
                asked.askers.is_empty()
            }) {
                // Nobody waits for it any more; who comes back with it is placed then.
                self.refuse(app.ask, &Refused::Busy, out);
            }
            match self.app(app.ask) {
                Some(request) => self.decide_app(app, request),
                None => self.apps_bytes -= app.bytes,
            }
        }
    }

    fn decide_app(&mut self, app: App, request: AppRequest) {
        let published = self.engine.publish(About { job: Some(request.job), without: None });
        let study = self.promises.study(Lane::Apps, Question::App(published, request));
        self.apps.begin(study, app);
    }

    /// The app of an ask that waits.
    fn app(&self, ask: u64) -> Option<AppRequest> {
        match &self.waiting.get(&ask)?.placement.request {
            Request::Tasks(request) => Some(request.clone()),
            Request::Replicas(_) | Request::Workload => None,
        }
    }

    /// Where an app goes was found.
    pub(super) fn app_found(&mut self, app: App, answer: Found, out: &mut Replies<R>) {
        let (ask, tries) = (app.ask, app.tries + 1);
        self.apps_bytes -= app.bytes;
        let Some(request) = self.app(ask) else { return };
        let decision = match answer {
            Found::App(Ok(decision)) => decision,
            Found::App(Err(refusal)) => return self.refuse(ask, &Refused::Placement(refusal), out),
            _ => return self.refuse(ask, &Refused::Failed, out),
        };
        if self.is_forsaken(ask) {
            return self.refuse(ask, &Refused::Busy, out);
        }
        self.tell(Input::Ask(ask, Ask::Found(Box::new((request, decision)))), out);
        let Some(request) = self.app(ask) else { return };
        // A host was taken or went down meanwhile.
        if tries == TRIES {
            return self.refuse(ask, &Refused::Outrun(TRIES), out);
        }
        self.apps_bytes += app.bytes;
        self.decide_app(App { tries, ..app }, request);
    }

    /// Whether nobody would know of what was decided, nor could ask for it again.
    pub(super) fn is_forsaken(&mut self, ask: u64) -> bool {
        self.waiting.get_mut(&ask).is_some_and(|waiting| {
            waiting.askers.retain(self.listens);
            waiting.askers.is_empty() && waiting.placement.caller.is_none()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use leeward_engine::{Engine, Policies};
    use leeward_fabric::input::Files;
    use leeward_fabric::{Cluster, HostId, Nanos};
    use leeward_ledger::{Ledger, LedgerSettings};
    use leeward_placement::tasks::{self, App as AppText};
    use leeward_placement::{Explain, Refusal, replicas};
    use serde_json::json;

    use super::*;
    use crate::desk::{
        Caller, Finding, HostReport, Labels, Limits, Message, Placement, Reply, Report, Study, TasksWish,
        Wish,
    };

    /// Each host has room for one task of 3 processors.
    const CLUSTER: &str = "{racks: 2, hosts_per_rack: 3, nic: 1Gbps, oversubscription: 1, cpus: 4}";

    /// A desk of which asker 0 hears nothing.
    fn desk() -> Desk<u32> {
        let Cluster { fabric, capacities } = Cluster::from_text("test", CLUSTER).expect("a right cluster");
        let ledger = Ledger::new(fabric, &capacities, LedgerSettings::default()).expect("defaults are right");
        let policies = Policies {
            replicas: replicas::REGISTRY.make("uniform", "").ok(),
            tasks: tasks::REGISTRY.make("leeward", "{tries: 2}").ok(),
            ..Policies::default()
        };
        let engine = Engine::new(ledger, policies, 7, Explain::Top(4));
        let labels = Labels { replicas: "uniform".into(), tasks: "leeward".into(), moves: None };
        Desk::new(engine, labels, Limits::default()).with_listening(|asker| *asker > 0)
    }

    /// Two tasks of 3 processors that send each other something.
    fn app(key: Option<&str>) -> Message {
        let app = json!({
            "tasks": [{ "name": "a", "cpus": 3 }, { "name": "b", "cpus": 3 }],
            "transfers": [{ "from": "a", "to": "b", "bytes": "1GB" }],
        });
        let app = AppText::from_text("app", &app.to_string(), &Files::default()).expect("a right app");
        let wish = Wish::Tasks(TasksWish::of(&app, Some("job".to_owned()), Vec::new()));
        let caller = key.map(|key| Caller::Key(key.into()));
        Message::Place(Placement { request: Request::Tasks(app.request), wish, caller, lasts: None })
    }

    fn ask(desk: &mut Desk<u32>, message: Message, asker: u32) -> Replies<u32> {
        let mut out = Replies::new();
        desk.handle(Nanos(1), message, asker, &mut out);
        out
    }

    /// The only one that is to be looked into.
    fn study(desk: &mut Desk<u32>) -> Study {
        let mut studies: Vec<Study> = desk.studies().collect();
        assert_eq!(studies.len(), 1, "one at a time");
        studies.remove(0)
    }

    fn found(desk: &mut Desk<u32>, finding: Finding) -> Replies<u32> {
        let mut out = Replies::new();
        desk.found(Nanos(2), finding, &mut out);
        out
    }

    fn hosts(replies: &Replies<u32>) -> Vec<String> {
        match replies.as_slice() {
            [(_, Ok(Reply::Placed { record, .. }))] => record.shown.hosts.clone(),
            other => panic!("not placed: {other:?}"),
        }
    }

    /// Where an app goes, as was found.
    fn chosen(finding: &Finding) -> Vec<HostId> {
        match &finding.answer {
            Found::App(Ok(decision)) => decision.choice.clone(),
            other => panic!("nowhere: {other:?}"),
        }
    }

    /// These hosts are emptied from now on, and others are open.
    fn drain(desk: &mut Desk<u32>, second: u64, hosts: &[HostId]) {
        let at = |second: u64| Nanos(second * Nanos::SECOND.0);
        let all = (0..6).map(HostId);
        let said = all.map(|host| HostReport {
            host,
            up: None,
            draining: Some(hosts.contains(&host)),
            stored: None,
        });
        let report =
            Report { window: (at(second), at(second + 1)), hosts: said.collect(), ..Report::default() };
        let mut out = Replies::new();
        desk.handle(at(second + 1), Message::Report(report), 9, &mut out);
        assert!(matches!(out.as_slice(), [(9, Ok(Reply::Reported { .. }))]), "{out:?}");
    }

    #[test]
    fn apps_that_are_asked_for_together_see_each_other_and_are_answered_one_after_another() {
        let mut desk = desk();
        for asker in 1..=4 {
            assert!(ask(&mut desk, app(None), asker).is_empty(), "it is not decided in the turn");
        }
        let mut taken = BTreeSet::new();
        for _ in 0..3 {
            let finding = study(&mut desk).find();
            taken.extend(hosts(&found(&mut desk, finding)));
        }
        assert_eq!(taken.len(), 6, "each task has a host of its own");
        let finding = study(&mut desk).find();
        let refused = found(&mut desk, finding);
        let full =
            |reply: &Result<Reply, Refused>| matches!(reply, Err(Refused::Placement(Refusal::NoHost { .. })));
        assert!(matches!(refused.as_slice(), [(4, reply)] if full(reply)), "{refused:?}");
        assert_eq!((desk.studies().count(), desk.apps_bytes), (0, 0));
    }

    #[test]
    fn where_a_host_is_closed_meanwhile_it_is_decided_again_and_not_for_ever() {
        let mut desk = desk();
        ask(&mut desk, app(None), 1);
        let finding = study(&mut desk).find();
        let first = chosen(&finding);
        drain(&mut desk, 1, &first);
        assert!(found(&mut desk, finding).is_empty());
        let finding = study(&mut desk).find();
        let second = chosen(&finding);
        assert!(second.iter().all(|host| !first.contains(host)));
        assert_eq!(hosts(&found(&mut desk, finding)).len(), 2);
        drain(&mut desk, 2, &[]);
        ask(&mut desk, app(None), 2);
        for round in 3..3 + u64::from(TRIES) {
            let finding = study(&mut desk).find();
            drain(&mut desk, round, &chosen(&finding));
            let replies = found(&mut desk, finding);
            let ends = round + 1 == 3 + u64::from(TRIES);
            assert_eq!(replies, if ends { vec![(2, Err(Refused::Outrun(TRIES)))] } else { vec![] });
        }
        assert_eq!((desk.studies().count(), desk.apps_bytes), (0, 0));
        let tasks: u32 = (0..6).map(|host| desk.engine.tasks_on(HostId(host))).sum();
        assert_eq!(tasks, 2, "those of the first");
    }

    #[test]
    fn who_asks_again_waits_for_the_same_and_all_are_told_when_it_fails_or_is_turned_away() {
        let mut desk = desk();
        ask(&mut desk, app(Some("one")), 1);
        assert!(ask(&mut desk, app(Some("one")), 2).is_empty());
        let finding = study(&mut desk).find();
        let told = found(&mut desk, finding);
        let repeated = |reply: &Result<Reply, Refused>| match reply {
            Ok(Reply::Placed { record, repeated }) => Some((record.id, *repeated)),
            _ => None,
        };
        let told: Vec<_> = told.iter().map(|(asker, reply)| (*asker, repeated(reply))).collect();
        assert_eq!(told, [(1, Some((0, false))), (2, Some((0, true)))]);
        ask(&mut desk, app(Some("two")), 3);
        ask(&mut desk, app(Some("three")), 4);
        let number = study(&mut desk).number;
        let told = found(&mut desk, Finding { number, answer: Found::Failed });
        assert_eq!(told, [(3, Err(Refused::Failed))]);
        ask(&mut desk, app(Some("two")), 5);
        let mut away = Replies::new();
        desk.turn_away(&mut away);
        assert_eq!(away, [(4, Err(Refused::Moved)), (5, Err(Refused::Moved))]);
        let finding = study(&mut desk).find();
        assert!(found(&mut desk, finding).is_empty());
        assert!(ask(&mut desk, app(Some("two")), 6).is_empty(), "who was turned away asks again");
        let finding = study(&mut desk).find();
        assert_eq!(hosts(&found(&mut desk, finding)).len(), 2);
    }

    #[test]
    fn what_nobody_waits_for_any_more_is_not_looked_into() {
        let mut desk = desk();
        ask(&mut desk, app(None), 1);
        ask(&mut desk, app(None), 0);
        ask(&mut desk, app(None), 2);
        let finding = study(&mut desk).find();
        let told: Vec<u32> = found(&mut desk, finding).iter().map(|(asker, _)| *asker).collect();
        assert_eq!(told, [1], "the first is placed, and the second given up");
        assert!(!desk.waiting.contains_key(&1) && desk.waiting.contains_key(&2));
        let finding = study(&mut desk).find();
        assert_eq!(hosts(&found(&mut desk, finding)).len(), 2);
        for asker in [3, 0, 4] {
            assert!(ask(&mut desk, Message::WhatIf(0, "random".to_owned()), asker).is_empty());
        }
        for asker in [3, 4] {
            let finding = study(&mut desk).find();
            let told = found(&mut desk, finding);
            assert!(matches!(told.as_slice(), [(to, Ok(Reply::WouldBe(..)))] if *to == asker), "{told:?}");
        }
        assert_eq!(desk.studies().count(), 0);
    }

    #[test]
    fn a_policy_that_would_search_for_very_long_is_not_looked_into() {
        let mut desk = desk();
        ask(&mut desk, app(None), 1);
        let finding = study(&mut desk).find();
        hosts(&found(&mut desk, finding));
        for policy in ["leeward:effort=10000", "choreo-exact:nodes=4000000000"] {
            let told = ask(&mut desk, Message::WhatIf(0, policy.to_owned()), 2);
            let refused = matches!(
                told.as_slice(),
                [(2, Err(Refused::Wrong(Some(field), why)))] if field == "policy" && why.contains(policy)
            );
            assert!(refused, "{told:?}");
        }
        for policy in ["leeward:effort=10", "choreo-exact"] {
            assert!(ask(&mut desk, Message::WhatIf(0, policy.to_owned()), 2).is_empty());
        }
    }
}
