//! Telemetry files, plain or gzip.
#![no_main]

use leeward_fabric::Nanos;
use leeward_fabric::input::Text;
use leeward_fuzz::{CLUSTER, one_line};
use leeward_ledger::{Clock, read_loads};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let clock = Some(Clock { now: 1e9, max_age: 300.0 });
    let read = Text::from_bytes("file", bytes);
    let read = read.and_then(|text| read_loads(text, &CLUSTER.fabric, Nanos::SECOND, clock));
    match read {
        Ok((samples, end)) => {
            for sample in samples {
                assert!(sample.resource.index() < CLUSTER.fabric.resource_count());
                assert!(sample.load.0 >= 0 && sample.window.0 < sample.window.1 && sample.window.1 <= end);
            }
        }
        Err(error) => one_line(&error),
    }
});
