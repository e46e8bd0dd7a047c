//! Changes of the machine's clock between two runs of a service, and during a run. After a change between two runs, the
//! stored times are from the earlier clock.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{Server, agent, service, service_on};
use leeward_fabric::Nanos;
use leeward_records::{Clock, ClockReadings};
use leeward_store::Sqlite;
use serde_json::{Value, json};

const CLUSTER: &str = "\
name: clocks
racks: 2
hosts_per_rack: 2
nic: 1Gbps
oversubscription: 1
priorities: 4
cpus: 8
devices: [{name: ssd, read: 500MB/s, write: 400MB/s}]
";

const HOUR: Nanos = Nanos(3_600 * Nanos::SECOND.0);

/// A frozen clock, `seconds` after the start of the year 2026.
fn at(seconds: u64) -> Clock {
    Clock::new("2026-01-01T00:00:00Z".parse().expect("a time"), move || Nanos(seconds * Nanos::SECOND.0))
}

fn items(server: &Server, path: &str) -> Vec<Value> {
    server.get(path).2["items"].as_array().expect("a list").clone()
}

/// Reserved rate of one link.
fn reserved(server: &Server) -> Value {
    server.get("/v1/links/r0h0:egress").2["reserved_bps"].clone()
}

#[test]
fn reservations_and_reports_survive_any_clock_change_between_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("store.db");
    let hour = 3_600;
    let mut held = 0;
    let mut guaranteed = Value::Null;
    for (run, seconds) in [10 * hour, 11 * hour, 9 * hour, 9 * hour + 60].into_iter().enumerate() {
        let store = Sqlite::open(&file, Default::default(), 1_000).expect("the store opens");
        let clock = at(seconds);
        let (now, before) = (clock.text(clock.now()), clock.text(Nanos((seconds - 1) * Nanos::SECOND.0)));
        let server = Server::start(service_on(CLUSTER, "", clock, Box::new(store)));
        assert_eq!(server.get("/v1/status").2["time"], json!(now), "run {run}");
        assert_eq!(items(&server, "/v1/commitments").len(), held, "run {run}");
        assert_eq!(reserved(&server), if run == 0 { json!(0) } else { guaranteed.clone() }, "run {run}");
        // Reports carry the current time and are accepted.
        let hosts = ["r0h0", "r0h1", "r1h0", "r1h1"].into_iter();
        let links = hosts.flat_map(|host| [format!("{host}:ingress"), format!("{host}:egress")]);
        let racks = ["r0:uplink", "r0:downlink", "r1:uplink", "r1:downlink"].map(str::to_owned);
        let links: Vec<Value> =
            links.chain(racks).map(|link| json!({ "link": link, "load_bps": 1_000_000 })).collect();
        let answer = server.post("/v1/reports", &json!({ "from": before, "until": now, "links": links }));
        assert_eq!((answer.0, &answer.2["links"]), (200, &json!(links.len())), "run {run}: {}", answer.2);
        let (_, _, snapshot) = server.get("/v1/snapshot");
        assert_eq!(
            snapshot["links"]["link"].as_array().map(Vec::len),
            Some(links.len()),
            "run {run}: {snapshot}"
        );
        let client = format!("client {run}");
        let block =
            json!({ "size": "64MiB", "writer": "r0h0", "replicas": 2, "client": client, "sequence": 1 });
        let app = json!({ "app": { "tasks": [{ "name": "t", "cpus": 1 }] }, "lasts": "4h" });
        for (path, body) in [("/v1/place/replicas", &block), ("/v1/place/tasks", &app)] {
            let (status, _, placed) = server.post(path, body);
            assert_eq!((status, &placed["time"]), (201, &json!(now)), "run {run}: {placed}");
            let age = placed["telemetry_age_s"].as_f64();
            assert!(age.is_none_or(|age| (0.0..=1.0).contains(&age)), "run {run}: {placed}");
            held += 1;
        }
        if run == 0 {
            let link = json!([{ "rate": "4MB/s", "burst": "64kB" }]);
            let workload = json!({
                "name": "mail", "client": "r0h0", "server": "r1h1", "unloaded": "100us",
                "slo": { "percentile": 99, "latency": "50ms" },
                "curves": {
                    "network-in": link, "network-out": link, "storage": [{ "rate": "10%", "burst": "4ms" }],
                },
            });
            let (status, _, made) = server.post("/v1/workloads", &json!({ "workload": workload }));
            assert_eq!(status, 201, "{made}");
            held += 1;
            guaranteed = reserved(&server);
            assert_ne!(guaranteed, json!(0));
        }
        // A retry of a request decided under an earlier clock returns the stored decision.
        if run > 0 {
            let mut again = block.clone();
            again["client"] = json!("client 0");
            assert_eq!(server.post("/v1/place/replicas", &again).0, 200, "run {run}");
        }
        for decision in items(&server, "/v1/commitments") {
            let age = decision["telemetry_age_s"].as_f64();
            assert!(age.is_none_or(|age| (0.0..=1.0).contains(&age)), "run {run}: {decision}");
        }
        assert_eq!(items(&server, "/v1/commitments").len(), held, "run {run}");
        assert!(server.end().is_ok());
    }
}

/// A clock whose readings the test sets.
fn manual_clock() -> (Arc<Mutex<ClockReadings>>, Clock) {
    let start = ClockReadings { wall: Nanos(10 * HOUR.0), monotonic: Nanos(0) };
    let readings = Arc::new(Mutex::new(start));
    let (origin, shown) = ("2026-01-01T00:00:00Z".parse().expect("a time"), readings.clone());
    (readings, Clock::with_readings(origin, move || *shown.lock().expect("the lock is not poisoned")))
}

/// Advances both clocks by one second, then sets the wall clock to `set` if given.
fn advance(readings: &Mutex<ClockReadings>, set: Option<Nanos>) {
    let mut readings = readings.lock().expect("the lock is not poisoned");
    readings.monotonic = readings.monotonic.plus(Nanos::SECOND);
    readings.wall = set.unwrap_or(readings.wall.plus(Nanos::SECOND));
}

/// Reports all links over the last second of the wall clock, as agents on this machine would. Returns the
/// number of accepted links.
fn report(server: &Server, readings: &Mutex<ClockReadings>) -> Value {
    let wall = readings.lock().expect("the lock is not poisoned").wall;
    let (from, until) = (clock_text(wall.since(Nanos::SECOND)), clock_text(wall));
    let links: Vec<Value> = items(server, "/v1/links")
        .iter()
        .map(|link| json!({ "link": link["link"], "load_bps": 1_000_000 }))
        .collect();
    let (status, _, answer) =
        server.post("/v1/reports", &json!({ "from": from, "until": until, "links": links }));
    assert_eq!(status, 200, "{answer}");
    answer["links"].clone()
}

/// Returns the service's status after its clock check, which runs every second.
fn status_after_clock_check(server: &Server, clock: &Clock) -> Value {
    let now = json!(clock.text(clock.now()));
    for _ in 0..100 {
        let (_, _, status) = server.get("/v1/status");
        if status["time"] == now {
            return status;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("the service does not reach {now}");
}

fn seen_link_count(server: &Server) -> usize {
    items(server, "/v1/links").iter().filter(|link| link["seen"] == json!(true)).count()
}

/// Status code and text of `/readyz`.
fn readiness(server: &Server) -> (u16, String) {
    let mut response = agent().get(server.url("/readyz")).call().expect("the server answers");
    (response.status().as_u16(), response.body_mut().read_to_string().expect("text"))
}

/// Sets the wall clock of the service an hour wrong for a while, and then right again. During that time, agents with the
/// right clock are of no use, and agents on the same machine are; afterwards, everything is as before the step.
fn step_and_return(wrong: impl Fn(Nanos) -> Nanos, behind_s: f64) {
    let (readings, clock) = manual_clock();
    let server = Server::start(service(CLUSTER, "", clock.clone()));
    let all = items(&server, "/v1/links").len();
    let wall = || readings.lock().expect("the lock is not poisoned").wall;
    advance(&readings, None);
    assert_eq!(report(&server, &readings), json!(all));
    let app = |lasts: &str| json!({ "app": { "tasks": [{ "name": "t", "cpus": 1 }] }, "lasts": lasts });
    for lasts in ["8s", "1800s", "3h"] {
        assert_eq!(server.post("/v1/place/tasks", &app(lasts)).0, 201);
    }
    let block = json!({ "size": "256MiB", "replicas": 2, "client": "c", "sequence": 1 });
    let (_, _, before) = server.post("/v1/place/replicas", &block);
    advance(&readings, Some(wrong(wall().plus(Nanos::SECOND))));
    let status = status_after_clock_check(&server, &clock);
    assert_eq!(
        (&status["clock_behind_s"], status["time"].as_str()),
        (&json!(behind_s), Some(&*clock.text(clock.now())))
    );
    assert_eq!(status["time"], json!(clock_text(wall())), "the service shows the time of the machine");
    let (code, text) = readiness(&server);
    assert!(code == 503 && text.contains("clock was set"), "{code} {text}");
    assert_eq!(items(&server, "/v1/commitments").len(), 4, "the step ends no decision");
    // An agent on the same machine, or a machine that was set too, restores telemetry.
    assert_eq!(report(&server, &readings), json!(all));
    status_after_clock_check(&server, &clock);
    assert_eq!((seen_link_count(&server), readiness(&server).0), (all, 200));
    assert_eq!(server.post("/v1/place/replicas", &json!({ "size": "256MiB", "replicas": 2 })).0, 201);
    // The clock is corrected: telemetry continues with the next report.
    for _ in 0..3 {
        advance(&readings, None);
    }
    let right = Nanos(10 * HOUR.0).plus(readings.lock().expect("the lock is not poisoned").monotonic);
    advance(&readings, Some(right.plus(Nanos::SECOND)));
    assert_eq!(status_after_clock_check(&server, &clock)["clock_behind_s"], json!(0.0));
    assert_eq!(report(&server, &readings), json!(all));
    status_after_clock_check(&server, &clock);
    assert_eq!((seen_link_count(&server), readiness(&server)), (all, (200, "ok\n".to_owned())));
    assert_eq!(
        server.post("/v1/place/replicas", &block),
        (200, "application/json".to_owned(), before),
        "a retry"
    );
    for _ in 0..4 {
        advance(&readings, None);
    }
    status_after_clock_check(&server, &clock);
    assert_eq!(
        items(&server, "/v1/commitments").len(),
        4,
        "the decision of eight seconds has ended, at its time"
    );
    let metrics = server.metrics();
    assert!(metrics.contains("\nleeward_clock_behind_seconds 0.0\n"), "{metrics}");
}

/// Text of a time of the wall clock.
fn clock_text(wall: Nanos) -> String {
    at(0).text(wall)
}

#[test]
fn a_clock_that_is_set_forward_and_back_leaves_no_trace() {
    step_and_return(|wall| wall.plus(HOUR), -3600.0);
}

#[test]
fn a_clock_that_is_set_back_and_forward_leaves_no_trace() {
    step_and_return(|wall| wall.since(HOUR), 3600.0);
}

#[test]
fn reports_by_the_right_clock_count_again_once_the_service_has_it() {
    let (readings, clock) = manual_clock();
    let server = Server::start(service(CLUSTER, "", clock.clone()));
    let all = items(&server, "/v1/links").len();
    advance(&readings, None);
    assert_eq!(report(&server, &readings), json!(all));
    // The clock of the service goes wrong, and those of the agents do not.
    let wall = readings.lock().expect("the lock is not poisoned").wall;
    advance(&readings, Some(wall.plus(HOUR)));
    status_after_clock_check(&server, &clock);
    let (from, until) = (clock_text(wall), clock_text(wall.plus(Nanos::SECOND)));
    let old = json!({ "from": from, "until": until, "links": [{ "link": "r0h0:egress", "load_bps": 1 }] });
    let (status, _, answer) = server.post("/v1/reports", &old);
    assert_eq!(
        (status, &answer["links"], &answer["skipped"]["stale"]),
        (200, &json!(0), &json!(1)),
        "{answer}"
    );
    assert_eq!(readiness(&server).0, 503);
    for _ in 0..120 {
        advance(&readings, None);
    }
    status_after_clock_check(&server, &clock);
    let (code, text) = readiness(&server);
    assert!(
        code == 200 && text.starts_with("ok: the machine's clock was set forward by 3599.0 s"),
        "{code} {text}"
    );
    let right = Nanos(10 * HOUR.0).plus(readings.lock().expect("the lock is not poisoned").monotonic);
    advance(&readings, Some(right.plus(Nanos::SECOND)));
    assert_eq!(report(&server, &readings), json!(all));
    status_after_clock_check(&server, &clock);
    assert_eq!((seen_link_count(&server), readiness(&server)), (all, (200, "ok\n".to_owned())));
}

#[test]
fn time_passes_while_the_machine_is_suspended() {
    let (readings, clock) = manual_clock();
    let server = Server::start(service(CLUSTER, "", clock.clone()));
    let all = items(&server, "/v1/links").len();
    advance(&readings, None);
    assert_eq!(report(&server, &readings), json!(all));
    let app = |lasts: &str| json!({ "app": { "tasks": [{ "name": "t", "cpus": 1 }] }, "lasts": lasts });
    for lasts in ["1800s", "3h"] {
        assert_eq!(server.post("/v1/place/tasks", &app(lasts)).0, 201);
    }
    // Both clocks count the time of the suspension.
    let mut now = readings.lock().expect("the lock is not poisoned");
    *now = ClockReadings { wall: now.wall.plus(HOUR), monotonic: now.monotonic.plus(HOUR) };
    drop(now);
    assert_eq!(status_after_clock_check(&server, &clock)["clock_behind_s"], json!(0.0));
    assert_eq!(seen_link_count(&server), 0, "telemetry is an hour old");
    let held = items(&server, "/v1/commitments");
    assert_eq!(held.len(), 1, "only the decision with the shorter life has ended: {held:?}");
    assert_eq!((report(&server, &readings), readiness(&server).0), (json!(all), 200));
}
