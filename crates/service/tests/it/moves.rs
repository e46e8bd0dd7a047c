//! Advised moves: their states, answers, executors and time limits, before and after a restart, and the modes of moves.

use leeward_engine::Rates;
use leeward_fabric::input::Files;
use leeward_fabric::{Cluster, Load, Nanos};
use leeward_placement::tasks::{App, TaskId};
use leeward_records::{
    Change, Migration, MigrationAnswer, MigrationState, Mode, Modes, MoveOutcome, PlacementSpec, TasksSpec,
};
use leeward_service::{AnswerError, Coordinator, Limits, MigrationQuery, Placement, Report};
use leeward_store::{Database, Leadership, Sqlite, Store, Updates};
use leeward_testing::clusters::cluster;
use leeward_testing::postgres;

use crate::persistence::{
    Act, CLUSTER, LATER, SECOND, Shared, as_leader, coordinator, counts, in_memory_record, report,
};
use crate::support::{Numbers, place};

/// Time limit for the first answer to a move.
const LIMIT: u64 = 300;

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

/// A time some seconds later.
fn after(now: Nanos, seconds: u64) -> Nanos {
    now.plus(Nanos(seconds * SECOND.0))
}

/// Resumes a coordinator from a store.
fn resume(coordinator: &mut Coordinator<Numbers>, store: &mut dyn Store) {
    let state = store.load(100, 100).expect("the store is readable");
    coordinator.resume(state, LATER).expect("the state fits the cluster");
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
        resume(&mut following, &mut *store);
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
        following.wake(after(now, LIMIT + 100));
        assert_eq!(following.changes().count(), 0);
        assert_eq!(migrations(&mut following, now), advised);
    }
    let first = advised[0].clone();
    assert_eq!((first.state, first.link.as_str()), (MigrationState::Advised, "r0:uplink"));
    assert_eq!(host_of(&mut before, now, first.decision.0), first.to);
    // A resumed coordinator knows the moves and the task's destination.
    let mut resumed = coordinator(&cluster, limits);
    resume(&mut resumed, &mut *store);
    assert_eq!(migrations(&mut resumed, now), advised);
    assert_eq!(host_of(&mut resumed, now, first.decision.0), first.to);
    // A rejected move is undone, a completed one stays, and an answer is final.
    let rejection = MigrationAnswer::anonymous(MoveOutcome::Refused(Some("the task is busy".to_owned())));
    assert!(resumed.answer(now, first.id, rejection.clone()).is_ok());
    assert_eq!(host_of(&mut resumed, now, first.decision.0), first.from);
    assert!(resumed.answer(now, first.id, rejection).is_ok());
    let done = MigrationAnswer::anonymous(MoveOutcome::Done);
    assert_eq!(
        resumed.answer(now, first.id, done.clone()),
        Err(AnswerError::Answered(MigrationState::Refused))
    );
    assert!(before.answer(now, first.id, done.clone()).is_ok());
    assert_eq!(host_of(&mut before, now, first.decision.0), first.to);
    // The other moves get no answer.
    let later = after(now, LIMIT + 1);
    resumed.wake(later);
    assert!(migrations(&mut resumed, later).iter().all(|one| one.state != MigrationState::Advised));
    assert_eq!(resumed.answer(later, 99, done), Err(AnswerError::NotFound(99)));
    check_executors(&cluster, store, now, &first);
}

/// Asserts that one executor takes a move, has the time limit twice, and stays known after the end of the move and after
/// a restart.
fn check_executors(cluster: &Cluster, mut store: Box<dyn Store>, now: Nanos, advised: &Migration) {
    let answer = |coordinator: &mut Coordinator<Numbers>, outcome, executor: Option<&str>| {
        let executor = executor.map(str::to_owned);
        coordinator.answer(now, advised.id, MigrationAnswer { outcome, executor })
    };
    let mut taken = coordinator(cluster, Limits::default());
    resume(&mut taken, &mut *store);
    for _ in 0..2 {
        let one = answer(&mut taken, MoveOutcome::Taken, Some("a")).expect("the move is open");
        assert_eq!(
            (one.state, one.executor.as_deref(), one.reason),
            (MigrationState::Taken, Some("a"), None)
        );
    }
    let changes: Vec<Change> = taken.changes().collect();
    let taken_once = |change: &&Change| matches!(change, Change::Migration(one) if one.id == advised.id);
    assert_eq!(changes.iter().filter(taken_once).count(), 1, "a repeated answer changes nothing");
    store.apply(&changes).expect("the store accepts the changes");
    for outcome in [MoveOutcome::Taken, MoveOutcome::Done, MoveOutcome::Failed(None)] {
        let other = answer(&mut taken, outcome.clone(), Some("b"));
        assert_eq!(other, Err(AnswerError::OtherExecutor("a".to_owned())), "{outcome:?}");
    }
    // The executor may leave out its name, and an operator has none.
    for executor in [Some("a"), None] {
        let mut coordinator = coordinator(cluster, Limits::default());
        resume(&mut coordinator, &mut *store);
        let failed = answer(&mut coordinator, MoveOutcome::Failed(Some("no room".to_owned())), executor);
        let failed = failed.expect("the executor may end the move");
        assert_eq!((failed.state, failed.executor.as_deref()), (MigrationState::Failed, Some("a")));
        assert_eq!(failed.reason.as_deref(), Some("no room"));
        assert_eq!(host_of(&mut coordinator, now, advised.decision.0), advised.from);
    }
    // After the second time limit the move is undone.
    let state = |coordinator: &mut Coordinator<Numbers>, now| {
        let all = migrations(coordinator, now);
        all.into_iter().find(|one| one.id == advised.id).expect("the move is in memory")
    };
    let nearly = after(now, 2 * LIMIT - 1);
    assert_eq!(state(&mut taken, nearly).state, MigrationState::Taken);
    assert_eq!(host_of(&mut taken, nearly, advised.decision.0), advised.to);
    let expired = state(&mut taken, after(now, 2 * LIMIT));
    assert_eq!((expired.state, expired.executor.as_deref()), (MigrationState::Expired, Some("a")));
    assert_eq!(expired.reason, None, "the name of an executor is no reason");
    assert_eq!(host_of(&mut taken, after(now, 2 * LIMIT), advised.decision.0), advised.from);
    store.apply(&taken.changes().collect::<Vec<Change>>()).expect("the store accepts the changes");
    let mut again = coordinator(cluster, Limits::default());
    resume(&mut again, &mut *store);
    assert_eq!(state(&mut again, after(now, 2 * LIMIT)), expired);
}

#[test]
fn the_end_of_a_move_that_nobody_took_keeps_the_name_of_its_executor() {
    let mut store = as_leader(Box::new(Sqlite::in_memory().expect("an in-memory store opens")));
    let cluster = cluster(CLUSTER);
    let mut coordinator = coordinator(&cluster, Limits::default());
    let (now, advised) = wait_for_advised_moves(&cluster, &mut coordinator, &mut *store);
    let done =
        |executor: &str| MigrationAnswer { outcome: MoveOutcome::Done, executor: Some(executor.to_owned()) };
    let ended = coordinator.answer(now, advised[0].id, done("hook")).expect("the move is open");
    assert_eq!((ended.state, ended.executor.as_deref()), (MigrationState::Done, Some("hook")));
    let other = coordinator.answer(now, advised[0].id, done("b"));
    assert_eq!(other, Err(AnswerError::OtherExecutor("hook".to_owned())));
}

#[test]
fn moves_that_are_turned_off_are_undone_at_once_unless_an_executor_has_taken_them() {
    type Switch = fn(&mut Coordinator<Numbers>, Nanos);
    let turn_off: [(&str, Switch); 3] = [
        ("off switch", |coordinator, now| drop(coordinator.set_off_switch(now, true))),
        ("off", |coordinator, now| drop(coordinator.set_file_modes(now, Modes::all(Mode::Off)))),
        ("shadow", |coordinator, now| drop(coordinator.set_file_modes(now, Modes::all(Mode::Shadow)))),
    ];
    for (way, turn_off) in turn_off {
        for take in [false, true] {
            let mut store = as_leader(Box::new(Sqlite::in_memory().expect("an in-memory store opens")));
            let cluster = cluster(CLUSTER);
            let mut coordinator = coordinator(&cluster, Limits::default());
            let (now, advised) = wait_for_advised_moves(&cluster, &mut coordinator, &mut *store);
            let first = &advised[0];
            if take {
                let answer = MigrationAnswer { outcome: MoveOutcome::Taken, executor: Some("a".to_owned()) };
                coordinator.answer(now, first.id, answer).expect("the move is open");
            }
            turn_off(&mut coordinator, now);
            let changes: Vec<Change> = coordinator.changes().collect();
            store.apply(&changes).expect("the store accepts the changes");
            let all = migrations(&mut coordinator, now);
            assert!(all.iter().all(|one| one.state != MigrationState::Advised), "{way}: {all:?}");
            let one = all.iter().find(|one| one.id == first.id).expect("the move is in memory");
            let host = host_of(&mut coordinator, now, first.decision.0);
            if take {
                assert_eq!((one.state, &host), (MigrationState::Taken, &first.to), "{way}");
            } else {
                assert_eq!((one.state, &host), (MigrationState::Expired, &first.from), "{way}");
                assert_eq!(one.reason.as_deref(), Some("moves were turned off"), "{way}");
            }
        }
    }
}

#[test]
fn a_service_that_starts_with_moves_off_undoes_the_moves_advised_before() {
    let mut store = as_leader(Box::new(Sqlite::in_memory().expect("an in-memory store opens")));
    let cluster = cluster(CLUSTER);
    let mut before = coordinator(&cluster, Limits::default());
    let (now, advised) = wait_for_advised_moves(&cluster, &mut before, &mut *store);
    let mut started = coordinator(&cluster, Limits::default()).with_modes(Modes::default(), true);
    resume(&mut started, &mut *store);
    let all = migrations(&mut started, now);
    assert!(all.iter().all(|one| one.state == MigrationState::Expired), "{all:?}");
    assert_eq!(host_of(&mut started, now, advised[0].decision.0), advised[0].from);
}
