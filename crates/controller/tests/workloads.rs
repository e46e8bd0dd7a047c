//! Workloads that are promised their SLOs: the desk with made-up times, and the service from outside.

mod support;

use std::sync::Arc;

use leeward_controller::{
    Caller, Change, Desk, Finding, Limits, Message, Part, Placement, Record, Refused, Replies, Reply, Report,
    Request, Study, Wish, WorkloadWish, Wrong,
};
use leeward_engine::Engine;
use leeward_fabric::{Cluster, Nanos};
use leeward_ledger::{Ledger, LedgerSettings};
use leeward_placement::Explain;
use serde_json::{Value, json};
use support::{Server, cluster, frozen, labels, policies, service};

const CLUSTER: &str = "\
name: volumes
racks: 2
hosts_per_rack: 3
nic: 1Gbps
oversubscription: 1
priorities: 8
devices: [{name: ssd, read: 500MB/s, write: 400MB/s}]
";
const SECOND: Nanos = Nanos::SECOND;

fn desk() -> Desk<u32> {
    let Cluster { fabric, capacities } = cluster(CLUSTER);
    let ledger = Ledger::new(fabric, &capacities, LedgerSettings::default()).expect("defaults are right");
    Desk::new(Engine::new(ledger, policies(""), 7, Explain::Top(8)), labels(), Limits::default())
}

/// A workload of so many milliseconds on the device of a host, of which it takes a share.
fn form(name: &str, server: Option<&str>, millis: u64, share: u64) -> Value {
    let link = json!([{ "rate": "4MB/s", "burst": "64kB" }]);
    let mut form = json!({
        "name": name, "client": "r0h0", "slo": { "percentile": 99, "latency": format!("{millis}ms") },
        "curves": {
            "network-in": link, "network-out": link,
            "storage": [{ "rate": format!("{share}%"), "burst": "4ms" }],
        },
        "unloaded": "100us",
    });
    if let Some(server) = server {
        form["server"] = server.into();
    }
    form
}

fn ask(form: &Value, key: Option<&str>) -> Message {
    let wish = WorkloadWish { workload: form.as_object().expect("an object").clone() };
    let wish = if form.get("server").is_some() { Wish::Workload(wish) } else { Wish::Volumes(wish) };
    let caller = key.map(|key| Caller::Key(Arc::from(key)));
    Message::Place(Placement { request: Request::Workload, wish, caller, lasts: None })
}

/// Tells the desk something, and what follows of what it wants to know.
fn tell(desk: &mut Desk<u32>, message: Message, asker: u32) -> Replies<u32> {
    let mut out = Replies::new();
    desk.handle(SECOND, message, asker, &mut out);
    look_into(desk, &mut out);
    out
}

fn look_into(desk: &mut Desk<u32>, out: &mut Replies<u32>) {
    loop {
        let found: Vec<Finding> = desk.studies().map(Study::find).collect();
        if found.is_empty() {
            return;
        }
        found.into_iter().for_each(|finding| desk.found(SECOND, finding, out));
    }
}

fn placed(mut out: Replies<u32>) -> Arc<Record> {
    match out.pop() {
        Some((_, Ok(Reply::Placed { record, .. }))) => record,
        other => panic!("not placed: {other:?}"),
    }
}

fn refused(mut out: Replies<u32>) -> Refused {
    match out.pop() {
        Some((_, Err(refused))) => refused,
        other => panic!("not refused: {other:?}"),
    }
}

/// What is reserved on a link.
fn reserved(desk: &mut Desk<u32>, link: &str) -> i64 {
    let link = desk.fabric().resource(link).expect("a link");
    desk.world().link(link).expect("a link").reserved.0
}

#[test]
fn a_promise_holds_its_rates_until_it_is_released() {
    let mut desk = desk();
    let record = placed(tell(&mut desk, ask(&form("a", Some("r1h1"), 50, 10), None), 0));
    assert_eq!(record.shown.hosts, ["r1h1"]);
    let promise = record.shown.promise.clone().expect("a promise");
    assert!(promise.bound_s.expect("a bound") <= 0.05, "{promise:?}");
    // 4 MB/s and the margin of 10 %.
    for link in ["r0h0:egress", "r0:uplink", "r1:downlink", "r1h1:ingress", "r1h1:egress", "r0h0:ingress"] {
        assert_eq!(reserved(&mut desk, link), 35_200_000, "{link}");
    }
    assert_eq!(reserved(&mut desk, "r0h1:egress"), 0);
    assert!(matches!(tell(&mut desk, Message::Release(record.id), 0).pop(), Some((_, Ok(_)))));
    assert_eq!(reserved(&mut desk, "r0h0:egress"), 0);
    let found = tell(&mut desk, Message::Workload("a".to_owned()), 0).pop().expect("a reply").1;
    let Ok(Reply::Workloads(found)) = found else { panic!("{found:?}") };
    assert!(found[0].0.released.is_some(), "it is known still");
    assert_eq!(
        refused(tell(&mut desk, Message::Workload("b".to_owned()), 0)),
        Refused::NoWorkload("b".to_owned())
    );
}

#[test]
fn one_that_is_in_a_greater_hurry_goes_first_and_the_others_are_told() {
    let mut desk = desk();
    let slow = placed(tell(&mut desk, ask(&form("slow", Some("r1h1"), 200, 10), None), 0));
    assert_eq!(slow.shown.promise.as_ref().map(|promise| promise.stages[0].priority), Some(0));
    assert_eq!(desk.changes().count(), 1);
    let fast = placed(tell(&mut desk, ask(&form("fast", Some("r1h1"), 40, 10), None), 0));
    assert_eq!(fast.shown.promise.as_ref().map(|promise| promise.stages[0].priority), Some(0));
    let changes: Vec<Change> = desk.changes().collect();
    let [Change::Moved(slow, held), Change::Decided(..)] = changes.as_slice() else { panic!("{changes:?}") };
    assert_eq!(slow.shown.promise.as_ref().map(|promise| promise.stages[0].priority), Some(1));
    assert_eq!(held.len(), 3, "an entry a stage");
    assert_eq!(reserved(&mut desk, "r0h0:egress"), 2 * 35_200_000);
}

#[test]
fn a_name_is_promised_once_and_a_request_that_comes_again_is_the_same() {
    let mut desk = desk();
    let (a, b) = (form("a", Some("r1h1"), 100, 5), form("b", Some("r1h1"), 100, 5));
    let mut out = Replies::new();
    // Both ask before anything is found.
    for (asker, message) in [(1, ask(&a, Some("k"))), (2, ask(&a, Some("k"))), (3, ask(&a, None))] {
        desk.handle(SECOND, message, asker, &mut out);
    }
    assert_eq!(out, [], "it takes longer than a turn");
    look_into(&mut desk, &mut out);
    let told: Vec<(u32, bool)> = out
        .iter()
        .filter_map(|(asker, reply)| match reply {
            Ok(Reply::Placed { repeated, .. }) => Some((*asker, *repeated)),
            _ => None,
        })
        .collect();
    assert_eq!(told, [(1, false), (2, true)]);
    assert_eq!(refused(out), Refused::Taken("a".to_owned(), 0));
    let again = placed(tell(&mut desk, ask(&b, Some("k")), 0));
    assert_eq!(again.id, 0, "whatever else it says");
    tell(&mut desk, Message::Release(0), 0);
    assert_eq!(placed(tell(&mut desk, ask(&a, None), 0)).released, None);
}

#[test]
fn what_ends_while_another_is_looked_into_is_a_conflict_and_it_is_looked_into_anew() {
    let mut desk = desk();
    let first = placed(tell(&mut desk, ask(&form("first", Some("r1h1"), 200, 10), None), 0));
    let mut out = Replies::new();
    desk.handle(SECOND, ask(&form("second", Some("r1h1"), 40, 10), None), 1, &mut out);
    let study = desk.studies().next().expect("it is looked into");
    desk.handle(SECOND, Message::Release(first.id), 2, &mut out);
    out.clear();
    desk.found(SECOND, study.find(), &mut out);
    assert_eq!(out, [], "what it rests on has changed");
    let study = desk.studies().next().expect("it is looked into anew");
    desk.found(SECOND, study.find(), &mut out);
    assert_eq!(placed(out).shown.hosts, ["r1h1"]);
    assert_eq!(reserved(&mut desk, "r0h0:egress"), 35_200_000, "the first is not back");
}

#[test]
fn what_would_take_anothers_slo_is_refused_and_changes_nothing() {
    let mut desk = desk();
    let mut number = 0;
    let refused = loop {
        let name = format!("w{number}");
        let out = tell(&mut desk, ask(&form(&name, Some("r1h1"), 30, 5), None), 0);
        let ended = matches!(out.last(), Some((_, Err(_))));
        if ended {
            break refused(out);
        }
        number += 1;
        assert!(number < 30, "there is room for ever");
    };
    let Refused::Promise(why) = refused else { panic!("{refused:?}") };
    assert!(number > 2 && why.contains("SLO"), "{number}: {why}");
    desk.changes().for_each(drop);
    let before = desk.world().links;
    tell(&mut desk, ask(&form("one-more", Some("r1h1"), 30, 5), None), 0);
    assert_eq!(desk.changes().count(), 0);
    assert_eq!(desk.world().links, before);
    // Elsewhere there is room, and packing finds it.
    let packed = placed(tell(&mut desk, ask(&form("packed", None, 30, 5), None), 0));
    assert_ne!(packed.shown.hosts, ["r1h1"]);
    let what_if = |desk: &mut Desk<u32>, policy: &str| {
        let mut out = tell(desk, Message::WhatIf(packed.id, policy.to_owned()), 0);
        out.pop().expect("a reply").1
    };
    let Ok(Reply::WouldBe(would, None)) = what_if(&mut desk, "compactor") else { panic!("a placement") };
    assert_eq!(would.shown.hosts, packed.shown.hosts, "its own load is not in its way");
    assert!(matches!(what_if(&mut desk, "compact"), Err(Refused::Wrong(Some(_), _))));
    assert!(matches!(what_if(&mut desk, "sinbad"), Err(Refused::Wrong(Some(_), _))));
    assert_eq!(desk.world().links.len(), before.len());
}

#[test]
fn what_is_seen_of_a_workload_is_what_was_true_last() {
    let mut desk = desk();
    let report = |from: u64, name: &str, seconds: f64| {
        let window = (Nanos(from), Nanos(from + 1));
        Message::Report(Report { window, workloads: vec![(name.to_owned(), seconds)], ..Report::default() })
    };
    assert_eq!(
        refused(tell(&mut desk, report(1, "a", 0.1), 0)),
        Refused::Report(Part::Workload(0), Wrong::Unknown)
    );
    placed(tell(&mut desk, ask(&form("a", Some("r1h1"), 100, 5), None), 0));
    let seen = |desk: &mut Desk<u32>| {
        let reply = tell(desk, Message::Workloads { before: None, limit: 9 }, 0).pop().expect("a reply").1;
        let Ok(Reply::Workloads(found)) = reply else { panic!("{reply:?}") };
        found[0].1
    };
    assert_eq!(seen(&mut desk), None);
    for (from, seconds, known) in [(5, 0.02, 0.02), (3, 0.03, 0.02), (6, 0.01, 0.01)] {
        tell(&mut desk, report(from, "a", seconds), 0);
        assert_eq!(seen(&mut desk), Some(known));
    }
}

#[test]
fn a_conversation_about_workloads() {
    let server = Server::start(service(CLUSTER, "", frozen()));
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
    // What is refused or wrong, and what would be.
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
    // It ends.
    let path = format!("/v1/commitments/{}", made["id"].as_str().expect("an id"));
    assert_eq!(server.delete(&path).0, 200);
    assert_eq!(server.get("/v1/workloads").2["items"].as_array().map(Vec::len), Some(1));
    assert!(server.get("/v1/workloads/mail").2["released"].is_string());
    assert_eq!(server.get("/v1/workloads/nobody").0, 404);
    assert!(server.end().is_ok());
}

#[test]
fn hosts_are_scored_and_other_policies_asked_and_nothing_is_committed() {
    let server = Server::start(service(CLUSTER, "", frozen()));
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
    let ask = json!({ "hosts": ["r0h0", "r1h2"], "egress_bps": 300_000_000 });
    let (status, _, scores) = server.post("/v1/score/hosts", &ask);
    assert_eq!((status, scores["scores"].as_array().map(Vec::len)), (200, Some(2)), "{scores}");
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
