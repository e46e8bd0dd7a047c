//! A map file and the replies of a Prometheus to the queries of its rounds, separated by empty lines.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| leeward_fuzz::answers(bytes));
