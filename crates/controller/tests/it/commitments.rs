//! Placements that the caller decided itself, over HTTP.

use crate::support::{Server, agent, frozen_clock, idle_but, service, service_on};
use leeward_fabric::Nanos;
use leeward_records::Clock;
use leeward_store::{Durability, Sqlite};
use serde_json::{Value, json};

const COMMITMENTS: &str = "/v1/commitments";
/// Three racks of two hosts. Each host stores 1 GiB.
const CLUSTER: &str = "{racks: 3, hosts_per_rack: 2, nic: 1Gbps, oversubscription: 2, cpus: 4, \
                       devices: [{name: ssd, read: 500MB/s, write: 400MB/s, capacity: 1GiB}]}";

fn start(path: &std::path::Path) -> Server {
    let store = Sqlite::open(path, Durability::Process, 1_000).expect("a store");
    let server = Server::start(service_on(CLUSTER, "", frozen_clock(), Box::new(store)));
    server.report(&idle_but("", 0.0));
    server
}

fn folder() -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    (folder, path)
}

/// Committed load of a link, in bit/s.
fn committed(server: &Server, link: &str) -> f64 {
    let decisions = &server.get(&format!("/v1/links/{link}")).2["holds"];
    decisions.as_array().expect("a list").len() as f64
}

#[test]
fn a_commitment_counts_and_is_explained_and_released_as_a_decision_also_after_a_restart() {
    let (_folder, path) = folder();
    let mut server = start(&path);
    let block = json!({
        "hosts": ["r0h0", "r1h1", "r1h0"], "chosen": "2026-01-31T12:00:09.5Z",
        "replicas": { "size": "256MiB", "writer": "r0h0", "client": "namenode", "sequence": 7 },
    });
    let (status, _, decision) = server.post(COMMITMENTS, &block);
    assert_eq!((status, &decision["policy"]), (201, &json!("caller")), "{decision}");
    assert_eq!(decision["hosts"], json!(["r0h0", "r1h1", "r1h0"]));
    assert_eq!((&decision["client"], &decision["request"]["replicas"]), (&json!("namenode"), &json!(3)));
    assert_eq!(decision["beside"]["policy"], "sinbad", "Leeward's choice is compared: {decision}");
    let why = decision["why"].as_array().expect("a list");
    assert!(why.iter().all(|one| one["verdict"] == "chosen" && one["because"].is_null()), "{decision}");
    let app = json!({ "app": { "tasks": [{ "name": "a", "cpus": 1, "egress": { "peak": "100Mbps" } }] }, "job": "web" });
    let (status, _, tasks) = server.post(COMMITMENTS, &json!({ "hosts": ["r2h0"], "tasks": app }));
    assert_eq!((status, &tasks["kind"]), (201, &json!("tasks")), "{tasks}");
    for restarted in [false, true] {
        assert!(committed(&server, "r1h1:ingress") >= 1.0, "{restarted}");
        assert!(committed(&server, "r2h0:egress") >= 1.0, "{restarted}");
        assert_eq!(server.get("/v1/hosts/r1h1").2["stored"], "256MiB", "{restarted}");
        let rack = server.get("/v1/racks/r2").2;
        assert_eq!(rack["tasks"][0]["job"], "web", "{rack}");
        let (status, _, again) = server.post(COMMITMENTS, &block);
        assert_eq!((status, &again["id"]), (200, &decision["id"]));
        if !restarted {
            server.end().expect("the server ends");
            server = start(&path);
        }
    }
    for id in [&decision["id"], &tasks["id"]] {
        assert_eq!(server.delete(&format!("/v1/commitments/{}", id.as_str().expect("an id"))).0, 200);
    }
    assert_eq!(committed(&server, "r1h1:ingress") + committed(&server, "r2h0:egress"), 0.0);
}

#[test]
fn hosts_that_a_policy_would_refuse_are_recorded_with_the_reason() {
    let (_folder, path) = folder();
    let server = start(&path);
    let window = json!({
        "from": "2026-01-31T12:00:09Z", "until": "2026-01-31T12:00:10Z",
        "hosts": [{ "host": "r0h1", "up": false }, { "host": "r1h0", "stored": "1GiB" }],
    });
    assert_eq!(server.post("/v1/reports", &window).0, 200);
    let because = |body: &Value| -> Vec<Value> {
        let (status, _, decision) = server.post(COMMITMENTS, body);
        assert_eq!(status, 201, "{decision}");
        decision["why"].as_array().expect("a list").iter().map(|one| one["because"].clone()).collect()
    };
    let block = |hosts: Value, more: Value| {
        let mut replicas = json!({ "size": "64MiB", "replicas": hosts.as_array().map(Vec::len) });
        replicas.as_object_mut().expect("fields").extend(more.as_object().expect("fields").clone());
        json!({ "hosts": hosts, "replicas": replicas })
    };
    assert_eq!(
        because(&block(json!(["r0h1", "r1h0", "r2h0"]), json!({ "exclude": ["r2"] }))),
        [json!("the host is down"), json!("the block does not fit"), json!("excluded by the request")]
    );
    assert_eq!(
        because(&block(json!(["r2h0", "r2h1"]), json!({}))),
        [Value::Null, json!("it fails together with another copy")]
    );
    let tasks = json!([{ "name": "a", "cpus": 3 }, { "name": "b", "cpus": 3 }]);
    assert_eq!(
        because(&json!({ "hosts": ["r2h0", "r2h0"], "tasks": { "app": { "tasks": tasks } } })),
        [Value::Null, json!("too few processors are left")]
    );
    // A policy counts these tasks: no host of the rack has three processors left but r2h1.
    let (status, _, placed) = server.post(
        "/v1/place/tasks",
        &json!({ "app": { "tasks": [{ "name": "c", "cpus": 3 }] }, "exclude": ["r0", "r1"] }),
    );
    assert_eq!((status, &placed["hosts"]), (201, &json!(["r2h1"])));
}

#[test]
fn an_invalid_commitment_names_its_field_and_changes_nothing() {
    let (_folder, path) = folder();
    let server = start(&path);
    let replicas = json!({ "size": "1MiB", "replicas": 2 });
    let tasks = json!({ "app": { "tasks": [{ "name": "a" }] } });
    let cases = [
        (json!({ "hosts": ["r0h0"] }), "replicas"),
        (json!({ "hosts": ["r0h0"], "replicas": replicas, "tasks": tasks }), "tasks"),
        (json!({ "hosts": ["r0h0"], "replicas": replicas }), "hosts"),
        (json!({ "hosts": ["r0h0", "r0h0"], "replicas": replicas }), "hosts"),
        (json!({ "hosts": ["r0h0", "r9h0"], "replicas": replicas }), "hosts"),
        (json!({ "hosts": [], "tasks": tasks }), "hosts"),
        (
            json!({ "hosts": ["r0h0", "r1h0"], "replicas": { "size": "1MiB", "replicas": 2, "writer": "x" } }),
            "replicas.writer",
        ),
        (json!({ "hosts": ["r0h0", "r1h0"], "replicas": { "size": "0B", "replicas": 2 } }), "replicas.size"),
        (json!({ "hosts": ["r0h0"], "tasks": { "app": {} } }), "tasks.app.tasks"),
        (
            json!({ "hosts": ["r0h0"], "tasks": { "app": { "tasks": [{ "name": "a" }] }, "client": "c" } }),
            "tasks.sequence",
        ),
        (json!({ "hosts": ["r0h0"], "tasks": tasks, "chosen": "2026-01-31T12:00:11Z" }), "chosen"),
        (json!({ "hosts": ["r0h0"], "tasks": tasks, "chosen": "yesterday" }), "chosen"),
        (
            json!({ "hosts": ["r0h0", "r1h0"], "chosen": "2026-01-31T12:00:05Z",
            "replicas": { "size": "1MiB", "replicas": 2, "lasts": "4s" } }),
            "replicas.lasts",
        ),
    ];
    for (body, field) in cases {
        for query in ["", "?dry_run=true"] {
            let (status, _, problem) = server.post(&format!("{COMMITMENTS}{query}"), &body);
            assert_eq!((status, &problem["field"]), (422, &json!(field)), "{body}: {problem}");
        }
    }
    let body = json!({ "hosts": ["r0h0", "r1h0"], "replicas": replicas });
    let (status, _, decision) = server.post(&format!("{COMMITMENTS}?dry_run=true"), &body);
    assert_eq!(
        (status, &decision["dry_run"], &decision["id"]),
        (200, &json!(true), &json!("0")),
        "{decision}"
    );
    assert_eq!(server.get("/v1/decisions").2["items"], json!([]));
    let (status, _, decision) = server.post(COMMITMENTS, &body);
    assert_eq!((status, &decision["id"]), (201, &json!("0")));
}

#[test]
fn a_key_belongs_to_one_choice_of_hosts() {
    let (_folder, path) = folder();
    let server = start(&path);
    let keyed = |path: &str, body: &Value| {
        let request = agent().post(server.url(path)).header("content-type", "application/json");
        let mut response =
            request.header("idempotency-key", "k").send(body.to_string()).expect("the server answers");
        let text = response.body_mut().read_to_string().expect("text");
        (response.status().as_u16(), serde_json::from_str::<Value>(&text).expect("JSON"))
    };
    let replicas = json!({ "size": "1MiB", "replicas": 2 });
    let first = json!({ "hosts": ["r0h0", "r1h0"], "replicas": replicas });
    assert_eq!(keyed(COMMITMENTS, &first).0, 201);
    assert_eq!(keyed(COMMITMENTS, &first).0, 200);
    let other = json!({ "hosts": ["r0h0", "r1h1"], "replicas": replicas });
    for (path, body) in [(COMMITMENTS, &other), ("/v1/place/replicas", &replicas)] {
        let (status, problem) = keyed(path, body);
        assert_eq!((status, &problem["field"]), (422, &json!("idempotency-key")), "{problem}");
    }
}

#[test]
fn an_old_transfer_adds_no_load_and_its_copies_count() {
    let clock = Clock::new("2026-01-31T12:00:00Z".parse().expect("a time"), || Nanos(3_600_000_000_000));
    let server = Server::start(service(CLUSTER, "", clock));
    let body = |chosen: &str, hosts: [&str; 2]| json!({ "hosts": hosts, "chosen": chosen, "replicas": { "size": "64MiB", "replicas": 2 } });
    assert_eq!(server.post(COMMITMENTS, &body("2026-01-31T12:30:00Z", ["r0h0", "r1h0"])).0, 201);
    assert_eq!(server.post(COMMITMENTS, &body("2026-01-31T12:59:59Z", ["r0h1", "r1h1"])).0, 201);
    assert_eq!((committed(&server, "r1h0:ingress"), committed(&server, "r1h1:ingress")), (0.0, 1.0));
    for host in ["r0h0", "r1h0", "r1h1"] {
        assert_eq!(server.get(&format!("/v1/hosts/{host}")).2["stored"], "64MiB", "{host}");
    }
}

#[test]
fn a_batch_commits_each_of_its_placements_once_and_each_has_its_own_result() {
    let (_folder, path) = folder();
    let server = start(&path);
    let block =
        |sequence: u64| json!({ "size": "1MiB", "replicas": 1, "client": "namenode", "sequence": sequence });
    let commitments = json!([
        { "hosts": ["r0h0"], "replicas": block(1) },
        { "hosts": ["r1h1"], "replicas": block(2) },
        { "hosts": ["nobody"], "replicas": block(3) },
        { "hosts": ["r2h0", "r2h1"], "replicas": block(4) },
        { "hosts": ["r2h0"], "replicas": { "size": "1MiB", "replicas": 1, "lasts": "0s" } },
        { "key": "web", "hosts": ["r2h0"], "tasks": { "app": { "tasks": [{ "name": "a" }] } } },
        { "key": "k", "hosts": ["r2h0"], "replicas": block(5) },
        { "hosts": ["r2h0"] },
    ]);
    let batch = |commitments: &Value, query: &str| {
        let (status, _, body) =
            server.post(&format!("{COMMITMENTS}/batch{query}"), &json!({ "commitments": commitments }));
        assert_eq!(status, 200, "{body}");
        body["results"].as_array().expect("a list").clone()
    };
    let statuses =
        |results: &[Value]| results.iter().filter_map(|one| one["status"].as_u64()).collect::<Vec<_>>();
    let dry = batch(&commitments, "?dry_run=true");
    assert_eq!(statuses(&dry), [200, 200, 422, 422, 422, 200, 422, 422]);
    assert_eq!(server.get("/v1/decisions").2["items"], json!([]));

    let first = batch(&commitments, "");
    assert_eq!(statuses(&first), [201, 201, 422, 422, 422, 201, 422, 422]);
    let fields: Vec<&str> = first.iter().filter_map(|one| one["problem"]["field"].as_str()).collect();
    let expected = ["[2].hosts", "[3].hosts", "[4].replicas.lasts", "[6].key", "[7].replicas"];
    assert_eq!(fields, expected.map(|field| format!("commitments{field}")));
    assert_eq!(
        (&first[5]["decision"]["key"], &first[5]["decision"]["policy"]),
        (&json!("web"), &json!("caller"))
    );
    // Of a client's sequences, only the last one has an answer again.
    let again = batch(&commitments, "");
    assert_eq!(statuses(&again), [409, 200, 422, 422, 422, 200, 422, 422]);
    assert_eq!(again[1]["decision"]["id"], first[1]["decision"]["id"]);
    assert_eq!(server.get("/v1/decisions").2["items"].as_array().map(Vec::len), Some(3));
    assert_eq!(server.get("/v1/hosts/r1h1").2["stored"], "1MiB");
    for count in [0, 101] {
        let body = json!({ "commitments": vec![commitments[0].clone(); count] });
        let (status, _, problem) = server.post(&format!("{COMMITMENTS}/batch"), &body);
        assert_eq!((status, &problem["field"]), (422, &json!("commitments")), "{problem}");
    }
}
