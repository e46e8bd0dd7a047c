//! The store of one file, when things go wrong.

#[path = "support/leewardd.rs"]
mod leewardd;

use std::io::Write;
use std::process::Command;
use std::time::Duration;

use leewardd::{Process, command, placers};
use serde_json::{Value, json};

#[test]
fn every_decision_that_was_acknowledged_outlives_kill_after_kill() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut acknowledged: Vec<Value> = Vec::new();
    for round in 0..6 {
        let mut process = Process::start(folder.path(), "store.db");
        process.until("it is ready", Process::is_ready);
        process.has_all(&acknowledged);
        let clients: Vec<String> = (0..3).map(|client| format!("{round} {client}")).collect();
        let before = acknowledged.len();
        std::thread::scope(|scope| {
            let process = &process;
            let placing = scope.spawn(|| placers(process, &clients, 1, || false));
            process.until("something was decided", |process| {
                process.get("/v1/status").is_some_and(|(_, status)| status["decided"].as_u64() > Some(0))
            });
            // Not the same time in each round, so that it dies at many places.
            std::thread::sleep(Duration::from_millis(40 + 37 * round));
            process.signal("-KILL");
            acknowledged.extend(placing.join().expect("it does not panic"));
        });
        assert!(acknowledged.len() > before, "nothing was acknowledged in round {round}");
        process.kill();
    }
    Process::start(folder.path(), "store.db").has_all(&acknowledged);
}

/// A service whose store is on a disk of so much room, which ends with it; `None`, and a word of why, where there can be
/// none.
fn on_a_small_disk(folder: &std::path::Path, room: &str) -> Option<Process> {
    let disk = folder.join("disk");
    std::fs::create_dir(&disk).expect("a folder");
    let mount = format!("mount -t tmpfs -o size={room} tmpfs {}", disk.display());
    let tried = Command::new("unshare").args(["-m", "sh", "-c", &mount]).output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        eprintln!("skipped: no small disk: `unshare -m` and `mount` need root");
        return None;
    }
    let service = command(folder, "disk/store.db");
    let mut mounted = Command::new("unshare");
    mounted.args(["-m", "sh", "-c", &format!("{mount} && exec \"$@\""), "sh"]).arg(service.get_program());
    mounted.args(service.get_args()).current_dir(folder).env("HOME", folder);
    Some(Process::run(mounted))
}

#[test]
fn when_the_disk_is_full_nothing_is_promised_reads_go_on_and_all_goes_on_when_there_is_room() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(process) = on_a_small_disk(folder.path(), "2M") else { return };
    let mut acknowledged = Vec::new();
    for sequence in 1..20 {
        let (status, decision) = process.place("client", sequence).expect("an answer");
        assert_eq!(status, 201, "{decision}");
        acknowledged.push(decision);
    }
    let filler = format!("/proc/{}/root{}/disk/filler", process.child.id(), folder.path().display());
    let mut file = std::fs::File::create(&filler).expect("the disk is there");
    while file.write_all(&[0; 4096]).is_ok() {}
    // What the file has room for still goes, and then nothing does.
    let problem =
        (20..400).find_map(|sequence| match process.place("client", sequence).expect("an answer") {
            (201, decision) => {
                acknowledged.push(decision);
                None
            }
            refused => Some(refused),
        });
    let (status, problem) = problem.expect("the disk is full");
    assert_eq!((status, &problem["type"]), (503, &json!("urn:leeward:problem:store")), "{problem}");
    for _ in 0..3 {
        process.has_all(&acknowledged);
        assert_eq!(process.get("/v1/racks").map(|(status, _)| status), Some(200));
        std::thread::sleep(Duration::from_millis(300));
    }
    drop(file);
    std::fs::remove_file(&filler).expect("it is there");
    process.until("there is room again", |process| matches!(process.place("client", 1_000), Some((201, _))));
    process.has_all(&acknowledged);
    assert!(process.is_ready() && process.status("stalled") == Value::Null);
}

#[test]
fn a_file_that_is_damaged_is_told_in_one_line_when_the_service_starts() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut process = Process::start(folder.path(), "store.db");
    for sequence in 1..50 {
        process.place("client", sequence).expect("an answer");
    }
    process.signal("-TERM");
    assert!(process.child.wait().expect("it ends").success());
    let file = folder.path().join("store.db");
    let whole = std::fs::read(&file).expect("a file");
    // All of it, the first page, and all but the first page.
    for (from, to) in [(0, whole.len()), (0, 100), (4096, whole.len())] {
        let mut damaged = whole.clone();
        damaged[from..to].fill(0xa5);
        std::fs::write(&file, damaged).expect("a file");
        let told = command(folder.path(), "store.db").output().expect("it runs");
        let stderr = String::from_utf8_lossy(&told.stderr).into_owned();
        let last = stderr.lines().last().unwrap_or_default();
        assert_eq!(told.status.code(), Some(2), "{stderr}");
        assert!(last.starts_with("error: --store: store.db: "), "{stderr}");
    }
}
