//! Scenario files: their defaults, and errors that name the field.

use std::path::Path;

use leeward_operations::Scenario;

/// A scenario with a field of the last line replaced.
fn scenario(change: &str) -> String {
    let base = [
        "cluster: {racks: 2, hosts_per_rack: 2, nic: 10Gbps, rack_link: 3Gbps}",
        "media: [{name: disk, read: 600MB/s, write: 500MB/s, access: 8ms}]",
        "operations: [{name: read, kind: read, medium: disk, size: 1MB, servers: r0}]",
        "jobs: [{name: reads, rate: 10, hosts: r1, steps: [{operation: read}]}]",
        "horizon: 1s",
    ];
    let name = |line: &str| line.split(':').next().map(str::to_owned);
    let changed = name(change);
    let kept = base.iter().copied().filter(|line| name(line) != changed);
    kept.chain([change]).collect::<Vec<_>>().join("\n")
}

fn error(change: &str) -> String {
    let read = Scenario::from_text("a.yaml", &scenario(change), Path::new(""));
    match read {
        Ok(_) => panic!("accepted: {change}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_scenario_has_names_and_defaults() {
    let read = Scenario::from_text("a.yaml", &scenario("seed: 1"), Path::new("")).expect("a valid scenario");
    assert_eq!(read.name(), "operations");
    assert_eq!(read.classes(), ["all"]);
    assert_eq!(read.jobs().collect::<Vec<_>>(), ["reads"]);
    assert_eq!(read.operations().collect::<Vec<_>>(), [["read", "disk", "all", "read"]]);
    // The run is shorter than the usual window.
    assert_eq!(read.sample().as_secs_f64(), 1.0);
    let long = scenario("horizon: 40s");
    let read = Scenario::from_text("a.yaml", &long, Path::new("")).expect("a valid scenario");
    assert_eq!(read.sample().as_secs_f64(), 30.0);
}

#[test]
fn invalid_fields_are_named() {
    for (change, expected) in [
        ("cluster: none.yaml", "a.yaml: cluster: no such file"),
        ("cluster: {hosts: 3, shape: hose, nic: 1Gbps}", "a.yaml: cluster: a mesh"),
        ("cluster: {racks: 2}", "a.yaml: cluster"),
        ("horizon: 0s", "a.yaml: horizon: 0s"),
        ("warmup: 1s", "a.yaml: warmup: 1s"),
        ("sample: 0s", "a.yaml: sample: 0s"),
        ("sample: 30s", "a.yaml: sample: 30s: expected at most 1s, the horizon of 1s less the warmup of 0s"),
        ("classes: [{name: PC, weight: 0}]", "a.yaml: classes[0].weight: 0"),
        ("classes: [{name: PC, weight: 1}, {name: PC, weight: 2}]", "a.yaml: classes[1].name: `PC`"),
        ("classes: [{name: a/b, weight: 1}]", "a.yaml: classes[0].name: `a/b`: expected a name without `/`"),
        ("network: {mark_at: null}", "a.yaml: tcp.control: `dctcp` requires marks"),
        ("network: {buffer: 1KB}", "a.yaml: network.buffer: 1kB"),
        ("tcp: {mss: 70000}", "a.yaml: tcp.mss: 70000"),
        ("tcp: {min_timeout: 2s}", "a.yaml: tcp: max_timeout"),
        ("media: [{name: disk, read: 0bps, write: 1Gbps}]", "a.yaml: media[0].read: 0bps"),
        ("media: [{name: ssd, read: 1Gbps, write: 1Gbps}]", "a.yaml: operations[0].medium: `disk`"),
        (
            "operations: [{name: read, kind: read, medium: disk, size: [2MB, 1MB], servers: r0}]",
            "a.yaml: operations[0].size: 2MB to 1MB",
        ),
        (
            "operations: [{name: read, kind: read, medium: disk, size: 1MB}]",
            "a.yaml: operations[0].servers: missing",
        ),
        (
            "operations: [{name: read, kind: read, medium: disk, size: 1MB, servers: r7}]",
            "a.yaml: operations[0].servers: `r7`",
        ),
        (
            "operations: [{name: read, kind: read, medium: disk, size: 1MB, servers: r0, class: PC}]",
            "a.yaml: operations[0].class: `PC`",
        ),
        (
            "operations: [{name: read, kind: read, medium: disk, size: 1MB, servers: r0, degraded: {after: 1s}}]",
            "a.yaml: operations[0].degraded: applies to reads of chunks only",
        ),
        ("jobs: [{name: a, steps: [{operation: read}]}]", "a.yaml: jobs[0].rate: missing"),
        ("jobs: [{name: a, concurrent: 0, steps: [{operation: read}]}]", "a.yaml: jobs[0].concurrent: 0"),
        ("jobs: [{name: a, rate: 1}]", "a.yaml: jobs[0].steps: missing"),
        ("jobs: [{name: a, rate: 1, steps: [{operation: write}]}]", "a.yaml: jobs[0].steps[0].operation"),
        ("jobs: [{name: a, rate: 1, steps: [{}]}]", "a.yaml: jobs[0].steps[0].compute: expected exactly one"),
        (
            "jobs: [{name: a, rate: 1, steps: [{compute: {mean: 1s, c2: 0.5}}]}]",
            "a.yaml: jobs[0].steps[0].compute.c2: 0.5",
        ),
        (
            "jobs: [{name: a, rate: 1, workers: 2, stages: [{steps: [{operation: read}]}]}]",
            "a.yaml: jobs[0].workers: beside `stages`",
        ),
        (
            "jobs: [{name: a, rate: 1, stages: [{workers: 0, steps: [{operation: read}]}]}]",
            "a.yaml: jobs[0].stages[0].workers: 0",
        ),
        ("events: [{at: 1s, link: r9:uplink, capacity: 1Gbps}]", "a.yaml: events[0].link: `r9:uplink`"),
        ("events: [{at: 1s, link: \"r0:uplink\", capacity: 0bps}]", "a.yaml: events[0].capacity: 0bps"),
        ("chunks: {policy: ccp, stripes: 0, coding: 1+1, size: 1MB}", "a.yaml: chunks.stripes: 0"),
        ("chunks: {policy: none, stripes: 1, coding: 1+1, size: 1MB}", "a.yaml: chunks.policy"),
        ("chunks: {policy: uniform, stripes: 1, coding: 6+3, size: 1MB}", "a.yaml: chunks.stripes: stripe 0"),
    ] {
        let found = error(change);
        assert!(found.starts_with(expected), "{change}\n{found}\n{expected}");
    }
}
