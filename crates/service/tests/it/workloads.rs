//! Workloads with SLO guarantees: the coordinator with artificial times.

use crate::support;
use std::sync::Arc;

use crate::support::{Numbers, PlaceReplies, U32, labels, place_replies, policies, samples};
use leeward_engine::{Engine, Policies};
use leeward_fabric::{HostId, Load, Nanos, ResourceKind};
use leeward_placement::Explain;
use leeward_placement::tasks::{self, AppRequest, Peer, Task, Traffic};
use leeward_records::{Caller, Change, DecisionId, DecisionRecord, PlacementSpec, WorkloadSpec};
use leeward_service::{
    Addresses, CallError, Completion, Coordinator, DecisionLookup, HostReport, Job, JobResult, Limits,
    NoWorkload, PlaceError, Placed, Placement, Report, Score, ScoreError, Scores, Skipped, Unavailable,
    WhatIfError, WhatIfResult,
};
use leeward_testing::clusters::{VOLUMES, cluster, ledger};
use leeward_testing::workloads::form;
use serde_json::Value;

pub const SECOND: Nanos = Nanos::SECOND;

pub fn coordinator<A: Addresses>() -> Coordinator<A> {
    let ledger = ledger(&cluster(VOLUMES));
    let policies = Policies { tasks: tasks::REGISTRY.make("utp", "").ok(), ..policies("") };
    Coordinator::new(Engine::new(ledger, policies, 7, Explain::Top(8)), labels(), Limits::default())
}

pub fn placement(form: &Value, key: Option<&str>) -> Placement {
    let spec = WorkloadSpec { workload: form.as_object().expect("an object").clone() };
    let spec = if form.get("server").is_some() {
        PlacementSpec::Workload(spec)
    } else {
        PlacementSpec::Volumes(spec)
    };
    let caller = key.map(|key| Caller::Key(Arc::from(key)));
    Placement { spec, caller, lasts: None, reference: None, digest: None }
}

/// Sends a placement and runs the resulting jobs.
pub fn place_and_run_jobs<A: U32>(
    coordinator: &mut Coordinator<A>,
    placement: Placement,
    to: u32,
) -> PlaceReplies {
    coordinator.place(SECOND, placement, to);
    run_jobs_and_take_replies(coordinator)
}

/// Carries out the jobs of the coordinator. Returns the late replies to placements.
fn run_jobs_and_take_replies<A: U32>(coordinator: &mut Coordinator<A>) -> PlaceReplies {
    run_jobs(coordinator);
    place_replies(coordinator)
}

pub fn run_jobs<A: U32>(coordinator: &mut Coordinator<A>) {
    loop {
        let results: Vec<JobResult> = coordinator.jobs().map(Job::run).collect();
        if results.is_empty() {
            return;
        }
        results.into_iter().for_each(|result| coordinator.finish_job(SECOND, result));
    }
}

pub fn placed_record(mut replies: PlaceReplies) -> Arc<DecisionRecord> {
    support::decision_of(replies.pop().expect("a reply").1).0
}

fn place_error(mut replies: PlaceReplies) -> PlaceError {
    match replies.pop() {
        Some((_, Err(error))) => error,
        other => panic!("not rejected: {other:?}"),
    }
}

/// Reserved rate of a link.
fn reserved_rate(coordinator: &mut Coordinator<Numbers>, link: &str) -> i64 {
    let link = coordinator.fabric().resource(link).expect("a link");
    coordinator.snapshot().link(link).expect("a link").reserved.0
}

#[test]
fn a_promise_holds_its_rates_until_it_is_released() {
    let mut coordinator: Coordinator<Numbers> = coordinator();
    let record = placed_record(place_and_run_jobs(
        &mut coordinator,
        placement(&form("a", Some("r1h1"), 50, 10), None),
        0,
    ));
    assert_eq!(record.details.hosts, ["r1h1"]);
    let promise = record.details.promise.clone().expect("a promise");
    assert!(promise.bound_s.expect("a bound") <= 0.05, "{promise:?}");
    // 4 MB/s and the margin of 10 %.
    for link in ["r0h0:egress", "r0:uplink", "r1:downlink", "r1h1:ingress", "r1h1:egress", "r0h0:ingress"] {
        assert_eq!(reserved_rate(&mut coordinator, link), 35_200_000, "{link}");
    }
    assert_eq!(reserved_rate(&mut coordinator, "r0h1:egress"), 0);
    assert!(coordinator.release(SECOND, record.id).is_ok());
    assert_eq!(reserved_rate(&mut coordinator, "r0h0:egress"), 0);
    let state = coordinator.workload(SECOND, "a").expect("a workload");
    assert!(state.record.released.is_some(), "the released record is still in memory");
    assert_eq!(coordinator.workload(SECOND, "b"), Err(NoWorkload("b".to_owned())));
}

#[test]
fn a_shorter_slo_gets_the_first_priority_and_others_get_new_grants() {
    let mut coordinator: Coordinator<Numbers> = coordinator();
    let slow = placed_record(place_and_run_jobs(
        &mut coordinator,
        placement(&form("slow", Some("r1h1"), 200, 10), None),
        0,
    ));
    assert_eq!(slow.details.promise.as_ref().map(|promise| promise.stages[0].priority), Some(0));
    assert_eq!(coordinator.changes().count(), 2, "the version of the promises, and the decision");
    let fast = placed_record(place_and_run_jobs(
        &mut coordinator,
        placement(&form("fast", Some("r1h1"), 40, 10), None),
        0,
    ));
    assert_eq!(fast.details.promise.as_ref().map(|promise| promise.stages[0].priority), Some(0));
    let changes: Vec<Change> = coordinator.changes().collect();
    let [Change::Promises(_), Change::Moved(slow, entries), Change::Decided(..)] = changes.as_slice() else {
        panic!("{changes:?}")
    };
    assert_eq!(slow.details.promise.as_ref().map(|promise| promise.stages[0].priority), Some(1));
    assert_eq!(entries.len(), 3, "one entry for each stage");
    assert_eq!(reserved_rate(&mut coordinator, "r0h0:egress"), 2 * 35_200_000);
}

#[test]
fn a_name_is_promised_once_and_a_repeated_request_is_idempotent() {
    let mut coordinator: Coordinator<Numbers> = coordinator();
    let (a, b) = (form("a", Some("r1h1"), 100, 5), form("b", Some("r1h1"), 100, 5));
    // All requests arrive before the first result.
    for (to, placement) in
        [(1, placement(&a, Some("k"))), (2, placement(&a, Some("k"))), (3, placement(&a, None))]
    {
        coordinator.place(SECOND, placement, to);
    }
    assert_eq!(place_replies(&mut coordinator), [], "the analysis is a job");
    let replies = run_jobs_and_take_replies(&mut coordinator);
    let placed: Vec<(u32, bool)> = replies
        .iter()
        .filter_map(|(to, reply)| match reply {
            Ok(DecisionLookup::InMemory(Placed { repeated, .. })) => Some((*to, *repeated)),
            _ => None,
        })
        .collect();
    assert_eq!(placed, [(1, false), (2, true)]);
    assert_eq!(place_error(replies), PlaceError::NameTaken("a".to_owned(), DecisionId(0)));
    let again = placed_record(place_and_run_jobs(&mut coordinator, placement(&b, Some("k")), 0));
    assert_eq!(again.id, DecisionId(0), "a repeat returns the first decision");
    coordinator.release(SECOND, DecisionId(0)).expect("a decision");
    assert_eq!(placed_record(place_and_run_jobs(&mut coordinator, placement(&a, None), 0)).released, None);
}

#[test]
fn a_release_during_an_analysis_is_a_conflict_and_restarts_it() {
    let mut coordinator: Coordinator<Numbers> = coordinator();
    let first = placed_record(place_and_run_jobs(
        &mut coordinator,
        placement(&form("first", Some("r1h1"), 200, 10), None),
        0,
    ));
    coordinator.place(SECOND, placement(&form("second", Some("r1h1"), 40, 10), None), 1);
    let job = coordinator.jobs().next().expect("an analysis starts");
    coordinator.release(SECOND, first.id).expect("a decision");
    coordinator.finish_job(SECOND, job.run());
    assert_eq!(place_replies(&mut coordinator), [], "the basis of the analysis has changed");
    let job = coordinator.jobs().next().expect("the analysis restarts");
    coordinator.finish_job(SECOND, job.run());
    assert_eq!(placed_record(place_replies(&mut coordinator)).details.hosts, ["r1h1"]);
    assert_eq!(
        reserved_rate(&mut coordinator, "r0h0:egress"),
        35_200_000,
        "only the second has a reservation"
    );
}

#[test]
fn a_workload_that_breaks_another_slo_is_rejected_without_effect() {
    let mut coordinator: Coordinator<Numbers> = coordinator();
    let mut number = 0;
    let error = loop {
        let name = format!("w{number}");
        let replies =
            place_and_run_jobs(&mut coordinator, placement(&form(&name, Some("r1h1"), 30, 5), None), 0);
        let is_rejected = matches!(replies.last(), Some((_, Err(_))));
        if is_rejected {
            break place_error(replies);
        }
        number += 1;
        assert!(number < 30, "no workload is rejected");
    };
    let PlaceError::SloRejected(reason) = error else { panic!("{error:?}") };
    assert!(number > 2 && reason.contains("SLO"), "{number}: {reason}");
    coordinator.changes().for_each(drop);
    let before = coordinator.snapshot().links;
    place_and_run_jobs(&mut coordinator, placement(&form("one-more", Some("r1h1"), 30, 5), None), 0);
    assert_eq!(coordinator.changes().count(), 0);
    assert_eq!(coordinator.snapshot().links, before);
    // Another host has room, and packing finds it.
    let packed =
        placed_record(place_and_run_jobs(&mut coordinator, placement(&form("packed", None, 30, 5), None), 0));
    assert_ne!(packed.details.hosts, ["r1h1"]);
    let before = coordinator.snapshot().links;
    let what_if = |coordinator: &mut Coordinator<Numbers>, policy: &str| {
        coordinator.what_if(SECOND, packed.id, policy, 0);
        run_jobs(coordinator);
        match coordinator.completions().next() {
            Some(Completion::WhatIf(0, answer)) => answer,
            _ => panic!("no reply"),
        }
    };
    let Ok(WhatIfResult { record, refusal: None, .. }) = what_if(&mut coordinator, "compactor") else {
        panic!("a placement")
    };
    assert_eq!(record.details.hosts, packed.details.hosts, "the query leaves out the decision's own load");
    assert!(matches!(
        what_if(&mut coordinator, "compact"),
        Err(CallError::Failed(WhatIfError::Invalid(Some(_), _)))
    ));
    assert!(matches!(
        what_if(&mut coordinator, "sinbad"),
        Err(CallError::Failed(WhatIfError::Invalid(Some(_), _)))
    ));
    assert_eq!(
        (coordinator.snapshot().links, coordinator.changes().count()),
        (before, 2),
        "the only changes are the decision about `packed` and the version of the promises"
    );
}

#[test]
fn a_server_that_drains_during_the_analysis_gets_no_volume() {
    let mut coordinator: Coordinator<Numbers> = coordinator();
    coordinator.place(SECOND, placement(&form("a", None, 50, 10), None), 1);
    let result = coordinator.jobs().next().expect("an analysis starts").run();
    // The first candidate is some host of this rack. All hosts of the rack start draining.
    let drained = |host: u32| HostReport {
        host: HostId(host),
        up: None,
        draining: Some(true),
        stored: None,
        storage: None,
    };
    let report = Report {
        window: (Nanos(SECOND.0 - 1), SECOND),
        hosts: (0..3).map(drained).collect(),
        ..Report::default()
    };
    coordinator.report(SECOND, report).expect("a valid report");
    coordinator.finish_job(SECOND, result);
    assert_eq!(place_replies(&mut coordinator), [], "the analysis restarts");
    let record = placed_record(run_jobs_and_take_replies(&mut coordinator));
    assert!(record.details.hosts[0].starts_with("r1"), "{:?}", record.details.hosts);
}

#[test]
fn eight_conflicts_in_a_row_reject_the_request_for_a_retry() {
    let mut coordinator: Coordinator<Numbers> = coordinator();
    let name = |number: u64| format!("w{number}");
    for number in 0..8 {
        placed_record(place_and_run_jobs(
            &mut coordinator,
            placement(&form(&name(number), Some("r1h1"), 400, 2), None),
            0,
        ));
    }
    coordinator.place(SECOND, placement(&form("last", Some("r1h1"), 400, 2), Some("key")), 1);
    for number in 0..8 {
        assert_eq!(place_replies(&mut coordinator), [], "{number}");
        let result = coordinator.jobs().next().expect("an analysis starts").run();
        coordinator.release(SECOND, DecisionId(number)).expect("a decision");
        coordinator.finish_job(SECOND, result);
    }
    assert_eq!(place_replies(&mut coordinator), [(1, Err(PlaceError::Busy))]);
    assert!(coordinator.jobs().next().is_none());
    // The request may be repeated, and other requests succeed.
    assert_eq!(
        placed_record(place_and_run_jobs(
            &mut coordinator,
            placement(&form("other", Some("r1h1"), 400, 2), None),
            0
        ))
        .id,
        DecisionId(9)
    );
    assert_eq!(
        placed_record(place_and_run_jobs(
            &mut coordinator,
            placement(&form("last", Some("r1h1"), 400, 2), Some("key")),
            0
        ))
        .id,
        DecisionId(10)
    );
}

#[test]
fn requests_of_disconnected_callers_get_no_promise() {
    use std::sync::atomic::{AtomicU32, Ordering};
    // Callers below this number have disconnected.
    static FIRST_OPEN: AtomicU32 = AtomicU32::new(0);
    enum FromFirstOpen {}
    impl Addresses for FromFirstOpen {
        type To<T> = u32;

        fn is_open<T>(to: &u32) -> bool {
            *to >= FIRST_OPEN.load(Ordering::Relaxed)
        }
    }
    let mut coordinator: Coordinator<FromFirstOpen> = coordinator();
    for (to, name) in [(1, "a"), (2, "b"), (3, "c"), (9, "d")] {
        let key = (name == "c").then_some("key");
        coordinator.place(SECOND, placement(&form(name, Some("r1h1"), 100, 2), key), to);
    }
    let job = coordinator.jobs().next().expect("the job of the first");
    FIRST_OPEN.store(4, Ordering::Relaxed);
    coordinator.finish_job(SECOND, job.run());
    run_jobs_and_take_replies(&mut coordinator);
    let names = |coordinator: &mut Coordinator<FromFirstOpen>| -> Vec<String> {
        let workloads = coordinator.workloads(SECOND, None, 9).workloads;
        workloads
            .iter()
            .filter_map(|state| Some(state.record.details.spec.workload()?.name().to_owned()))
            .collect()
    };
    assert_eq!(names(&mut coordinator), ["d"], "all other callers have disconnected");
    // A client that retries with its key gets a new attempt.
    assert!(
        placed_record(place_and_run_jobs(
            &mut coordinator,
            placement(&form("c", Some("r1h1"), 100, 2), Some("key")),
            9
        ))
        .released
        .is_none()
    );
    assert_eq!(names(&mut coordinator), ["c", "d"]);
}

#[test]
fn many_scores_are_computed_in_a_job_and_equal_single_scores() {
    let mut coordinator: Coordinator<Numbers> = coordinator();
    let links = coordinator
        .fabric()
        .all_resources()
        .filter(|&link| coordinator.fabric().kind(link) != ResourceKind::Device);
    let loads = links.map(|link| (link, Load(100_000_000 + 10_000_000 * i64::from(link.0))));
    let window = (Nanos(1), SECOND);
    let report = Report { window, loads: samples(window, loads), ..Report::default() };
    assert!(coordinator.report(SECOND, report).is_ok());
    let rate = |bps: u64| Task {
        egress: [Traffic::steady(bps); 3],
        ingress: [Traffic::steady(bps / 2); 3],
        ..Task::default()
    };
    let peers: Vec<Peer> =
        (0..100).map(|at| Peer { host: HostId(at % 6), egress_bps: 100_000, ingress_bps: 10_000 }).collect();
    let score = |hosts: &[HostId]| {
        let request = AppRequest { tasks: vec![rate(20_000_000)], ..AppRequest::default() };
        Score { request, job: None, peers: peers.clone(), hosts: hosts.to_vec() }
    };
    let hosts: Vec<HostId> = (0..600).map(|at| HostId(at % 6)).collect();
    coordinator.score(SECOND, score(&hosts), 1);
    assert_eq!(coordinator.completions().count(), 0, "the analysis is a job");
    run_jobs(&mut coordinator);
    let scores = |coordinator: &mut Coordinator<Numbers>| match coordinator.completions().next() {
        Some(Completion::Score(_, Ok(Scores { ratings, epoch, age, .. }))) => (ratings.0, epoch, age),
        _ => panic!("no scores"),
    };
    let (ratings, epoch, age) = scores(&mut coordinator);
    assert_eq!(ratings.len(), hosts.len());
    assert!(
        ratings.iter().any(|(rating, _)| rating.loaded != ratings[0].0.loaded),
        "all hosts have the same rating"
    );
    for (hosts, expected) in hosts.chunks(60).zip(ratings.chunks(60)) {
        coordinator.score(SECOND, score(hosts), 2);
        let few = scores(&mut coordinator);
        assert_eq!(few, (expected.to_vec(), epoch, age));
    }
    // The number of open queries is limited, and each waiting query gets one rejection.
    (0..6).for_each(|to| coordinator.score(SECOND, score(&hosts), to));
    let busy =
        |completion| matches!(completion, Completion::Score(4 | 5, Err(CallError::Failed(ScoreError::Busy))));
    assert_eq!(coordinator.completions().map(busy).collect::<Vec<_>>(), [true, true]);
    assert!(coordinator.reject_waiting());
    let rejected = |completion| match completion {
        Completion::Score(to, Err(CallError::Unavailable(Unavailable::ClusterChanged))) => Some(to),
        _ => None,
    };
    assert_eq!(coordinator.completions().map(rejected).collect::<Vec<_>>(), [0, 1, 2, 3].map(Some));
    run_jobs(&mut coordinator);
    assert_eq!(coordinator.completions().count(), 0);
}

#[test]
fn the_latest_measured_latency_of_a_workload_is_shown() {
    let mut coordinator: Coordinator<Numbers> = coordinator();
    let report = |from: u64, name: &str, seconds: f64| {
        let window = (Nanos(from), Nanos(from + 1));
        Report { window, workloads: vec![(name.to_owned(), seconds)], ..Report::default() }
    };
    let skipped = |coordinator: &mut Coordinator<Numbers>, report| {
        coordinator.report(SECOND, report).expect("a valid report").skipped
    };
    let unknown = Skipped { unknown: 1, ..Skipped::default() };
    assert_eq!(skipped(&mut coordinator, report(1, "a", 0.1)), unknown);
    let record = placed_record(place_and_run_jobs(
        &mut coordinator,
        placement(&form("a", Some("r1h1"), 100, 5), None),
        0,
    ));
    let latency = |coordinator: &mut Coordinator<Numbers>| {
        coordinator.workloads(SECOND, None, 9).workloads[0].latency_s
    };
    assert_eq!(latency(&mut coordinator), None);
    for (from, seconds, known) in [(5, 0.02, 0.02), (3, 0.03, 0.02), (6, 0.01, 0.01)] {
        let stale = u64::from(seconds != known);
        assert_eq!(
            skipped(&mut coordinator, report(from, "a", seconds)),
            Skipped { stale, ..Skipped::default() }
        );
        assert_eq!(latency(&mut coordinator), Some(known));
    }
    // A late report may name a workload that has ended; the rest of the report counts.
    coordinator.release(SECOND, record.id).expect("a decision");
    let late = report(8, "a", 0.1);
    let drains = HostReport { host: HostId(3), up: None, draining: Some(true), stored: None, storage: None };
    assert_eq!(skipped(&mut coordinator, Report { hosts: vec![drains], ..late }), unknown);
    assert!(coordinator.snapshot().hosts[3].draining);
}
