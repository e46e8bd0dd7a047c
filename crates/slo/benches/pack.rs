//! Measures the packing of workloads onto servers, with limits by linear programs: the number of servers used, and the
//! time in seconds. The table also has the number of servers that the thesis' released code uses.
//!
//! With `LEEWARD_SHARED` the benchmark uses the released code's example curves and topologies; without it,
//! synthetic curves.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

#[path = "../tests/it/support/reference.rs"]
#[allow(dead_code, reason = "the benchmark uses a part")]
mod reference;

use std::sync::Arc;
use std::time::Instant;

use leeward_calculus::{ArrivalCurve, Packets, RbCurve};
use leeward_slo::bound::{BoundSettings, Method};
use leeward_slo::limits::{Compactor, Limiting, Problem};
use leeward_slo::pack::{Client, Confirm, PackSettings, Packing, Request, Site};
use leeward_slo::{Demand, Promise, Queue, Slo, System, Workload};
use leeward_testing::bench;
use leeward_testing::golden;
use leeward_traces::Stage;

/// Number of workloads, fast first fit, number of servers tried at once, and the servers that the released code uses.
const CASES: [(usize, bool, usize, &str); 12] = [
    (62, false, 1, "11"),
    (62, true, 1, "11"),
    (100, false, 1, "23"),
    (100, true, 1, "22"),
    (300, false, 1, "-"),
    (300, false, 2, "-"),
    (300, true, 1, "77"),
    (1000, false, 1, "-"),
    (1000, false, 2, "-"),
    (1000, true, 1, "246"),
    (1000, true, 2, "246"),
    (10_000, true, 1, "-"),
];

fn main() {
    let folder = golden::folder("qos");
    let thousand = match &folder {
        Some(folder) => {
            reference::workloads(folder, &reference::topology(&folder.join("bench/topo_1000.json.gz")))
        }
        None => synthetic(1000),
    };
    programs(&thousand);
    confirmed(&thousand);
    println!(
        "\n{:>9} {:>5} {:>7} {:>8} {:>8} {:>9} {:>14}",
        "workloads", "fast", "threads", "servers", "refused", "seconds", "released code"
    );
    for (count, fast, threads, servers) in CASES {
        // These two would add about a minute to each run of `make bench`.
        let is_long = count > 1000 || (count == 1000 && !fast && threads > 1);
        if is_long && bench::is_recorded() {
            continue;
        }
        let file = match count {
            62 => "placement/topo-example.txt".to_owned(),
            1000 => "bench/topo_1000.json.gz".to_owned(),
            count => format!("bench/topo_{count}.json"),
        };
        let (site, workloads) = match folder.as_ref().filter(|_| count <= 1000) {
            Some(folder) => {
                let topology = reference::topology(&folder.join(file));
                (reference::site(&topology), reference::workloads(folder, &topology))
            }
            None => (star(count), repeated(&thousand, count)),
        };
        let settings = PackSettings { fast, threads, margin: 0.0, pruning: 0.0, ..PackSettings::default() };
        let mut packing = Packing::new(site, settings, "").expect("valid settings");
        let start = Instant::now();
        for workload in workloads {
            drop(packing.place(&Request { workload: Arc::new(workload), client: None }));
        }
        let elapsed = start.elapsed().as_secs_f64();
        // Without the folder, the workloads are others.
        let released = if folder.is_some() { servers } else { "" };
        let (used, refused) = (packing.servers_used(), packing.refused().len());
        let kind = if fast { "fast" } else { "first fit" };
        bench::record(&format!("pack, {count} workloads, {kind}, {threads} threads"), "s", elapsed);
        println!("{count:>9} {fast:>5} {threads:>7} {used:>8} {refused:>8} {elapsed:>9.2} {released:>14}");
    }
}

/// Time of a packing whose places bounds confirm, as `leeward slo pack` does by default.
fn confirmed(workloads: &[Workload]) {
    println!("\n{:>9} {:>8} {:>8} {:>9}  confirmed by", "workloads", "servers", "refused", "seconds");
    for (count, method) in [(62, Method::Dnc), (62, Method::Best)] {
        let confirm = Confirm { method, bounds: BoundSettings::default() };
        let settings =
            PackSettings { margin: 0.0, pruning: 0.0, confirm: Some(confirm), ..PackSettings::default() };
        let mut packing = Packing::new(star(count), settings, "").expect("valid settings");
        let start = Instant::now();
        for workload in repeated(workloads, count) {
            drop(packing.place(&Request { workload: Arc::new(workload), client: None }));
        }
        let elapsed = start.elapsed().as_secs_f64();
        let (used, refused) = (packing.servers_used(), packing.refused().len());
        bench::record(&format!("pack, {count} workloads, confirmed by {}", method.name()), "s", elapsed);
        println!("{count:>9} {used:>8} {refused:>8} {elapsed:>9.2}  {}", method.name());
    }
}

/// Time of one linear program with all workloads on one large server.
fn programs(workloads: &[Workload]) {
    println!("{:>9} {:>12}", "workloads", "program");
    for count in [5, 10, 50] {
        let queue =
            |name: &str, capacity| Queue { name: name.to_owned(), capacity, latency: 0.0, resource: None };
        let queues = vec![queue("c-out", 1.25e9), queue("ssd", 20.0), queue("s-out", 1.25e9)];
        let promise = |workload: &Workload| Promise {
            workload: Arc::new(workload.clone()),
            route: vec![vec![0], vec![1], vec![2]],
            priorities: vec![(workload.slo.expect("an SLO").latency * 100.0) as u32; 3],
            limits: workload.demands.iter().map(|demand| demand.arrivals.clone()).collect(),
        };
        let system = System { queues, promises: workloads.iter().take(count).map(promise).collect() };
        let all: Vec<usize> = (0..system.promises.len()).collect();
        let way = Compactor::default();
        let (mut best, mut feasible) = (f64::INFINITY, true);
        for _ in 0..20 {
            let start = Instant::now();
            feasible = way.choose(&Problem::of(&system, &all, Packets::Fluid)).is_ok();
            best = best.min(start.elapsed().as_secs_f64());
        }
        bench::record(&format!("pack, program for {count} workloads"), "ms", best * 1e3);
        println!("{count:>9} {:>9.2} ms{}", best * 1e3, if feasible { "" } else { " (infeasible)" });
    }
}

/// A star with more servers than needed, and as many clients, with 15 slots each.
fn star(count: usize) -> Site {
    let hosts = (count * 26).div_ceil(100).max(12);
    let clients = (0..hosts).map(|at| Client { name: format!("client{at:05}"), slots: Some(15) }).collect();
    let servers = (0..hosts).map(|at| (format!("server{at:05}"), 1)).collect();
    Site::star(clients, servers, 125e6).expect("a valid site")
}

/// Repeats the workloads in a different order each time, under new names.
fn repeated(workloads: &[Workload], count: usize) -> Vec<Workload> {
    let workload = |at: usize| {
        let workload = &workloads[(at * 7 + at / workloads.len()) % workloads.len()];
        Workload { name: format!("C{at}"), ..workload.clone() }
    };
    (0..count).map(workload).collect()
}

/// Workloads of 60 kinds, each with bursts at several time scales and one of five SLOs.
fn synthetic(count: usize) -> Vec<Workload> {
    let mut state = 1u64;
    let mut draw = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut kind = || {
        let (mut at, mut pace) = (0.0, 1e-2);
        let load = 0.02 + 0.2 * draw() * draw();
        let requests: Vec<(f64, f64, bool)> = (0..5000)
            .map(|_| {
                if draw() < 0.02 {
                    pace = 10f64.powf(-3.0 + 2.5 * draw());
                }
                at += -(1.0 - draw()).ln() * pace;
                (at, 4096.0 * (1.0 + 15.0 * draw() * draw()), draw() < 0.6)
            })
            .collect();
        let seconds = load * at / requests.iter().map(|request| request.1).sum::<f64>();
        let curve = |work: &dyn Fn(f64, bool) -> f64| {
            let arrivals = requests.iter().map(|&(at, size, read)| (at, work(size, read)));
            let curve = RbCurve::from_arrivals(arrivals).expect("a sorted trace").arrival_curve();
            curve.prune_to(12).expect("some buckets").curve
        };
        let payload = |size: f64, there: bool| 200.0 + if there { 1.1 } else { 0.025 } * size;
        [
            curve(&|size, read| payload(size, !read)),
            curve(&|size, _| size * seconds),
            curve(&|size, read| payload(size, read)),
        ]
    };
    let kinds: Vec<[ArrivalCurve; 3]> = (0..60).map(|_| kind()).collect();
    let workload = |at: usize| {
        let demands = Stage::ALL.into_iter().zip(&kinds[(at * 37) % kinds.len()]);
        let demands = demands.map(|(stage, arrivals)| Demand {
            stage,
            arrivals: arrivals.clone(),
            largest: 0.0,
            model: None,
            unloaded: 0.0,
            outstanding: None,
        });
        let latency = [0.1, 0.15, 0.25, 0.5, 1.0][(at * 13) % 5];
        Workload {
            name: format!("C{at}"),
            slo: Some(Slo { percentile: 99.9, latency }),
            demands: demands.collect(),
            dependencies: Vec::new(),
        }
    };
    (0..count).map(workload).collect()
}
