//! sFlow datagrams in a capture.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leeward_fuzzing::sflow(bytes));
