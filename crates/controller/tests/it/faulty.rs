//! Faulty reporters over HTTP: a token that is bound to one host, reports that are too rare, and unknown hosts.

use std::sync::Arc;

use crate::support::{Server, agent, frozen_clock, service};
use leeward_controller::{Access, NewToken, Role, Tokens};
use leeward_testing::clusters::RACKS_3X2;
use serde_json::{Map, Value, json};

const CLUSTER: &str = "racks: 3\nhosts_per_rack: 2\nnic: 1Gbps\noversubscription: 1\n\
    devices: [{name: disk0, read: 50MB/s, write: 50MB/s, capacity: 1TB}]\n";

/// Time of the clock of these tests, and the second before it.
const NOW: (&str, &str) = ("2026-01-31T12:00:09Z", "2026-01-31T12:00:10Z");

/// First time of the clock.
const FIRST: &str = "2026-01-31T12:00:00Z";

/// Sends a report with a token. Returns the status and the response.
fn report(server: &Server, token: &str, (from, until): (&str, &str), fields: &Value) -> (u16, Value) {
    let mut body = json!({ "from": from, "until": until });
    let fields = fields.as_object().expect("fields").clone();
    body.as_object_mut().expect("fields").extend(fields);
    let request = agent().post(server.url("/v1/reports")).header("authorization", format!("Bearer {token}"));
    let request = request.header("content-type", "application/json");
    let mut response = request.send(body.to_string()).expect("the server answers");
    let text = response.body_mut().read_to_string().expect("text");
    (response.status().as_u16(), serde_json::from_str(&text).expect("JSON"))
}

fn get(server: &Server, token: &str, path: &str) -> Value {
    let request = agent().get(server.url(path)).header("authorization", format!("Bearer {token}"));
    let mut response = request.call().expect("the server answers");
    assert_eq!(response.status().as_u16(), 200, "{path}");
    serde_json::from_str(&response.body_mut().read_to_string().expect("text")).expect("JSON")
}

/// State of all links and hosts, by name, without the host `r0h0` and the links of its rack.
fn others(server: &Server, token: &str) -> Map<String, Value> {
    let mut others = Map::new();
    for (path, name) in [("/v1/links?limit=1000", "link"), ("/v1/hosts?limit=1000", "host")] {
        for item in get(server, token, path)["items"].as_array().expect("a list") {
            let name = item[name].as_str().expect("a name");
            if !name.starts_with("r0h0") && !name.starts_with("r0:") {
                others.insert(name.to_owned(), item.clone());
            }
        }
    }
    assert_eq!(others.len(), 2 * 5 + 2 * 2 + 5, "{others:?}");
    others
}

#[test]
fn a_token_of_one_host_changes_no_other_host_whatever_it_reports() {
    let new_tokens = [
        NewToken::make("agent", Role::Report, &["r0h0"]).expect("randomness"),
        NewToken::make("switches", Role::Report, &[]).expect("randomness"),
    ];
    let file: String = new_tokens.iter().map(|token| format!("{}\n", token.line)).collect();
    let mut service = service(CLUSTER, "", frozen_clock());
    service.access =
        Arc::new(Access::new(Some(Tokens::from_text("tokens", &file).expect("valid lines")), None));
    let server = Server::start(service);
    let [own, all] = new_tokens.map(|token| token.token);
    let hosts = (0..3).flat_map(|rack| (0..2).map(move |host| format!("r{rack}h{host}")));
    let links: Vec<Value> = hosts
        .flat_map(|host| {
            ["egress", "ingress"].map(|way| json!({ "link": format!("{host}:{way}"), "load_bps": 1e8 }))
        })
        .collect();
    assert_eq!(report(&server, &all, NOW, &json!({ "links": links })).0, 200);
    let before = others(&server, &own);
    let link = |load: f64, more: Value| {
        let mut links = json!([
            { "link": "r0h0:egress", "load_bps": load },
            { "link": "r0h0:ingress", "load_bps": load },
        ]);
        for link in links.as_array_mut().expect("a list") {
            link.as_object_mut().expect("fields").extend(more.as_object().expect("fields").clone());
        }
        json!({ "links": links })
    };
    let device = |fields: Value| {
        let mut device = json!({ "device": "r0h0:disk0" });
        device.as_object_mut().expect("fields").extend(fields.as_object().expect("fields").clone());
        json!({ "devices": [device] })
    };
    let host = |fields: Value| {
        let mut host = json!({ "host": "r0h0" });
        host.as_object_mut().expect("fields").extend(fields.as_object().expect("fields").clone());
        json!({ "hosts": [host] })
    };
    let most = u64::MAX;
    let attempts = [
        link(1e18, json!({})),
        link(1e18, json!({ "speed_bps": 1e18, "queue_bytes": most })),
        link(0.0, json!({ "speed_bps": 0 })),
        device(json!({ "busy": 1, "read_bps": 1e18, "write_bps": 1e18, "queue": 9e17, "in_flight": most })),
        host(json!({ "stored": "9000PB" })),
        host(json!({ "up": false })),
        link(1e18, json!({})),
        host(json!({ "up": true, "draining": true })),
        link(1e18, json!({ "speed_bps": 1 })),
        json!({ "probe": { "host": "r0h0", "port": 1 } }),
        json!({ "devices": (0..200).map(|disk| json!({ "device": format!("r0h0:x{disk}"), "busy": 1 }))
            .collect::<Vec<Value>>() }),
    ];
    let (mut clamped, mut until) = (0, String::new());
    // Old windows, long windows, and short ones. Each window ends later than the one before, so it is news.
    for (round, from) in [FIRST, FIRST, NOW.1].into_iter().enumerate() {
        for (at, attempt) in attempts.iter().enumerate() {
            let ends_ms = [1 + at, 10_001 + 40 * at, 10_401 + 40 * at][round];
            let end = format!("{:02}.{:03}", ends_ms / 1_000, ends_ms % 1_000);
            until = format!("2026-01-31T12:00:{end}Z");
            let (status, reply) = report(&server, &own, (from, &until), attempt);
            assert_eq!(status, 200, "{until} {attempt} {reply}");
            clamped += reply["clamped"].as_u64().expect("a number");
            assert_eq!(others(&server, &own), before, "{until} {attempt}");
            // The rack's own links have no counters: their load is that of both hosts, each at most 1 Gb/s.
            for name in ["r0:uplink", "r0:downlink"] {
                let rack = get(&server, &own, &format!("/v1/links/{name}"));
                let measured = rack["measured_bps"].as_f64().unwrap_or(0.0);
                assert!((0.0..=1.1e9).contains(&measured), "{until} {attempt} {rack}");
                assert_eq!(rack["capacity_bps"], json!(2_000_000_000_u64), "{rack}");
            }
        }
    }
    // In each round of new loads, the two links of three reports; in every round, the stored bytes.
    assert_eq!(clamped, 2 * 2 * 3 + 3, "{until}");
}

#[test]
fn reports_that_are_too_rare_are_in_the_status_until_they_fit() {
    let server = Server::start(service(RACKS_3X2, "", frozen_clock()));
    let send = |from: &str, until: &str| {
        let link = json!({ "link": "r0h1:egress", "load_bps": 1 });
        let (status, _, reply) =
            server.post("/v1/reports", &json!({ "from": from, "until": until, "links": [link] }));
        assert_eq!((status, &reply["interval_s"]), (200, &json!(1.0)), "{reply}");
        server.get("/v1/status").2["warnings"].clone()
    };
    assert_eq!(send("2026-01-31T12:00:00Z", "2026-01-31T12:00:04Z"), json!([]), "a single long window");
    let warnings = send("2026-01-31T12:00:04Z", "2026-01-31T12:00:08Z");
    let text = warnings[0].as_str().expect("a warning");
    assert!(
        text.starts_with("reports are too rare: those of r0h1 (1 in all) cover up to 4.0 s each"),
        "{text}"
    );
    assert_eq!(send("2026-01-31T12:00:09Z", "2026-01-31T12:00:10Z"), json!([]));
}

#[test]
fn an_unknown_host_gets_the_names_that_are_similar() {
    let server = Server::start(service(RACKS_3X2, "", frozen_clock()));
    let (from, until) = NOW;
    for (field, fields) in [
        ("links[0].link", json!({ "links": [{ "link": "R1H1.example:egress", "load_bps": 1 }] })),
        ("hosts[0].host", json!({ "hosts": [{ "host": "R1H1.example", "draining": true }] })),
        ("probe.host", json!({ "probe": { "host": "R1H1.example", "port": 1 } })),
    ] {
        let mut body = json!({ "from": from, "until": until });
        body.as_object_mut().expect("fields").extend(fields.as_object().expect("fields").clone());
        let (status, _, problem) = server.post("/v1/reports", &body);
        assert_eq!((status, &problem["field"]), (422, &json!(field)), "{problem}");
        let detail = problem["detail"].as_str().expect("text");
        assert!(
            detail.starts_with("`R1H1.example`: the cluster has no such host; similar names: r1h1; ")
                && detail.contains("--host"),
            "{detail}"
        );
    }
    let (_, _, problem) = server.post("/v1/place/replicas", &json!({ "size": "1MiB", "writer": "r1h2" }));
    assert_eq!(problem["detail"], "`r1h2`: the cluster has no such host; similar names: r1h0, r1h1");
}
