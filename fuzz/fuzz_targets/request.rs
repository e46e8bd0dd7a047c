//! Requests to the service as text: bodies, queries and heads, each read as by its handler.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| leeward_fuzz::request(bytes));
