//! Modes, comparisons and dry runs over HTTP.

use std::collections::BTreeSet;

use crate::support::{Server, frozen_clock, labels, policies};
use leeward_controller::Service;
use leeward_engine::Policies;
use leeward_ledger::LedgerSettings;
use leeward_placement::{replicas, tasks};
use leeward_service::{NewCluster, PolicyLabels};
use leeward_store::Sqlite;
use leeward_testing::clusters::RACKS_4X3;
use leeward_testing::workloads::form;
use serde_json::{Value, json};

/// A service with default policies.
fn service() -> Service {
    let cluster = NewCluster::read("test", RACKS_4X3).expect("a valid cluster");
    let both = || Policies {
        default_replicas: replicas::REGISTRY.make("uniform", "").ok(),
        default_tasks: tasks::REGISTRY.make("random", "").ok(),
        ..policies("threshold: 0B")
    };
    let (default_replicas, default_tasks) = (Some("uniform".into()), Some("random".into()));
    let replicas = "sinbad:threshold=0B".into();
    let labels = PolicyLabels { replicas, default_replicas, default_tasks, ..labels() };
    let store = Box::new(Sqlite::in_memory().expect("an in-memory store opens"));
    let service = Service::new(cluster, both, labels, LedgerSettings::default(), 1, store);
    let mut service = service.expect("the defaults are valid");
    service.clock = frozen_clock();
    service
}

/// A service whose links are known. The rack of the last links is hot.
fn server() -> Server {
    let server = Server::start(service());
    let (_, _, links) = server.get("/v1/links?limit=1000");
    let loads = links["items"].as_array().expect("a list").iter().map(|link| {
        let (name, capacity) = (link["link"].as_str().expect("a name"), link["capacity_bps"].as_f64());
        let share = if name.starts_with("r3") { 0.9 } else { 0.1 };
        (name.to_owned(), share * capacity.expect("a number"))
    });
    let loads: Vec<(String, f64)> = loads.collect();
    server.report(&loads);
    server
}

fn set(server: &Server, modes: &Value) -> Value {
    let (status, body) = server.patch("/v1/modes", modes, "");
    assert_eq!(status, 200, "{body}");
    body
}

fn place(server: &Server, fields: &Value) -> Value {
    let mut body = json!({ "size": "64MiB", "writer": "r0h0" });
    let object = body.as_object_mut().expect("an object");
    object.extend(fields.as_object().expect("an object").clone());
    let (status, _, decision) = server.post("/v1/place/replicas", &body);
    assert_eq!(status, 201, "{decision}");
    decision
}

fn release(server: &Server, decision: &Value) {
    let id = decision["id"].as_str().expect("an id");
    assert_eq!(server.delete(&format!("/v1/commitments/{id}")).0, 200);
}

#[test]
fn each_mode_decides_and_compares_as_it_says() {
    let server = server();
    let on = place(&server, &json!({}));
    assert_eq!(
        (&on["mode"], &on["by_default"], &on["policy"]),
        (&json!("on"), &json!(false), &json!("sinbad:threshold=0B"))
    );
    assert_eq!(on["beside"]["policy"], "uniform");
    release(&server, &on);

    let status = server.get("/v1/status").2;
    let replicas =
        status["comparisons"].as_array().expect("a list").iter().find(|one| one["kind"] == "replicas");
    let counted = |one: &Value| {
        ["better", "same", "worse"].map(|effect| one[effect].as_u64()).into_iter().flatten().sum()
    };
    assert_eq!(replicas.map(counted), Some(1_u64), "the status counts the comparison: {status}");
    assert!(status["transaction_s"].as_f64().is_some_and(|took| took > 0.0), "{status}");

    let modes = set(&server, &json!({ "replicas": "shadow", "reason": "a first look" }));
    assert_eq!((&modes["set"]["replicas"], &modes["set"]["tasks"]), (&json!("shadow"), &json!("on")));
    assert_eq!((&modes["reason"], &modes["settings"]["replicas"]), (&json!("a first look"), &json!("on")));
    let mut avoided = 0;
    for _ in 0..20 {
        let shadow = place(&server, &json!({}));
        assert_eq!((&shadow["by_default"], &shadow["policy"]), (&json!(true), &json!("uniform")));
        let beside = &shadow["beside"];
        assert_eq!(
            (&beside["policy"], &beside["refused"]),
            (&json!("sinbad:threshold=0B"), &Value::Null),
            "{shadow}"
        );
        assert_eq!(beside["load"]["hot"], 0, "sinbad avoids the hot rack: {shadow}");
        let crosses = shadow["hosts"]
            .as_array()
            .expect("a list")
            .iter()
            .any(|host| host.as_str().is_some_and(|host| host.starts_with("r3")));
        assert_eq!(beside["decided"]["hot"].as_u64() > Some(0), crosses, "{shadow}");
        avoided += u32::from(crosses);
        // Without its load, the next decision sees the network as this one did.
        release(&server, &shadow);
    }
    assert!(avoided > 0, "the default policy never chose the hot rack");
    let metrics = server.metrics();
    let count = |labels: &str| {
        let name = format!("leeward_comparisons_total{{{labels}}} ");
        metrics.lines().find_map(|line| line.strip_prefix(&name)?.parse::<u32>().ok()).unwrap_or(0)
    };
    let better = count(r#"kind="replicas",effect="better",decided_by="default""#);
    assert!(better >= avoided, "{better} of {avoided}: {metrics}");
    assert!(metrics.contains(r#"leeward_modes{kind="replicas",mode="shadow"} 1"#), "{metrics}");

    set(&server, &json!({ "all": "off" }));
    let off = place(&server, &json!({}));
    assert_eq!(
        (&off["mode"], &off["policy"], &off["beside"]),
        (&json!("off"), &json!("uniform"), &Value::Null)
    );
    assert_eq!(server.get("/v1/status").2["modes"]["moves"], "off");

    // A canary of half the clients always decides for the same clients.
    set(&server, &json!({ "all": "canary:50%:client", "tasks": "on" }));
    let decider = |client: &str, sequence: u64| {
        place(&server, &json!({ "client": client, "sequence": sequence }))["by_default"]
            .as_bool()
            .expect("a flag")
    };
    let clients: Vec<String> = (0..40).map(|number| format!("client {number}")).collect();
    let first: Vec<bool> = clients.iter().map(|client| decider(client, 1)).collect();
    let second: Vec<bool> = clients.iter().map(|client| decider(client, 2)).collect();
    assert_eq!(first, second);
    assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), 2, "{first:?}");
    assert_eq!(place(&server, &json!({}))["by_default"], true, "a request without a client");
    assert_eq!(server.get("/v1/modes").2["set"]["moves"], "canary:50%:rack");
}

#[test]
fn tasks_and_guarantees_have_modes_too() {
    let server = server();
    set(&server, &json!({ "tasks": "shadow" }));
    let app = json!({ "app": { "tasks": [{ "name": "a", "egress": { "peak": "100Mbps" } }] } });
    let (status, _, decision) = server.post("/v1/place/tasks", &app);
    assert_eq!(
        (status, &decision["policy"], &decision["beside"]["policy"]),
        (201, &json!("random"), &json!("borg"))
    );
    assert!(decision["beside"]["load"]["utilization"].as_f64() > Some(0.0), "{decision}");

    let server =
        Server::start(crate::support::service(leeward_testing::clusters::VOLUMES, "", frozen_clock()));
    set(&server, &json!({ "workload": "shadow", "volumes": "off" }));
    let late = json!({ "workload": form("late", Some("r1h1"), 2, 50) });
    let (status, _, admitted) = server.post("/v1/workloads", &late);
    assert_eq!(
        (status, &admitted["policy"], &admitted["beside"]),
        (201, &json!("none"), &Value::Null),
        "{admitted}"
    );
    // Leeward's answer follows the decision, which does not wait for it.
    let path = format!("/v1/decisions/{}", admitted["id"].as_str().expect("an id"));
    let admitted = (0..200).map(|_| server.get(&path).2).find(|decision| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        !decision["beside"].is_null()
    });
    let admitted = admitted.expect("the comparison comes within seconds");
    assert_eq!(server.get("/v1/workloads").2["items"], json!([]), "nothing is guaranteed");
    let beside = &admitted["beside"];
    assert_eq!((&beside["policy"], &beside["hosts"]), (&json!("dnc"), &json!([])), "{admitted}");
    assert!(beside["refused"].is_string());
    // A guarantee stays as it is when the default policy admits others.
    set(&server, &json!({ "workload": "on" }));
    let kept = json!({ "workload": form("kept", Some("r1h1"), 50, 10) });
    assert_eq!(server.post("/v1/workloads", &kept).0, 201);
    let before = server.get("/v1/workloads/kept").2;
    assert!(before["bound_s"].is_number(), "{before}");
    set(&server, &json!({ "workload": "off" }));
    let other = json!({ "workload": form("other", Some("r1h1"), 5, 50) });
    assert_eq!(server.post("/v1/workloads", &other).0, 201);
    assert_eq!(server.get("/v1/workloads/kept").2, before);
    assert_eq!(server.post("/v1/workloads", &other).0, 409, "the name is taken");
    let (status, _, volume) =
        server.post("/v1/place/volumes", &json!({ "workload": form("index", None, 60, 10) }));
    assert_eq!(
        (status, &volume["policy"], &volume["beside"]),
        (201, &json!("average"), &Value::Null),
        "{volume}"
    );
}

#[test]
fn invalid_changes_of_modes_name_the_field_and_change_nothing() {
    let server = server();
    for (body, field) in [
        (json!({}), "all"),
        (json!({ "all": "of" }), "all"),
        (json!({ "tasks": "canary:10%:rack" }), "tasks"),
        (json!({ "moves": "canary:10%" }), "moves"),
        (json!({ "replicas": "off", "reason": "x".repeat(201) }), "reason"),
        (json!({ "blocks": "off" }), "blocks"),
    ] {
        let (status, problem) = server.patch("/v1/modes", &body, "");
        assert_eq!((status, &problem["field"]), (422, &json!(field)), "{problem}");
    }
    let (status, would) = server.patch("/v1/modes?dry_run=true", &json!({ "all": "off" }), "");
    assert_eq!((status, &would["set"]["replicas"]), (200, &json!("off")));
    let modes = server.get("/v1/modes").2;
    assert_eq!((&modes["set"]["replicas"], &modes["by"]), (&json!("on"), &json!("settings")));
}

#[test]
fn a_dry_run_decides_as_the_request_itself_and_changes_nothing() {
    let server = server();
    let body = json!({ "size": "64MiB", "writer": "r0h0", "client": "c", "sequence": 1 });
    let path = "/v1/snapshot?links=pending_bps,reserved_bps,residual_bps";
    let before = server.get(path).2["links"].clone();
    assert!(before.is_object() || before.is_array(), "{before}");
    let (status, _, dry) = server.post("/v1/place/replicas?dry_run=true", &body);
    assert_eq!((status, &dry["dry_run"]), (200, &json!(true)), "{dry}");
    assert_eq!(server.get(path).2["links"], before);
    assert_eq!(server.get("/v1/decisions").2["items"], json!([]));
    let (status, _, made) = server.post("/v1/place/replicas", &body);
    assert_eq!((status, &made["id"], &made["hosts"]), (201, &dry["id"], &dry["hosts"]), "{made}");
    assert_eq!((&made["dry_run"], &made["why"]), (&Value::Null, &dry["why"]));

    let id = made["id"].as_str().expect("an id");
    let path = format!("/v1/commitments/{id}");
    let (status, _, kept) = server.delete(&format!("{path}?dry_run=true"));
    assert_eq!((status, &kept["released"], &kept["dry_run"]), (200, &Value::Null, &json!(true)));
    assert_eq!(server.get(&format!("/v1/decisions/{id}")).2["released"], Value::Null);

    let refused = json!({ "size": "64MiB", "writer": "r0h0", "exclude": ["r1", "r2", "r3"] });
    for path in ["/v1/place/replicas?dry_run=true", "/v1/place/replicas"] {
        let (status, _, problem) = server.post(path, &refused);
        assert_eq!((status, &problem["type"]), (409, &json!("urn:leeward:problem:refused")), "{problem}");
    }
    for (body, field) in [(json!({ "size": "64MiB", "writer": "x" }), "writer"), (json!({}), "size")] {
        let (status, _, problem) = server.post("/v1/place/replicas?dry_run=true", &body);
        assert_eq!(status, 422, "{problem}");
        assert!(
            problem["field"] == field || problem["detail"].as_str().is_some_and(|text| text.contains(field))
        );
    }

    let (_, _, cluster) = server.get("/v1/cluster");
    let mut larger = cluster.clone();
    larger["racks"] = json!(5);
    let (status, changed) = server.patch("/v1/cluster?dry_run=true", &json!({ "racks": 5 }), "\"1\"");
    assert_eq!((status, &changed), (200, &larger));
    let (status, problem) = server.patch("/v1/cluster?dry_run=true", &json!({ "racks": 5 }), "\"7\"");
    assert_eq!((status, &problem["type"]), (412, &json!("urn:leeward:problem:version")), "{problem}");
    assert_eq!(server.get("/v1/cluster").2, cluster);
    let (status, _, would) = server.post("/v1/place/replicas?dry_run=perhaps", &body);
    assert_eq!((status, &would["field"]), (422, &json!("dry_run")), "{would}");
}

#[test]
fn a_what_if_compares_both_choices_on_the_same_links() {
    let server = server();
    set(&server, &json!({ "all": "off" }));
    let decision = place(&server, &json!({}));
    let path = format!("/v1/decisions/{}/what-if", decision["id"].as_str().expect("an id"));
    let (status, _, would) = server.post(&path, &json!({ "policy": "sinbad:threshold=0B" }));
    assert_eq!(status, 200, "{would}");
    let beside = &would["beside"];
    assert_eq!((&beside["policy"], &beside["hosts"]), (&json!("uniform"), &decision["hosts"]), "{would}");
    let (_, _, same) = server.post(&path, &json!({ "policy": "uniform" }));
    assert_eq!(same["beside"]["load"], beside["load"], "the decision's own load does not count");
    if same["hosts"] == decision["hosts"] {
        assert_eq!(same["beside"]["load"], same["beside"]["decided"]);
    }
}
