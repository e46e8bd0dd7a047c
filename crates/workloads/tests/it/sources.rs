//! Workload sources of a scenario: accepted settings, error messages, and the workloads of small files.

use leeward_fabric::input::{Spanned, read_yaml};
use leeward_fabric::{Bytes, Endpoint, Load};
use leeward_testing::clusters;
use leeward_workloads::{Facebook, Source};
use serde::Deserialize;

use crate::support::{read, source, tree};

/// The `workloads` of a scenario file, each with its location.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SourceList {
    workloads: Vec<Spanned<Source>>,
}

#[test]
fn settings_are_read_with_defaults_or_rejected_with_their_location() {
    let mut table = String::new();
    for text in [
        "- facebook: {}",
        "- facebook:",
        "- facebook:\n    load: 2\n    background: flows\n    block: 64MiB",
        "- coflow:\n    file: data:x/y.txt\n    from: 10min\n    spread: hosts",
        "- swim: {file: jobs.tsv, keep: 0.5, bytes_per_writer: 512MiB}",
        "- flows: {file: f.csv, numbers: racks}\n- rates: {file: r.csv, scale: 0.5}",
        "- coflow:\n    file: x\n    scael: 1",
        "- coflow:\n    file: x\n    scale: -1",
        "- coflow:\n    file: x\n    scale: lots",
        "- coflow:\n    file: x\n    from: 10",
        "- coflow:\n    from: 10s",
        "- coflow:",
        "- coflwo:\n    file: x",
        "- facebook",
        "- 3",
        "- []",
        "- {}",
        "- facebook: {}\n  coflow: {file: x}",
        "- facebook:\n    block: 0B",
        "- facebook:\n    replicas: 0",
        "- facebook:\n    background: both",
        "- facebook: {writers: paced}",
        "- facebook:\n    writers: quick",
        "- facebook:\n    load: .nan",
        "- facebook:\n    shares: {reads: 2}",
        "- facebook:\n    shares: {reads: 0.5, shuffle: 0.5}",
        "- swim: {file: x, phases: {}, flexible: true}",
        "- blocks: {file: b.csv, replicas: 2}",
        "- matrix: {file: m.csv, total: 10GB, every: 60s, order: file}",
        "- swim: {file: x, phases: {rate: 0bps}}",
        "- swim: {file: x, phases: {mappers: 0}}",
        "- swim: {file: x, phases: true}",
        "- blocks: {file: b.csv, block: 0B}",
        "- matrix: {file: m.csv, pairs: [src, dst]}",
        "- matrix: {file: m.csv, order: best}",
        "- swim: {file: x, keep: 1.5}",
        "- swim: {file: x, bytes_per_writer: 100}",
    ] {
        let result = match read_yaml::<SourceList>("hour.yaml", &format!("workloads:\n{text}\n")) {
            Ok(list) => format!("{:?}", list.workloads.into_iter().map(|w| w.value).collect::<Vec<_>>()),
            Err(error) => error.to_string(),
        };
        table += &format!("{text}\n    {result}\n");
    }
    insta::assert_snapshot!(table);
}

#[test]
fn settings_invalid_for_the_generator_are_rejected() {
    let cluster = tree(3, 2);
    let pipe = clusters::cluster("{shape: pipe, hosts: 4, pair: 1Gbps}");
    let mut table = String::new();
    for (settings, cluster, horizon) in [
        ("{shares: {reads: 0.5, shuffle: 0.5, output: 0.1, other: 0.1}}", &cluster, 60.0),
        ("{shares: {reads: 0.5, shuffle: 0.5, output: 0, other: 0}}", &cluster, 60.0),
        ("{burstiness: 0}", &cluster, 60.0),
        ("{ceiling: 1}", &cluster, 60.0),
        ("{jobs: 0}", &cluster, 60.0),
        ("{phases: {}, shares: {reads: 0, shuffle: 0.5, output: 0, other: 0.5}}", &cluster, 60.0),
        ("{writers: none, phases: {}}", &cluster, 60.0),
        ("{writers: none, background: none}", &cluster, 60.0),
        ("{load: 1e6}", &cluster, 60.0),
        ("{}", &cluster, f64::INFINITY),
        ("{}", &cluster, -1.0),
        ("{}", &cluster, 1e300),
        ("{}", &pipe, 60.0),
    ] {
        let facebook = source(&format!("{{facebook: {settings}}}"));
        let error = read(&facebook, b"", cluster, 0, horizon).expect_err(settings);
        table += &format!("{settings} for {horizon:e} s: {error}\n");
    }
    insta::assert_snapshot!(table);
}

#[test]
fn a_load_of_zero_gives_an_empty_workload() {
    for settings in ["{load: 0}", "{full_blocks: 0}"] {
        let loaded = read(&source(&format!("{{facebook: {settings}}}")), b"", &tree(3, 2), 0, 60.0).unwrap();
        assert_eq!(loaded.workload, Default::default());
    }
}

#[test]
fn the_schema_of_a_source_names_every_kind_and_the_defaults_are_valid() {
    let schema = schemars::schema_for!(Source);
    let text = format!("{schema:?}");
    for kind in
        ["facebook", "coflow", "swim", "blocks", "flows", "rates", "matrix", "cell", "tasks", "reads", "app"]
    {
        assert!(text.contains(&format!("\"{kind}\"")), "{kind}");
    }
    assert!(Facebook::default().generate(&tree(3, 2), 0, 60.0).is_ok());
}

#[test]
fn names_and_numbers_of_a_flow_list_are_hosts_and_racks() {
    let fabric = tree(3, 2).fabric;
    let text = "size_bytes,note,dst,src,t_arrival_s\n100,a,r1h0,0,1\n10,b,r2,\"r0h1\",3\n1,c,5,r1,3\n7,d,2,2,4\n9,e,0,1,9\n";
    let load = |settings: &str| {
        read(&source(&format!("{{flows: {{file: f{settings}}}}}")), text.as_bytes(), &tree(3, 2), 0, 100.0)
    };
    let host = |name: &str| Endpoint::Host(fabric.host(name).unwrap());
    let rack = |name: &str| Endpoint::Domain(fabric.domain(name).unwrap());
    let flows = load(", from: 1s, duration: 5s, scale: 0.5").unwrap();
    let flows: Vec<_> = flows.workload.flows.iter().map(|f| (f.start, f.from, f.to, f.bytes.0)).collect();
    // The fourth flow goes from a host to itself, and the fifth starts after the window. Half a byte is rounded up.
    assert_eq!(
        flows,
        [
            (0.0, host("r0h0"), host("r1h0"), 50),
            (2.0, host("r0h1"), rack("r2"), 5),
            (2.0, rack("r1"), host("r2h1"), 1)
        ]
    );
    let error = load(", numbers: racks").unwrap_err().to_string();
    assert_eq!(error, "f:4: dst: 5: this cluster has racks 0 to 2");
}

#[test]
fn a_window_of_rates_starts_with_the_last_rates_before_it_and_ends_at_zero() {
    let cluster = tree(3, 2);
    let text =
        "t_s,link,rate_bps\n0,r0:uplink,8\n1,r0:uplink,16\n1,r1h0:egress,6\n5,r0:uplink,0\n7,r0:uplink,9e9\n";
    let rates = read(
        &source("{rates: {file: f, from: 2s, duration: 4s, scale: 0.5}}"),
        text.as_bytes(),
        &cluster,
        0,
        60.0,
    );
    let rates = rates.unwrap();
    let link = |name: &str| cluster.fabric.resource(name).unwrap();
    let (uplink, egress) = (link("r0:uplink"), link("r1h0:egress"));
    let actual: Vec<_> = rates.workload.rates.iter().map(|r| (r.at, r.resource, r.rate)).collect();
    let expected = [
        (0.0, egress, Load(3)),
        (0.0, uplink, Load(8)),
        (3.0, uplink, Load(0)),
        (4.0, egress, Load(0)),
        (4.0, uplink, Load(0)),
    ];
    assert_eq!(actual, expected);
    assert!(rates.provenance.ends_with("1 lines are above their link's capacity"), "{}", rates.provenance);
}

#[test]
fn a_job_is_split_evenly_over_as_many_writers_as_it_needs() {
    let text = "a\t0\t0\t1\t1\t250\nb\t10\t10\t1\t1\t100\nc\t20\t10\t1\t1\t0\nd\t30\t10\t1\t1\t7\n";
    let swim = source(
        "{swim: {file: f, from: 5s, duration: 25s, scale: 2.01, bytes_per_writer: 100B, replicas: 1}}",
    );
    let loaded = read(&swim, text.as_bytes(), &tree(3, 2), 0, 60.0).unwrap();
    let files: Vec<_> = loaded.workload.files.iter().map(|f| (f.start, f.job, f.bytes)).collect();
    assert_eq!(files, [(5.0, Some(0), Bytes(67)), (5.0, Some(0), Bytes(67)), (5.0, Some(0), Bytes(67))]);
    assert_eq!(
        loaded.provenance,
        "swim f: 2 of 4 jobs (5 s to 30 s of it), 1 of them write 201 B in 3 files"
    );
}

#[test]
fn contradictory_settings_of_matrices_and_traces_are_rejected() {
    let mesh = clusters::cluster("{shape: hose, hosts: 4, nic: 1Gbps}");
    let mut table = String::new();
    for (settings, text) in [
        ("{matrix: {file: m, total: 1GB, rate: 1Gbps}}", "0,1\n1,0\n"),
        ("{matrix: {file: m, every: 1s, rate: 1Gbps}}", "0,1\n1,0\n"),
        ("{matrix: {file: m, every: 0s}}", "0,1\n1,0\n"),
        ("{matrix: {file: m, every: 1ns}}", "0,1\n1,0\n"),
        ("{matrix: {file: m, numbers: racks}}", "0,1\n1,0\n"),
        ("{matrix: {file: m, total: 100PB}}", "0,1\n1,0\n"),
        ("{coflow: {file: c, spread: hosts, every: 0s}}", "1 1\n1 0 1 0 1 0:1\n"),
        ("{coflow: {file: c, spread: hosts, every: 1ns}}", "3 1\n1 0 1 0 1 2:1\n"),
    ] {
        let error = read(&source(settings), text.as_bytes(), &mesh, 0, 60.0).map(|loaded| loaded.provenance);
        table += &format!("{settings}: {}\n", error.expect_err(settings));
    }
    insta::assert_snapshot!(table);
}

#[test]
fn a_repeated_trace_plays_until_the_end_of_the_run() {
    let text = "3 2\n1 0 1 0 1 1:2\n2 1500 1 1 1 2:3\n";
    let coflow = source("{coflow: {file: f, duration: 2s, every: 2s}}");
    let loaded = read(&coflow, text.as_bytes(), &tree(3, 2), 0, 5.0).unwrap();
    let flows: Vec<_> = loaded.workload.flows.iter().map(|f| (f.start, f.bytes.0)).collect();
    assert_eq!(
        flows,
        [(0.0, 2_097_152), (1.5, 3_145_728), (2.0, 2_097_152), (3.5, 3_145_728), (4.0, 2_097_152)]
    );
    assert!(loaded.provenance.contains("every 2 s, 5 flows of 12.6 MB"), "{}", loaded.provenance);
}

#[test]
fn lines_of_a_block_list_are_files_grouped_into_jobs_by_name() {
    let text = "replicas,size_bytes,writer,t_arrival_s,job\n,10,r0h1,1,a\n1,20,3,2,b\n2,30,r2h0,3,a\n,0,0,4,c\n,50,0,9,a\n";
    let blocks = source("{blocks: {file: f, from: 1s, duration: 5s, scale: 0.5, block: 8B, replicas: 3}}");
    let loaded = read(&blocks, text.as_bytes(), &tree(3, 2), 0, 100.0).unwrap();
    let files = loaded.workload.files.iter();
    let files: Vec<_> = files.map(|f| (f.start, f.job, f.writer.0, f.bytes.0, f.replicas)).collect();
    assert_eq!(files, [(0.0, Some(0), 1, 5, 3), (1.0, Some(1), 3, 10, 1), (2.0, Some(0), 4, 15, 2)]);
    let jobs: Vec<_> = loaded.workload.jobs.iter().map(|job| (job.name.as_str(), job.start)).collect();
    assert_eq!(jobs, [("a", 0.0), ("b", 1.0)]);
    assert!(
        loaded.provenance.contains("3 of 5 files") && loaded.provenance.ends_with("1 empty files dropped")
    );
}

#[test]
fn the_rates_of_a_matrix_are_the_sums_of_its_pairs_per_link() {
    let cluster = tree(3, 2);
    let matrix = source("{matrix: {file: f, order: file, rate: 100Mbps, scale: 2, start: 1s, duration: 4s}}");
    // Three parts from r0h0 to r1h0, and one from r1h0 to its neighbor.
    let text = "0,0,3,0\n0,0,0,0\n0,0,9,1\n0,0,0,0\n";
    let loaded = read(&matrix, text.as_bytes(), &cluster, 0, 60.0).unwrap();
    let rate = |name: &str, at: f64| {
        let link = cluster.fabric.resource(name).unwrap();
        let change = loaded.workload.rates.iter().find(|change| change.resource == link && change.at == at);
        change.map(|change| change.rate)
    };
    for (link, load) in [
        ("r0h0:egress", 150),
        ("r0:uplink", 150),
        ("r1:downlink", 150),
        ("r1h0:ingress", 150),
        ("r1h0:egress", 50),
        ("r1h1:ingress", 50),
    ] {
        assert_eq!(rate(link, 1.0), Some(Load(load * 1_000_000)), "{link}");
        assert_eq!(rate(link, 5.0), Some(Load(0)), "{link}");
    }
    assert_eq!(loaded.workload.rates.len(), 12);
    assert!(loaded.provenance.ends_with("69.2 % within a host dropped"), "{}", loaded.provenance);
}
