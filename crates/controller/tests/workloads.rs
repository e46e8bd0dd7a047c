//! Workloads with SLO guarantees: the coordinator with artificial times, and the service from outside.

mod support;

use std::sync::Arc;

use leeward_controller::{
    Caller, Change, Desk, Finding, HostReport, Labels, Limits, Message, NewCluster, Placement, Record,
    Refused, Replies, Reply, Report, Request, Score, Service, Skipped, Sqlite, Study, Wish, WorkloadWish,
};
use leeward_engine::{Engine, Policies};
use leeward_fabric::{Cluster, HostId, Load, Nanos, ResourceKind};
use leeward_ledger::{Ledger, LedgerSettings};
use leeward_placement::tasks::{self, AppRequest, Task, Traffic};
use leeward_placement::{Explain, Peer};
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
    let policies = Policies { tasks: tasks::REGISTRY.make("utp", "").ok(), ..policies("") };
    Desk::new(Engine::new(ledger, policies, 7, Explain::Top(8)), labels(), Limits::default())
}

/// A workload with an SLO of `millis` milliseconds that takes `share` percent of a host's device.
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

/// Sends a message and runs the resulting jobs.
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

/// Reserved rate of a link.
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
    // All requests arrive before the first result.
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
    // Another host has room, and packing finds it.
    let packed = placed(tell(&mut desk, ask(&form("packed", None, 30, 5), None), 0));
    assert_ne!(packed.shown.hosts, ["r1h1"]);
    let before = desk.world().links;
    let what_if = |desk: &mut Desk<u32>, policy: &str| {
        let mut out = tell(desk, Message::WhatIf(packed.id, policy.to_owned()), 0);
        out.pop().expect("a reply").1
    };
    let Ok(Reply::WouldBe(would, None)) = what_if(&mut desk, "compactor") else { panic!("a placement") };
    assert_eq!(would.shown.hosts, packed.shown.hosts, "its own load is not in its way");
    assert!(matches!(what_if(&mut desk, "compact"), Err(Refused::Wrong(Some(_), _))));
    assert!(matches!(what_if(&mut desk, "sinbad"), Err(Refused::Wrong(Some(_), _))));
    assert_eq!(
        (desk.world().links, desk.changes().count()),
        (before, 1),
        "only what was packed is to be kept"
    );
}

#[test]
fn a_server_that_goes_down_while_it_is_chosen_takes_no_volume() {
    let mut desk = desk();
    let mut out = Replies::new();
    desk.handle(SECOND, ask(&form("a", None, 50, 10), None), 1, &mut out);
    let finding = desk.studies().next().expect("it is looked into").find();
    // The first candidate is some host of this rack; all of the rack's hosts start draining.
    let drained = |host: u32| HostReport { host: HostId(host), up: None, draining: Some(true), stored: None };
    let report = Report {
        window: (Nanos(SECOND.0 - 1), SECOND),
        hosts: (0..3).map(drained).collect(),
        ..Report::default()
    };
    desk.handle(SECOND, Message::Report(report), 2, &mut out);
    out.clear();
    desk.found(SECOND, finding, &mut out);
    assert_eq!(out, [], "it is looked into anew");
    look_into(&mut desk, &mut out);
    let record = placed(out);
    assert!(record.shown.hosts[0].starts_with("r1"), "{:?}", record.shown.hosts);
}

#[test]
fn a_request_of_which_the_ground_changes_eight_times_is_told_to_come_again() {
    let mut desk = desk();
    let name = |number: u64| format!("w{number}");
    for number in 0..8 {
        placed(tell(&mut desk, ask(&form(&name(number), Some("r1h1"), 400, 2), None), 0));
    }
    let mut out = Replies::new();
    desk.handle(SECOND, ask(&form("last", Some("r1h1"), 400, 2), Some("key")), 1, &mut out);
    for number in 0..8 {
        assert_eq!(out, [], "{number}");
        let finding = desk.studies().next().expect("it is looked into").find();
        desk.handle(SECOND, Message::Release(number), 2, &mut out);
        out.clear();
        desk.found(SECOND, finding, &mut out);
    }
    assert_eq!(out, [(1, Err(Refused::Busy))]);
    assert!(desk.studies().next().is_none());
    // The request may be repeated, and other requests succeed.
    assert_eq!(placed(tell(&mut desk, ask(&form("other", Some("r1h1"), 400, 2), None), 0)).id, 9);
    assert_eq!(placed(tell(&mut desk, ask(&form("last", Some("r1h1"), 400, 2), Some("key")), 0)).id, 10);
}

#[test]
fn nothing_is_looked_into_for_who_has_left_and_nothing_promised_that_nobody_would_know_of() {
    use std::sync::atomic::{AtomicU32, Ordering};
    // Callers below this number have disconnected.
    static LEFT: AtomicU32 = AtomicU32::new(0);
    let mut desk = desk().with_listening(|asker| *asker >= LEFT.load(Ordering::Relaxed));
    let mut out = Replies::new();
    for (asker, name) in [(1, "a"), (2, "b"), (3, "c"), (9, "d")] {
        let key = (name == "c").then_some("key");
        desk.handle(SECOND, ask(&form(name, Some("r1h1"), 100, 2), key), asker, &mut out);
    }
    let study = desk.studies().next().expect("the first is looked into");
    LEFT.store(4, Ordering::Relaxed);
    desk.found(SECOND, study.find(), &mut out);
    look_into(&mut desk, &mut out);
    let names = |desk: &mut Desk<u32>| -> Vec<String> {
        let reply = tell(desk, Message::Workloads { before: None, limit: 9 }, 9).pop().expect("a reply").1;
        let Ok(Reply::Workloads(found)) = reply else { panic!("{reply:?}") };
        found.iter().filter_map(|(record, _)| Some(record.shown.wish.workload()?.name().to_owned())).collect()
    };
    assert_eq!(names(&mut desk), ["d"], "all others have left");
    // A client that retries with its key gets a new attempt.
    assert!(
        placed(tell(&mut desk, ask(&form("c", Some("r1h1"), 100, 2), Some("key")), 9)).released.is_none()
    );
    assert_eq!(names(&mut desk), ["c", "d"]);
}

#[test]
fn many_scores_are_found_off_the_desk_and_are_those_of_few() {
    let mut desk = desk();
    let links =
        desk.fabric().all_resources().filter(|&link| desk.fabric().kind(link) != ResourceKind::Device);
    let loads = links.map(|link| (link, Load(100_000_000 + 10_000_000 * i64::from(link.0)))).collect();
    let seen = Report { window: (Nanos(1), SECOND), loads, ..Report::default() };
    assert!(matches!(tell(&mut desk, Message::Report(seen), 0).pop(), Some((_, Ok(_)))));
    let rate = |bps: u64| Task {
        egress: [Traffic::steady(bps); 3],
        ingress: [Traffic::steady(bps / 2); 3],
        ..Task::default()
    };
    let peers: Vec<Peer> =
        (0..100).map(|at| Peer { host: HostId(at % 6), egress_bps: 100_000, ingress_bps: 10_000 }).collect();
    let score = |hosts: &[HostId]| {
        let request = AppRequest { tasks: vec![rate(20_000_000)], ..AppRequest::default() };
        Message::Score(Score { request, job: None, peers: peers.clone(), hosts: hosts.to_vec() })
    };
    let hosts: Vec<HostId> = (0..600).map(|at| HostId(at % 6)).collect();
    let mut out = Replies::new();
    desk.handle(SECOND, score(&hosts), 1, &mut out);
    assert_eq!(out, [], "it takes longer than a turn");
    look_into(&mut desk, &mut out);
    let scores = |mut out: Replies<u32>| match out.pop() {
        Some((_, Ok(Reply::Scores { ratings, epoch, age, .. }))) => (ratings.0, epoch, age),
        other => panic!("{other:?}"),
    };
    let (ratings, epoch, age) = scores(out);
    assert_eq!(ratings.len(), hosts.len());
    assert!(ratings.iter().any(|(rating, _)| rating.loaded != ratings[0].0.loaded), "all hosts are alike");
    for (hosts, found) in hosts.chunks(60).zip(ratings.chunks(60)) {
        let few = scores(tell(&mut desk, score(hosts), 2));
        assert_eq!(few, (found.to_vec(), epoch, age));
    }
    // The number of open jobs is limited, and waiting jobs get only one rejection.
    let mut out = Replies::new();
    (0..6).for_each(|asker| desk.handle(SECOND, score(&hosts), asker, &mut out));
    let busy: Vec<u32> = out.iter().map(|(asker, _)| *asker).collect();
    assert_eq!((busy, &out[0].1), (vec![4, 5], &Err(Refused::Busy)));
    out.clear();
    desk.turn_away(&mut out);
    assert_eq!(out.iter().map(|(asker, _)| *asker).collect::<Vec<_>>(), [0, 1, 2, 3]);
    out.clear();
    look_into(&mut desk, &mut out);
    assert_eq!(out, []);
}

#[test]
fn what_is_seen_of_a_workload_is_what_was_true_last() {
    let mut desk = desk();
    let report = |from: u64, name: &str, seconds: f64| {
        let window = (Nanos(from), Nanos(from + 1));
        Message::Report(Report { window, workloads: vec![(name.to_owned(), seconds)], ..Report::default() })
    };
    let skipped = |desk: &mut Desk<u32>, report| match tell(desk, report, 0).pop() {
        Some((_, Ok(Reply::Reported { skipped, .. }))) => skipped,
        other => panic!("{other:?}"),
    };
    let unknown = Skipped { unknown: 1, ..Skipped::default() };
    assert_eq!(skipped(&mut desk, report(1, "a", 0.1)), unknown);
    let record = placed(tell(&mut desk, ask(&form("a", Some("r1h1"), 100, 5), None), 0));
    let seen = |desk: &mut Desk<u32>| {
        let reply = tell(desk, Message::Workloads { before: None, limit: 9 }, 0).pop().expect("a reply").1;
        let Ok(Reply::Workloads(found)) = reply else { panic!("{reply:?}") };
        found[0].1
    };
    assert_eq!(seen(&mut desk), None);
    for (from, seconds, known) in [(5, 0.02, 0.02), (3, 0.03, 0.02), (6, 0.01, 0.01)] {
        let stale = u64::from(seconds != known);
        assert_eq!(skipped(&mut desk, report(from, "a", seconds)), Skipped { stale, ..Skipped::default() });
        assert_eq!(seen(&mut desk), Some(known));
    }
    // A late report may name a workload that has ended; the rest of the report counts.
    tell(&mut desk, Message::Release(record.id), 0);
    let Message::Report(late) = report(8, "a", 0.1) else { panic!("it is a report") };
    let drains = HostReport { host: HostId(3), up: None, draining: Some(true), stored: None };
    assert_eq!(skipped(&mut desk, Message::Report(Report { hosts: vec![drains], ..late })), unknown);
    assert!(desk.world().hosts[3].draining);
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
fn a_score_is_what_the_fullest_link_would_have_left() {
    let tasks = || Policies { tasks: tasks::REGISTRY.make("utp", "").ok(), ..policies("") };
    let cluster = NewCluster::read("test", CLUSTER).expect("the test writes a right cluster");
    let (labels, settings) = (Labels { tasks: "utp".into(), ..labels() }, LedgerSettings::default());
    let store = Box::new(Sqlite::in_memory().expect("there is memory"));
    let mut service = Service::new(cluster, tasks, labels, settings, 1, store).expect("defaults are right");
    service.clock = frozen();
    let server = Server::start(service);
    let links = ["r0:uplink", "r0:downlink", "r1:uplink", "r1:downlink"].map(|link| (link.to_owned(), 3e8));
    server.report(&links[..2]);
    let ask = json!({ "hosts": ["r0h0", "r1h2"], "egress_bps": 300_000_000 });
    // A rack of three hosts sends 3 Gb/s: a tenth of that is measured, and the task adds a tenth.
    let (_, _, scores) = server.post("/v1/score/hosts", &ask);
    let seen = json!({
        "host": "r0h0", "score": 80, "value_bps": 2_400_000_000_u64, "limit": "r0:uplink", "refused": null
    });
    assert_eq!(scores["scores"][0], seen, "{scores}");
    assert_eq!(
        (&scores["scores"][1]["score"], &scores["telemetry_age_s"]),
        (&json!(0), &json!(0.0)),
        "{scores}"
    );
    assert!(scores["scores"][1]["refused"].is_string(), "nobody reports of the other rack: {scores}");
    // A draining host reports so, and the others are rated nonetheless.
    server.report(&links[2..]);
    let emptied = json!({
        "from": "2026-01-31T12:00:09Z", "until": "2026-01-31T12:00:10Z",
        "hosts": [{ "host": "r1h2", "draining": true }],
    });
    assert_eq!(server.post("/v1/reports", &emptied).0, 200);
    let (_, _, scores) = server.post("/v1/score/hosts", &ask);
    assert_eq!(scores["scores"][0], seen, "{scores}");
    assert_eq!(scores["scores"][1]["refused"], json!("the host is draining"), "{scores}");
    // The maximal request runs as a job, with the same results.
    let peer = json!({ "host": "r0h1", "egress_bps": 0 });
    let many = json!({ "hosts": vec!["r0h0"; 10_000], "egress_bps": 300_000_000, "peers": vec![peer; 100] });
    let (status, _, scores) = server.post("/v1/score/hosts", &many);
    let scores = scores["scores"].as_array().expect("a list");
    assert!(status == 200 && scores.len() == 10_000 && scores.iter().all(|score| *score == seen));
    assert!(server.end().is_ok());
}
