//! Theory: TCP shares a full uplink as processor sharing, so latencies follow the formulas of closed and open queues.

use std::path::Path;

use leeward_operations::{Records, Scenario};

const SIZE: f64 = 1e6;
const RATE: f64 = 3e9;

fn run(jobs: &str) -> Records {
    let text = format!(
        "cluster: {{racks: 2, hosts_per_rack: 10, nic: 10Gbps, rack_link: 3Gbps}}\n\
         media: [{{name: ram, read: 1000GB/s, write: 1000GB/s, parallel: 1000}}]\n\
         operations: [{{name: read, kind: read, medium: ram, size: 1MB, servers: r0}}]\n\
         jobs: [{jobs}]\nhorizon: 12s\nwarmup: 2s\nsample: 10s"
    );
    let scenario = Scenario::from_text("a.yaml", &text, Path::new("")).expect("a valid scenario");
    scenario.run(&|_| true).expect("a run that ends")
}

fn mean_latency(records: &Records) -> f64 {
    let sum: f64 = records.operations.iter().map(|one| one.latency().as_secs_f64()).sum();
    sum / records.operations.len() as f64
}

/// Utilization of the first rack's uplink.
fn utilization(records: &Records) -> f64 {
    records.links[0].traffic.bytes as f64 * 8.0 / 10.0 / RATE
}

/// Seconds of a read alone on the link: its bytes with headers.
fn alone() -> f64 {
    SIZE * 8.0 / RATE * (9000.0 / 8948.0)
}

/// Utilization and mean response of `workers` that think and share a server equally (machine repairmen), by mean value
/// analysis.
fn closed(workers: u32, think: f64, service: f64) -> (f64, f64) {
    let (mut queue, mut response, mut throughput) = (0.0, service, 0.0);
    for count in 1..=workers {
        response = service * (1.0 + queue);
        throughput = f64::from(count) / (think + response);
        queue = throughput * response;
    }
    (throughput * service, response)
}

#[test]
fn workers_that_think_share_an_uplink_as_the_theory_says() {
    for (workers, think) in [(5, 0.020), (20, 0.060), (20, 0.040)] {
        let records = run(&format!(
            "{{name: a, concurrent: {workers}, hosts: r1, steps: [{{compute: {{mean: {}us, c2: 1}}}}, {{operation: read}}]}}",
            think * 1e6
        ));
        let (load, response) = closed(workers, think, alone());
        let (found_load, found) = (utilization(&records), mean_latency(&records));
        assert!((found_load / load - 1.0).abs() < 0.1, "{workers}, {think} s: {found_load}, theory {load}");
        // Slow start makes a transfer somewhat longer than its share.
        assert!(
            (0.9..1.35).contains(&(found / response)),
            "{workers}, {think} s: {found}, theory {response}"
        );
    }
}

#[test]
fn reads_that_arrive_at_random_take_the_time_of_processor_sharing() {
    for load in [0.3, 0.5, 0.7] {
        let rate = load / alone();
        let records = run(&format!("{{name: a, rate: {rate}, hosts: r1, steps: [{{operation: read}}]}}"));
        let theory = alone() / (1.0 - load);
        let found = mean_latency(&records);
        assert!((utilization(&records) / load - 1.0).abs() < 0.1);
        assert!((0.85..1.4).contains(&(found / theory)), "at {load}: {found} s, theory {theory} s");
    }
}
