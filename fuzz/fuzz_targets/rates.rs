//! Lists of rates, plain or gzip.
#![no_main]

use std::sync::LazyLock;

use leeward_scenarios::workload::Source;
use libfuzzer_sys::fuzz_target;

static SOURCE: LazyLock<Source> =
    LazyLock::new(|| leeward_fuzz::source("{rates: {file: f, from: 1s, duration: 60s}}"));

fuzz_target!(|bytes: &[u8]| leeward_fuzz::read(&SOURCE, bytes));
