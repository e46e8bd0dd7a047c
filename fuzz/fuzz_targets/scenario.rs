//! Scenario files. Any cluster name refers to an existing file; traces are not opened.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leeward_fuzzing::scenario(bytes));
