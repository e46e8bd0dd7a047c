//! Targets for the files of traffic sources.

use leeward_fabric::input::{InputError, Text, read_yaml};
use leeward_workloads::{Inputs, Loaded, Source};

use crate::{CLUSTER, HORIZON, assert_one_line, utf8_prefix};

/// Lists of block writes, plain or gzip.
pub fn blocks(bytes: &[u8]) {
    read("{blocks: {file: f, block: 1GB}}", bytes);
}

/// Coflow traces, plain or gzip.
pub fn coflow(bytes: &[u8]) {
    read("{coflow: {file: f, spread: hosts}}", bytes);
}

/// Lists of flows, plain or gzip.
pub fn flows(bytes: &[u8]) {
    read("{flows: {file: f}}", bytes);
}

/// Square traffic matrices, plain or gzip.
pub fn matrix(bytes: &[u8]) {
    read("{matrix: {file: f, every: 30s}}", bytes);
}

/// Traffic matrices as lists of pairs, plain or gzip.
pub fn pairs(bytes: &[u8]) {
    read("{matrix: {file: f, pairs: [src, dst, bytes], fold: true, rate: 1Gbps}}", bytes);
}

/// SWIM traces of jobs that shuffle, plain or gzip.
pub fn phases(bytes: &[u8]) {
    read("{swim: {file: f, bytes_per_writer: 1TB, phases: {mappers: 4}}}", bytes);
}

/// Lists of rates, plain or gzip.
pub fn rates(bytes: &[u8]) {
    read("{rates: {file: f, from: 1s, duration: 60s}}", bytes);
}

/// SWIM traces, plain or gzip.
pub fn swim(bytes: &[u8]) {
    read("{swim: {file: f, bytes_per_writer: 1TB}}", bytes);
}

/// Lists of a cell's tasks, plain or gzip.
pub fn tasks(bytes: &[u8]) {
    read("{tasks: {file: f, from: 1s, duration: 60s}}", bytes);
}

/// Settings of sources, and the workload that `facebook` settings generate. All other sources are only parsed.
pub fn source(bytes: &[u8]) {
    let text = utf8_prefix(bytes);
    match read_yaml::<Source>("settings", text) {
        Ok(source @ Source::Facebook(_)) => {
            check(&source.load(&CLUSTER, &Inputs::default(), 1, HORIZON));
        }
        // A name from the fuzzer must not open a file of this machine.
        Ok(_) => {}
        Err(error) => assert_one_line(&error),
    }
}

/// Reads `bytes` as the file of a source with these settings and checks the result.
fn read(settings: &str, bytes: &[u8]) {
    let source = read_yaml("settings", settings).expect("valid settings");
    let read = Text::from_bytes("file", bytes).and_then(|text| match &source {
        Source::Coflow(settings) => settings.read(text, &CLUSTER, 1, HORIZON),
        Source::Swim(settings) => settings.read(text, &CLUSTER, 1, HORIZON),
        Source::Blocks(settings) => settings.read(text, &CLUSTER, HORIZON),
        Source::Flows(settings) => settings.read(text, &CLUSTER, HORIZON),
        Source::Matrix(settings) => settings.read(text, &CLUSTER, 1, HORIZON),
        Source::Rates(settings) => settings.read(text, &CLUSTER, HORIZON),
        Source::Tasks(settings) => settings.read(text, &CLUSTER, HORIZON),
        Source::Facebook(_) | Source::Cell(_) | Source::Reads(_) | Source::App(_) => {
            unreachable!("the targets above read files of one list")
        }
    });
    check(&read);
}

/// Checks a result. An error is one short line. The times of a workload are finite, in order and within the run. Its
/// resources and hosts belong to the cluster.
fn check(read: &Result<Loaded, InputError>) {
    let loaded = match read {
        Ok(loaded) => loaded,
        Err(error) => return assert_one_line(error),
    };
    let workload = &loaded.workload;
    let in_order = |times: Vec<f64>| {
        assert!(times.iter().all(|at| (0.0..HORIZON).contains(at)) && times.is_sorted());
    };
    in_order(workload.flows.iter().map(|flow| flow.start).collect());
    in_order(workload.rates.iter().map(|change| change.at).collect());
    in_order(workload.files.iter().map(|file| file.start).collect());
    in_order(workload.tasks.iter().map(|task| task.arrive).collect());
    assert!(workload.jobs.iter().all(|job| job.start.is_finite()));
    for task in &workload.tasks {
        assert!(task.duration.is_finite() && task.duration >= 0.0);
        assert!((task.job as usize) < workload.cell_jobs.len());
        assert!((task.kind as usize) < workload.cell_kinds.len());
    }
    in_order(workload.capacities.iter().map(|change| change.at).collect());
    for change in &workload.capacities {
        assert!(change.capacity.0 >= 0 && change.resource.index() < CLUSTER.fabric.resource_count());
    }
    for change in &workload.rates {
        assert!(change.rate.0 >= 0 && change.resource.index() < CLUSTER.fabric.resource_count());
    }
    for file in &workload.files {
        assert!(file.bytes.0 > 0 && file.block.0 > 0 && file.replicas > 0);
        assert!(file.writer.index() < CLUSTER.fabric.host_count());
        assert!(file.job.is_none_or(|job| (job as usize) < workload.jobs.len()));
        for fetch in &file.fetches {
            assert!(fetch.bytes.0 > 0 && fetch.from.index() < CLUSTER.fabric.host_count());
        }
    }
}
