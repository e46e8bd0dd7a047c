//! Changed workloads over HTTP: the outcomes of decisions, and invalid requests.

use crate::support::{Server, frozen_clock, service};
use leeward_testing::clusters::VOLUMES;
use leeward_testing::workloads::form;
use serde_json::{Value, json};

const SHA256: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn grant(server: &Server, name: &str, millis: u64, share: u64) -> Value {
    let body = json!({ "workload": form(name, Some("r1h1"), millis, share) });
    let (status, _, made) = server.post("/v1/workloads", &body);
    assert_eq!(status, 201, "{made}");
    made
}

fn body(name: &str, millis: u64, share: u64) -> Value {
    let trace = json!({ "sha256": SHA256, "requests": 1000, "seconds": 60.5 });
    json!({ "workload": form(name, None, millis, share), "trace": trace, "bytes": "1GiB" })
}

/// The decision about a changed workload.
fn change(server: &Server, path: &str, body: &Value) -> Value {
    let (status, _, decision) = server.put(path, body);
    assert_eq!(status, 200, "{decision}");
    decision
}

#[test]
fn a_changed_workload_keeps_its_server_or_should_move() {
    let server = Server::start(service(VOLUMES, "", frozen_clock()));
    grant(&server, "large", 400, 60);
    let made = grant(&server, "grows", 400, 10);
    assert!(made.get("redecision").is_none(), "{made}");
    let before = server.get("/v1/workloads/grows").2;
    let would = change(&server, "/v1/workloads/grows?dry_run=true", &body("grows", 400, 12));
    assert_eq!(
        (&would["redecision"]["outcome"], &would["dry_run"]),
        (&json!("limits"), &json!(true)),
        "{would}"
    );
    assert_eq!(server.get("/v1/workloads/grows").2, before);
    let decided = change(&server, "/v1/workloads/grows", &body("grows", 400, 12));
    assert_eq!((&decided["redecision"]["outcome"], &decided["id"]), (&json!("limits"), &made["id"]));
    assert_eq!(decided["redecision"]["trace"]["sha256"], json!(SHA256));
    let after = server.get("/v1/workloads/grows").2;
    assert_eq!((&after["version"], &after["decision"]), (&json!(3), &before["decision"]), "{after}");
    assert_ne!(after["stages"], before["stages"]);
    // A server without room: the promise stays, and the copy is planned.
    let moves = change(&server, "/v1/workloads/grows", &body("grows", 400, 50));
    let redecision = &moves["redecision"];
    assert_eq!(redecision["outcome"], json!("move"), "{moves}");
    assert!(redecision["reason"].is_string() && redecision["server"] != json!("r1h1"), "{moves}");
    let copy = &redecision["copy"];
    assert_eq!((&copy["from"], &copy["to"]), (&json!("r1h1:ssd"), &redecision["volume"]));
    assert!(copy["rate_bps"].as_u64() > Some(0) && copy["seconds"].as_f64() > Some(0.0), "{copy}");
    assert_eq!(server.get("/v1/workloads/grows").2["stages"], after["stages"]);
    let path = format!("/v1/decisions/{}", made["id"].as_str().expect("an id"));
    assert_eq!(server.get(&path).2, moves, "the decision is stored");
    for workload in copy["workloads"].as_array().expect("a list") {
        assert_eq!(server.post("/v1/workloads", &json!({ "workload": workload })).0, 201, "{workload}");
    }
    let nowhere = change(&server, "/v1/workloads/grows", &body("grows", 1, 50));
    assert_eq!(
        (&nowhere["redecision"]["outcome"], &nowhere["redecision"]["copy"]),
        (&json!("nowhere"), &Value::Null)
    );
    assert!(server.end().is_ok());
}

type Change<'a> = &'a dyn Fn(&mut Value);

#[test]
fn invalid_changes_are_problems_and_change_nothing() {
    let server = Server::start(service(VOLUMES, "", frozen_clock()));
    grant(&server, "mail", 50, 10);
    let before = server.get("/v1/workloads").2;
    let cases: [(Change, u16, &str); 10] = [
        (&|body| body["workload"]["name"] = json!("other"), 422, "workload.name"),
        (&|body| body["workload"]["slo"] = Value::Null, 422, "workload.slo"),
        (&|body| body["workload"]["slo"]["percentile"] = json!(100), 422, "workload.slo.percentile"),
        (&|body| body["workload"]["trace"] = json!("/etc/passwd"), 422, "workload.trace"),
        (&|body| body["workload"]["server"] = json!("r9h9"), 422, "workload.server"),
        (&|body| body["trace"]["sha256"] = json!("E3"), 422, "trace.sha256"),
        (&|body| body["trace"]["seconds"] = json!(-1), 422, "trace.seconds"),
        (&|body| body["trace"]["path"] = json!("/etc/passwd"), 422, "trace.path"),
        (&|body| body["bytes"] = json!(0), 422, "bytes"),
        (&|body| body["policy"] = json!("dnc"), 422, "policy"),
    ];
    for (change, status, field) in cases {
        let mut wrong = body("mail", 50, 10);
        change(&mut wrong);
        let (answered, _, problem) = server.put("/v1/workloads/mail", &wrong);
        assert_eq!((answered, &problem["field"]), (status, &json!(field)), "{problem}");
    }
    let (status, _, problem) = server.put("/v1/workloads/nobody", &body("nobody", 50, 10));
    assert_eq!((status, &problem["type"]), (404, &json!("urn:leeward:problem:not-found")), "{problem}");
    assert_eq!(server.get("/v1/workloads").2, before);
}
