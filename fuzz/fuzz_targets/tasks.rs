//! Lists of a cell's tasks, plain or gzip.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leeward_fuzzing::tasks(bytes));
