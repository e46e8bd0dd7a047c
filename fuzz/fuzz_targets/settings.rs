//! Files of settings of the service, YAML or TOML.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leeward_fuzzing::settings(bytes));
