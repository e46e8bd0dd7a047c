//! Modes of a real service: settings file, reload, off file, restart.

#![allow(clippy::disallowed_methods, reason = "a test measures time")]

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use leeward_testing::postgres;

use crate::support::leewardd::{Process, command};

fn modes(service: &Process) -> Value {
    service.get("/v1/modes").expect("the service answers").1
}

fn decider(service: &Process) -> String {
    let (status, decision) =
        service.send("/v1/place/replicas", &json!({ "size": "1GiB" })).expect("an answer");
    assert_eq!(status, 201, "{decision}");
    decision["policy"].as_str().expect("a policy").to_owned()
}

/// Reports a load of 300 Mb/s for the link until now.
fn report(service: &Process) {
    let (_, status) = service.get("/v1/status").expect("an answer");
    let until: jiff::Timestamp = status["time"].as_str().expect("a time").parse().expect("a time");
    let from = until - jiff::SignedDuration::from_secs(1);
    let links = json!([{ "link": "r1:uplink", "load_bps": 300_000_000 }]);
    let body = json!({ "from": from.to_string(), "until": until.to_string(), "links": links });
    assert_eq!(service.send("/v1/reports", &body).expect("an answer").0, 200);
}

#[test]
fn a_reload_and_the_off_file_change_who_decides_without_a_loss_of_telemetry() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("leeward.yaml");
    let write = |text: &str| {
        std::fs::write(&config, format!("interval: 60s\noff_file: off\n{text}")).expect("a file")
    };
    write("modes: {replicas: shadow}\n");
    let start = || {
        let mut command = command(folder.path(), "decisions.db");
        command.args(["--config", "leeward.yaml"]);
        Process::run(command)
    };
    let mut service = start();
    report(&service);
    let measured = || service.get("/v1/links/r1:uplink").expect("an answer").1["measured_bps"].clone();
    assert_eq!(measured(), 300_000_000);
    assert_eq!(decider(&service), "uniform");

    write("modes: {replicas: on}\npolicies: {defaults: {replicas: rehdfs}}\nledger: {hot: 0.2}\n");
    let (status, would) = service.post("/v1/reload?dry_run=true").expect("an answer");
    assert_eq!((status, &would["changed"]), (200, &json!(["policies", "modes", "ledger"])), "{would}");
    assert_eq!(decider(&service), "uniform", "a dry run applies nothing");
    let (status, reloaded) = service.post("/v1/reload").expect("an answer");
    assert_eq!((status, &reloaded), (200, &would));
    assert!(decider(&service).starts_with("sinbad"));
    assert_eq!(measured(), 300_000_000, "telemetry stays");
    let small = service.place("a client", 1).expect("an answer").1;
    assert!(small["note"].as_str().is_some_and(|note| note.contains("threshold")), "{small}");
    service
        .until("the log says so", |service| service.log().contains("leaves decisions to the default policy"));
    assert_eq!(service.get("/v1/status").expect("an answer").1["hot_above"], 0.2);

    // An invalid file changes nothing.
    write("modes: {replicas: canary:0%}\n");
    let (status, problem) = service.post("/v1/reload").expect("an answer");
    assert_eq!((status, &problem["field"]), (422, &json!("modes.replicas")), "{problem}");
    assert!(decider(&service).starts_with("sinbad"));

    // The off file, and its end.
    let began = Instant::now();
    std::fs::write(folder.path().join("off"), "").expect("a file");
    service.until("off", |service| modes(service)["in_force"]["replicas"] == "off");
    assert_eq!(decider(&service), "rehdfs");
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(modes(&service)["set"]["replicas"], "on");
    std::fs::remove_file(folder.path().join("off")).expect("the file exists");
    service.until("on", |service| modes(service)["in_force"]["replicas"] == "on");
    assert_eq!(measured(), 300_000_000);

    // Modes that a client set stay over a restart, until the modes of the file change.
    write("modes: {replicas: on}\n");
    let (status, _) =
        service.patch("/v1/modes", &json!({ "all": "off", "reason": "incident" })).expect("an answer");
    assert_eq!(status, 200);
    service.kill();
    let mut service = start();
    let after = modes(&service);
    assert_eq!((&after["set"]["tasks"], &after["reason"]), (&json!("off"), &json!("incident")), "{after}");
    service.kill();
    write("modes: {replicas: shadow}\n");
    let service = start();
    let after = modes(&service);
    assert_eq!((&after["set"]["replicas"], &after["by"]), (&json!("shadow"), &json!("settings")), "{after}");
    service.until("the log names the change", |service| service.log().contains("mode changed"));
}

#[test]
fn a_follower_has_the_modes_of_the_leader_whatever_its_file_says() {
    let Some(server) = postgres::Server::shared() else { return };
    let (folder, url) = (tempfile::tempdir().expect("a folder"), server.url(&server.database()));
    let start = |modes: &str| {
        let config = folder.path().join(format!("{modes}.yaml"));
        std::fs::write(&config, format!("modes: {{replicas: {modes}}}\n")).expect("a file");
        let mut command = command(folder.path(), &url);
        command.arg("--config").arg(config);
        Process::run(command)
    };
    let mut first = start("on");
    first.until("the first leads", Process::is_ready);
    let (status, _) = first.patch("/v1/modes", &json!({ "all": "off" })).expect("an answer");
    assert_eq!(status, 200);
    let second = start("shadow");
    second.until("the second follows", |second| second.status("leader") == json!(first.url));
    let mode = |service: &Process| modes(service)["in_force"]["replicas"].clone();
    second.until("its modes are those of the leader", |second| mode(second) == "off");
    let (status, _) = first.patch("/v1/modes", &json!({ "replicas": "canary:10%" })).expect("an answer");
    assert_eq!(status, 200);
    second.until("it follows a change", |second| mode(second) == "canary:10%");
    let (_, decision) = first.place("client", 1).expect("an answer");
    let path = format!("/v1/decisions/{}", decision["id"].as_str().expect("an id"));
    second.until("it follows decisions", |second| second.get(&path) == Some((200, decision.clone())));
    // The next leader compares with its own file.
    first.kill();
    second.until("the second leads", Process::is_ready);
    assert_eq!(mode(&second), "shadow");
}
