//! Hours of a small cluster on a clock of the test: the summary, the search, and the history beyond the last hour.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::support::{Server, labels, policies};
use leeward_controller::Service;
use leeward_engine::Policies;
use leeward_fabric::Nanos;
use leeward_ledger::LedgerSettings;
use leeward_placement::tasks;
use leeward_records::Clock;
use leeward_service::{NewCluster, PolicyLabels};
use leeward_store::{Sqlite, Store};
use serde_json::{Value, json};

/// Four racks of three hosts, whose uplinks carry 1 Gb/s.
const CLUSTER: &str = "{racks: 4, hosts_per_rack: 3, nic: 1Gbps, oversubscription: 3, cpus: 64}";
/// Rate of a placed task, in bit/s.
const TASK: f64 = 200e6;

/// A cluster that carries a base load and the traffic of the placed tasks.
struct Cell {
    server: Server,
    seconds: Arc<AtomicU64>,
    /// Decisions and hosts of the running tasks, the oldest first.
    running: VecDeque<(String, String)>,
    /// Seconds in which the uplink of each rack was above 75 %.
    hot_s: f64,
}

/// A service for tasks with a default policy, on a clock of seconds.
fn service(seconds: &Arc<AtomicU64>, store: Box<dyn Store>) -> Service {
    let cluster = NewCluster::read("test", CLUSTER).expect("a valid cluster");
    let both = || Policies {
        default_tasks: tasks::REGISTRY.make("random", "").ok(),
        tasks: tasks::REGISTRY.make("leeward", "").ok(),
        ..policies("threshold: 0B")
    };
    let labels = PolicyLabels { tasks: "leeward".into(), default_tasks: Some("random".into()), ..labels() };
    let service = Service::new(cluster, both, labels, LedgerSettings::default(), 1, store);
    let mut service = service.expect("the defaults are valid");
    let now = seconds.clone();
    let began = "2026-01-21T12:00:00Z".parse().expect("a time");
    let days = 10 * 24 * 3_600;
    service.clock = Clock::new(began, move || Nanos((days + now.load(Ordering::Relaxed)) * Nanos::SECOND.0));
    service
}

impl Cell {
    fn new() -> Cell {
        let (seconds, running) = (Arc::new(AtomicU64::new(0)), VecDeque::new());
        let store = Box::new(Sqlite::in_memory().expect("an in-memory store opens"));
        let server = Server::start(service(&seconds, store));
        Cell { server, seconds, running, hot_s: 0.0 }
    }

    /// Another service on this clock.
    fn service(&self, store: Box<dyn Store>) -> Service {
        service(&self.seconds, store)
    }

    fn time(&self, second: u64) -> String {
        let (hour, minute) = (second / 3_600, second / 60 % 60);
        format!("2026-01-31T{:02}:{minute:02}:{:02}Z", 12 + hour, second % 60)
    }

    /// Ten seconds pass. The uplinks carry 60 % of their capacity in the last rack, a tenth in all others, and the tasks.
    fn step(&mut self) {
        let second = self.seconds.fetch_add(10, Ordering::Relaxed) + 10;
        let mut loads = Vec::new();
        for rack in 0..4 {
            let base = if rack == 3 { 600e6 } else { 100e6 };
            let prefix = format!("r{rack}h");
            let tasks = self.running.iter().filter(|(_, host)| host.starts_with(&prefix)).count() as f64;
            let load = (base + TASK * tasks).min(1e9);
            self.hot_s += if load > 750e6 { 10.0 } else { 0.0 };
            loads.push(json!({ "link": format!("r{rack}:uplink"), "load_bps": load }));
            loads.push(json!({ "link": format!("r{rack}:downlink"), "load_bps": base.min(200e6) }));
            for host in 0..3 {
                let name = format!("r{rack}h{host}");
                let tasks = self.running.iter().filter(|(_, host)| *host == name).count() as f64;
                loads.push(json!({ "link": format!("{name}:egress"), "load_bps": TASK * tasks }));
                loads.push(json!({ "link": format!("{name}:ingress"), "load_bps": 0 }));
            }
        }
        let body = json!({ "from": self.time(second - 10), "until": self.time(second), "links": loads });
        let (status, _, summary) = self.server.post("/v1/reports", &body);
        assert_eq!(status, 200, "{summary}");
        // A read publishes the current state and adds it to the history.
        assert_eq!(self.server.get("/v1/links/r0:uplink").0, 200);
    }

    fn place(&mut self, number: usize) -> Value {
        let traffic = json!({ "critical": { "mean": "200Mbps", "peak": "200Mbps" } });
        let task = json!({ "name": "t", "cpus": 1, "egress": traffic });
        let app = json!({ "name": format!("app {number}"), "tasks": [task] });
        let body = json!({ "app": app, "job": format!("web {number}"), "ref": format!("pod/{number}") });
        let (status, _, decision) = self.server.post("/v1/place/tasks", &body);
        assert_eq!(status, 201, "{decision}");
        let text = |field: &Value| field.as_str().expect("a text").to_owned();
        self.running.push_back((text(&decision["id"]), text(&decision["hosts"][0])));
        decision
    }

    fn end_first(&mut self) {
        let (id, _) = self.running.pop_front().expect("a running task");
        assert_eq!(self.server.delete(&format!("/v1/commitments/{id}")).0, 200);
    }

    /// Runs tasks one after another for these steps, three at a time.
    fn run(&mut self, steps: usize) {
        // Without telemetry, Leeward's policy places nothing.
        self.step();
        for number in 0..steps {
            if number % 6 == 0 {
                self.place(number);
            }
            if self.running.len() > 3 {
                self.end_first();
            }
            self.step();
        }
    }

    fn summary(&self, query: &str) -> Value {
        let (status, _, summary) = self.server.get(&format!("/v1/summary{query}"));
        assert_eq!(status, 200, "{summary}");
        summary
    }

    fn mode(&self, mode: &str) {
        assert_eq!(self.server.patch("/v1/modes", &json!({ "tasks": mode }), "").0, 200);
    }
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn a_summary_says_what_either_policy_would_have_done() {
    let mut cell = Cell::new();
    cell.mode("shadow");
    cell.run(499);
    let shadow = cell.summary("");
    let hot = &shadow["hot_link_hours"];
    let seen = number(&hot["seen"]);
    // The last step of ten seconds is not in the summary yet.
    assert!((seen - cell.hot_s / 3_600.0).abs() < 0.02, "{seen} h, and {} s", cell.hot_s);
    assert!(seen > 0.05, "the default policy never heated the last rack: {shadow}");
    assert_eq!(hot["without_leeward"], hot["seen"], "the default policy decided everything");
    assert!(number(&hot["with_leeward"]) < seen / 2.0, "{shadow}");
    let tasks = &shadow["decisions"][0];
    assert_eq!(
        (&tasks["kind"], &tasks["decided"], &tasks["by_default"]),
        (&json!("tasks"), &json!(84), &json!(84))
    );
    assert!(number(&tasks["better"]) > 5.0 * number(&tasks["worse"]), "{tasks}");
    assert_eq!(hot["compared"], 84);
    let gain = &shadow["mattered"][0]["gain"];
    assert!(number(&gain["hot_links"]) >= 1.0, "{gain}");
    assert_eq!(shadow["mattered"].as_array().map(Vec::len), Some(10));

    // With Leeward, the other estimate is the seen one, and the default policy would be worse.
    cell.mode("on");
    cell.run(60);
    let began = cell.time(cell.seconds.load(Ordering::Relaxed));
    cell.hot_s = 0.0;
    cell.run(500);
    let on = cell.summary(&format!("?since={began}"));
    let hot = &on["hot_link_hours"];
    assert_eq!(hot["with_leeward"], hot["seen"], "{on}");
    assert!(number(&hot["seen"]) < number(&hot["without_leeward"]) / 2.0, "{on}");
    let steps = on["steps"].as_array().expect("a list");
    let decided: f64 = steps.iter().map(|step| number(&step["decided"])).sum();
    let kinds = on["decisions"].as_array().expect("a list");
    assert_eq!(decided, kinds.iter().map(|one| number(&one["decided"])).sum::<f64>());
    // A range of more than two days consists of hours, and the running hour is a part of it.
    let all = cell.summary("?since=2026-01-22T00:00:00Z");
    let decided = |summary: &Value| number(&summary["decisions"][0]["decided"]);
    assert_eq!(all["step_s"], 7_200);
    assert_eq!(decided(&all), 178.0, "{}", all["decisions"]);
    let (status, _, problem) = cell.server.get("/v1/summary?since=2027-01-01T00:00:00Z");
    assert_eq!((status, &problem["field"]), (422, &json!("since")));
}

#[test]
fn stored_decisions_are_searched_and_links_have_a_long_history() {
    let mut cell = Cell::new();
    cell.run(999);
    let found = |query: &str| {
        let (status, _, page) = cell.server.get(&format!("/v1/decisions?{query}"));
        assert_eq!(status, 200, "{query}: {page}");
        page["items"].as_array().expect("a list").clone()
    };
    let all = found("limit=1000");
    assert_eq!(all.len(), 167);
    let one = &found("ref=pod/600")[0];
    assert_eq!((&one["ref"], &one["request"]["name"]), (&json!("pod/600"), &json!("app 600")));
    let (host, rack) = (one["hosts"][0].as_str().expect("a host"), one["racks"][0].as_str().expect("a rack"));
    assert!(host.starts_with(rack), "{one}");
    for (query, field, value) in [
        (format!("host={host}"), "hosts", json!([host])),
        (format!("rack={rack}"), "racks", json!([rack])),
        (format!("policy={}", one["policy"].as_str().expect("a policy")), "policy", one["policy"].clone()),
    ] {
        let expected = all.iter().filter(|decision| decision[field] == value).count();
        let matching = found(&format!("{query}&limit=1000"));
        assert_eq!(matching.len(), expected, "{query}");
        assert!(matching.iter().all(|decision| decision[field] == value) && expected > 0, "{query}");
    }
    assert_eq!(found("job=web%20600").iter().map(|found| &found["id"]).collect::<Vec<_>>(), [&one["id"]]);
    assert_eq!(found("job=other").len() + found("kind=replicas&host=r0h0").len(), 0);
    let at = one["time"].as_str().expect("a time");
    assert_eq!(found(&format!("since={at}&limit=1000")).len(), 67);
    assert_eq!(found(&format!("until={at}&limit=1000")).len(), 100);
    let (_, _, page) = cell.server.get("/v1/decisions?policy=leeward&limit=10");
    let next = page["next"].as_str().expect("a further page").to_owned();
    assert_eq!(found(&format!("policy=leeward&limit=10&after={next}"))[0]["id"], all[10]["id"]);
    for field in ["client", "key", "ref", "job", "host", "rack", "policy"] {
        let (status, _, problem) = cell.server.get(&format!("/v1/decisions?{field}="));
        assert_eq!((status, &problem["field"]), (422, &json!(field)));
    }

    // Nearly three hours: ten minutes are steps of their own, and the running ones are not stored yet.
    let since = cell.time(0);
    let (_, _, history) = cell.server.get(&format!("/v1/links/r0:downlink/history?since={since}"));
    assert_eq!((&history["step_s"], &history["from"]), (&json!(600), &json!("2026-01-31T12:00:00Z")));
    let series = history["series"][0]["utilization"].as_array().expect("a list");
    assert_eq!(series.len(), 17);
    assert!(series[..16].iter().all(|mean| *mean == json!(0.1)), "{history}");
    assert_eq!(series[16], Value::Null);
    let (_, _, racks) = cell.server.get(&format!("/v1/history?since={since}&step_s=1200"));
    assert_eq!(racks["series"].as_array().map(Vec::len), Some(8));
    assert_eq!(racks["series"][0]["utilization"].as_array().map(Vec::len), Some(9));
    let (_, _, racks) = cell.server.get(&format!("/v1/history?since={since}&step_s=610"));
    assert_eq!(racks["step_s"], 1_200, "a step is a multiple of the stored ones");
    // Shorter steps are those of the last hour.
    let (_, _, hour) = cell.server.get(&format!("/v1/links/r0:downlink/history?since={since}&step_s=60"));
    assert_eq!(hour["step_s"], 60);
}

#[test]
fn a_stop_loses_no_counts_and_a_commitment_keeps_its_name() {
    let mut cell = Cell::new();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("store.db");
    let store = || Box::new(Sqlite::open(&file, Default::default(), 1_000).expect("the store opens"));
    cell.server = Server::start(cell.service(store()));
    cell.run(30);
    let task = json!({ "name": "t", "cpus": 1 });
    let tasks = json!({ "app": { "name": "own", "tasks": [task] }, "ref": "pod/own" });
    let (status, _, own) = cell.server.post("/v1/commitments", &json!({ "hosts": ["r1h0"], "tasks": tasks }));
    assert_eq!((status, &own["ref"]), (201, &json!("pod/own")), "{own}");
    cell.step();
    cell.step();
    let before = cell.summary("");
    let next = Server::start(cell.service(Box::new(Sqlite::in_memory().expect("an in-memory store opens"))));
    std::mem::replace(&mut cell.server, next).end().expect("the service stops");
    cell.server = Server::start(cell.service(store()));
    cell.step();
    cell.step();
    let after = cell.summary("");
    assert_eq!(
        (&before["decisions"], &before["hot_link_hours"]["compared"]),
        (&after["decisions"], &json!(6))
    );
    assert_eq!(before["decisions"][0]["decided"], 6);
    let (_, _, found) = cell.server.get("/v1/decisions?ref=pod/own");
    assert_eq!(found["items"][0]["id"], own["id"]);
}
