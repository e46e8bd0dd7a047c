//! Enforcers over HTTP: their promises, acknowledgements and leases, and what workloads, events and metrics show of them.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::support::{Server, agent, frozen_clock, service, with_clock};
use leeward_controller::{Access, NewToken, Role, Tokens};
use leeward_testing::clusters::VOLUMES;
use leeward_testing::workloads::form;
use serde_json::{Value, json};

/// Name, kind and host of the enforcers of a workload whose client is `r0h0` and whose server is `r1h1`.
const ENFORCERS: [(&str, &str, &str); 3] =
    [("net@r0h0", "net", "r0h0"), ("nfs@r1h1", "nfs", "r1h1"), ("net@r1h1", "net", "r1h1")];

fn grant(server: &Server, name: &str, millis: u64) {
    let body = json!({ "workload": form(name, Some("r1h1"), millis, 10) });
    let (status, _, made) = server.post("/v1/workloads", &body);
    assert_eq!(status, 201, "{made}");
}

/// Acknowledges the present version with these counters of the workload `mail`, by all enforcers.
fn enforce(server: &Server, requests: u64, late: u64) {
    for (name, kind, host) in ENFORCERS {
        let list = server.get("/v1/workloads").2;
        let mut mail = json!({ "workload": "mail", "state": "applied" });
        // An enforcer of packets may count what it takes for requests.
        mail["counters"] = json!({ "bytes": 4096 * requests, "requests": requests, "late": 0 });
        if kind == "nfs" {
            mail["counters"]["late"] = json!(late);
            mail["latencies"] =
                json!([{ "percentile": 50, "seconds": 0.001 }, { "percentile": 99.9, "seconds": 0.03 }]);
        }
        let body = json!({
            "kind": kind, "host": host, "set": list["set"], "version": list["version"], "workloads": [mail],
        });
        let (status, _, enforcer) = server.put(&format!("/v1/enforcers/{name}"), &body);
        assert_eq!((status, &enforcer["unknown"]), (200, &json!([])), "{enforcer}");
    }
}

fn state(server: &Server, name: &str) -> Value {
    server.get(&format!("/v1/workloads/{name}")).2["enforcement"]["state"].clone()
}

#[test]
fn a_conversation_with_enforcers() {
    let (server, _, seconds) = with_clock(VOLUMES, "");
    assert_eq!(server.get("/v1/workloads").2["version"], json!(0));
    grant(&server, "mail", 50);
    assert_eq!(state(&server, "mail"), json!("decided"));
    assert_eq!(server.get("/v1/enforcers/net@r0h0/promises").0, 404, "an enforcer registers first");
    let (status, _, enforcer) =
        server.put("/v1/enforcers/net@r0h0", &json!({ "kind": "net", "host": "r0h0" }));
    assert_eq!(
        (status, &enforcer["version"], &enforcer["current"]),
        (200, &Value::Null, &json!(1)),
        "{enforcer}"
    );
    assert_eq!((&enforcer["state"], &enforcer["lease_s"]), (&json!("live"), &json!(15.0)));
    let (_, _, promises) = server.get("/v1/enforcers/net@r0h0/promises");
    assert_eq!((&promises["version"], &promises["nfs"]), (&json!(1), &json!([])), "{promises}");
    assert_eq!(promises["set"], server.get("/v1/workloads").2["set"]);
    let mail = &promises["net"][0];
    assert_eq!(
        (&mail["workload"], &mail["stage"], &mail["peer"]),
        (&json!("mail"), &json!("network-in"), &json!("r1h1"))
    );
    assert_eq!(&mail["priority"], &json!(0));
    assert!(mail["limits"][0]["rate"].as_f64() > Some(0.0), "{promises}");
    enforce(&server, 0, 0);
    let (_, _, mail) = server.get("/v1/workloads/mail");
    let enforcement = &mail["enforcement"];
    assert_eq!((&enforcement["state"], &mail["version"]), (&json!("seen"), &json!(1)), "{mail}");
    assert_eq!((&mail["seen_s"], &enforcement["seen_by"]), (&json!(0.03), &json!("nfs@r1h1")), "{mail}");
    let places: Vec<&Value> =
        enforcement["places"].as_array().expect("a list").iter().map(|one| &one["enforcer"]).collect();
    assert_eq!(places, ENFORCERS.map(|(name, ..)| name));
    // 30 of 1,000 requests are late, and the SLO permits 10.
    seconds.fetch_add(1, Ordering::SeqCst);
    enforce(&server, 1_000, 30);
    let (_, _, mail) = server.get("/v1/workloads/mail");
    assert_eq!(mail["enforcement"]["total"]["requests"], json!(1_000), "only the server sees requests");
    let burn = mail["enforcement"]["burn"].as_array().expect("a list");
    assert!(
        burn.iter().all(|one| one["rate"].as_f64().is_some_and(|rate| (rate - 3.0).abs() < 1e-9)),
        "{mail}"
    );
    assert_eq!(mail["enforcement"]["alerts"], json!(["lasting"]));
    let metrics = server.metrics();
    for line in [
        "leeward_promises{state=\"seen\"} 1",
        "leeward_enforcers{state=\"live\"} 3",
        "leeward_promise_enforced{workload=\"mail\"} 1",
        "leeward_promise_seen_seconds{workload=\"mail\"} 0.03",
        "leeward_promise_late_requests_total{workload=\"mail\"} 30",
    ] {
        assert!(metrics.lines().any(|other| other == line), "{line}\n{metrics}");
    }
    // Silence of all enforcers.
    seconds.fetch_add(14, Ordering::SeqCst);
    assert_eq!(state(&server, "mail"), json!("seen"));
    seconds.fetch_add(1, Ordering::SeqCst);
    assert_eq!(state(&server, "mail"), json!("unenforced"));
    let (_, _, list) = server.get("/v1/enforcers?limit=2");
    let names: Vec<&Value> =
        list["items"].as_array().expect("a list").iter().map(|one| &one["enforcer"]).collect();
    assert_eq!(names, ["net@r0h0", "net@r1h1"]);
    assert_eq!(list["next"], json!("net@r1h1"));
    let (_, _, rest) = server.get("/v1/enforcers?limit=2&after=net%40r1h1");
    assert_eq!((&rest["items"][0]["state"], &rest["next"]), (&json!("expired"), &Value::Null), "{rest}");
    assert!(server.metrics().contains("leeward_promise_enforced{workload=\"mail\"} 0\n"));
    enforce(&server, 1_000, 30);
    assert_eq!(state(&server, "mail"), json!("seen"));
    let (status, _, removed) = server.delete("/v1/enforcers/net@r1h1");
    assert_eq!((status, &removed["host"]), (200, &json!("r1h1")));
    assert_eq!(state(&server, "mail"), json!("partial"), "the place has no enforcer, which is no error");
    assert_eq!(server.delete("/v1/enforcers/net@r1h1").0, 404);
    // A second enforcer of a name gets the time at which the lease of the first one ends.
    let instance = |instance: &str| {
        let body = json!({ "kind": "net", "host": "r1h1", "instance": instance });
        server.put("/v1/enforcers/net@r1h1", &body)
    };
    assert_eq!(instance("first").0, 200);
    let (status, _, problem) = instance("second");
    let detail = problem["detail"].as_str().unwrap_or_default();
    assert_eq!(status, 409, "{problem}");
    assert!(detail.starts_with("another enforcer of this name has a lease until 20"), "{detail}");
    assert_eq!(instance("first").0, 200);
    // The end of the second one does not remove the first one.
    assert_eq!(server.delete("/v1/enforcers/net@r1h1?instance=second").0, 409);
    assert_eq!(server.delete("/v1/enforcers/net@r1h1?instance=first").0, 200);
    assert!(server.end().is_ok());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test measures a wait")]
fn a_reader_waits_for_another_version() {
    let server = Server::start(service(VOLUMES, "", frozen_clock()));
    grant(&server, "mail", 200);
    assert_eq!(server.put("/v1/enforcers/net@r0h0", &json!({ "kind": "net", "host": "r0h0" })).0, 200);
    for path in ["/v1/workloads", "/v1/enforcers/net@r0h0/promises"] {
        let version = server.get(path).2["version"].clone();
        let began = Instant::now();
        assert_eq!(server.get(&format!("{path}?since=0&wait=30s")).2["version"], version);
        assert_eq!(server.get(&format!("{path}?since={version}")).2["version"], version, "no wait");
        assert_eq!(server.get(&format!("{path}?since={version}&wait=10ms")).2["version"], version);
        let later = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| server.get(&format!("{path}?since={version}&wait=60s")).2);
            std::thread::sleep(Duration::from_millis(50));
            grant(&server, &format!("other{}", path.replace(['/', '@'], ".")), 40);
            waiting.join().expect("a response")
        });
        assert!(later["version"].as_u64() > version.as_u64(), "{later}");
        assert!(began.elapsed() < Duration::from_secs(30), "the response comes with the change");
    }
    assert_eq!(server.get("/v1/workloads?since=-1").0, 422);
    assert_eq!(server.get("/v1/enforcers/net@r0h0/promises?wait=soon").0, 422);
}

type Change<'a> = &'a dyn Fn(&mut Value);

#[test]
fn acknowledgements_that_do_not_fit_are_problems() {
    let server = Server::start(service(VOLUMES, "", frozen_clock()));
    grant(&server, "mail", 50);
    enforce(&server, 5, 0);
    let list = server.get("/v1/workloads").2;
    let before = server.get("/v1/enforcers");
    let put = |name: &str, change: Change| {
        let mut body =
            json!({ "kind": "net", "host": "r0h0", "set": list["set"], "version": list["version"] });
        change(&mut body);
        let (status, _, problem) = server.put(&format!("/v1/enforcers/{name}"), &body);
        let kind = problem["type"].as_str().unwrap_or_default().replace("urn:leeward:problem:", "");
        (status, kind, problem["field"].as_str().unwrap_or_default().to_owned())
    };
    let cases: [(&str, Change, (u16, &str, &str)); 13] = [
        ("a", &|body| body["host"] = json!("elsewhere"), (422, "invalid", "host")),
        ("a", &|body| body["kind"] = json!("disk"), (422, "invalid", "kind")),
        ("a", &|body| body["made_up"] = json!(1), (422, "invalid", "made_up")),
        ("a", &|body| body["device"] = json!("r0h0:ssd"), (422, "invalid", "device")),
        ("%0a", &|_| {}, (422, "invalid", "enforcer")),
        ("a", &|body| body["lease"] = json!("1d"), (422, "invalid", "lease")),
        ("a", &|body| body["version"] = json!(7), (409, "enforcer", "")),
        ("a", &|body| body["set"] = json!("7"), (409, "enforcer", "")),
        ("nfs@r1h1", &|_| {}, (409, "enforcer", "")),
        ("net@r0h0", &|body| body["version"] = json!(0), (409, "enforcer", "")),
        ("a", &|body| body["instance"] = json!(""), (422, "invalid", "instance")),
        (
            "a",
            &|body| body["workloads"] = json!([{ "workload": "mail", "state": "refused" }]),
            (422, "invalid", "workloads[0].detail"),
        ),
        (
            "a",
            &|body| {
                let counters = json!({ "requests": -1 });
                body["workloads"] = json!([{ "workload": "mail", "state": "applied", "counters": counters }]);
            },
            (422, "invalid", "workloads[0].counters.requests"),
        ),
    ];
    for (name, change, (status, kind, field)) in cases {
        assert_eq!(put(name, change), (status, kind.to_owned(), field.to_owned()));
    }
    // JSON has no NaN, and a number beyond the largest is none.
    for number in ["NaN", "1e999", "1.5"] {
        let body = format!(
            "{{\"kind\": \"net\", \"host\": \"r0h0\", \"workloads\": [{{\"workload\": \"mail\", \"state\": \"applied\", \
             \"counters\": {{\"late\": {number}}}}}]}}"
        );
        let request = agent().put(server.url("/v1/enforcers/a")).header("content-type", "application/json");
        let status = request.send(body).expect("the service answers").status().as_u16();
        assert!([400, 422].contains(&status), "{number}: {status}");
    }
    let many: Vec<Value> =
        (0..10_001).map(|at| json!({ "workload": format!("w{at}"), "state": "applied" })).collect();
    assert_eq!(
        put("a", &|body| body["workloads"] = json!(many)),
        (422, "invalid".into(), "workloads".into())
    );
    assert_eq!(server.get("/v1/enforcers"), before, "nothing was stored");
    // Unknown workloads may have ended meanwhile, so they are no error.
    let body =
        json!({ "kind": "net", "host": "r0h0", "workloads": [{ "workload": "gone", "state": "applied" }] });
    let (status, _, enforcer) = server.put("/v1/enforcers/net@r0h0", &body);
    assert_eq!((status, &enforcer["unknown"], &enforcer["workloads"]), (200, &json!(["gone"]), &json!([])));
}

#[test]
fn a_host_bound_token_acknowledges_for_its_hosts_only() {
    let made =
        [("agent", Role::Report, &["r0h0"][..]), ("operator", Role::Place, &[]), ("reader", Role::Read, &[])];
    let made = made.map(|(name, role, hosts)| NewToken::make(name, role, hosts).expect("randomness"));
    let file: String = made.iter().map(|token| format!("{}\n", token.line)).collect();
    let mut service = service(VOLUMES, "", frozen_clock());
    service.access =
        Arc::new(Access::new(Some(Tokens::from_text("tokens", &file).expect("valid lines")), None));
    let server = Server::start(service);
    let [host, operator, reader] = made.map(|token| token.token);
    let put = |token: &str, name: &str, host: &str| {
        let request = agent().put(server.url(&format!("/v1/enforcers/{name}")));
        let request = request.header("authorization", format!("Bearer {token}"));
        let request = request.header("content-type", "application/json");
        let body = json!({ "kind": "net", "host": host }).to_string();
        request.send(body).expect("the service answers").status().as_u16()
    };
    let send = |token: &str, method: &str, path: &str| {
        let request = ureq::http::Request::builder().method(method).uri(server.url(path));
        let request = request.header("authorization", format!("Bearer {token}"));
        agent().run(request.body("").expect("a request")).expect("the service answers").status().as_u16()
    };
    assert_eq!(put(&host, "net@r0h0", "r0h0"), 200);
    assert_eq!(put(&host, "net@r0h0:second", "r0h0"), 200);
    assert_eq!(put(&host, "net@r0h1", "r0h1"), 403);
    // The name of another host's enforcer cannot be taken, whether it has registered or not.
    assert_eq!(put(&host, "net@r0h1", "r0h0"), 403);
    assert_eq!(put(&host, "other", "r0h0"), 403);
    assert_eq!(put(&operator, "net@r0h1", "r0h1"), 200);
    assert_eq!(put(&operator, "net@r0h1", "r0h0"), 409);
    assert_eq!(put(&reader, "net@r0h0", "r0h0"), 403);
    assert_eq!(send(&host, "GET", "/v1/enforcers/net@r0h0/promises"), 200);
    assert_eq!(send(&host, "DELETE", "/v1/enforcers/net@r0h1"), 403);
    assert_eq!(send(&host, "DELETE", "/v1/enforcers/net@r0h0"), 200);
    assert_eq!(send(&reader, "GET", "/v1/enforcers/net@r0h1"), 200);
}
