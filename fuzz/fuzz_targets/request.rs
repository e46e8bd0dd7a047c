//! Requests to the service as text: bodies, queries and heads, each read as by its handler.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leeward_fuzzing::request(bytes));
