//! Settings of sources, and the workload of the generator. Sources that name files are only parsed.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leeward_fuzzing::source(bytes));
