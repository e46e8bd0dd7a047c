//! Durability of acknowledged requests under faults.

use leeward_testing::postgres;
use std::io::Write;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::leewardd::{Process, command, placers};
use leeward_testing::clusters::RACKS_2X2_WITH_SSDS;
use leeward_testing::require;
use serde_json::{Value, json};

/// Results that the service acknowledged before it was killed.
#[derive(Default)]
struct AcknowledgedResults {
    /// Decisions.
    decisions: Vec<Value>,
    /// Ids of decisions that ended.
    ended: Vec<Value>,
    /// Names sent for the cluster, in order, and the number of names up to the last acknowledged name.
    names: (Vec<String>, usize),
    /// Moves, with the state after their answers.
    moves: Vec<(Value, &'static str)>,
}

impl AcknowledgedResults {
    /// Asserts that all results are stored, and that ended decisions hold nothing.
    fn audit(&self, process: &Process) {
        process.until("the service is ready", Process::is_ready);
        process.assert_has_all(&self.decisions);
        let (_, held) = process.get("/v1/commitments?limit=1000").expect("an answer");
        let held = held["items"].as_array().expect("a list");
        for id in &self.ended {
            let path = format!("/v1/decisions/{}", id.as_str().expect("an id"));
            let (status, decision) = process.get(&path).expect("an answer");
            assert!(status == 200 && decision["released"].is_string(), "{decision}");
            assert!(held.iter().all(|one| one["id"] != *id), "{id} still holds resources");
        }
        let (names, acknowledged) = &self.names;
        if *acknowledged > 0 {
            let (_, cluster) = process.get("/v1/cluster").expect("an answer");
            let found = names.iter().position(|name| cluster["name"] == json!(name));
            assert!(found.is_some_and(|at| at + 1 >= *acknowledged), "{cluster} is older than {names:?}");
        }
        for (id, state) in &self.moves {
            let (_, all) = process.get("/v1/migrations?limit=1000").expect("an answer");
            let all = all["items"].as_array().expect("a list");
            let found = all.iter().find(|one| one["id"] == *id);
            assert_eq!(found.map(|one| &one["state"]), Some(&json!(state)), "{id}");
        }
    }

    /// Places, ends, changes and answers until the service is killed. The delay after the first decisions
    /// depends on the round.
    fn until_killed(&mut self, process: &Process, round: u64) {
        let moves = wait_for_moves(process);
        let clients: Vec<String> = (0..3).map(|client| format!("{round} {client}")).collect();
        let (decided, ended_count) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let note = |acknowledged| {
            decided.fetch_max(acknowledged, Ordering::SeqCst);
            false
        };
        let (decisions, (ended, moves)) = std::thread::scope(|scope| {
            let decisions = scope.spawn(|| placers(process, &clients, 1, note));
            let ended =
                scope.spawn(|| place_and_release(process, &format!("{round} ends"), &moves, &ended_count));
            let names = &mut self.names;
            let changes = scope.spawn(|| rename_cluster(process, round, names));
            process.until("decisions were made, and some ended", |_| {
                decided.load(Ordering::SeqCst) > 6 && ended_count.load(Ordering::SeqCst) > 0
            });
            // A different delay per round kills the service at different points.
            std::thread::sleep(Duration::from_millis(40 + 37 * round));
            process.signal("-KILL");
            changes.join().expect("the thread does not panic");
            (
                decisions.join().expect("the thread does not panic"),
                ended.join().expect("the thread does not panic"),
            )
        });
        assert!(!decisions.is_empty() && !ended.is_empty(), "nothing was acknowledged in round {round}");
        self.decisions.extend(decisions);
        self.ended.extend(ended);
        self.moves.extend(moves);
    }
}

/// Reports all links as idle except one hot link, and the loads of tasks, up to now.
fn report(process: &Process, hot: &str, tasks: &[Value]) {
    let (_, status) = process.get("/v1/status").expect("an answer");
    let (_, links) = process.get("/v1/links?limit=1000").expect("an answer");
    let load = |link: &Value| if link["link"] == json!(hot) { 2_900_000_000_u64 } else { 0 };
    let links = links["items"].as_array().expect("a list").iter();
    let links: Vec<Value> =
        links.map(|link| json!({ "link": link["link"], "load_bps": load(link) })).collect();
    let body = json!({ "from": status["since"], "until": status["time"], "links": links, "tasks": tasks });
    process.send("/v1/reports", &body);
}

/// Reports a rack as hot, with movable tasks in it, until moves are advised.
fn wait_for_moves(process: &Process) -> Vec<Value> {
    let app = json!({ "app": { "tasks": [{ "name": "t", "tolerant": true }] } });
    let mut tasks = Vec::new();
    process.until("tasks are placed", |process| {
        report(process, "", &[]);
        tasks.extend(process.send("/v1/place/tasks", &app).filter(|(status, _)| *status == 201));
        tasks.len() == 8
    });
    let rack = |task: &Value| {
        task["hosts"][0].as_str().and_then(|host| host.split_once('h')).map(|(rack, _)| rack.to_owned())
    };
    let hot = rack(&tasks[0].1).expect("a host");
    let carried: Vec<Value> = tasks
        .iter()
        .filter(|(_, task)| rack(task).as_ref() == Some(&hot))
        .map(|(_, task)| json!({ "decision": task["id"], "egress_bps": 400_000_000, "ingress_bps": 0 }))
        .collect();
    let mut advised = Vec::new();
    process.until("moves are advised", |process| {
        report(process, &format!("{hot}:uplink"), &carried);
        let (_, moves) = process.get("/v1/migrations?state=advised").expect("an answer");
        advised = moves["items"].as_array().expect("a list").iter().map(|one| one["id"].clone()).collect();
        !advised.is_empty()
    });
    advised
}

/// Places and releases one block after another, and sometimes answers a move. Returns the acknowledged ends and moves.
fn place_and_release(
    process: &Process,
    client: &str,
    moves: &[Value],
    ended_count: &AtomicUsize,
) -> (Vec<Value>, Vec<(Value, &'static str)>) {
    let (mut ended, mut answered, mut moves) = (Vec::new(), Vec::new(), moves.iter());
    for sequence in 1.. {
        let Some((_, decision)) = process.place(client, sequence) else { break };
        let Some(id) = decision["id"].as_str() else { continue };
        let Some((status, _)) = process.delete(&format!("/v1/commitments/{id}")) else { break };
        if status == 200 {
            ended.push(decision["id"].clone());
            ended_count.store(ended.len(), Ordering::SeqCst);
        }
        let Some(id) = moves.next() else { continue };
        let state = if sequence % 2 == 0 { "done" } else { "refused" };
        let path = format!("/v1/migrations/{}", id.as_str().expect("an id"));
        if process.send(&path, &json!({ "answer": state })).is_some_and(|(status, _)| status == 200) {
            answered.push((id.clone(), state));
        }
    }
    (ended, answered)
}

/// Renames the cluster again and again.
fn rename_cluster(process: &Process, round: u64, (names, acknowledged): &mut (Vec<String>, usize)) {
    for number in 0.. {
        let name = format!("c{round}-{number}");
        names.push(name.clone());
        match process.patch("/v1/cluster", &json!({ "name": name })) {
            Some((200, _)) => *acknowledged = names.len(),
            Some(_) => {}
            None => break,
        }
        std::thread::sleep(Duration::from_millis(25));
    }
}

/// Kills a service on this store in every round.
fn kill_after_kill(store: &str, durable: &str, rounds: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let start = || {
        let mut command = command(folder.path(), store);
        command.args(["--durable", durable, "--moves", "utp", "--interval", "100ms"]);
        Process::run(command)
    };
    let mut results = AcknowledgedResults::default();
    for round in 0..rounds {
        let mut process = start();
        results.audit(&process);
        results.until_killed(&process, round);
        process.kill();
    }
    results.audit(&start());
    let AcknowledgedResults { decisions, ended, names: (_, changes), moves } = results;
    assert!(changes > 0 && !moves.is_empty(), "{changes} changes, {} moves", moves.len());
    eprintln!(
        "{store} {durable}: {} decisions, {} ends, {changes} names, {} answers",
        decisions.len(),
        ended.len(),
        moves.len()
    );
}

#[test]
fn acknowledged_decisions_survive_repeated_kills_in_a_file() {
    kill_after_kill("store.db", "process", 6);
    kill_after_kill("store.db", "power", 3);
}

#[test]
fn acknowledged_decisions_survive_repeated_kills_in_postgres() {
    let Some(server) = postgres::Server::shared() else { return };
    for durable in ["process", "power"] {
        kill_after_kill(&server.url(&server.database()), durable, 3);
    }
}

/// A workload that takes little of a host's network and device.
fn workload(name: &str) -> Value {
    let link = json!([{ "rate": "100kB/s", "burst": "4kB" }]);
    json!({
        "name": name, "client": "r0h0", "server": "r1h1", "slo": { "percentile": 99, "latency": "400ms" },
        "curves": { "network-in": link, "network-out": link, "storage": [{ "rate": "0.1%", "burst": "100us" }] },
        "unloaded": "100us",
    })
}

/// Asserts that the reservations on links equal the sum over the active workloads.
fn audit(process: &Process, acknowledged: &[(String, Value)]) {
    let (_, list) = process.get("/v1/workloads?limit=1000").expect("an answer");
    let workloads = list["items"].as_array().expect("a list");
    for (name, decision) in acknowledged {
        let found = workloads.iter().find(|one| one["name"] == json!(name));
        assert_eq!(found.map(|one| &one["decision"]), Some(decision), "{name} was acknowledged");
    }
    let mut sum = 0.0;
    for one in workloads {
        let first = &one["stages"][0];
        assert_eq!(first["queues"][0], "r0h0:egress", "{one}");
        sum += 8.0 * first["limits"][0]["rate"].as_f64().expect("a rate");
    }
    let (_, link) = process.get("/v1/links/r0h0:egress").expect("an answer");
    let reserved = link["reserved_bps"].as_f64().expect("a rate");
    // Each reservation is rounded up to a whole bit per second.
    assert!((sum..=sum + workloads.len() as f64).contains(&reserved), "{reserved} is not {sum}");
    let (_, rack) = process.get("/v1/racks/r0").expect("an answer");
    let rows = rack["reservations"].as_array().expect("a list").iter();
    let rates = rows.filter(|row| row["link"] == "r0h0:egress").map(|row| row["rate_bps"].as_f64());
    assert_eq!(rates.map(Option::unwrap_or_default).sum::<f64>(), reserved);
}

#[test]
fn acknowledged_guarantees_and_reservations_survive_repeated_kills() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut acknowledged: Vec<(String, Value)> = Vec::new();
    for round in 0..4_u64 {
        let mut process = Process::run(command_with_cluster(folder.path(), RACKS_2X2_WITH_SSDS));
        process.until("the service is ready", Process::is_ready);
        audit(&process, &acknowledged);
        // One workload of an earlier round ends and stays ended.
        if let Some((name, decision)) = acknowledged.pop() {
            let ended = process.delete(&format!("/v1/commitments/{}", decision.as_str().expect("an id")));
            assert_eq!(ended.map(|(status, _)| status), Some(200), "{name}");
        }
        let before = acknowledged.len();
        std::thread::scope(|scope| {
            let process = &process;
            let placing = scope.spawn(move || {
                let mut acknowledged = Vec::new();
                for number in 0.. {
                    let name = format!("w{round}-{number}");
                    let body = json!({ "workload": workload(&name) });
                    let Some((201, decision)) = process.send("/v1/workloads", &body) else { break };
                    acknowledged.push((name, decision["id"].clone()));
                }
                acknowledged
            });
            process.until("a workload is admitted", |process| {
                process.status("decided").as_u64().is_some_and(|decided| decided > 1 + round % 3)
            });
            std::thread::sleep(Duration::from_millis(11 * round));
            process.signal("-KILL");
            acknowledged.extend(placing.join().expect("the thread does not panic"));
        });
        assert!(acknowledged.len() > before, "nothing was acknowledged in round {round}");
        process.kill();
    }
    let process = Process::run(command_with_cluster(folder.path(), RACKS_2X2_WITH_SSDS));
    process.until("the service is ready", Process::is_ready);
    audit(&process, &acknowledged);
}

/// Command of a service with this cluster instead of the tests' default.
fn command_with_cluster(folder: &std::path::Path, cluster: &str) -> Command {
    let command = command(folder, "store.db");
    std::fs::write(folder.join("c.yaml"), cluster).expect("a file");
    command
}

/// Starts a service with its store on a disk of size `room`, which exists as long as the service. If the machine does
/// not allow such a disk, prints a message and returns `None`.
fn on_a_small_disk(folder: &std::path::Path, room: &str) -> Option<Process> {
    let disk = folder.join("disk");
    std::fs::create_dir(&disk).expect("a folder");
    let mount = format!("mount -t tmpfs -o size={room} tmpfs {}", disk.display());
    let trial = Command::new("unshare").args(["-m", "sh", "-c", &mount]).output();
    let mounts = trial.is_ok_and(|trial| trial.status.success());
    require("small disk", mounts.then_some(()).ok_or("`unshare -m` and `mount` need root"))?;
    let service = command(folder, "disk/store.db");
    let mut mounted = Command::new("unshare");
    mounted.args(["-m", "sh", "-c", &format!("{mount} && exec \"$@\""), "sh"]).arg(service.get_program());
    mounted.args(service.get_args()).current_dir(folder).env("HOME", folder);
    Some(Process::run(mounted))
}

#[test]
fn a_full_disk_stops_placements_but_not_reads_until_there_is_room() {
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
    // Writes succeed while the database file has free space, and fail after that.
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
        process.assert_has_all(&acknowledged);
        assert_eq!(process.get("/v1/racks").map(|(status, _)| status), Some(200));
        std::thread::sleep(Duration::from_millis(300));
    }
    drop(file);
    std::fs::remove_file(&filler).expect("the file exists");
    process.until("there is room again", |process| matches!(process.place("client", 1_000), Some((201, _))));
    process.assert_has_all(&acknowledged);
    assert!(process.is_ready() && process.status("stalled") == Value::Null);
}

#[test]
fn a_damaged_store_is_a_one_line_error_at_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut process = Process::start(folder.path(), "store.db");
    for sequence in 1..50 {
        process.place("client", sequence).expect("an answer");
    }
    process.signal("-TERM");
    assert!(process.child.wait().expect("the process ends").success());
    let file = folder.path().join("store.db");
    let whole = std::fs::read(&file).expect("a file");
    // Damages the whole file, its first bytes, and everything after the first page.
    for (from, to) in [(0, whole.len()), (0, 100), (4096, whole.len())] {
        let mut damaged = whole.clone();
        damaged[from..to].fill(0xa5);
        std::fs::write(&file, damaged).expect("a file");
        let output = command(folder.path(), "store.db").output().expect("the program starts");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let last = stderr.lines().last().unwrap_or_default();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(last.starts_with("error: --store: store.db: "), "{stderr}");
    }
}
