//! Stragglers and tasks that fail, from scenario file to record.

use std::collections::{BTreeMap, BTreeSet};

use leeward_fabric::Bytes;
use leeward_scenarios::record::Record;
use leeward_scenarios::scenario::Scenario;
use leeward_testing::clusters::RACKS_4X4_WITH_DISKS;
use leeward_workloads::Failure;
use proptest::prelude::*;

use crate::support::runs::{folder, run};

const DISK: f64 = 50e6;

/// Creates a scenario in its own folder: one file of the given bytes every ten seconds, by one host after another.
fn scenario(name: &str, files: &[u64], more: &str) -> Scenario {
    let folder = folder("faults", name);
    let line = |(at, bytes): (usize, &u64)| format!("{},job{},{},{bytes}\n", at * 10, at / 2, at * 5 % 16);
    let list: String = files.iter().enumerate().map(line).collect();
    for (file, text) in [
        ("cluster.yaml", RACKS_4X4_WITH_DISKS.to_owned()),
        ("blocks.csv", format!("t_arrival_s,job,writer,size_bytes\n{list}")),
    ] {
        std::fs::write(folder.join(file), text).expect("the folder of the test can be written to");
    }
    let text = format!(
        "cluster: cluster.yaml\nworkloads:\n  - blocks: {{file: blocks.csv, block: 16MiB}}\n{more}horizon: 10min\n"
    );
    Scenario::from_text("scenario.yaml", &text, &folder, None).expect("the scenario of the test is valid")
}

/// Returns the failures of a scenario's files.
fn failures(scenario: &Scenario) -> Vec<Option<Failure>> {
    let files = &scenario.arrivals(scenario.seed).expect("a valid scenario").workload.files;
    files.iter().map(|file| file.failure).collect()
}

/// Checks the record of a run without failures of hosts.
fn check(record: &Record, failures: &[Option<Failure>]) {
    let mut deleted = vec![0; record.files.len()];
    let mut written = vec![0; record.files.len()];
    let mut indices = BTreeMap::new();
    for block in &record.blocks {
        let file = block.file as usize;
        assert!(block.finished.is_some(), "{block:?}");
        assert!(indices.insert((block.file, block.index), ()).is_none(), "one row for each block");
        match block.deleted {
            Some(at) => {
                deleted[file] += 1;
                assert!(block.finished.is_some_and(|finished| finished <= at));
            }
            None => {
                written[file] += block.bytes.0;
                assert_eq!(block.writer, record.files[file].writer);
            }
        }
    }
    for (file, failure) in record.files.iter().zip(failures) {
        assert_eq!(file.attempts, 1 + u32::from(failure.is_some()));
        assert!(failure.is_none_or(|failure| failure.host == file.writer) && file.finished.is_some());
    }
    let expected: Vec<u64> =
        failures.iter().map(|failure| failure.map_or(0, |failure| failure.blocks)).collect();
    assert_eq!(deleted, expected);
    let bytes: Vec<u64> = record.files.iter().map(|file| file.bytes.0).collect();
    assert_eq!(written, bytes);
    let stored: u64 = record.hosts.iter().map(|host| host.bytes.0).sum();
    assert_eq!(stored, 3 * bytes.iter().sum::<u64>());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_task_that_fails_writes_its_whole_file_again_elsewhere(
        files in prop::collection::vec(1u64..200 << 20, 1..12),
        share in 0.1f64..=1.0,
        policy in prop::sample::select(vec!["uniform", "sinbad:threshold=1MB", "sinbad-file:interval=2s", "leeward"]),
        seed in 0u64..1000,
    ) {
        let more = format!("faults: {{failures: {share}}}\nseed: {seed}\n");
        let scenario = scenario("again", &files, &more);
        check(&run(&scenario, policy), &failures(&scenario));
    }
}

#[test]
fn a_straggler_writes_at_its_pace() {
    let bytes = 100_000_000;
    let scenario = scenario("slow", &[bytes; 8], "faults: {stragglers: 1, slowdown: 5}\n");
    let record = run(&scenario, "uniform");
    for file in &record.files {
        let seconds = file.duration().expect("every file is written");
        let expected = bytes as f64 / DISK * 5.0;
        assert!((seconds - expected).abs() < 1e-6, "{seconds} s, expected {expected} s");
    }
}

#[test]
fn a_task_that_fails_ends_its_job_later() {
    let ends = |more: &str| {
        let record = run(&scenario("later", &[100 << 20; 8], more), "uniform");
        record.jobs.iter().map(|job| job.finished.expect("every job ends")).collect::<Vec<f64>>()
    };
    let (all, none) = (ends("faults: {failures: 1}\n"), ends(""));
    assert!(all.iter().zip(&none).all(|(failed, whole)| failed > whole));
}

#[test]
fn nothing_reads_the_blocks_of_an_attempt_that_fails() {
    let reads = "  - reads: {per_second: 20, size: 1MB, start: 1s, duration: 200s}\n";
    let scenario = scenario("reads", &[100 << 20; 16], &format!("{reads}faults: {{failures: 0.5}}\n"));
    let record = run(&scenario, "uniform");
    let of_failed = record.blocks.iter().filter(|block| block.deleted.is_some()).count();
    assert!(of_failed > 5 && record.reads.len() > 1000);
    assert!(record.reads.iter().all(|read| record.blocks[read.block as usize].deleted.is_none()));
}

#[test]
fn each_attempt_fetches_all_that_is_not_on_its_host() {
    let folder = folder("faults", "fetches");
    std::fs::write(folder.join("cluster.yaml"), RACKS_4X4_WITH_DISKS).expect("a folder");
    std::fs::write(folder.join("jobs.tsv"), "job0\t3\t0\t100000000\t1000000000\t50000000\n")
        .expect("a folder");
    let mut cases = BTreeSet::new();
    for seed in 0..100 {
        let text = format!(
            "cluster: cluster.yaml\nworkloads: [{{swim: {{file: jobs.tsv, phases: {{mappers: 1}}}}}}]\n\
                horizon: 1min\nfaults: {{failures: 1}}\nseed: {seed}\n"
        );
        let scenario = Scenario::from_text("scenario.yaml", &text, &folder, None).expect("a valid scenario");
        let mapper = scenario.arrivals(seed).expect("a valid trace").workload.files[0].fetches[0].from;
        let record = run(&scenario, "uniform");
        let [first, second] = [0, 1].map(|block| record.blocks[block].writer == mapper);
        // 8 s of shuffle, unless it is on the host, and 1 s at the rate of a disk.
        let expected = [first, second].map(|local| if local { 1.0 } else { 9.0 }).iter().sum::<f64>();
        let seconds = record.files[0].duration().expect("written");
        assert!((seconds - expected).abs() < 1e-6, "{seconds} s, expected {expected} s");
        assert_eq!(record.files[0].fetches, Bytes(if second { 0 } else { 1_000_000_000 }));
        cases.insert((first, second));
    }
    assert_eq!(cases, BTreeSet::from([(false, false), (false, true), (true, false)]));
}
