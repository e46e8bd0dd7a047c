//! Traces of requests in every dialect, their work at a device, and their curves.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leeward_fuzzing::trace(bytes));
