//! Speed of simulated reads: a million reads among the writes of 800 hosts, on one core, and the speed of the writes
//! alone.
//!
//! Run by `cargo bench -p leeward-scenarios --bench reads`.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::time::Instant;

use leeward_scenarios::scenario::Scenario;
use leeward_scenarios::summary::Summary;
use leeward_scenarios::{Task, run_all};
use leeward_testing::clusters::racks_of_twenty;

/// Simulated seconds; the first 60 have no reads.
const SECONDS: f64 = 560.0;

fn main() {
    let folder = std::env::temp_dir().join("leeward-bench-reads");
    std::fs::create_dir_all(&folder).expect("the folder for temporary files can be written to");
    std::fs::write(folder.join("cluster.yaml"), racks_of_twenty(40)).expect("the folder was created above");
    println!("reads                    finished  seconds  reads/s    mean s     p99 s  degraded");
    for (name, reads) in [
        ("none", ""),
        ("copies, 17 Gb/s", "  - reads: {per_second: 2000, size: 1MiB, start: 1min}\n"),
        ("copies, 50 Gb/s", "  - reads: {per_second: 2000, size: 3MiB, start: 1min}\n"),
        ("stripes, 17 Gb/s", "  - reads: {per_second: 2000, size: 1MiB, start: 1min}\n"),
        (
            "stripes, degraded reads",
            "  - reads: {per_second: 2000, size: 1MiB, start: 1min, degraded: {after: 100ms}}\n",
        ),
    ] {
        let coding = if name.starts_with("stripes") { ", coding: 6+3" } else { "" };
        let text = format!(
            "cluster: cluster.yaml\nworkloads:\n  - facebook: {{load: 4, background: none{coding}}}\n{reads}horizon: {SECONDS}s\n"
        );
        let scenario = Scenario::from_text("bench", &text, &folder, None).expect("a valid scenario");
        let task = Task { policy: "uniform".parse().expect("a policy"), seed: 1 };
        let start = Instant::now();
        let runs = run_all(&scenario, &[task], 1, &|_, _| true).expect("a valid scenario runs");
        let seconds = start.elapsed().as_secs_f64();
        let summary = Summary::of(&runs[0].record, &scenario.cluster.fabric, 0.75, 0.0);
        let Some(reads) = summary.reads else {
            println!("{name:<24} {:>8} {seconds:>8.2}", 0);
            continue;
        };
        println!(
            "{name:<24} {:>8} {seconds:>8.2} {:>8.0} {:>9.4} {:>9.4} {:>8.1}%",
            reads.finished,
            reads.finished as f64 / seconds,
            reads.time_s.mean,
            reads.time_s.p99,
            100.0 * reads.degraded_share.unwrap_or(0.0)
        );
    }
}
