//! Changes of the machine's clock between two runs of a service, and during a run. After a change between two runs, the
//! stored times are from the earlier clock.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{Server, service, service_on};
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
fn report(server: &Server, clock: &Clock, readings: &Mutex<ClockReadings>) -> Value {
    let wall = readings.lock().expect("the lock is not poisoned").wall;
    let (from, until) = (clock.text(wall.since(Nanos::SECOND)), clock.text(wall));
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

#[test]
fn a_forward_clock_step_takes_effect_at_once() {
    let (readings, clock) = manual_clock();
    let server = Server::start(service(CLUSTER, "", clock.clone()));
    let all = items(&server, "/v1/links").len();
    let app = |lasts: &str| json!({ "app": { "tasks": [{ "name": "t", "cpus": 1 }] }, "lasts": lasts });
    advance(&readings, None);
    assert_eq!(report(&server, &clock, &readings), json!(all));
    for lasts in ["1800s", "3h"] {
        assert_eq!(server.post("/v1/place/tasks", &app(lasts)).0, 201);
    }
    // The machine was suspended for an hour.
    advance(&readings, Some(Nanos(11 * HOUR.0)));
    assert_eq!(status_after_clock_check(&server, &clock)["clock_behind_s"], json!(0.0));
    assert_eq!(seen_link_count(&server), 0, "telemetry is an hour old");
    let held = items(&server, "/v1/commitments");
    assert_eq!(held.len(), 1, "only the decision with the shorter life has ended: {held:?}");
    for _ in 0..5 {
        assert_eq!(report(&server, &clock, &readings), json!(all));
        assert_eq!(seen_link_count(&server), all);
        let wall = readings.lock().expect("the lock is not poisoned").wall;
        assert_eq!((clock.now(), clock.behind()), (wall, Nanos(0)));
        let (status, _, placed) =
            server.post("/v1/place/replicas", &json!({ "size": "256MiB", "replicas": 2 }));
        assert_eq!(status, 201, "{placed}");
        advance(&readings, None);
    }
}

#[test]
fn a_backward_clock_step_is_reported_and_old_data_stays_old() {
    let (readings, clock) = manual_clock();
    let server = Server::start(service(CLUSTER, "", clock.clone()));
    let all = items(&server, "/v1/links").len();
    advance(&readings, None);
    assert_eq!(report(&server, &clock, &readings), json!(all));
    let block = json!({ "size": "256MiB", "replicas": 2 });
    let (_, _, before) = server.post("/v1/place/replicas", &block);
    // The wall clock is two hours behind the time that it would otherwise show.
    advance(&readings, Some(Nanos(8 * HOUR.0 + 2 * Nanos::SECOND.0)));
    for second in 2..=5 {
        assert_eq!(clock.now(), Nanos(10 * HOUR.0 + second * Nanos::SECOND.0), "time goes on");
        assert_eq!(status_after_clock_check(&server, &clock)["clock_behind_s"], json!(7200.0));
        assert_eq!(
            report(&server, &clock, &readings),
            json!(0),
            "the service already has reports of these times"
        );
        advance(&readings, None);
    }
    assert!(server.metrics().contains("\nleeward_clock_behind_seconds 7200.0\n"));
    assert_eq!(seen_link_count(&server), 0, "no report for more than three intervals");
    let (status, _, problem) = server.post("/v1/place/replicas", &block);
    assert_eq!((status, &problem["type"]), (409, &json!("urn:leeward:problem:refused")), "{problem}");
    assert_eq!(items(&server, "/v1/commitments")[0]["id"], before["id"]);
    // Reports stamped with the service's time are accepted.
    advance(&readings, Some(clock.now()));
    assert_eq!(report(&server, &clock, &readings), json!(all));
    assert_eq!(status_after_clock_check(&server, &clock)["clock_behind_s"], json!(0.0));
    assert_eq!(server.post("/v1/place/replicas", &block).0, 201);
}
