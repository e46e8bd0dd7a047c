//! Helpers for tests of requests: workloads that send as early as their buckets allow, and the number of cases.

pub mod literal;

use leeward_calculus::ArrivalCurve;
use leeward_fabric::Nanos;
use proptest::test_runner::Config;

/// Number of cases from PROPTEST_CASES, or this default.
pub fn cases(usual: u32) -> Config {
    let set = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    Config::with_cases(set.unwrap_or(usual))
}

/// Returns requests as (time, work), from (work, pause before it in seconds). Each comes as early as the buckets allow.
/// Times are rounded up to nanoseconds, so that no request is too early.
pub fn greedy(curve: &ArrivalCurve, start: f64, requests: &[(f64, f64)]) -> Vec<(Nanos, f64)> {
    let buckets = curve.buckets();
    let mut levels = vec![0.0f64; buckets.len()];
    let mut clock = Nanos((start * 1e9).ceil() as u64);
    requests
        .iter()
        .map(|&(work, pause)| {
            let waits = buckets
                .iter()
                .zip(&levels)
                .map(|(bucket, level)| (level + work - bucket.burst()) / bucket.rate());
            let wait = (waits.fold(pause, f64::max) * 1e9).ceil() as u64;
            clock = clock.plus(Nanos(wait));
            for (bucket, level) in buckets.iter().zip(&mut levels) {
                *level = (*level - bucket.rate() * wait as f64 / 1e9).max(0.0) + work;
            }
            (clock, work)
        })
        .collect()
}
