//! sFlow datagrams as captured.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    leeward_fuzz::capture(leeward_fuzz::captured(6343, &[bytes]));
});
