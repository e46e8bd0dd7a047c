//! Runs: every operation ends, bytes are those of the operations, classes and changes have their effect, and a run
//! repeats.

use std::path::Path;

use leeward_operations::{OperationRecord, Records, Scenario};
use proptest::prelude::*;

fn run(text: &str) -> Records {
    let scenario = Scenario::from_text("a.yaml", text, Path::new("")).expect("a valid scenario");
    scenario.run(&|_| true).expect("a run that ends")
}

/// Two racks; the media take no time, so latencies are those of the network.
fn base(rest: &str) -> String {
    format!(
        "cluster: {{racks: 2, hosts_per_rack: 4, nic: 10Gbps, rack_link: 3Gbps}}\n\
         media: [{{name: ram, read: 1000GB/s, write: 1000GB/s, parallel: 1000}}]\n{rest}"
    )
}

fn latencies(records: &Records, job: u32) -> Vec<f64> {
    let of_job = records.operations.iter().filter(|operation| operation.job == job);
    of_job.map(|operation| operation.latency().as_secs_f64()).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[test]
fn a_lone_read_takes_the_time_of_its_bytes_and_the_server() {
    let records = run("cluster: {racks: 2, hosts_per_rack: 1, nic: 10Gbps, rack_link: 3Gbps}\n\
         media: [{name: disk, read: 600MB/s, write: 500MB/s, access: 8ms, processing: 1ms}]\n\
         operations: [{name: read, kind: read, medium: disk, size: 1MB, servers: r0}]\n\
         jobs: [{name: reads, concurrent: 1, hosts: r1, steps: [{compute: 20ms}, {operation: read}]}]\n\
         horizon: 1s");
    assert!(records.operations.len() > 20);
    for operation in &records.operations {
        // 8 ms, 1 MB at 600 MB/s, and 1 ms.
        assert_eq!(operation.served.0, 8_000_000 + 1_666_667 + 1_000_000);
        // 1 MB and headers at 3 Gb/s take 2.68 ms; the first packets also wait for acknowledgements.
        let network = operation.on_network().as_secs_f64();
        assert!((0.0026..0.0034).contains(&network), "{network} s");
    }
    assert_eq!((records.retransmitted, records.timeouts), (0, 0));
}

#[test]
fn a_query_ends_with_its_slowest_worker_stage_by_stage() {
    let records = run(&base(
        "operations:\n\
         - {name: read, kind: read, medium: ram, size: [100KB, 1MB], servers: r0}\n\
         - {name: write, kind: write, medium: ram, size: 200KB, servers: r0}\n\
         jobs:\n\
         - name: query\n\
         \x20 rate: 20\n\
         \x20 hosts: r1\n\
         \x20 stages:\n\
         \x20 - {workers: 6, steps: [{operation: read, count: 3, parallel: 2}, {compute: 5ms}, {operation: write}]}\n\
         \x20 - {workers: 2, steps: [{compute: 1ms}, {operation: read}], repeat: 2}\n\
         horizon: 2s",
    ));
    assert!(records.jobs.len() > 20);
    for job in &records.jobs {
        let workers: Vec<_> = records.workers.iter().filter(|worker| worker.number == job.number).collect();
        let stage = |stage: u32| workers.iter().filter(move |worker| worker.stage == stage);
        assert_eq!((stage(0).count(), stage(1).count()), (6, 2));
        let ended = |number: u32| stage(number).map(|worker| worker.ended).max();
        assert_eq!(ended(1), Some(job.ended));
        assert!(stage(0).all(|worker| worker.began == job.began && worker.computed.0 == 5_000_000));
        assert!(stage(1).all(|worker| Some(worker.began) == ended(0) && worker.computed.0 == 2_000_000));
    }
    // Three reads and a write of six workers, and two reads of two.
    let finished = records.jobs.len() * (6 * 4 + 2 * 2);
    assert!(records.operations.len() >= finished);
}

#[test]
fn records_leave_out_the_warmup_and_background() {
    let text = |record: bool| {
        base(&format!(
            "operations: [{{name: read, kind: read, medium: ram, size: 100KB, servers: r0}}]\n\
             jobs:\n\
             - {{name: a, rate: 200, hosts: r1, steps: [{{operation: read}}]}}\n\
             - {{name: b, concurrent: 3, hosts: r1, record: {record}, steps: [{{compute: 5ms}}, {{operation: read}}]}}\n\
             horizon: 2s\nwarmup: 1s\nsample: 500ms"
        ))
    };
    let (with, without) = (run(&text(true)), run(&text(false)));
    assert!(with.operations.iter().any(|operation| operation.job == 1));
    assert!(without.operations.iter().all(|operation| operation.job == 0));
    assert!(without.operations.iter().all(|operation| operation.began.as_secs_f64() >= 1.0));
    assert_eq!(latencies(&with, 0), latencies(&without, 0));
    // Two windows of four links.
    assert_eq!(with.links.len(), 8);
}

#[test]
fn a_run_without_windows_of_its_own_has_one_of_its_length() {
    let records = run(&base(
        "operations: [{name: read, kind: read, medium: ram, size: 100KB, servers: r0}]\n\
         jobs: [{name: a, rate: 200, hosts: r1, steps: [{operation: read}]}]\n\
         horizon: 2s\nwarmup: 500ms",
    ));
    assert_eq!(records.links.len(), 4);
    assert_eq!(records.links[0].start.as_secs_f64(), 0.5);
    assert!(records.links[0].traffic.bytes > 0);
}

#[test]
fn jobs_start_before_their_end_and_unfinished_ones_are_counted() {
    let records = run(&base(
        "operations: [{name: read, kind: read, medium: ram, size: 100MB, servers: r0}]\n\
         jobs:\n\
         - {name: a, concurrent: 20, end: 10ms, hosts: r1, steps: [{compute: 1s}, {operation: read}]}\n\
         - {name: b, concurrent: 3, hosts: r1, record: false, steps: [{operation: read}]}\n\
         horizon: 1100ms",
    ));
    // 23 reads of 100 MB share 3 Gb/s, so none ends; those of `b` are not recorded.
    assert_eq!((records.operations.len(), records.jobs.len()), (0, 0));
    assert_eq!((records.unfinished, records.unfinished_jobs), (20, 20));
}

#[test]
fn links_carry_the_bytes_of_operations() {
    let records = run(&base(
        "operations:\n\
         - {name: read, kind: read, medium: ram, size: [10KB, 1MB], servers: r0}\n\
         - {name: write, kind: write, medium: ram, size: [10KB, 1MB], servers: r0}\n\
         jobs:\n\
         - {name: reads, rate: 100, hosts: r1, steps: [{operation: read}], end: 900ms}\n\
         - {name: writes, rate: 50, hosts: r1, steps: [{operation: write}], end: 900ms}\n\
         horizon: 1s\nsample: 1s",
    ));
    assert_eq!(records.unfinished, 0);
    assert_eq!(records.retransmitted, 0);
    for (link, kind) in [(0, 0), (1, 1)] {
        let bytes: u64 =
            records.operations.iter().filter(|one| one.operation == kind).map(|one| one.bytes).sum();
        // The first rack's uplink, then its downlink; both also carry requests, answers and acknowledgements.
        let sent = records.links[link].traffic.bytes;
        assert!(sent > bytes && (sent as f64) < 1.05 * bytes as f64, "{sent} for {bytes}");
    }
}

#[test]
fn halved_uplinks_double_the_time_of_large_reads() {
    let records = run(&base(
        "operations: [{name: read, kind: read, medium: ram, size: 20MB, servers: r0}]\n\
         jobs: [{name: reads, concurrent: 1, hosts: r1, steps: [{compute: 10ms}, {operation: read}]}]\n\
         events: [{at: 2s, link: \"r0:uplink\", capacity: 1500Mbps}]\n\
         horizon: 4s",
    ));
    let (before, after): (Vec<&OperationRecord>, Vec<&OperationRecord>) =
        records.operations.iter().partition(|operation| operation.began.as_secs_f64() < 1.9);
    let time = |operations: &[&OperationRecord]| {
        mean(&operations.iter().map(|one| one.latency().as_secs_f64()).collect::<Vec<_>>())
    };
    let late: Vec<_> = after.into_iter().filter(|one| one.began.as_secs_f64() > 2.0).collect();
    let factor = time(&late) / time(&before);
    assert!((1.9..2.1).contains(&factor), "{factor}");
}

#[test]
fn a_heavier_class_is_faster_at_a_full_uplink() {
    let jobs: String = ["PC", "NC"]
        .iter()
        .map(|class| {
            format!("- {{name: {class}, concurrent: 10, hosts: r1, steps: [{{compute: {{mean: 1ms, c2: 1}}}}, {{operation: {class}}}]}}\n")
        })
        .collect();
    let records = run(&base(&format!(
        "classes: [{{name: PC, weight: 8}}, {{name: NC, weight: 2}}]\n\
         operations:\n\
         - {{name: PC, kind: read, medium: ram, size: 1MB, servers: r0, class: PC}}\n\
         - {{name: NC, kind: read, medium: ram, size: 1MB, servers: r0, class: NC}}\n\
         jobs:\n{jobs}horizon: 2s\nsample: 1s"
    )));
    let (heavy, light) = (mean(&latencies(&records, 0)), mean(&latencies(&records, 1)));
    assert!((2.0..5.0).contains(&(light / heavy)), "{light} s, {heavy} s");
    // The uplink of the first rack in the last second, by class.
    let of_uplink: Vec<u64> =
        records.links[records.links.len() - 8..][..2].iter().map(|record| record.traffic.bytes).collect();
    let shares = of_uplink[0] as f64 / of_uplink.iter().sum::<u64>() as f64;
    assert!((0.75..0.85).contains(&shares), "{of_uplink:?}");
}

#[test]
fn incast_marks_packets_and_shares_the_link() {
    let records = run("cluster: {racks: 3, hosts_per_rack: 20, nic: 10Gbps, rack_link: 40Gbps}\n\
         media: [{name: ram, read: 1000GB/s, write: 1000GB/s, parallel: 1000}]\n\
         operations: [{name: write, kind: write, medium: ram, size: 1MB, servers: r0h0}]\n\
         jobs: [{name: writes, concurrent: 30, hosts: [r1, r2], steps: [{operation: write}]}]\n\
         horizon: 300ms\nwarmup: 100ms\nsample: 100ms");
    let times = latencies(&records, 0);
    // Thirty writes share 10 Gb/s: 24 ms each.
    assert!((0.022..0.028).contains(&mean(&times)), "{} s", mean(&times));
    // The downlink of the rack is not full; the port of the host is, and its queue is short.
    assert!(records.links.iter().all(|record| record.traffic.dropped == 0));
}

#[test]
fn a_read_that_comes_late_is_computed_from_other_chunks() {
    let text = |degraded: &str| {
        format!(
            "cluster: {{racks: [{{count: 9, hosts: 1, link: 10Gbps, devices: [{{read: 1GB/s, write: 1GB/s}}]}}, {{name: clients, hosts: 4, link: 10Gbps}}], nic: 10Gbps}}\n\
             media: [{{name: disk, read: 100MB/s, write: 100MB/s}}]\n\
             chunks: {{policy: uniform, stripes: 20, coding: 6+3, size: 1MB}}\n\
             operations: [{{name: read, kind: read, medium: disk, size: 1MB{degraded}}}]\n\
             jobs: [{{name: reads, concurrent: 2, hosts: clients, steps: [{{compute: 10ms}}, {{operation: read}}]}}]\n\
             events: [{{at: 0s, link: \"r0h0:egress\", capacity: 1Mbps}}]\n\
             horizon: 3s"
        )
    };
    let (plain, degraded) = (run(&text("")), run(&text(", degraded: {after: 50ms}")));
    assert!(plain.operations.iter().all(|operation| !operation.degraded));
    let late: Vec<_> = degraded.operations.iter().filter(|operation| operation.degraded).collect();
    assert!(!late.is_empty());
    for operation in late {
        assert_eq!(operation.server.0, 0);
        assert!((0.05..0.5).contains(&operation.latency().as_secs_f64()));
    }
    // A megabyte at 1 Mb/s takes 8 s.
    assert!(plain.operations.len() * 5 < degraded.operations.len());
}

#[test]
fn stripes_of_ccp_prefer_racks_with_large_uplinks() {
    let share = |policy: &str| {
        let records = run(&format!(
            "cluster:\n\
             \x20 nic: 10Gbps\n\
             \x20 hosts_per_rack: 2\n\
             \x20 racks:\n\
             \x20 - {{count: 6, kind: disk, link: 2Gbps, devices: [{{read: 1GB/s, write: 1GB/s, capacity: 1TB}}]}}\n\
             \x20 - {{count: 6, kind: disk, link: 6Gbps, devices: [{{read: 1GB/s, write: 1GB/s, capacity: 1TB}}]}}\n\
             \x20 - {{name: clients, kind: compute, link: 40Gbps}}\n\
             media: [{{name: disk, read: 1GB/s, write: 1GB/s}}]\n\
             chunks: {{policy: {policy}, stripes: 200, coding: 2+1, size: 1MB}}\n\
             operations: [{{name: read, kind: read, medium: disk, size: 10KB}}]\n\
             jobs: [{{name: reads, rate: 2000, hosts: clients, steps: [{{operation: read}}]}}]\n\
             horizon: 500ms"
        ));
        let large = records.operations.iter().filter(|operation| (12..24).contains(&operation.server.0));
        large.count() as f64 / records.operations.len() as f64
    };
    let (uniform, ccp) = (share("uniform"), share("ccp"));
    assert!((0.4..0.6).contains(&uniform), "{uniform}");
    assert!(ccp > 0.8, "{ccp}");
}

#[test]
fn a_run_that_is_stopped_says_so() {
    let text = base(
        "operations: [{name: read, kind: read, medium: ram, size: 1MB, servers: r0}]\n\
         jobs: [{name: reads, rate: 10, steps: [{operation: read}]}]\nhorizon: 1s",
    );
    let scenario = Scenario::from_text("a.yaml", &text, Path::new("")).expect("a valid scenario");
    let stopped = scenario.run(&|share| share < 0.5);
    assert_eq!(stopped.expect_err("stopped").to_string(), "stopped");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn every_operation_ends_and_a_run_repeats(
        control in prop_oneof![Just("reno"), Just("cubic"), Just("dctcp")],
        buffer in 20_u32..2000,
        count in 1_u32..12,
        parallel in 1_u32..8,
        least in 1_u64..100_000,
        most in 100_000_u64..2_000_000,
        classes in prop::bool::ANY,
        seed in 0_u64..1000,
    ) {
        let class = if classes { "classes: [{name: A, weight: 4}, {name: B, weight: 1}]" } else { "seed: 1" };
        let of_class = if classes { ", class: B" } else { "" };
        let text = base(&format!(
            "network: {{buffer: {buffer}KB, mark_at: 15KB}}\n\
             tcp: {{control: {control}, mss: 1448}}\n\
             {class}\n\
             operations:\n\
             - {{name: read, kind: read, medium: ram, size: [{least}B, {most}B], servers: [r0, r1h0]}}\n\
             - {{name: write, kind: write, medium: ram, size: {least}B, servers: r0{of_class}}}\n\
             jobs:\n\
             - {{name: a, rate: 100, end: 100ms, steps: [{{operation: read, count: {count}, parallel: {parallel}}}]}}\n\
             - {{name: b, rate: 100, end: 100ms, workers: 3, steps: [{{compute: {seed}us}}, {{operation: write}}]}}\n\
             horizon: 60s\nsample: 60s"
        ));
        let records = run(&text);
        prop_assert_eq!(records.unfinished, 0);
        let writes = records.operations.iter().filter(|operation| operation.operation == 1).count();
        let jobs = records.jobs.iter().filter(|job| job.job == 1).count();
        prop_assert_eq!(writes, 3 * jobs);
        for operation in &records.operations {
            prop_assert!(operation.ended > operation.began);
            prop_assert!(operation.served <= operation.latency());
        }
        prop_assert_eq!(run(&text), records);
    }
}
