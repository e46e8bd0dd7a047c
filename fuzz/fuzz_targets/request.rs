//! Requests to the routes of a new service, as text.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leeward_fuzzing::request(bytes));
