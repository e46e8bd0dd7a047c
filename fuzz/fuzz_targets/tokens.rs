//! Files of tokens. An error never quotes the text in the place of a hash, because it may be a token.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| leeward_fuzzing::tokens(bytes));
