//! Settings of sources, and the workload that the generator makes from them. Files that they name do not exist.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leeward_fuzzing::source(bytes));
