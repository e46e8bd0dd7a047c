//! A map file and the replies of a Prometheus to the queries of its rounds, separated by empty lines.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leeward_fuzzing::answer(bytes));
