//! More copies of a block that has some, over HTTP: for a host that is lost, or leaves.

use crate::support::{Server, frozen_clock, idle_but, service};
use serde_json::json;

const PATH: &str = "/v1/place/replicas";
/// Three racks of two hosts.
const CLUSTER: &str = "{racks: 3, hosts_per_rack: 2, nic: 1Gbps, oversubscription: 2, \
                       devices: [{name: ssd, type: ssd, read: 500MB/s, write: 400MB/s, capacity: 1GiB}]}";

fn server() -> Server {
    let server = Server::start(service(CLUSTER, "", frozen_clock()));
    server.report(&idle_but("", 0.0));
    server
}

#[test]
fn a_lost_copy_is_replaced_from_a_holder_and_the_response_names_it() {
    let server = server();
    let down = json!({
        "from": "2026-01-31T12:00:09Z", "until": "2026-01-31T12:00:10Z", "hosts": [{ "host": "r0h0", "up": false }],
    });
    assert_eq!(server.post("/v1/reports", &down).0, 200);
    let body = json!({ "size": "256MiB", "replicas": 1, "existing": ["r0h0", "r1h0"], "storage": "ssd" });
    for query in ["?dry_run=true", ""] {
        let (status, _, decision) = server.post(&format!("{PATH}{query}"), &body);
        assert!([200, 201].contains(&status), "{decision}");
        assert_eq!(
            (&decision["source"], &decision["hosts"].as_array().map(Vec::len)),
            (&json!("r1h0"), &Some(1))
        );
        let host = decision["hosts"][0].as_str().expect("a name");
        assert!(!["r0h0", "r1h0"].contains(&host), "{decision}");
        assert_eq!(decision["request"]["existing"], json!(["r0h0", "r1h0"]));
    }
    let (status, _, what_if) = server.post("/v1/decisions/0/what-if", &json!({ "policy": "uniform" }));
    assert_eq!((status, &what_if["source"]), (200, &json!("r1h0")), "{what_if}");
    let both = json!({
        "from": "2026-01-31T12:00:09Z", "until": "2026-01-31T12:00:10Z", "hosts": [{ "host": "r1h0", "up": false }],
    });
    assert_eq!(server.post("/v1/reports", &both).0, 200);
    let (status, _, problem) = server.post(PATH, &body);
    let detail = problem["detail"].as_str().expect("a text");
    assert_eq!(status, 409);
    assert!(detail.starts_with("no host in `existing` is up"), "{detail}");
    let (status, _, decision) = server.post(PATH, &json!({ "size": "1MiB" }));
    assert_eq!((status, &decision["source"]), (201, &json!(null)));
}

#[test]
fn unknown_and_repeated_names_are_errors_with_their_field() {
    let server = server();
    for (body, field) in [
        (json!({ "size": "1MiB", "existing": ["r9h9"] }), "existing"),
        (json!({ "size": "1MiB", "existing": ["r0h0", "r0h0"] }), "existing"),
        (json!({ "size": "1MiB", "prefer": ["r0"] }), "prefer"),
        (json!({ "size": "1MiB", "storage": "tape" }), "storage"),
    ] {
        let (status, _, problem) = server.post(PATH, &body);
        assert_eq!((status, &problem["field"]), (422, &json!(field)), "{problem}");
    }
}
