//! Jobs on the fluid network: their fetches before writes, their communication times, and comparisons of these. The
//! tests also cover the settings of Sinbad's evaluation without racks, without disks, or with writers that could be
//! anywhere.

use leeward_fabric::{Bytes, HostId};
use leeward_scenarios::record::{File, Job, Record};
use leeward_scenarios::scenario::Scenario;
use leeward_scenarios::summary::{Comparison, Summary};
use leeward_testing::clusters::RACKS_4X4_WITH_DISKS;
use proptest::prelude::*;

use crate::support::runs::{folder, run};

const IN_MEMORY: &str = "racks: 4\nhosts_per_rack: 4\nnic: 1Gbps\noversubscription: 4\n";
const GIGABYTE: u64 = 1_000_000_000;

/// Creates a scenario from its text `more`, with files by name and text.
fn scenario(name: &str, cluster: &str, files: &[(&str, &str)], more: &str) -> Scenario {
    let folder = folder("jobs", name);
    for (file, text) in [("cluster.yaml", cluster)].iter().chain(files) {
        std::fs::write(folder.join(file), text).expect("the folder of the test can be written to");
    }
    let text = format!("cluster: cluster.yaml\n{more}");
    Scenario::from_text("scenario.yaml", &text, &folder, None).expect("the scenario of the test is valid")
}

/// A line of a SWIM trace: submission, input, shuffle, output.
fn job(number: usize, at: u32, [input, shuffle, output]: [u64; 3]) -> String {
    format!("job{number}\t{at}\t0\t{input}\t{shuffle}\t{output}\n")
}

const PHASES: &str = "workloads: [{swim: {file: jobs.tsv, phases: {mappers: 1}}}]\nhorizon: 10min\n";

#[test]
fn a_task_maps_then_fetches_and_only_then_writes() {
    // A map of 100 MB takes 2 s at 50 MB/s, and a gigabyte at 1 Gb/s takes 8 s.
    let jobs = job(0, 3, [100_000_000, GIGABYTE, 50_000_000]);
    let record = run(&scenario("phases", RACKS_4X4_WITH_DISKS, &[("jobs.tsv", &jobs)], PHASES), "uniform");
    let (file, job) = (&record.files[0], &record.jobs[0]);
    let fetched = file.fetches.0 as f64 * 8.0 / 1e9;
    assert_eq!(fetched, 8.0, "one mapper, on another host");
    assert_eq!((job.start, file.start), (3.0, 5.0));
    assert!((file.write_start.unwrap() - 5.0 - fetched).abs() < 1e-9, "{file:?}");
    assert_eq!(record.blocks[0].asked, file.write_start.unwrap());
    assert!((file.write_time().unwrap() - 1.0).abs() < 1e-9, "50 MB at the rate of a disk");
    assert_eq!((job.write_start, job.finished), (file.write_start, file.finished));
    assert!((job.communication - file.duration().unwrap()).abs() < 1e-9);
    assert!((job.write_share().unwrap() - 1.0 / (2.0 + fetched + 1.0)).abs() < 1e-9);
}

#[test]
fn a_slow_shuffle_delays_writes() {
    let jobs: String = (0..8).map(|i| job(i, 10, [1, GIGABYTE / 10, 1000])).collect();
    let slow = "t_s,link,rate_bps\n0,r0:downlink,900e6\n0,r1:downlink,900e6\n0,r2:downlink,900e6\n0,r3:downlink,900e6\n";
    let last_write_start = |rates: &str| {
        let more =
            format!("{}workloads: [{{swim: {{file: jobs.tsv, phases: {{}}}}}}{rates}]\n", "horizon: 10min\n");
        let files = [("jobs.tsv", jobs.as_str()), ("rates.csv", slow)];
        let record = run(&scenario("slow", RACKS_4X4_WITH_DISKS, &files, &more), "uniform");
        record.files.iter().map(|file| file.write_start.unwrap()).fold(0.0, f64::max)
    };
    let (free, full) = (last_write_start(""), last_write_start(", {rates: {file: rates.csv}}"));
    assert!(full > free + 1.0, "last write begins at {free} s, with full links at {full} s");
}

#[test]
fn tasks_that_fetch_on_a_failed_host_are_abandoned() {
    let jobs = job(0, 0, [1, 100 * GIGABYTE, 4 * GIGABYTE]);
    let whole = scenario("given-up", RACKS_4X4_WITH_DISKS, &[("jobs.tsv", &jobs)], PHASES);
    let whole = run(&whole, "uniform");
    let lost = whole.files.iter().position(|file| file.fetches.0 > 0).expect("most hosts fetch");
    let host = whole.files[lost].writer;
    let events = format!("{PHASES}events: [{{at: 5s, host: r{}h{}, state: down}}]\n", host.0 / 4, host.0 % 4);
    let record = run(&scenario("given-up", RACKS_4X4_WITH_DISKS, &[("jobs.tsv", &jobs)], &events), "uniform");
    assert_eq!((record.files[lost].write_start, record.files[lost].finished), (None, None));
    assert_eq!(record.jobs[0].finished, None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn jobs_communicate_within_their_duration_and_fetch_every_byte(
        jobs in prop::collection::vec((0u32..100, 0u64..GIGABYTE, 0u64..GIGABYTE, 1u64..3 * GIGABYTE), 1..8),
        // Some policies place nothing without racks to spread over or without the storage of disks.
        policy in prop::sample::select(vec!["uniform", "sinbad"]), seed in 0u64..1000,
    ) {
        let mut jobs = jobs;
        jobs.sort();
        let text: String = jobs.iter().enumerate().map(|(i, j)| job(i, j.0, [j.1, j.2, j.3])).collect();
        let more = format!("workloads: [{{swim: {{file: jobs.tsv, phases: {{}}, replicas: 1}}}}]\nhorizon: 10min\nfault_domains: 0\nseed: {seed}\n");
        let record = run(&scenario("bounds", RACKS_4X4_WITH_DISKS, &[("jobs.tsv", &text)], &more), policy);
        for (index, job_record) in record.jobs.iter().enumerate() {
            let of_job = |file: &&File| file.job == Some(index as u32);
            let tasks: Vec<&File> = record.files.iter().filter(of_job).collect();
            let first = tasks.iter().map(|file| file.start).fold(f64::INFINITY, f64::min);
            let longest = tasks.iter().filter_map(|file| file.duration()).fold(0.0, f64::max);
            let communicated = job_record.communicating().unwrap();
            prop_assert!(communicated <= job_record.finished.unwrap() - first + 1e-9);
            prop_assert!(communicated >= longest - 1e-9);
            prop_assert_eq!(job_record.bytes.0, jobs[index].3);
            prop_assert!((1..=5).contains(&job_record.bin().unwrap()));
            let fetched: u64 = tasks.iter().map(|file| file.fetches.0).sum();
            prop_assert!(fetched <= jobs[index].2);
        }
        // With one copy on the writer itself, only fetches use the network.
        let fetched: u64 = record.files.iter().map(|file| file.fetches.0).sum();
        let into_hosts = record.balance.iter().filter(|tier| tier.kind == leeward_fabric::ResourceKind::HostIngress);
        let bits: f64 = into_hosts.map(|tier| tier.mean * 16.0 * 10.0).sum();
        prop_assert!((bits - fetched as f64 * 8.0).abs() <= 1e-6 * bits + 1.0, "{bits} bits, {fetched} bytes");
    }
}

/// Creates a record of jobs (bytes, seconds of communication), each with one task that writes from beginning
/// to end.
fn record(jobs: &[(u64, f64)]) -> Record {
    let task = |(job, &(bytes, seconds)): (u32, &(u64, f64))| File {
        job: Some(job),
        writer: HostId(0),
        bytes: Bytes(bytes),
        fetches: Bytes(0),
        start: 10.0,
        write_start: Some(10.0),
        finished: Some(10.0 + seconds),
        attempts: 1,
    };
    let job = |&(bytes, seconds): &(u64, f64)| Job {
        name: String::new(),
        start: 0.0,
        bytes: Bytes(bytes),
        write_start: Some(10.0),
        communication: seconds,
        finished: Some(10.0 + seconds),
    };
    Record {
        files: (0..).zip(jobs).map(task).collect(),
        jobs: jobs.iter().map(job).collect(),
        ..Record::default()
    }
}

#[test]
fn a_job_is_weighted_by_its_writes_and_grouped_by_its_baseline() {
    // A large job that takes half the time, and a small job that takes twice the time.
    let (baseline, ours) = (
        record(&[(9 * GIGABYTE, 20.0), (GIGABYTE / 100, 2.0)]),
        record(&[(9 * GIGABYTE, 10.0), (GIGABYTE / 100, 4.0)]),
    );
    let compared = Comparison::of(&ours, &baseline, 0.0);
    assert_eq!(compared.communication.factor, 22.0 / 14.0);
    assert_eq!(compared.communication_by_bytes, (9.0 * 20.0 + 0.01 * 2.0) / (9.0 * 10.0 + 0.01 * 4.0));
    assert_eq!((compared.files, compared.writes), (compared.communication, compared.communication));
    // The jobs write for 20 of 30 s and for 2 of 12 s. By size, 10 MB is in the first group and 9 GB in the third.
    let counts = |groups: &[leeward_scenarios::summary::Group]| -> Vec<u64> {
        groups.iter().map(|group| group.jobs.count).collect()
    };
    assert_eq!(counts(&compared.by_write_share), [1, 0, 1, 0, 0]);
    assert_eq!(counts(&compared.by_bytes), [1, 0, 1, 0, 0]);
    assert_eq!(compared.by_bytes[2].communication_by_bytes, 2.0);
    assert_eq!(compared.by_bytes[1].communication_by_bytes, 1.0);
    // Jobs submitted before the end of the warm-up are left out.
    assert_eq!(Comparison::of(&ours, &baseline, 5.0).communication.count, 0);
    assert_eq!(Comparison::of(&ours, &baseline, 5.0).files.count, 2);
}

#[test]
fn a_flexible_writer_is_not_limited_by_its_own_links() {
    let full =
        "t_s,link,rate_bps\n0,r0:uplink,990e6\n0,r1:uplink,990e6\n0,r2:uplink,990e6\n0,r3:uplink,990e6\n";
    let seconds = |flexible: bool| {
        let more = format!(
            "workloads: [{{blocks: {{file: b.csv, flexible: {flexible}}}}}, {{rates: {{file: r.csv}}}}]\nhorizon: 2min\n"
        );
        let blocks = "t_arrival_s,writer,size_bytes\n1,r0h0,50000000\n";
        let record = run(
            &scenario("flexible", RACKS_4X4_WITH_DISKS, &[("b.csv", blocks), ("r.csv", full)], &more),
            "uniform",
        );
        record.blocks[0].duration().unwrap()
    };
    let (fixed, flexible) = (seconds(false), seconds(true));
    assert!((flexible - 1.0).abs() < 1e-9, "at the rate of a disk, not {flexible} s");
    assert!((fixed - 40.0).abs() < 1e-6, "50 MB at 10 Mb/s, not {fixed} s");
}

#[test]
fn tasks_with_a_choice_leave_racks_with_busy_uplinks() {
    let rates = "t_s,link,rate_bps\n0,r0:uplink,990e6\n0,r2:uplink,500e6\n";
    let blocks: String = (0..40).map(|at| format!("{},r0h{},100000000\n", 5 + at, at % 4)).collect();
    let blocks = format!("t_arrival_s,writer,size_bytes\n{blocks}");
    let writers = |choices: &str, policy: &str| {
        let more = format!(
            "workloads: [{{blocks: {{file: b.csv}}}}, {{rates: {{file: r.csv}}}}]\nhorizon: 3h\n{choices}"
        );
        let files = [("b.csv", blocks.as_str()), ("r.csv", rates)];
        let record = run(&scenario("choices", RACKS_4X4_WITH_DISKS, &files, &more), policy);
        assert!(record.files.iter().all(|file| file.finished.is_some()));
        let in_rack = |rack| record.files.iter().filter(|file| file.writer.0 / 4 == rack).count();
        [in_rack(0), in_rack(1), in_rack(2), in_rack(3)]
    };
    assert_eq!(writers("", "uniform"), [40, 0, 0, 0]);
    for policy in ["uniform", "sinbad", "leeward"] {
        let all = writers("writer_choices: 16\n", policy);
        assert!(all[0] == 0 && all[2] < all[1].min(all[3]), "{policy}: {all:?} by rack");
        let two = writers("writer_choices: 2\n", policy);
        assert!(two[0] < 20, "{policy}: {two:?} by rack");
    }
}

#[test]
fn a_paced_writer_writes_no_faster_than_it_produces() {
    let cluster = "racks: 10\nhosts_per_rack: 10\nnic: 10Gbps\noversubscription: 1\n\
        devices: [{read: 1GB/s, write: 1GB/s}]\n";
    for coding in ["", ", coding: 6+3"] {
        let more = format!(
            "workloads: [{{facebook: {{writers: paced, background: none{coding}}}}}]\nhorizon: 5min\n"
        );
        let scenario = scenario("paced", cluster, &[], &more);
        let files = &scenario.arrivals(scenario.seed).expect("a valid scenario").workload.files;
        let record = run(&scenario, "uniform");
        let (mut blocks, mut at_pace) = (0, 0);
        for block in record.blocks.iter().filter(|block| block.finished.is_some()) {
            let producing = block.bytes.0 as f64 / files[block.file as usize].pace;
            let seconds = block.duration().unwrap();
            assert!(seconds >= producing * (1.0 - 1e-9), "{seconds} s, produced in {producing} s");
            blocks += 1;
            at_pace += u32::from(seconds <= producing * 1.001);
        }
        assert!(
            blocks > 100 && at_pace * 10 > blocks * 9,
            "{at_pace} of {blocks} blocks at their task's pace"
        );
    }
}

#[test]
fn without_disks_only_the_network_limits_a_block() {
    let blocks = "t_arrival_s,writer,size_bytes\n5,r0h0,250000000\n";
    let more = "workloads: [{blocks: {file: b.csv}}]\nhorizon: 1min\n";
    // The baseline, and the policies that avoid busy links; the others choose racks by other rules.
    for policy in ["uniform", "sinbad", "sinbad-file", "leeward"] {
        let record = run(&scenario("memory", IN_MEMORY, &[("b.csv", blocks)], more), policy);
        let seconds = record.blocks[0].duration().unwrap();
        assert!((seconds - 2.0).abs() < 1e-9, "{policy}: 250 MB at 1 Gb/s, not {seconds} s");
    }
}

#[test]
fn without_a_topology_hosts_act_as_fault_domains() {
    // Sinbad's runs on 100 machines: every machine is a fault domain, and its own links become full.
    let cluster = "shape: hose\nhosts: 100\nnic: 1Gbps\ndevices: [{read: 55MB/s, write: 55MB/s}]\n";
    let more = "workloads: [{facebook: {phases: {}}}]\nhorizon: 10min\nwarmup: 1min\n";
    let scenario = scenario("machines", cluster, &[], more);
    for policy in ["uniform", "sinbad"] {
        let record = run(&scenario, policy);
        let summary = Summary::of(&record, &scenario.cluster.fabric, 0.75, 60.0);
        assert!(summary.blocks > 100 && summary.blocks_unfinished == 0, "{policy}: {summary:?}");
        assert!(summary.host_ingress_cv.is_some() && summary.rack_uplink_cv.is_none());
        for block in &record.blocks {
            let mut hosts = block.copies.clone();
            hosts.sort();
            hosts.dedup();
            assert_eq!(hosts.len(), 3, "{policy}: copies on different machines");
        }
    }
}
