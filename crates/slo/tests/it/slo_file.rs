//! Workload files: the result of reading them, and one clear error for every mistake.

use crate::support::systems;
use std::cell::Cell;
use std::path::PathBuf;

use leeward_calculus::mmpp::{Mmpp, Requests, Sigma, Sizes, State};
use leeward_fabric::Cluster;
use leeward_fabric::input::{Files, InputError, Text, read_yaml};
use leeward_models::ModelRecord;
use leeward_slo::bound::{Method, bounds};
use leeward_slo::file::{Congestion, Workloads};
use leeward_testing::clusters::cluster;
use leeward_testing::rows::{check_rows, contains};
use leeward_traces::Stage;
use proptest::prelude::*;

const CLUSTER: &str = "racks: 2\nhosts_per_rack: 3\nnic: 1Gbps\noversubscription: 3\n\
                       devices: [{name: ssd0, read: 500MB/s, write: 400MB/s}]\n";
/// A request of 8 KiB every 10 ms, and every fourth a write.
fn trace() -> String {
    let line = |at: u32| {
        let kind = if at.is_multiple_of(4) { "write" } else { "read" };
        format!("{}.{:02},{kind},{}\n", at / 100, at % 100, 8192 + 512 * (at % 7))
    };
    format!("seconds,kind,size\n{}", (0..400).map(line).collect::<String>())
}

fn files() -> Files {
    let base = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/slo"));
    Files { base, data: None }
}

fn read_on(cluster: &Cluster, text: &str) -> Result<Workloads, InputError> {
    let open = |name: &str| Text::from_bytes(name, trace());
    Workloads::from_text("w.yaml", text, cluster, &files(), &open, None)
}

fn read(text: &str) -> Result<Workloads, InputError> {
    read_on(&cluster(CLUSTER), text)
}

/// A file of one workload with these fields, besides a name and a client.
fn one(fields: &str) -> String {
    format!("device: ssd.json\nworkloads:\n  - {{name: a, client: r0h0, {fields}}}\n")
}

const GOOD: &str = "server: r1h1, slo: {percentile: 99.9, latency: 20ms}, trace: t.csv";

/// Error for a file: from reading it, or from its system.
fn error_of(text: &str) -> String {
    error_on(CLUSTER, text)
}

fn error_on(cluster_text: &str, text: &str) -> String {
    let cluster = cluster(cluster_text);
    match read_on(&cluster, text).and_then(|workloads| workloads.system(&cluster)) {
        Ok(_) => "nothing is wrong".into(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_trace_loads_the_device_and_the_links_of_both_directions() {
    let workloads = read(&one(GOOD)).unwrap();
    let placed = workloads.system(&cluster(CLUSTER)).unwrap();
    let queues: Vec<(&str, f64)> =
        placed.system.queues.iter().map(|queue| (queue.name.as_str(), queue.capacity)).collect();
    let (gigabit, uplink) = (125e6, 125e6);
    assert_eq!(
        queues,
        [
            ("r0h0:egress", gigabit),
            ("r0:uplink", uplink),
            ("r1:downlink", uplink),
            ("r1h1:ingress", gigabit),
            ("r1h1:ssd0", 1.0),
            ("r1h1:egress", gigabit),
            ("r1:uplink", uplink),
            ("r0:downlink", uplink),
            ("r0h0:ingress", gigabit),
        ]
    );
    let promise = &placed.system.promises[0];
    assert_eq!(promise.route, [vec![0, 1, 2, 3], vec![4], vec![5, 6, 7, 8]]);
    let [network_in, storage, network_out] = &promise.workload.demands[..] else { panic!("three stages") };
    assert_eq!([network_in, storage, network_out].map(|demand| demand.stage), Stage::ALL);
    // The largest write has 8192 + 512 * 6 bytes, with the factors of the network and the margin of 10 %.
    let largest = 1.1 * (200.0 + 1.1 * (8192.0 + 512.0 * 6.0));
    assert!((network_in.largest - largest).abs() < 1e-6, "{} {largest}", network_in.largest);
    assert_eq!((network_in.unloaded, network_out.unloaded), (0.0, 0.0));
    assert!(storage.unloaded > 0.002, "{}", storage.unloaded);
    assert_eq!(
        promise.limits,
        promise.workload.demands.iter().map(|demand| demand.arrivals.clone()).collect::<Vec<_>>()
    );
}

#[test]
fn a_client_on_its_server_crosses_no_link_and_needs_only_storage() {
    let cluster = cluster(CLUSTER);
    let priorities = "priority: 1, limits: {network-in: [{rate: 1MB/s, burst: 1MB}]}";
    let own = read(&one(&format!("{}, {priorities}", GOOD.replace("r1h1", "r0h0")))).unwrap();
    let placed = own.system(&cluster).unwrap();
    let promise = &placed.system.promises[0];
    let stages: Vec<Stage> = promise.workload.demands.iter().map(|demand| demand.stage).collect();
    assert_eq!((stages, promise.route.len()), (vec![Stage::Storage], 1));
    assert_eq!((promise.priorities.len(), promise.limits.len()), (1, 1));
    let alone = read(&one(&format!("{GOOD}, stages: [storage]"))).unwrap().system(&cluster).unwrap();
    let seconds = |system| bounds(system, Method::Dnc, own.bounds)[0].as_ref().unwrap().seconds;
    assert_eq!(seconds(&placed.system), seconds(&alone.system));
    assert_eq!(
        own.without_links(&cluster),
        ["a: `r0h0` is its client and its server: it crosses no link, and networks take no time"]
    );
    assert!(read(&one(GOOD)).unwrap().without_links(&cluster).is_empty());

    // Without storage no stage takes time.
    let nothing = "stages: [network-in, network-out]";
    let nothing = read(&one(&format!("{}, {nothing}", GOOD.replace("r1h1", "r0h0")))).unwrap();
    let nothing = nothing.system(&cluster).unwrap();
    for method in Method::ALL {
        assert_eq!(
            bounds(&nothing.system, method, own.bounds)[0].as_ref().unwrap().seconds,
            0.0,
            "{method:?}"
        );
    }
}

#[test]
fn arriving_workloads_adopt_the_existing_settings_or_are_rejected() {
    let cluster = cluster(CLUSTER);
    let existing = read(&format!(
        "congestion: hosts\nlevels: 3\nlatency: {{links: 5us}}\nbounds: {{unit: fluid}}\n{}",
        one(GOOD)
    ))
    .unwrap();
    let open = |name: &str| Text::from_bytes(name, trace());
    let read_arrivals = |head: &str| {
        let text = format!("{head}{}", one(GOOD)).replace("name: a", "name: b");
        Workloads::from_text("new.yaml", &text, &cluster, &files(), &open, Some(&existing))
    };
    for head in ["", "congestion: hosts\nlevels: 3\nlatency: {links: 5us}\nbounds: {unit: fluid}\n"] {
        let with = read_arrivals(head).unwrap();
        assert_eq!((with.congestion, with.levels, with.bounds), (Congestion::Hosts, 3, existing.bounds));
        let mut system = existing.system(&cluster).unwrap().system;
        let arrivals = with.arrivals(&cluster, &mut system).unwrap();
        assert_eq!(arrivals[0].route, system.promises[0].route);
        assert!(
            system.queues.iter().all(|queue| queue.latency == if queue.capacity > 1.0 { 5e-6 } else { 0.0 })
        );
    }
    for (head, field) in [
        ("congestion: everywhere\n", "congestion"),
        ("levels: 7\n", "levels"),
        ("latency: {links: 6us}\n", "latency"),
        ("bounds: {}\n", "bounds"),
    ] {
        let found = read_arrivals(head).unwrap_err().to_string();
        let expected = format!(
            "new.yaml: {field}: differs from the value in w.yaml, which applies to all: leave it out"
        );
        assert_eq!(found, expected);
    }
}

#[test]
fn with_host_congestion_rack_links_are_no_queues() {
    let hosts = read(&format!("congestion: hosts\n{}", one(GOOD))).unwrap();
    assert_eq!(hosts.congestion, Congestion::Hosts);
    let system = hosts.system(&cluster(CLUSTER)).unwrap().system;
    assert_eq!(system.promises[0].route, [vec![0, 1], vec![2], vec![3, 4]]);
    assert!(bounds(&system, Method::Snc, hosts.bounds)[0].is_ok());

    let everywhere = read(&one(GOOD)).unwrap().system(&cluster(CLUSTER)).unwrap().system;
    assert_eq!(everywhere.promises[0].route[0].len(), 4);
    assert!(bounds(&everywhere, Method::Snc, hosts.bounds)[0].is_ok());
    assert!(bounds(&everywhere, Method::Dnc, hosts.bounds)[0].is_ok());
}

#[test]
fn latencies_are_of_all_links_or_devices_or_of_one_by_name() {
    let system = |head: &str| {
        read(&format!("{head}\n{}", one(GOOD))).unwrap().system(&cluster(CLUSTER)).unwrap().system
    };
    let of = |head: &str| {
        system(head)
            .queues
            .into_iter()
            .map(|queue| (queue.name, queue.latency))
            .filter(|(_, latency)| *latency > 0.0)
    };
    let named = |head: &str| of(head).collect::<Vec<_>>();
    let only = |name: &str, latency: f64| vec![(name.to_owned(), latency)];
    assert_eq!(named("latency: {}"), []);
    assert_eq!(system("latency: {links: 0s}"), system(""));
    assert_eq!(named("latency: {devices: 20us}"), only("r1h1:ssd0", 20e-6));
    assert_eq!(named("latency: {queues: {'r0:uplink': 50us}}"), only("r0:uplink", 50e-6));
    assert_eq!(of("latency: {links: 5us}").count(), 8);
    let rest = named("latency: {links: 5us, devices: 1ms, queues: {'r0:uplink': 0s, 'r1h1:ssd0': 2ms}}");
    assert_eq!(rest.len(), 8);
    assert!(
        rest.contains(&("r1h1:ssd0".to_owned(), 2e-3)) && rest.iter().all(|(name, _)| name != "r0:uplink")
    );

    // A path of four links and back, with and without a latency of 5 us on each.
    let seconds = |head: &str, method| {
        let workloads = read(&format!("{head}\n{}", one(GOOD))).unwrap();
        let placed = workloads.system(&cluster(CLUSTER)).unwrap();
        bounds(&placed.system, method, workloads.bounds)[0].as_ref().unwrap().seconds
    };
    for method in Method::ALL {
        let added = seconds("latency: {links: 5us}", method) - seconds("", method);
        assert!((40e-6..42e-6).contains(&added), "{method:?}: {added}");
    }
}

#[test]
fn a_shared_trace_is_read_once_and_gives_equal_curves() {
    let text = "device: ssd.json\nworkloads:\n\
                - {name: a, client: r0h0, server: r0h1, trace: t.csv, slo: {percentile: 99, latency: 1s}}\n\
                - {name: b, client: r0h2, server: r0h1, trace: u.csv}\n\
                - {name: c, client: r1h0, server: r1h1, trace: t.csv, slo: {percentile: 99.9, latency: 2s}}\n";
    let times = Cell::new(0);
    let open = |name: &str| {
        times.set(times.get() + 1);
        Text::from_bytes(name, trace())
    };
    let workloads = Workloads::from_text("w.yaml", text, &cluster(CLUSTER), &files(), &open, None).unwrap();
    assert_eq!(times.get(), 2);
    let [a, b, c] = &workloads.entries[..] else { panic!("three workloads") };
    for (one, other) in a.workload.demands.iter().zip(&c.workload.demands) {
        assert_eq!((&one.arrivals, &one.model), (&other.arrivals, &other.model));
    }
    // The device's tail is at the workload's own percentile; for best effort, at the highest promised percentile.
    assert!(a.workload.demands[1].unloaded < c.workload.demands[1].unloaded);
    assert_eq!(b.workload.demands[1].unloaded, c.workload.demands[1].unloaded);
}

#[test]
fn the_margin_applies_to_curves_and_not_to_models() {
    let [plain, more] =
        ["0%", "25%"].map(|margin| read(&format!("margin: {margin}\n{}", one(GOOD))).unwrap());
    assert_eq!((plain.margin, more.margin), (0.0, 0.25));
    for (plain, more) in plain.entries[0].workload.demands.iter().zip(&more.entries[0].workload.demands) {
        assert!((more.arrivals.rate() / plain.arrivals.rate() - 1.25).abs() < 1e-9);
        assert!((more.arrivals.burst() / plain.arrivals.burst() - 1.25).abs() < 1e-9);
        assert_eq!((&plain.model, plain.unloaded), (&more.model, more.unloaded));
    }
}

#[test]
fn curves_priorities_and_limits_come_from_the_file() {
    let text = "margin: 0%\nworkloads:\n\
        - name: a\n  client: r0h0\n  server: r0h1:ssd0\n  slo: {percentile: 99, latency: 100ms}\n  unloaded: 1ms\n  \
          curves: {network-in: [{rate: 1MB/s, burst: 64KiB}, {rate: 2MB/s, burst: 8KiB}], storage: [{rate: 5%, burst: 8ms}]}\n  \
          priority: {network-in: 3, storage: 1}\n  limits: {storage: [{rate: 10%, burst: 8ms}]}\n\
        - {name: b, client: r0h0, server: r0h1, curves: {storage: [{rate: 5%, burst: 8ms}]}}\n";
    let workloads = read(text).unwrap();
    assert_eq!(
        workloads.notes,
        ["b: the latency without queueing is unknown and counts as 0; `unloaded` sets it"]
    );
    let placed = workloads.system(&cluster(CLUSTER)).unwrap();
    assert!(placed.given);
    let [a, b] = &placed.system.promises[..] else { panic!("two promises") };
    assert_eq!((a.priorities.clone(), b.priorities.clone()), (vec![3, 1], vec![u32::MAX]));
    assert_eq!(a.workload.demands[0].arrivals, systems::curve(&[(1e6, 65536.0), (2e6, 8192.0)]));
    assert_eq!(a.workload.demands[1].arrivals, systems::curve(&[(0.05, 0.008)]));
    assert_eq!((a.workload.demands[1].unloaded, a.workload.demands[1].largest), (0.001, 0.008));
    assert_eq!(a.limits, [a.workload.demands[0].arrivals.clone(), systems::curve(&[(0.1, 0.008)])]);
}

#[test]
fn the_output_of_the_curve_and_model_commands_is_valid_input() {
    let folder = std::env::temp_dir().join(format!("leeward-slo-file-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let model = systems::model(50.0, 2e4);
    let record = ModelRecord::of(Stage::NetworkOut, &model, Sigma::Stationary);
    let curve = systems::curve(&[(2e6, 5e4), (1.5e6, 2e5)]);
    let whole = serde_json::to_string(&[record.clone().with_curve(&curve, 4e4)]).unwrap();
    std::fs::write(folder.join("m.json"), whole).unwrap();
    std::fs::write(folder.join("bare.json"), serde_json::to_string(&record).unwrap()).unwrap();
    let printed = r#"{"trace": {"unloaded_s": 0.003, "file": "t"}, "percentile": 99.9, "curves": [{"stage": "storage", "unit": "s",
        "largest": 0.01, "total": 3, "buckets": [{"rate": 0.2, "burst": 0.02}], "knee": null}]}"#;
    std::fs::write(folder.join("c.json"), printed).unwrap();

    let files = Files { base: folder.clone(), data: None };
    let open = |name: &str| Err(InputError::new(name, "no trace is read"));
    let text =
        |fields: &str| format!("margin: 0%\nworkloads: [{{name: a, client: r0h0, server: r0h1, {fields}}}]");
    let cluster = cluster(CLUSTER);
    let read = |fields: &str| Workloads::from_text("w.yaml", &text(fields), &cluster, &files, &open, None);

    let both = read("model: m.json, curves: c.json, slo: {percentile: 99, latency: 1s}").unwrap();
    let [storage, network_out] = &both.entries[0].workload.demands[..] else { panic!("two stages") };
    assert_eq!((storage.stage, storage.largest, storage.unloaded), (Stage::Storage, 0.01, 0.003));
    assert_eq!(storage.model, None);
    assert_eq!(network_out.arrivals, curve);
    assert_eq!((network_out.largest, network_out.model.as_ref()), (4e4, Some(&model)));
    // A profile at 99.9 % gives no value for 99.99 %.
    let higher = read("curves: c.json, slo: {percentile: 99.99, latency: 1s}").unwrap();
    assert_eq!((higher.entries[0].workload.demands[0].unloaded, higher.notes.len()), (0.0, 1));

    let bare = read("model: bare.json").unwrap_err().to_string();
    assert!(bare.contains("workloads[0].model: it has a model of network-out without a curve"), "{bare}");
    let large = |bucket: &str, largest: &str| {
        let text = format!(r#"{{"curves": [{{"stage": "storage", {largest} "buckets": [{bucket}]}}]}}"#);
        std::fs::write(folder.join("c.json"), text).unwrap();
        read("curves: c.json").unwrap_err().to_string()
    };
    let found = large(r#"{"rate": 0.1, "burst": 1.7e308}"#, "");
    assert!(found.contains("curves[0].buckets: a burst of 1.7e308: expected at most 1e18"), "{found}");
    let found = large(r#"{"rate": 0.1, "burst": 1.0}"#, r#""largest": 1e300,"#);
    assert!(found.contains("a largest request of 1e300, but the burst of the curve is 1"), "{found}");
    std::fs::write(
        folder.join("m.json"),
        r#"[{"stage": "storage", "step_s": 0, "states": [], "transitions": []}]"#,
    )
    .unwrap();
    let error = read("model: m.json").unwrap_err().to_string();
    assert!(error.contains("m.json: [0].states: step of 0 s: must be positive and finite"), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}

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

#[test]
fn an_arriving_file_may_have_dependencies_but_no_priorities_or_limits() {
    let cluster = cluster(CLUSTER);
    let existing = read(&one(GOOD)).unwrap();
    let open = |name: &str| Text::from_bytes(name, trace());
    let read_arrivals =
        |text: &str| Workloads::from_text("new.yaml", text, &cluster, &files(), &open, Some(&existing));
    let two = |fields: &str| one(fields).replace("name: a", "name: b");
    let mut system = existing.system(&cluster).unwrap().system;
    let elsewhere = read_arrivals(&one(&GOOD.replace("r1h1", "r1h0"))).unwrap();
    let elsewhere = elsewhere.arrivals(&cluster, &mut system).unwrap_err().to_string();
    assert!(
        elsewhere.contains("workloads[0].server: the workload exists with another client"),
        "{elsewhere}"
    );
    let queues = system.queues.len();
    for (field, given) in
        [("priority", "priority: 1"), ("limits", "limits: {storage: [{rate: 9%, burst: 1s}]}")]
    {
        let given = read_arrivals(&two(&format!("{GOOD}, {given}"))).unwrap();
        let refused = given.arrivals(&cluster, &mut system).unwrap_err().to_string();
        assert!(refused.contains(&format!("workloads[0].{field}: expected none")), "{refused}");
    }
    assert_eq!(system.queues.len(), queues);
    let arrivals = read_arrivals(&two(&format!("{GOOD}, depends_on: [a]")))
        .unwrap()
        .arrivals(&cluster, &mut system)
        .unwrap();
    assert_eq!(arrivals[0].route, system.promises[0].route);
    assert_eq!(system.queues.len(), queues);
}

#[test]
fn an_arrival_of_an_existing_name_is_a_change_decided_again() {
    let cluster = cluster(CLUSTER);
    let existing = read(&one(GOOD)).unwrap();
    let placed = existing.system(&cluster).unwrap();
    let open = |name: &str| Text::from_bytes(name, trace());
    let read_arrivals =
        |text: &str| Workloads::from_text("new.yaml", text, &cluster, &files(), &open, Some(&existing));
    for policy in ["dnc", "none"] {
        let by = existing.admission(policy, "").unwrap();
        let same = existing.admit(&placed, &read_arrivals(&one(GOOD)).unwrap(), &cluster, &by).unwrap();
        assert_eq!((same.system, same.residents.len()), (placed.system.clone(), 0));
        assert!(same.arrivals[0].changed && same.arrivals[0].refused.is_none());
    }
    let by = existing.admission("dnc", "").unwrap();
    let heavy = read_arrivals(&format!("margin: 900000%\n{}", one(GOOD))).unwrap();
    let heavy = existing.admit(&placed, &heavy, &cluster, &by).unwrap();
    let [a] = &heavy.arrivals[..] else { panic!("one arrival") };
    assert!(a.changed && a.refused.is_some() && a.promise == Some(0), "{a:?}");
    assert_eq!(heavy.system.promises.len(), 1);
    assert_eq!(heavy.system.promises[0].workload.slo, None);
}

#[test]
fn a_refused_workload_runs_as_best_effort_or_not_at_all() {
    let cluster = cluster(CLUSTER);
    let existing = read(&one(GOOD)).unwrap();
    let placed = existing.system(&cluster).unwrap();
    let open = |name: &str| Text::from_bytes(name, trace());
    let text = "device: ssd.json\nworkloads:\n\
        - {name: b, client: r0h1, server: r1h1, trace: t.csv, slo: {percentile: 99, latency: 1s}}\n\
        - {name: c, client: r0h1, server: r1h1, trace: t.csv, slo: {percentile: 99, latency: 1100us}}\n";
    let new = Workloads::from_text("new.yaml", text, &cluster, &files(), &open, Some(&existing)).unwrap();
    // The second arrival's SLO is below any bound on it.
    for name in ["dnc", "snc", "best", "none"] {
        let by = existing.admission(name, "").unwrap();
        let admitted = existing.admit(&placed, &new, &cluster, &by).unwrap();
        let [b, c] = &admitted.arrivals[..] else { panic!("two arrivals") };
        assert_eq!((b.promise, b.refused.is_none()), (Some(1), true), "{name}");
        assert_eq!(c.refused.is_none(), name == "none", "{name}: {c:?}");
        let system = &admitted.system;
        let kept = c.promise.is_none_or(|at| system.promises[at].workload.slo.is_some() == (name == "none"));
        assert!(kept, "{name}");
        assert_eq!(by.admission.by().is_none(), name == "none");
        assert_eq!(by.admission.needs_models(), ["snc", "best"].contains(&name), "{name}");
        if let Some((method, settings)) = by.admission.by() {
            assert_eq!(settings, existing.bounds, "{name}");
            for (promise, bound) in system.promises.iter().zip(bounds(system, method, settings)) {
                // Best effort has no percentile.
                let Some(slo) = promise.workload.slo else { continue };
                assert!(bound.unwrap().seconds <= slo.latency, "{name}: {}", promise.workload.name);
            }
        }
    }
    // Policies for networks refuse every workload with a device.
    for name in ["silo++", "qjump++"] {
        let by = existing.admission(name, "").unwrap();
        let admitted = existing.admit(&placed, &new, &cluster, &by).unwrap();
        assert!(admitted.arrivals.iter().all(|result| result.refused.is_some()), "{name}");
        assert_eq!(admitted.residents[0].refused.is_some(), by.admission.sets_rates(), "{name}");
    }
    let unknown = existing.admission("first", "").err().unwrap().to_string();
    assert!(unknown.contains("unknown policy `first` for admission"), "{unknown}");
    let error = existing.admission("dnc", "{serch: false}").err().unwrap().to_string();
    assert!(error.contains("serch: unknown field"), "{error}");
}

/// States of all kinds.
fn states() -> impl Strategy<Value = Vec<State>> {
    let share = 1e-6..1.0_f64;
    let sizes = prop_oneof![
        (1e-9..1e9_f64).prop_map(|mean| Sizes::Exponential { mean }),
        (share.clone(), 1e-9..1e9_f64, 1e-9..1e9_f64)
            .prop_map(|(first, one, other)| Sizes::Hyperexponential { first, means: (one, other) }),
        (share.clone(), 0.0..1e9_f64, 0.0..1e9_f64).prop_map(|(first, one, other)| Sizes::Empirical {
            atoms: vec![(first, one), (1.0 - first, other)]
        }),
    ];
    let requests = (share, any::<bool>()).prop_map(|(mean, poisson)| {
        if poisson { Requests::Poisson(mean) } else { Requests::Bernoulli(mean) }
    });
    prop::collection::vec((requests, sizes).prop_map(|(requests, sizes)| State { requests, sizes }), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_model_round_trips_to_the_bit(
        states in states(), step in 1e-7..1.0_f64, stay in 0.0..1.0_f64, zero in any::<bool>(),
    ) {
        let count = states.len();
        let leave = (1.0 - stay) / count as f64;
        let row = |from: usize| (0..count).map(|to| if to == from { stay + leave } else { leave }).collect();
        let rows: Vec<Vec<f64>> = (0..count).map(row).collect();
        let sigma = if zero { Sigma::Zero } else { Sigma::Stationary };
        let model = Mmpp::new(step, states, &rows, sigma).unwrap();
        let text = serde_json::to_string(&ModelRecord::of(Stage::Storage, &model, sigma)).unwrap();
        let read: ModelRecord = read_yaml("m.json", &text).unwrap();
        prop_assert_eq!(read.model().unwrap(), model);
    }

    #[test]
    fn no_text_panics_the_reader(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let text = String::from_utf8_lossy(&bytes);
        let found = error_of(&text);
        prop_assert!(!found.contains('\n'), "{}", found);
    }

    #[test]
    fn no_single_edit_panics_the_reader(
        at in 0_usize..1000, cut in 0_usize..6,
        put in prop_oneof![
            prop::sample::select(vec!["", "-1", "1e999", ".inf", "{", "]", "\t", "\n- ", "0", "1e308%", "~", "&a", "*a", "99999999999999999999"])
                .prop_map(str::to_owned),
            ".{0,4}",
        ],
    ) {
        let good = format!(
            "margin: 10%\ncongestion: hosts\nlatency: {{links: 5us, queues: {{r0h0:egress: 1us}}}}\nbuckets: 4\nfit: {{states: 3}}\nbounds: {{unit: fluid}}\n{}  \
             - {{name: b, client: r0h1, server: r1h1, slo: {{percentile: 99, latency: 1s}}, depends_on: [a],\n     \
             curves: {{storage: [{{rate: 5%, burst: 8ms}}]}}, limits: {{storage: [{{rate: 9%, burst: 8ms}}]}}}}\n",
            one(GOOD)
        );
        prop_assert_eq!(error_of(&good), "nothing is wrong");
        let letters: Vec<char> = good.chars().collect();
        let from = at % letters.len();
        let rest = letters[(from + cut).min(letters.len())..].iter();
        let text: String = letters[..from].iter().copied().chain(put.chars()).chain(rest.copied()).collect();
        let cluster = cluster(CLUSTER);
        let placed = read_on(&cluster, &text).and_then(|workloads| Ok((workloads.system(&cluster)?, workloads.bounds)));
        match placed {
            Err(error) => prop_assert!(!error.to_string().contains('\n'), "{}", error),
            Ok((placed, settings)) => {
                for bound in bounds(&placed.system, Method::Best, settings).into_iter().flatten() {
                    prop_assert!(bound.seconds.is_finite() && bound.seconds >= 0.0);
                }
            }
        }
    }
}
