//! The service from the outside: a real server on loopback, and its responses.

use crate::support;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use crate::support::{Response, Server, frozen_clock, service};
use leeward_controller::{RunError, Service};
use leeward_engine::Policies;
use leeward_ledger::LedgerSettings;
use leeward_placement::tasks;
use leeward_records::Clock;
use leeward_service::{NewCluster, PolicyLabels};
use leeward_store::Sqlite;
use serde_json::{Value, json};

const CLUSTER: &str = "\
name: small
racks: 3
hosts_per_rack: 2
nic: 1Gbps
oversubscription: 1
devices: [{read: 50MB/s, write: 50MB/s}]
";

fn start() -> Server {
    Server::start(service(CLUSTER, "", frozen_clock()))
}

fn everything_idle() -> Vec<(String, f64)> {
    let host =
        |at: usize| [format!("r{}h{}:ingress", at / 2, at % 2), format!("r{}h{}:egress", at / 2, at % 2)];
    let rack = |at: usize| [format!("r{at}:uplink"), format!("r{at}:downlink")];
    (0..6).flat_map(host).chain((0..3).flat_map(rack)).map(|link| (link, 0.0)).collect()
}

fn transcript((status, media_type, body): &Response) -> String {
    format!("{status} {media_type}\n{body:#}\n\n")
}

#[test]
fn a_conversation_with_the_service() {
    let server = start();
    let mut conversation = String::new();
    let mut record = |request: &str, response: Response| {
        conversation += &format!("{request}\n{}", transcript(&response));
    };
    server.report(&everything_idle());
    let late = json!({
        "from": "2026-01-31T12:00:09Z", "until": "2026-01-31T12:00:10Z",
        "links": [{ "link": "r0:uplink", "load_bps": 0 }], "hosts": [{ "host": "r0h0", "draining": false }],
    });
    record("POST /v1/reports, of a window that is known of one link", server.post("/v1/reports", &late));
    let block = json!({ "size": "256MiB", "writer": "r0h1", "client": "namenode", "sequence": 17 });
    let placed = server.post("/v1/place/replicas", &block);
    let id = format!("/v1/decisions/{}", placed.2["id"].as_str().expect("an id"));
    record("POST /v1/place/replicas", placed);
    record("POST /v1/place/replicas, again", server.post("/v1/place/replicas", &block));
    record("GET /v1/decisions/ID", server.get(&id));
    let (_, _, mut snapshot) = server.get("/v1/snapshot");
    let links = snapshot["links"].as_object_mut().expect("a table");
    let is_charged: Vec<bool> = {
        let column = |name: &str| links[name].as_array().expect("a column").iter();
        column("capacity_bps").zip(column("expected_capacity_bps")).map(|(all, left)| all != left).collect()
    };
    for column in links.values_mut().filter_map(Value::as_array_mut) {
        let mut charged = is_charged.iter();
        column.retain(|_| *charged.next().expect("columns of one length"));
    }
    snapshot["id"] = json!("...");
    record("GET /v1/snapshot, the links that a block was charged to", (200, String::new(), snapshot));
    record("GET /v1/racks/r2", server.get("/v1/racks/r2"));
    record("DELETE /v1/commitments/ID", server.delete(&id.replace("decisions", "commitments")));
    record("GET /v1/commitments", server.get("/v1/commitments"));
    let (_, _, mut health) = server.get("/v1/status");
    for varying in ["version", "leader", "snapshot_age_s", "transaction_s"] {
        health[varying] = json!("...");
    }
    record("GET /v1/status", (200, String::new(), health));
    insta::assert_snapshot!(conversation);
    assert!(server.end().is_ok());
}

#[test]
fn invalid_requests_get_problem_documents_and_change_nothing() {
    let server = start();
    server.report(&everything_idle());
    let before = server.get("/v1/snapshot");
    let (reports, place) = ("/v1/reports", "/v1/place/replicas");
    let window = r#""from": "2026-01-31T12:00:09.5Z", "until": "2026-01-31T12:00:10.5Z""#;
    let bad = [
        (reports, "{\"from\": ".to_owned()),
        (reports, "[1, 2]".to_owned()),
        (reports, format!("{{{window}}} and more")),
        (reports, "{}".to_owned()),
        (reports, format!("{{{window}, \"lonks\": []}}")),
        (reports, format!("{{{window}, \"links\": [{{\"link\": \"r0:uplink\", \"load\": 1}}]}}")),
        (reports, format!("{{{window}, \"links\": [{{\"link\": \"r0:uplink\", \"load_bps\": \"1Gbps\"}}]}}")),
        (
            reports,
            format!(
                "{{{window}, \"links\": [{{\"link\": \"r0:uplink\", \"load_bps\": 1}}, {{\"link\": \"r9:uplink\", \"load_bps\": 1}}]}}"
            ),
        ),
        (
            reports,
            format!(
                "{{{window}, \"links\": [{{\"link\": \"r0:uplink\", \"load_bps\": 1}}, {{\"link\": \"r1:uplink\", \"load_bps\": -1}}]}}"
            ),
        ),
        (reports, format!("{{{window}, \"links\": [{{\"link\": \"r0:uplink\", \"load_bps\": 1e19}}]}}")),
        (
            reports,
            format!(
                "{{{window}, \"links\": [{{\"link\": \"r0:uplink\", \"load_bps\": 1}}, {{\"link\": \"r0:uplink\", \"load_bps\": 1}}]}}"
            ),
        ),
        (reports, format!("{{{window}, \"hosts\": [{{\"host\": \"r0\", \"up\": true}}]}}")),
        (reports, r#"{"from": "12:00", "until": "2026-01-31T12:00:10Z"}"#.to_owned()),
        (reports, r#"{"from": "2026-01-31T11:59:59Z", "until": "2026-01-31T12:00:10Z"}"#.to_owned()),
        (reports, r#"{"from": "2026-01-31T12:00:09Z", "until": "2026-01-31T12:00:08Z"}"#.to_owned()),
        (reports, r#"{"from": "2026-01-31T12:00:10Z", "until": "2026-01-31T12:00:12Z"}"#.to_owned()),
        (place, "{}".to_owned()),
        (place, r#"{"size": 268435456}"#.to_owned()),
        (place, r#"{"size": "0B"}"#.to_owned()),
        (place, r#"{"size": "1GiB", "replicas": 0}"#.to_owned()),
        (place, r#"{"size": "1GiB", "replicas": 300}"#.to_owned()),
        (place, r#"{"size": "1GiB", "writer": "r9h9"}"#.to_owned()),
        (place, r#"{"size": "1GiB", "exclude": ["r1", "r9"]}"#.to_owned()),
        (place, r#"{"size": "1GiB", "tags": ["ssd"]}"#.to_owned()),
        (place, r#"{"size": "1GiB", "client": "a"}"#.to_owned()),
        (place, r#"{"size": "1GiB", "sequence": 1}"#.to_owned()),
        (place, r#"{"size": "1GiB", "client": "", "sequence": 1}"#.to_owned()),
        (place, r#"{"size": "1GiB", "client": "a", "sequence": 9007199254740992}"#.to_owned()),
        (place, r#"{"size": "1GiB", "exclude": ["r1", "r2"]}"#.to_owned()),
    ];
    let mut table = String::new();
    for (path, body) in bad {
        let response = server.post_text(path, "application/json", &body);
        assert!(response.0 >= 400 && response.1 == "application/problem+json", "{body}: {response:?}");
        table += &format!("POST {path} {body}\n{}", transcript(&response));
    }
    table += &format!(
        "POST {place}, as a form\n{}",
        transcript(&server.post_text(place, "application/x-www-form-urlencoded", "size=1GiB"))
    );
    for id in ["19c13ec9e00-0", "19c13ec9e00-x", "18ffffffff0-0", "17", "%ff"] {
        table +=
            &format!("GET /v1/decisions/{id}\n{}", transcript(&server.get(&format!("/v1/decisions/{id}"))));
    }
    table += &format!("GET /v2\n{}", transcript(&server.get("/v2")));
    table += &format!("GET {place}\n{}", transcript(&server.get(place)));
    insta::assert_snapshot!(table);
    assert_eq!(server.get("/v1/snapshot"), before);
    server.post(place, &json!({ "size": "256MiB", "client": "a", "sequence": 2 }));
    let (status, _, problem) = server.post(place, &json!({ "size": "256MiB", "client": "a", "sequence": 1 }));
    assert_eq!((status, &problem["type"]), (409, &json!("urn:leeward:problem:sequence")));
}

#[test]
fn a_refusal_without_telemetry_names_the_remedy() {
    let server = start();
    let (status, _, problem) = server.post("/v1/place/replicas", &json!({ "size": "256MiB" }));
    assert_eq!((status, &problem["type"]), (409, &json!("urn:leeward:problem:refused")));
    let detail = problem["detail"].as_str().expect("a text");
    assert!(detail.contains("report the loads of links"), "{detail}");
}

#[test]
fn a_decision_stores_at_most_eight_candidates_per_level() {
    let cluster = "{racks: 12, hosts_per_rack: 12, nic: 1Gbps, oversubscription: 1}";
    let server = Server::start(service(cluster, "", frozen_clock()));
    let racks = (0..12).flat_map(|rack| ["uplink", "downlink"].map(|way| format!("r{rack}:{way}")));
    let hosts = (0..144).map(|host| format!("r{}h{}:ingress", host / 12, host % 12));
    server.report(&racks.chain(hosts).map(|link| (link, 0.0)).collect::<Vec<_>>());
    let (status, _, made) = server.post("/v1/place/replicas", &json!({ "size": "256MiB", "writer": "r0h0" }));
    assert_eq!(status, 201, "{made}");
    assert_eq!(server.get("/v1/decisions/0").2, made);
    let why = made["why"].as_array().expect("candidates");
    for is_host in [false, true] {
        let level = why
            .iter()
            .filter(|one| one["candidate"].as_str().is_some_and(|name| name.contains('h') == is_host));
        let (chosen, others): (Vec<_>, Vec<_>) = level.partition(|one| one["verdict"] == "chosen");
        assert!(!chosen.is_empty() && (6..=8).contains(&others.len()), "{is_host}: {made}");
    }
    let (status, _, problem) = server.get("/v1/decisions?candidates=all");
    assert_eq!((status, &problem["field"]), (422, &json!("candidates")), "{problem}");
}

#[test]
fn an_oversized_body_is_rejected_unread() {
    let server = start();
    let mut stream = TcpStream::connect(server.address).expect("the server listens");
    let head = "POST /v1/place/replicas HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                content-length: 17000000\r\n\r\n";
    stream.write_all(head.as_bytes()).expect("the server reads the head");
    let mut start = [0; 12];
    stream.read_exact(&mut start).expect("the server answers");
    assert_eq!(&start, b"HTTP/1.1 413");
    assert_eq!(server.get("/v1/status").0, 200);
}

/// Sends a block's request in chunks, padded with blanks to a size.
fn post_in_chunks(server: &Server, size: usize) -> String {
    let mut body = br#"{"size": "256MiB"}"#.to_vec();
    body.resize(size, b' ');
    let mut stream = TcpStream::connect(server.address).expect("the server listens");
    let head = "POST /v1/place/replicas HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
                transfer-encoding: chunked\r\n\r\n";
    stream.write_all(head.as_bytes()).expect("the server reads the head");
    for chunk in body.chunks(1 << 16) {
        write!(stream, "{:x}\r\n", chunk.len()).expect("the server reads");
        stream.write_all(chunk).and_then(|()| stream.write_all(b"\r\n")).expect("the server reads");
    }
    if size <= 16 << 20 {
        stream.write_all(b"0\r\n\r\n").expect("the server reads");
    }
    let mut start = [0; 12];
    stream.read_exact(&mut start).expect("the server answers");
    String::from_utf8_lossy(&start).into_owned()
}

#[test]
fn a_chunked_body_is_read_up_to_the_limit() {
    let server = start();
    server.report(&everything_idle());
    assert_eq!(post_in_chunks(&server, 16 << 20), "HTTP/1.1 201");
    assert_eq!(post_in_chunks(&server, (16 << 20) + 1), "HTTP/1.1 413");
    assert_eq!(server.get("/v1/status").2["decisions"], json!(1));
}

#[test]
fn a_client_that_stops_sending_times_out() {
    let server = Server::start({
        let mut service = service(CLUSTER, "", frozen_clock());
        service.patience = Duration::from_millis(200);
        service
    });
    let exchange = |sent: &str| {
        let mut stream = TcpStream::connect(server.address).expect("the server listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a time");
        stream.write_all(sent.as_bytes()).expect("the server reads");
        let mut response = String::new();
        stream.read_to_string(&mut response).expect("the server closes the connection");
        response
    };
    let head = "POST /v1/place/replicas HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    assert_eq!(exchange(""), "");
    assert_eq!(exchange(head), "");
    let half = exchange(&format!("{head}content-length: 100\r\n\r\n{{\"size\": "));
    assert!(half.starts_with("HTTP/1.1 408") && half.contains("urn:leeward:problem:slow"), "{half}");
    assert_eq!(server.get("/v1/status").0, 200);
}

#[test]
fn a_service_that_cannot_announce_its_address_does_not_start() {
    let run = |address: &str| {
        let service = service(CLUSTER, "", frozen_clock());
        service.run(address.parse().expect("an address"), |_| Err("not announced"))
    };
    assert!(matches!(run("127.0.0.1:0"), Err(RunError::Callback("not announced"))));
    assert!(matches!(run("192.0.2.1:7600"), Err(RunError::Listen(_))));
}

#[test]
fn batched_blocks_are_answered_at_the_end_of_their_interval() {
    let server =
        Server::start(service(CLUSTER, "{interval: 300ms, without_telemetry: default}", Clock::system()));
    let ids: Vec<String> = std::thread::scope(|scope| {
        let ask =
            || server.post("/v1/place/replicas", &json!({ "size": "256MiB", "client": "a", "sequence": 1 }));
        let requests: Vec<_> = (0..2).map(|_| scope.spawn(ask)).collect();
        let responses = requests.into_iter().map(|request| request.join().expect("the server answers"));
        responses.map(|(_, _, body)| body["id"].as_str().expect("an id").to_owned()).collect()
    });
    assert_eq!(ids[0], ids[1], "the same request sent twice is placed once");
    let (_, _, health) = server.get("/v1/status");
    assert_eq!((&health["decisions"], &health["waiting"]), (&json!(1), &json!(0)));
}

#[test]
fn a_key_or_sequence_reused_for_another_operation_is_rejected() {
    let server = start();
    server.report(&everything_idle());
    let caller = json!({ "client": "namenode", "sequence": 1 });
    let keyed = |path: &str, body: &Value| {
        let request = support::agent().post(server.url(path)).header("content-type", "application/json");
        let answer = request.header("idempotency-key", "k").send(body.to_string());
        let mut answer = answer.expect("the server answers");
        let text = answer.body_mut().read_to_string().expect("text");
        (answer.status().as_u16(), serde_json::from_str::<Value>(&text).expect("JSON"))
    };
    let with = |mut body: Value, more: &Value| {
        let fields = more.as_object().expect("fields").clone();
        body.as_object_mut().expect("fields").extend(fields);
        body
    };
    let (block, app) = (json!({ "size": "256MiB" }), json!({ "app": { "tasks": [{ "name": "t" }] } }));
    let (status, made) = keyed("/v1/place/replicas", &block);
    assert_eq!(status, 201, "{made}");
    let (status, problem) = keyed("/v1/place/tasks", &app);
    assert_eq!(
        (status, &problem["type"], &problem["field"]),
        (422, &json!("urn:leeward:problem:reused"), &json!("idempotency-key")),
        "{problem}"
    );
    assert!(problem["detail"].to_string().contains("decision 0, of kind replicas"), "{problem}");
    assert_eq!(server.post("/v1/place/tasks", &with(app.clone(), &caller)).0, 201);
    let (status, _, problem) = server.post("/v1/place/replicas", &with(block.clone(), &caller));
    assert_eq!(
        (status, &problem["type"], &problem["field"]),
        (422, &json!("urn:leeward:problem:reused"), &json!("sequence")),
        "{problem}"
    );
    // A repetition of the key's first request gets the same answer.
    assert_eq!(keyed("/v1/place/replicas", &block), (200, made));
    assert_eq!(server.get("/v1/status").2["decisions"], json!(2));
}

/// Sends a placement that waits for its batch, and returns the thread that has its response.
fn wait_for_batch(server: &Server) -> std::thread::JoinHandle<(u16, Value)> {
    let url = server.url("/v1/place/replicas");
    let waiting = std::thread::spawn(move || {
        let sent = support::agent()
            .post(url)
            .header("content-type", "application/json")
            .send(r#"{"size": "256MiB"}"#);
        let mut response = sent.expect("the server answers");
        let text = response.body_mut().read_to_string().expect("text");
        (response.status().as_u16(), serde_json::from_str(&text).expect("JSON"))
    });
    // The request is in progress once the coordinator reports it as waiting.
    while server.get("/v1/status").2["waiting"] != json!(1) {
        assert!(!waiting.is_finished(), "the placement did not wait");
        std::thread::sleep(Duration::from_millis(5));
    }
    waiting
}

#[test]
fn a_stop_finishes_the_requests_in_progress() {
    let mut server =
        Server::start(service(CLUSTER, "{interval: 2s, without_telemetry: default}", Clock::system()));
    let waiting = wait_for_batch(&server);
    server.stop();
    assert_eq!(waiting.join().expect("the thread does not panic").0, 201);
    assert!(server.end().is_ok());
}

#[test]
fn a_placement_that_waits_during_a_cluster_change_is_placed_in_the_new_cluster() {
    let server =
        Server::start(service(CLUSTER, "{interval: 2s, without_telemetry: default}", Clock::system()));
    let waiting = wait_for_batch(&server);
    // The new cluster has other hosts only.
    let rack = |first: &str, second: &str| json!({ "hosts": [{ "name": first }, { "name": second }] });
    let racks = json!({ "racks": [rack("a", "b"), rack("c", "d"), rack("e", "f")], "hosts_per_rack": null });
    let (status, changed) = server.patch("/v1/cluster", &racks, "*");
    assert_eq!(status, 200, "{changed}");
    let (status, placed) = waiting.join().expect("the thread does not panic");
    assert_eq!(status, 201, "{placed}");
    let hosts = placed["hosts"].as_array().expect("a list");
    assert!(hosts.iter().all(|host| host.as_str().is_some_and(|name| name.len() == 1)), "{placed}");
}

#[test]
fn a_cluster_change_preserves_decisions_and_telemetry() {
    let server = start();
    server.report(&everything_idle());
    let (_, _, placed) = server.post("/v1/place/replicas", &json!({ "size": "256MiB", "writer": "r0h0" }));
    let before = server.get("/v1/cluster");
    assert_eq!(before.2["racks"], json!(3));
    let (status, problem) = server.patch("/v1/cluster", &json!({ "hosts_per_rack": 0 }), "*");
    assert_eq!((status, &problem["field"]), (422, &json!("hosts_per_rack")), "{problem}");
    let (status, problem) = server.patch("/v1/cluster", &json!({ "racks": 4 }), "\"7\"");
    assert_eq!((status, &problem["type"]), (412, &json!("urn:leeward:problem:version")));
    let (status, patched) = server.patch("/v1/cluster", &json!({ "racks": 4, "name": null }), "\"1\"");
    assert_eq!((status, &patched["racks"], &patched["name"]), (200, &json!(4), &Value::Null));
    // A client that missed the response sends the same request again.
    let (status, again) = server.patch("/v1/cluster", &json!({ "racks": 4, "name": null }), "\"1\"");
    assert_eq!((status, again), (200, patched));
    let status = server.get("/v1/status").2;
    assert_eq!((&status["cluster_version"], &status["cluster"]), (&json!("2"), &json!("cluster")));
    let (_, _, racks) = server.get("/v1/racks");
    let racks = racks["items"].as_array().expect("a list").clone();
    let seen: Vec<bool> = racks.iter().map(|rack| rack["up"]["seen"] == json!(true)).collect();
    assert_eq!(seen, [true, true, true, false], "the new rack was not seen yet");
    let replicas: u64 = racks.iter().filter_map(|rack| rack["replicas"].as_u64()).sum();
    assert_eq!(replicas, 3);
    let decision = server.get(&format!("/v1/decisions/{}", placed["id"].as_str().expect("an id")));
    assert_eq!(decision.2, placed);
    // The new cluster lacks the rack of its copies, so the decision ends.
    let (status, _) = server.patch("/v1/cluster", &json!({ "racks": 1 }), "*");
    assert_eq!(status, 200);
    assert_eq!(server.get("/v1/commitments").2["items"], json!([]));
}

#[test]
fn memory_holds_a_bounded_number_of_decisions_and_the_store_the_rest() {
    let server = Server::start({
        let mut service = service(CLUSTER, "", frozen_clock());
        service.limits.decisions = 3;
        service
    });
    server.report(&everything_idle());
    for _ in 0..5 {
        assert_eq!(server.post("/v1/place/replicas", &json!({ "size": "256MiB" })).0, 201);
    }
    assert_eq!(server.get("/v1/status").2["decisions"], json!(3));
    let (_, _, list) = server.get("/v1/decisions");
    let listed = list["items"].as_array().expect("a list").iter().map(|one| &one["id"]);
    assert_eq!(listed.collect::<Vec<_>>(), ["4", "3", "2", "1", "0"]);
    let statuses = (0..6).map(|id| server.get(&format!("/v1/decisions/{id}")).0);
    assert_eq!(statuses.collect::<Vec<_>>(), [200, 200, 200, 200, 200, 404]);
}

#[test]
fn cross_traffic_of_the_cluster_moves_later_apps() {
    let cluster = "shape: hose\nhosts: 3\nnic: 800Mbps\ncpus: 4\n";
    let policies = || Policies {
        tasks: Some(tasks::REGISTRY.make("leeward", "").expect("a policy")),
        ..support::policies("")
    };
    let labels = PolicyLabels { tasks: "leeward".into(), ..support::labels() };
    let store = Box::new(Sqlite::in_memory().expect("a store"));
    let (cluster, ledger) =
        (NewCluster::read("test", cluster).expect("a cluster"), LedgerSettings::default());
    let mut service = Service::new(cluster, policies, labels, ledger, 1, store).expect("a service");
    service.clock = frozen_clock();
    let server = Server::start(service);
    let transfer = json!({ "from": "a", "to": "b", "bytes": "100MB" });
    let tasks = json!([{ "name": "a", "cpus": 3 }, { "name": "b", "cpus": 3 }]);
    let body = json!({ "app": { "tasks": tasks, "transfers": [transfer] } });
    let sender = || {
        let (status, _, placed) = server.post("/v1/place/tasks?dry_run=true", &body);
        assert_eq!(status, 200, "{placed}");
        placed["hosts"][0].as_str().expect("a host").to_owned()
    };
    let first = sender();
    let others = json!([{ "link": format!("{first}:egress"), "connections": 2 }]);
    let (status, problem) = server.patch("/v1/cluster", &json!({ "cross_traffic": others }), "*");
    assert_eq!(status, 200, "{problem}");
    assert_ne!(sender(), first);
    let (status, problem) = server.patch(
        "/v1/cluster",
        &json!({ "cross_traffic": [{ "link": "h9:egress", "connections": 1 }] }),
        "*",
    );
    assert_eq!((status, &problem["field"]), (422, &json!("cross_traffic[0].link")), "{problem}");
    let (status, _) = server.patch("/v1/cluster", &json!({ "cross_traffic": null }), "*");
    assert_eq!(status, 200);
    assert_eq!(sender(), first);
}
