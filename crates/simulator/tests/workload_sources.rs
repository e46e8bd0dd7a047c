//! Sources as a scenario names them: what is accepted, what the errors say, and what small files come to.

mod workload_support;

use leeward_fabric::input::{Spanned, read_yaml};
use leeward_fabric::{Bytes, Endpoint, Load};
use leeward_simulator::stage::workload::{Facebook, Source};
use serde::Deserialize;
use workload_support::{read, source, tree};

/// As in a scenario: a list, with the place of each.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    workloads: Vec<Spanned<Source>>,
}

#[test]
fn settings_are_read_with_defaults_or_refused_with_their_place() {
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
        "- facebook:\n    load: .nan",
        "- facebook:\n    shares: {reads: 2}",
        "- facebook:\n    shares: {reads: 0.5, shuffle: 0.5}",
        "- swim: {file: x, keep: 1.5}",
        "- swim: {file: x, bytes_per_writer: 100}",
    ] {
        let read = read_yaml::<Listed>("hour.yaml", &format!("workloads:\n{text}\n"));
        let read = match read {
            Ok(listed) => format!("{:?}", listed.workloads.into_iter().map(|w| w.value).collect::<Vec<_>>()),
            Err(error) => error.to_string(),
        };
        table += &format!("{text}\n    {read}\n");
    }
    insta::assert_snapshot!(table);
}

#[test]
fn settings_that_do_not_suit_the_generator_are_refused() {
    let cluster = tree(3, 2);
    let pipe = workload_support::cluster("{shape: pipe, hosts: 4, pair: 1Gbps}");
    let mut table = String::new();
    for (settings, cluster, horizon) in [
        ("{shares: {reads: 0.5, shuffle: 0.5, output: 0.1, other: 0.1}}", &cluster, 60.0),
        ("{shares: {reads: 0.5, shuffle: 0.5, output: 0, other: 0}}", &cluster, 60.0),
        ("{burstiness: 0}", &cluster, 60.0),
        ("{ceiling: 1}", &cluster, 60.0),
        ("{jobs: 0}", &cluster, 60.0),
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
fn no_load_is_an_empty_workload() {
    for settings in ["{load: 0}", "{full_blocks: 0}"] {
        let loaded = read(&source(&format!("{{facebook: {settings}}}")), b"", &tree(3, 2), 0, 60.0).unwrap();
        assert_eq!(loaded.workload, Default::default());
    }
}

#[test]
fn the_schema_of_a_source_names_every_kind_and_the_defaults_are_valid() {
    let schema = schemars::schema_for!(Source);
    let text = format!("{schema:?}");
    for kind in ["facebook", "coflow", "swim", "flows", "rates"] {
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
    // The fourth goes from a host to itself, the fifth comes after the window; half a byte is rounded.
    assert_eq!(
        flows,
        [
            (0.0, host("r0h0"), host("r1h0"), 50),
            (2.0, host("r0h1"), rack("r2"), 5),
            (2.0, rack("r1"), host("r2h1"), 1)
        ]
    );
    let refused = load(", numbers: racks").unwrap_err().to_string();
    assert_eq!(refused, "f:4: dst: 5: this cluster has racks 0 to 2");
}

#[test]
fn a_window_of_rates_begins_with_what_links_carry_and_ends_with_nothing() {
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
    let named = |name: &str| cluster.fabric.resource(name).unwrap();
    let (uplink, egress) = (named("r0:uplink"), named("r1h0:egress"));
    let found: Vec<_> = rates.workload.rates.iter().map(|r| (r.at, r.resource, r.rate)).collect();
    let expected = [
        (0.0, egress, Load(3)),
        (0.0, uplink, Load(8)),
        (3.0, uplink, Load(0)),
        (4.0, egress, Load(0)),
        (4.0, uplink, Load(0)),
    ];
    assert_eq!(found, expected);
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
