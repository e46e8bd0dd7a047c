//! Settings of sources, and the workload that the generator makes from them. Files that they name do not exist.
#![no_main]

use leeward_fabric::input::read_yaml;
use leeward_fuzz::{CLUSTER, HORIZON, check, one_line};
use leeward_scenarios::workload::{Inputs, Source};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match read_yaml::<Source>("settings", text) {
        Ok(source @ Source::Facebook(_)) => {
            check(&source.load(&CLUSTER, &Inputs::default(), 1, HORIZON));
        }
        // A name from the fuzzer must not open a file of this machine.
        Ok(_) => {}
        Err(error) => one_line(&error),
    }
});
