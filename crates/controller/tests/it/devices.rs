//! Device reports of agents: disks, queues and link speeds, from the report to the API.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::support::{Server, frozen_clock, service};
use leeward_fabric::Nanos;
use leeward_records::Clock;
use leeward_testing::clusters::RACKS_2X3_WITH_SSDS;
use serde_json::{Value, json};

const CLUSTER: &str = "\
racks:
  - {hosts: 2, devices: [{read: 50MB/s, write: 50MB/s}]}
  - {hosts: 2, devices: [{name: data0, read: 1GB/s, write: 1GB/s}, {name: data1, read: 1GB/s, write: 1GB/s}]}
nic: 1Gbps
oversubscription: 1
";

/// A clock that the test advances, in seconds.
fn manual_clock(seconds: &Arc<AtomicU64>) -> Clock {
    let (began, seconds) = ("2026-01-31T12:00:00Z".parse().expect("a time"), seconds.clone());
    Clock::new(began, move || Nanos(seconds.load(Ordering::Relaxed) * Nanos::SECOND.0))
}

/// Reports over the second before a time of the clock.
fn report(server: &Server, second: u64, links: &Value, devices: &Value) -> (u16, Value) {
    let time = |second: u64| format!("2026-01-31T12:{:02}:{:02}Z", second / 60, second % 60);
    let body = json!({ "from": time(second - 1), "until": time(second), "links": links, "devices": devices });
    let (status, _, answer) = server.post("/v1/reports", &body);
    (status, answer)
}

fn disk(device: &str, busy: f64) -> Value {
    json!({ "device": device, "busy": busy, "read_bps": 1e6, "write_bps": 8e6, "queue": 0.5, "in_flight": 2 })
}

#[test]
fn hosts_show_disk_use_and_queues_now_and_over_time() {
    let seconds = Arc::new(AtomicU64::new(10));
    let server = Server::start(service(CLUSTER, "", manual_clock(&seconds)));
    let links = json!([{ "link": "r0h0:egress", "load_bps": 5e8, "speed_bps": 1e9, "queue_bytes": 3000 }]);
    // The only disk of a host with one device may have any name. On a host with two devices, names must match the names
    // in the cluster.
    let devices = json!([
        disk("r0h0:sda", 0.25),
        disk("r1h0:data1", 0.75),
        disk("r1h0:sdb", 0.1),
        disk("nobody:sda", 0.1),
    ]);
    for second in 10..35 {
        seconds.store(second, Ordering::Relaxed);
        let (status, answer) = report(&server, second, &links, &devices);
        assert_eq!((status, &answer["links"], &answer["devices"]), (200, &json!(1), &json!(2)), "{answer}");
        assert_eq!(answer["unknown_devices"], json!(["r1h0:sdb", "nobody:sda"]));
        let (_, _, host) = server.get("/v1/hosts/r0h0");
        assert_eq!(host["egress"]["queue_bytes"], 3000, "{host}");
        let device = &host["devices"][0];
        assert_eq!((&device["device"], &device["busy"]), (&json!("r0h0:disk0"), &json!(0.25)), "{host}");
        assert_eq!((&device["write_bps"], &device["in_flight"]), (&json!(8e6), &json!(2)));
        assert!(device["residual"].as_f64().is_some_and(|left| left > 0.0), "{device}");
    }
    let (_, _, host) = server.get("/v1/hosts/r1h0");
    let seen = |at: usize| host["devices"][at]["seen"].clone();
    assert_eq!((seen(0), seen(1)), (json!(false), json!(true)), "{host}");
    let (status, _, history) = server.get("/v1/hosts/r0h0/history");
    assert_eq!(status, 200, "{history}");
    let last = |series: &Value| series.as_array().and_then(|all| all.last().cloned()).unwrap_or_default();
    assert_eq!(last(&history["links"][0]["utilization"]), 0.5, "{history}");
    assert_eq!(last(&history["links"][0]["queue_bytes"]), 3000.0);
    assert_eq!(last(&history["links"][1]["queue_bytes"]), Value::Null);
    assert_eq!(last(&history["devices"][0]["busy"]), 0.25);
    assert_eq!(last(&history["devices"][0]["queue"]), 0.5);
    let metrics = server.metrics();
    for line in
        ["leeward_devices{state=\"seen\"} 2", "leeward_queued_bytes 3000", "leeward_device_requests 4"]
    {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    // The report expires. The coordinator notices in the next iteration of its loop, which comes at least once per real
    // second.
    seconds.store(39, Ordering::Relaxed);
    let host = (0..200).find_map(|_| {
        let (_, _, host) = server.get("/v1/hosts/r0h0");
        std::thread::sleep(std::time::Duration::from_millis(20));
        host["devices"][0]["busy"].is_null().then_some(host)
    });
    let host = host.expect("the host is listed");
    let device = &host["devices"][0];
    assert_eq!(device["queue"], Value::Null, "{device}");
    assert_eq!((&device["residual"], &host["egress"]["queue_bytes"]), (&json!(0.0), &Value::Null));
}

#[test]
fn a_reported_speed_lowers_a_capacity_and_never_raises_it() {
    let server = Server::start(service(CLUSTER, "", frozen_clock()));
    let links = json!([
        { "link": "r0h0:egress", "load_bps": 5e7, "speed_bps": 1e8 },
        { "link": "r0h0:ingress", "load_bps": 5e7, "speed_bps": 1e11 },
    ]);
    let shown = |name: &str, expected: (i64, Value, i64, f64)| {
        let (_, _, link) = server.get(&format!("/v1/links/{name}"));
        let found = (&link["capacity_bps"], &link["full_bps"], &link["speed_bps"], &link["utilization"]);
        let (capacity, full, speed, utilization) = expected;
        assert_eq!(found, (&json!(capacity), &full, &json!(speed), &json!(utilization)), "{link}");
    };
    let check = || {
        shown("r0h0:egress", (100_000_000, json!(1_000_000_000), 100_000_000, 0.5));
        shown("r0h0:ingress", (1_000_000_000, Value::Null, 100_000_000_000, 0.05));
        assert_eq!(server.get("/v1/status").2["slow_links"], 1);
    };
    assert_eq!(report(&server, 10, &links, &json!([])).0, 200);
    check();
    // The speed limit survives a cluster change that keeps the links.
    let (status, _) = server.patch("/v1/cluster", &json!({ "name": "other" }), "*");
    assert_eq!(status, 200);
    check();
}

#[test]
fn the_only_disk_of_a_host_is_its_device_and_others_are_unknown() {
    let server = Server::start(service(CLUSTER, "", frozen_clock()));
    let mut second = 0;
    // Reports these disks, and expects `unknown` among the answer's unknown devices.
    let mut report_disks = |disks: &[&str], unknown: &[&str]| {
        second += 1;
        let devices: Value = disks.iter().map(|name| disk(name, 0.5)).collect();
        let (status, answer) = report(&server, second, &json!([]), &devices);
        assert_eq!((status, &answer["unknown_devices"]), (200, &json!(unknown)), "{disks:?}");
        assert_eq!(answer["devices"], disks.len() - unknown.len(), "{disks:?}: {answer}");
    };
    report_disks(&["r0h0:sda"], &[]);
    // A second disk makes the mapping ambiguous. The disk that remains after the first fails is not the
    // device.
    report_disks(&["r0h0:sda", "r0h0:sdb"], &["r0h0:sda", "r0h0:sdb"]);
    report_disks(&["r0h0:sdb"], &["r0h0:sdb"]);
    report_disks(&["r0h0:sda"], &[]);
    // Both disks were present from the start, so neither becomes the device when the other fails.
    report_disks(&["r0h1:sda", "r0h1:sdb"], &["r0h1:sda", "r0h1:sdb"]);
    report_disks(&["r0h1:sda"], &["r0h1:sda"]);
    // The device's name in the cluster always matches, even beside other disks.
    report_disks(&["r0h1:disk0", "r0h1:sda"], &["r0h1:sda"]);
    report_disks(&["r0h0:disk0"], &[]);
    // A host with two devices has no "only disk".
    report_disks(&["r1h0:sda"], &["r1h0:sda"]);
    // A cluster change that keeps the hosts keeps the mapping.
    let (status, _) = server.patch("/v1/cluster", &json!({ "name": "other" }), "*");
    assert_eq!(status, 200);
    report_disks(&["r0h0:sdb", "r0h1:sda"], &["r0h0:sdb", "r0h1:sda"]);
    report_disks(&["r0h0:sda"], &[]);
}

#[test]
fn a_slow_link_that_stops_reporting_is_not_counted_as_slow() {
    let seconds = Arc::new(AtomicU64::new(10));
    let server = Server::start(service(CLUSTER, "", manual_clock(&seconds)));
    let slow = |expected: u64| {
        // The coordinator notices in the next iteration of its loop, which comes at least once per real second.
        let found = (0..200).find(|_| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            server.get("/v1/status").2["slow_links"] == expected
        });
        assert!(found.is_some(), "{}", server.get("/v1/status").2);
        let metrics = server.metrics();
        assert!(metrics.contains(&format!("leeward_slow_links {expected}")), "{metrics}");
    };
    let links = json!([{ "link": "r0h0:egress", "load_bps": 5e7, "speed_bps": 1e8 }]);
    assert_eq!(report(&server, 10, &links, &json!([])).0, 200);
    slow(1);
    seconds.store(14, Ordering::Relaxed);
    slow(0);
    // The last reported speed remains in force, and the link counts as slow again once the link is seen.
    let (_, _, link) = server.get("/v1/links/r0h0:egress");
    assert_eq!(
        (&link["capacity_bps"], &link["full_bps"]),
        (&json!(1e8 as u64), &json!(1e9 as u64)),
        "{link}"
    );
    let links = json!([{ "link": "r0h0:egress", "load_bps": 5e7, "speed_bps": 1e9 }]);
    assert_eq!(report(&server, 14, &links, &json!([])).0, 200);
    slow(1);
}

#[test]
fn an_unplugged_host_gets_no_guarantee_and_blocks_no_other() {
    let server = Server::start(service(RACKS_2X3_WITH_SSDS, "", frozen_clock()));
    let link = json!([{ "rate": "4MB/s", "burst": "64kB" }]);
    let workload = |name: &str, client: &str, volume: Option<&str>, millis: u64| {
        let storage = json!([{ "rate": "2%", "burst": "1ms" }]);
        let mut workload = json!({
            "name": name, "client": client, "slo": { "percentile": 99, "latency": format!("{millis}ms") },
            "curves": { "network-in": link, "network-out": link, "storage": storage }, "unloaded": "100us",
        });
        if let Some(volume) = volume {
            workload["server"] = volume.into();
        }
        let path = if volume.is_some() { "/v1/workloads" } else { "/v1/place/volumes" };
        let (status, _, answer) = server.post(path, &json!({ "workload": workload }));
        (status, answer)
    };
    // The SLOs outnumber the priorities. One workload uses the host that later loses its link.
    for (at, millis) in [100, 150, 200, 250].into_iter().enumerate() {
        let (status, answer) = workload(&format!("before{at}"), "r0h0", Some("r0h1"), millis);
        assert_eq!(status, 201, "{answer}");
    }
    let (status, answer) = workload("lost", "r1h0", Some("r1h1"), 120);
    assert_eq!(status, 201, "{answer}");
    let out =
        ["r1h1:egress", "r1h1:ingress"].map(|link| json!({ "link": link, "load_bps": 0, "speed_bps": 0 }));
    assert_eq!(report(&server, 10, &json!(out), &json!([])).0, 200);
    assert_eq!(server.get("/v1/links/r1h1:egress").2["capacity_bps"], 0);
    for (at, (client, volume, millis)) in [
        ("r0h0", Some("r0h2"), 300),
        ("r0h0", Some("r0h1"), 110),
        ("r0h0", None, 90),
        ("r0h1", None, 170),
        ("r0h1", Some("r1h2"), 130),
    ]
    .into_iter()
    .enumerate()
    {
        let (status, answer) = workload(&format!("after{at}"), client, volume, millis);
        assert_eq!(status, 201, "{client} {volume:?}: {answer}");
        assert!(answer["hosts"][0].is_string() && answer["hosts"] != json!(["r1h1"]), "{answer}");
    }
    for (name, client, volume) in [("to", "r1h0", "r1h1"), ("from", "r1h1", "r1h0")] {
        let (status, problem) = workload(name, client, Some(volume), 500);
        assert_eq!(status, 409, "{name}: {problem}");
    }
}

#[test]
fn impossible_disk_values_reject_the_whole_report_by_field() {
    let server = Server::start(service(CLUSTER, "", frozen_clock()));
    let link = json!([{ "link": "r0h0:egress", "load_bps": 1.0 }]);
    let with = |field: &str, value: Value| {
        let mut one = disk("r0h0:disk0", 0.5);
        one[field] = value;
        json!([one])
    };
    for (links, devices, field) in [
        (&link, with("busy", json!(1.5)), "devices[0].busy"),
        (&link, with("busy", json!(-0.1)), "devices[0].busy"),
        (&link, with("write_bps", json!(-1)), "devices[0].write_bps"),
        (&link, with("queue", json!(-1)), "devices[0].queue"),
        (&link, json!([disk("r0h0:disk0", 0.1), disk("r0h0:disk0", 0.1)]), "devices[1].device"),
        (
            &json!([{ "link": "r0h0:egress", "load_bps": 1.0, "speed_bps": -1 }]),
            json!([]),
            "links[0].speed_bps",
        ),
    ] {
        let (status, problem) = report(&server, 10, links, &devices);
        assert_eq!((status, problem["field"].as_str()), (422, Some(field)), "{problem}");
    }
    assert_eq!(server.get("/v1/links/r0h0:egress").2["seen"], false);
}
