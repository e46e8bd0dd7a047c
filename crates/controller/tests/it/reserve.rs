//! Reservations, labels and tasks that stay apart, over HTTP.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::support::{Server, service_on};
use leeward_fabric::Nanos;
use leeward_records::Clock;
use leeward_store::{Durability, Sqlite};
use serde_json::{Value, json};

const TASKS: &str = "/v1/place/tasks";
/// Three racks of two hosts, each in its own zone.
const CLUSTER: &str = "{racks: [{labels: {zone: a}}, {labels: {zone: b}}, {labels: {zone: c}}], hosts_per_rack: 2, \
                       nic: 1Gbps, oversubscription: 2, cpus: 4}";

/// A service whose time is set by the test, in milliseconds.
fn start(path: &Path, time: &Arc<AtomicU64>) -> Server {
    let store = Sqlite::open(path, Durability::Process, 1_000).expect("a store");
    let time = time.clone();
    let origin = "2026-01-31T12:00:00Z".parse().expect("a time");
    let clock = Clock::new(origin, move || Nanos(time.load(Ordering::Relaxed) * 1_000_000));
    Server::start(service_on(CLUSTER, "without_telemetry: default", clock, Box::new(store)))
}

fn confirm(server: &Server, decision: &Value, query: &str) -> (u16, Value) {
    let id = decision["id"].as_str().expect("an id");
    let (status, _, body) =
        server.post_text(&format!("/v1/decisions/{id}/confirm{query}"), "application/json", "");
    (status, body)
}

fn app(count: u64, fields: &Value) -> Value {
    let mut body = json!({ "app": { "tasks": [{ "name": "t", "count": count, "cpus": 1 }] } });
    body.as_object_mut().expect("fields").extend(fields.as_object().expect("fields").clone());
    body
}

fn placed(server: &Server, body: &Value) -> Value {
    let (status, _, decision) = server.post(TASKS, body);
    assert_eq!(status, 201, "{decision}");
    decision
}

fn hosts(decision: &Value) -> Vec<String> {
    let hosts = decision["hosts"].as_array().expect("a list").iter();
    hosts.map(|host| host.as_str().expect("a name").to_owned()).collect()
}

#[test]
fn a_reservation_ends_unless_it_is_confirmed_also_over_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let time = Arc::new(AtomicU64::new(10_000));
    let mut server = start(&path, &time);
    let block = json!({ "size": "1MiB", "reserve": "30s", "lasts": "1h", "client": "c", "sequence": 1 });
    let (status, _, first) = server.post("/v1/place/replicas", &block);
    assert_eq!((status, &first["reserved_until"]), (201, &json!("2026-01-31T12:00:40Z")), "{first}");
    let second = placed(&server, &app(1, &json!({ "reserve": "30s", "job": "web" })));
    let third = placed(&server, &app(1, &json!({ "reserve": "30s" })));
    assert_eq!(confirm(&server, &first, "?dry_run=true").1["dry_run"], true);
    let (status, confirmed) = confirm(&server, &first, "");
    assert_eq!((status, &confirmed["reserved_until"]), (200, &Value::Null));
    assert_eq!(confirmed["expires"], "2026-01-31T13:00:10Z");
    assert_eq!(confirm(&server, &first, "").0, 200, "a second confirmation changes nothing");
    assert_eq!(server.post("/v1/place/replicas", &block).0, 200, "the same request");
    let longer = json!({ "size": "1MiB", "reserve": "31s", "lasts": "1h", "client": "c", "sequence": 1 });
    assert_eq!(server.post("/v1/place/replicas", &longer).0, 422, "another request");
    server.end().expect("the server ends");
    server = start(&path, &time);
    time.store(39_000, Ordering::Relaxed);
    assert_eq!(confirm(&server, &second, "").0, 200);
    time.store(41_000, Ordering::Relaxed);
    let ended = |decision: &Value| {
        let id = decision["id"].as_str().expect("an id");
        server.get(&format!("/v1/decisions/{id}")).2["released"].is_string()
    };
    assert_eq!([&first, &second, &third].map(ended), [false, false, true]);
    let (status, problem) = confirm(&server, &third, "");
    assert_eq!((status, &problem["type"]), (409, &json!("urn:leeward:problem:refused")), "{problem}");
    assert_eq!(confirm(&server, &json!({ "id": "77" }), "").0, 404);
    time.store(3_700_000, Ordering::Relaxed);
    let ended = |decision: &Value| {
        let id = decision["id"].as_str().expect("an id");
        server.get(&format!("/v1/decisions/{id}")).2["released"].is_string()
    };
    assert_eq!([&first, &second].map(ended), [true, false], "`lasts` counts from the decision");
}

#[test]
fn tasks_are_apart_from_those_that_run_and_from_other_jobs() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let time = Arc::new(AtomicU64::new(10_000));
    let mut server = start(&path, &time);
    let rack = |host: &String| host[..2].to_owned();
    let web = placed(&server, &app(2, &json!({ "job": "web", "apart": "rack" })));
    let mut racks: Vec<String> = hosts(&web).iter().map(rack).collect();
    assert_ne!(racks[0], racks[1]);
    server.end().expect("the server ends");
    server = start(&path, &time);
    let third = placed(&server, &app(1, &json!({ "job": "web", "apart": "rack" })));
    assert!(!racks.contains(&rack(&hosts(&third)[0])), "{third} beside {web}");
    racks.push(rack(&hosts(&third)[0]));
    let (status, _, problem) = server.post(TASKS, &app(1, &json!({ "job": "web", "apart": "rack" })));
    let detail = problem["detail"].as_str().expect("a text");
    assert!(status == 409 && detail.contains("must stay apart is there"), "{problem}");
    let what_if = server.post(
        &format!("/v1/decisions/{}/what-if", third["id"].as_str().expect("an id")),
        &json!({ "policy": "random" }),
    );
    assert_eq!(
        hosts(&what_if.2).iter().map(rack).collect::<Vec<_>>(),
        [racks[2].clone()],
        "its own task does not count"
    );

    // Each rack has one host without a task of `web`.
    let used: Vec<String> = hosts(&web).into_iter().chain(hosts(&third)).collect();
    let db = placed(
        &server,
        &app(3, &json!({ "job": "db", "apart": "host", "apart_from": { "web": "host", "gone": "rack" } })),
    );
    assert!(hosts(&db).iter().all(|host| !used.contains(host)), "{db} beside {web} and {third}");
    assert_eq!(server.post(TASKS, &app(1, &json!({ "apart_from": { "web": "rack" } }))).0, 409);
    for decision in [&web, &third] {
        let id = decision["id"].as_str().expect("an id");
        assert_eq!(server.delete(&format!("/v1/commitments/{id}")).0, 200);
    }
    assert_eq!(server.post(TASKS, &app(1, &json!({ "apart_from": { "web": "rack" } }))).0, 201);
}

#[test]
fn labels_choose_hosts_and_invalid_fields_are_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let time = Arc::new(AtomicU64::new(10_000));
    let server = start(&folder.path().join("store.db"), &time);
    let in_b = placed(&server, &app(2, &json!({ "labels": { "zone": "b" } })));
    assert!(hosts(&in_b).iter().all(|host| host.starts_with("r1")), "{in_b}");
    assert_eq!(in_b["request"]["labels"], json!({ "zone": ["b"] }));
    let (status, _, block) =
        server.post("/v1/place/replicas", &json!({ "size": "1MiB", "labels": { "zone": ["a", "c"] } }));
    assert_eq!(status, 201, "{block}");
    assert!(hosts(&block).iter().all(|host| !host.starts_with("r1")), "{block}");
    for (fields, field) in [
        (json!({ "labels": { "zone": "z" } }), "labels.zone"),
        (json!({ "labels": { "zone": 1 } }), "labels"),
        (json!({ "labels": { "zone": [] } }), "labels"),
        (json!({ "apart": "pod" }), "apart"),
        (json!({ "apart_from": { "web": "pod" } }), "apart_from"),
        (json!({ "job": "web", "apart_from": { "web": "host" } }), "apart_from"),
        (json!({ "reserve": "0s" }), "reserve"),
    ] {
        let (status, _, problem) = server.post(TASKS, &app(1, &fields));
        assert_eq!((status, &problem["field"]), (422, &json!(field)), "{fields}: {problem}");
    }
    let commitment = json!({ "hosts": ["r0h0"], "tasks": app(1, &json!({ "reserve": "1s" })) });
    assert_eq!(server.post("/v1/commitments", &commitment).2["field"], "tasks.reserve");
}
