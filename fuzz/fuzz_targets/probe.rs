//! Messages and train packets that measuring hosts read from each other.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    leeward_fuzz::conversation(bytes);
    leeward_fuzz::packets(bytes);
});
