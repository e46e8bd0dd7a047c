//! Demand from history: the traffic that the tasks of a job had counts at its next placement, whatever it states.

use leeward_engine::{Engine, HistorySettings, Policies, Rates};
use leeward_fabric::input::Files;
use leeward_fabric::{Cluster, HostId, Load, Nanos, ResourceId};
use leeward_moves::{self as moves, HotLoad, HotTest};
use leeward_placement::Explain;
use leeward_placement::tasks::{self, App, TaskId};
use leeward_records::{DecisionId, PlacementSpec, TasksSpec};
use leeward_service::{Coordinator, Limits, MigrationQuery, NamePods, Placement, PodId, PodRates, Report};
use leeward_testing::clusters::{cluster, ledger};

use crate::support::{Numbers, decision_of, labels, place_now, samples};

const SECOND: u64 = Nanos::SECOND.0;
const HOUR: u64 = 3_600 * SECOND;
const GBPS: i64 = 1_000_000_000;
const CLUSTER: &str = "{racks: 2, hosts_per_rack: 4, nic: 10Gbps, rack_link: 40Gbps, cpus: 16}";

fn coordinator(cluster: &Cluster, tasks: &str, history: bool) -> Coordinator<Numbers> {
    let policies = Policies {
        tasks: tasks::REGISTRY.make(tasks, "").ok(),
        moves: moves::REGISTRY.make("utp", "").ok(),
        history: history.then_some(HistorySettings { window: Nanos(HOUR), percentile: 0.98 }),
        hot_test: HotTest { load: HotLoad::Window, windows: 1 },
        ..Policies::default()
    };
    let engine = Engine::new(ledger(cluster), policies, 7, Explain::Top(4));
    Coordinator::new(engine, labels(), Limits::default())
}

/// Reports all links as idle, and rates of tasks.
fn report(cluster: &Cluster, now: Nanos, tasks: Vec<(TaskId, Rates)>) -> Report {
    let window = (Nanos(now.0 - SECOND), now);
    let fabric = &cluster.fabric;
    let links = (0..fabric.link_count() as u32).map(|link| (ResourceId(link), Load(0)));
    Report { window, loads: samples(window, links), tasks, ..Report::default() }
}

/// Tasks that state 1 Gb/s each.
fn crawl(tasks: usize, transfers: bool) -> Placement {
    let tasks: Vec<String> = (0..tasks)
        .map(|task| {
            format!(r#"{{"name": "t{task}", "cpus": 1, "egress": {{"mean": "1Gbps", "peak": "1Gbps"}}}}"#)
        })
        .collect();
    let transfers =
        if transfers { r#", "transfers": [{"from": "t0", "to": "t1", "bytes": "1MB"}]"# } else { "" };
    let text = format!(r#"{{"tasks": [{}]{transfers}}}"#, tasks.join(", "));
    let app = App::from_text("app", &text, &Files::default()).expect("a valid app");
    let spec = PlacementSpec::Tasks(TasksSpec::of(&app, Some("crawl".to_owned()), Vec::new()));
    Placement { spec, caller: None, lasts: None, reference: None, digest: None }
}

/// Placed load on all links out of hosts that telemetry does not show yet, in bit/s.
fn pending(coordinator: &mut Coordinator<Numbers>, cluster: &Cluster) -> i64 {
    let egress: Vec<ResourceId> =
        cluster.fabric.all_hosts().filter_map(|host| cluster.fabric.egress(host)).collect();
    let links = coordinator.snapshot().links;
    links.iter().filter(|link| egress.contains(&link.link)).map(|link| link.pending.0).sum()
}

fn rate(task: TaskId) -> (TaskId, Rates) {
    (task, Rates { egress_bps: 6_000_000_000, ingress_bps: 0 })
}

#[test]
fn a_job_seen_at_6_gbps_is_placed_as_6_gbps_even_if_it_states_1() {
    let cluster = cluster(CLUSTER);
    for (history, expected) in [(false, 1), (true, 6)] {
        let mut coordinator = coordinator(&cluster, "utp-proactive", history);
        let at = |seconds: u64| Nanos(seconds * SECOND);
        coordinator.report(at(1), report(&cluster, at(1), Vec::new())).expect("a valid report");
        let first = decision_of(place_now(&mut coordinator, at(1), crawl(1, false))).0.id;
        assert_eq!(pending(&mut coordinator, &cluster) / GBPS, 1, "nothing was seen yet");
        let tasks = vec![rate(TaskId { app: first.0, index: 0 })];
        coordinator.report(at(2), report(&cluster, at(2), tasks)).expect("a valid report");
        // The job ends, and comes back after half an hour.
        coordinator.release(at(3), first).expect("a decision");
        let back = at(1_800);
        coordinator.report(back, report(&cluster, back, Vec::new())).expect("a valid report");
        let before = pending(&mut coordinator, &cluster);
        let second = decision_of(place_now(&mut coordinator, back, crawl(1, false))).0.id;
        let placed = (pending(&mut coordinator, &cluster) - before) as f64 / GBPS as f64;
        // A histogram's step is a sixteenth wide.
        let most = f64::from(expected) * 17.0 / 16.0;
        assert!((f64::from(expected)..=most).contains(&placed), "{placed} Gb/s with history {history}");
        // An hour after the observation it no longer counts.
        coordinator.release(back, second).expect("a decision");
        let late = at(2 * 3_600);
        coordinator.report(late, report(&cluster, late, Vec::new())).expect("a valid report");
        let before = pending(&mut coordinator, &cluster);
        place_now(&mut coordinator, late, crawl(1, false)).expect("enough room");
        let placed = (pending(&mut coordinator, &cluster) - before) as f64 / GBPS as f64;
        assert!((placed - 1.0).abs() < 0.01, "{placed}");
    }
}

#[test]
fn a_job_whose_pods_were_seen_at_6_gbps_is_placed_as_6_gbps() {
    let cluster = cluster(CLUSTER);
    let mut coordinator = coordinator(&cluster, "utp-proactive", true);
    let at = |seconds: u64| Nanos(seconds * SECOND);
    let pods = |at| Report {
        pods: vec![PodRates {
            pod: PodId(7),
            host: HostId(0),
            rates: Rates { egress_bps: 6_000_000_000, ingress_bps: 0 },
        }],
        ..report(&cluster, at, Vec::new())
    };
    coordinator.report(at(1), pods(at(1))).expect("a valid report");
    let named = vec![(PodId(7), HostId(0), "crawl".into())];
    assert_eq!(coordinator.name_pods(at(1), NamePods { pods: named, limit: 1 }).named, 1);
    coordinator.report(at(31), pods(at(31))).expect("a valid report");
    place_now(&mut coordinator, at(31), crawl(1, false)).expect("enough room");
    let placed = pending(&mut coordinator, &cluster) as f64 / GBPS as f64;
    assert!((6.0..=6.0 * 17.0 / 16.0).contains(&placed), "{placed} Gb/s");
}

#[test]
fn a_decision_in_a_job_counts_the_history_and_its_end_frees_all_of_it() {
    let cluster = cluster(CLUSTER);
    let mut coordinator = coordinator(&cluster, "leeward", true);
    let start = Nanos(SECOND);
    coordinator.report(start, report(&cluster, start, Vec::new())).expect("a valid report");
    let unused = |coordinator: &mut Coordinator<Numbers>| -> Vec<(Load, Load)> {
        coordinator.snapshot().links.iter().map(|link| (link.pending, link.residual)).collect()
    };
    let before = unused(&mut coordinator);
    // No link reports again, so no entry fades: only the ends can free the links.
    let mut decided = Vec::new();
    for tenth in 1..3 {
        let now = Nanos(SECOND + tenth * SECOND / 10);
        coordinator.place(now, crawl(2, true), 1);
        let job = coordinator.jobs().next().expect("the decision is a job");
        coordinator.finish_job(now, job.run());
        let id = DecisionId(tenth - 1);
        let tasks = (0..2).map(|index| rate(TaskId { app: id.0, index })).collect();
        let rates = Report { loads: Vec::new(), ..report(&cluster, now, tasks) };
        coordinator.report(now, rates).expect("a valid report");
        decided.push(id);
    }
    assert_eq!(crate::support::place_replies(&mut coordinator).len(), 2);
    let placed = pending(&mut coordinator, &cluster);
    assert!(placed >= 14 * GBPS, "{placed}: two tasks as stated, and two as seen");
    for id in decided {
        coordinator.release(Nanos(SECOND + SECOND / 2), id).expect("a decision");
    }
    assert_eq!(unused(&mut coordinator), before, "the ends free both directions of all links");
}

/// A tolerant task that states 1 Gb/s, with places that it excludes.
fn tolerant(job: &str, exclude: &[&str]) -> Placement {
    let text = r#"{"tasks": [{"name": "t", "cpus": 1, "tolerant": true, "egress": {"mean": "1Gbps"}}]}"#;
    let app = App::from_text("app", text, &Files::default()).expect("a valid app");
    let exclude = exclude.iter().map(|&name| name.to_owned()).collect();
    let spec = TasksSpec { exclude, ..TasksSpec::of(&app, Some(job.to_owned()), Vec::new()) };
    let spec = PlacementSpec::Tasks(spec);
    Placement { spec, caller: None, lasts: None, reference: None, digest: None }
}

#[test]
fn the_task_with_6_gbps_leaves_at_the_first_hot_window_and_counts_as_6_gbps() {
    let cluster = cluster("{racks: 2, hosts_per_rack: 4, nic: 10Gbps, rack_link: 10Gbps, cpus: 16}");
    let fabric = cluster.fabric.clone();
    let mut coordinator = coordinator(&cluster, "borg", true);
    let at = |seconds: u64| Nanos(seconds * SECOND);
    coordinator.report(at(1), report(&cluster, at(1), Vec::new())).expect("a valid report");
    let (large, _) = decision_of(place_now(&mut coordinator, at(1), tolerant("large", &["r0h0"])));
    let host = fabric.host(&large.details.hosts[0]).expect("a host");
    let (here, there) = (fabric.rack_of(host), 1 - fabric.rack_of(host).0);
    let other = format!("r{there}");
    let (small, _) = decision_of(place_now(&mut coordinator, at(1), tolerant("small", &[&other])));
    assert!(small.details.hosts[0].starts_with(&format!("r{}", here.0)), "both are in one rack");
    coordinator.report(at(2), report(&cluster, at(2), Vec::new())).expect("a valid report");
    // 80 % in one window, after loads of zero.
    let uplink = fabric.out_of_domain(here).expect("a tree");
    let bps = |decision: DecisionId, gbps: u64| {
        let rates = Rates { egress_bps: gbps * 1_000_000_000, ingress_bps: 0 };
        (TaskId { app: decision.0, index: 0 }, rates)
    };
    let mut hot = report(&cluster, at(3), vec![bps(large.id, 6), bps(small.id, 2)]);
    let sample = hot.loads.iter_mut().find(|sample| sample.resource == uplink).expect("each link reports");
    sample.load = Load(8 * GBPS);
    coordinator.report(at(3), hot).expect("a valid report");
    let query = MigrationQuery { state: None, before: None, limit: 9 };
    let moves = coordinator.migrations(at(3), query);
    let moved: Vec<DecisionId> = moves.iter().map(|one| one.decision).collect();
    assert_eq!(moved, [large.id], "the largest task that may go there, and only it");
    assert!(moves[0].to.starts_with(&other) && moves[0].link == format!("r{}:uplink", here.0));
    let to = fabric.host(&moves[0].to).and_then(|host| fabric.egress(host)).expect("a link");
    let links = coordinator.snapshot().links;
    let counted = links.iter().find(|link| link.link == to).expect("the host's link").pending.0;
    assert!((6 * GBPS..=6 * GBPS * 17 / 16 + 1).contains(&counted), "{counted}");
}
