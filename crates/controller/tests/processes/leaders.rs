//! Several services on one PostgreSQL: one leads, and the others are on standby.

#![allow(clippy::disallowed_methods, reason = "the test measures the time of a takeover")]

use leeward_testing::postgres;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::leewardd::{Process, placers};
use serde_json::{Value, json};

/// Limit on the time of a takeover.
const TAKEOVER: Duration = Duration::from_secs(5);

fn leader_and_follower(folder: &std::path::Path, url: &str) -> (Process, Process) {
    let first = Process::start(folder, url);
    first.until("the first leads", Process::is_ready);
    let second = Process::start(folder, url);
    second.until("the second follows", |second| second.status("leader") == json!(first.url));
    (first, second)
}

/// Waits for a leader and returns it. The election must finish within [`TAKEOVER`].
fn elected<'a>(first: &'a Process, second: &'a Process) -> &'a Process {
    let began = Instant::now();
    loop {
        if let Some(leader) = [first, second].into_iter().find(|one| one.is_ready()) {
            return leader;
        }
        assert!(began.elapsed() < TAKEOVER, "{}\n{}", first.log(), second.log());
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_follower_mirrors_the_leader_and_takes_over_within_5_s() {
    let Some(server) = postgres::Server::shared() else { return };
    let (folder, url) = (tempfile::tempdir().expect("a folder"), server.url(&server.database()));
    let (mut first, other) = leader_and_follower(folder.path(), &url);
    assert_eq!(first.status("role"), json!("leader"));
    assert_eq!((other.status("role"), other.status("store")), (json!("follower"), json!("postgres")));
    assert!(!other.is_ready(), "placements are not answered there");
    // Followers reject operations that commit.
    let (status, problem) = other.place("lost", 1).expect("an answer");
    assert_eq!((status, &problem["type"]), (503, &json!("urn:leeward:problem:follower")));
    assert_eq!(problem["leader"], json!(first.url));
    // A follower soon shows changes of the leader.
    let (_, decision) = first.place("reader", 1).expect("an answer");
    let path = format!("/v1/decisions/{}", decision["id"].as_str().expect("an id"));
    let seen =
        other.until("the decision is visible", |other| other.get(&path) == Some((200, decision.clone())));
    assert!(seen < TAKEOVER, "{seen:?}");
    // SIGKILL during placements.
    let clients: Vec<String> = (0..3).map(|client| format!("client {client}")).collect();
    let (mut acknowledged, killed) = std::thread::scope(|scope| {
        let first = &first;
        let placing = scope.spawn(|| placers(first, &clients, 1, |_| false));
        std::thread::sleep(Duration::from_millis(700));
        first.signal("-KILL");
        let killed = Instant::now();
        (placing.join().expect("the thread does not panic"), killed)
    });
    acknowledged.push(decision);
    other.until("the service leads", |other| matches!(other.place("after", 1), Some((201, _))));
    let took = killed.elapsed();
    eprintln!("takeover after kill -9: {took:?}, with {} acknowledged", acknowledged.len());
    assert!(took < TAKEOVER, "{took:?}\n{}", other.log());
    assert!(acknowledged.len() > 10);
    other.assert_has_all(&acknowledged);
    assert!(other.is_ready() && other.status("leader") == json!(other.url));
    first.kill();
    // A leader that hangs loses the leadership, and follows when it resumes.
    let third = Process::start(folder.path(), &url);
    third.until("the third follows", |third| third.status("leader") == json!(other.url));
    let hung = Instant::now();
    other.signal("-STOP");
    third.until("the third leads", |third| matches!(third.place("after", 2), Some((201, _))));
    let took = hung.elapsed();
    eprintln!("takeover from a leader that hangs: {took:?}");
    assert!(took < TAKEOVER, "{took:?}\n{}", third.log());
    other.signal("-CONT");
    let follower = other.until("the service follows", |other| other.status("leader") == json!(third.url));
    assert!(follower < TAKEOVER, "{follower:?}");
    let (status, problem) = other.place("lost", 2).expect("an answer");
    assert_eq!((status, &problem["leader"]), (503, &json!(third.url)));
    third.assert_has_all(&acknowledged);
    other.assert_has_all(&acknowledged);
}

#[test]
fn a_leader_cut_off_from_postgres_loses_nothing_and_one_service_leads() {
    let Some(server) = postgres::Server::shared() else { return };
    let (folder, database) = (tempfile::tempdir().expect("a folder"), server.database());
    let (first, second) = leader_and_follower(folder.path(), &server.url(&database));
    let stop = AtomicBool::new(false);
    let clients = ["client".to_owned()];
    let acknowledged: Vec<Value> = std::thread::scope(|scope| {
        let placing = scope.spawn(|| placers(&first, &clients, 1, |_| stop.load(Ordering::SeqCst)));
        std::thread::sleep(Duration::from_millis(300));
        let cut = "SELECT count(pg_terminate_backend(pid)) FROM pg_locks JOIN pg_database ON oid = database
            WHERE locktype = 'advisory' AND datname = current_database()";
        assert_eq!(server.ask(&database, cut).as_deref(), Some("1"));
        elected(&first, &second);
        std::thread::sleep(Duration::from_millis(300));
        stop.store(true, Ordering::SeqCst);
        placing.join().expect("the thread does not panic")
    });
    assert!(acknowledged.len() > 5);
    first.until("one of both leads", |first| first.is_ready() != second.is_ready());
    for one in [&first, &second] {
        one.until("the service has the last decision", |one| {
            let last = acknowledged.last().and_then(|last| last["id"].as_str()).expect("an id");
            one.get(&format!("/v1/decisions/{last}")).is_some_and(|(status, _)| status == 200)
        });
        one.assert_has_all(&acknowledged);
    }
}

#[test]
fn placements_are_rejected_during_a_postgres_outage() {
    let Some(server) = postgres::Server::start("off") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (first, second) = leader_and_follower(folder.path(), &server.url(&server.database()));
    let clients: Vec<String> = (0..3).map(|client| format!("client {client}")).collect();
    let stop = AtomicBool::new(false);
    let acknowledged = std::thread::scope(|scope| {
        let placing = scope.spawn(|| placers(&first, &clients, 1, |_| stop.load(Ordering::SeqCst)));
        std::thread::sleep(Duration::from_millis(300));
        server.stop("-INT");
        stop.store(true, Ordering::SeqCst);
        placing.join().expect("the thread does not panic")
    });
    for one in [&first, &second] {
        one.until("the status reports the stall", |one| one.status("stalled") != Value::Null);
        let (status, problem) = one.place("away", 1).expect("an answer");
        assert_eq!((status, &problem["type"]), (503, &json!("urn:leeward:problem:store")), "{problem}");
        assert!(!one.is_ready());
        assert_eq!(one.get("/v1/racks").map(|(status, _)| status), Some(200), "reads continue");
    }
    server.go_on();
    let began = Instant::now();
    let leader = elected(&first, &second);
    eprintln!("after PostgreSQL was back, a service led again within {:?}", began.elapsed());
    assert!(matches!(leader.place("away", 1), Some((201, _))));
    assert!(acknowledged.len() > 5);
    leader.assert_has_all(&acknowledged);
}

#[test]
fn a_hung_postgres_is_reported_and_service_resumes_when_it_recovers() {
    let Some(server) = postgres::Server::start("off") else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (first, second) = leader_and_follower(folder.path(), &server.url(&server.database()));
    let clients: Vec<String> = (0..3).map(|client| format!("client {client}")).collect();
    let stop = AtomicBool::new(false);
    let acknowledged = std::thread::scope(|scope| {
        let placing = scope.spawn(|| placers(&first, &clients, 1, |_| stop.load(Ordering::SeqCst)));
        std::thread::sleep(Duration::from_millis(300));
        server.signal("-STOP");
        let hung = Instant::now();
        for one in [&first, &second] {
            one.until("the status reports the stall", |one| one.status("stalled") != Value::Null);
            assert!(!one.is_ready());
            assert_eq!(one.get("/v1/racks").map(|(status, _)| status), Some(200), "reads continue");
        }
        let (status, problem) = first.place("away", 1).expect("an answer");
        assert_eq!((status, &problem["type"]), (503, &json!("urn:leeward:problem:store")), "{problem}");
        eprintln!("a PostgreSQL that hangs was reported within {:?}", hung.elapsed());
        assert!(hung.elapsed() < TAKEOVER, "{:?}\n{}", hung.elapsed(), first.log());
        stop.store(true, Ordering::SeqCst);
        placing.join().expect("the thread does not panic")
    });
    server.signal("-CONT");
    let leader = elected(&first, &second);
    assert!(matches!(leader.place("away", 1), Some((201, _))));
    assert!(acknowledged.len() > 5);
    leader.assert_has_all(&acknowledged);
}
