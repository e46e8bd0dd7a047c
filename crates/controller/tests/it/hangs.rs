//! A store that fails or hangs: callers get an error, and the service resumes when the store recovers.

#![allow(clippy::disallowed_methods, reason = "the tests measure durations")]

use crate::support;
use leeward_testing::clusters::RACKS_4X3;
use leeward_testing::postgres;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::support::{Server, frozen_clock, labels, policies, service_on};
use leeward_controller::Service;
use leeward_ledger::LedgerSettings;
use leeward_records::{Change, Clock, DecisionId, DecisionRecord, State};
use leeward_service::NewCluster;
use leeward_store::{Database, Durability, Kind, Leadership, Postgres, Reader, Sqlite, Store, StoreError};
use serde_json::{Value, json};

const POLICY: &str = "{without_telemetry: default}";

/// Faults to inject into a store.
#[derive(Default)]
struct Faults {
    /// Two flags: true if writes fail, and true if reads fail.
    fails: Mutex<(bool, bool)>,
    /// The store hangs while this lock is held.
    hangs: Mutex<()>,
    /// Decisions stored as ended.
    ended: Mutex<Vec<DecisionId>>,
}

impl Faults {
    fn fail(&self, writing: bool, reading: bool) {
        *self.fails.lock().unwrap_or_else(PoisonError::into_inner) = (writing, reading);
    }

    fn hang(&self) -> MutexGuard<'_, ()> {
        self.hangs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, is_affected: fn(&(bool, bool)) -> bool) -> Result<(), StoreError> {
        drop(self.hang());
        match is_affected(&self.fails.lock().unwrap_or_else(PoisonError::into_inner)) {
            true => Err(StoreError::Database("database or disk is full".to_owned())),
            false => Ok(()),
        }
    }
}

/// A store with injected faults.
struct FaultyStore {
    store: Sqlite,
    faults: Arc<Faults>,
}

impl Store for FaultyStore {
    fn kind(&self) -> Kind {
        self.store.kind()
    }

    fn renew_lease(&mut self, address: &str) -> Result<Leadership, StoreError> {
        self.faults.check(|(writing, _)| *writing)?;
        self.store.renew_lease(address)
    }

    fn load(&mut self, decisions: usize, keys: usize) -> Result<State, StoreError> {
        self.faults.check(|(_, reading)| *reading)?;
        self.store.load(decisions, keys)
    }

    fn decisions(&mut self, ids: &[DecisionId]) -> Result<Vec<DecisionRecord>, StoreError> {
        self.faults.check(|(_, reading)| *reading)?;
        self.store.decisions(ids)
    }

    fn reader(&self) -> Result<Reader, StoreError> {
        self.store.reader()
    }

    fn apply(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        self.faults.check(|(writing, _)| *writing)?;
        let ended = changes.iter().filter_map(|change| match change {
            Change::Ended { id, released: Some(_) } => Some(*id),
            _ => None,
        });
        self.faults.ended.lock().unwrap_or_else(PoisonError::into_inner).extend(ended);
        self.store.apply(changes)
    }
}

fn faulty_server() -> (Arc<Faults>, Server) {
    faulty_server_at(frozen_clock())
}

fn faulty_server_at(clock: Clock) -> (Arc<Faults>, Server) {
    let faults = Arc::new(Faults::default());
    let store =
        FaultyStore { store: Sqlite::in_memory().expect("an in-memory store opens"), faults: faults.clone() };
    (faults, Server::start(service_on(RACKS_4X3, POLICY, clock, Box::new(store))))
}

fn until<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(value) = poll() {
            return value;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "not in 20 s: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn block(server: &Server, client: &str) -> (u16, Value) {
    let (status, _, answer) =
        server.post("/v1/place/replicas", &json!({ "size": "64MiB", "client": client, "sequence": 1 }));
    (status, answer)
}

fn is_ready(server: &Server) -> bool {
    support::agent().get(server.url("/readyz")).call().is_ok_and(|answer| answer.status() == 200)
}

#[test]
fn a_decision_that_cannot_be_stored_is_rejected_and_leaves_no_trace() {
    let (faults, server) = faulty_server();
    let (status, first) = block(&server, "first");
    assert_eq!((status, &first["id"]), (201, &json!("0")));
    faults.fail(true, true);
    for _ in 0..3 {
        let (status, problem) = block(&server, "second");
        assert_eq!((status, &problem["type"]), (503, &json!("urn:leeward:problem:store")), "{problem}");
    }
    faults.fail(false, false);
    let placed = until("the store has recovered", || {
        Some(block(&server, "second")).filter(|(status, _)| *status == 201).map(|(_, placed)| placed)
    });
    assert_eq!(placed["id"], json!("1"), "rejected decisions take no id");
    assert_eq!(server.get("/v1/decisions/0").2, first);
    let items = server.get("/v1/commitments").2["items"].as_array().map(Vec::len);
    assert_eq!(items, Some(2));
    assert!(server.end().is_ok());
}

#[test]
fn a_full_disk_leaves_stored_decisions_readable() {
    let (faults, server) = faulty_server();
    let (_, first) = block(&server, "first");
    faults.fail(true, false);
    assert_eq!(block(&server, "second").0, 503);
    until("the store stalls", || Some(()).filter(|()| server.get("/v1/status").2["stalled"] != Value::Null));
    assert_eq!(server.get("/v1/decisions/0"), (200, "application/json".to_owned(), first));
    assert_eq!(server.get("/v1/decisions").2["items"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_hung_store_is_reported_within_5_s_and_its_late_commits_count() {
    let (faults, server) = faulty_server();
    assert_eq!(block(&server, "first").0, 201);
    let hung = faults.hang();
    let began = Instant::now();
    let answers: Vec<(u16, Value)> = std::thread::scope(|scope| {
        let requests: Vec<_> = (0..4)
            .map(|n| {
                let server = &server;
                scope.spawn(move || block(server, &format!("hung {n}")))
            })
            .collect();
        requests.into_iter().map(|request| request.join().expect("the thread does not panic")).collect()
    });
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    for (status, problem) in &answers {
        assert_eq!((*status, &problem["type"]), (503, &json!("urn:leeward:problem:store")), "{problem}");
    }
    assert!(
        answers[0].1["detail"]
            .as_str()
            .is_some_and(|detail| detail.contains("the result of the change is unknown")),
        "{answers:?}"
    );
    assert!(!is_ready(&server));
    let stalled = server.get("/v1/status").2["stalled"].clone();
    assert_eq!(stalled, json!("the store has not responded for 3 s"));
    assert_eq!(server.get("/v1/racks").0, 200, "reads continue");
    assert_eq!(block(&server, "after").0, 503);
    drop(hung);
    until("the service is ready again", || is_ready(&server).then_some(()));
    // Each request sent during the hang was stored exactly once, either during the hang or by the repeated request
    // below.
    let ids: std::collections::BTreeSet<String> = (0..4)
        .map(|n| {
            let (status, decision) = block(&server, &format!("hung {n}"));
            assert!([200, 201].contains(&status), "{decision}");
            decision["id"].as_str().expect("an id").to_owned()
        })
        .collect();
    assert_eq!(ids.len(), 4);
    assert_eq!(server.get("/v1/decisions").2["items"].as_array().map(Vec::len), Some(5));
    assert!(server.end().is_ok());
}

#[test]
fn ends_during_a_store_hang_are_stored_when_it_recovers() {
    let (faults, server) = faulty_server_at(Clock::system());
    let (status, _, placed) = server.post("/v1/place/replicas", &json!({ "size": "64MiB", "lasts": "4s" }));
    assert_eq!(status, 201, "{placed}");
    let hung = faults.hang();
    until("the store stalls", || Some(()).filter(|()| server.get("/v1/status").2["stalled"] != Value::Null));
    let ended = || faults.ended.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let path = format!("/v1/decisions/{}", placed["id"].as_str().expect("an id"));
    assert_eq!(server.get(&path).2["released"], Value::Null, "the decision ends later");
    until("the decision expires", || Some(()).filter(|()| server.get(&path).2["released"] != Value::Null));
    drop(hung);
    until("the service is ready again", || is_ready(&server).then_some(()));
    until("the end is stored", || (ended() == [DecisionId(0)]).then_some(()));
}

#[test]
fn a_snapshot_does_not_wait_for_an_epoch_of_another_run() {
    let (_, server) = faulty_server();
    let epoch = server.get("/v1/snapshot").2["epoch"].as_u64().expect("a number");
    let began = Instant::now();
    let (status, _, snapshot) = server.get(&format!("/v1/snapshot?after={}&wait=20s", epoch + 1_000));
    assert_eq!((status, &snapshot["epoch"]), (200, &json!(epoch)));
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_stored_cluster_is_never_reported_as_rejected() {
    let (faults, server) = faulty_server();
    let racks = |path: &str, field: &str| server.get(path).2[field].clone();
    assert_eq!(racks("/v1/cluster", "racks"), json!(4));
    // The write succeeds, and the read after it fails.
    faults.fail(false, true);
    let (status, answer) = server.patch("/v1/cluster", &json!({ "racks": 5 }), "\"1\"");
    assert_eq!((status, &answer["racks"]), (200, &json!(5)), "{answer}");
    assert!(!is_ready(&server), "the state for decisions is lost");
    faults.fail(false, false);
    until("the service continues", || is_ready(&server).then_some(()));
    assert_eq!(racks("/v1/racks", "items").as_array().map(Vec::len), Some(5));
    // The write fails.
    faults.fail(true, false);
    let (status, answer) = server.patch("/v1/cluster", &json!({ "racks": 6 }), "\"2\"");
    assert_eq!((status, &answer["type"]), (503, &json!("urn:leeward:problem:store")), "{answer}");
    faults.fail(false, false);
    until("the service continues", || is_ready(&server).then_some(()));
    assert_eq!(racks("/v1/cluster", "racks"), json!(5));
    assert_eq!(racks("/v1/racks", "items").as_array().map(Vec::len), Some(5));
    assert_eq!(block(&server, "after").0, 201);
}

#[test]
fn a_slow_loading_leader_holds_the_lease_and_the_other_follows() {
    let Some(server) = postgres::Server::shared() else { return };
    let database = server.database();
    // The server ends a session after 3 s of silence. Each new coordinator makes its policies again.
    let start = || {
        let made = Arc::new(AtomicUsize::new(0));
        let counted = made.clone();
        let slow = move || {
            if counted.fetch_add(1, Ordering::SeqCst) > 0 {
                std::thread::sleep(Duration::from_millis(3_600));
            }
            policies(POLICY)
        };
        let store = Database::read(&server.url(&database), None).expect("a valid URL");
        let store = Postgres::open(store, Durability::Process, 1_000_000).expect("the database is available");
        let cluster = NewCluster::read("test", RACKS_4X3).expect("a valid cluster");
        let service = Service::new(cluster, slow, labels(), LedgerSettings::default(), 1, Box::new(store));
        (Server::start(service.expect("defaults are right")), made)
    };
    let first = start();
    until("the service leads", || is_ready(&first.0).then_some(()));
    let second = start();
    until("the service follows", || {
        let followed = second.0.get("/v1/status").2["leader"].clone();
        (followed == json!(first.0.url(""))).then_some(())
    });
    std::thread::sleep(Duration::from_millis(1_200));
    assert!(is_ready(&first.0));
    assert_eq!(server.ask(&database, "SELECT term FROM leadership").as_deref(), Some("1"));
    let made = [&first, &second].map(|(_, made)| made.load(Ordering::SeqCst));
    assert_eq!(made, [2, 2], "each service loads the state once");
    let (status, decision) = block(&first.0, "a");
    assert_eq!(status, 201);
    let path = format!("/v1/decisions/{}", decision["id"].as_str().expect("an id"));
    until("the decision is visible on the follower", || {
        Some(()).filter(|()| second.0.get(&path).2 == decision)
    });
}
