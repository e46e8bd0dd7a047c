//! Workload files: one clear error for every mistake.

use leeward_fabric::input::{Files, InputError, Text};
use leeward_slo::file::Workloads;
use leeward_testing::clusters::cluster;
use leeward_testing::rows::{check_rows, contains};

use crate::support::workload_file::{CLUSTER, GOOD, error_of, error_on, files, one};

#[test]
fn each_mistake_is_one_line_with_its_place() {
    let slo = "slo: {percentile: 99.9, latency: 20ms}";
    let cases = [
        (
            one(&GOOD.replace("r1h1", "r9h9")),
            "w.yaml:3:5: workloads[0].server: `r9h9`: the cluster has no such host or device",
        ),
        (
            one(&GOOD.replace("r1h1", "r1h1:egress")),
            "workloads[0].server: `r1h1:egress`: the cluster has no such host or device",
        ),
        (
            one(GOOD).replace("client: r0h0", "client: x"),
            "workloads[0].client: `x`: the cluster has no such host",
        ),
        (one(GOOD).replace("name: a", "name: a/b"), "workloads[0].name: `a/b`: a name has letters"),
        (
            format!("{}  - {{name: a, client: r0h0, {GOOD}}}\n", one(GOOD)),
            "w.yaml:4:5: workloads[1].name: `a`: two workloads have this name",
        ),
        (
            one(&GOOD.replace("99.9", "100")),
            "workloads[0].slo.percentile: 100: expected a percentile above 0 and below 100",
        ),
        (one(&GOOD.replace("99.9", "0")), "workloads[0].slo.percentile: 0: expected"),
        (one(&GOOD.replace("99.9", ".nan")), "workloads[0].slo.percentile: NaN: expected"),
        (
            one(&GOOD.replace("99.9", "99.99")),
            "workloads[0].slo.percentile: percentile 99.99: the profile's latencies",
        ),
        (one(&GOOD.replace("20ms", "0s")), "workloads[0].slo.latency: 0s: expected a time above 0"),
        (
            one(&GOOD.replace("20ms", "1ms")),
            "workloads[0].slo.latency: a: an SLO of 1 ms, but up to storage its requests take",
        ),
        (one("server: r1h1"), "workloads[0].trace: missing; expected one of `trace`, `curves` and `model`"),
        (
            one(&format!("{GOOD}, model: m.json")),
            "workloads[0].trace: expected a trace, or `curves` and `model`, not both",
        ),
        (
            one("server: r1h1, volume: x, curves: {storage: [{rate: 1%, burst: 1ms}]}"),
            "workloads[0].volume: goes with `trace`",
        ),
        (
            one(&format!("{GOOD}, depends_on: [a]")),
            "workloads[0].depends_on[0]: `a`: this is the workload itself",
        ),
        (
            one(&format!("{GOOD}, depends_on: [b]")),
            "workloads[0].depends_on[0]: `b`: no workload has this name",
        ),
        (
            one(GOOD).replace("device: ssd.json\n", ""),
            "workloads[0].server: `r1h1` has no device file: give `device`",
        ),
        (one(GOOD).replace("ssd.json", "none.json"), "none.json: no such file"),
        (
            format!("devices: {{r7h7: ssd.json}}\n{}", one(GOOD)),
            "devices.r7h7: `r7h7`: the cluster has no such host or device",
        ),
        (
            one(&format!("trace: t.csv, {slo}")),
            "workloads[0].server: missing; expected the host that has the volume",
        ),
        (
            one(&format!("{GOOD}, stages: []")),
            "workloads[0].stages: expected at least one stage, and each once",
        ),
        (
            one(&format!("{GOOD}, stages: [storage, storage]")),
            "workloads[0].stages: expected at least one stage",
        ),
        (one(&format!("{GOOD}, stages: [disk]")), "`disk`: expected one of network-in, storage, network-out"),
        (
            format!("network: {{overhead: 0, other: 0, payload: 0}}\n{}", one(GOOD)),
            "t.csv: its requests have no work at network-in: leave this stage out",
        ),
        (format!("network: {{payload: -1}}\n{}", one(GOOD)), "network: payload -1: expected"),
        (
            one("server: r1h1, curves: {storage: [{rate: 0%, burst: 0s}]}"),
            "workloads[0].curves: storage: no work at all",
        ),
        (one("server: r1h1, curves: {storage: []}"), "workloads[0].curves.storage: an empty list"),
        (one("server: r1h1, curves: {}"), "workloads[0].curves: no stage; expected at least one"),
        (one("server: r1h1, curves: 7"), "workloads[0].curves: `7`: expected the name of a file, or buckets"),
        (
            one("server: r1h1, curves: {storage: [{rate: 5, burst: 1ms}]}"),
            "rate: `5`: expected a share in percent, such as 10%",
        ),
        (
            one("server: r1h1, curves: {network-in: [{rate: 5%, burst: 1kB}]}"),
            "expected a rate with its unit",
        ),
        (
            one("server: r1h1, stages: [network-in], curves: {storage: [{rate: 5%, burst: 1ms}]}"),
            "workloads[0].stages: network-in: no curve is given for this stage",
        ),
        (one(&format!("{GOOD}, priority: {{storage: 1}}")), "workloads[0].priority.network-in: missing"),
        (one(&format!("{GOOD}, priority: -1")), "workloads[0].priority: -1: expected a whole number"),
        (
            one(&format!("{GOOD}, priority: 4294967295")),
            "workloads[0].priority: 4294967295: expected a whole number from 0 to 4294967294; the last priority is for best effort",
        ),
        (
            one(&format!("{GOOD}, stages: [storage], priority: {{storage: 4294967295}}")),
            "workloads[0].priority: 4294967295: expected a whole number",
        ),
        (one(&format!("{GOOD}, limits: {{storage: []}}")), "workloads[0].limits.storage: an empty list"),
        (
            one(&format!("{GOOD}, stages: [storage], limits: {{network-in: [{{rate: 1MB/s, burst: 1MB}}]}}")),
            "workloads[0].limits.network-in: the workload has no such stage",
        ),
        (
            format!("{}  - {{name: b, client: r0h0, {GOOD}}}\n", one(&format!("{GOOD}, priority: 1"))),
            "w.yaml:4:5: workloads[1].priority: missing; other workloads have one",
        ),
        (format!("margin: 0.1\n{}", one(GOOD)), "margin: `0.1`: expected a share in percent, such as 10%"),
        (format!("margin: -1%\n{}", one(GOOD)), "margin: `-1%`: expected a share from 0%"),
        (format!("buckets: 0\n{}", one(GOOD)), "buckets: 0: expected at least 1"),
        (format!("levels: 0\n{}", one(GOOD)), "levels: 0: expected at least 1"),
        (
            format!("congestion: racks\n{}", one(GOOD)),
            "congestion: `racks`: expected one of hosts, everywhere",
        ),
        (format!("latency: 5us\n{}", one(GOOD)), "latency: "),
        (format!("latency: {{links: -5us}}\n{}", one(GOOD)), "latency.links: "),
        (format!("latency: {{rack: 5us}}\n{}", one(GOOD)), "latency.rack: unknown field"),
        (
            format!("latency: {{queues: {{'r9:uplink': 5us}}}}\n{}", one(GOOD)),
            "w.yaml: latency.queues.r9:uplink: `r9:uplink`: the cluster has no such link or device",
        ),
        (
            format!("congestion: hosts\nlatency: {{queues: {{'r0:uplink': 5us}}}}\n{}", one(GOOD)),
            "`r0:uplink`: with `congestion: hosts`, this link is no queue: leave it out",
        ),
        (format!("bounds: {{frame: -1}}\n{}", one(GOOD)), "bounds: settings of bounds: frame -1"),
        (
            format!("bounds: {{frame: 63}}\n{}", one(GOOD)),
            "bounds: settings of bounds: frame 63: must be finite and at least 64, in bytes",
        ),
        (format!("bounds: {{paced: true}}\n{}", one(GOOD)), "bounds.paced: unknown field"),
        (
            format!(
                "fit: {{states: 0}}\n{}",
                one("server: r1h1, curves: {storage: [{rate: 1%, burst: 1ms}]}")
            ),
            "w.yaml: fit.states: 0: expected 1 to 16",
        ),
        (
            format!(
                "fit: {{interval: 0s}}\n{}",
                one("server: r1h1, curves: {storage: [{rate: 1%, burst: 1ms}]}")
            ),
            "w.yaml: fit.interval: 0: expected positive and finite",
        ),
        (
            format!("fit: {{interval: 1us}}\n{}", one(GOOD)),
            "fit.interval: 0.000001: expected no less than the batch, 1 ms unless another is given",
        ),
        (format!("fit: {{states: 99}}\n{}", one(GOOD)), "w.yaml: fit.states: 99: expected 1 to 16"),
        (
            format!("fit: {{deviations: 3}}\n{}", one(GOOD)),
            "w.yaml: fit.deviations: expected only with `published: true`",
        ),
        ("workloads: []".into(), "workloads: an empty list"),
        ("margin: 10%".into(), "workloads: missing"),
        (one(&format!("{GOOD}, colour: red")), "workloads[0].colour: unknown field"),
        (String::new(), "w.yaml: the file is empty"),
    ];
    check_rows(cases, |(text, expected)| {
        let found = error_of(&text);
        if found.contains('\n') {
            Err(format!("{found:?}, expected one line"))
        } else {
            contains(&found, expected)
        }
    });
    let without = CLUSTER.replace("devices", "#");
    let found = error_on(&without, &one(GOOD));
    assert!(
        found.contains("workloads[0].server: `r1h1`: the cluster file gives this host no device"),
        "{found}"
    );
    let two = CLUSTER.replace("[{name: ssd0,", "[{name: ssd1, read: 1MB/s, write: 1MB/s}, {name: ssd0,");
    let found = error_on(&two, &one(GOOD));
    assert!(found.contains("it has several devices; expected one of r1h1:ssd1, r1h1:ssd0"), "{found}");
    assert_eq!(error_on(&two, &one(&GOOD.replace("r1h1", "r1h1:ssd0"))), "nothing is wrong");
    assert_eq!(
        error_on(&without, &one(&format!("{GOOD}, stages: [network-in, network-out]"))),
        "nothing is wrong"
    );
}

#[test]
fn a_rate_of_0_is_rejected_before_any_placement_or_limit() {
    let open = |name: &str| Text::from_bytes(name, "seconds,kind,size\n0,read,4096\n0,write,4096\n");
    let of = cluster(CLUSTER);
    let found =
        Workloads::from_text("w.yaml", &one(GOOD), &of, &files(), &open, None).unwrap_err().to_string();
    assert!(
        found.contains("its work at network-in arrives at one moment, so it has no rate: expected"),
        "{found}"
    );
    let limits = |buckets: &str| error_of(&one(&format!("{GOOD}, limits: {{network-in: [{buckets}]}}")));
    let found = limits("{rate: 1MB/s, burst: 1MB}, {rate: 0B/s, burst: 1GB}");
    assert!(found.contains("workloads[0].limits.network-in: a rate of 0: expected above 0"), "{found}");
    assert_eq!(limits("{rate: 1MB/s, burst: 1MB}"), "nothing is wrong");
}

#[test]
fn an_error_in_a_referenced_file_has_the_place_of_the_reference() {
    let of = cluster(CLUSTER);
    let open = |name: &str| Err(InputError::new(name, "no such file"));
    let two = format!(
        "{}  - {{name: b, client: r0h0, {}}}\n",
        one("server: r1h1, curves: {storage: [{rate: 1%, burst: 1ms}]}"),
        GOOD
    );
    let found = Workloads::from_text("w.yaml", &two, &of, &files(), &open, None).unwrap_err().to_string();
    assert_eq!(found, "w.yaml:4:5: workloads[1].trace: t.csv: no such file");
    let base = std::env::temp_dir().join(format!("leeward-slo-file-{}", std::process::id()));
    std::fs::create_dir_all(&base).unwrap();
    std::fs::write(base.join("empty.json"), "[]").unwrap();
    std::fs::write(base.join("broken.json"), "{").unwrap();
    let files = Files { base: base.clone(), data: None };
    let error_of =
        |text: &str| Workloads::from_text("w.yaml", text, &of, &files, &open, None).unwrap_err().to_string();
    let empty = error_of(&one("server: r1h1, model: empty.json"));
    let broken =
        ["model", "curves"].map(|field| error_of(&one(&format!("server: r1h1, {field}: broken.json"))));
    let device = error_of(&one(GOOD).replace("ssd.json", "broken.json"));
    std::fs::remove_dir_all(&base).unwrap();
    assert_eq!(empty, "w.yaml:3:5: workloads[0].model: no stage; expected at least one");
    for (field, found) in ["model", "curves"].into_iter().zip(broken) {
        assert!(found.starts_with(&format!("w.yaml:3:5: workloads[0].{field}: ")), "{found}");
        assert!(found.contains("broken.json"), "{found}");
    }
    assert!(device.starts_with("w.yaml: device: ") && device.contains("broken.json"), "{device}");
}
