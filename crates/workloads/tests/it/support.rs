//! Helpers of the tests of workloads.

use std::collections::BTreeSet;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use leeward_fabric::input::{InputError, Text, read_yaml};
use leeward_fabric::{Cluster, HostId, Nanos};
use leeward_testing::clusters::cluster;
use leeward_workloads::{Loaded, Source, Workload};

/// The cluster of Sinbad's traces: 150 racks of 20 hosts with 1 Gb/s each, 2 Gb/s into and out of a rack.
pub fn sinbad() -> Cluster {
    tree(150, 20)
}

/// A tree with racks like the racks of Sinbad's cluster.
pub fn tree(racks: usize, hosts: usize) -> Cluster {
    cluster(&format!("{{racks: {racks}, hosts_per_rack: {hosts}, nic: 1Gbps, oversubscription: 10}}"))
}

/// A source from its settings.
pub fn source(settings: &str) -> Source {
    read_yaml("settings", settings).expect("valid settings")
}

/// Reads `bytes` as the file of a source with a file, regardless of the file's name in its settings.
pub fn read(
    source: &Source,
    bytes: &[u8],
    cluster: &Cluster,
    seed: u64,
    horizon: f64,
) -> Result<Loaded, InputError> {
    let text = |file: &str| Text::from_bytes(file, bytes);
    match source {
        Source::Coflow(settings) => settings.read(text(&settings.file)?, cluster, seed, horizon),
        Source::Swim(settings) => settings.read(text(&settings.file)?, cluster, seed, horizon),
        Source::Blocks(settings) => settings.read(text(&settings.file)?, cluster, horizon),
        Source::Flows(settings) => settings.read(text(&settings.file)?, cluster, horizon),
        Source::Matrix(settings) => settings.read(text(&settings.file)?, cluster, seed, horizon),
        Source::Rates(settings) => settings.read(text(&settings.file)?, cluster, horizon),
        Source::Facebook(settings) => settings.generate(cluster, seed, horizon),
        Source::Cell(settings) => settings.generate(cluster, seed, horizon),
        Source::Tasks(settings) => settings.read(text(&settings.file)?, cluster, horizon),
        Source::Reads(settings) => settings.generate(cluster, seed, horizon),
        Source::App(_) => unreachable!("an app may have two files, so it is loaded from a folder"),
    }
}

/// Small valid files for `tree(3, 2)`: the settings that read each file, its name and its text.
pub const VALID: [(&str, &str); 8] = [
    (
        "{coflow: {file: shuffles.txt}}",
        "3 3\n1 0 2 0 1 2 1:10.5 2:3\n2 250 1 2 1 2:1\n3 250.5 3 0 1 2 2 0:7 1:0\n",
    ),
    (
        "{swim: {file: jobs.tsv, bytes_per_writer: 100MB}}",
        "job0\t1\t1\t500\t20\t1000\njob1\t1\t0\t1000\t0\t0\tinput7\t\t\njob2\t9\t8\t1\t2\t350000001\n",
    ),
    (
        "{flows: {file: flows.csv}}",
        "flow_id,t_arrival_s,src,dst,size_bytes\n0,0.0,r0h0,r1h1,100\n1,0.5,4,r2,2.5e6\n2,0.5,\"r0\",r0,7\n",
    ),
    (
        "{rates: {file: rates.csv}}",
        "t_s,link,rate_bps\n0,r0:uplink,1000\n0,r2h1:ingress,5e8\n2.5,r0:uplink,0\n",
    ),
    (
        "{swim: {file: phases.tsv, bytes_per_writer: 100MB, phases: {mappers: 3, rate: 100MB/s}}}",
        "job0\t1\t1\t500000000\t70\t1000\njob1\t1\t0\t1000\t9999\t0\njob2\t9\t8\t1\t2000\t350000001\n",
    ),
    (
        "{blocks: {file: blocks.csv}}",
        "t_arrival_s,job,writer,size_bytes,replicas\n0,a,r0h0,100,\n1.5,,5,3e8,2\n2,a,r1h1,0,\n2,b,r1h1,7,1\n",
    ),
    ("{matrix: {file: matrix.csv, every: 30s}}", "0,7,0,0\n1,5,2.5,0\n1e9,0,0,0\n0,0,0,0\n"),
    (
        "{matrix: {file: pairs.csv, pairs: [src, dst, share], numbers: racks, rate: 1Gbps, duration: 50s}}",
        "#id,src,dst,share\n9,0,2,0.5\n8,1,1,0.1\n7,2,1,0.4\n",
    ),
];

/// `bytes` as a gzip file.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut writer = GzEncoder::new(Vec::new(), Compression::default());
    writer.write_all(bytes).and_then(|()| writer.finish()).expect("memory does not fail")
}

/// Properties of every workload: times in order and within the run, finite numbers, existing jobs.
pub fn check(workload: &Workload, cluster: &Cluster, horizon: f64) {
    let within = |times: Vec<f64>| {
        assert!(times.iter().all(|&at| (0.0..horizon).contains(&at)), "outside the run");
        assert!(times.is_sorted(), "not in order of time");
    };
    within(workload.flows.iter().map(|flow| flow.start).collect());
    within(workload.rates.iter().map(|change| change.at).collect());
    within(workload.files.iter().map(|file| file.start).collect());
    let submitted: Vec<f64> = workload.jobs.iter().map(|job| job.start).collect();
    assert!(submitted.is_sorted() && submitted.iter().all(|at| at.is_finite() && *at < horizon));
    within(workload.capacities.iter().map(|change| change.at).collect());
    for change in &workload.capacities {
        assert!(change.capacity.0 >= 0 && change.resource.index() < cluster.fabric.resource_count());
    }
    for server in &workload.disk_servers {
        assert!(server.host.index() < cluster.fabric.host_count() && server.peak >= 1.0);
    }
    for change in &workload.rates {
        assert!(change.rate.0 >= 0 && change.resource.index() < cluster.fabric.resource_count());
    }
    for flow in &workload.flows {
        assert_ne!(flow.from, flow.to);
    }
    for file in &workload.files {
        assert!(file.bytes.0 > 0 && file.block.0 > 0 && file.replicas > 0 && file.pace > 0.0);
        assert!(file.writer.index() < cluster.fabric.host_count());
        assert!(file.job.is_none_or(|job| workload.jobs[job as usize].start <= file.start));
        let mappers: BTreeSet<HostId> = file.fetches.iter().map(|fetch| fetch.from).collect();
        assert!(mappers.len() == file.fetches.len() && file.fetches.iter().all(|fetch| fetch.bytes.0 > 0));
        assert!(file.remote_fetches(file.writer).all(|fetch| fetch.from != file.writer));
    }
}

/// A time for settings.
pub fn seconds(seconds: u64) -> Nanos {
    Nanos(seconds * Nanos::SECOND.0)
}
