//! Messages and train packets that probe hosts read from each other.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leeward_fuzzing::probe(bytes));
