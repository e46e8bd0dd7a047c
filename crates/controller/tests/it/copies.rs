//! The copy to read and the copies to delete, over HTTP.

use crate::support::{Server, frozen_clock, idle_but, service};
use leeward_testing::clusters::RACKS_3X2;
use serde_json::json;

#[test]
fn a_read_and_a_deletion_are_chosen_by_load_and_nothing_is_committed() {
    let server = Server::start(service(RACKS_3X2, "", frozen_clock()));
    server.report(&idle_but("", 0.0));
    let busy = ["r0:uplink", "r1:uplink"]
        .map(|link| (link.to_owned(), if link == "r0:uplink" { 1e12 } else { 0.0 }));
    let egress = (0..3).flat_map(|rack| (0..2).map(move |host| (format!("r{rack}h{host}:egress"), 0.0)));
    server.report(&busy.into_iter().chain(egress).collect::<Vec<_>>());
    let before = server.get("/v1/status").2["epoch"].clone();
    let read = json!({ "hosts": ["r0h0", "r1h0"], "reader": "r2h1", "key": "block 7, read 1" });
    let (status, _, order) = server.post("/v1/choose/read", &read);
    assert_eq!(status, 200, "{order}");
    assert_eq!(order["copies"][0]["host"], "r1h0");
    assert_eq!(order["copies"][1]["limit"], "r0:uplink");
    assert!(order["copies"][0]["left_bps"].as_i64() > order["copies"][1]["left_bps"].as_i64(), "{order}");
    assert!(order["telemetry_age_s"].is_number());
    assert_eq!(server.post("/v1/choose/read", &read).2, order);
    let (status, _, deleted) =
        server.post("/v1/choose/delete", &json!({ "hosts": ["r0h0", "r1h0", "r1h1"] }));
    assert_eq!(
        (status, &deleted["copies"][0]["because"]),
        (200, &json!("another copy is in its fault domain"))
    );
    let (_, _, deleted) =
        server.post("/v1/choose/delete", &json!({ "hosts": ["r0h0", "r1h0", "r2h0"], "count": 1 }));
    assert_eq!(deleted["copies"][0]["host"], "r0h0", "its uplink is the busiest: {deleted}");
    assert_eq!(server.get("/v1/decisions").2["items"], json!([]));
    assert_eq!(server.get("/v1/status").2["epoch"], before);
}

#[test]
fn invalid_copies_are_errors_with_their_field() {
    let server = Server::start(service(RACKS_3X2, "", frozen_clock()));
    for (path, body, field) in [
        ("read", json!({ "hosts": [] }), "hosts"),
        ("read", json!({ "hosts": ["r0h0", "r9h0"] }), "hosts[1]"),
        ("read", json!({ "hosts": ["r0h0", "r0h0"] }), "hosts[1]"),
        ("read", json!({ "hosts": ["r0h0"], "reader": "x" }), "reader"),
        ("read", json!({ "hosts": ["r0h0"], "key": "" }), "key"),
        ("delete", json!({ "hosts": ["r0h0"], "count": 2 }), "count"),
        ("delete", json!({ "hosts": ["r0h0"], "count": 0 }), "count"),
    ] {
        let (status, _, problem) = server.post(&format!("/v1/choose/{path}"), &body);
        assert_eq!((status, &problem["field"]), (422, &json!(field)), "{body}: {problem}");
    }
    let down = json!({
        "from": "2026-01-31T12:00:09Z", "until": "2026-01-31T12:00:10Z", "hosts": [{ "host": "r0h0", "up": false }],
    });
    assert_eq!(server.post("/v1/reports", &down).0, 200);
    let (status, _, problem) = server.post("/v1/choose/read", &json!({ "hosts": ["r0h0"] }));
    assert_eq!((status, &problem["detail"]), (409, &json!("no host in `hosts` is up")));
}
