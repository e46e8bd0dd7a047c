//! Stripes of erasure codes, and the storage that hosts report, over HTTP.

use crate::support::{Server, frozen_clock, service, service_on};
use leeward_store::{Durability, Sqlite};
use serde_json::{Value, json};

const PATH: &str = "/v1/place/replicas";
/// Four racks of three hosts, whose storage the cluster file does not say.
const CLUSTER: &str = "{racks: 4, hosts_per_rack: 3, nic: 1Gbps, oversubscription: 2}";

/// No load on any link into a rack or a host.
fn idle() -> Vec<(String, f64)> {
    let hosts = (0..4).flat_map(|rack| (0..3).map(move |host| format!("r{rack}h{host}:ingress")));
    (0..4).map(|rack| format!("r{rack}:downlink")).chain(hosts).map(|name| (name, 0.0)).collect()
}

fn server() -> Server {
    let server = Server::start(service(CLUSTER, "", frozen_clock()));
    server.report(&idle());
    server
}

/// Names of a decision's hosts.
fn hosts(decision: &Value) -> Vec<&str> {
    decision["hosts"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// A report of one host in the window before the given tenth of second ten.
fn host_report(tenth: u8, host: &Value) -> Value {
    json!({ "from": "2026-01-31T12:00:09Z", "until": format!("2026-01-31T12:00:09.{tenth}Z"), "hosts": [host] })
}

#[test]
fn a_stripe_is_placed_repaired_and_committed_and_survives_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let start = || {
        let store = Sqlite::open(&path, Durability::Process, 1_000).expect("a store");
        Server::start(service_on(CLUSTER, "", frozen_clock(), Box::new(store)))
    };
    let server = start();
    server.report(&idle());
    let body = json!({ "size": "2400MiB", "writer": "r0h0", "coding": "6+3", "client": "a", "sequence": 1 });
    let (status, _, placed) = server.post(PATH, &body);
    assert_eq!(status, 201, "{placed}");
    let chunks = hosts(&placed);
    assert_eq!((chunks.len(), chunks[0]), (9, "r0h0"), "{placed}");
    for rack in ["r0", "r1", "r2", "r3"] {
        let held = chunks.iter().filter(|host| host.starts_with(rack)).count();
        assert!((2..=3).contains(&held), "{rack} has {held} chunks: {placed}");
    }
    assert_eq!((&placed["request"]["coding"], &placed["request"]["replicas"]), (&json!("6+3"), &json!(9)));
    let last = chunks[8];
    assert_eq!(server.get(&format!("/v1/hosts/{last}")).2["stored"], "400MiB");
    // Two hosts are lost: their chunks are placed again.
    let repair = json!({ "size": "2400MiB", "coding": "6+3", "existing": chunks[..7] });
    let (status, _, repaired) = server.post(PATH, &repair);
    assert_eq!((status, hosts(&repaired).len(), &repaired["source"]), (201, 2, &json!(null)), "{repaired}");
    assert!(hosts(&repaired).iter().all(|host| !chunks[..7].contains(host)), "{repaired}");
    let first = hosts(&repaired)[0];
    let holds = server.get(&format!("/v1/links/{first}:ingress")).2["holds"].clone();
    let held =
        holds.as_array().is_some_and(|holds| holds.iter().any(|hold| hold["decision"] == repaired["id"]));
    assert!(held, "{first}: {holds}; {repaired}");
    let (status, _, what_if) = server.post("/v1/decisions/0/what-if", &json!({ "policy": "ccp" }));
    assert_eq!(status, 200, "{what_if}");
    server.end().expect("the server ends");
    let server = start();
    server.report(&idle());
    let (status, _, again) = server.post(PATH, &body);
    assert_eq!((status, &again["id"], &again["hosts"]), (200, &placed["id"], &placed["hosts"]));
    let other = json!({ "size": "2400MiB", "writer": "r0h0", "client": "a", "sequence": 1 });
    let (status, _, problem) = server.post(PATH, &other);
    assert_eq!(status, 422, "{problem}");
    assert!(problem["type"].as_str().is_some_and(|kind| kind.ends_with("reused")), "{problem}");
}

#[test]
fn the_caller_may_commit_a_stripe_and_learns_which_rack_has_too_many_chunks() {
    let server = server();
    let chosen = ["r0h0", "r0h1", "r1h0", "r2h0", "r3h0"];
    let body = |hosts: &[&str], coding: &str| json!({ "hosts": hosts, "replicas": { "size": "1GiB", "coding": coding } });
    let (status, _, decision) = server.post("/v1/commitments", &body(&chosen, "4+1"));
    assert_eq!(status, 201, "{decision}");
    let because = |at: usize| decision["why"][at]["because"].as_str();
    assert_eq!([0, 2, 3, 4].map(because), [None; 4], "{decision}");
    assert_eq!(because(1), Some("it fails together with another copy"), "{decision}");
    let (status, _, problem) = server.post("/v1/commitments", &body(&chosen, "6+3"));
    assert_eq!((status, &problem["field"]), (422, &json!("hosts")), "{problem}");
}

#[test]
fn invalid_stripes_are_problems_with_their_field() {
    let server = server();
    let many = ["r0h0", "r0h1", "r0h2", "r1h0", "r1h1", "r1h2", "r2h0", "r2h1", "r2h2"];
    for (body, field, part) in [
        (json!({ "size": "1GiB", "coding": "6" }), "coding", "such as 6+3"),
        (json!({ "size": "1GiB", "coding": "6+3", "replicas": 9 }), "replicas", "not both"),
        (json!({ "size": "1GiB", "coding": "6+3", "existing": many }), "existing", "none is missing"),
        (json!({ "size": "1GiB", "coding": "6+3", "existing": many[..5] }), "existing", "needs 6 chunks"),
        (
            json!({ "size": "1GiB", "coding": "6+3", "existing": many[..8], "writer": "r3h0" }),
            "writer",
            "rebuilds",
        ),
    ] {
        let (status, _, problem) = server.post(PATH, &body);
        assert_eq!((status, &problem["field"]), (422, &json!(field)), "{problem}");
        assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains(part)), "{problem}");
    }
    // Three racks of three hosts are not enough for chunks of which any two racks may be lost.
    let (status, _, problem) =
        server.post(PATH, &json!({ "size": "1GiB", "coding": "6+3", "fault_domains": 2 }));
    assert_eq!((status, problem["type"].as_str().is_some_and(|kind| kind.ends_with("refused"))), (409, true));
}

#[test]
fn a_host_is_full_when_its_reported_storage_is_used() {
    let server = server();
    assert_eq!(server.get("/v1/hosts/r0h0").2["storage"], json!(null));
    let volumes = |used: &str| json!({ "host": "r0h0", "stored": used, "storage": "10GiB" });
    let first = |server: &Server| {
        let (status, _, decision) = server.post(PATH, &json!({ "size": "1GiB", "writer": "r0h0" }));
        assert_eq!(status, 201, "{decision}");
        hosts(&decision)[0] == "r0h0"
    };
    assert_eq!(server.post("/v1/reports", &host_report(1, &volumes("9GiB"))).0, 200);
    let host = server.get("/v1/hosts/r0h0").2;
    assert_eq!((&host["stored"], &host["storage"]), (&json!("9GiB"), &json!("10GiB")));
    assert!(first(&server) && !first(&server), "a block of 1 GiB fits once");
    let (status, _, problem) =
        server.post("/v1/reports", &host_report(2, &json!({ "host": "r0h0", "storage": "10GiB" })));
    assert_eq!((status, &problem["field"]), (422, &json!("hosts[0].storage")), "{problem}");
}
