//! Policies as named on a command line, and their settings as in a scenario.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leeward_fuzzing::policy(bytes));
