//! Synthetic workloads for the tests of limits and packings.

use std::sync::Arc;

use leeward_calculus::{ArrivalCurve, TokenBucket};
use leeward_slo::{Demand, Slo, Workload};
use leeward_traces::Stage;
use proptest::prelude::*;

/// Capacity of a link, in bytes per second.
pub const LINK: f64 = 1e8;

pub fn bucket(rate: f64, burst: f64) -> TokenBucket {
    TokenBucket::new(rate, burst).expect("a bucket")
}

/// A curve of up to three buckets for a queue of this capacity: rates as shares of it, bursts in seconds.
pub fn curve(capacity: f64) -> impl Strategy<Value = ArrivalCurve> {
    let bucket = (0.01..0.3_f64, 0.001..0.1_f64)
        .prop_map(move |(rate, burst)| self::bucket(rate * capacity, burst * capacity));
    prop::collection::vec(bucket, 1..4).prop_map(|buckets| ArrivalCurve::new(&buckets).expect("a bucket"))
}

pub fn demand(stage: Stage, arrivals: ArrivalCurve, unloaded: f64) -> Demand {
    let largest = arrivals.burst() / 4.0;
    Demand { stage, arrivals, largest, model: None, unloaded, outstanding: None }
}

/// A workload of all three stages with one of four SLOs.
pub fn workload(name: String) -> impl Strategy<Value = Workload> {
    let slo = prop::sample::select(vec![0.05, 0.1, 0.3, 1.0]);
    (curve(LINK), curve(1.0), curve(LINK), slo, 0.0..0.02_f64).prop_map(
        move |(into, device, out, latency, tail)| Workload {
            name: name.clone(),
            slo: Some(Slo { percentile: 99.9, latency }),
            demands: vec![
                demand(Stage::NetworkIn, into, 0.0),
                demand(Stage::Storage, device, tail),
                demand(Stage::NetworkOut, out, 0.0),
            ],
            dependencies: Vec::new(),
        },
    )
}

/// A number of workloads from the range `count`, named by number.
pub fn workloads(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Arc<Workload>>> {
    count.prop_flat_map(|count| {
        (0..count).map(|at| workload(format!("w{at}")).prop_map(Arc::new)).collect::<Vec<_>>()
    })
}
