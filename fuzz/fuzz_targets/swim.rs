//! SWIM traces, plain or gzip.
#![no_main]

use std::sync::LazyLock;

use leeward_scenarios::workload::Source;
use libfuzzer_sys::fuzz_target;

static SOURCE: LazyLock<Source> =
    LazyLock::new(|| leeward_fuzz::source("{swim: {file: f, bytes_per_writer: 1TB}}"));

fuzz_target!(|bytes: &[u8]| leeward_fuzz::read(&SOURCE, bytes));
