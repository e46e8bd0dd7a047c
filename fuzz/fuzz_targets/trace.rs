//! Traces of requests in every dialect, their work at a device, and their curves.
#![no_main]

use leeward_calculus::RbCurve;
use leeward_fabric::input::{InputError, Text};
use leeward_traces::device::Device;
use leeward_traces::read::{ReadSettings, Requests};
use leeward_traces::{NetworkWork, Request, Stage, Work};
use libfuzzer_sys::fuzz_target;

const DEVICE: &str = r#"{"table": [{"size_bytes": 4096, "read_iops": 1000, "write_iops": 500}]}"#;

fuzz_target!(|bytes: &[u8]| {
    let settings = ReadSettings::default();
    let read = Text::from_bytes("trace", bytes)
        .and_then(|text| Requests::open(text, &settings)?.collect::<Result<Vec<Request>, InputError>>());
    let requests = match read {
        Ok(requests) => requests,
        Err(error) => return leeward_fuzz::one_line(&error),
    };
    assert!(requests.is_sorted_by_key(|request| request.at));
    assert!(requests.iter().all(|request| (1..=settings.largest).contains(&request.size)));
    let device = Device::from_text("device", DEVICE).expect("a good device file");
    let mut work = Work::new(NetworkWork::default(), Some(&device));
    let storage = |request: &Request| Some((request.at.0, work.of(request).ok()?.at(Stage::Storage)?));
    let arrivals: Vec<(u64, f64)> = requests.iter().filter_map(storage).collect();
    assert!(arrivals.iter().all(|(_, work)| work.is_finite() && *work > 0.0));
    if let Ok(curve) = RbCurve::from_nanos(arrivals) {
        let buckets = curve.arrival_curve();
        assert!(buckets.buckets().iter().all(|bucket| bucket.rate().is_finite() && bucket.burst().is_finite()));
    }
});
