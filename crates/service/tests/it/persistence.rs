//! Tests of stored decisions: a restart, a follower, and eviction lose no acknowledged change.

use leeward_testing::clusters::{cluster, ledger};
use leeward_testing::postgres;
use std::sync::Arc;

use crate::support::{Numbers, decision_of, labels, place, place_replies, policies, samples};
use leeward_engine::{Engine, Rates};
use leeward_fabric::input::Files;
use leeward_fabric::{Bytes, Cluster, Load, Nanos, ResourceId};
use leeward_ledger::Epoch;
use leeward_placement::Explain;
use leeward_placement::tasks::{App, TaskId};
use leeward_records::{
    Caller, Change, DecisionDetails, DecisionId, DecisionRecord, Migration, MigrationState, PlacementSpec,
    ReplicasSpec, TasksSpec, WorkloadSpec,
};
use leeward_service::{
    AnswerError, Coordinator, DecisionError, DecisionLookup, Limits, MigrationAnswer, MigrationQuery,
    NetworkSnapshot, PlaceError, Placed, Placement, Report, ReportSummary,
};
use leeward_store::{Database, Durability, Leadership, Postgres, Sqlite, Store, StoreError, Updates};
use proptest::prelude::*;
use proptest::test_runner::{TestCaseResult, TestRunner};
use serde_json::json;

const CLUSTER: &str = "racks: 4\nhosts_per_rack: 3\nnic: 1Gbps\noversubscription: 2\npriorities: 8\n\
                       devices: [{read: 50MB/s, write: 50MB/s, capacity: 1TB}]\n";
const SECOND: Nanos = Nanos::SECOND;
/// A time after all decisions, for a resume.
const LATER: Nanos = Nanos(u64::MAX);

fn coordinator(cluster: &Cluster, limits: Limits) -> Coordinator<Numbers> {
    let engine = Engine::new(ledger(cluster), policies(""), 7, Explain::Top(8));
    Coordinator::new(engine, labels(), limits)
}

/// Actions of clients.
#[derive(Clone, Copy, Debug)]
enum Act {
    Report(u32),
    Block { size: u64, key: Option<u8> },
    Tasks { count: u8, lasts: Option<u8> },
    Workload { name: u8, millis: u64, placed: bool, lasts: Option<u8> },
    End(u8),
    Wait(u16),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        any::<u32>().prop_map(Act::Report),
        (1_u64..1 << 30, proptest::option::of(0_u8..6)).prop_map(|(size, key)| Act::Block { size, key }),
        (1_u8..5, proptest::option::of(1_u8..9)).prop_map(|(count, lasts)| Act::Tasks { count, lasts }),
        (0_u8..4, prop::sample::select(vec![20_u64, 50, 200]), any::<bool>(), proptest::option::of(1_u8..9))
            .prop_map(|(name, millis, placed, lasts)| Act::Workload { name, millis, placed, lasts }),
        any::<u8>().prop_map(Act::End),
        (0_u16..3_000).prop_map(Act::Wait),
    ]
}

/// Operation on a coordinator.
#[derive(Clone)]
enum Step {
    Report(Report),
    Place(Placement),
    Release(u64),
    Get(u64),
}

/// Reply to an operation.
#[derive(Clone, PartialEq, Debug)]
enum StepReply {
    Reported(ReportSummary),
    Placed(Arc<DecisionRecord>, bool),
    Decision(Arc<DecisionRecord>),
    NotPlaced(PlaceError),
    NoDecision,
}

fn step(cluster: &Cluster, act: Act, now: Nanos, next: u64) -> Option<Step> {
    let fabric = &cluster.fabric;
    Some(match act {
        Act::Wait(_) => return None,
        Act::Report(seed) => {
            let links = (fabric.resource_count() - fabric.host_count()) as u32;
            let load = |link: u32| {
                (ResourceId(link), Load(i64::from(seed.wrapping_mul(link + 1) % 900) * 1_000_000))
            };
            let window = (Nanos(now.0 - SECOND.0), now);
            let loads = samples(window, (0..links).map(load));
            Step::Report(Report { window, loads, ..Report::default() })
        }
        Act::Block { size, key } => {
            let spec = ReplicasSpec { size: Bytes(size), replicas: 3, ..ReplicasSpec::default() };
            Step::Place(Placement {
                spec: PlacementSpec::Replicas(spec),
                caller: key.map(|key| Caller::Key(Arc::from(format!("\0\\{key}")))),
                lasts: None,
                reference: None,
                digest: None,
            })
        }
        Act::Tasks { count, lasts } => {
            let text = format!(
                r#"{{"tasks": [{{"name": "t", "count": {count}, "egress": {{"mean": "10Mbps"}}}}]}}"#
            );
            let app = App::from_text("app", &text, &Files::default()).expect("a valid app");
            let spec = PlacementSpec::Tasks(TasksSpec::of(&app, Some("job".to_owned()), Vec::new()));
            let lasts = lasts.map(|seconds| Nanos(u64::from(seconds) * SECOND.0));
            Step::Place(Placement { spec, caller: None, lasts, reference: None, digest: None })
        }
        Act::Workload { name, millis, placed, lasts } => {
            let link = json!([{ "rate": "4MB/s", "burst": "64kB" }]);
            let mut workload = json!({
                "name": format!("w{name}"), "client": "r0h0", "slo": { "percentile": 99, "latency": format!("{millis}ms") },
                "curves": { "network-in": link, "storage": [{ "rate": "20%", "burst": "4ms" }] },
            });
            if placed {
                workload["server"] = format!("r{name}h1").into();
            }
            let spec = WorkloadSpec { workload: workload.as_object().expect("an object").clone() };
            let spec = if placed { PlacementSpec::Workload(spec) } else { PlacementSpec::Volumes(spec) };
            let lasts = lasts.map(|seconds| Nanos(u64::from(seconds) * SECOND.0));
            Step::Place(Placement { spec, caller: None, lasts, reference: None, digest: None })
        }
        Act::End(which) => Step::Release(u64::from(which) % next.max(1)),
    })
}

fn placement(cluster: &Cluster, act: Act, now: Nanos) -> Placement {
    match step(cluster, act, now, 0) {
        Some(Step::Place(placement)) => placement,
        _ => panic!("no placement"),
    }
}

fn report(cluster: &Cluster, act: Act, now: Nanos) -> Report {
    match step(cluster, act, now, 0) {
        Some(Step::Report(report)) => report,
        _ => panic!("no report"),
    }
}

/// Carries out the jobs of the coordinator.
fn run_jobs(coordinator: &mut Coordinator<Numbers>, now: Nanos) {
    loop {
        let Some(job) = coordinator.jobs().next() else { return };
        coordinator.finish_job(now, job.run());
    }
}

fn in_memory_record(coordinator: &mut Coordinator<Numbers>, now: Nanos, id: u64) -> Option<DecisionRecord> {
    match coordinator.decision(now, DecisionId(id)) {
        Ok(DecisionLookup::InMemory(record)) => {
            Some(DecisionRecord { entries: Vec::new(), ..(*record).clone() })
        }
        Ok(DecisionLookup::Evicted(_)) | Err(DecisionError::NotFound(_)) => None,
        other => panic!("no decision: {other:?}"),
    }
}

/// Makes the owner of this store the leader.
fn as_leader(mut store: Box<dyn Store>) -> Box<dyn Store> {
    assert!(matches!(store.renew_lease("here"), Ok(Leadership::Leader { .. })));
    store
}

fn counts(coordinator: &mut Coordinator<Numbers>) -> Vec<(u32, u32)> {
    let NetworkSnapshot { hosts, .. } = coordinator.snapshot();
    hosts.iter().map(|host| (host.tasks, host.replicas)).collect()
}

/// Applies acts to a coordinator. `each` receives the changes of each act, and stores them. Returns the last time and
/// the number of acts.
fn apply_acts(
    cluster: &Cluster,
    coordinator: &mut Coordinator<Numbers>,
    acts: &[Act],
    mut each: impl FnMut(Nanos, &[Change]),
) -> (Nanos, u64) {
    let mut now = Nanos(10 * SECOND.0);
    let mut next = 0;
    for &act in acts {
        now = now.plus(Nanos(match act {
            Act::Wait(millis) => u64::from(millis) * 1_000_000,
            _ => 1_000_000,
        }));
        match step(cluster, act, now, next) {
            Some(Step::Report(report)) => drop(coordinator.report(now, report)),
            Some(Step::Place(placement)) => coordinator.place(now, placement, 0),
            Some(Step::Release(id)) => drop(coordinator.release(now, DecisionId(id))),
            Some(Step::Get(_)) | None => coordinator.wake(now),
        }
        run_jobs(coordinator, now);
        drop(place_replies(coordinator));
        next += 1;
        let changes: Vec<Change> = coordinator.changes().collect();
        each(now, &changes);
    }
    (now, next)
}

/// Asserts that a coordinator resumed from the store has the same decisions, counts of tasks and copies, and
/// reservations as the original. It decides one more workload like the original, and its ids continue.
fn check_resume(acts: &[Act], mut store: Box<dyn Store>) -> TestCaseResult {
    let cluster = cluster(CLUSTER);
    let limits = Limits { decisions: 8, ..Limits::default() };
    let mut before = coordinator(&cluster, limits);
    let (now, next) = apply_acts(&cluster, &mut before, acts, |_, changes| {
        store.apply(changes).expect("the store accepts the changes");
    });
    let mut after = coordinator(&cluster, limits);
    let state = store.load(limits.decisions, limits.keys).expect("the store is readable");
    after.resume(state, LATER).expect("the state fits the cluster");
    prop_assert_eq!(after.changes().collect::<Vec<Change>>(), Vec::new());
    for id in 0..next {
        prop_assert_eq!(
            in_memory_record(&mut after, now, id),
            in_memory_record(&mut before, now, id),
            "decision {}",
            id
        );
    }
    let next_id = |coordinator: &mut Coordinator<Numbers>| {
        let tasks = placement(&cluster, Act::Tasks { count: 1, lasts: None }, now);
        let later = now.plus(SECOND);
        coordinator.report(later, report(&cluster, Act::Report(1), later)).expect("a valid report");
        decision_of(place(coordinator, later, tasks, 0).pop().expect("a reply").1).0.id
    };
    let last = (0..next).rev().find(|&id| in_memory_record(&mut before, now, id).is_some());
    prop_assert_eq!(counts(&mut after), counts(&mut before));
    let reserved = |coordinator: &mut Coordinator<Numbers>| -> Vec<Load> {
        coordinator.snapshot().links.iter().map(|link| link.reserved).collect()
    };
    prop_assert_eq!(reserved(&mut after), reserved(&mut before));
    let one_more = |coordinator: &mut Coordinator<Numbers>| {
        let act = Act::Workload { name: 9, millis: 30, placed: false, lasts: None };
        coordinator.place(now, placement(&cluster, act, now), 0);
        run_jobs(coordinator, now);
        let reply = place_replies(coordinator).pop().expect("a reply").1;
        reply.map(|lookup| decision_of(Ok(lookup)).0.details.promise.clone())
    };
    let mut resumed = coordinator(&cluster, limits);
    let state = store.load(limits.decisions, limits.keys).expect("the store is readable");
    resumed.resume(state, LATER).expect("the state fits the cluster");
    prop_assert_eq!(one_more(&mut resumed), one_more(&mut before));
    let id = next_id(&mut after);
    prop_assert!(last.is_none_or(|last| id > DecisionId(last)), "id {} after {:?}", id, last);
    Ok(())
}

proptest! {
    #[test]
    fn a_coordinator_resumes_from_a_file(acts in proptest::collection::vec(act(), 1..40)) {
        check_resume(&acts, as_leader(Box::new(Sqlite::in_memory().expect("an in-memory store opens"))))?;
    }
}

/// Reply of a coordinator to a step. `find` reads evicted decisions. Fields that differ between coordinators,
/// the epoch and the ledger entries, are blanked.
fn reply_to_step(
    coordinator: &mut Coordinator<Numbers>,
    now: Nanos,
    step: Step,
    find: impl FnOnce(&mut Coordinator<Numbers>, DecisionId) -> Option<DecisionRecord>,
) -> StepReply {
    let bare = |record: Arc<DecisionRecord>| {
        let details = DecisionDetails { epoch: Epoch::default(), ..record.details.clone() };
        Arc::new(DecisionRecord { entries: Vec::new(), details, ..(*record).clone() })
    };
    let stored =
        |coordinator: &mut _, id, found: fn(Arc<DecisionRecord>) -> StepReply, missing: StepReply| {
            find(coordinator, id).map_or(missing, |record| found(bare(Arc::new(record))))
        };
    match step {
        Step::Report(report) => {
            let summary = coordinator.report(now, report).expect("a valid report");
            StepReply::Reported(ReportSummary { epoch: Epoch::default(), ..summary })
        }
        Step::Place(placement) => {
            coordinator.place(now, placement, 0);
            run_jobs(coordinator, now);
            match place_replies(coordinator).pop().expect("each placement gets a reply").1 {
                Ok(DecisionLookup::InMemory(Placed { record, repeated })) => {
                    StepReply::Placed(bare(record), repeated)
                }
                Ok(DecisionLookup::Evicted(id)) => {
                    let missing = StepReply::NotPlaced(PlaceError::Forgotten(id));
                    stored(coordinator, id, |record| StepReply::Placed(record, true), missing)
                }
                Err(error) => StepReply::NotPlaced(error),
            }
        }
        Step::Release(id) => match coordinator.release(now, DecisionId(id)) {
            Ok(DecisionLookup::InMemory(record)) => StepReply::Decision(bare(record)),
            Ok(DecisionLookup::Evicted(id)) => {
                stored(coordinator, id, StepReply::Decision, StepReply::NoDecision)
            }
            Err(_) => StepReply::NoDecision,
        },
        Step::Get(id) => match coordinator.decision(now, DecisionId(id)) {
            Ok(DecisionLookup::InMemory(record)) => StepReply::Decision(bare(record)),
            Ok(DecisionLookup::Evicted(id)) => {
                stored(coordinator, id, StepReply::Decision, StepReply::NoDecision)
            }
            Err(_) => StepReply::NoDecision,
        },
    }
}

/// Asserts that a coordinator with few decisions in memory gives the same replies, with its store, as a coordinator
/// with all decisions in memory.
fn check_answers(acts: &[Act], mut store: Box<dyn Store>) -> TestCaseResult {
    let cluster = cluster(CLUSTER);
    let mut few = coordinator(&cluster, Limits { decisions: 2, ..Limits::default() });
    let mut all = coordinator(&cluster, Limits::default());
    let mut find = |coordinator: &mut Coordinator<Numbers>, id| {
        let changes: Vec<Change> = coordinator.changes().collect();
        store.apply(&changes).expect("the store accepts the changes");
        store.decisions(&[id]).expect("the store is readable").pop()
    };
    let mut now = Nanos(10 * SECOND.0);
    for (&act, next) in acts.iter().zip(0..) {
        // Entries of evicted decisions expire after 21 s; all acts happen earlier.
        now = now.plus(Nanos(match act {
            Act::Wait(millis) => u64::from(millis) * 100_000,
            _ => 1_000_000,
        }));
        let Some(step) = step(&cluster, act, now, next) else { continue };
        let reply = reply_to_step(&mut few, now, step.clone(), &mut find);
        prop_assert_eq!(reply, reply_to_step(&mut all, now, step, |_, _| None), "{:?}", act);
    }
    for id in 0..=acts.len() as u64 {
        let reply = reply_to_step(&mut few, now, Step::Get(id), &mut find);
        prop_assert_eq!(reply, reply_to_step(&mut all, now, Step::Get(id), |_, _| None));
    }
    Ok(())
}

proptest! {
    #[test]
    fn few_decisions_in_memory_give_the_same_answers_with_a_file(
        acts in proptest::collection::vec(act(), 1..40),
    ) {
        check_answers(&acts, as_leader(Box::new(Sqlite::in_memory().expect("an in-memory store opens"))))?;
    }
}

/// Runs a property on a few cases, each with its own schema of one database.
fn in_postgres<S: Strategy>(cases: u32, strategy: S, property: impl Fn(S::Value, &Shared) -> TestCaseResult) {
    let Some(server) = postgres::Server::shared() else { return };
    let database = server.database();
    let schemas = std::cell::Cell::new(0);
    let mut runner = TestRunner::new(ProptestConfig { cases, ..ProptestConfig::default() });
    let result = runner.run(&strategy, |value| {
        schemas.set(schemas.get() + 1);
        let schema = format!("schema_{}", schemas.get());
        server.ask(&database, &format!("CREATE SCHEMA {schema}")).expect("the statement succeeds");
        let url = format!("{}&options=-csearch_path%3D{schema}", server.url(&database));
        property(value, &Shared(Database::read(&url, None).expect("a valid URL")))
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

/// A database that stores share.
struct Shared(Database);

impl Shared {
    fn store(&self) -> Box<dyn Store> {
        Box::new(
            Postgres::open(self.0.clone(), Durability::Process, 1_000_000)
                .expect("the database is available"),
        )
    }
}

#[test]
fn a_coordinator_resumes_from_postgres() {
    in_postgres(8, proptest::collection::vec(act(), 1..40), |acts, shared| {
        check_resume(&acts, as_leader(shared.store()))
    });
}

#[test]
fn few_decisions_in_memory_give_the_same_answers_with_postgres() {
    in_postgres(8, proptest::collection::vec(act(), 1..40), |acts, shared| {
        check_answers(&acts, as_leader(shared.store()))
    });
}

#[test]
fn both_stores_agree_and_a_follower_has_the_state_of_the_leader() {
    let acts = proptest::collection::vec((act(), any::<bool>()), 1..40);
    in_postgres(8, acts, |acts, shared| {
        let cluster = cluster(CLUSTER);
        let limits = Limits { decisions: 8, ..Limits::default() };
        let (mut leading, mut following) = (coordinator(&cluster, limits), coordinator(&cluster, limits));
        let mut file = as_leader(Box::new(Sqlite::in_memory().expect("an in-memory store opens")));
        let (mut store, mut followed) = (as_leader(shared.store()), shared.store());
        following
            .resume(followed.load(limits.decisions, limits.keys).expect("the store is readable"), LATER)
            .expect("the state fits the cluster");
        let mut follow = |now| match followed.renew_lease("there") {
            Ok(Leadership::Follower { leader, updates: Updates::Changes(changes) }) => {
                assert_eq!(leader.as_deref(), Some("here"));
                changes
                    .into_iter()
                    .for_each(|change| following.follow(now, change).expect("the state fits the cluster"));
            }
            other => panic!("not a follower: {other:?}"),
        };
        let (acts, looks): (Vec<Act>, Vec<bool>) = acts.into_iter().unzip();
        let (mut looks, mut pending) = (looks.into_iter(), Vec::new());
        let (now, next) = apply_acts(&cluster, &mut leading, &acts, |now, changes| {
            file.apply(changes).expect("the store accepts the changes");
            pending.extend_from_slice(changes);
            if looks.next() == Some(true) {
                store.apply(&std::mem::take(&mut pending)).expect("the store accepts the changes");
                follow(now);
            }
        });
        store.apply(&pending).expect("the store accepts the changes");
        follow(now);
        prop_assert_eq!(
            store.load(8, 100).expect("the store is readable"),
            file.load(8, 100).expect("the store is readable")
        );
        for id in 0..next {
            prop_assert_eq!(
                in_memory_record(&mut following, now, id),
                in_memory_record(&mut leading, now, id),
                "decision {}",
                id
            );
        }
        prop_assert_eq!(counts(&mut following), counts(&mut leading));
        Ok(())
    });
}

/// Tasks that make the uplinks of their racks hot, until moves are advised. All changes are stored.
fn wait_for_advised_moves(
    cluster: &Cluster,
    coordinator: &mut Coordinator<Numbers>,
    store: &mut dyn Store,
) -> (Nanos, Vec<Migration>) {
    let fabric = &cluster.fabric;
    let mut now = Nanos(10 * SECOND.0);
    let text = r#"{"tasks": [{"name": "t", "tolerant": true, "egress": {"mean": "1Mbps"}}]}"#;
    let app = App::from_text("app", text, &Files::default()).expect("a valid app");
    coordinator.report(now, report(cluster, Act::Report(0), now)).expect("a valid report");
    for _ in 0..8 {
        let spec = PlacementSpec::Tasks(TasksSpec::of(&app, None, Vec::new()));
        place(
            coordinator,
            now,
            Placement { spec, caller: None, lasts: None, reference: None, digest: None },
            0,
        );
    }
    for _ in 0..30 {
        now = now.plus(SECOND);
        let busy: Vec<u64> = (0..8).filter(|&id| host_of(coordinator, now, id).starts_with("r0")).collect();
        let rate = Rates { egress_bps: 500_000_000, ingress_bps: 0 };
        let tasks = busy.iter().map(|&app| (TaskId { app, index: 0 }, rate)).collect();
        let mut report = report(cluster, Act::Report(0), now);
        let uplink = fabric.resource("r0:uplink").expect("a link");
        for sample in &mut report.loads {
            sample.load = Load(if sample.resource == uplink { 1_400_000_000 } else { 0 });
        }
        coordinator.report(now, Report { tasks, ..report }).expect("a valid report");
        let changes: Vec<Change> = coordinator.changes().collect();
        store.apply(&changes).expect("the store accepts the changes");
        let advised = migrations(coordinator, now);
        if !advised.is_empty() {
            return (now, advised);
        }
    }
    panic!("no move was advised");
}

fn host_of(coordinator: &mut Coordinator<Numbers>, now: Nanos, id: u64) -> String {
    in_memory_record(coordinator, now, id).map(|record| record.details.hosts[0].clone()).unwrap_or_default()
}

fn migrations(coordinator: &mut Coordinator<Numbers>, now: Nanos) -> Vec<Migration> {
    coordinator.migrations(now, MigrationQuery { state: None, before: None, limit: 100 })
}

#[test]
fn advised_moves_are_stored_answered_and_undone() {
    check_moves(as_leader(Box::new(Sqlite::in_memory().expect("an in-memory store opens"))), None);
}

#[test]
fn advised_moves_are_stored_in_postgres_and_reach_followers() {
    let Some(server) = postgres::Server::shared() else { return };
    let database = server.database();
    let shared = Shared(Database::read(&server.url(&database), None).expect("a valid URL"));
    check_moves(as_leader(shared.store()), Some(shared.store()));
}

/// Asserts that moves are stored, answered and undone, at a coordinator and at one resumed from its store. `follower`
/// is the store of a follower, if the store can be shared.
fn check_moves(mut store: Box<dyn Store>, follower: Option<Box<dyn Store>>) {
    let (cluster, limits) = (cluster(CLUSTER), Limits::default());
    let mut before = coordinator(&cluster, limits);
    let mut following = coordinator(&cluster, limits).into_follower();
    let follower = follower.map(|mut store| {
        following
            .resume(store.load(100, 100).expect("the store is readable"), LATER)
            .expect("the state fits the cluster");
        store
    });
    let (now, advised) = wait_for_advised_moves(&cluster, &mut before, &mut *store);
    if let Some(mut store) = follower {
        let Ok(Leadership::Follower { updates: Updates::Changes(changes), .. }) = store.renew_lease("there")
        else {
            panic!("not a follower")
        };
        changes
            .into_iter()
            .for_each(|change| following.follow(now, change).expect("the state fits the cluster"));
        assert_eq!(migrations(&mut following, now), advised);
        assert_eq!(counts(&mut following), counts(&mut before));
        // Only the leader expires moves without an answer.
        following.wake(now.plus(Nanos(400 * SECOND.0)));
        assert_eq!(following.changes().count(), 0);
        assert_eq!(migrations(&mut following, now), advised);
    }
    let first = advised[0].clone();
    assert_eq!((first.state, first.link.as_str()), (MigrationState::Advised, "r0:uplink"));
    assert_eq!(host_of(&mut before, now, first.decision.0), first.to);
    // A resumed coordinator knows the moves and the task's destination.
    let mut after = coordinator(&cluster, limits);
    after
        .resume(store.load(100, 100).expect("the store is readable"), LATER)
        .expect("the state fits the cluster");
    assert_eq!(migrations(&mut after, now), advised);
    assert_eq!(host_of(&mut after, now, first.decision.0), first.to);
    let answer = |coordinator: &mut Coordinator<Numbers>, answer| coordinator.answer(now, first.id, answer);
    // One executor takes a move, and has the time limit twice; a failed move is undone.
    let mut executed = coordinator(&cluster, limits);
    executed
        .resume(store.load(100, 100).expect("the store is readable"), LATER)
        .expect("the state fits the cluster");
    let taken = |name: &str| MigrationAnswer::Taken(name.to_owned());
    for _ in 0..2 {
        let one = answer(&mut executed, taken("a")).expect("the move is open");
        assert_eq!((one.state, one.reason.as_deref()), (MigrationState::Taken, Some("a")));
    }
    let changes: Vec<Change> = executed.changes().collect();
    let taken_once = |change: &&Change| matches!(change, Change::Migration(one) if one.id == first.id);
    assert_eq!(changes.iter().filter(taken_once).count(), 1, "a repeated answer changes nothing");
    assert_eq!(answer(&mut executed, taken("b")), Err(AnswerError::Answered(MigrationState::Taken)));
    executed.wake(now.plus(Nanos(301 * SECOND.0)));
    assert_eq!(host_of(&mut executed, now, first.decision.0), first.to);
    let failed = answer(&mut executed, MigrationAnswer::Failed(Some("no room".to_owned())));
    assert_eq!(failed.map(|one| one.state), Ok(MigrationState::Failed));
    assert_eq!(host_of(&mut executed, now, first.decision.0), first.from);
    // A rejected move is undone, a completed one stays, and an answer is final.
    let rejection = MigrationAnswer::Refused(Some("the task is busy".to_owned()));
    assert!(answer(&mut after, rejection.clone()).is_ok());
    assert_eq!(host_of(&mut after, now, first.decision.0), first.from);
    assert!(answer(&mut after, rejection).is_ok());
    assert_eq!(
        answer(&mut after, MigrationAnswer::Done),
        Err(AnswerError::Answered(MigrationState::Refused))
    );
    assert!(answer(&mut before, MigrationAnswer::Done).is_ok());
    assert_eq!(host_of(&mut before, now, first.decision.0), first.to);
    // The other moves get no answer.
    let later = now.plus(Nanos(301 * SECOND.0));
    after.wake(later);
    assert!(migrations(&mut after, later).iter().all(|migration| migration.state != MigrationState::Advised));
    assert_eq!(after.answer(later, 99, MigrationAnswer::Done), Err(AnswerError::NotFound(99)));
}

/// Statements that insert thousands of rows. One decision, one move and one version among these rows must stay.
const ROWS: [&str; 4] = [
    "WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < 10000)
    INSERT INTO decisions SELECT id, id, 'replicas', NULL, NULL, NULL, '{}', NULL, NULL FROM n",
    "INSERT INTO commitments VALUES (5, '[]')",
    "WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < 100500)
    INSERT INTO migrations SELECT id, id, 0, 0, '', NULL, '', '', '', CASE id WHEN 3 THEN 'advised' ELSE 'done' END, NULL
    FROM n",
    "WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id < 1500)
    INSERT INTO clusters SELECT id, id, CASE id WHEN 7 THEN 'file' ELSE 'request' END, '{}' FROM n",
];

/// Asserts that a store with a limit of 100 decisions deletes old rows in steps. `query` runs a query that returns a
/// number.
fn check_cleanup(mut store: Box<dyn Store>, query: impl Fn(&str) -> i64) {
    let job = |name: String| Change::Job(name, Default::default());
    let count = |rows: &str| query(&format!("SELECT count(*) FROM {rows}"));
    store.apply(&[job("first".to_owned())]).expect("the store accepts the change");
    assert_eq!(count("decisions"), 4_000, "a commit deletes 6,000 rows");
    assert_eq!((count("migrations"), count("migrations WHERE id > 500 OR id = 3")), (100_001, 100_001));
    assert_eq!((count("clusters"), count("clusters WHERE version > 500 OR version = 7")), (1_001, 1_001));
    let many: Vec<Change> = (0..1_000).map(|name| job(format!("new {name}"))).collect();
    store.apply(&many).expect("the store accepts the changes");
    assert_eq!(count("decisions"), 4_000, "cleanup does not run at every commit");
    store.apply(&[job("last".to_owned())]).expect("the store accepts the change");
    assert_eq!((count("decisions"), count("jobs")), (102, 1_002), "jobs stay up to their limit");
    assert_eq!(count("decisions WHERE id >= 9900 OR id = 5"), 102);
}

#[test]
fn a_file_deletes_old_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let store = as_leader(Box::new(Sqlite::open(&path, Durability::Process, 100).expect("a new file")));
    let connection = rusqlite::Connection::open(&path).expect("the file exists");
    ROWS.iter().for_each(|rows| connection.execute_batch(rows).expect("the statement succeeds"));
    check_cleanup(store, |query| connection.query_row(query, [], |row| row.get(0)).expect("a number"));
}

#[test]
fn postgres_deletes_old_rows() {
    let Some(server) = postgres::Server::shared() else { return };
    let database = server.database();
    let url = Database::read(&server.url(&database), None).expect("a valid URL");
    let store = as_leader(Box::new(
        Postgres::open(url, Durability::Process, 100).expect("the database is available"),
    ));
    ROWS.iter().for_each(|rows| drop(server.ask(&database, rows).expect("the statement succeeds")));
    check_cleanup(store, |query| {
        server.ask(&database, query).expect("the server answers").parse().expect("a number")
    });
}

#[test]
fn the_most_recent_of_many_clients_are_loaded() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let mut store =
        as_leader(Box::new(Sqlite::open(&path, Durability::Process, 1_000_000).expect("a new file")));
    let (cluster, now) = (cluster(CLUSTER), Nanos(10 * SECOND.0));
    let mut before = coordinator(&cluster, Limits::default());
    let block = |client: &str, sequence| {
        let act = Act::Block { size: 1 << 20, key: None };
        let caller = Some(Caller::Client { client: client.into(), sequence });
        Placement { caller, ..placement(&cluster, act, now) }
    };
    before.report(now, report(&cluster, Act::Report(0), now)).expect("a valid report");
    place(&mut before, now, block("a", 7), 0);
    store.apply(&before.changes().collect::<Vec<Change>>()).expect("the store accepts the changes");
    let connection = rusqlite::Connection::open(&path).expect("the file exists");
    let copies = "WITH RECURSIVE n (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM n WHERE number < 25000)
        INSERT INTO decisions SELECT number, at, kind, 'client ' || (100000 + number), 7, NULL, shown, expires, released
        FROM n, decisions WHERE id = 0";
    connection.execute_batch(copies).expect("the statement succeeds");
    let state = store.load(10, 10).expect("the store is readable");
    assert_eq!(state.callers.len(), 20_000);
    let mut after = coordinator(&cluster, Limits { decisions: 10, clients: 100, ..Limits::default() });
    after.resume(state, LATER).expect("the state fits the cluster");
    for number in 24_991..=25_000_u64 {
        let reply = reply_to_step(
            &mut after,
            now,
            Step::Place(block(&format!("client {}", 100_000 + number), 7)),
            |_, _| None,
        );
        let StepReply::Placed(record, true) = reply else { panic!("{number}: {reply:?}") };
        assert_eq!(record.id, DecisionId(number));
    }
}

#[test]
fn a_file_belongs_to_one_service_at_a_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let open = || Sqlite::open(&path, Durability::Process, 10);
    let first = open().expect("a new file");
    let Err(StoreError::Database(problem)) = open() else { panic!("two services have opened it") };
    assert!(problem.contains("another service uses this store"), "{problem}");
    std::os::unix::fs::symlink(&path, folder.path().join("link.db")).expect("a link");
    let linked = Sqlite::open(&folder.path().join("link.db"), Durability::Process, 10);
    assert!(linked.is_err(), "the same file under another name");
    drop(first);
    drop(open().expect("the same file"));
    std::fs::write(folder.path().join("text"), "this file is a text of some length, and not a database")
        .expect("a file");
    let text = Sqlite::open(&folder.path().join("text"), Durability::Process, 10);
    assert!(matches!(text, Err(StoreError::Database(_))));
}
