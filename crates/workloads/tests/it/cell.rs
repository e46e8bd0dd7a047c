//! Tasks of a cell: generated tasks have the requested size, and lists are read or rejected.

use leeward_fabric::Cluster;
use leeward_fabric::input::read_yaml;
use leeward_placement::tasks::Traffic;
use leeward_testing::clusters::cluster;
use leeward_workloads::{Cell, Source, Workload};
use proptest::prelude::*;

use crate::support::{read, source};

const HOUR: f64 = 3600.0;

/// 800 hosts with 25,600 processors; all uplinks together carry 1,600 Gb/s.
fn cell() -> Cluster {
    cluster("{racks: 40, hosts_per_rack: 20, nic: 10Gbps, oversubscription: 5, cpus: 32, memory: 128GiB}")
}

fn generate(settings: &str, seed: u64, horizon: f64) -> Workload {
    let settings: Cell = read_yaml("cell", settings).expect("valid settings");
    settings.generate(&cell(), seed, horizon).expect("settings valid for this cluster").workload
}

fn cpus(workload: &Workload, kind: u32) -> f64 {
    workload.cell_kinds[kind as usize].demand.cpus.0 as f64 / 1000.0
}

#[test]
fn generated_tasks_match_the_requested_processors_and_bandwidth() {
    let (mut first, mut later, mut sent, mut received) = (0.0, 0.0, 0.0, 0.0);
    let seeds = 30;
    for seed in 0..seeds {
        let workload =
            generate("{processors: 0.6, tolerant: 0.5, network: 0.4, batch: 2h}", seed, 12.0 * HOUR);
        for task in &workload.tasks {
            let cpus = cpus(&workload, task.kind);
            if task.arrive == 0.0 {
                first += cpus;
                sent += task.egress_bps as f64;
                received += task.ingress_bps as f64;
            } else if workload.cell_kinds[task.kind as usize].demand.tolerant {
                later += cpus * task.duration / (12.0 * HOUR);
            }
        }
    }
    let share = |sum: f64, of: f64| sum / f64::from(seeds as u32) / of;
    let table = [
        ("processors at the start", share(first, 25_600.0), 0.6),
        ("processors of batch jobs later", share(later, 25_600.0), 0.3),
        ("sent", share(sent, 1.6e12), 0.4),
        ("received", share(received, 1.6e12), 0.4),
    ];
    for (quantity, share, target) in table {
        // Sums over some ten thousand log-normal jobs.
        assert!((share / target - 1.0).abs() < 0.15, "{quantity}: {share:.3} of all, {target} requested");
    }
}

#[test]
fn bandwidth_per_processor_has_a_tail_of_more_than_ten_times_the_median() {
    let workload = generate("{batch: 30min}", 1, 24.0 * HOUR);
    let stated = |kind: &leeward_workloads::CellKind| {
        let traffic = kind.demand.total_egress().mean_bps + kind.demand.total_ingress().mean_bps;
        traffic as f64 / kind.demand.cpus.0 as f64
    };
    let mut sorted: Vec<f64> = workload.cell_kinds.iter().map(stated).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| sorted[(share * sorted.len() as f64) as usize];
    assert!(sorted.len() > 2000 && at(0.99) > 10.0 * at(0.5), "{} of {}", at(0.99), at(0.5));
}

#[test]
fn a_longer_run_begins_with_the_same_tasks() {
    let (short, long) = (generate("{batch: 1h}", 3, HOUR), generate("{batch: 1h}", 3, 6.0 * HOUR));
    assert!(long.tasks.len() > short.tasks.len());
    for (ours, theirs) in short.tasks.iter().zip(&long.tasks) {
        let identical = |a: f64, b: f64| a.to_bits() == b.to_bits();
        assert!(identical(ours.arrive, theirs.arrive) && identical(ours.duration, theirs.duration));
        assert_eq!((ours.egress_bps, ours.ingress_bps), (theirs.egress_bps, theirs.ingress_bps));
        let kinds = [&short.cell_kinds[ours.kind as usize], &long.cell_kinds[theirs.kind as usize]];
        assert_eq!(kinds[0], kinds[1]);
    }
    assert_ne!(short, generate("{batch: 1h}", 4, HOUR));
}

#[test]
fn stated_demands_are_true_unless_errors_are_configured() {
    let right = generate("{peak: 3}", 1, HOUR);
    let wrong = generate("{peak: 3, error: 1}", 1, HOUR);
    let zero = generate("{peak: 3, unknown: 1}", 1, HOUR);
    let mean = generate("{peak: 3, unknown: 1, unknown_peak: mean}", 1, HOUR);
    assert_eq!(right.tasks, wrong.tasks);
    assert_eq!(right.tasks, zero.tasks);
    for kind in 0..right.cell_kinds.len() {
        let stated = |workload: &Workload| workload.cell_kinds[kind].demand.total_egress();
        let Traffic { mean_bps, peak_bps } = stated(&right);
        assert!((peak_bps as f64 - 3.0 * mean_bps as f64).abs() <= 2.0);
        assert_eq!(stated(&zero), Traffic::default());
        assert_eq!(stated(&mean), Traffic { mean_bps, peak_bps: mean_bps });
    }
    let off = (right.cell_kinds.iter().zip(&wrong.cell_kinds))
        .filter(|(right, wrong)| right.demand != wrong.demand)
        .count();
    assert!(off * 10 > right.cell_kinds.len() * 9, "{off} of {}", right.cell_kinds.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_settings_generate_sorted_tasks_or_are_rejected(
        processors in 0.0_f64..=1.0, tolerant in 0.0_f64..=1.0, network in 0.0_f64..12.0, spread in 0.0_f64..4.0,
        peak in 0.0_f64..120.0, day in 0.0_f64..=1.0, error in 0.0_f64..4.0, share in 0.0_f64..=1.0,
        batch in 0_u64..100_000, most in 1_u32..20_000, cpus in 0_u32..3,
    ) {
        let text = format!(
            "{{processors: {processors}, tolerant: {tolerant}, network: {network}, spread: {spread}, peak: {peak}, \
             day: {day}, error: {error}, batch: {batch}s, tasks_per_job: {most}, constrained: {{tag: a, share: {share}}}}}"
        );
        let settings: Cell = read_yaml("cell", &text).expect("each number has the right type");
        let cluster = cluster(&format!(
            "{{racks: [{{count: 3, tags: [a]}}], hosts_per_rack: 2, nic: 1Gbps, oversubscription: 2, cpus: {cpus}}}"
        ));
        if let Ok(loaded) = settings.generate(&cluster, 1, 600.0) {
            let Workload { tasks, cell_kinds, cell_jobs, .. } = &loaded.workload;
            prop_assert!(tasks.is_sorted_by(|a, b| a.arrive <= b.arrive));
            for task in tasks {
                prop_assert!((0.0..600.0).contains(&task.arrive) && task.duration >= 1.0 && task.duration.is_finite());
                let kind = &cell_kinds[task.kind as usize];
                prop_assert!(task.egress_bps as f64 * kind.peak <= 1e9 + 100.0);
                prop_assert!((task.job as usize) < cell_jobs.len() && kind.demand.cpus.0 > 0);
            }
        }
    }
}

#[test]
fn settings_invalid_for_the_cluster_are_rejected_by_name() {
    let mut table = String::new();
    let mesh = cluster("{shape: hose, hosts: 4, nic: 1Gbps}");
    let unstated = cluster("{racks: 2, hosts_per_rack: 2, nic: 1Gbps, oversubscription: 2}");
    let none = cluster("{racks: 2, hosts_per_rack: 2, nic: 1Gbps, oversubscription: 2, cpus: 0}");
    let whole = cell();
    for (settings, cluster) in [
        ("{cell: {processors: 0}}", &whole),
        ("{cell: {network: 11}}", &whole),
        ("{cell: {spread: 4}}", &whole),
        ("{cell: {peak: 0.5}}", &whole),
        ("{cell: {batch: 0s}}", &whole),
        ("{cell: {history: {window: 1min}}}", &whole),
        ("{cell: {history: {percentile: 0}}}", &whole),
        ("{cell: {restart: 1000d}}", &whole),
        ("{cell: {tasks_per_job: 20000}}", &whole),
        ("{cell: {constrained: {tag: ssd, share: 0.1}}}", &whole),
        ("{cell: {batch: 1s, service: 1s}}", &whole),
        ("{cell: {}}", &mesh),
        ("{cell: {}}", &unstated),
        ("{cell: {}}", &none),
    ] {
        let error = read(&source(settings), b"", cluster, 1, 100.0 * 86_400.0).expect_err(settings);
        table += &format!("{error}\n");
    }
    for settings in ["{cell: {tolerant: 2}}", "{cell: {proccessors: 1}}", "{cell: {unknown_peak: most}}"] {
        let error = read_yaml::<Source>("cell", settings).expect_err(settings);
        table += &format!("{error}\n");
    }
    insta::assert_snapshot!(table);
}

#[test]
fn task_lists_are_read_with_defaults_or_rejected_with_their_line() {
    let mut table = String::new();
    let head = "arrive_s,duration_s,cpus,job,egress_bps,peak_factor,tolerant\n";
    for text in [
        "arrive_s,duration_s,cpus\n0,60,0.5\n1.5,3600,4\n".to_owned(),
        format!("{head}0,60,1,a,1e6,2,true\n0,90,1,a,1e6,2,true\n3,5,1,,0,,\n"),
        format!("{head}5,60,1,a,1e6,2,true\n0,90,1,a,1e6,2,true\n"),
        format!("{head}0,-1,1,a,1e6,2,true\n"),
        format!("{head}0,1e99,1,a,1e6,2,true\n"),
        format!("{head}0,60,many,a,1e6,2,true\n"),
        format!("{head}0,60,1e9,a,1e6,2,true\n"),
        format!("{head}0,60,1,a,1e18,2,true\n"),
        format!("{head}0,60,1,a,1e6,0.5,true\n"),
        format!("{head}0,60,1,a,1e6,2,perhaps\n"),
        "arrive_s,cpus\n0,1\n".to_owned(),
    ] {
        let read = read(&source("{tasks: {file: tasks.csv}}"), text.as_bytes(), &cell(), 1, 600.0);
        table += &match read {
            Ok(loaded) => {
                let Workload { tasks, cell_kinds, cell_jobs, .. } = &loaded.workload;
                let jobs: Vec<&str> = cell_jobs.iter().map(|job| job.name.as_str()).collect();
                format!(
                    "{}: {} tasks, {} kinds, {jobs:?}\n",
                    loaded.provenance,
                    tasks.len(),
                    cell_kinds.len()
                )
            }
            Err(error) => format!("{error}\n"),
        };
    }
    insta::assert_snapshot!(table);
}
