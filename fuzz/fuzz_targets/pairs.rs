//! Traffic matrices as lists of pairs, plain or gzip.
#![no_main]

use std::sync::LazyLock;

use leeward_scenarios::workload::Source;
use libfuzzer_sys::fuzz_target;

static SOURCE: LazyLock<Source> = LazyLock::new(|| {
    leeward_fuzz::source("{matrix: {file: f, pairs: [src, dst, bytes], fold: true, rate: 1Gbps}}")
});

fuzz_target!(|bytes: &[u8]| leeward_fuzz::read(&SOURCE, bytes));
