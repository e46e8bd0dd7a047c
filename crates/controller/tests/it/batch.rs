//! Batches of placements and of releases, over HTTP.

use crate::support::{Server, frozen_clock, idle_but, service};
use leeward_testing::clusters::RACKS_3X2;
use serde_json::{Value, json};

const BATCH: &str = "/v1/place/batch";

fn server() -> Server {
    let server = Server::start(service(RACKS_3X2, "", frozen_clock()));
    server.report(&idle_but("", 0.0));
    server
}

fn results(response: &(u16, String, Value)) -> Vec<Value> {
    assert_eq!(response.0, 200, "{response:?}");
    response.2["results"].as_array().expect("a list").clone()
}

fn statuses(results: &[Value]) -> Vec<u64> {
    results.iter().map(|result| result["status"].as_u64().expect("a status")).collect()
}

#[test]
fn each_request_has_its_own_result_and_a_repeated_batch_places_nothing() {
    let server = server();
    let task = json!({ "app": { "tasks": [{ "name": "a", "cpus": 1 }] } });
    let requests = json!([
        { "key": "a", "replicas": { "size": "1MiB", "writer": "r0h0" } },
        { "replicas": { "size": "1MiB", "writer": "nobody" } },
        { "tasks": { "app": task["app"], "client": "s", "sequence": 1 } },
        { "replicas": { "size": "1MiB", "fault_domains": 9 } },
        { "key": "b", "tasks": { "app": { "tasks": [{ "name": "b", "cpus": "many" }] } } },
        { "replicas": { "size": "1MiB" }, "tasks": task },
        { "key": "c", "replicas": { "size": "1MiB", "client": "s", "sequence": 2 } },
        { "key": "d", "replicas": { "size": "1MiB", "lasts": "0s" } },
    ]);
    let first = results(&server.post(BATCH, &json!({ "requests": requests })));
    assert_eq!(statuses(&first), [201, 422, 201, 409, 422, 422, 422, 422]);
    let fields: Vec<Option<&str>> = first.iter().map(|result| result["problem"]["field"].as_str()).collect();
    assert_eq!(
        fields,
        [
            None,
            Some("requests[1].replicas.writer"),
            None,
            None,
            Some("requests[4].tasks.app.tasks[0].cpus"),
            Some("requests[5].replicas"),
            Some("requests[6].key"),
            Some("requests[7].replicas.lasts"),
        ]
    );
    assert_eq!((&first[0]["decision"]["key"], &first[0]["problem"]), (&json!("a"), &Value::Null));
    let again = results(&server.post(BATCH, &json!({ "requests": [requests[0], requests[2]] })));
    assert_eq!(statuses(&again), [200, 200]);
    assert_eq!(again[1]["decision"]["id"], first[2]["decision"]["id"]);
    let reused = json!({ "requests": [{ "key": "a", "replicas": { "size": "2MiB" } }] });
    assert_eq!(results(&server.post(BATCH, &reused))[0]["problem"]["type"], "urn:leeward:problem:reused");
    assert_eq!(server.get("/v1/decisions").2["items"].as_array().map(Vec::len), Some(2));
    let metrics = server.metrics();
    let counted = |line: &str| assert!(metrics.contains(line), "{line}: {metrics}");
    counted(r#"leeward_placements_total{kind="replicas",outcome="placed"} 1"#);
    counted(r#"leeward_placements_total{kind="tasks",outcome="repeated"} 1"#);
}

#[test]
fn later_requests_see_the_load_of_earlier_ones() {
    let server = server();
    // One task fills a host; the batch fills all six hosts and the seventh task has none.
    let task = |name: usize| json!({ "tasks": { "app": { "tasks": [{ "name": format!("t{name}"), "cpus": 1, "egress": { "peak": "900Mbps" } }] } } });
    let blocks: Vec<Value> =
        (0..6).map(|_| json!({ "replicas": { "size": "256MiB", "replicas": 1, "writer": null } })).collect();
    let placed = results(&server.post(BATCH, &json!({ "requests": blocks })));
    assert_eq!(statuses(&placed), [201; 6]);
    let ids: Vec<u64> = placed
        .iter()
        .map(|one| one["decision"]["id"].as_str().and_then(|id| id.parse().ok()).expect("an id"))
        .collect();
    assert!(ids.is_sorted(), "{ids:?}");
    let epochs: Vec<u64> = placed.iter().filter_map(|one| one["decision"]["epoch"].as_u64()).collect();
    assert!(epochs.windows(2).all(|pair| pair[0] < pair[1]), "{epochs:?}");
    assert_eq!(statuses(&results(&server.post(BATCH, &json!({ "requests": [task(0)] })))), [201]);
}

#[test]
fn a_dry_run_and_an_invalid_list_commit_nothing() {
    let server = server();
    let block = json!({ "key": "k", "replicas": { "size": "1MiB" } });
    let dry = results(&server.post(&format!("{BATCH}?dry_run=true"), &json!({ "requests": [block, block] })));
    assert_eq!(statuses(&dry), [200, 200]);
    assert!(dry.iter().all(|one| one["decision"]["dry_run"] == true), "{dry:?}");
    let many = vec![block.clone(); 101];
    for (body, field) in [
        (json!({ "requests": [] }), "requests"),
        (json!({ "requests": many }), "requests"),
        (json!({ "requests": [{ "replicas": { "size": 1 } }] }), "requests[0].replicas.size"),
        (json!({ "requests": [{ "block": {} }] }), "requests[0].block"),
    ] {
        let (status, _, problem) = server.post(BATCH, &body);
        assert_eq!((status, &problem["field"]), (422, &json!(field)), "{problem}");
    }
    assert_eq!(server.get("/v1/decisions").2["items"], json!([]));
}

#[test]
fn releases_have_their_own_results() {
    let server = server();
    let blocks = vec![json!({ "replicas": { "size": "1MiB" } }); 3];
    assert_eq!(statuses(&results(&server.post(BATCH, &json!({ "requests": blocks })))), [201; 3]);
    let ids = json!({ "decisions": ["0", "2", "77", "x"] });
    let dry = results(&server.post("/v1/release?dry_run=true", &ids));
    assert_eq!(statuses(&dry), [200, 200, 404, 404]);
    let released = results(&server.post("/v1/release", &ids));
    assert_eq!(statuses(&released), [200, 200, 404, 404]);
    assert!(released[1]["decision"]["released"].is_string(), "{released:?}");
    let held = server.get("/v1/commitments").2;
    assert_eq!(held["items"].as_array().map(Vec::len), Some(1), "{held}");
    assert_eq!(server.post("/v1/release", &json!({ "decisions": [] })).0, 422);
    assert_eq!(server.post("/v1/release", &json!({ "decisions": vec!["0"; 1001] })).0, 422);
}
