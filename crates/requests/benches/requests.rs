//! Speed of simulated requests: the three stages of one server with 10 to 300 workloads, on one core. The same run
//! measures a binary heap with as many events. Times are processor seconds, so other load has little effect.
//!
//! Run by `cargo bench -p leeward-requests --bench requests`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hint::black_box;

use leeward_calculus::TokenBucket;
use leeward_fabric::Nanos;
use leeward_requests::{
    Arrival, Device, Enforced, OverLimit, Report, Scheduling, Server, Setup, Source, StageLimits, StartCaps,
    run,
};
use leeward_slo::Slo;
use leeward_testing::bench::{record, repeats, seconds};
use leeward_traces::Kind;

const REQUESTS: u64 = 2_000_000;
/// Mean gap between requests of all workloads, in nanoseconds: the link is busy for 70 % of the time.
const GAP: u64 = 47_000;

/// Requests of 4 KiB with exponential gaps; half of the requests are reads. The random generator of this benchmark
/// costs next to nothing.
struct Poisson {
    state: u64,
    clock: f64,
    mean: f64,
    left: u64,
}

impl Iterator for Poisson {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        self.left = self.left.checked_sub(1)?;
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let even = ((self.state >> 11) as f64 + 1.0) / (1u64 << 53) as f64;
        self.clock -= self.mean * even.ln();
        let read = self.state >> 63 == 0;
        let (kind, incoming, outgoing) =
            if read { (Kind::Read, 300.0, 4700.0) } else { (Kind::Write, 4700.0, 300.0) };
        Some(Arrival {
            at: Nanos(self.clock as u64),
            kind,
            size: 4096,
            offset: None,
            work: [incoming, 30e-6, outgoing],
        })
    }
}

fn sources<'a>(workloads: u64) -> Vec<Source<'a>> {
    let poisson = |index| Poisson {
        state: 88_172_645_463_325_252 ^ (index * 0x9e37_79b9_7f4a_7c15),
        clock: 0.0,
        mean: (GAP * workloads) as f64,
        left: REQUESTS / workloads,
    };
    (0..workloads).map(|index| Source::open(poisson(index))).collect()
}

fn setup(workloads: u64, order: Scheduling, limits: bool) -> Setup {
    let link = |name: &str| Server::link(name, 125e6);
    let behind = Some(StartCaps { requests: 8, bytes: 1 << 20 });
    let ssd = Device { read_latency: Nanos(60_000), write_latency: Nanos(20_000), behind, ..Device::ssd(32) };
    let servers = vec![link("in"), Server { order, ..Server::device("ssd", ssd) }, link("out")];
    let rate = 1e9 / (GAP * workloads) as f64;
    let enforced = |index: u64| {
        let stage = |server: usize, work: f64| StageLimits {
            route: vec![server],
            priority: (index % 16) as u32,
            limits: if limits {
                [(1.5, 50.0), (4.0, 10.0)]
                    .map(|(r, b)| TokenBucket::new(r * rate * work, b * work).unwrap())
                    .to_vec()
            } else {
                Vec::new()
            },
            over: if server == 1 { OverLimit::Demoted } else { OverLimit::Held },
        };
        let slo = Some(Slo { percentile: 99.9, latency: 0.02 });
        let stages = [stage(0, 2500.0), stage(1, 30e-6), stage(2, 2500.0)];
        Enforced { name: format!("w{index}"), slo, weight: 1.0, stages }
    };
    Setup::new(servers, (0..workloads).map(enforced).collect())
}

fn main() {
    println!(
        "workloads  what                      requests/s   of the heap    mean us    p99.9 us   busy   demoted"
    );
    for workloads in [10, 40, 300] {
        let bound = heap(workloads);
        println!("{workloads:>9}  heap of this many events {bound:>13.0} {:>14.2}", 1.0);
        let strict = setup(workloads, Scheduling::Priority, true);
        line(workloads, "strict, two buckets each", &strict, bound);
        line(workloads, "  and a row each", &Setup { rows: true, ..strict }, bound);
        line(workloads, "strict, no buckets", &setup(workloads, Scheduling::Priority, false), bound);
        line(workloads, "shares", &setup(workloads, Scheduling::Shares, false), bound);
        line(workloads, "deadlines", &setup(workloads, Scheduling::Deadline, false), bound);
    }
}

fn line(workloads: u64, name: &str, setup: &Setup, bound: f64) {
    let mut best = f64::INFINITY;
    let mut report: Option<Report> = None;
    for _ in 0..repeats(3) {
        let sources = sources(workloads);
        let began = seconds();
        report = Some(black_box(run(setup, sources)).expect("a valid setup"));
        best = best.min(seconds() - began);
    }
    let report = report.expect("at least one run");
    let (mut count, mut sum, mut tail, mut demoted) = (0, 0, 0, 0);
    for measured in &report.workloads {
        count += measured.latency.count();
        sum += measured.latency.sum();
        tail = tail.max(measured.latency.percentile(99.9).unwrap_or(0));
        demoted += measured.demoted;
    }
    let speed = count as f64 / best;
    record(&format!("requests, {workloads} workloads, {}", name.trim()), "requests/s", speed);
    record(&format!("requests, {workloads} workloads, {}, heap", name.trim()), "ratio", speed / bound);
    println!(
        "{workloads:>9}  {name:<24} {speed:>11.0} {:>14.2} {:>9.1} {:>11.1} {:>5.0}% {demoted:>9}",
        speed / bound,
        sum as f64 / count as f64 / 1e3,
        tail as f64 / 1e3,
        100.0 * report.servers[1].busy.0 as f64 / report.end.0 as f64
    );
}

/// Requests per second if each request were only its five events in a heap with one entry per event source. The events
/// are arrival, three services, and a device's latency; arrivals are as in the runs.
fn heap(workloads: u64) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..repeats(3) {
        let began = seconds();
        let mut heap: BinaryHeap<Reverse<(u64, u32)>> =
            (0..workloads as u32 + 5).map(|id| Reverse((u64::from(id), id))).collect();
        let arrivals = Poisson { state: 1, clock: 0.0, mean: 1000.0, left: REQUESTS };
        let mut sum = 0;
        for arrival in arrivals {
            for event in 0..5 {
                let Some(Reverse((time, id))) = heap.pop() else { break };
                sum ^= time;
                heap.push(Reverse((time + 1 + (arrival.at.0 >> (8 * event)) % 10_000, id)));
            }
        }
        black_box(sum);
        best = best.min(seconds() - began);
    }
    REQUESTS as f64 / best
}
