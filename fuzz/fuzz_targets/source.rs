//! Settings of sources, and the workload that `facebook` settings generate. All other sources are only parsed.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leeward_fuzzing::source(bytes));
