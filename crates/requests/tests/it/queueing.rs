//! Means of simulated queues compared with queueing theory, with fixed seeds and confidence intervals by batches.

use leeward_fabric::Nanos;
use leeward_registry::random::{Kind as Drawn, stream};
use leeward_requests::{Arrival, Device, Enforced, Rows, Server, Setup, Source, StageLimits, run};
use leeward_traces::Kind;
use rand::RngExt;

/// Requests per run.
const REQUESTS: usize = 400_000;
/// Batches of requests; the first is left out while the queue fills.
const BATCHES: usize = 21;
/// Student's t of 19 degrees of freedom at 99.9 %, two-sided.
const T: f64 = 3.883;
/// Mean service, in seconds.
const SERVICE: f64 = 100e-6;

/// Poisson arrivals at `load` of the server, with sizes in units of the mean service, from uniform draws
/// between 0 and 1.
fn poisson(index: u64, load: f64, requests: usize, size: fn(f64) -> f64) -> Vec<Arrival> {
    let mut random = stream(11, Drawn::named("queueing"), index);
    let mut clock = 0.0;
    let arrivals = (0..requests).map(|_| {
        let mut even = || 1.0 - random.random::<f64>();
        clock -= even().ln() * SERVICE / load;
        let work = [0.0, size(even()) * SERVICE, 0.0];
        Arrival { at: Nanos::from_secs_f64(clock), kind: Kind::Read, size: 1, offset: None, work }
    });
    arrivals.collect()
}

fn one_device(priorities: &[u32], arrivals: Vec<Vec<Arrival>>) -> Rows {
    let workloads = priorities.iter().map(|&priority| {
        let mut stages: [StageLimits; 3] = Default::default();
        stages[1] = StageLimits { route: vec![0], priority, ..StageLimits::default() };
        Enforced { name: format!("p{priority}"), slo: None, weight: 1.0, stages }
    });
    let setup = Setup::new(vec![Server::device("d", Device::ssd(1))], workloads.collect());
    let sources = arrivals.into_iter().map(Source::open).collect();
    run(&Setup { rows: true, ..setup }, sources).unwrap().rows.unwrap()
}

/// Returns the mean latency of a workload and half the width of its confidence interval, in mean services.
fn mean(rows: &Rows, workload: u32) -> (f64, f64) {
    let rows = rows.workload.iter().zip(&rows.latency).filter(|(row, _)| **row == workload);
    let latencies: Vec<f64> = rows.map(|(_, &latency)| latency as f64 / 1e9 / SERVICE).collect();
    let batch = latencies.len() / BATCHES;
    let means: Vec<f64> = latencies
        .chunks_exact(batch)
        .skip(1)
        .take(BATCHES - 1)
        .map(|batch_latencies| batch_latencies.iter().sum::<f64>() / batch as f64)
        .collect();
    let count = means.len() as f64;
    let mean = means.iter().sum::<f64>() / count;
    let variance = means.iter().map(|batch_mean| (batch_mean - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, T * (variance / count).sqrt())
}

fn check(name: &str, (mean, half_width): (f64, f64), expected: f64) {
    println!("{name}: {mean:.4} +- {half_width:.4}, theory {expected:.4}");
    assert!((mean - expected).abs() <= half_width, "{name}: {mean} is not within {half_width} of {expected}");
    assert!(half_width < 0.1 * expected, "{name}: an interval of {half_width} is too wide for {expected}");
}

fn constant(_: f64) -> f64 {
    1.0
}

fn exponential(even: f64) -> f64 {
    -even.ln()
}

#[test]
fn poisson_arrivals_of_one_size_match_m_d_1() {
    for (index, load) in [(0, 0.3), (1, 0.7), (2, 0.85)] {
        let rows = one_device(&[0], vec![poisson(index, load, REQUESTS, constant)]);
        check(&format!("M/D/1 at {load}"), mean(&rows, 0), 1.0 + load / (2.0 * (1.0 - load)));
    }
}

#[test]
fn poisson_arrivals_of_exponential_sizes_match_m_m_1() {
    for (index, load) in [(3, 0.3), (4, 0.7), (5, 0.8)] {
        let rows = one_device(&[0], vec![poisson(index, load, REQUESTS, exponential)]);
        check(&format!("M/M/1 at {load}"), mean(&rows, 0), 1.0 / (1.0 - load));
    }
}

#[test]
fn priorities_match_cobhams_formula() {
    let loads = [0.2, 0.25, 0.3];
    let arrivals =
        (6..).zip(loads).map(|(index, load)| poisson(index, load, REQUESTS, exponential)).collect();
    // The arrivals end with the shortest sequence, so that all three overlap.
    let mut arrivals: Vec<Vec<Arrival>> = arrivals;
    let end = arrivals.iter().map(|requests| requests[requests.len() - 1].at).min().unwrap();
    arrivals.iter_mut().for_each(|requests| requests.retain(|arrival| arrival.at <= end));
    let rows = one_device(&[0, 1, 2], arrivals);
    // Residual work in service: the sum over priorities of the load times the mean square of sizes, divided by twice
    // their mean. For exponential sizes of mean 1, this is the total load.
    let (left, mut before) = (loads.iter().sum::<f64>(), 0.0);
    for (priority, load) in (0..).zip(loads) {
        let wait = left / ((1.0 - before) * (1.0 - before - load));
        before += load;
        check(&format!("priority {priority}"), mean(&rows, priority), 1.0 + wait);
    }
}
