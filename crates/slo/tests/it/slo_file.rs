//! Workload files: the result of reading them.

use std::cell::Cell;

use leeward_calculus::mmpp::Sigma;
use leeward_fabric::input::{Files, InputError, Text};
use leeward_models::ModelRecord;
use leeward_slo::bound::{Method, bounds};
use leeward_slo::file::{Congestion, Workloads};
use leeward_testing::clusters::cluster;
use leeward_traces::Stage;

use crate::support::systems;
use crate::support::workload_file::{CLUSTER, GOOD, files, one, read, trace};

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
