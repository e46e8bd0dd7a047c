//! NetFlow and IPFIX datagrams of one exporter in a capture; each begins with its length.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leeward_fuzzing::ipfix(bytes));
