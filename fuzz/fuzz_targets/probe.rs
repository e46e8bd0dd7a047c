//! What hosts that measure read of each other: messages of a connection, and packets of a train.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    leeward_fuzz::conversation(bytes);
    leeward_fuzz::packets(bytes);
});
