//! Measurements through the service: probe hosts on loopback, and surveys requested by host name.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{Server, frozen_clock, service};
use leeward_agent::Arguments;
use leeward_controller::ProbeSettings;
use leeward_probe::Limits;
use leeward_probe::control::{Listener, Secret, Stop};
use leeward_records::Clock;
use leeward_testing::clusters::RACKS_2X2;
use leeward_testing::rows::{check_rows, equal};
use serde_json::{Value, json};

const MESH: &str = "{shape: pipe, hosts: 3, pair: 1Mbps, cpus: 4}";

/// A probe host that listens until it is dropped.
struct Host {
    port: u16,
    stop: Stop,
}

impl Host {
    fn start(secret: Option<&str>) -> Host {
        let secret = Secret(secret.map(str::to_owned));
        let listener = Listener::bind(([127, 0, 0, 1], 0).into(), Limits::default(), secret);
        let listener = listener.expect("a port");
        let (port, stop) = (listener.address().expect("an address").port(), listener.stop());
        thread::spawn(move || listener.run());
        Host { port, stop }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stop.stop();
    }
}

/// Sends an agent's report of a host that listens on a port, over the second before the frozen clock's time.
fn announce(server: &Server, host: &str, port: u16) -> (u16, Value) {
    let (from, until) = ("2026-01-31T12:00:09Z", "2026-01-31T12:00:10Z");
    let body = json!({ "from": from, "until": until, "probe": { "host": host, "port": port } });
    let (status, _, answer) = server.post("/v1/reports", &body);
    (status, answer)
}

fn start(cluster: &str, probes: ProbeSettings, clock: Clock) -> Server {
    let mut service = service(cluster, "", clock);
    service.probes = probes;
    Server::start(service)
}

/// Starts a service with three probe hosts.
fn hosts() -> (Server, Vec<Host>) {
    let server = start(MESH, ProbeSettings::default(), frozen_clock());
    let hosts: Vec<Host> = (0..3).map(|_| Host::start(None)).collect();
    for (at, host) in hosts.iter().enumerate() {
        assert_eq!(announce(&server, &format!("h{at}"), host.port).0, 200);
    }
    (server, hosts)
}

/// A small train: these tests do not judge the measured rates.
fn train() -> Value {
    json!({ "bursts": 2, "packets": 20, "payload": 512, "gap": "1ms" })
}

/// Polls a survey until it is over, and returns it.
#[expect(clippy::disallowed_methods, reason = "a test waits")]
fn finished_survey(server: &Server, id: &str) -> Value {
    let began = Instant::now();
    loop {
        let (status, _, probe) = server.get(&format!("/v1/probes/{id}"));
        assert_eq!(status, 200, "{probe}");
        if probe["state"] != "running" {
            return probe;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{probe}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn start_survey(server: &Server, body: &Value) -> String {
    let (status, _, probe) = server.post("/v1/probes", body);
    assert_eq!((status, &probe["state"]), (201, &json!("running")), "{probe}");
    probe["id"].as_str().expect("an id").to_owned()
}

#[test]
fn a_path_is_measured_between_hosts_by_their_names() {
    let (server, _hosts) = hosts();
    let id = start_survey(
        &server,
        &json!({ "kind": "path", "hosts": ["h2", "h0"], "train": train(), "times": 3 }),
    );
    let probe = finished_survey(&server, &id);
    assert_eq!(
        (&probe["state"], &probe["done"], &probe["steps"]),
        (&json!("done"), &json!(3), &json!(3)),
        "{probe}"
    );
    let result = probe["result"].as_array().expect("a list");
    assert_eq!(result.len(), 3);
    for one in result {
        assert_eq!((&one["from"], &one["to"], &one["sent"]), (&json!("h2"), &json!("h0"), &json!(40)));
        assert!(one["rate_bps"].as_f64().is_some_and(|rate| rate > 1e6), "{one}");
    }
    let (_, _, list) = server.get("/v1/probes");
    assert_eq!((&list["items"][0]["id"], &list["items"][0]["result"]), (&json!(id), &Value::Null));
}

#[test]
fn a_complete_mesh_updates_the_cluster_and_an_incomplete_one_does_not() {
    let (server, mut hosts) = hosts();
    let body = json!({ "kind": "mesh", "hosts": ["h0", "h1", "h2"], "train": train(), "keep": true });
    let probe = finished_survey(&server, &start_survey(&server, &body));
    assert_eq!((&probe["state"], &probe["error"]), (&json!("done"), &Value::Null), "{probe}");
    let paths = probe["result"]["paths"].as_array().expect("a list");
    assert_eq!(paths.len(), 6);
    assert!(probe["result"]["cluster"].as_str().is_some_and(|text| text.contains("shape: pipe")));
    let rate = |path: &Value| path["rate_bps"].as_f64().expect("a rate").round() as i64;
    for path in paths {
        let name =
            format!("{}%3E{}", path["from"].as_str().expect("a name"), path["to"].as_str().expect("a name"));
        let (_, _, link) = server.get(&format!("/v1/links/{name}"));
        assert_eq!(link["capacity_bps"], rate(path), "{name}: {link}");
    }
    let (_, _, cluster) = server.get("/v1/cluster");
    assert_eq!((&cluster["cpus"], &cluster["pair"]), (&json!(4), &json!("1Mbps")), "all else stays");
    let version = server.get("/v1/status").2["cluster_version"].clone();
    assert_eq!(probe["cluster_version"], version);
    // One host is gone: the others are measured, and the cluster does not change.
    hosts.pop();
    thread::sleep(Duration::from_millis(200));
    let probe = finished_survey(&server, &start_survey(&server, &body));
    assert_eq!((&probe["state"], &probe["cluster_version"]), (&json!("done"), &Value::Null), "{probe}");
    assert!(
        probe["error"].as_str().is_some_and(|why| why.starts_with("mesh not stored: no rate from ")),
        "{probe}"
    );
    let failed = probe["result"]["paths"].as_array().expect("a list").iter();
    let failed: Vec<_> = failed.filter(|path| !path["error"].is_null()).collect();
    assert_eq!(failed.len(), 4, "{failed:?}");
    assert!(failed.iter().all(|path| path["from"] == "h2" || path["to"] == "h2"), "{failed:?}");
    assert_eq!(server.get("/v1/status").2["cluster_version"], version);
}

/// Starts an agent that runs until the process ends. The agent listens on a free port and reports it.
fn agent(server: &Server, host: &str) {
    let arguments = Arguments {
        controllers: vec![server.url("")],
        host: Some(host.to_owned()),
        interfaces: vec!["lo".to_owned()],
        interval: Some("100ms".to_owned()),
        probe_listen: Some("127.0.0.1:0".to_owned()),
        ..Arguments::default()
    };
    let settings = Arc::new(leeward_agent::Settings::new(arguments).expect("valid values"));
    thread::spawn(move || leeward_agent::run(&settings, |_| Ok::<(), ()>(()), || Ok(false)));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test waits")]
fn agents_join_by_reporting_and_their_measurements_set_the_cluster() {
    for cluster in [
        "{shape: hose, nic: 5Mbps, hosts: [{name: h0}, {name: h1}, {name: h2}]}",
        "{shape: pipe, pair: 5Mbps, hosts: 3}",
    ] {
        let server = start(cluster, ProbeSettings::default(), Clock::system());
        ["h0", "h1", "h2"].iter().for_each(|host| agent(&server, host));
        let path = json!({ "kind": "path", "hosts": ["h0", "h2"], "train": train() });
        let began = Instant::now();
        let id = loop {
            let (_, _, probe) = server.post("/v1/probes", &path);
            match probe["id"].as_str() {
                Some(id) => break id.to_owned(),
                None => assert!(
                    probe["field"].as_str().is_some_and(|field| field.starts_with("hosts[")),
                    "{probe}"
                ),
            }
            assert!(began.elapsed() < Duration::from_secs(30), "no report came: {probe}");
            thread::sleep(Duration::from_millis(20));
        };
        assert_eq!(finished_survey(&server, &id)["state"], "done");
        let hosts = ["h0", "h1", "h2"];
        // The second and third agents may report a little later.
        thread::sleep(Duration::from_millis(500));
        let mesh = json!({ "kind": "mesh", "hosts": hosts, "train": train(), "keep": true });
        let probe = finished_survey(&server, &start_survey(&server, &mesh));
        assert_eq!((&probe["state"], &probe["error"]), (&json!("done"), &Value::Null), "{probe}");
        let fast = if cluster.contains("hose") { "h0:egress" } else { "h0%3Eh1" };
        let capacity = server.get(&format!("/v1/links/{fast}")).2["capacity_bps"].as_i64();
        assert!(capacity > Some(5_000_000), "the loopback is faster: {capacity:?}");
    }
}

#[test]
fn one_probe_runs_at_a_time_and_can_be_cancelled() {
    let (server, _hosts) = hosts();
    let long = json!({ "kind": "path", "hosts": ["h0", "h1"], "train": train(), "times": 1000 });
    let id = start_survey(&server, &long);
    let (status, _, problem) = server.post("/v1/probes", &long);
    assert_eq!(status, 503, "{problem}");
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.contains(&id)), "{problem}");
    assert_eq!(server.delete(&format!("/v1/probes/{id}")).0, 200);
    let probe = finished_survey(&server, &id);
    assert_eq!((&probe["state"], &probe["result"]), (&json!("cancelled"), &Value::Null), "{probe}");
    assert!(probe["done"].as_u64() < Some(1_000) && !probe["ended"].is_null(), "{probe}");
    let next = start_survey(&server, &json!({ "kind": "path", "hosts": ["h0", "h1"], "train": train() }));
    assert_eq!(finished_survey(&server, &next)["state"], "done");
    assert_eq!(server.delete(&format!("/v1/probes/{next}")).2["state"], "done", "an ended probe stays done");
    assert_eq!(server.get("/v1/probes/1").0, 404);
}

#[test]
fn absent_hosts_and_invalid_probe_requests_are_rejected_by_field() {
    let server = start(MESH, ProbeSettings::default(), frozen_clock());
    assert_eq!(announce(&server, "h0", 7601).0, 200);
    for (wrong, field) in
        [(announce(&server, "nobody", 7601), "probe.host"), (announce(&server, "h1", 0), "probe.port")]
    {
        assert_eq!((wrong.0, wrong.1["field"].as_str()), (422, Some(field)), "{wrong:?}");
    }
    let invalid = [
        (json!({ "kind": "path", "hosts": ["h0", "h1"] }), "hosts[1]"),
        (json!({ "kind": "path", "hosts": ["h0", "127.0.0.1"] }), "hosts[1]"),
        (json!({ "kind": "path", "hosts": ["h0", "h0"] }), "hosts[1]"),
        (json!({ "kind": "path", "hosts": ["h0"] }), "hosts"),
        (json!({ "kind": "path", "hosts": ["h0", "h1"], "times": 0 }), "times"),
        (json!({ "kind": "mesh", "hosts": ["h0", "h1"], "train": { "bursts": 0 } }), "train.bursts"),
        (json!({ "kind": "mesh", "hosts": ["h0", "h1"], "name": "a: b" }), "name"),
        (json!({ "kind": "mesh", "hosts": ["h0", "h1"], "bottlenecks": {} }), "hosts"),
        (
            json!({ "kind": "mesh", "hosts": ["h0", "h1", "h2"], "bottlenecks": { "duration": "1s" } }),
            "bottlenecks.duration",
        ),
        (
            json!({ "kind": "mesh", "hosts": ["h0", "h1", "h2"], "bottlenecks": { "pairs": 0 } }),
            "bottlenecks.pairs",
        ),
        (json!({ "kind": "bottlenecks", "hosts": ["h0", "h1", "h2"], "duration": "2min" }), "duration"),
        (json!({ "kind": "bottlenecks", "hosts": ["h0", "h1", "h2"], "duration": "1s" }), "duration"),
    ];
    check_rows(invalid, |(body, field)| {
        let (status, _, problem) = server.post("/v1/probes", &body);
        equal(&(status, problem["field"].as_str()), &(422_u16, Some(field)))
            .map_err(|failure| format!("{body}: {failure}"))
    });
    for (train, field, detail) in [
        (json!({ "packets": 1 }), "train.packets", "1: expected a whole number from 2 to 10000"),
        (json!({ "gap": "1500ms" }), "train.gap", "1.5 s: expected at most 1 s"),
    ] {
        let body = json!({ "kind": "path", "hosts": ["h0", "h1"], "train": train });
        let (_, _, problem) = server.post("/v1/probes", &body);
        assert_eq!((&problem["field"], &problem["detail"]), (&json!(field), &json!(detail)), "{problem}");
    }
    for body in [
        json!({ "kind": "walk", "hosts": [] }),
        json!({ "kind": "path", "hosts": ["h0", "h1"], "keep": true }),
    ] {
        assert_eq!(server.post("/v1/probes", &body).0, 422, "{body}");
    }
    let tree = start(RACKS_2X2, ProbeSettings::default(), frozen_clock());
    let body = json!({ "kind": "mesh", "hosts": ["r0h0", "r0h1"], "keep": true });
    let (status, _, problem) = tree.post("/v1/probes", &body);
    assert_eq!((status, problem["field"].as_str()), (422, Some("keep")), "{problem}");
}

#[test]
fn hosts_with_a_secret_measure_only_for_a_service_that_knows_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("secret");
    let hosts = [Host::start(Some("of ours")), Host::start(Some("of ours"))];
    let addresses = hosts.iter().enumerate();
    let addresses =
        addresses.map(|(at, host)| (format!("h{at}"), format!("127.0.0.1:{}", host.port))).collect();
    let secret = Some(file.display().to_string());
    let server = start(MESH, ProbeSettings { secret, addresses }, frozen_clock());
    let body = json!({ "kind": "path", "hosts": ["h0", "h1"], "train": train() });
    for (known, state) in [("of ours\n", "done"), ("of theirs\n", "failed")] {
        std::fs::write(&file, known).expect("a file");
        let probe = finished_survey(&server, &start_survey(&server, &body));
        assert_eq!(probe["state"], state, "{probe}");
        assert!(!probe.to_string().contains("of theirs"), "{probe}");
    }
    std::fs::remove_file(&file).expect("the file exists");
    let (status, _, problem) = server.post("/v1/probes", &body);
    assert!(status == 500 && problem["detail"].to_string().contains("probes.secret"), "{problem}");
}
