//! A map file, and behind it what a Prometheus answers to the questions of its rounds, each after an empty line.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| leeward_fuzz::answers(bytes));
