//! Stores with many decisions: startup and takeover load only few of them, and every decision remains
//! readable.
//!
//! By default there are 30,000 decisions. `LEEWARD_DECISIONS=900000` is close to the default retention of a store. With
//! `LEEWARD_HOLDING=300000`, the number of evicted decisions with a commitment is the maximum.

#![allow(clippy::disallowed_methods, reason = "the test measures the time of a start")]

use leeward_testing::postgres;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::leewardd::Process;
use leeward_records::State;
use leeward_store::{Database, Durability, Leadership, Postgres, Sqlite, Store};
use rusqlite::Connection;
use serde_json::{Value, json};

/// Limit on the time until the service answers placements.
const SOON: Duration = Duration::from_secs(5);
/// Extent of a load: decisions, and clients and keys.
const EXTENT: (usize, usize) = (10_000, 100_000);

fn decisions() -> u64 {
    env_number("LEEWARD_DECISIONS").unwrap_or(30_000)
}

/// Number of decisions with commitments; these are the newest ones.
fn committed_decisions() -> u64 {
    env_number("LEEWARD_HOLDING").unwrap_or(20_000)
}

fn env_number(variable: &str) -> Option<u64> {
    std::env::var(variable)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{variable}: expected a number")))
}

/// SQL that copies the first decision. Nine in ten copies belong to about ten thousand clients, the others have one key
/// each. The newest copies and every ten thousandth have commitments. Their times are an hour later, so they count as
/// recent when a service reads them.
fn copies(decisions: u64) -> [String; 2] {
    let holding = committed_decisions();
    let holds = |id: &str| format!("{id} > {decisions} - {holding} OR {id} % 10000 = 0");
    [
        format!(
            "WITH RECURSIVE n (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM n WHERE number < {decisions})
            INSERT INTO decisions SELECT number, at + CASE WHEN {} THEN 3600000000000 ELSE 0 END, kind,
                CASE WHEN number % 10 <> 0 THEN 'client ' || (number % 9973) END,
                CASE WHEN number % 10 <> 0 THEN number END,
                CASE WHEN number % 10 = 0 THEN 'key ' || number END, shown, expires, released
            FROM n, decisions WHERE id = 0",
            holds("number")
        ),
        format!(
            "INSERT INTO commitments SELECT id, held FROM decisions, commitments
            WHERE decision = 0 AND id > 0 AND ({})",
            holds("id")
        ),
    ]
}

/// Creates a store with one decision and returns the decision.
fn store_with_one_decision(folder: &Path, store: &str) -> Value {
    let mut process = Process::start(folder, store);
    process.until("the service leads", Process::is_ready);
    let (status, decision) = process.place("first", 1).expect("an answer");
    assert_eq!((status, &decision["id"]), (201, &json!("0")));
    process.signal("-TERM");
    assert!(process.child.wait().expect("the process ends").success());
    decision
}

/// Loads a store, and prints the time taken.
fn load(mut store: impl Store) -> State {
    assert!(matches!(store.renew_lease("here"), Ok(Leadership::Leader { .. })));
    let began = Instant::now();
    let state = store.load(EXTENT.0, EXTENT.1).expect("the store is readable");
    let took = began.elapsed();
    eprintln!("of {} decisions, {} are loaded in {took:?}", decisions(), state.decisions.len());
    assert!(took < SOON, "{took:?}");
    state
}

/// Asserts that the service finds each decision, ends it, and returns it for a retry of its request.
fn assert_finds_each(process: &Process, first: &Value) {
    for id in [0, 1, decisions() / 3, decisions()] {
        let (status, found) = process.get(&format!("/v1/decisions/{id}")).expect("an answer");
        assert_eq!((status, &found["id"]), (200, &json!(id.to_string())), "{found}");
        assert_eq!((&found["hosts"], &found["why"]), (&first["hosts"], &first["why"]));
    }
    // The last evicted decision of its client. The client's next sequence number would belong to a decision with a key.
    let last = (decisions() - 11_000..).find(|id| id % 10 == 7).expect("there are more");
    let (status, again) = process.place(&format!("client {}", last % 9_973), last).expect("an answer");
    assert_eq!((status, &again["id"]), (200, &json!(last.to_string())), "{again}");
    for id in [2, decisions() - 15_000] {
        for time in 0..2 {
            let (status, ended) = process.delete(&format!("/v1/commitments/{id}")).expect("an answer");
            assert_eq!((status, ended["released"].is_string()), (200, true), "{id}, {time}: {ended}");
            let found = process.get(&format!("/v1/decisions/{id}"));
            assert_eq!(found, Some((200, ended)), "{id}, {time}");
        }
    }
    let none = decisions() + 100;
    for answer in
        [process.get(&format!("/v1/decisions/{none}")), process.delete(&format!("/v1/commitments/{none}"))]
    {
        assert_eq!(answer.map(|(status, _)| status), Some(404));
    }
}

#[test]
fn a_service_starts_fast_on_a_file_of_many_decisions() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = store_with_one_decision(folder.path(), "store.db");
    let path = folder.path().join("store.db");
    let file = Connection::open(&path).expect("the file exists");
    copies(decisions()).iter().for_each(|rows| file.execute_batch(rows).expect("enough room"));
    drop(file);
    let state = load(Sqlite::open(&path, Durability::Process, 1_000_000).expect("the store opens"));
    assert_eq!(state.decisions.last().map(|(record, _)| record.id.0), Some(decisions()));
    let began = Instant::now();
    let process = Process::start(folder.path(), "store.db");
    process.until("the service leads", Process::is_ready);
    eprintln!("the service is ready after {:?}", began.elapsed());
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    assert_finds_each(&process, &first);
}

#[test]
fn a_follower_takes_over_fast_on_a_database_of_many_decisions() {
    let Some(server) = postgres::Server::shared() else { return };
    let (folder, database) = (tempfile::tempdir().expect("a folder"), server.database());
    let url = server.url(&database);
    let first = store_with_one_decision(folder.path(), &url);
    let ask = |question: &str| server.ask(&database, question).expect("the server answers");
    copies(decisions()).iter().for_each(|rows| drop(ask(rows)));
    // The server counts wasted reads per table and publishes the counts when a session ends.
    let read = |column: &str| -> u64 {
        let count = ask(&format!("SELECT {column} FROM pg_stat_user_tables WHERE relname = 'decisions'"));
        count.parse().expect("a number")
    };
    let before = (read("seq_tup_read"), read("idx_scan"));
    let stored = Database::read(&server.url(&database), None).expect("a valid URL");
    let state =
        load(Postgres::open(stored, Durability::Process, 1_000_000).expect("the database is available"));
    assert_eq!(state.decisions.last().map(|(record, _)| record.id.0), Some(decisions()));
    let began = Instant::now();
    while read("idx_scan") == before.1 {
        assert!(began.elapsed() < Duration::from_secs(30), "the counts are not published");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(read("seq_tup_read"), before.0, "the load read the whole table");
    let mut leader = Process::start(folder.path(), &url);
    leader.until("the service leads", Process::is_ready);
    let follower = Process::start(folder.path(), &url);
    follower.until("the service follows", |follower| follower.status("leader") == json!(leader.url));
    let (status, found) = follower.get("/v1/decisions/1").expect("an answer");
    assert_eq!((status, &found["hosts"]), (200, &first["hosts"]), "the follower finds the decision too");
    let killed = Instant::now();
    leader.kill();
    follower.until("the service leads", |follower| matches!(follower.place("after", 1), Some((201, _))));
    eprintln!("takeover: {:?}", killed.elapsed());
    assert!(killed.elapsed() < SOON, "{:?}\n{}", killed.elapsed(), follower.log());
    assert_finds_each(&follower, &first);
}
