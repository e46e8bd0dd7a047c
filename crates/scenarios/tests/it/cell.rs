//! Properties of every run of a cell, from scenario file to record, on small cells.

use std::collections::BTreeMap;

use leeward_fabric::{DomainId, HostId};
use leeward_scenarios::record::Record;
use leeward_scenarios::scenario::Scenario;
use leeward_scenarios::{Task, run_all};
use proptest::prelude::*;

use crate::support::cell::{ListedTask, STEP, events, scenario, scenario_of_tasks, summary};
use crate::support::runs::{folder, run, runs};

const POLICIES: [&str; 4] = ["borg", "utp-reactive", "utp-proactive", "utp"];

/// Follows every task through a record; fails if a host has more tasks than it can hold.
fn check_hosts(scenario: &Scenario, record: &Record, seed: u64) {
    let arrivals = scenario.arrivals(seed).expect("the run generated them too");
    let workload = &arrivals.workload;
    let fabric = &scenario.cluster.fabric;
    let mut free: Vec<(i64, i64)> = (fabric.all_hosts())
        .map(|host| {
            (fabric.cpus(host).unwrap().0 as i64, fabric.memory(host).map_or(i64::MAX, |m| m.0 as i64))
        })
        .collect();
    for event in events(record) {
        let demand = workload.cell_kinds[workload.tasks[event.task as usize].kind as usize].demand;
        let mut change = |host: HostId, times: i64| {
            let (cpus, memory) = &mut free[host.index()];
            (*cpus, *memory) =
                (*cpus + times * demand.cpus.0 as i64, *memory + times * demand.memory.0 as i64);
            assert!(*cpus >= 0 && *memory >= 0, "host {} exceeds its capacity at {} s", host.0, event.at);
        };
        event.from.into_iter().for_each(|host| change(host, 1));
        event.to.into_iter().for_each(|host| change(host, -1));
    }
}

/// Returns the bits that all racks' uplinks carried.
fn carried(record: &Record, scenario: &Scenario) -> f64 {
    let fabric = &scenario.cluster.fabric;
    let uplinks: Vec<_> = fabric.all_racks().filter_map(|rack| fabric.out_of_domain(rack)).collect();
    let sample = scenario.sample.as_secs_f64();
    record.links.iter().filter(|link| uplinks.contains(&link.resource)).map(|link| link.load * sample).sum()
}

fn up_to_steps(seconds: f64) -> f64 {
    (seconds / STEP - 1e-6).ceil() * STEP
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_host_and_no_link_exceeds_its_capacity(
        policy in prop::sample::select(POLICIES.to_vec()), seed in 0_u64..1000,
        processors in 0.3_f64..0.95, network in 0.1_f64..2.0, error in 0.0_f64..2.0, unknown in 0.0_f64..1.0,
        noise in 0.0_f64..0.3, loss in 0.0_f64..0.3,
    ) {
        let text = format!(
            "workloads: [{{cell: {{processors: {processors}, network: {network}, spread: 1.5, peak: 3, error: {error}, \
             unknown: {unknown}, batch: 20min, service: 2h, down: 0.5, evictions: 10}}}}]\n\
             telemetry: {{interval: 30s, noise: {noise}, loss: {loss}, delay: 5s}}\nhorizon: 3h\nsample: 5min\n\
             events: [{{at: 1h, link: 'r1:uplink', capacity: 2Gbps, told: false}}]\nseed: {seed}\n"
        );
        let scenario = scenario("hosts", &text);
        let record = run(&scenario, policy);
        check_hosts(&scenario, &record, seed);
        prop_assert!(record.links.iter().all(|link| (0.0..=1.0 + 1e-9).contains(&link.utilization)
            || link.start < 3600.0 + 300.0), "a link exceeds its capacity");
        for task in &record.tasks {
            let Some((placed, finished)) = task.placed.zip(task.finished) else { continue };
            prop_assert!(placed >= task.arrived && finished - placed >= task.duration + task.down - 1e-3);
            prop_assert!(placed - task.arrived < STEP + 1e-6 || task.refused > 0);
            if !task.tolerant {
                prop_assert_eq!(task.moves, 0);
                prop_assert!((finished - placed - up_to_steps(task.duration)).abs() < 1e-3);
            }
        }
    }

    #[test]
    fn links_carry_the_traffic_of_running_tasks(
        tasks in prop::collection::vec((0_u32..3000, 1_u32..3000, 1_u32..4, 0_u32..60, 0_u32..3), 1..40),
        policy in prop::sample::select(POLICIES.to_vec()),
    ) {
        let mut tasks = tasks;
        tasks.sort();
        let rows: Vec<ListedTask> = tasks.iter().map(|&(arrive, duration, cpus, mbps, job)| ListedTask {
            arrive: f64::from(arrive), duration: f64::from(duration), cpus, egress: f64::from(mbps) * 1e6,
            ingress: 0.0, peak: 1.0, tolerant: job > 0, job: format!("j{job}"),
        }).collect();
        let scenario = scenario_of_tasks("carried", &rows, "horizon: 2h\nsample: 1min\n");
        let record = run(&scenario, policy);
        let sent: f64 = record.tasks.iter().zip(&rows).map(|(task, row)| {
            let ran = task.placed.map_or(0.0, |placed| task.finished.unwrap_or(7200.0) - placed - task.down);
            ran * row.egress
        }).sum();
        let carried = carried(&record, &scenario);
        prop_assert!((carried - sent).abs() <= 1e-6 * sent, "{carried} bits carried, {sent} sent");
        for task in record.tasks.iter().filter(|task| task.finished.is_some()) {
            let seconds = task.finished.unwrap() - task.placed.unwrap();
            prop_assert!((seconds - up_to_steps(task.duration + task.down).max(STEP)).abs() < 1e-3);
        }
    }
}

#[test]
fn a_run_is_bit_identical_with_and_without_parallel_runs() {
    let text = "workloads: [{cell: {network: 0.8, spread: 1.5, peak: 3, batch: 30min}}]\n\
        telemetry: {interval: 30s, noise: 0.1, loss: 0.1, jitter: 10s}\nhorizon: 3h\nsample: 5min\n";
    let scenario = scenario("repeats", text);
    let alone = runs(&scenario, &POLICIES, 1);
    let together = runs(&scenario, &POLICIES, 2);
    for (a, b) in alone.iter().zip(&together) {
        assert_eq!(a.record, b.record);
    }
    assert_ne!(alone[0].record.tasks, alone[3].record.tasks, "the policies place differently");
}

#[test]
fn policies_see_the_same_arrivals() {
    let text = "workloads: [{cell: {network: 0.8, spread: 1.5, batch: 30min}}]\n\
        telemetry: {interval: 30s}\nhorizon: 3h\nsample: 5min\n";
    let all = runs(&scenario("arrivals", text), &POLICIES, 1);
    let arrivals = |record: &Record| -> Vec<(u32, u64, u64, bool)> {
        let of = |task: &leeward_scenarios::record::Task| {
            (task.job, task.arrived.to_bits(), task.duration.to_bits(), task.intensive)
        };
        record.tasks.iter().map(of).collect()
    };
    for other in &all[1..] {
        assert_eq!(arrivals(&all[0].record), arrivals(&other.record));
    }
}

/// Eight tasks that send 100 Mb/s each, two in each of four racks whose links carry 1 Gb/s.
fn eight_tasks(name: &str, more: &str) -> Scenario {
    let row =
        |_| ListedTask { egress: 1e8, cpus: 4, tolerant: true, duration: 6000.0, ..ListedTask::default() };
    scenario_of_tasks(
        name,
        &(0..8).map(row).collect::<Vec<_>>(),
        &format!("horizon: 3h\nsample: 30s\n{more}"),
    )
}

fn load_at(record: &Record, scenario: &Scenario, at: f64) -> f64 {
    let fabric = &scenario.cluster.fabric;
    let uplinks: Vec<_> = fabric.all_racks().filter_map(|rack| fabric.out_of_domain(rack)).collect();
    let then = record.links.iter().filter(|link| link.start == at && uplinks.contains(&link.resource));
    then.map(|link| link.load).sum()
}

#[test]
fn a_moved_task_is_silent_for_its_restart_time_and_ends_later() {
    let halved = "events: [{at: 10min, link: 'r0:uplink', capacity: 250Mbps}]\n";
    let scenario = eight_tasks("restart", halved);
    let record = run(&scenario, "utp-reactive");
    assert_eq!(record.moves.len(), 1, "a load of 200 of 250 Mb/s is hot, a load of 100 Mb/s is not");
    let moved = record.moves[0];
    assert_eq!((moved.at, scenario.cluster.fabric.rack_of(moved.from)), (600.0, DomainId(0)));
    // 60 s are two steps.
    assert_eq!(record.tasks[moved.task as usize].down, 60.0);
    assert_eq!(record.tasks[moved.task as usize].host, Some(moved.to));
    for (at, load) in [(570.0, 8e8), (600.0, 7e8), (630.0, 7e8), (660.0, 8e8)] {
        assert_eq!(load_at(&record, &scenario, at), load, "at {at} s");
    }
    for (task, record) in (0..).zip(&record.tasks) {
        let late = if task == moved.task { 60.0 } else { 0.0 };
        assert_eq!(record.finished, Some(6000.0 + late));
    }
    assert_eq!(run(&scenario, "borg").moves, []);
}

#[test]
fn an_unannounced_capacity_loss_moves_no_task_and_slows_tasks() {
    let halved = "events: [{at: 10min, link: 'r0:uplink', capacity: 100Mbps, told: false}]\n";
    let scenario = eight_tasks("slow", halved);
    let record = run(&scenario, "utp");
    assert_eq!(record.moves, []);
    let slowed = record.tasks.iter().filter(|task| task.finished != Some(6000.0)).count();
    // UTP has no data before the first report, so all tasks start one step later.
    let record = run(&scenario, "borg");
    let slow: Vec<f64> =
        record.tasks.iter().map(|task| task.finished.unwrap()).filter(|&at| at > 6000.0).collect();
    // Half of the work waits for the network, which carries half of the requested load. From 600 s on, the work takes
    // 1.5 times as long. Each task would have the whole link after the end of the other task, but they end at the same
    // time.
    assert_eq!(slow, [600.0 + 5400.0 * 1.5; 2]);
    assert!(slowed >= 2);
    let link = scenario.cluster.fabric.out_of_domain(DomainId(0)).unwrap();
    let full = record.links.iter().filter(|row| row.resource == link && row.utilization == 1.0);
    assert_eq!(full.count(), 5400 * 3 / 2 / 30);
}

#[test]
fn tasks_of_a_failed_host_restart_elsewhere() {
    for announced in [true, false] {
        for policy in ["borg", "utp"] {
            let down = format!("events: [{{at: 10min, host: r0h0, state: down, told: {announced}}}]\n");
            let scenario = eight_tasks("fails", &down);
            let whole = run(&eight_tasks("whole", ""), policy);
            let record = run(&scenario, policy);
            let lost: Vec<usize> = (0..8).filter(|&task| whole.tasks[task].host == Some(HostId(0))).collect();
            assert!(!lost.is_empty());
            for (task, (ours, theirs)) in record.tasks.iter().zip(&whole.tasks).enumerate() {
                assert_ne!(ours.host, Some(HostId(0)));
                let late = if lost.contains(&task) { 60.0 } else { 0.0 };
                assert_eq!(ours.finished, theirs.finished.map(|at| at + late));
                assert_eq!(ours.down, late);
            }
        }
    }
}

#[test]
fn a_task_without_a_host_waits_until_one_has_room() {
    let row =
        |i: u32| ListedTask { arrive: f64::from(i), duration: 300.0, cpus: 16, ..ListedTask::default() };
    // Four hosts have 16 processors each.
    let rows: Vec<ListedTask> = (0..6).map(row).collect();
    let record = run(&scenario_of_tasks("waits", &rows, "horizon: 1h\nsample: 1min\n"), "borg");
    let placed: Vec<f64> = record.tasks.iter().map(|task| task.placed.unwrap()).collect();
    assert_eq!(placed, [0.0, 30.0, 30.0, 30.0, 300.0, 330.0]);
    let refused: Vec<u32> = record.tasks.iter().map(|task| task.refused).collect();
    assert_eq!(refused, [0, 0, 0, 0, 9, 10]);
    let waiting: Vec<u32> = record.cell.iter().take(7).map(|interval| interval.tasks.waiting).collect();
    assert_eq!(waiting, [2, 2, 2, 2, 2, 0, 0]);
    assert_eq!(summary(&record, 0.0).most_waiting, 2);
}

#[test]
fn jobs_that_require_a_tag_stay_on_hosts_with_it() {
    let text = "workloads: [{cell: {processors: 0.3, constrained: {tag: fast, share: 0.3}, batch: 30min}}]\n\
        telemetry: {interval: 30s}\nhorizon: 2h\nsample: 5min\n";
    let scenario = scenario("tags", text);
    let workload = scenario.arrivals(scenario.seed).unwrap().workload;
    let (fabric, record) = (&scenario.cluster.fabric, run(&scenario, "utp"));
    let fast = fabric.tag_mask("fast").unwrap();
    let tagged = |job: u32| workload.cell_jobs[job as usize].tags == fast;
    for task in record.tasks.iter().filter(|task| tagged(task.job)) {
        assert!(task.host.is_none_or(|host| fabric.tags(host) == fast));
    }
    let share = workload.cell_jobs.iter().filter(|job| job.tags == fast).count() as f64
        / workload.cell_jobs.len() as f64;
    assert!((0.2..0.4).contains(&share), "{share}");
}

#[test]
fn utp_has_fewer_hot_racks_than_its_base_scheduler() {
    // Racks differ in the uplink load per processor.
    let text = "workloads: [{cell: {network: 0.5, spread: 1.5, peak: 3, batch: 1h}}]\n\
        telemetry: {interval: 30s}\nhorizon: 12h\nwarmup: 1h\nsample: 5min\n";
    let scenario = crate::support::cell::uneven("table", text);
    let mut table = String::from("policy         hot racks   p98 %  mean %  moves  intensive on hot\n");
    let mut hot = BTreeMap::new();
    for (run, policy) in runs(&scenario, &POLICIES, 2).iter().zip(POLICIES) {
        let tasks = summary(&run.record, 3600.0);
        hot.insert(policy, tasks.hot_tor_intervals);
        table += &format!(
            "{policy:<14} {:>9} {:>7.1} {:>7.1} {:>6} {:>6} of {}\n",
            tasks.hot_tor_intervals,
            tasks.tor_p98 * 100.0,
            tasks.utilization * 100.0,
            tasks.moves,
            tasks.intensive_on_hot,
            tasks.scheduled_intensive,
        );
    }
    insta::assert_snapshot!(table);
    for policy in &POLICIES[1..] {
        assert!(hot[policy] < hot["borg"], "{table}");
    }
}

#[test]
fn unknown_peaks_make_fewer_racks_hot_with_estimates_from_history() {
    let hot = |more: &str, seed: u64| {
        let text = format!(
            "workloads: [{{cell: {{network: 0.5, spread: 1.5, peak: 3, batch: 1h, unknown: 1{more}}}}}]\n\
             telemetry: {{interval: 30s}}\nhorizon: 8h\nwarmup: 1h\nsample: 5min\nseed: {seed}\n"
        );
        let scenario = crate::support::cell::uneven("history", &text);
        summary(&run(&scenario, "utp"), 3600.0).hot_tor_intervals
    };
    let seeds = 1..=8;
    let all = |more: &str| seeds.clone().map(|seed| hot(more, seed)).collect::<Vec<_>>();
    let (zero, history) = (all(", unknown_peak: zero"), all(", history: {}"));
    let sum = |hot: &[u64]| hot.iter().sum::<u64>();
    assert!(sum(&history) < sum(&zero), "{zero:?} without, {history:?} with");
}

#[test]
fn settings_reach_both_the_task_policy_and_the_move_policy() {
    let halved = "events: [{at: 10min, link: 'r0:uplink', capacity: 250Mbps}]\n";
    let scenario = eight_tasks("settings", halved);
    // Another link would have a load of 30 %, above 75 % minus the margin.
    assert_eq!(run(&scenario, "utp-reactive:margin=0.5:step=0.05").moves, []);
    assert_eq!(run(&scenario, "utp-reactive:margin=0.4:step=0.05:sample=50").moves.len(), 1);
    let task = |policy: &str| Task { policy: policy.parse().unwrap(), seed: 1 };
    let error = run_all(&scenario, &[task("utp:magrin=0.1")], 1, &|_, _| true).expect_err("no such setting");
    assert!(error.to_string().contains("magrin"), "{error}");
}

#[test]
fn a_stopped_run_returns_the_stopped_error() {
    let task = Task { policy: "borg".parse().unwrap(), seed: 1 };
    let stopped = run_all(&eight_tasks("stopped", ""), &[task], 1, &|_, share| share < 0.5);
    assert_eq!(stopped.err().map(|error| error.to_string()), Some("stopped".to_owned()));
}

#[test]
fn invalid_cell_scenarios_are_rejected_when_read_or_run() {
    let mut table = String::new();
    let folder = folder("cell", "bad");
    let cluster = "racks: 4\nhosts_per_rack: 1\nnic: 10Gbps\nrack_link: 1Gbps\ncpus: 16\n";
    std::fs::write(folder.join("cluster.yaml"), cluster).expect("the folder of the test can be written to");
    for text in [
        "workloads: [{cell: {}}, {facebook: {}}]\n",
        "workloads: [{flows: {file: f.csv}}, {tasks: {file: t.csv}}]\n",
        "workloads: [{cell: {}}]\npolicies: [sinbad]\n",
        "workloads: [{cell: {}}]\npolicies: []\n",
        "workloads: [{cell: {}}]\npolicies: [{utp: {magrin: 0.1}}]\n",
        "workloads: [{cell: {}}]\npolicies: [{utp: {margin: 7}}]\n",
        "workloads: [{facebook: {}}]\npolicies: [utp]\n",
        "workloads: [{cell: {}}]\ntelemetry: {counters: [hosts]}\n",
    ] {
        let text = format!("cluster: cluster.yaml\n{text}");
        let read = Scenario::from_text("bad.yaml", &text, &folder, None);
        let error = match read {
            Err(error) => error.to_string(),
            Ok(scenario) => {
                let task = Task { policy: "borg".parse().unwrap(), seed: 1 };
                run_all(&scenario, &[task], 1, &|_, _| true).expect_err("an error").to_string()
            }
        };
        table += &format!("{error}\n");
    }
    insta::assert_snapshot!(table);
}
