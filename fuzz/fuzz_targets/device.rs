//! Device files.
#![no_main]

use leeward_fabric::Nanos;
use leeward_traces::device::Device;
use leeward_traces::{Kind, NetworkWork, Request, Stage, Work};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let device = match Device::from_text("device", text) {
        Ok(device) => device,
        Err(error) => return leeward_fuzz::one_line(&error),
    };
    let mut work = Work::new(NetworkWork::default(), Some(&device));
    for (at, size) in [1, 4096, 1 << 20, u64::MAX >> 1].into_iter().enumerate() {
        for kind in [Kind::Read, Kind::Write] {
            let offset = Some(at as u64 * size.min(1 << 40));
            if let Ok(work) = work.of(&Request { at: Nanos(at as u64), kind, size, offset }) {
                let seconds = work.at(Stage::Storage).expect("with a device there is work at storage");
                assert!(seconds.is_finite() && seconds > 0.0);
            }
        }
    }
});
