//! Streams of NFS clients and servers.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leeward_fuzzing::nfs(bytes));
