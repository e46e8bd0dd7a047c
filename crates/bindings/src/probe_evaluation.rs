//! Evaluates the probe on traffic that the packet simulator carries.

use leeward_packets::TrainRecord;
use leeward_probe::bottleneck::{PathPair, between_four, from_one};
use leeward_probe::stability::{Sample, stability};
use leeward_probe::survey::{self, EARLIER_NS, Experiment};
use leeward_probe::{Collector, Estimate, Head, ProbeError, SendStatistics, Train, TransferReport, estimate};
use pyo3::prelude::*;
use serde_json::json;

use crate::probe::{lag_records, to_py_error, transfer_of};
use crate::simulation::as_python;

/// A pair of paths, and the bytes in every 10 ms of three transfers: over the first path alone, over the first path
/// beside the second, and over the second path.
type PairTraffic = (PathPair, Vec<u64>, Vec<u64>, Vec<u64>);

/// Estimate from a train that was sent in the packet simulator; `None` if too few packets arrived.
pub fn train_estimate(record: &TrainRecord) -> Option<Estimate> {
    let train = Train {
        bursts: record.train.bursts,
        packets: record.train.packets,
        bytes: record.train.payload,
        gap_ns: record.train.gap.0,
    };
    let mut collector = Collector::new(0, train);
    for arrival in &record.arrivals {
        let (burst, number) = (arrival.packet / train.packets, arrival.packet % train.packets);
        collector.packet(Some(Head { session: 0, burst, number }), train.bytes as usize, arrival.at.0);
    }
    // In the simulator, handing packets to a NIC takes no time, so the sender has no rate of its own.
    let sent = SendStatistics { packets: record.sent, ..SendStatistics::default() };
    estimate(&train, &sent, &collector.finish(0), None).ok()
}

/// Pairs of paths of a bottleneck survey: between four different hosts, and from one common host.
#[pyfunction]
pub fn probe_questions(hosts: usize, pairs: usize, seed: u64) -> (Vec<PathPair>, Vec<PathPair>) {
    (between_four(hosts, pairs, seed), from_one(hosts, pairs, seed))
}

/// Seconds between the start of the first transfer and the start of the second.
#[pyfunction]
pub fn probe_earlier() -> f64 {
    EARLIER_NS as f64 / 1e9
}

/// Result of a bottleneck survey for given transfers of one duration.
#[pyfunction]
pub fn probe_recognised(
    py: Python<'_>,
    duration: &str,
    four: Vec<PairTraffic>,
    one: Vec<PairTraffic>,
) -> PyResult<Py<PyAny>> {
    let duration_ns = transfer_of(duration)?.duration_ns;
    let experiments = |pairs: Vec<PairTraffic>| -> Result<Vec<Experiment>, ProbeError> {
        let experiment = |(pair, alone, concurrent, other): PairTraffic| {
            let [alone, concurrent, other] =
                [alone, concurrent, other].map(|slots| TransferReport { duration_ns, slots: vec![slots] });
            Experiment::of(pair, &alone, &concurrent, &other)
        };
        pairs.into_iter().map(experiment).collect()
    };
    let (four, one) = (experiments(four).map_err(to_py_error)?, experiments(one).map_err(to_py_error)?);
    let found = survey::protocol(&four, &one, &[]);
    as_python(
        py,
        &json!({
            "between_four": found.between_four.0,
            "between_four_share": found.between_four.1,
            "from_one": found.from_one.0,
            "from_one_share": found.from_one.1,
            "sum": found.sum,
            "kind": found.kind,
        }),
    )
}

/// Stability of rates that were measured at intervals, for each lag.
#[pyfunction]
pub fn probe_stability(
    py: Python<'_>,
    rates_bps: Vec<f64>,
    every_s: f64,
    lags_s: Vec<f64>,
) -> PyResult<Py<PyAny>> {
    let ns = |seconds: f64| (1e9 * seconds).round() as u64;
    let sample = |(number, rate_bps): (usize, f64)| Sample { at_ns: ns(number as f64 * every_s), rate_bps };
    let samples: Vec<Sample> = rates_bps.into_iter().enumerate().map(sample).collect();
    let lags = lags_s.into_iter().filter_map(|lag| stability(&samples, ns(lag), ns(every_s) / 2));
    as_python(py, &lag_records(lags))
}
