//! Causes of hot links, and the reasons for which no task moves.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::support::{Server, report, with_clock};
use leeward_records::Clock;
use leeward_testing::clusters::RACKS_4X3;
use serde_json::{Value, json};

/// Reports the loads of all links for some seconds, so that loads and hot periods are as reported: 0 for links that are
/// not named.
fn carry((server, clock, seconds): &(Server, Clock, Arc<AtomicU64>), loads: &[(&str, f64)], tasks: &[Value]) {
    let (_, _, links) = server.get("/v1/links?limit=1000");
    let names: Vec<&str> =
        links["items"].as_array().expect("a list").iter().filter_map(|link| link["link"].as_str()).collect();
    let load = |name: &str| loads.iter().find(|(link, _)| *link == name).map_or(0.0, |(_, load)| *load);
    let all: Vec<(&str, f64)> = names.iter().map(|&name| (name, load(name))).collect();
    for _ in 0..30 {
        seconds.fetch_add(1, Ordering::SeqCst);
        report(server, clock, &all, tasks);
    }
}

/// The hot link with this name.
fn hot(server: &Server, link: &str) -> Value {
    let (status, _, page) = server.get("/v1/hotspots");
    assert_eq!(status, 200, "{page}");
    let items = page["items"].as_array().expect("a list");
    items.iter().find(|one| one["link"] == link).unwrap_or_else(|| panic!("{link} in {page}")).clone()
}

fn place(server: &Server, task: &Value) -> Value {
    let app = json!({ "job": "crawl", "app": { "tasks": [task] } });
    let (status, _, decision) = server.post("/v1/place/tasks", &app);
    assert_eq!(status, 201, "{decision}");
    decision
}

fn moves(server: &Server, mode: &str) {
    let (status, body) = server.patch("/v1/modes", &json!({ "moves": mode }), "");
    assert_eq!(status, 200, "{body}");
}

/// Reports of the tasks in rack r0, with rising rates.
fn rates(tasks: &[Value]) -> Vec<Value> {
    let in_rack = |task: &&Value| task["hosts"][0].as_str().is_some_and(|host| host.starts_with("r0"));
    let rate = |(at, task): (usize, &Value)| json!({ "decision": task["id"], "egress_bps": 100_000_000 * (at + 1), "ingress_bps": 0 });
    tasks.iter().filter(in_rack).enumerate().map(rate).collect()
}

const HOT: [(&str, f64); 1] = [("r0:uplink", 2.9e9)];

#[test]
fn a_hot_link_has_its_heaviest_tasks_and_the_load_that_is_not_theirs() {
    let cluster = with_clock(RACKS_4X3, "");
    let server = &cluster.0;
    carry(&cluster, &[], &[]);
    moves(server, "off");
    let tasks: Vec<Value> = (0..20).map(|at| place(server, &json!({ "name": format!("t{at}") }))).collect();
    let rates = rates(&tasks);
    assert!(rates.len() > 3, "the tasks are spread");
    carry(&cluster, &HOT, &rates);
    let link = hot(server, "r0:uplink");
    let heaviest = link["heaviest"].as_array().expect("a list");
    let shown: Vec<(&Value, &Value)> =
        heaviest.iter().map(|one| (&one["decision"], &one["rate_bps"])).collect();
    let largest: Vec<(&Value, &Value)> =
        rates.iter().rev().take(3).map(|one| (&one["decision"], &one["egress_bps"])).collect();
    assert_eq!(shown, largest, "the three largest, the largest first");
    assert_eq!((&heaviest[0]["job"], &heaviest[0]["size"]), (&json!("crawl"), &Value::Null));
    assert!(heaviest[0]["host"].as_str().is_some_and(|host| host.starts_with("r0h")), "{link}");
    let known: u64 = rates.iter().filter_map(|one| one["egress_bps"].as_u64()).sum();
    let measured = link["measured_bps"].as_u64().expect("a number");
    assert!((2_800_000_000..=2_900_000_000).contains(&measured), "{link}");
    assert_eq!(link["unexplained_bps"], json!(measured - known));
}

#[test]
fn a_transfer_of_a_block_has_its_size_and_receiver_until_telemetry_shows_it() {
    let cluster = with_clock(RACKS_4X3, "threshold: 0B");
    let server = &cluster.0;
    // Every rack that could take a copy is hot.
    let hot_racks = [("r1:downlink", 2.9e9), ("r2:downlink", 2.9e9), ("r3:downlink", 2.9e9)];
    carry(&cluster, &hot_racks, &[]);
    let block = json!({ "size": "512MiB", "writer": "r0h0" });
    let (status, _, decision) = server.post("/v1/place/replicas", &block);
    assert_eq!(status, 201, "{decision}");
    let receiver = decision["hosts"][1].as_str().expect("a name");
    let downlink = format!("{}:downlink", &receiver[..2]);
    let link = hot(server, &downlink);
    let expected = json!([{
        "decision": decision["id"], "job": null, "task": null, "host": receiver, "rate_bps": null,
        "stays": null, "size": "512MiB",
    }]);
    let mut heaviest = link["heaviest"].clone();
    // Both copies in the rack arrive by this link, in one chain.
    let to = std::mem::replace(&mut heaviest[0]["host"], json!(receiver));
    assert!(decision["hosts"].as_array().is_some_and(|hosts| hosts[1..].contains(&to)), "{link}");
    assert_eq!(heaviest, expected);
    assert_eq!(link["unexplained_bps"], link["measured_bps"]);
    let is_shown = |_: &u32| {
        carry(&cluster, &hot_racks, &[]);
        hot(server, &downlink)["heaviest"] == json!([])
    };
    assert!((0..60).any(|window| is_shown(&window)), "telemetry never shows the transfer");
}

#[test]
fn a_hot_link_without_a_move_has_the_reason() {
    let reason = |server: &Server, link: &str| hot(server, link)["no_move"].clone();
    let cluster = with_clock(RACKS_4X3, "");
    let server = &cluster.0;
    // Nothing runs: the load is that of others.
    carry(&cluster, &[("r0:uplink", 2.9e9), ("r1h0:egress", 0.95e9)], &[]);
    assert_eq!(reason(server, "r0:uplink"), "others");
    assert_eq!(reason(server, "r1h0:egress"), "other-link");
    for (mode, expected) in
        [("off", "off"), ("shadow", "shadow"), ("canary:1%:rack", "canary"), ("on", "others")]
    {
        moves(server, mode);
        assert_eq!(reason(server, "r0:uplink"), expected, "{mode}");
    }
    // Tasks that are sensitive to latency stay.
    carry(&cluster, &[], &[]);
    let fixed: Vec<Value> = (0..8).map(|_| place(server, &json!({ "name": "t" }))).collect();
    carry(&cluster, &HOT, &rates(&fixed));
    assert_eq!(reason(server, "r0:uplink"), "fixed");
    assert_eq!(hot(server, "r0:uplink")["heaviest"][0]["stays"], "sensitive");
    let (_, _, rack) = server.get("/v1/racks/r0");
    assert!(
        rack["tasks"].as_array().is_some_and(|tasks| tasks.iter().all(|one| one["stays"] == "sensitive"))
    );
    // A task may move, but every other rack is hot too.
    carry(&cluster, &[], &[]);
    let tolerant = json!({ "name": "t", "tolerant": true });
    let movable: Vec<Value> = (0..8).map(|_| place(server, &tolerant)).collect();
    let all = ["r0", "r1", "r2", "r3"].map(|rack| format!("{rack}:uplink"));
    let all: Vec<(&str, f64)> = all.iter().map(|link| (link.as_str(), 2.9e9)).collect();
    moves(server, "off");
    carry(&cluster, &all, &rates(&movable));
    moves(server, "on");
    assert_eq!(reason(server, "r0:uplink"), "no-target");
    // An advised move waits for its answer.
    carry(&cluster, &HOT, &rates(&movable));
    assert!(server.get("/v1/migrations").2["items"].as_array().is_some_and(|moves| !moves.is_empty()));
    assert_eq!(reason(server, "r0:uplink"), Value::Null);
}

#[test]
fn one_executor_takes_a_move_and_reports_its_end() {
    let cluster = with_clock(RACKS_4X3, "");
    let server = &cluster.0;
    carry(&cluster, &[], &[]);
    let tolerant = json!({ "name": "t", "tolerant": true });
    let movable: Vec<Value> = (0..8).map(|_| place(server, &tolerant)).collect();
    carry(&cluster, &HOT, &rates(&movable));
    let (_, _, page) = server.get("/v1/migrations?state=advised");
    let advised = &page["items"][0];
    assert_eq!((&advised["executor"], &advised["reason"]), (&Value::Null, &Value::Null), "{page}");
    assert!(advised["expires"].as_str() > advised["time"].as_str(), "{page}");
    let path = format!("/v1/migrations/{}", advised["id"].as_str().expect("an id"));
    let (status, _, problem) = server.post(&path, &json!({ "answer": "taken" }));
    assert_eq!((status, &problem["field"]), (422, &json!("executor")), "{problem}");
    for _ in 0..2 {
        let (status, _, taken) = server.post(&path, &json!({ "answer": "taken", "executor": "evictor-1" }));
        assert_eq!(
            (status, &taken["state"], &taken["executor"]),
            (200, &json!("taken"), &json!("evictor-1"))
        );
        assert!(taken["expires"].as_str() > advised["expires"].as_str(), "{taken}");
    }
    assert_eq!(hot(server, "r0:uplink")["no_move"], Value::Null, "a taken move is under way");
    let (status, _, problem) = server.post(&path, &json!({ "answer": "taken", "executor": "evictor-2" }));
    assert_eq!((status, &problem["detail"]), (409, &json!("the move is already taken")), "{problem}");
    let failed = json!({ "answer": "failed", "reason": "no room" });
    for _ in 0..2 {
        let (status, _, answered) = server.post(&path, &failed);
        assert_eq!(
            (status, &answered["state"], &answered["reason"]),
            (200, &json!("failed"), &json!("no room"))
        );
        assert_eq!((&answered["executor"], &answered["expires"]), (&Value::Null, &Value::Null), "{answered}");
    }
    assert_eq!(server.post(&path, &json!({ "answer": "done" })).0, 409);
}

#[test]
fn the_status_has_the_settings_of_estimates_and_moves() {
    let (server, ..) = with_clock(RACKS_4X3, "");
    let (_, _, status) = server.get("/v1/status");
    assert_eq!((&status["ledger"]["alpha"], &status["ledger"]["interval"]), (&json!(0.2), &json!("1s")));
    assert_eq!(
        (&status["ledger"]["missing"], &status["ledger"]["initial"]),
        (&json!("strict"), &json!("first"))
    );
    assert_eq!(
        (&status["moves"]["windows"], &status["moves"]["timeout"]),
        (&json!(1), &json!("5min")),
        "{status}"
    );
}
