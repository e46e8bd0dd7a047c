//! NetFlow and IPFIX datagrams of one exporter as captured: each begins with its length.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut datagrams = Vec::new();
    let mut rest = bytes;
    while let [high, low, more @ ..] = rest {
        let length = usize::from(u16::from_be_bytes([*high, *low])).min(more.len());
        datagrams.push(&more[..length]);
        rest = &more[length..];
    }
    leeward_fuzz::capture(leeward_fuzz::captured(4739, &datagrams));
});
