//! Apps whose placement takes too long for the actor's loop. Their decisions are jobs outside the coordinator
//! ([`super::Job`]), one after another, each with the state at its start. Each app therefore sees the placements of
//! earlier apps, and apps do not all choose the same hosts. The engine commits a result if its hosts can still take the
//! app; otherwise the app is decided again.

use leeward_engine::{Decider, SnapshotScope};
use leeward_placement::tasks::AppRequest;
use leeward_records::{DecisionId, PlacementSpec};

use super::error::PlaceError;
use super::job::{AppAnswer, JobKind, Panicked};
use super::job_names::job_of;
use super::{Addresses, Coordinator};

/// Limit on host and link lookups of a decision inside the actor's loop: about a millisecond, a fifth of a placement's
/// budget. A job needs a copy of the links' state, which also takes the loop about a millisecond on a large cluster.
const MAX_LOOP_COST: u64 = 20_000;
/// Largest number of decisions for one app, if hosts are taken or go down meanwhile.
const MAX_ATTEMPTS: u32 = 8;
/// Approximate limit on the total size of waiting apps, in bytes. A single app may exceed it.
const MAX_WAITING_BYTES: usize = 64 << 20;

/// An app that waits or is being decided.
#[derive(Debug)]
pub(super) struct QueuedApp {
    id: DecisionId,
    /// Number of earlier decisions for the app.
    attempts: u32,
    bytes: usize,
}

impl<A: Addresses> Coordinator<A> {
    /// True if the decision takes too long for the actor's loop.
    pub(super) fn takes_long(&self, by: Decider, request: &AppRequest) -> bool {
        self.engine.cost_estimate(by, request) > MAX_LOOP_COST
    }

    /// Queues an app.
    pub(super) fn queue_app(&mut self, id: DecisionId) {
        let bytes = self.waiting.get(&id).map_or(0, |waiting| waiting.placement.spec.bytes());
        if self.apps_bytes > 0 && self.apps_bytes + bytes > MAX_WAITING_BYTES {
            return self.reject(id, &PlaceError::Busy);
        }
        self.apps_bytes += bytes;
        self.apps.push(QueuedApp { id, attempts: 0, bytes });
        self.start_next_app();
    }

    /// Starts the next app unless one runs.
    pub(super) fn start_next_app(&mut self) {
        while let Some(app) = self.apps.next() {
            let waiting = self.waiting.get_mut(&app.id);
            if waiting.is_some_and(|waiting| {
                waiting.callers.retain(A::is_open);
                waiting.callers.is_empty()
            }) {
                // No caller waits any more. A repeated request places the app.
                self.reject(app.id, &PlaceError::Busy);
            }
            match self.app_request(app.id) {
                Some(request) => self.start_app(app, request),
                None => self.apps_bytes -= app.bytes,
            }
        }
    }

    fn start_app(&mut self, app: QueuedApp, request: AppRequest) {
        let snapshot = self.engine.snapshot(SnapshotScope { job: Some(request.job), without: None });
        let ruling = self.renew_ruling(app.id).unwrap_or_default();
        let job = self.jobs.add(JobKind::App(snapshot, self.engine.with_history(request), ruling));
        self.apps.start(job, app);
    }

    /// Request of a waiting app.
    pub(super) fn app_request(&self, id: DecisionId) -> Option<AppRequest> {
        let spec = &self.waiting.get(&id)?.placement.spec;
        let PlacementSpec::Tasks(tasks) = spec else { return None };
        Some(self.tasks_request(tasks, id, self.job_names.number(job_of(spec), id)?, &[]))
    }

    /// Handles the result of an app's job.
    pub(super) fn finish_app(&mut self, app: QueuedApp, output: Result<AppAnswer, Panicked>) {
        let (id, attempts) = (app.id, app.attempts + 1);
        self.apps_bytes -= app.bytes;
        let Some(request) = self.app_request(id) else { return };
        let decision = match output {
            Ok(Ok(decision)) => decision,
            Ok(Err(refusal)) => return self.reject(id, &PlaceError::Rejected(refusal)),
            Err(Panicked) => return self.reject(id, &PlaceError::Panicked),
        };
        if self.is_abandoned(id) {
            return self.reject(id, &PlaceError::Busy);
        }
        let placed = self.engine.commit_decision(self.now, &request, decision, &mut self.outputs);
        if let Some(placed) = placed {
            self.finish_placement(id, Ok(placed));
            self.follow_none_unless_compared(id);
        }
        self.handle_outputs();
        let Some(request) = self.app_request(id) else { return };
        // The engine rejected the decision: a host was taken or closed meanwhile.
        if attempts == MAX_ATTEMPTS {
            return self.reject(id, &PlaceError::HostsTaken(MAX_ATTEMPTS));
        }
        self.apps_bytes += app.bytes;
        self.start_app(QueuedApp { attempts, ..app }, request);
    }

    /// True if no caller waits and no key or sequence allows a retry.
    pub(super) fn is_abandoned(&mut self, id: DecisionId) -> bool {
        self.waiting.get_mut(&id).is_some_and(|waiting| {
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
    use leeward_fabric::{HostId, Nanos};
    use leeward_placement::tasks::{self, App};
    use leeward_placement::{Explain, Refusal, replicas};
    use leeward_testing::clusters::{cluster, ledger};
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

    /// Numbers as reply addresses; the caller with address 0 has disconnected.
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

    fn rejected(to: u32, error: PlaceError) -> (u32, Answer<DecisionLookup<Placed>, PlaceError>) {
        (to, Err(CallError::Failed(error)))
    }

    fn coordinator() -> Coordinator<Numbers> {
        let ledger = ledger(&cluster(CLUSTER));
        let policies = Policies {
            replicas: replicas::REGISTRY.make("uniform", "").ok(),
            tasks: tasks::REGISTRY.make("leeward", "{tries: 2}").ok(),
            ..Policies::default()
        };
        let engine = Engine::new(ledger, policies, 7, Explain::Top(4));
        let labels = PolicyLabels {
            replicas: "uniform".into(),
            tasks: "leeward".into(),
            moves: None,
            ..PolicyLabels::default()
        };
        Coordinator::new(engine, labels, Limits::default())
    }

    /// Two tasks of 3 processors with a transfer between them.
    fn app(key: Option<&str>) -> Placement {
        let app = json!({
            "tasks": [{ "name": "a", "cpus": 3 }, { "name": "b", "cpus": 3 }],
            "transfers": [{ "from": "a", "to": "b", "bytes": "1GB" }],
        });
        let app = App::from_text("app", &app.to_string(), &Files::default()).expect("a valid app");
        let spec = PlacementSpec::Tasks(TasksSpec::of(&app, Some("job".to_owned()), Vec::new()));
        let caller = key.map(|key| Caller::Key(key.into()));
        Placement { spec, caller, lasts: None, reference: None, digest: None }
    }

    fn send(coordinator: &mut Coordinator<Numbers>, placement: Placement, to: u32) -> Replies {
        coordinator.place(Nanos(1), placement, to);
        replies(coordinator)
    }

    /// The only open job.
    fn job(coordinator: &mut Coordinator<Numbers>) -> Job {
        let mut jobs: Vec<Job> = coordinator.jobs().collect();
        assert_eq!(jobs.len(), 1, "one job at a time");
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
        match &result.output {
            JobOutput::App(Ok(Ok((decision, _)))) => decision.choice.clone(),
            other => panic!("no placement: {other:?}"),
        }
    }

    /// Reports these hosts as draining and all others as not draining.
    fn drain(coordinator: &mut Coordinator<Numbers>, second: u64, hosts: &[HostId]) {
        let at = |second: u64| Nanos(second * Nanos::SECOND.0);
        let all = (0..6).map(HostId);
        let states = all.map(|host| HostReport {
            host,
            up: None,
            draining: Some(hosts.contains(&host)),
            stored: None,
            storage: None,
        });
        let report =
            Report { window: (at(second), at(second + 1)), hosts: states.collect(), ..Report::default() };
        assert!(coordinator.report(at(second + 1), report).is_ok());
        assert_eq!(replies(coordinator), []);
    }

    #[test]
    fn concurrent_apps_are_placed_in_turn_and_see_each_other() {
        let mut coordinator = coordinator();
        for to in 1..=4 {
            assert!(send(&mut coordinator, app(None), to).is_empty(), "the decision is asynchronous");
        }
        let mut taken = BTreeSet::new();
        for _ in 0..3 {
            let result = job(&mut coordinator).run();
            taken.extend(hosts(&finish(&mut coordinator, result)));
        }
        assert_eq!(taken.len(), 6, "each task has a host of its own");
        let result = job(&mut coordinator).run();
        let rejected = finish(&mut coordinator, result);
        let full = |error: &CallError<PlaceError>| {
            matches!(error, CallError::Failed(PlaceError::Rejected(Refusal::NoHost { .. })))
        };
        assert!(matches!(rejected.as_slice(), [(4, Err(error))] if full(error)), "{rejected:?}");
        assert_eq!((coordinator.jobs().count(), coordinator.apps_bytes), (0, 0));
    }

    #[test]
    fn an_app_is_decided_again_a_bounded_number_of_times_if_its_hosts_close() {
        let mut coordinator = coordinator();
        send(&mut coordinator, app(None), 1);
        let result = job(&mut coordinator).run();
        let first = chosen(&result);
        drain(&mut coordinator, 1, &first);
        assert!(finish(&mut coordinator, result).is_empty());
        let result = job(&mut coordinator).run();
        let second = chosen(&result);
        assert!(second.iter().all(|host| !first.contains(host)));
        assert_eq!(hosts(&finish(&mut coordinator, result)).len(), 2);
        drain(&mut coordinator, 2, &[]);
        send(&mut coordinator, app(None), 2);
        for round in 3..3 + u64::from(MAX_ATTEMPTS) {
            let result = job(&mut coordinator).run();
            drain(&mut coordinator, round, &chosen(&result));
            let replies = finish(&mut coordinator, result);
            let is_last = round + 1 == 3 + u64::from(MAX_ATTEMPTS);
            assert_eq!(
                replies,
                if is_last { vec![rejected(2, PlaceError::HostsTaken(MAX_ATTEMPTS))] } else { vec![] }
            );
        }
        assert_eq!((coordinator.jobs().count(), coordinator.apps_bytes), (0, 0));
        let tasks: u32 = (0..6).map(|host| coordinator.engine.tasks_on(HostId(host))).sum();
        assert_eq!(tasks, 2, "the tasks of the first app");
    }

    #[test]
    fn repeated_requests_share_one_job_and_its_result() {
        let mut coordinator = coordinator();
        send(&mut coordinator, app(Some("one")), 1);
        assert!(send(&mut coordinator, app(Some("one")), 2).is_empty());
        let result = job(&mut coordinator).run();
        let answers = finish(&mut coordinator, result);
        let repeated = |reply: &Answer<DecisionLookup<Placed>, PlaceError>| match reply {
            Ok(DecisionLookup::InMemory(Placed { record, repeated })) => Some((record.id, *repeated)),
            _ => None,
        };
        let answers: Vec<_> = answers.iter().map(|(to, reply)| (*to, repeated(reply))).collect();
        assert_eq!(answers, [(1, Some((DecisionId(0), false))), (2, Some((DecisionId(0), true)))]);
        send(&mut coordinator, app(Some("two")), 3);
        send(&mut coordinator, app(Some("three")), 4);
        let number = job(&mut coordinator).number;
        let answers = finish(&mut coordinator, JobResult { number, output: JobOutput::App(Err(Panicked)) });
        assert_eq!(answers, [rejected(3, PlaceError::Panicked)]);
        send(&mut coordinator, app(Some("two")), 5);
        assert!(coordinator.reject_waiting());
        let changed = || Err(CallError::Unavailable(Unavailable::ClusterChanged));
        assert_eq!(replies(&mut coordinator), [(4, changed()), (5, changed())]);
        let result = job(&mut coordinator).run();
        assert!(finish(&mut coordinator, result).is_empty());
        assert!(send(&mut coordinator, app(Some("two")), 6).is_empty(), "a retry after a rejection");
        let result = job(&mut coordinator).run();
        assert_eq!(hosts(&finish(&mut coordinator, result)).len(), 2);
    }

    #[test]
    fn requests_without_callers_are_dropped() {
        let mut coordinator = coordinator();
        send(&mut coordinator, app(None), 1);
        send(&mut coordinator, app(None), 0);
        send(&mut coordinator, app(None), 2);
        let result = job(&mut coordinator).run();
        let callers: Vec<u32> = finish(&mut coordinator, result).iter().map(|(to, _)| *to).collect();
        assert_eq!(callers, [1], "the first is placed, and the second is dropped");
        assert!(
            !coordinator.waiting.contains_key(&DecisionId(1))
                && coordinator.waiting.contains_key(&DecisionId(2))
        );
        let result = job(&mut coordinator).run();
        assert_eq!(hosts(&finish(&mut coordinator, result)).len(), 2);
        for to in [3, 0, 4] {
            coordinator.what_if(Nanos(1), DecisionId(0), "random", to);
            assert_eq!(coordinator.completions().count(), 0);
        }
        for caller in [3, 4] {
            let result = job(&mut coordinator).run();
            coordinator.finish_job(Nanos(2), result);
            let completions: Vec<_> = coordinator.completions().collect();
            assert!(matches!(completions.as_slice(), [Completion::WhatIf(to, Ok(_))] if *to == caller));
        }
        assert_eq!(coordinator.jobs().count(), 0);
    }

    #[test]
    fn a_policy_with_a_very_long_search_is_rejected() {
        let mut coordinator = coordinator();
        send(&mut coordinator, app(None), 1);
        let result = job(&mut coordinator).run();
        hosts(&finish(&mut coordinator, result));
        for policy in ["leeward:effort=10000", "choreo-exact:nodes=4000000000"] {
            coordinator.what_if(Nanos(1), DecisionId(0), policy, 2);
            let Some(Completion::WhatIf(2, Err(CallError::Failed(error)))) = coordinator.completions().next()
            else {
                panic!("not rejected")
            };
            let WhatIfError::Invalid(Some(field), reason) = error else { panic!("{error:?}") };
            assert!(field == "policy" && reason.contains(policy), "{field}: {reason}");
        }
        for policy in ["leeward:effort=10", "choreo-exact"] {
            coordinator.what_if(Nanos(1), DecisionId(0), policy, 2);
            assert_eq!(coordinator.completions().count(), 0);
        }
    }
}
