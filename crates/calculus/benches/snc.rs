//! Measures the time to compute the bounds of many workloads on one core. Times are processor seconds, so other programs
//! have little effect on them.
//!
//! The network has the same form as in the timed runs of the released code. Client i uses model i mod 12, host c(i mod
//! max(2, ceil(N/6))), server s(7i mod max(1, ceil(N/10))), an objective of [10, 20, 50, 100, 200] ms [i mod 5] at 99.9
//! %, and links of 125 MB/s. The models here have the same numbers of states and about the same loads as the authors'
//! models. If `LEEWARD_SHARED` contains the original inputs, the benchmark times those as well.

#[path = "../tests/it/support/mod.rs"]
#[allow(dead_code, reason = "the benchmark uses a part")]
mod support;

use leeward_calculus::mmpp::{Mmpp, Requests, Sigma, Sizes, State};
use leeward_calculus::snc::{Analysis, Network, Queue, Stage, Workload};
use leeward_testing::bench::{record, repeats, seconds};
use leeward_testing::golden;
use support::STEP;

const RUNS: usize = 7;
/// Minimum duration of a measurement, in seconds; the system counts a thread's time in steps of milliseconds.
const LONG_ENOUGH: f64 = 0.1;
const LINK: f64 = 125e6;
/// Number of workloads, and number of dependent pairs.
const CASES: [(usize, usize); 5] = [(10, 0), (50, 0), (180, 0), (10, 1), (50, 5)];
/// The twelve models: number of states, mean requests per second, and the mean work of a request in each direction.
const MODELS: [(usize, f64, [f64; 2]); 12] = [
    (1, 50.0, [3e3, 1.2e4]),
    (1, 43.0, [3e3, 1.2e4]),
    (10, 40.0, [3e3, 1.2e4]),
    (3, 14.0, [3e3, 1.2e4]),
    (3, 27.0, [3e3, 1.2e4]),
    (7, 90.0, [3e3, 1.2e4]),
    (1, 34.0, [3e3, 1.2e4]),
    (1, 65.0, [3e3, 1.2e4]),
    (10, 30.0, [3e3, 1.2e4]),
    (10, 20.0, [3e3, 1.2e4]),
    (7, 100.0, [3e3, 1.2e4]),
    (1, 1490.0, [335.0, 1217.0]),
];

fn main() {
    println!("{:<44} {:>10} {:>10} {:>10}", "bipartite analysis of all workloads", "median", "least", "most");
    for (count, pairs) in CASES {
        let build = || build_network(count, pairs, 0.0);
        for lyapunov in [false, true] {
            let kind = if lyapunov { ", Lyapunov" } else { "" };
            time(&format!("{count} workloads, {pairs} dependent pairs{kind}"), build, lyapunov);
        }
    }
    // All models differ, so workloads share no cached bounds.
    time("180 workloads, every model its own", || build_network(180, 0, 1e-3), false);
    let Some(folder) = golden::folder("qos/bench") else { return };
    for file in ["snc_10.in.json", "snc_50.in.json", "snc_180.in.json.gz", "snc_10_dep.in.json"] {
        let input = golden::json(&folder.join(file));
        time(file, || support::network(&input), false);
        time(&format!("{file}, Lyapunov"), || support::network(&input), true);
    }
}

/// A network with new models and empty caches.
fn build_network(count: usize, pairs: usize, drift: f64) -> Network {
    let (queues, workloads) = generate(count, pairs, drift);
    Network::new(&queues, &workloads).expect("the generated network is sound")
}

/// Times the bounds of all workloads. Each run builds new networks with new models, so no cache survives from run to
/// run. Runs repeat until the total time is long enough to measure. Construction is not included, as in the times of the
/// released code.
fn time(name: &str, build: impl Fn() -> Network, lyapunov: bool) {
    let measure = |networks: usize| {
        let mut networks: Vec<Network> = (0..networks).map(|_| build()).collect();
        let begin = seconds();
        for network in &mut networks {
            network.set_lyapunov(lyapunov);
            let bounds = network.bounds(Analysis::Bipartite);
            assert!(bounds.iter().all(|bound| bound.seconds.is_some()), "{name}: unstable");
        }
        (seconds() - begin) / networks.len() as f64
    };
    let enough = (LONG_ENOUGH / measure(1).max(LONG_ENOUGH / 50.0)).ceil() as usize;
    let mut seconds: Vec<f64> = (0..repeats(RUNS)).map(|_| measure(enough)).collect();
    seconds.sort_by(f64::total_cmp);
    let (median, least, most) = (seconds[seconds.len() / 2], seconds[0], seconds[seconds.len() - 1]);
    record(&format!("stochastic bounds, {name}"), "s", median);
    println!("{name:<44} {:>7.2} ms {:>7.2} ms {:>7.2} ms", median * 1e3, least * 1e3, most * 1e3);
}

/// From each workload to the next, the work of a request grows by the share `drift`.
fn generate(count: usize, pairs: usize, drift: f64) -> (Vec<Queue>, Vec<Workload>) {
    let hosts = count.div_ceil(6).max(2);
    let servers = count.div_ceil(10).max(1);
    let sides = (0..hosts).map(|at| format!("c{at}")).chain((0..servers).map(|at| format!("s{at}")));
    let queues = sides
        .flat_map(|host| {
            ["in", "out"].map(|way| Queue {
                name: format!("{host}-{way}"),
                rate: LINK,
                in_service: 0.0,
                latency: 0.0,
            })
        })
        .collect();
    let workloads = (0..count)
        .map(|at| {
            let (host, server) = (at % hosts, 7 * at % servers);
            let (states, requests, work) = MODELS[at % 12];
            let stage = |from: String, to: String, work| Stage {
                queues: vec![from, to],
                arrivals: model(states, requests, work * (1.0 + drift * at as f64)),
                packet: 0.0,
            };
            Workload {
                name: format!("C{at}"),
                percentile: 99.9,
                // Five latency objectives in turn, the shortest first.
                priority: (at % 5) as u32,
                dependencies: if at % 2 == 0 && at / 2 < pairs {
                    vec![format!("C{}", at + 1)]
                } else {
                    vec![]
                },
                stages: vec![
                    stage(format!("c{host}-out"), format!("s{server}-in"), work[0]),
                    stage(format!("s{server}-out"), format!("c{host}-in"), work[1]),
                ],
            }
        })
        .collect();
    (queues, workloads)
}

/// A chain of `states` states with sojourn times of seconds, and with rates from a fifth to twice the mean.
fn model(states: usize, requests: f64, mean: f64) -> Mmpp {
    let leave = 5e-6;
    let rate = |state: usize| {
        if states == 1 { 1.0 } else { 0.2 + 1.8 * state as f64 / (states - 1) as f64 }
    };
    let state = |at: usize| State {
        requests: Requests::Bernoulli(requests * rate(at) * STEP),
        // Sizes of states differ slightly, as in fitted models.
        sizes: Sizes::Exponential { mean: mean * (1.0 + 0.01 * at as f64) },
    };
    let row = |from: usize| {
        (0..states)
            .map(|to| if from == to { 1.0 - leave * (states - 1) as f64 } else { leave })
            .collect::<Vec<f64>>()
    };
    let rows: Vec<Vec<f64>> = (0..states).map(row).collect();
    Mmpp::new(STEP, (0..states).map(state).collect(), &rows, Sigma::Zero).expect("a sound model")
}
