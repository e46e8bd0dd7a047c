//! Captures in pcap and pcapng, and files of IPFIX messages, by address.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    leeward_fuzz::capture(bytes.to_vec());
});
