//! Captures in pcap and pcapng, and files of IPFIX messages, with addresses as places.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leeward_fuzzing::capture(bytes));
