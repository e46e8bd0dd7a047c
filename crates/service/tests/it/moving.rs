//! Moves of tasks over a restart: open moves, and tasks whose constraints are no longer known.

use leeward_engine::{Engine, HistorySettings, Policies, Rates};
use leeward_fabric::input::Files;
use leeward_fabric::{Cluster, HostId, Load, Nanos, ResourceId};
use leeward_moves::{self as moves, HotLoad, HotTest, Stays};
use leeward_placement::tasks::{self, App, TaskId};
use leeward_placement::{Explain, LabelValues};
use leeward_records::{Change, DecisionId, MigrationState, PlacementSpec, TasksSpec};
use leeward_service::{Commitment, Coordinator, Limits, MigrationQuery, Placement, Report, TaskState};
use leeward_store::{Sqlite, Store};
use leeward_testing::clusters::{cluster, ledger};

use crate::support::{Numbers, decision_of, labels, place_replies, samples};

const SECOND: u64 = Nanos::SECOND.0;
const MBPS: u64 = 1_000_000;

fn at(seconds: u64) -> Nanos {
    Nanos(seconds * SECOND)
}

/// A coordinator with the rules of the service for moves, which have three seconds each.
fn coordinator(cluster: &Cluster) -> Coordinator<Numbers> {
    let policies = Policies {
        tasks: tasks::REGISTRY.make("borg", "").ok(),
        moves: moves::REGISTRY.make("utp", "").ok(),
        cooldown: at(10),
        history: Some(HistorySettings { window: at(3_600), percentile: 0.98 }),
        hot_test: HotTest { load: HotLoad::Window, windows: 1 },
        ..Policies::default()
    };
    let engine = Engine::new(ledger(cluster), policies, 7, Explain::Top(4));
    Coordinator::new(engine, labels(), Limits { move_timeout: at(3), ..Limits::default() })
}

/// A tolerant task that states 100 Mb/s.
fn spec() -> TasksSpec {
    let text = r#"{"tasks": [{"name": "t", "cpus": 1, "tolerant": true, "egress": {"mean": "100Mbps"}}]}"#;
    let app = App::from_text("app", text, &Files::default()).expect("a valid app");
    TasksSpec::of(&app, None, Vec::new())
}

/// Commits a task on a host that the caller chose.
fn commit(coordinator: &mut Coordinator<Numbers>, now: Nanos, spec: TasksSpec, host: &str) -> DecisionId {
    let spec = PlacementSpec::Tasks(spec);
    let placement = Placement { spec, caller: None, lasts: None, reference: None, digest: None };
    let commitment = Commitment { placement, hosts: vec![host.to_owned()], chosen: None };
    coordinator.commit_given(now, commitment, 0);
    decision_of(place_replies(coordinator).pop().expect("a reply").1).0.id
}

/// Reports rates of tasks in Mb/s, all of which leave the first rack.
fn report(coordinator: &mut Coordinator<Numbers>, now: Nanos, sent: &[(DecisionId, u64)]) {
    let (fabric, window) = (coordinator.fabric().clone(), (Nanos(now.0 - SECOND), now));
    let uplink = fabric.resource("r0:uplink").expect("a link");
    let sum: u64 = sent.iter().map(|(_, mbps)| mbps * MBPS).sum();
    let load = |link| (link, Load(if link == uplink { sum as i64 } else { 0 }));
    let rates = |&(id, mbps): &(DecisionId, u64)| {
        let rates = Rates { egress_bps: mbps * MBPS, ingress_bps: 0 };
        (TaskId { app: id.0, index: 0 }, rates)
    };
    let links = (0..fabric.link_count() as u32).map(ResourceId);
    let loads = samples(window, links.map(load));
    let tasks = sent.iter().map(rates).collect();
    coordinator.report(now, Report { window, loads, tasks, ..Report::default() }).expect("a valid report");
}

/// Decisions whose tasks were moved, the latest first, with the states of the moves.
fn moved(coordinator: &mut Coordinator<Numbers>, now: Nanos) -> Vec<(DecisionId, MigrationState)> {
    let query = MigrationQuery { state: None, before: None, limit: 9 };
    coordinator.migrations(now, query).iter().map(|one| (one.decision, one.state)).collect()
}

/// State of the task of a decision.
fn task(coordinator: &mut Coordinator<Numbers>, now: Nanos, id: DecisionId) -> TaskState {
    let fabric = coordinator.fabric().clone();
    let tasks = fabric.all_racks().flat_map(|rack| coordinator.rack(now, rack).tasks).collect::<Vec<_>>();
    tasks.into_iter().find(|task| task.decision == id).expect("a running task")
}

/// Another coordinator that continues with the stored state and the telemetry.
fn restart(
    before: &mut Coordinator<Numbers>,
    cluster: &Cluster,
    store: &mut dyn Store,
    now: Nanos,
) -> Coordinator<Numbers> {
    let changes: Vec<Change> = before.changes().collect();
    store.apply(&changes).expect("the store accepts the changes");
    let mut after = coordinator(cluster);
    let state = store.load(100, 100).expect("the store is readable");
    after.resume(state, now).expect("the state fits the cluster");
    after.wake(now);
    after.set_telemetry_state(before.telemetry_state());
    after
}

#[test]
fn after_a_restart_an_open_move_counts_and_no_second_task_leaves() {
    let cluster = cluster("{racks: 4, hosts_per_rack: 4, nic: 1Gbps, rack_link: 1Gbps, cpus: 16}");
    let mut store = Sqlite::in_memory().expect("an in-memory store opens");
    let mut before = coordinator(&cluster);
    report(&mut before, at(1), &[]);
    let tasks: Vec<DecisionId> =
        ["r0h0", "r0h1", "r0h2"].map(|host| commit(&mut before, at(1), spec(), host)).to_vec();
    let sent: Vec<(DecisionId, u64)> = tasks.iter().copied().zip([400, 300, 250]).collect();
    report(&mut before, at(3), &sent);
    assert_eq!(moved(&mut before, at(3)), [(tasks[0], MigrationState::Advised)]);

    // The next windows still show all three tasks, and a further restart changes nothing.
    let mut after = restart(&mut before, &cluster, &mut store, at(3));
    assert_eq!(task(&mut after, at(3), tasks[0]).stays, Some(Stays::Moving));
    report(&mut after, at(4), &sent);
    let mut after = restart(&mut after, &cluster, &mut store, at(4));
    report(&mut after, at(5), &sent);
    assert_eq!(moved(&mut after, at(6)), [(tasks[0], MigrationState::Expired)]);
    // The task stayed, so the second one leaves. The first one was moved a short time ago.
    assert!(task(&mut after, at(6), tasks[0]).host.0 < 4);
    report(&mut after, at(7), &sent);
    let expected = [(tasks[1], MigrationState::Advised), (tasks[0], MigrationState::Expired)];
    assert_eq!(moved(&mut after, at(7)), expected);
    let mut after = restart(&mut after, &cluster, &mut store, at(7));
    assert_eq!(task(&mut after, at(7), tasks[0]).stays, Some(Stays::Cooling));
    assert_eq!(task(&mut after, at(13), tasks[0]).stays, None);
}

#[test]
fn a_task_with_a_constraint_that_is_no_longer_known_stays_and_is_still_tolerant() {
    let text = |labels: &str, racks: &str| {
        format!(
            "{{racks: [{{{labels}}}, {racks}], hosts_per_rack: 4, nic: 1Gbps, oversubscription: 1, cpus: 16}}"
        )
    };
    let racks = ["{}"; 12].join(", ");
    let with = cluster(&text("labels: {zone: a}, tags: [fast]", &racks));
    let without = cluster(&text("", &racks));
    let zone = |values: &[&str]| {
        let values = values.iter().map(|&value| value.to_owned()).collect();
        LabelValues::from([("zone".to_owned(), values)])
    };
    let hosts = |count: u32| -> Vec<String> {
        (8..8 + count).map(|host| with.fabric.host_name(HostId(host)).to_owned()).collect()
    };
    let specs = [
        (spec(), None),
        (TasksSpec { tags: vec!["fast".to_owned()], ..spec() }, Some(Stays::Forgotten)),
        (TasksSpec { labels: zone(&["a"]), ..spec() }, Some(Stays::Forgotten)),
        (TasksSpec { labels: zone(&["a", "b"]), ..spec() }, Some(Stays::Forgotten)),
        (TasksSpec { exclude: hosts(32), ..spec() }, None),
    ];
    let mut store = Sqlite::in_memory().expect("an in-memory store opens");
    let mut before = coordinator(&with);
    report(&mut before, at(1), &[]);
    let ids: Vec<DecisionId> =
        specs.iter().map(|(spec, _)| commit(&mut before, at(1), spec.clone(), "r0h0")).collect();
    // More names than are stored.
    let long = commit(&mut before, at(1), TasksSpec { exclude: hosts(33), ..spec() }, "r0h0");
    for &id in ids.iter().chain([&long]) {
        assert_eq!(task(&mut before, at(1), id).stays, None, "{id:?}");
    }
    let mut same = restart(&mut before, &with, &mut store, at(2));
    let mut after = restart(&mut before, &without, &mut store, at(2));
    for (&id, (_, expected)) in ids.iter().zip(&specs) {
        assert_eq!(task(&mut same, at(2), id).stays, None, "{id:?}");
        let task = task(&mut after, at(2), id);
        assert_eq!((task.stays, task.tolerant), (*expected, true), "{id:?}");
    }
    for coordinator in [&mut same, &mut after] {
        let task = task(coordinator, at(2), long);
        assert_eq!((task.stays, task.tolerant), (Some(Stays::Forgotten), true));
    }
}
