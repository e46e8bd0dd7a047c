//! Apps as workloads of a scenario: placement by telemetry, beside background, with waits, failures and
//! moves.

use std::path::{Path, PathBuf};

use leeward_placement::tasks;
use leeward_scenarios::record::{App, Record};
use leeward_scenarios::scenario::{PolicySpec, Scenario};
use leeward_scenarios::summary::{Comparison, Summary};
use leeward_scenarios::{Run, Task, run_all};
use proptest::prelude::*;

/// Four racks of two hosts at 800 Mb/s; the uplinks carry all of their traffic.
const TREE: &str = "racks: 4\nhosts_per_rack: 2\nnic: 800Mbps\noversubscription: 1\ncpus: 2\nmemory: 8GB\n";
/// Six hosts that send 800 Mb/s each.
const HOSE: &str = "shape: hose\nhosts: 6\nnic: {up: 800Mbps, down: 100Gbps}\ncpus: 1\nmemory: 8GB\n";

/// Policies that need the load of links of racks.
const PROACTIVE: [&str; 2] = ["utp", "utp-proactive"];

/// Returns a folder for the files of one test.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("apps").join(name);
    std::fs::create_dir_all(&folder).expect("the target folder can be written to");
    folder
}

/// Writes an app of single-processor tasks with transfers in MB.
fn write_app(name: &str, file: &str, tasks: u32, memory: &str, sends: &[(u32, u32, u64)]) {
    let mut text = format!("tasks: [{{name: t, count: {tasks}, cpus: 1, memory: {memory}}}]\ntransfers:\n");
    for (from, to, mb) in sends {
        text += &format!("  - {{from: t{from}, to: t{to}, bytes: {mb}MB}}\n");
    }
    std::fs::write(folder(name).join(file), text).expect("the folder of the test can be written to");
}

fn read(name: &str, cluster: &str, text: &str) -> Result<Scenario, String> {
    let folder = folder(name);
    std::fs::write(folder.join("cluster.yaml"), cluster).expect("the folder of the test can be written to");
    let text = format!("cluster: cluster.yaml\n{text}");
    Scenario::from_text("scenario.yaml", &text, &folder, None).map_err(|error| error.to_string())
}

fn scenario(name: &str, cluster: &str, text: &str) -> Scenario {
    read(name, cluster, text).expect("the scenario of the test is valid")
}

fn run(scenario: &Scenario, policy: &str) -> Record {
    runs(scenario, &[policy], 1).remove(0).record
}

fn run_under(seed: u64, scenario: &Scenario, policy: &str) -> Record {
    let task = Task { policy: PolicySpec::named(policy), seed };
    run_all(scenario, &[task], 1, &|_, _| true).expect("a valid scenario runs").remove(0).record
}

fn runs(scenario: &Scenario, policies: &[&str], jobs: usize) -> Vec<Run> {
    let spec = |policy: &&str| policy.parse::<PolicySpec>().expect("a policy");
    let task = |policy: &&str| Task { policy: spec(policy), seed: scenario.seed };
    let tasks: Vec<Task> = policies.iter().map(task).collect();
    run_all(scenario, &tasks, jobs, &|_, _| true).expect("a valid scenario runs")
}

fn times(record: &Record) -> Vec<Option<f64>> {
    record.apps.iter().map(App::duration).collect()
}

#[test]
fn an_app_starts_all_transfers_at_once_and_ends_with_the_last() {
    write_app("one", "app.yaml", 3, "1GB", &[(0, 1, 100), (0, 2, 100), (1, 2, 10)]);
    let scenario = scenario("one", HOSE, "workloads: [{app: {file: app.yaml, at: 10s}}]\nhorizon: 1min\n");
    let record = run(&scenario, "choreo");
    let app = &record.apps[0];
    // Two transfers of 100 MB leave one host with 100 MB/s.
    assert_eq!((app.arrived, app.placed, app.finished), (10.0, Some(10.0), Some(12.0)));
    assert_eq!((app.name.as_str(), app.tasks, app.host_count()), ("app", 3, 3));
    assert_eq!((app.bytes, app.network_bytes, app.forecast), (210_000_000, 210e6, Some(2.0)));
    let summary = Summary::of(&record, &scenario.cluster.fabric, 0.75, 0.0).apps.expect("apps ran");
    assert_eq!((summary.count, summary.finished, summary.unplaced), (1, 1, 0));
    assert_eq!((summary.network_share, summary.forecast_error), (1.0, Some(0.0)));
}

#[test]
fn apps_arrive_periodically_or_several_at_once() {
    write_app("many", "app.yaml", 2, "0B", &[(0, 1, 100)]);
    let text = "workloads:\n  - app: {file: app.yaml, at: 5s, every: 20s}\n  - app: {file: app.yaml, name: \
        pair, at: 1s, count: 2}\nhorizon: 1min\n";
    let record = run(&scenario("many", HOSE, text), "choreo");
    let arrived: Vec<_> = record.apps.iter().map(|app| (app.name.as_str(), app.arrived)).collect();
    let expected = [("pair/0", 1.0), ("pair/1", 1.0), ("app/0", 5.0), ("app/1", 25.0), ("app/2", 45.0)];
    assert_eq!(arrived, expected);
    assert!(times(&record).iter().all(|time| *time == Some(1.0)));
}

#[test]
fn an_app_that_fits_nowhere_waits_until_another_ends() {
    write_app("wait", "app.yaml", 4, "0B", &[(0, 1, 400)]);
    let text = "workloads: [{app: {file: app.yaml, count: 3}}]\nhorizon: 1min\n";
    let scenario = scenario("wait", HOSE, text);
    // The proactive policies refuse apps on a mesh, which has no links of racks.
    for policy in tasks::REGISTRY.names().filter(|name| !PROACTIVE.contains(name)) {
        let record = run(&scenario, policy);
        let placed: Vec<_> = record.apps.iter().map(|app| app.placed).collect();
        assert_eq!(placed, [Some(0.0), Some(4.0), Some(8.0)], "{policy}");
        assert_eq!(record.apps.iter().map(|app| app.refused).collect::<Vec<_>>(), [0, 1, 2], "{policy}");
        let summary = Summary::of(&record, &scenario.cluster.fabric, 0.75, 0.0).apps.expect("apps ran");
        assert_eq!((summary.waited, summary.unplaced, summary.wait_s.mean), (2, 0, 4.0));
    }
}

#[test]
fn an_app_that_never_fits_is_counted_and_the_run_ends() {
    write_app("never", "app.yaml", 7, "0B", &[(0, 1, 400)]);
    let scenario = scenario("never", HOSE, "workloads: [{app: {file: app.yaml}}]\nhorizon: 1min\n");
    let record = run(&scenario, "choreo");
    assert_eq!((record.apps[0].placed, record.apps[0].finished), (None, None));
    let summary = Summary::of(&record, &scenario.cluster.fabric, 0.75, 0.0).apps.expect("apps ran");
    assert_eq!((summary.count, summary.unplaced), (1, 1));
}

/// Writes background for most of the capacity of four hosts of a hose mesh, as rates from the beginning.
fn busy(name: &str) {
    let rate = |host: u32| format!("0,h{host}:egress,760e6\n");
    let text = format!("t_s,link,rate_bps\n{}", (0..4).map(rate).collect::<String>());
    std::fs::write(folder(name).join("rates.csv"), text).expect("the folder of the test can be written to");
}

#[test]
fn background_traffic_is_visible_only_through_telemetry() {
    write_app("background", "app.yaml", 2, "0B", &[(0, 1, 100)]);
    busy("background");
    let text = |at: &str| {
        format!(
            "workloads: [{{rates: {{file: rates.csv}}}}, {{app: {{file: app.yaml, at: {at}, count: 1}}}}]\n\
            horizon: 5min\n"
        )
    };
    // Two of six hosts have no background traffic. After a report of this, they are chosen for every seed.
    for seed in 1..=8 {
        let reported = scenario("background", HOSE, &text("30s"));
        assert_eq!(times(&run_under(seed, &reported, "choreo")), [Some(1.0)], "seed {seed}");
    }
    let unreported = (1..=8).map(|seed| {
        let scenario = scenario("background", HOSE, &text("0s"));
        times(&run_under(seed, &scenario, "choreo"))[0].expect("the app ends")
    });
    assert!(unreported.into_iter().any(|time| time > 10.0), "before any report all hosts look alike");
}

#[test]
fn runs_on_the_same_arrivals_are_compared_app_by_app_and_repeat() {
    write_app("pairs", "app.yaml", 3, "0B", &[(0, 1, 300), (1, 2, 100)]);
    busy("pairs");
    let text = "workloads: [{rates: {file: rates.csv}}, {app: {file: app.yaml, at: 30s, every: 1min}}]\n";
    let scenario = scenario("pairs", HOSE, text);
    let all = runs(&scenario, &["random", "choreo"], 2);
    let compared = Comparison::of(&all[1].record, &all[0].record, 0.0).apps.expect("apps are compared");
    assert_eq!(compared.count, 60);
    assert!(compared.factor > 1.0 && compared.faster > compared.slower, "{compared:?}");
    let mean = |record: &Record| {
        let times: Vec<f64> = record.apps.iter().filter_map(App::duration).collect();
        times.iter().sum::<f64>() / times.len() as f64
    };
    let factor = mean(&all[0].record) / mean(&all[1].record);
    assert!((compared.factor - factor).abs() < 1e-9 * factor);
    let again = runs(&scenario, &["random", "choreo"], 1);
    assert!(all.iter().zip(&again).all(|(a, b)| a.record == b.record), "runs repeat to the last bit");
}

#[test]
fn an_unannounced_capacity_loss_misleads_a_placement() {
    write_app("capacity", "app.yaml", 2, "0B", &[(0, 1, 100)]);
    let text = |announced: bool| {
        let event = |host: u32| {
            format!("  - {{at: 10s, link: \"h{host}:egress\", capacity: 40Mbps, told: {announced}}}\n")
        };
        let events = (0..5).map(event).collect::<String>();
        format!("workloads: [{{app: {{file: app.yaml, at: 20s}}}}]\nhorizon: 2min\nevents:\n{events}")
    };
    let slow = |announced| {
        let scenario = scenario("capacity", HOSE, &text(announced));
        let durations =
            (1..=6).map(|seed| times(&run_under(seed, &scenario, "choreo"))[0].expect("the app ends"));
        assert!(scenario.events.iter().all(|event| event.announced == announced));
        durations.filter(|&time| time > 10.0).count()
    };
    assert_eq!(slow(true), 0);
    assert!(slow(false) > 0);
}

#[test]
fn an_app_restarts_elsewhere_when_a_host_fails_announced_or_not() {
    write_app("fails", "app.yaml", 5, "0B", &[(0, 1, 1000), (2, 3, 500), (4, 0, 100)]);
    for announced in [true, false] {
        let event = |host: u32| {
            format!("  - {{at: {}s, host: h{host}, state: down, told: {announced}}}\n", 2 + 8 * host)
        };
        let text = format!(
            "workloads: [{{app: {{file: app.yaml}}}}]\nhorizon: 2min\nevents:\n{}  - {{at: 5s, host: h0, state: up, told: {announced}}}\n",
            event(0)
        );
        let record = run(&scenario("fails", HOSE, &text), "choreo");
        let app = &record.apps[0];
        let used_failed_host = app.restarts == 1;
        // Five of six hosts are used. If one of them fails, the sixth replaces it.
        let finished = if used_failed_host { 12.0 } else { 10.0 };
        assert_eq!(app.finished, Some(finished), "told: {announced}");
        if used_failed_host {
            assert_eq!(app.network_bytes, 1600e6 + 200e6 + 200e6 + 100e6);
        }
    }
}

#[test]
fn incompatible_sources_are_rejected_with_the_source_and_the_reason() {
    write_app("refused", "app.yaml", 2, "0B", &[(0, 1, 1)]);
    std::fs::write(folder("refused").join("square.csv"), "0,1\n2,0,3\n")
        .expect("the folder of the test can be written to");
    std::fs::write(folder("refused").join("streams.yaml"), "tasks: [{name: a, egress: {mean: 1Mbps}}]\n")
        .expect("the folder of the test can be written to");
    let app = "{app: {file: app.yaml}}";
    let rejection = |text: &str| match read("refused", HOSE, text) {
        Err(message) => message,
        Ok(scenario) => scenario.arrivals(1).expect_err("an error").to_string(),
    };
    let lines: Vec<String> = [
        format!("workloads: [{app}, {{facebook: {{}}}}]"),
        format!("workloads: [{{blocks: {{file: b.csv}}}}, {app}]"),
        format!("workloads: [{app}, {{cell: {{}}}}]"),
        format!("workloads: [{app}]\npolicies: [sinbad]"),
        format!("workloads: [{app}]\nfault_domains: 1"),
        format!("workloads: [{app}]\nmigration: {{every: 0s}}"),
        format!("workloads: [{app}]\nmigration: {{every: 1min, pause: 2h}}"),
        format!("workloads: [{app}]\nmigration: {{every: 1min, margin: 2}}"),
        "workloads: []\nmigration: {every: 1min}".into(),
        "workloads: [{app: {}}]".into(),
        "workloads: [{app: {file: app.yaml, matrix: square.csv}}]".into(),
        "workloads: [{app: {file: app.yaml, cpus: 2}}]".into(),
        "workloads: [{app: {file: none.yaml}}]".into(),
        "workloads: [{app: {file: \"data:none.yaml\"}}]".into(),
        "workloads: [{app: {file: streams.yaml}}]".into(),
        "workloads: [{app: {matrix: square.csv}}]".into(),
        "workloads: [{app: {file: app.yaml, every: 0s}}]".into(),
        "workloads: [{app: {file: app.yaml, every: 1us}}]".into(),
        "workloads: [{app: {file: app.yaml, count: 4294967295}}]".into(),
        "workloads: [{app: {file: app.yaml, count: 0}}]".into(),
        "workloads: [{app: {file: app.yaml, name: \"a\\nb\"}}]".into(),
    ]
    .iter()
    .map(|text| rejection(text).replace(&format!("{}", folder("refused").display()), "FOLDER"))
    .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

/// A scenario of one app with two tasks and 4 GB to send at 800 Mb/s (40 s), and a link that loses half of its
/// capacity.
fn halved(name: &str, memory: &str, migration: &str) -> Scenario {
    write_app(name, "app.yaml", 2, memory, &[(0, 1, 4000)]);
    let event = |host: u32| format!("  - {{at: 10s, link: \"h{host}:egress\", capacity: 400Mbps}}\n");
    let events = (0..5).map(event).collect::<String>();
    let text =
        format!("workloads: [{{app: {{file: app.yaml}}}}]\nhorizon: 5min\n{migration}events:\n{events}");
    scenario(name, HOSE, &text)
}

#[test]
fn an_app_on_a_halved_link_ends_earlier_if_it_may_move() {
    // Five of six links are halved, and with this seed the app is on one of them.
    let stays = run(&halved("halved", "800MB", ""), "choreo");
    assert_eq!((times(&stays), stays.migrations.len()), (vec![Some(70.0)], 0));
    let moves = run(&halved("halved", "800MB", "migration: {every: 15s, pause: 2s}\n"), "choreo");
    let migration = moves.migrations[0];
    assert_eq!((moves.migrations.len(), migration.at), (1, 15.0));
    // 2,750 MB are left. They take 55 s at 50 MB/s and 27.5 s at 100 MB/s. 800 MB of memory take 16 s at 50 MB/s.
    assert_eq!((migration.stays, migration.moves, migration.cost), (Some(55.0), 27.5, 18.0));
    assert_eq!(migration.resumed, Some(33.0));
    assert_eq!(times(&moves), [Some(60.5)]);
    let app = &moves.apps[0];
    assert_eq!((app.memory_bytes, app.network_bytes), (f64::from(migration.tasks) * 800e6, 4e9));
}

#[test]
fn no_app_moves_if_the_cost_exceeds_the_gain() {
    for (name, memory, migration) in [
        ("heavy", "3GB", "{every: 15s, pause: 2s}"),
        ("patient", "800MB", "{every: 15s, pause: 30s}"),
        ("modest", "800MB", "{every: 15s, pause: 2s, margin: 0.2}"),
    ] {
        let record = run(&halved(name, memory, &format!("migration: {migration}\n")), "choreo");
        assert_eq!((times(&record), record.migrations.len()), (vec![Some(70.0)], 0), "{name}");
    }
}

#[test]
fn an_app_without_gain_never_moves() {
    write_app("still", "app.yaml", 3, "0B", &[(0, 1, 2000), (1, 2, 900), (2, 0, 500)]);
    let text =
        "workloads: [{app: {file: app.yaml, count: 2}}]\nmigration: {every: 2s, pause: 0s, margin: 0}\n";
    for policy in ["random", "choreo", "leeward"] {
        for seed in 1..=4 {
            let record = run_under(seed, &scenario("still", HOSE, text), policy);
            assert_eq!(record.migrations, [], "{policy}, seed {seed}");
        }
    }
}

/// All task policies, except for those that refuse apps before the first report, and the exact one: random runs solve
/// too many programs for it. `leeward` makes few tries, to save time.
fn app_policies() -> impl Strategy<Value = &'static str> {
    let names = tasks::REGISTRY.names().filter(|name| !PROACTIVE.contains(name) && *name != "choreo-exact");
    let quick = |name: &'static str| if name == "leeward" { "leeward:tries=5" } else { name };
    prop::sample::select(names.map(quick).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn all_bytes_are_sent_hosts_never_overflow_and_moves_cut_forecasts(
        apps in prop::collection::vec((0_u32..60, prop::collection::btree_map((0_u32..4, 0_u32..4), 1_u64..2000, 1..6)), 1..6),
        events in prop::collection::vec((1_u32..100, 0_u32..8, 50_u32..800, any::<bool>()), 0..6),
        policy in app_policies(),
        every in 3_u32..30, margin in prop::sample::select(vec![0.0, 0.1, 0.5]),
    ) {
        let mut text = "workloads:\n".to_owned();
        for (at, (arrive, sends)) in apps.iter().enumerate() {
            let sends: Vec<_> = sends.iter().filter(|((from, to), _)| from != to).map(|(&(from, to), &mb)| (from, to, mb)).collect();
            let sends = if sends.is_empty() { vec![(0, 1, 100)] } else { sends };
            write_app("bytes", &format!("app{at}.yaml"), 4, "500MB", &sends);
            text += &format!("  - app: {{file: app{at}.yaml, at: {arrive}s}}\n");
        }
        text += "events:\n";
        for (at, host, mbps, announced) in &events {
            let name = format!("r{}h{}", host / 2, host % 2);
            text += &format!("  - {{at: {at}s, link: \"{name}:egress\", capacity: {mbps}Mbps, told: {announced}}}\n");
        }
        text += if events.is_empty() { "  []\n" } else { "" };
        text += &format!("migration: {{every: {every}s, pause: 1s, margin: {margin}}}\nhorizon: 20min\n");
        let scenario = scenario("bytes", TREE, &text);
        let record = run(&scenario, policy);
        for app in &record.apps {
            prop_assert!(app.finished.is_some(), "{app:?}");
            prop_assert!(app.network_bytes <= app.bytes as f64 * (1.0 + 1e-9) + 1.0);
            prop_assert!(app.memory_bytes <= f64::from(app.tasks_moved) * 500e6 * (1.0 + 1e-9));
            let mut of_host = [0; 8];
            app.hosts.iter().for_each(|host| of_host[host.index()] += 1);
            prop_assert!(of_host.iter().all(|&tasks| tasks <= 2), "{app:?}");
        }
        for migration in &record.migrations {
            let stays = migration.stays.unwrap_or(f64::INFINITY);
            prop_assert!(migration.cost >= 1.0, "{migration:?}");
            prop_assert!(migration.cost + migration.moves < (1.0 - margin) * stays, "{migration:?}");
        }
        let counted: u32 = record.apps.iter().map(|app| app.migrations).sum();
        prop_assert_eq!(counted as usize, record.migrations.len());
    }
}
