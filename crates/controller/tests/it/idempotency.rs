//! A key or a sequence belongs to one request: another body is rejected, also after a restart.

use std::path::Path;

use crate::support::{Server, agent, frozen_clock, service_on};
use leeward_store::{Durability, Sqlite};
use leeward_testing::clusters::RACKS_3X2;
use serde_json::{Value, json};

const REPLICAS: &str = "/v1/place/replicas";
const TASKS: &str = "/v1/place/tasks";

/// A service on a store, with every link reported idle.
fn start(path: &Path) -> Server {
    let store = Sqlite::open(path, Durability::Process, 1_000).expect("a store");
    let server = Server::start(service_on(RACKS_3X2, "", frozen_clock(), Box::new(store)));
    let links = server.get("/v1/links").2;
    let links = links["items"].as_array().expect("a list").iter();
    let idle: Vec<(String, f64)> =
        links.map(|link| (link["link"].as_str().expect("a name").to_owned(), 0.0)).collect();
    server.report(&idle);
    server
}

/// Sends a request with a key. Returns the status and the response.
fn keyed(server: &Server, path: &str, key: &str, body: &Value) -> (u16, Value) {
    let request = agent().post(server.url(path)).header("content-type", "application/json");
    let mut response =
        request.header("idempotency-key", key).send(body.to_string()).expect("the server answers");
    let text = response.body_mut().read_to_string().expect("text");
    (response.status().as_u16(), serde_json::from_str(&text).expect("JSON"))
}

/// A body with some fields replaced.
fn with(body: &Value, fields: &Value) -> Value {
    let mut body = body.clone();
    let fields = fields.as_object().expect("fields").clone();
    body.as_object_mut().expect("fields").extend(fields);
    body
}

fn is_reused(field: &str, (status, problem): &(u16, Value)) -> bool {
    *status == 422
        && problem["type"] == "urn:leeward:problem:reused"
        && problem["field"] == field
        && problem["detail"].as_str().is_some_and(|detail| detail.contains("whose request had another body"))
}

#[test]
fn another_body_is_rejected_and_a_named_default_is_not_also_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let block = json!({ "size": "256MiB", "writer": "r0h0", "exclude": ["r2h1"] });
    let app = json!({ "app": { "tasks": [{ "name": "t", "cpus": 1 }] } });
    let mut server = start(&path);
    let (status, placed) = keyed(&server, REPLICAS, "block", &block);
    assert_eq!(status, 201, "{placed}");
    let (status, task) = keyed(&server, TASKS, "task", &app);
    assert_eq!(status, 201, "{task}");
    let before = server.get("/v1/commitments").2;
    for restarted in [false, true] {
        for same in [json!({}), json!({ "replicas": 3, "fault_domains": 1, "blocks_left": 1, "tags": [] })] {
            let again = keyed(&server, REPLICAS, "block", &with(&block, &same));
            assert_eq!((again.0, &again.1["id"]), (200, &placed["id"]), "{restarted} {same}");
        }
        for other in [
            json!({ "size": "255MiB" }),
            json!({ "writer": "r0h1" }),
            json!({ "replicas": 2 }),
            json!({ "exclude": [] }),
            json!({ "blocks_left": 2 }),
            json!({ "lasts": "1h" }),
        ] {
            let reply = keyed(&server, REPLICAS, "block", &with(&block, &other));
            assert!(is_reused("idempotency-key", &reply), "{restarted} {other} {reply:?}");
        }
        assert_eq!(keyed(&server, TASKS, "task", &app).0, 200);
        let reply =
            keyed(&server, TASKS, "task", &json!({ "app": { "tasks": [{ "name": "t", "cpus": 2 }] } }));
        assert!(is_reused("idempotency-key", &reply), "{restarted} {reply:?}");
        assert_eq!(server.get("/v1/commitments").2["items"], before["items"], "nothing was committed");
        if !restarted {
            server.end().expect("the server ends");
            server = start(&path);
        }
    }
}

#[test]
fn a_list_that_is_too_long_to_store_is_compared_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = start(&folder.path().join("store.db"));
    let exclude: Vec<&str> = ["r2h1"].into_iter().cycle().take(40).collect();
    let block = json!({ "size": "256MiB", "exclude": exclude, "client": "a", "sequence": 1 });
    let (status, _, placed) = server.post(REPLICAS, &block);
    assert_eq!((status, &placed["request"]["forgotten"]), (201, &json!(true)), "{placed}");
    assert_eq!(server.post(REPLICAS, &block).0, 200);
    let (status, _, problem) = server.post(REPLICAS, &with(&block, &json!({ "exclude": exclude[..39] })));
    assert!(is_reused("sequence", &(status, problem)));
}

#[test]
fn a_refused_request_does_not_take_its_key() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = start(&folder.path().join("store.db"));
    let (status, problem) = keyed(&server, REPLICAS, "k", &json!({ "size": "1MiB", "fault_domains": 9 }));
    assert_eq!(status, 409, "{problem}");
    assert_eq!(keyed(&server, REPLICAS, "k", &json!({ "size": "1MiB" })).0, 201);
}

#[test]
fn a_batch_with_a_key_of_its_own_is_rejected_and_places_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = start(&folder.path().join("store.db"));
    let block = json!({ "size": "1MiB", "replicas": 1 });
    for (path, body) in [
        ("/v1/place/batch", json!({ "requests": [{ "replicas": block }] })),
        ("/v1/commitments/batch", json!({ "commitments": [{ "hosts": ["r0h0"], "replicas": block }] })),
    ] {
        let (status, problem) = keyed(&server, path, "batch", &body);
        assert_eq!((status, &problem["field"]), (422, &json!("idempotency-key")), "{path}: {problem}");
        assert_eq!(server.get("/v1/decisions").2["items"], json!([]), "{path}");
    }
}
