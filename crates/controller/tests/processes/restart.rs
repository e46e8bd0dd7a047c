//! Telemetry over a restart of the service.

use std::fs;
use std::path::Path;
use std::process::Command;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::support::leewardd::{Process, command};

/// A service whose telemetry is fresh for half a minute.
fn service(folder: &Path, store: &str) -> Command {
    let mut command = command(folder, store);
    command.args(["--interval", "10s"]);
    command
}

fn start(folder: &Path) -> Process {
    let process = Process::run(service(folder, "store.db"));
    process.until("the service leads", Process::is_ready);
    process
}

fn stop(mut process: Process) -> String {
    process.signal("-TERM");
    assert!(process.child.wait().expect("the process ends").success());
    process.until("its log is read", |process| process.log().contains("stopped"));
    process.log()
}

/// Reports the load of a link, and a host that drains.
fn report(process: &Process) {
    let now = Timestamp::now();
    let from = now.checked_sub(SignedDuration::from_secs(10)).expect("a time after 1970");
    let report = json!({
        "from": from.to_string(),
        "until": now.to_string(),
        "links": [{"link": "r1:downlink", "load_bps": 500_000_000}],
        "hosts": [{"host": "r2h0", "draining": true}],
    });
    let (status, answer) = process.send("/v1/reports", &report).expect("an answer");
    assert_eq!(status, 200, "{answer}");
}

/// The load of the reported link, with the end of its window.
fn load(process: &Process) -> (Value, Value) {
    let (_, link) = process.get("/v1/links/r1:downlink").expect("an answer");
    (link["measured_bps"].clone(), link["until"].clone())
}

fn kept(process: &Process) -> (Value, Value) {
    let kept = process.status("kept_telemetry");
    (kept["links"].clone(), kept["problem"].clone())
}

#[test]
fn fresh_telemetry_outlives_a_stop_and_a_kill() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = start(folder.path());
    assert_eq!(kept(&first), (json!(0), Value::Null));
    report(&first);
    let before = load(&first);
    assert_eq!(before.0, json!(500_000_000), "{before:?}");
    let log = stop(first);
    assert!(log.contains("telemetry written"), "{log}");
    let second = start(folder.path());
    assert_eq!((kept(&second), load(&second)), ((json!(1), Value::Null), before));
    let (_, host) = second.get("/v1/hosts/r2h0").expect("an answer");
    assert_eq!(host["draining"], json!(true), "{host}");
    second.until("its log is read", |second| second.log().contains("telemetry kept from the last run"));
    // A new report is newer than the kept one, and the next write happens without a stop.
    report(&second);
    let before = load(&second);
    let file = folder.path().join("store.db.telemetry");
    let written = || fs::metadata(&file).and_then(|metadata| metadata.modified()).expect("the file exists");
    let last = written();
    second.until("the telemetry is written again", |_| written() > last);
    let mut second = second;
    second.kill();
    let third = start(folder.path());
    assert_eq!((kept(&third), load(&third)), ((json!(1), Value::Null), before));
}

#[test]
fn a_broken_file_is_a_warning_and_costs_only_the_telemetry() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = start(folder.path());
    report(&first);
    let (_, decision) = first.place("client", 1).expect("an answer");
    stop(first);
    let file = folder.path().join("store.db.telemetry");
    let mut bytes = fs::read(&file).expect("the service wrote it");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x55;
    fs::write(&file, &bytes).expect("the file is writable");
    let second = start(folder.path());
    let (links, problem) = kept(&second);
    assert_eq!(links, json!(0));
    assert!(problem.is_string(), "{problem}");
    second.until("its log is read", |second| second.log().contains("telemetry file not read"));
    assert_eq!(load(&second).0, Value::Null);
    second.assert_has_all(&[decision]);
    report(&second);
    stop(second);
    let third = start(folder.path());
    assert_eq!(kept(&third), (json!(1), Value::Null), "the next stop replaces the broken file");
    stop(third);
    fs::remove_file(&file).expect("the file exists");
    fs::create_dir(&file).expect("a folder");
    let fourth = start(folder.path());
    assert_eq!(kept(&fourth), (json!(0), json!("not a regular file")));
    let log = stop(fourth);
    assert!(log.contains("telemetry not written"), "{log}");
}

#[test]
fn a_store_in_memory_keeps_telemetry_only_in_a_named_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let without = Process::run(service(folder.path(), "memory"));
    without.until("the service leads", Process::is_ready);
    assert_eq!(without.status("kept_telemetry"), Value::Null);
    stop(without);
    let with_file = || {
        let mut command = service(folder.path(), "memory");
        fs::write(folder.path().join("s.yaml"), "telemetry_file: loads\n").expect("a file");
        command.args(["--config", "s.yaml"]);
        let process = Process::run(command);
        process.until("the service leads", Process::is_ready);
        process
    };
    let first = with_file();
    report(&first);
    stop(first);
    assert_eq!(kept(&with_file()), (json!(1), Value::Null));
}
