//! Upgrades of stores from other versions of the program.

use leeward_testing::postgres;
use std::path::Path;

use crate::support::leewardd::{Process, command};
use rusqlite::Connection;
use serde_json::{Value, json};

/// Drops everything that later schema steps added, so that the store is in the state after the first step.
const FIRST_STEP: &str = "DROP INDEX decisions_by_key; DROP TABLE leadership; DROP TABLE commits; DROP TABLE service; \
    DROP TABLE decision_search; DROP TABLE periods; DROP TABLE link_names; DROP TABLE enforcers; \
    ALTER TABLE migrations DROP COLUMN executor;";

/// Rows of a store that an earlier build wrote: decisions of all kinds, of which one has ended, with keys and numbered
/// requests; two advised moves, one done and one refused, the limit of a job, and a cluster that a client changed. One
/// workload has a number in quotes.
const EARLIER_ROWS: &str = include_str!("earlier.sql");
/// Responses of that build about these rows, by path.
const EARLIER_ANSWERS: &str = include_str!("earlier.json");
/// The cluster file of that build.
const EARLIER_CLUSTER: &str = "{racks: 3, hosts_per_rack: 2, nic: 1Gbps, oversubscription: 1, cpus: 8, priorities: 4, \
    devices: [{name: ssd, read: 500MB/s, write: 400MB/s}]}";

/// Ends a service as systemd does.
fn end(mut process: Process) {
    process.signal("-TERM");
    assert!(process.child.wait().expect("the process ends").success());
}

/// Decides on a new store, reverts its schema to the first step, and opens it again.
fn check_upgrade(folder: &Path, store: &str, first_step: impl Fn(), steps: impl Fn() -> i64) {
    let process = Process::start(folder, store);
    process.until("the service leads", Process::is_ready);
    let mut decisions: Vec<Value> =
        (1..=5).map(|sequence| process.place("client", sequence).expect("an answer").1).collect();
    let ended = decisions.pop().expect("five").clone();
    let id = ended["id"].as_str().expect("an id").to_owned();
    assert_eq!(process.delete(&format!("/v1/commitments/{id}")).expect("an answer").0, 200);
    end(process);
    let newest = steps();
    first_step();
    assert!(steps() == 1 && newest > 1, "{newest}");
    let process = Process::start(folder, store);
    process.until("the service leads", Process::is_ready);
    process.assert_has_all(&decisions);
    let (_, held) = process.get("/v1/commitments").expect("an answer");
    let held = held["items"].as_array().expect("a list").iter().map(|one| one["id"].clone());
    let kept: Vec<Value> = decisions.iter().rev().map(|one| one["id"].clone()).collect();
    assert_eq!(held.collect::<Vec<_>>(), kept);
    let (status, again) = process.place("client", 5).expect("an answer");
    assert_eq!((status, &again["id"]), (200, &json!(id)), "the stored request is recognized");
    let (status, next) = process.place("client", 6).expect("an answer");
    assert_eq!(status, 201, "{next}");
    process.assert_has_all(&[next]);
    assert_eq!(steps(), newest);
    end(process);
}

/// Removes the fields of decisions and moves that the earlier build did not have, and checks their values.
fn without_modes(answer: &mut Value) {
    for decision in answer.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        if decision.contains_key("mode") {
            for (field, value) in [
                ("mode", json!("on")),
                ("by_default", json!(false)),
                ("beside", Value::Null),
                ("ref", Value::Null),
                ("racks", json!([])),
                ("source", Value::Null),
                ("reserved_until", Value::Null),
            ] {
                assert_eq!(decision.remove(field), Some(value), "{field}");
            }
        }
        // A promise of an earlier build has no version, and no enforcer has applied it.
        if let Some(enforcement) = decision.remove("enforcement") {
            assert!(enforcement.is_null() || enforcement["state"] == "decided", "{enforcement}");
            assert_eq!(decision.remove("version"), Some(json!(0)));
        }
        if decision.contains_key("executor") {
            for field in ["executor", "expires"] {
                assert_eq!(decision.remove(field), Some(Value::Null), "{field}");
            }
        }
    }
}

/// Starts a service on the rows of an earlier build, and compares its responses with the responses of that build.
/// `step` sets the version of the schema to that build's.
fn check_earlier_rows(folder: &Path, store: &str, execute: impl Fn(&str), step: &str) {
    end(Process::start(folder, store));
    execute(&format!(
        "DROP TABLE decision_search; DROP TABLE periods; DROP TABLE link_names; DROP TABLE enforcers; \
         ALTER TABLE migrations DROP COLUMN executor; {step}"
    ));
    execute(&format!("DELETE FROM commits; DELETE FROM leadership; DELETE FROM clusters; {EARLIER_ROWS}"));
    let command = command(folder, store);
    std::fs::write(folder.join("c.yaml"), EARLIER_CLUSTER).expect("a file");
    let process = Process::run(command);
    process.until("the service leads", Process::is_ready);
    let answers: Value = serde_json::from_str(EARLIER_ANSWERS).expect("JSON");
    for (path, expected) in answers.as_object().expect("answers by path") {
        let (status, mut actual) = process.get(path).expect("an answer");
        if let Some(items) = actual.get_mut("items") {
            actual = items.take();
        }
        without_modes(&mut actual);
        if path == "/v1/commitments" {
            actual = actual.as_array().expect("a list").iter().map(|one| one["id"].clone()).collect();
        }
        assert_eq!((status, &actual), (200, expected), "{path}");
    }
    let (status, again) = process.place("namenode", 1).expect("an answer");
    assert_eq!((status, &again["id"]), (200, &json!("0")), "the stored request is recognized");
    // The workload with a number in quotes blocks no other.
    let mut workload = answers["/v1/decisions"][1]["request"]["workload"].clone();
    workload["name"] = json!("next");
    workload["slo"]["percentile"] = json!(99);
    let (status, admitted) =
        process.send("/v1/workloads", &json!({ "workload": workload })).expect("an answer");
    assert_eq!((status, &admitted["id"]), (201, &json!("14")), "{admitted}");
    end(process);
}

#[test]
fn a_file_of_an_earlier_build_opens_unchanged() {
    let folder = tempfile::tempdir().expect("a folder");
    let execute = |rows: &str| {
        let file = Connection::open(folder.path().join("store.db")).expect("the file exists");
        file.execute_batch(rows).expect("the rows fit the schema");
    };
    check_earlier_rows(folder.path(), "store.db", execute, "PRAGMA user_version = 4");
}

#[test]
fn a_database_of_an_earlier_build_opens_unchanged() {
    let Some(server) = postgres::Server::shared() else { return };
    let (folder, database) = (tempfile::tempdir().expect("a folder"), server.database());
    let execute = |rows: &str| drop(server.ask(&database, rows).expect("the rows fit the schema"));
    check_earlier_rows(folder.path(), &server.url(&database), execute, "UPDATE made SET steps = 4");
}

#[test]
fn a_file_of_the_first_schema_is_migrated_with_its_decisions() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = || Connection::open(folder.path().join("store.db")).expect("the file exists");
    let first_step = || {
        open()
            .execute_batch(&format!("{FIRST_STEP} PRAGMA user_version = 1"))
            .expect("the database is writable");
    };
    let steps = || open().pragma_query_value(None, "user_version", |row| row.get(0)).expect("a number");
    check_upgrade(folder.path(), "store.db", first_step, steps);
}

#[test]
fn a_database_of_the_first_schema_is_migrated_with_its_decisions() {
    let Some(server) = postgres::Server::shared() else { return };
    let (folder, database) = (tempfile::tempdir().expect("a folder"), server.database());
    let ask = |question: &str| server.ask(&database, question).expect("the server answers");
    let first_step = || drop(ask(&format!("{FIRST_STEP} UPDATE made SET steps = 1")));
    let steps = || ask("SELECT steps FROM made").parse().expect("a number");
    check_upgrade(folder.path(), &server.url(&database), first_step, steps);
}

#[test]
fn a_file_of_a_later_version_is_a_one_line_error() {
    let folder = tempfile::tempdir().expect("a folder");
    end(Process::start(folder.path(), "store.db"));
    let file = Connection::open(folder.path().join("store.db")).expect("the file exists");
    file.pragma_update(None, "user_version", 99).expect("the database is writable");
    drop(file);
    let result = command(folder.path(), "store.db").output().expect("the program starts");
    let stderr = String::from_utf8_lossy(&result.stderr).into_owned();
    assert_eq!((result.status.code(), stderr.lines().count()), (Some(2), 1), "{stderr}");
    let beginning = "error: --store: store.db: the store has version 99, and this program supports up to ";
    assert!(stderr.starts_with(beginning), "{stderr}");
}
