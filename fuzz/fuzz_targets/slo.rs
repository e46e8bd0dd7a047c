//! Files of workloads with SLOs, and the system that each describes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leeward_fuzzing::slo(bytes));
