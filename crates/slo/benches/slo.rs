//! Measures the time of bounds for 180 workloads by each method, and of their admission one after another. Each line of
//! the output also has a ratio: its time over the time of the stochastic bounds of all workloads in the same run. Times
//! are processor seconds, so other load on the machine has little effect on them.

use std::sync::Arc;

use leeward_calculus::mmpp::{Mmpp, Requests, Sigma, Sizes, State};
use leeward_calculus::{ArrivalCurve, TokenBucket};
use leeward_slo::admit::{self, Arrival};
use leeward_slo::bound::{BoundSettings, Bounds, Method};
use leeward_slo::priorities::{LEVELS, by_slo, priority_meister};
use leeward_slo::{Demand, Promise, Queue, Slo, System, Workload};
use leeward_testing::bench;
use leeward_traces::Stage;

const RUNS: usize = 3;
const CLIENTS: usize = 12;
const SERVERS: usize = 6;
/// 1 Gb/s.
const LINK: f64 = 125e6;
const STEP: f64 = 1e-5;

fn main() {
    println!("{:<52} {:>10} {:>10} {:>10} {:>8}", "", "median", "least", "most", "ratio");
    let whole = system(180);
    // Models cache results, so the benchmark measures the first run separately.
    let mut systems: Vec<System> = (0..bench::repeats(RUNS)).map(|_| system(180)).collect();
    let unit = time("bounds of 180, snc, models new", 1.0, || {
        bounds(&systems.pop().expect("one system for each run"), Method::Snc)
    });
    time("bounds of 180, snc, again", unit, || bounds(&whole, Method::Snc));
    time("SLOs of 180 checked, snc", unit, || {
        let mut bounds = Bounds::new(&whole, BoundSettings::default()).expect("the system below is valid");
        180 - bounds.misses(0..180, Method::Snc).len()
    });
    time("bounds of 180, dnc", unit, || bounds(&whole, Method::Dnc));
    let settings = BoundSettings::default();
    let slowest = whole.promises.iter().position(|promise| promise.priorities[0] == 3);
    time("one bound of 180, priority-meister, last in order", unit, || {
        let mut bounds = Bounds::new(&whole, settings).expect("the system below is valid");
        let bound = bounds.bound(slowest.expect("there are four SLOs"), Method::PriorityMeister);
        usize::from(bound.is_ok())
    });
    let mut paired = system(50);
    for pair in 0..5 {
        let other = vec![paired.promises[2 * pair + 1].workload.name.clone()];
        Arc::make_mut(&mut paired.promises[2 * pair].workload).dependencies = other;
    }
    time("bounds of 50, five pairs dependent, snc", unit, || bounds(&paired, Method::Snc));
    let small = system(35);
    time("bounds of 35, snc", unit, || bounds(&small, Method::Snc));
    time("bounds of 35, priority-meister", unit, || bounds(&small, Method::PriorityMeister));
    time("search of PriorityMeister, 35, by curves", unit, || {
        let mut bound = |system: &System, at: usize| Bounds::new(system, settings)?.bound(at, Method::Dnc);
        small.promises.len() - priority_meister(&small, LEVELS, &mut bound).missed.len()
    });
    fifty(unit);
    // Sizes and settings of each policy. The stochastic bounds, the programs and the searches of many arrivals take
    // minutes, so these cases are smaller.
    let cases = admit::REGISTRY.names().flat_map(|name| {
        let cases: &[(usize, &str)] = match name {
            "snc" => &[(35, ""), (180, "")],
            "dnc" => {
                &[(35, ""), (35, "method: priority-meister"), (35, "method: plp"), (180, "search: false")]
            }
            "best" => &[(35, "")],
            _ => &[(180, "")],
        };
        cases.iter().map(move |&(count, given)| (count, name, given))
    });
    for (count, name, given) in cases {
        let policy = admit::REGISTRY.make(name, given).expect("a policy of the registry");
        let offered = system(count);
        let title = format!("{count} arrivals, {name} {given}");
        time(&title, unit, || {
            let mut system = System { queues: offered.queues.clone(), promises: Vec::new() };
            let mut admitted = 0;
            for Promise { workload, route, .. } in offered.promises.clone() {
                let outcome = policy.arrive(&system, Arrival { workload, route });
                let outcome = outcome.expect("the system below is valid");
                admitted += usize::from(outcome.admitted());
                system = outcome.system;
            }
            admitted
        });
    }
}

/// Deterministic bounds of 50 workloads: their time, and how much the linear program for service in order of arrival
/// lowers them.
fn fifty(unit: f64) {
    for (title, one_priority) in [("", false), (" of one priority", true)] {
        let mut system = system(50);
        if one_priority {
            system.promises.iter_mut().for_each(|promise| promise.priorities.fill(0));
        }
        let seconds = |method| -> Vec<f64> {
            let bounds = leeward_slo::bound::bounds(&system, method, BoundSettings::default());
            bounds.into_iter().map(|bound| bound.map_or(f64::INFINITY, |bound| bound.seconds)).collect()
        };
        let plp = seconds(Method::Plp);
        for method in [Method::Dnc, Method::PriorityMeister, Method::Plp] {
            let name = method.name();
            time(&format!("bounds of 50{title}, {name}"), unit, || bounds(&system, method));
            if method == Method::Plp {
                continue;
            }
            let mut ratios: Vec<f64> =
                plp.iter().zip(seconds(method)).map(|(plp, other)| plp / other).collect();
            ratios.sort_by(f64::total_cmp);
            let (least, median, most) = (ratios[0], ratios[ratios.len() / 2], ratios[ratios.len() - 1]);
            println!("    plp is {median:.3} times {name} in the median, {least:.3} to {most:.3}");
        }
        time(&format!("bounds of 50{title}, best"), unit, || bounds(&system, Method::Best));
    }
}

fn bounds(system: &System, method: Method) -> usize {
    let mut bounds = Bounds::new(system, BoundSettings::default()).expect("the system below is valid");
    (0..system.promises.len()).filter(|&promise| bounds.bound(promise, method).is_ok()).count()
}

/// Prints the time of several runs and returns the median, in seconds. `run` returns the number of workloads with a
/// bound, or with a bound within the SLO.
fn time(name: &str, unit: f64, mut run: impl FnMut() -> usize) -> f64 {
    let mut count = 0;
    let mut seconds: Vec<f64> = (0..bench::repeats(RUNS))
        .map(|_| {
            let begin = bench::seconds();
            count = run();
            bench::seconds() - begin
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    let (median, least, most) = (seconds[seconds.len() / 2], seconds[0], seconds[seconds.len() - 1]);
    let ratio = if unit == 1.0 { 1.0 } else { median / unit };
    let (median_ms, least, most) = (median * 1e3, least * 1e3, most * 1e3);
    bench::record(&format!("slo, {}", name.trim_end()), "ms", median_ms);
    println!("{name:<46} {count:>5} {median_ms:>7.1} ms {least:>7.1} ms {most:>7.1} ms {ratio:>7.2}x");
    median
}

/// Workloads of a few kinds between clients and servers, each with its own models for both directions.
fn system(count: usize) -> System {
    let mut queues = Vec::new();
    for (kind, hosts) in [("c", CLIENTS), ("s", SERVERS)] {
        for way in ["up", "down"] {
            queues.extend((0..hosts).map(|at| Queue {
                name: format!("{kind}{at}-{way}"),
                capacity: LINK,
                latency: 0.0,
                resource: None,
            }));
        }
    }
    let promises = (0..count).map(|at| {
        let (client, server) = (at % CLIENTS, at / CLIENTS % SERVERS);
        let scale = 1.0 + at as f64 * 1e-3;
        let kind = at % 4;
        let (rate, size) = [(50.0, 4e3), (20.0, 16e3), (10.0, 32e3), (100.0, 2e3)][kind];
        let request = demand(Stage::NetworkIn, rate, 300.0 * scale);
        let answer = demand(Stage::NetworkOut, rate, size * scale);
        let latency = [0.01, 0.02, 0.05, 0.1][at * 7 / 3 % 4];
        let limits = vec![request.arrivals.clone(), answer.arrivals.clone()];
        let workload = Workload {
            name: format!("w{at}"),
            slo: Some(Slo { percentile: 99.9, latency }),
            demands: vec![request, answer],
            dependencies: Vec::new(),
        };
        let (first, second) = (2 * CLIENTS + SERVERS + server, 2 * CLIENTS + server);
        Promise {
            workload: Arc::new(workload),
            route: vec![vec![client, first], vec![second, CLIENTS + client]],
            priorities: vec![0, 0],
            limits,
        }
    });
    let mut system = System { queues, promises: promises.collect() };
    by_slo(&mut system);
    system
}

/// Requests at 0.2 to 2 times the rate, with a curve of five buckets; the largest burst is twenty requests.
fn demand(stage: Stage, rate: f64, size: f64) -> Demand {
    let states: Vec<State> = [0.2, 0.8, 2.0]
        .map(|share| State {
            requests: Requests::Poisson(rate * share * STEP),
            sizes: Sizes::Exponential { mean: size },
        })
        .to_vec();
    let leave = 5e-6;
    let row = |from: usize| (0..3).map(|to| if from == to { 1.0 - 2.0 * leave } else { leave }).collect();
    let rows: Vec<Vec<f64>> = (0..3).map(row).collect();
    let model = Mmpp::new(STEP, states, &rows, Sigma::Stationary).expect("a valid model");
    let buckets: Vec<TokenBucket> = (0..5)
        .map(|at| {
            let (faster, burst) = (f64::from(1 << (2 * at)), 20.0 / f64::from(1 << at));
            TokenBucket::new(rate * size * 1.2 * faster, size * burst).expect("finite and positive")
        })
        .collect();
    let arrivals = ArrivalCurve::new(&buckets).expect("there are five");
    Demand { stage, arrivals, largest: size, model: Some(model), unloaded: 0.0, outstanding: None }
}
