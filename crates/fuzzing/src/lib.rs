//! Bodies of the fuzz targets: functions that feed bytes from outside to one reader, and panic if the reader breaks an
//! invariant.
//!
//! The workspace compiles them in every build and runs them over their seeds in every test. The binaries in `fuzz/`
//! only pass libFuzzer's bytes to these functions; the binaries need a nightly toolchain.

use std::sync::LazyLock;

use leeward_fabric::Cluster;
use leeward_fabric::input::InputError;

mod captures;
mod files;
mod messages;
mod nfs;
pub mod request_text;
mod sources;

pub use captures::{capture, ipfix, sflow};
pub use files::{app, cluster, device, loads, policy, running, scenario, settings, slo, tokens, trace};
pub use messages::{answer, probe, request};
pub use nfs::nfs;
pub use sources::{blocks, coflow, flows, matrix, pairs, phases, rates, source, swim, tasks};

/// A fuzz target: reads bytes and panics if the reader breaks an invariant.
pub type Target = fn(&[u8]);

/// All targets by name; the binary and the folder of seeds have the same name.
pub const TARGETS: &[(&str, Target)] = &[
    ("answer", answer),
    ("app", app),
    ("blocks", blocks),
    ("capture", capture),
    ("cluster", cluster),
    ("coflow", coflow),
    ("device", device),
    ("flows", flows),
    ("ipfix", ipfix),
    ("loads", loads),
    ("matrix", matrix),
    ("nfs", nfs),
    ("pairs", pairs),
    ("phases", phases),
    ("policy", policy),
    ("probe", probe),
    ("rates", rates),
    ("request", request),
    ("running", running),
    ("scenario", scenario),
    ("settings", settings),
    ("sflow", sflow),
    ("slo", slo),
    ("source", source),
    ("swim", swim),
    ("tasks", tasks),
    ("tokens", tokens),
    ("trace", trace),
];

/// Seconds to read from each source.
const HORIZON: f64 = 100.0;

const CLUSTER_TEXT: &str = r#"{"racks": 3, "hosts_per_rack": 2, "nic": "1Gbps", "oversubscription": 10,
    "devices": [{"read": "100MB/s", "write": "50MB/s"}]}"#;

/// Three racks of two hosts with one disk each.
static CLUSTER: LazyLock<Cluster> =
    LazyLock::new(|| Cluster::from_text("cluster", CLUSTER_TEXT).expect("a valid cluster file"));

/// Longest prefix of the bytes that is text.
fn utf8_prefix(bytes: &[u8]) -> &str {
    let length = std::str::from_utf8(bytes).map_or_else(|error| error.valid_up_to(), str::len);
    std::str::from_utf8(&bytes[..length]).unwrap_or_default()
}

/// Checks that an error fits a terminal, regardless of the file's content.
fn assert_one_line(error: &InputError) {
    short(&error.to_string());
}

/// Checks that any other message fits a terminal.
fn short(text: &str) {
    assert!(text.len() < 2000 && !text.contains('\n'), "{text}");
}
