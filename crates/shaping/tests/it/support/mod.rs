//! Helpers of the tests: requests, caps and workloads, fixed and random.

pub mod model;

use leeward_calculus::TokenBucket;
use leeward_fabric::Nanos;
use leeward_shaping::{Batch, Caps, OverLimit, Request, Server, StartCaps, Workload};
use leeward_traces::Kind;
use proptest::prelude::*;
use proptest::test_runner::Config;

/// Number of cases from PROPTEST_CASES, or this default.
pub fn cases(usual: u32) -> Config {
    let set = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok());
    Config::with_cases(set.unwrap_or(usual))
}

/// A read of this size, whose work is its size.
pub fn read(size: u64) -> Request {
    Request { kind: Kind::Read, size, offset: None, work: size as f64, deadline: Nanos(u64::MAX), number: 0 }
}

/// A write of this size at an offset.
pub fn write(size: u64, offset: u64) -> Request {
    Request { kind: Kind::Write, offset: Some(offset), ..read(size) }
}

/// A workload of this priority without limits.
pub fn workload(priority: u32) -> Workload {
    Workload { priority, weight: 1.0, limits: Vec::new(), over: OverLimit::Held }
}

/// A limit in work per nanosecond, and its burst.
pub fn limit(rate: f64, burst: f64) -> TokenBucket {
    TokenBucket::new(rate * 1e9, burst).unwrap()
}

/// Payloads of the requests that start now, in order.
pub fn starts<P>(server: &mut Server<P>, now: u64) -> Vec<P> {
    std::iter::from_fn(|| server.poll(Nanos(now))).map(|start| start.payload).collect()
}

pub fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::Read), Just(Kind::Write)]
}

/// Caps that small requests reach.
pub fn caps() -> impl Strategy<Value = Caps> {
    let bytes = || prop_oneof![1 => 1u64..30, 2 => Just(u64::MAX)];
    let requests = || prop_oneof![1 => 1u32..5, 2 => Just(u32::MAX)];
    let behind =
        prop::option::of((0u32..4, 1u64..40).prop_map(|(requests, bytes)| StartCaps { requests, bytes }));
    let batch = prop::option::of((1u64..40, 0u64..5).prop_map(|(bytes, gap)| Batch { bytes, gap }));
    (1u32..5, requests(), requests(), bytes(), bytes(), behind, batch).prop_map(
        |(outstanding, reads, writes, read_bytes, write_bytes, behind, batch)| Caps {
            outstanding,
            reads,
            writes,
            read_bytes,
            write_bytes,
            behind,
            batch,
        },
    )
}

/// Settings of a workload: up to two limits, whose rates are quarters of a unit per nanosecond.
pub fn settings() -> impl Strategy<Value = Workload> {
    let limits = prop::collection::vec((1u32..9, 1u32..25), 0..3);
    let over = prop_oneof![Just(OverLimit::Held), Just(OverLimit::Demoted)];
    (prop_oneof![4 => 0u32..4, 1 => Just(u32::MAX - 1)], 1u32..4, limits, over).prop_map(
        |(priority, weight, limits, over)| Workload {
            priority,
            weight: f64::from(weight),
            limits: limits
                .into_iter()
                .map(|(rate, burst)| limit(f64::from(rate) / 4.0, f64::from(burst)))
                .collect(),
            over,
        },
    )
}

/// A request with a whole number of work. The caller numbers it.
pub fn request() -> impl Strategy<Value = Request> {
    (kind(), 1u64..12, prop::option::of(0u64..40), 0u32..13, 0u64..60).prop_map(
        |(kind, size, offset, work, deadline)| Request {
            kind,
            size,
            offset,
            work: f64::from(work),
            deadline: Nanos(deadline),
            number: 0,
        },
    )
}
