//! Metrics: what is counted, in which format, and that the states of a thing add up to the number of things.

use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

use crate::support::{Server, agent, frozen_clock, idle_but, report, service, with_clock};
use leeward_fabric::Nanos;
use leeward_testing::clusters::{RACKS_3X2, RACKS_4X3};
use serde_json::{Value, json};

/// Response of `/metrics` to this header `accept`: its media type and its text.
fn scrape(server: &Server, accept: &str) -> (String, String) {
    let mut response =
        agent().get(server.url("/metrics")).header("accept", accept).call().expect("the server answers");
    assert!(response.headers().get_all("vary").iter().any(|name| name == "accept"));
    let media = response.headers()["content-type"].to_str().expect("text").to_owned();
    (media, response.body_mut().read_to_string().expect("text"))
}

/// Values of a metric with their labels.
fn values<'a>(text: &'a str, name: &str) -> Vec<(&'a str, f64)> {
    let value = |line: &'a str| {
        let rest = line.strip_prefix(name)?;
        let (labels, value) = rest.rsplit_once(' ')?;
        let is_metric = labels.is_empty() || labels.starts_with('{');
        is_metric.then(|| (labels, value.parse().expect("a number")))
    };
    text.lines().filter_map(value).collect()
}

/// Sum over the labels that contain this text.
fn sum(text: &str, name: &str, label: &str) -> f64 {
    let all = values(text, name);
    assert!(!all.is_empty(), "{name} is not in\n{text}");
    all.iter().filter(|(labels, _)| labels.contains(label)).map(|&(_, value)| value).sum()
}

fn block() -> Value {
    json!({ "size": "256MiB" })
}

#[test]
fn metrics_count_placements_and_requests() {
    let server = Server::start(service(RACKS_3X2, "", frozen_clock()));
    assert_eq!(server.post("/v1/place/replicas", &block()).0, 409);
    server.report(&idle_but("r1:downlink", 1.9e9));
    assert_eq!(server.post("/v1/place/replicas", &block()).0, 201);
    assert_eq!(server.post("/v1/place/replicas", &json!({ "bytes": 1 })).0, 422);
    let text = server.metrics();
    for line in [
        r#"leeward_placements_total{kind="replicas",outcome="placed"} 1"#,
        r#"leeward_placements_total{kind="replicas",outcome="refused"} 1"#,
        r#"leeward_refusals_total{type="refused"} 1"#,
        r#"leeward_refusals_total{type="invalid"} 1"#,
        r#"http_server_active_requests{http_request_method="GET"} 1"#,
        r#"http_server_active_requests{http_request_method="POST"} 0"#,
        r#"leeward_reports_total 1"#,
        r#"leeward_samples_total 9"#,
        r#"leeward_hot_links 1"#,
        r#"leeward_slow_links 0"#,
        r#"leeward_links{state="seen"} 9"#,
        r#"leeward_decisions 1"#,
        r#"leeward_waiting 0"#,
        "# EOF",
    ] {
        assert!(text.lines().any(|one| one == line), "{line} is not in\n{text}");
    }
    let route = r#"http_route="/v1/place/replicas",http_response_status_code="201""#;
    assert_eq!(sum(&text, "http_server_request_duration_seconds_count", route), 1.0);
    // One transaction for the cluster, one for the decision.
    assert!(text.contains(r#"leeward_store_transactions_total{outcome="kept"} 2"#), "{text}");
}

#[test]
fn the_outcomes_of_placements_add_up_to_their_requests() {
    let server = Server::start(service(RACKS_3X2, "", frozen_clock()));
    server.report(&idle_but("", 0.0));
    let numbered = json!({ "size": "256MiB", "client": "c", "sequence": 1 });
    let valid = [block(), numbered.clone(), numbered];
    valid.iter().for_each(|body| assert!(server.post("/v1/place/replicas", body).0 < 300));
    for (media, body, status) in [
        ("application/json", "{", 400),
        ("text/plain", "{}", 415),
        ("application/json", r#"{"size": "1GiB", "replicas": 99}"#, 409),
        ("application/json", r#"{"size": "1GiB", "exclude": ["nobody"]}"#, 422),
    ] {
        assert_eq!(server.post_text("/v1/place/replicas", media, body).0, status, "{body}");
        assert_eq!(server.post_text("/v1/place/volumes", media, body).0 / 100, 4, "{body}");
    }
    let text = server.metrics();
    for (kind, path) in [("replicas", "/v1/place/replicas"), ("volumes", "/v1/place/volumes")] {
        let outcomes = sum(&text, "leeward_placements_total", &format!("kind=\"{kind}\""));
        let requests =
            sum(&text, "http_server_request_duration_seconds_count", &format!("http_route=\"{path}\""));
        assert_eq!(outcomes, requests, "{text}");
    }
    assert_eq!(sum(&text, "leeward_placements_total", "outcome=\"placed\""), 2.0);
    assert_eq!(sum(&text, "leeward_placements_total", "outcome=\"repeated\""), 1.0);
}

#[test]
fn silent_and_draining_hosts_are_counted_and_states_add_up() {
    let (server, clock, seconds) = with_clock(RACKS_3X2, "");
    report(&server, &clock, &[("r0h0:ingress", 0.0), ("r0h1:ingress", 0.0), ("r1h0:egress", 0.0)], &[]);
    seconds.store(60, Ordering::SeqCst);
    report(&server, &clock, &[("r0h0:ingress", 1e6)], &[]);
    let (from, until) = (clock.text(clock.now().since(Nanos::SECOND)), clock.text(clock.now()));
    let hosts =
        json!([{ "host": "r2h0", "draining": true }, { "host": "r2h1", "up": false, "draining": true }]);
    let body = json!({ "from": from, "until": until, "hosts": hosts });
    assert_eq!(server.post("/v1/reports", &body).0, 200);
    let text = server.metrics();
    let states = |name: &str| {
        let all = values(&text, name).into_iter();
        all.map(|(labels, count)| format!("{} {count}", labels.split('"').nth(1).expect("a state")))
            .collect::<std::collections::BTreeSet<String>>()
    };
    assert_eq!(states("leeward_agents"), ["absent 3", "reporting 1", "silent 2"].map(str::to_owned).into());
    let agents = json!({ "reporting": 1, "silent": 2, "absent": 3, "silent_hosts": ["r0h1", "r1h0"] });
    assert_eq!(server.get("/v1/status").2["agents"], agents, "the status names the silent hosts");
    assert_eq!(states("leeward_hosts"), ["down 1", "draining 1", "up 4"].map(str::to_owned).into());
    assert_eq!(sum(&text, "leeward_links", ""), 18.0, "six links of racks and twelve of hosts");
}

#[test]
fn moves_and_fallbacks_are_counted_by_state_and_reason() {
    let (server, clock, seconds) = with_clock(RACKS_4X3, "without_telemetry: default");
    assert_eq!(server.post("/v1/place/replicas", &block()).0, 201);
    let links: Vec<String> = server.get("/v1/links").2["items"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|link| link["link"].as_str().expect("a name").to_owned())
        .collect();
    let idle: Vec<(&str, f64)> = links.iter().map(|link| (link.as_str(), 0.0)).collect();
    report(&server, &clock, &idle, &[]);
    let app = json!({ "app": { "tasks": [{ "name": "t", "tolerant": true }] } });
    let tasks: Vec<Value> = (0..12).map(|_| server.post("/v1/place/tasks", &app).2).collect();
    let is_in_rack = |task: &&Value| task["hosts"][0].as_str().is_some_and(|host| host.starts_with("r0"));
    let carried: Vec<Value> = tasks
        .iter()
        .filter(is_in_rack)
        .map(|task| json!({ "decision": task["id"], "egress_bps": 400_000_000, "ingress_bps": 0 }))
        .collect();
    assert!(carried.len() > 1, "the tasks are spread");
    let hot: Vec<(&str, f64)> =
        idle.iter().map(|&(link, _)| (link, if link == "r0:uplink" { 2.9e9 } else { 0.0 })).collect();
    let mut advised = Vec::new();
    for second in 11..400 {
        seconds.store(second, Ordering::SeqCst);
        report(&server, &clock, &hot, &carried);
        advised = server.get("/v1/migrations").2["items"].as_array().expect("a list").clone();
        if advised.len() > 1 {
            break;
        }
    }
    let ids: Vec<&str> = advised.iter().filter_map(|one| one["id"].as_str()).collect();
    let [first, .., last] = ids[..] else { panic!("no two moves were advised: {advised:?}") };
    for (id, answer) in [(first, "done"), (first, "done"), (last, "refused")] {
        assert_eq!(server.post(&format!("/v1/migrations/{id}"), &json!({ "answer": answer })).0, 200);
    }
    let text = server.metrics();
    let moves = |state: &str| sum(&text, "leeward_moves_total", &format!("state=\"{state}\""));
    assert!(moves("advised") >= 2.0, "{text}");
    assert_eq!((moves("done"), moves("refused"), moves("expired")), (1.0, 1.0, 0.0), "an answer counts once");
    let reason = r#"kind="replicas",reason="no telemetry: placed as uniform does""#;
    assert_eq!(sum(&text, "leeward_fallbacks_total", reason), 1.0);
}

#[test]
fn the_format_follows_the_header_accept() {
    let server = Server::start(service(RACKS_3X2, "", frozen_clock()));
    let (media, open) = scrape(&server, "*/*");
    assert_eq!(media, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    assert!(open.ends_with("# EOF\n"));
    let (media, text) = scrape(&server, "text/plain;version=0.0.4;q=0.6, application/openmetrics-text;q=0.5");
    assert_eq!(media, "text/plain; version=0.0.4; charset=utf-8");
    assert!(text.contains("# TYPE leeward_reports_total counter\n"), "{text}");
    assert!(!text.contains("# EOF") && !text.contains("# UNIT"), "{text}");
    let names = |text: &str| -> Vec<String> {
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        samples.map(|line| line.split(' ').next().unwrap_or_default().to_owned()).collect()
    };
    // The first scrape is a series of its own in the second.
    let (open, text) = (names(&open), names(&text));
    assert!(open.iter().all(|name| text.contains(name)), "both formats have the same series");
}

#[test]
fn metrics_of_the_process_have_their_usual_names() {
    let server = Server::start(service(RACKS_3X2, "", frozen_clock()));
    let text = server.metrics();
    for name in [
        "process_cpu_seconds_total",
        "process_open_fds",
        "process_max_fds",
        "process_resident_memory_bytes",
        "process_start_time_seconds",
        "process_threads",
        "process_virtual_memory_bytes",
    ] {
        assert!(sum(&text, name, "") > 0.0, "{name}");
    }
    assert!(sum(&text, "process_max_fds", "") > sum(&text, "process_open_fds", ""));
}

#[test]
fn promtool_finds_no_fault_in_the_text_format() {
    let server = Server::start(service(RACKS_3X2, "", frozen_clock()));
    server.post("/v1/place/replicas", &block());
    let (_, text) = scrape(&server, "text/plain");
    let promtool = Command::new("promtool").args(["check", "metrics"]).stdin(Stdio::piped()).spawn();
    let Ok(mut promtool) = promtool else {
        println!("skipped: promtool is not installed");
        return;
    };
    let mut input = promtool.stdin.take().expect("stdin is piped");
    input.write_all(text.as_bytes()).expect("promtool reads");
    drop(input);
    assert!(promtool.wait().expect("promtool ends").success(), "{text}");
}
