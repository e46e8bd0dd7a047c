//! A map file and replies of Prometheus to its queries, separated by empty lines.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leeward_fuzzing::answer(bytes));
