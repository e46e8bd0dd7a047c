//! Apps whose placement takes longer than other operations may wait. Their decisions are jobs outside the coordinator
//! ([`super::Job`]), one after another, each with the state at its start. So each app sees the earlier ones, and apps
//! do not herd. The ledger commits a result if its hosts can still take the app; otherwise the app is decided again.

use leeward_engine::SnapshotScope;
use leeward_placement::tasks::{AppRequest, Assignment};
use leeward_placement::{Decision, Refusal};
use leeward_records::{DecisionId, PlacementSpec};

use super::error::PlaceError;
use super::job::{JobKind, Panicked};
use super::job_names::job_of;
use super::{Addresses, Coordinator};

/// Limit on host and link look-ups of a decision inside the actor's loop: about a millisecond, a fifth of a placement's
/// budget. A job needs a copy of the links' state, which also takes the loop about a millisecond on a large cluster.
const IN_A_TURN: u64 = 20_000;
/// Largest number of decisions for one app, if hosts are taken or go down meanwhile.
const TRIES: u32 = 8;
/// Approximate limit on the total size of waiting apps, in bytes. A single app may exceed it.
const WAITING: usize = 64 << 20;

/// An app that waits or is being decided.
#[derive(Debug)]
pub(super) struct App {
    ask: DecisionId,
    /// Number of past decisions.
    tries: u32,
    bytes: usize,
}

impl<A: Addresses> Coordinator<A> {
    /// True if the decision takes too long for the actor's loop.
    pub(super) fn takes_long(&self, request: &AppRequest) -> bool {
        self.engine.cost_estimate(request) > IN_A_TURN
    }

    /// Queues an app.
    pub(super) fn decide_later(&mut self, ask: DecisionId) {
        let bytes = self.waiting.get(&ask).map_or(0, |waiting| waiting.placement.spec.bytes());
        if self.apps_bytes > 0 && self.apps_bytes + bytes > WAITING {
            return self.refuse(ask, &PlaceError::Busy);
        }
        self.apps_bytes += bytes;
        self.apps.wait(App { ask, tries: 0, bytes });
        self.decide_next_app();
    }

    pub(super) fn decide_next_app(&mut self) {
        while let Some(app) = self.apps.next() {
            let asked = self.waiting.get_mut(&app.ask);
            if asked.is_some_and(|asked| {
                asked.callers.retain(A::is_open);
                asked.callers.is_empty()
            }) {
                // No caller waits any more. A retry places the app.
                self.refuse(app.ask, &PlaceError::Busy);
            }
            match self.app(app.ask) {
                Some(request) => self.decide_app(app, request),
                None => self.apps_bytes -= app.bytes,
            }
        }
    }

    fn decide_app(&mut self, app: App, request: AppRequest) {
        let published = self.engine.snapshot(SnapshotScope { job: Some(request.job), without: None });
        let job = self.promises.job(JobKind::App(published, request));
        self.apps.begin(job, app);
    }

    /// Request of a waiting app.
    pub(super) fn app(&self, ask: DecisionId) -> Option<AppRequest> {
        let spec = &self.waiting.get(&ask)?.placement.spec;
        let PlacementSpec::Tasks(tasks) = spec else { return None };
        Some(tasks.request(self.fabric(), ask, self.job_names.number(job_of(spec), ask)?))
    }

    /// Handles the result of an app's job.
    pub(super) fn app_found(
        &mut self,
        app: App,
        found: Result<Result<Decision<Assignment>, Refusal>, Panicked>,
    ) {
        let (ask, tries) = (app.ask, app.tries + 1);
        self.apps_bytes -= app.bytes;
        let Some(request) = self.app(ask) else { return };
        let decision = match found {
            Ok(Ok(decision)) => decision,
            Ok(Err(refusal)) => return self.refuse(ask, &PlaceError::Rejected(refusal)),
            Err(Panicked) => return self.refuse(ask, &PlaceError::Panicked),
        };
        if self.is_forsaken(ask) {
            return self.refuse(ask, &PlaceError::Busy);
        }
        let placed = self.engine.commit_decision(self.now, &request, decision, &mut self.outputs);
        if let Some(placed) = placed {
            self.finish_placement(ask, Ok(placed));
        }
        self.carry_out();
        let Some(request) = self.app(ask) else { return };
        // A host was taken or went down meanwhile.
        if tries == TRIES {
            return self.refuse(ask, &PlaceError::HostsTaken(TRIES));
        }
        self.apps_bytes += app.bytes;
        self.decide_app(App { tries, ..app }, request);
    }

    /// True if no caller waits and no key or sequence allows a retry.
    pub(super) fn is_forsaken(&mut self, ask: DecisionId) -> bool {
        self.waiting.get_mut(&ask).is_some_and(|waiting| {
            waiting.callers.retain(A::is_open);
            waiting.callers.is_empty() && waiting.placement.caller.is_none()
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
    use crate::core::job::JobOutput;
    use crate::core::{
        Answer, CallError, Completion, DecisionLookup, HostReport, Job, JobResult, Limits, Placed, Placement,
        PolicyLabels, Report, Unavailable, WhatIfError,
    };
    use leeward_records::{Caller, PlacementSpec, TasksSpec};

    /// Each host has room for one task of 3 processors.
    const CLUSTER: &str = "{racks: 2, hosts_per_rack: 3, nic: 1Gbps, oversubscription: 1, cpus: 4}";

    /// Numbers as reply addresses; 0 has disconnected.
    enum Numbers {}

    impl Addresses for Numbers {
        type To<T> = u32;

        fn is_open<T>(to: &u32) -> bool {
            *to > 0
        }
    }

    type Replies = Vec<(u32, Answer<DecisionLookup<Placed>, PlaceError>)>;

    fn replies(coordinator: &mut Coordinator<Numbers>) -> Replies {
        let reply = |completion| match completion {
            Completion::Place(to, answer) => (to, answer),
            Completion::WhatIf(..) | Completion::Score(..) => panic!("not a placement"),
        };
        coordinator.completions().map(reply).collect()
    }

    fn refused(to: u32, error: PlaceError) -> (u32, Answer<DecisionLookup<Placed>, PlaceError>) {
        (to, Err(CallError::Failed(error)))
    }

    fn coordinator() -> Coordinator<Numbers> {
        let Cluster { fabric, capacities } = Cluster::from_text("test", CLUSTER).expect("a right cluster");
        let ledger = Ledger::new(fabric, &capacities, LedgerSettings::default()).expect("defaults are right");
        let policies = Policies {
            replicas: replicas::REGISTRY.make("uniform", "").ok(),
            tasks: tasks::REGISTRY.make("leeward", "{tries: 2}").ok(),
            ..Policies::default()
        };
        let engine = Engine::new(ledger, policies, 7, Explain::Top(4));
        let labels = PolicyLabels { replicas: "uniform".into(), tasks: "leeward".into(), moves: None };
        Coordinator::new(engine, labels, Limits::default())
    }

    /// Two tasks of 3 processors with a transfer between them.
    fn app(key: Option<&str>) -> Placement {
        let app = json!({
            "tasks": [{ "name": "a", "cpus": 3 }, { "name": "b", "cpus": 3 }],
            "transfers": [{ "from": "a", "to": "b", "bytes": "1GB" }],
        });
        let app = AppText::from_text("app", &app.to_string(), &Files::default()).expect("a right app");
        let spec = PlacementSpec::Tasks(TasksSpec::of(&app, Some("job".to_owned()), Vec::new()));
        let caller = key.map(|key| Caller::Key(key.into()));
        Placement { spec, caller, lasts: None }
    }

    fn ask(coordinator: &mut Coordinator<Numbers>, placement: Placement, to: u32) -> Replies {
        coordinator.place(Nanos(1), placement, to);
        replies(coordinator)
    }

    /// The only open job.
    fn job(coordinator: &mut Coordinator<Numbers>) -> Job {
        let mut jobs: Vec<Job> = coordinator.jobs().collect();
        assert_eq!(jobs.len(), 1, "one at a time");
        jobs.remove(0)
    }

    fn finish(coordinator: &mut Coordinator<Numbers>, result: JobResult) -> Replies {
        coordinator.finish_job(Nanos(2), result);
        replies(coordinator)
    }

    fn hosts(replies: &Replies) -> Vec<String> {
        match replies.as_slice() {
            [(_, Ok(DecisionLookup::InMemory(Placed { record, .. })))] => record.details.hosts.clone(),
            other => panic!("not placed: {other:?}"),
        }
    }

    /// Hosts that a job chose for an app.
    fn chosen(result: &JobResult) -> Vec<HostId> {
        match &result.answer {
            JobOutput::App(Ok(Ok(decision))) => decision.choice.clone(),
            other => panic!("nowhere: {other:?}"),
        }
    }

    /// Reports these hosts as draining and all others as not draining.
    fn drain(coordinator: &mut Coordinator<Numbers>, second: u64, hosts: &[HostId]) {
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
        assert!(coordinator.report(at(second + 1), report).is_ok());
        assert_eq!(replies(coordinator), []);
    }

    #[test]
    fn concurrent_apps_are_placed_in_turn_and_see_each_other() {
        let mut coordinator = coordinator();
        for asker in 1..=4 {
            assert!(ask(&mut coordinator, app(None), asker).is_empty(), "the decision is asynchronous");
        }
        let mut taken = BTreeSet::new();
        for _ in 0..3 {
            let result = job(&mut coordinator).find();
            taken.extend(hosts(&finish(&mut coordinator, result)));
        }
        assert_eq!(taken.len(), 6, "each task has a host of its own");
        let result = job(&mut coordinator).find();
        let refused = finish(&mut coordinator, result);
        let full = |error: &CallError<PlaceError>| {
            matches!(error, CallError::Failed(PlaceError::Rejected(Refusal::NoHost { .. })))
        };
        assert!(matches!(refused.as_slice(), [(4, Err(error))] if full(error)), "{refused:?}");
        assert_eq!((coordinator.jobs().count(), coordinator.apps_bytes), (0, 0));
    }

    #[test]
    fn a_host_that_closes_during_a_search_causes_a_bounded_retry() {
        let mut coordinator = coordinator();
        ask(&mut coordinator, app(None), 1);
        let result = job(&mut coordinator).find();
        let first = chosen(&result);
        drain(&mut coordinator, 1, &first);
        assert!(finish(&mut coordinator, result).is_empty());
        let result = job(&mut coordinator).find();
        let second = chosen(&result);
        assert!(second.iter().all(|host| !first.contains(host)));
        assert_eq!(hosts(&finish(&mut coordinator, result)).len(), 2);
        drain(&mut coordinator, 2, &[]);
        ask(&mut coordinator, app(None), 2);
        for round in 3..3 + u64::from(TRIES) {
            let result = job(&mut coordinator).find();
            drain(&mut coordinator, round, &chosen(&result));
            let replies = finish(&mut coordinator, result);
            let ends = round + 1 == 3 + u64::from(TRIES);
            assert_eq!(replies, if ends { vec![refused(2, PlaceError::HostsTaken(TRIES))] } else { vec![] });
        }
        assert_eq!((coordinator.jobs().count(), coordinator.apps_bytes), (0, 0));
        let tasks: u32 = (0..6).map(|host| coordinator.engine.tasks_on(HostId(host))).sum();
        assert_eq!(tasks, 2, "those of the first");
    }

    #[test]
    fn repeated_requests_share_one_search_and_its_result_or_error() {
        let mut coordinator = coordinator();
        ask(&mut coordinator, app(Some("one")), 1);
        assert!(ask(&mut coordinator, app(Some("one")), 2).is_empty());
        let result = job(&mut coordinator).find();
        let told = finish(&mut coordinator, result);
        let repeated = |reply: &Answer<DecisionLookup<Placed>, PlaceError>| match reply {
            Ok(DecisionLookup::InMemory(Placed { record, repeated })) => Some((record.id, *repeated)),
            _ => None,
        };
        let told: Vec<_> = told.iter().map(|(asker, reply)| (*asker, repeated(reply))).collect();
        assert_eq!(told, [(1, Some((DecisionId(0), false))), (2, Some((DecisionId(0), true)))]);
        ask(&mut coordinator, app(Some("two")), 3);
        ask(&mut coordinator, app(Some("three")), 4);
        let number = job(&mut coordinator).number;
        let told = finish(&mut coordinator, JobResult { number, answer: JobOutput::App(Err(Panicked)) });
        assert_eq!(told, [refused(3, PlaceError::Panicked)]);
        ask(&mut coordinator, app(Some("two")), 5);
        assert!(coordinator.turn_away());
        let changed = || Err(CallError::Unavailable(Unavailable::ClusterChanged));
        assert_eq!(replies(&mut coordinator), [(4, changed()), (5, changed())]);
        let result = job(&mut coordinator).find();
        assert!(finish(&mut coordinator, result).is_empty());
        assert!(ask(&mut coordinator, app(Some("two")), 6).is_empty(), "a retry after a rejection");
        let result = job(&mut coordinator).find();
        assert_eq!(hosts(&finish(&mut coordinator, result)).len(), 2);
    }

    #[test]
    fn abandoned_requests_are_not_searched() {
        let mut coordinator = coordinator();
        ask(&mut coordinator, app(None), 1);
        ask(&mut coordinator, app(None), 0);
        ask(&mut coordinator, app(None), 2);
        let result = job(&mut coordinator).find();
        let told: Vec<u32> = finish(&mut coordinator, result).iter().map(|(asker, _)| *asker).collect();
        assert_eq!(told, [1], "the first is placed, and the second given up");
        assert!(
            !coordinator.waiting.contains_key(&DecisionId(1))
                && coordinator.waiting.contains_key(&DecisionId(2))
        );
        let result = job(&mut coordinator).find();
        assert_eq!(hosts(&finish(&mut coordinator, result)).len(), 2);
        for asker in [3, 0, 4] {
            coordinator.what_if(Nanos(1), DecisionId(0), "random", asker);
            assert_eq!(coordinator.completions().count(), 0);
        }
        for asker in [3, 4] {
            let result = job(&mut coordinator).find();
            coordinator.finish_job(Nanos(2), result);
            let told: Vec<_> = coordinator.completions().collect();
            assert!(matches!(told.as_slice(), [Completion::WhatIf(to, Ok(_))] if *to == asker));
        }
        assert_eq!(coordinator.jobs().count(), 0);
    }

    #[test]
    fn a_policy_with_a_very_long_search_is_rejected() {
        let mut coordinator = coordinator();
        ask(&mut coordinator, app(None), 1);
        let result = job(&mut coordinator).find();
        hosts(&finish(&mut coordinator, result));
        for policy in ["leeward:effort=10000", "choreo-exact:nodes=4000000000"] {
            coordinator.what_if(Nanos(1), DecisionId(0), policy, 2);
            let Some(Completion::WhatIf(2, Err(CallError::Failed(error)))) = coordinator.completions().next()
            else {
                panic!("not refused")
            };
            let WhatIfError::Invalid(Some(field), why) = error else { panic!("{error:?}") };
            assert!(field == "policy" && why.contains(policy), "{field}: {why}");
        }
        for policy in ["leeward:effort=10", "choreo-exact"] {
            coordinator.what_if(Nanos(1), DecisionId(0), policy, 2);
            assert_eq!(coordinator.completions().count(), 0);
        }
    }
}
