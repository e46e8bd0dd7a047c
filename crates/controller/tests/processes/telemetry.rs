//! A service that polls a fake Prometheus, whose responses each test chooses.

#![allow(clippy::disallowed_methods, reason = "a test waits")]

use leeward_testing::postgres;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::support::access::Helper;
use crate::support::leewardd::{Process, command};
use crate::support::prometheus::{Answers, Fake, Question, healthy_answer};
use serde_json::{Value, json};

const MAP: &str = "prometheus: {in: in_octets, out: out_octets, speed: speed_mbps}\nlinks:\n  - match: {port: \
    '(?P<rack>r\\d)-up\\d'}\n    in: '{rack}:downlink'\n    out: '{rack}:uplink'\n";

/// Command of a service with `more` Prometheus settings in addition to the URL, the map and the timeout.
fn service(folder: &Path, fake: &Fake, more: &str) -> Command {
    service_on(folder, fake, more, "memory")
}

/// Command of the same service, with this store.
fn service_on(folder: &Path, fake: &Fake, more: &str, store: &str) -> Command {
    std::fs::write(folder.join("map.yaml"), MAP).expect("a file");
    let prometheus = format!("{{url: '{}', map: map.yaml, timeout: 400ms{more}}}", fake.url);
    let text = format!("interval: 200ms\ntelemetry: {{prometheus: {prometheus}}}\n");
    std::fs::write(folder.join("leeward.yaml"), text).expect("a file");
    let mut command = command(folder, store);
    command.args(["--config", "leeward.yaml"]);
    command
}

fn link(process: &Process, name: &str, field: &str) -> Value {
    process.get(&format!("/v1/links/{name}")).map(|(_, link)| link[field].clone()).unwrap_or_default()
}

fn sees(process: &Process, name: &str, load: f64) -> bool {
    link(process, name, "measured_bps").as_f64().is_some_and(|seen| (seen - load).abs() <= 0.02 * load)
}

fn state(process: &Process) -> (String, String) {
    let telemetry = process.status("telemetry");
    let text = |field: &str| telemetry[field].as_str().unwrap_or_default().to_owned();
    (text("state"), text("problem"))
}

#[test]
fn loads_and_capacities_of_links_come_from_prometheus() {
    let (folder, fake) = (tempfile::tempdir().expect("a folder"), Fake::start());
    let process = Process::run(service(folder.path(), &fake, ""));
    process.until("the uplink of r0 has the load of both ports", |process| sees(process, "r0:uplink", 3.2e8));
    process.until("the downlink of r0 has its load", |process| sees(process, "r0:downlink", 1.6e8));
    // According to the cluster, the link has 3 Gb/s. The ports of r0 add up to 2 Gb/s, and r1 has one port of 1 Gb/s.
    process.until("the speeds of ports set the capacities", |process| {
        link(process, "r0:uplink", "capacity_bps").as_f64() == Some(2e9)
            && link(process, "r1:downlink", "capacity_bps").as_f64() == Some(1e9)
    });
    process.until("r1:downlink is hot at 88 %", |process| {
        let hot = process.get("/v1/hotspots").map(|(_, hot)| hot["items"].clone()).unwrap_or_default();
        hot.as_array().is_some_and(|hot| hot.iter().any(|one| one["link"] == "r1:downlink"))
    });
    let telemetry = process.status("telemetry");
    let expected =
        json!({ "state": "answers", "problem": null, "ports": 6, "links": 4, "silent": 0, "remarks": [] });
    for (field, value) in expected.as_object().expect("fields") {
        assert_eq!(&telemetry[field], value, "{telemetry}");
    }
    assert!((telemetry["spacing_s"].as_f64().expect("a number") - 0.1).abs() < 0.02, "{telemetry}");
    let numbers = process.text("/metrics");
    assert!(numbers.contains("leeward_telemetry_ports{state=\"link\"} 6"), "{numbers}");
    assert!(numbers.contains("leeward_telemetry_polls_total{outcome=\"answered\"}"), "{numbers}");
    assert_eq!(process.log().matches("telemetry comes from Prometheus").count(), 1, "{}", process.log());
}

#[test]
fn bad_prometheus_answers_are_reported_once_and_links_become_unknown() {
    let (folder, fake) = (tempfile::tempdir().expect("a folder"), Fake::start());
    let process = Process::run(service(folder.path(), &fake, ""));
    process.until("loads are known", |process| sees(process, "r0:uplink", 3.2e8));
    let half = |question: &Question| {
        let (status, extra, body) = healthy_answer(question);
        (status, extra, body[..body.len() / 2].to_vec())
    };
    let slow = |question: &Question| {
        std::thread::sleep(Duration::from_millis(700));
        healthy_answer(question)
    };
    let cases: Vec<(&str, Box<Answers>)> = vec![
        ("no answer in 400ms", Box::new(slow)),
        ("does not answer as Prometheus would", Box::new(half)),
        ("does not answer as Prometheus would", Box::new(|_| (200, "", b"<html>".to_vec()))),
        ("it answers 503: busy", Box::new(|_| (503, "", b"busy".to_vec()))),
        (
            "it answers 422: too many samples",
            Box::new(|_| (422, "", b"{\"error\":\"too many samples\"}".to_vec())),
        ),
        ("credentials missing or rejected", Box::new(|_| (401, "", vec![]))),
        ("expected the address of a Prometheus", Box::new(|_| (302, "location: http://x/\r\n", vec![]))),
        ("more than 48 MiB", Box::new(|_| (200, "", vec![b' '; (48 << 20) + 2]))),
    ];
    let number = cases.len();
    for (part, answers) in cases {
        fake.answer(answers);
        process.until(part, |process| {
            let (state, problem) = state(process);
            state == "fails" && problem.contains(part)
        });
        process.until("the load is unknown", |process| link(process, "r0:uplink", "measured_bps").is_null());
        fake.answer(healthy_answer);
        process.until("loads are known again", |process| {
            state(process).0 == "answers" && sees(process, "r0:uplink", 3.2e8)
        });
    }
    let again = "telemetry comes from Prometheus again";
    process.until("the log has every recovery", |process| process.log().matches(again).count() >= number);
    let log = process.log();
    assert_eq!(log.matches("telemetry unavailable from Prometheus").count(), number, "{log}");
    assert_eq!(log.matches(again).count(), number, "{log}");
}

#[test]
fn missing_ports_and_series_are_reported_and_other_links_continue() {
    let (folder, fake) = (tempfile::tempdir().expect("a folder"), Fake::start());
    let process = Process::run(service(folder.path(), &fake, ""));
    process.until("loads are known", |process| sees(process, "r1:downlink", 8.8e8));
    fake.answer(|question| {
        let (status, extra, body) = healthy_answer(question);
        let text = String::from_utf8(body).expect("text").replace("r1-up1", "elsewhere");
        (status, extra, if question.query.starts_with("speed") { EMPTY.into() } else { text.into_bytes() })
    });
    process.until("r1 is unknown", |process| link(process, "r1:downlink", "measured_bps").is_null());
    assert!(sees(&process, "r0:uplink", 3.2e8));
    process.until("the problem is reported", |process| process.status("telemetry")["silent"] == 2);
    let telemetry = process.status("telemetry");
    assert_eq!(
        (&telemetry["state"], &telemetry["silent_links"]),
        (&json!("answers"), &json!(["r1:uplink", "r1:downlink"]))
    );
    let remarks = telemetry["remarks"].to_string();
    assert!(remarks.contains("2 links have no new readings: r1:uplink, r1:downlink"), "{remarks}");
    assert!(remarks.contains("no rule matches"), "{remarks}");
    process.until("the log has the remark", |process| process.log().contains("2 links have no new readings"));
    fake.answer(healthy_answer);
    process.until("loads of r1 are known again", |process| sees(process, "r1:downlink", 8.8e8));
}

const EMPTY: &[u8] = b"{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[]}}";

#[test]
fn a_selector_without_series_is_reported_by_field() {
    let (folder, fake) = (tempfile::tempdir().expect("a folder"), Fake::start());
    fake.answer(|question| {
        if question.query.starts_with("in") { (200, "", EMPTY.into()) } else { healthy_answer(question) }
    });
    let process = Process::run(service(folder.path(), &fake, ""));
    process.until("the load of the uplink is known", |process| sees(process, "r0:uplink", 3.2e8));
    let remarks = process.status("telemetry")["remarks"].to_string();
    assert!(remarks.contains("Prometheus has no series of prometheus.in `in_octets`"), "{remarks}");
    assert!(process.text("/metrics").contains("leeward_telemetry_remarks 1"));
}

#[test]
fn prometheus_credentials_are_read_per_query_and_not_disclosed() {
    let (folder, fake) = (tempfile::tempdir().expect("a folder"), Fake::start());
    let file = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file");
    file("password", "old-secret\n");
    file(
        "http.yaml",
        "basic_auth: {username: me, password_file: password}\nhttp_headers: {X-Scope-OrgID: [team]}\n",
    );
    let process = Process::run(service(folder.path(), &fake, ", http: http.yaml"));
    process.until("loads are known", |process| sees(process, "r0:uplink", 3.2e8));
    let headers = fake.headers().to_lowercase();
    assert!(headers.contains("x-scope-orgid: team"), "{headers}");
    assert!(fake.headers().contains("Basic bWU6b2xkLXNlY3JldA=="), "{headers}");
    file("password", "new-secret\n");
    process.until("the new password is sent", |_| fake.headers().contains("Basic bWU6bmV3LXNlY3JldA=="));
    std::fs::remove_file(folder.path().join("password")).expect("the file exists");
    process.until("the missing password is reported", |process| state(process).1.contains("no such file"));
    let output = format!("{}{}", process.log(), process.status("telemetry"));
    assert!(!output.contains("secret") && !output.contains("Basic"), "{output}");
}

#[test]
fn https_requires_a_trusted_certificate_and_the_status_has_the_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let fake = Fake::with_tls(folder.path());
    let trust = |name: &str| {
        let text = format!("authorization: {{credentials: hush}}\ntls_config: {{ca_file: {name}.pem}}\n");
        std::fs::write(folder.path().join("http.yaml"), text).expect("a file");
    };
    trust("wrong");
    let process = Process::run(service(folder.path(), &fake, ", http: http.yaml"));
    process.until("the certificate is not trusted", |process| {
        let (state, problem) = state(process);
        state == "fails" && problem.contains("its certificate is not trusted") && problem.contains("ca_file")
    });
    assert_eq!(fake.headers(), "", "no credentials are sent before the peer is verified");
    trust("right");
    assert_eq!(process.post("/v1/reload").map(|(status, _)| status), Some(200));
    process.until("loads are known", |process| sees(process, "r0:uplink", 3.2e8));
    assert!(fake.headers().contains("Bearer hush"), "{}", fake.headers());
    trust("wrong");
    assert_eq!(process.post("/v1/reload").map(|(status, _)| status), Some(200));
    process.until("the certificate is not trusted again", |process| state(process).0 == "fails");
    process.until("the load is unknown", |process| link(process, "r0:uplink", "measured_bps").is_null());
    assert!(!process.log().contains("hush"), "{}", process.log());
}

#[test]
fn tokens_are_requested_and_renewed_when_they_end_or_are_rejected() {
    let (folder, fake, sso) = (tempfile::tempdir().expect("a folder"), Fake::start(), Helper::tokens(3600));
    let file = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file");
    file("secret", "hush\n");
    let params = "scopes: [metrics, more], endpoint_params: {audience: prom}";
    let client = format!("client_id: me, client_secret_file: secret, token_url: '{}/token/'", sso.url);
    file("http.yaml", &format!("oauth2: {{{client}, {params}}}\n"));
    let process = Process::run(service(folder.path(), &fake, ", http: http.yaml"));
    process.until("loads are known", |process| sees(process, "r0:uplink", 3.2e8));
    assert!(fake.headers().contains("Bearer token1"), "{}", fake.headers());
    let request = sso.received();
    // The credentials are `me:hush`.
    for part in [
        "POST /token/ ",
        "Basic bWU6aHVzaA==",
        "grant_type=client_credentials",
        "scope=metrics",
        "audience=prom",
    ] {
        assert!(request.contains(part), "{part}: {request}");
    }
    fake.answer(|question| {
        if question.headers.contains("token1") { (401, "", vec![]) } else { healthy_answer(question) }
    });
    process.until("another token is used", |_| fake.headers().contains("Bearer token2"));
    process.until("Prometheus answers again", |process| state(process).0 == "answers");
    let output = format!("{}{}", process.log(), process.status("telemetry"));
    assert!(!output.contains("hush") && !output.contains("token1"), "{output}");
}

#[test]
fn a_token_that_ends_is_renewed_and_a_missing_one_is_the_problem() {
    let (folder, fake, sso) = (tempfile::tempdir().expect("a folder"), Fake::start(), Helper::tokens(10));
    let write = |url: &str| {
        let text = format!("oauth2: {{client_id: me, client_secret: hush, token_url: '{url}'}}\n");
        std::fs::write(folder.path().join("http.yaml"), text).expect("a file");
    };
    write(&sso.url);
    let process = Process::run(service(folder.path(), &fake, ", http: http.yaml"));
    // A token of ten seconds is renewed ten seconds before its end: for each query.
    process.until("the third token is used", |_| fake.headers().contains("Bearer token3"));
    write("http://127.0.0.1:1/token");
    assert_eq!(process.post("/v1/reload").map(|(status, _)| status), Some(200));
    process.until("the problem names the server of tokens", |process| {
        let (state, problem) = state(process);
        state == "fails" && problem.contains("no token from http://127.0.0.1:1/token")
    });
}

#[test]
fn prometheus_is_reached_through_a_proxy() {
    let (folder, fake, proxy) = (tempfile::tempdir().expect("a folder"), Fake::start(), Helper::proxy());
    std::fs::write(folder.path().join("http.yaml"), format!("proxy_url: {}\n", proxy.url)).expect("a file");
    let process = Process::run(service(folder.path(), &fake, ", http: http.yaml"));
    process.until("loads are known", |process| sees(process, "r0:uplink", 3.2e8));
    let host = fake.url.trim_start_matches("http://");
    assert!(proxy.received().starts_with(&format!("CONNECT {host}")), "{}", proxy.received());
}

#[test]
fn the_name_of_a_certificate_may_differ_from_the_address() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut fake = Fake::with_tls(folder.path());
    fake.url = fake.url.replace("localhost", "127.0.0.1");
    let write = |name: &str| {
        let text = format!("tls_config: {{ca_file: right.pem, server_name: {name}}}\n");
        std::fs::write(folder.path().join("http.yaml"), text).expect("a file");
    };
    write("elsewhere.example");
    let process = Process::run(service(folder.path(), &fake, ", http: http.yaml"));
    process.until("the name is wrong", |process| state(process).0 == "fails");
    assert_eq!(fake.headers(), "");
    write("localhost");
    assert_eq!(process.post("/v1/reload").map(|(status, _)| status), Some(200));
    process.until("loads are known", |process| sees(process, "r0:uplink", 3.2e8));
    let host = fake.url.trim_start_matches("https://").to_owned();
    assert!(fake.headers().to_lowercase().contains(&format!("host: {host}")), "{}", fake.headers());
}

#[test]
fn a_reload_applies_a_new_map_and_rejects_an_invalid_one() {
    let (folder, fake) = (tempfile::tempdir().expect("a folder"), Fake::start());
    let process = Process::run(service(folder.path(), &fake, ""));
    process.until("loads are known", |process| sees(process, "r0:uplink", 3.2e8));
    let write = |map: &str| std::fs::write(folder.path().join("map.yaml"), map).expect("a file");
    write(&MAP.replace("out:", "into:"));
    let (status, problem) = process.post("/v1/reload").expect("an answer");
    assert_eq!(status, 422, "{problem}");
    assert_eq!(problem["field"], "prometheus.into", "{problem}");
    process.until("the log has the line of the error", |process| process.log().contains("map.yaml:1"));
    write(&MAP.replace("(?P<rack>r\\d)-up", "(?P<rack>r0)-up").replace("{rack}:", "r3:"));
    let (status, reloaded) = process.post("/v1/reload").expect("an answer");
    assert!(status == 200 && reloaded["reloaded"].to_string().contains("telemetry"), "{reloaded}");
    assert_eq!(reloaded["config"], "leeward.yaml");
    process.until("the load of r3 is known", |process| sees(process, "r3:uplink", 3.2e8));
    process.until("r0 is unknown", |process| link(process, "r0:uplink", "measured_bps").is_null());
    std::fs::write(folder.path().join("leeward.yaml"), "interval: 200ms\n").expect("a file");
    process.signal("-HUP");
    process.until("the queries stop", |process| process.status("telemetry").is_null());
}

#[test]
fn only_the_leader_queries_prometheus_and_a_new_leader_starts_at_once() {
    let Some(server) = postgres::Server::shared() else { return };
    let (folder, fake) = (tempfile::tempdir().expect("a folder"), Fake::start());
    let store = server.url(&server.database());
    let mut first = Process::run(service_on(folder.path(), &fake, "", &store));
    first.until("the first service has loads", |first| sees(first, "r0:uplink", 3.2e8));
    let second = Process::run(service_on(folder.path(), &fake, "", &store));
    second.until("the second service is a follower", |second| second.status("role") == "follower");
    second.until("the follower sends no queries", |second| state(second).0 == "follows");
    assert!(link(&second, "r0:uplink", "measured_bps").is_null());
    first.kill();
    second.until("the second service has loads", |second| sees(second, "r0:uplink", 3.2e8));
    assert_eq!((state(&second).0, second.status("role")), ("answers".to_owned(), json!("leader")));
}

#[test]
fn invalid_settings_map_or_credentials_fail_before_the_start() {
    let (folder, fake) = (tempfile::tempdir().expect("a folder"), Fake::start());
    let file = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("a file");
    file("wrong.yaml", "prometheus: {in: a}\nlinks:\n  - {match: {port: '('}, in: b}\n");
    file("http.yaml", "authorization: {credentials_file: nowhere}\n");
    file("token.yaml", "authorization: s3cret\n");
    for (more, part) in [
        (", every: 1s", "telemetry.prometheus.every: 1s: expected from 100ms to 200ms"),
        (", timeout: 1h", "telemetry.prometheus.timeout: 1h: expected"),
        (", maps: a", "telemetry.prometheus.maps"),
        (", map: wrong.yaml", "wrong.yaml:3:20: links[0].match.port: `(`: invalid pattern"),
        (", map: nowhere.yaml", "nowhere.yaml: no such file"),
        (", http: http.yaml", "http.yaml: authorization.credentials_file: nowhere: no such file"),
        (", http: token.yaml", "token.yaml:1:16: authorization: expected basic_auth"),
        (", url: 'http://me:s3cret@prom'", "telemetry.prometheus.url: a password in an address"),
        (", url: prom", "telemetry.prometheus.url: expected the address"),
    ] {
        let mut command = service(folder.path(), &fake, "");
        let config = folder.path().join("leeward.yaml");
        let text = std::fs::read_to_string(&config).expect("the file exists");
        let text = match more.split(':').next().expect("a field") {
            ", url" => text.replace(&format!("url: '{}'", fake.url), &more[2..]),
            ", map" => text.replace("map: map.yaml", &more[2..]),
            ", timeout" => text.replace("timeout: 400ms", &more[2..]),
            _ => text.replace("400ms", &format!("400ms{more}")),
        };
        std::fs::write(&config, text).expect("a file");
        let output = command.arg("--check-config").output().expect("the program starts");
        let stderr = String::from_utf8(output.stderr).expect("text");
        assert!(
            output.status.code() == Some(2) && stderr.contains(part) && !stderr.contains("s3cret"),
            "{more}: {stderr}"
        );
    }
    let mut command = command(folder.path(), "memory");
    let output =
        command.args(["--prometheus", &fake.url, "--check-config"]).output().expect("the program starts");
    let stderr = String::from_utf8(output.stderr).expect("text");
    assert!(stderr.starts_with("error: --map: missing"), "{stderr}");
}
