//! Workloads with guaranteed SLOs: the HTTP API.

use crate::support::{Server, frozen_clock, labels, policies, service};
use leeward_controller::Service;
use leeward_engine::Policies;
use leeward_ledger::LedgerSettings;
use leeward_placement::tasks;
use leeward_service::{NewCluster, PolicyLabels};
use leeward_store::Sqlite;
use leeward_testing::clusters::VOLUMES;
use leeward_testing::workloads::form;
use serde_json::{Value, json};

#[test]
fn a_conversation_about_workloads() {
    let server = Server::start(service(VOLUMES, "", frozen_clock()));
    let body = |form: Value| json!({ "workload": form });
    let (status, _, made) = server.post("/v1/workloads", &body(form("mail", Some("r1h1"), 50, 10)));
    assert_eq!((status, &made["kind"]), (201, &json!("workload")), "{made}");
    let (status, _, volume) = server.post("/v1/place/volumes", &body(form("index", None, 60, 10)));
    assert_eq!((status, &volume["kind"]), (201, &json!("volumes")), "{volume}");
    let (_, _, list) = server.get("/v1/workloads");
    let names: Vec<&Value> =
        list["items"].as_array().expect("items").iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["index", "mail"]);
    let (_, _, mail) = server.get("/v1/workloads/mail");
    assert_eq!(
        (&mail["decision"], &mail["volume"], &mail["seen_s"]),
        (&made["id"], &json!("r1h1:ssd"), &Value::Null)
    );
    assert_eq!(mail["path"].as_array().map(Vec::len), Some(9), "{mail}");
    let (_, _, rack) = server.get("/v1/racks/r1");
    let reserved: Vec<&Value> = rack["reservations"].as_array().expect("a list").iter().collect();
    assert!(reserved.iter().any(|one| one["link"] == "r1:downlink" && one["workload"] == "mail"), "{rack}");
    assert_eq!(rack["links"][1]["reserved_bps"], json!(35_200_000), "{rack}");
    let holds = server.get("/v1/links/r0:uplink").2["holds"].clone();
    let kinds: Vec<&Value> = holds.as_array().expect("a list").iter().map(|one| &one["kind"]).collect();
    assert!(kinds.contains(&&json!("workload")), "{holds}");
    assert_eq!(server.get("/v1/links/r0h1:egress").2["holds"], json!([]));
    let seen = json!({
        "from": "2026-01-31T12:00:09Z", "until": "2026-01-31T12:00:10Z",
        "workloads": [{ "workload": "mail", "latency_s": 0.012 }],
    });
    assert_eq!(server.post("/v1/reports", &seen).0, 200);
    assert_eq!(server.get("/v1/workloads/mail").2["seen_s"], json!(0.012));
    // Rejected and invalid requests, and what-if results.
    let (status, _, problem) = server.post("/v1/workloads", &body(form("late", Some("r1h1"), 2, 50)));
    assert_eq!((status, &problem["type"]), (409, &json!("urn:leeward:problem:refused")), "{problem}");
    for (field, mut wrong) in
        [("workload.slo", form("x", Some("r1h1"), 9, 1)), ("workload.trace", form("x", Some("r1h1"), 9, 1))]
    {
        let name = field.split('.').next_back().expect("a field");
        wrong[name] = if name == "slo" { Value::Null } else { json!("/etc/passwd") };
        let (status, _, problem) = server.post("/v1/workloads", &body(wrong));
        assert_eq!((status, &problem["field"]), (422, &json!(field)), "{problem}");
    }
    let path = format!("/v1/decisions/{}/what-if", made["id"].as_str().expect("an id"));
    let (status, _, would) = server.post(&path, &json!({ "policy": "none" }));
    assert_eq!(
        (status, &would["hosts"], &would["policy"]),
        (200, &json!(["r1h1"]), &json!("none")),
        "{would}"
    );
    assert_eq!(would["promise"]["bound_s"], Value::Null);
    let (status, _, problem) = server.post(&path, &json!({ "policy": "dnc:serach=false" }));
    assert_eq!((status, &problem["field"]), (422, &json!("policy")), "{problem}");
    // The workload ends.
    let path = format!("/v1/commitments/{}", made["id"].as_str().expect("an id"));
    assert_eq!(server.delete(&path).0, 200);
    assert_eq!(server.get("/v1/workloads").2["items"].as_array().map(Vec::len), Some(1));
    assert!(server.get("/v1/workloads/mail").2["released"].is_string());
    assert_eq!(server.get("/v1/workloads/nobody").0, 404);
    assert!(server.end().is_ok());
}

#[test]
fn scores_and_other_policies_commit_nothing() {
    let server = Server::start(service(VOLUMES, "", frozen_clock()));
    let (_, _, policies) = server.get("/v1/policies");
    let decides = |kind: &str| {
        let all = policies[kind].as_array().expect("a list");
        let one: Vec<&Value> = all.iter().filter(|one| one["decides"] == json!(true)).collect();
        one.iter().map(|one| one["label"].clone()).collect::<Vec<Value>>()
    };
    let kinds = ["replicas", "tasks", "moves", "workload", "volumes"].map(decides);
    assert_eq!(kinds.map(|mut one| one.remove(0)), ["sinbad", "borg", "utp", "dnc", "compactor"]);
    let links = |load: f64| {
        let rack = |at: usize| [format!("r{at}:uplink"), format!("r{at}:downlink")];
        let host =
            |at: usize| [format!("r{}h{}:ingress", at / 3, at % 3), format!("r{}h{}:egress", at / 3, at % 3)];
        (0..2).flat_map(rack).chain((0..6).flat_map(host)).map(|link| (link, load)).collect::<Vec<_>>()
    };
    server.report(&links(0.0));
    let request = json!({ "hosts": ["r0h0", "r1h2"], "egress_bps": 300_000_000 });
    let (status, _, scores) = server.post("/v1/score/hosts", &request);
    // `borg` balances processors, and this cluster declares none.
    let of =
        |host: &str| json!({ "host": host, "score": 100, "value_bps": null, "limit": null, "refused": null });
    assert_eq!((status, &scores["scores"]), (200, &json!([of("r0h0"), of("r1h2")])), "{scores}");
    assert_eq!((&scores["policy"], &scores["telemetry_age_s"]), (&json!("borg"), &Value::Null), "{scores}");
    let wrong = json!({ "hosts": ["r0h0", "r9h9"] });
    let (status, _, problem) = server.post("/v1/score/hosts", &wrong);
    assert_eq!((status, &problem["field"]), (422, &json!("hosts[1]")), "{problem}");
    let (_, _, block) = server.post("/v1/place/replicas", &json!({ "size": "64MiB", "writer": "r0h0" }));
    let (_, _, app) = server.post("/v1/place/tasks", &json!({ "app": { "tasks": [{ "name": "t" }] } }));
    let before = server.get("/v1/snapshot");
    for (decision, policy) in [(&block, "sinbad"), (&block, "uniform"), (&app, "leeward"), (&app, "random")] {
        let path = format!("/v1/decisions/{}/what-if", decision["id"].as_str().expect("an id"));
        let (status, _, would) = server.post(&path, &json!({ "policy": policy }));
        assert_eq!(
            (status, &would["policy"], &would["id"]),
            (200, &json!(policy), &decision["id"]),
            "{would}"
        );
        assert_eq!(would["hosts"].as_array().map(Vec::len), decision["hosts"].as_array().map(Vec::len));
        if policy == "sinbad" {
            assert_eq!(would["hosts"], decision["hosts"]);
        }
    }
    assert_eq!(server.get("/v1/snapshot"), before);
    assert_eq!(server.post("/v1/decisions/99/what-if", &json!({ "policy": "sinbad" })).0, 404);
    assert!(server.end().is_ok());
}

#[test]
fn a_score_is_the_residual_capacity_of_the_fullest_link() {
    let tasks = || Policies { tasks: tasks::REGISTRY.make("utp", "").ok(), ..policies("") };
    let cluster = NewCluster::read("test", VOLUMES).expect("the cluster of the test is valid");
    let (labels, settings) = (PolicyLabels { tasks: "utp".into(), ..labels() }, LedgerSettings::default());
    let store = Box::new(Sqlite::in_memory().expect("an in-memory store opens"));
    let mut service =
        Service::new(cluster, tasks, labels, settings, 1, store).expect("the defaults are valid");
    service.clock = frozen_clock();
    let server = Server::start(service);
    let links = ["r0:uplink", "r0:downlink", "r1:uplink", "r1:downlink"].map(|link| (link.to_owned(), 3e8));
    server.report(&links[..2]);
    let request = json!({ "hosts": ["r0h0", "r1h2"], "egress_bps": 300_000_000 });
    // A rack of three hosts can send 3 Gb/s: a tenth of that is measured, and the task adds another tenth.
    let (_, _, scores) = server.post("/v1/score/hosts", &request);
    let seen = json!({
        "host": "r0h0", "score": 80, "value_bps": 2_400_000_000_u64, "limit": "r0:uplink", "refused": null
    });
    assert_eq!(scores["scores"][0], seen, "{scores}");
    assert_eq!(
        (&scores["scores"][1]["score"], &scores["telemetry_age_s"]),
        (&json!(0), &json!(0.0)),
        "{scores}"
    );
    assert!(scores["scores"][1]["refused"].is_string(), "no report covers the other rack: {scores}");
    // A draining host is marked as such, and the others are still rated.
    server.report(&links[2..]);
    let draining = json!({
        "from": "2026-01-31T12:00:09Z", "until": "2026-01-31T12:00:10Z",
        "hosts": [{ "host": "r1h2", "draining": true }],
    });
    assert_eq!(server.post("/v1/reports", &draining).0, 200);
    let (_, _, scores) = server.post("/v1/score/hosts", &request);
    assert_eq!(scores["scores"][0], seen, "{scores}");
    assert_eq!(scores["scores"][1]["refused"], json!("the host is draining"), "{scores}");
    // The largest request runs as a job, with the same results.
    let peer = json!({ "host": "r0h1", "egress_bps": 0 });
    let many = json!({ "hosts": vec!["r0h0"; 10_000], "egress_bps": 300_000_000, "peers": vec![peer; 100] });
    let (status, _, scores) = server.post("/v1/score/hosts", &many);
    let scores = scores["scores"].as_array().expect("a list");
    assert!(status == 200 && scores.len() == 10_000 && scores.iter().all(|score| *score == seen));
    assert!(server.end().is_ok());
}
