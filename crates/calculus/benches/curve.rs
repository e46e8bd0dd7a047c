//! Measures the time to compute the exact r-b curve of a trace. For comparison, the benchmark also times the direct
//! sweep of SLO algorithm 2.1 over 985 rates, as in the thesis' released code. In this benchmark the compiler
//! vectorizes the sweep's loop over rates.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::hint::black_box;
use std::time::Instant;

use leeward_calculus::RbCurve;
use leeward_testing::bench;

const RATES: usize = 985;

fn main() {
    println!(
        "{:>10} {:>9} {:>10} {:>14} {:>12} {:>8}",
        "requests", "vertices", "curve", "requests/s", "sweep", "ratio"
    );
    for requests in [14_000, 140_000, 1_400_000] {
        let trace = trace(requests);
        let repeats = 2_800_000 / requests;
        let (mut best, mut vertices, mut mean) = (f64::INFINITY, 0, 0.0);
        for _ in 0..repeats {
            let start = Instant::now();
            let curve = RbCurve::from_arrivals(black_box(&trace).iter().copied()).expect("a sorted trace");
            best = best.min(start.elapsed().as_secs_f64());
            vertices = curve.intervals().len();
            mean = curve.mean_rate().expect("the trace has a duration");
        }
        let sweep = (requests <= 14_000).then(|| {
            let start = Instant::now();
            black_box(sweep(&trace, mean));
            start.elapsed().as_secs_f64()
        });
        bench::record(&format!("r-b curve, {requests} requests"), "s", best);
        if let Some(sweep) = sweep {
            bench::record(&format!("r-b curve, {requests} requests, sweep"), "ratio", sweep / best);
        }
        let (took, ratio) = match sweep {
            Some(sweep) => (format!("{:.2} ms", sweep * 1e3), format!("{:.1}", sweep / best)),
            None => ("-".to_owned(), "-".to_owned()),
        };
        println!(
            "{requests:>10} {vertices:>9} {:>7.2} ms {:>12.0} {took:>14} {ratio:>8}",
            best * 1e3,
            requests as f64 / best
        );
    }
}

/// The bursts b(r) at 985 rates r, from the mean rate to a thousand times the mean.
fn sweep(trace: &[(f64, f64)], mean: f64) -> Vec<f64> {
    let rates: Vec<f64> = (1..=RATES).map(|k| mean + mean * 999.0 * k as f64 / RATES as f64).collect();
    let (mut buckets, mut bursts, mut previous) = (vec![0.0f64; RATES], vec![0.0f64; RATES], 0.0);
    for &(at, work) in trace {
        for ((bucket, burst), rate) in buckets.iter_mut().zip(&mut bursts).zip(&rates) {
            *bucket = (*bucket - rate * (at - previous)).max(0.0) + work;
            *burst = burst.max(*bucket);
        }
        previous = at;
    }
    bursts
}

/// Requests in bursts of several time scales, with sizes over two orders.
fn trace(requests: usize) -> Vec<(f64, f64)> {
    let mut state = 1u64;
    let mut draw = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let (mut at, mut pace) = (0.0, 1e-2);
    (0..requests)
        .map(|_| {
            if draw() < 0.01 {
                pace = 10f64.powf(-4.0 + 3.0 * draw());
            }
            at += -(1.0 - draw()).ln() * pace;
            (at, 4096.0 * (1.0 + 99.0 * draw() * draw()))
        })
        .collect()
}
