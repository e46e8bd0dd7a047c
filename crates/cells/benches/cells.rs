//! Cells at their size: ten cells of 100,000 hosts beside one ledger for all of them, on one core. The table has the
//! quality of placement by the age of digests and by the loss of messages, and with a cell away; the speed and the
//! memory follow each run.
//!
//! Run by `cargo bench -p leeward-cells --bench cells [-- PART]`. PART is `small` (10 cells of 1,000 hosts, all runs)
//! or `large` (10 cells of 100,000 hosts); the default is `large`. Seconds are processor seconds on Linux.

use std::path::Path;

use leeward_cells::{Arm, Scenario, Summary, Work};
use leeward_testing::bench;

/// The same allocator as in the extension for Python.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let small = std::env::args().any(|argument| argument == "small");
    // A cell of 100,000 hosts has 5,000 racks in 10 pods, and a small one 50 racks.
    let (racks, block) = if small { (50, "256MiB") } else { (5_000, "4GiB") };
    let load = if small { 20 } else { 1 };
    let text = format!(
        "cells: 10\n\
         cluster: {{racks: {racks}, hosts_per_rack: 20, pods: 10, nic: 10Gbps, oversubscription: 5, \
         pod_oversubscription: 4}}\n\
         rate: 2Gbps\n\
         writes: {{load: {load}, block: {block}}}\n\
         background: {{mean: 0.25}}\n\
         exchange: {{intervals: [1s, 10s, 60s], losses: [0, 0.1, 0.5]}}\n\
         absent: [{{cell: 3, from: 20s, until: 40s}}]\n\
         horizon: 60s\n\
         warmup: 10s"
    );
    let scenario = Scenario::from_text("bench", &text, Path::new("")).expect("a valid scenario");
    let began = bench::seconds();
    let work = scenario.draw().expect("a valid workload");
    let took = bench::seconds() - began;
    println!(
        "{} hosts in {} cells; {} blocks in 60 s, drawn in {took:.1} s",
        scenario.geometry().all_hosts(),
        scenario.geometry().cells,
        work.blocks()
    );
    println!(
        "{:<22} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9} {:>8} {:>8}",
        "run", "core max", "core p98", "rack p98", "hot", "rejected", "crossed", "decisions", "seconds", "GB"
    );
    for &arm in scenario.arms() {
        // Records need one run of each kind.
        if bench::is_recorded() && matches!(arm, Arm::Cells { loss, absent, .. } if loss > 0.0 || absent) {
            continue;
        }
        run(&scenario, &work, arm);
    }
}

fn run(scenario: &Scenario, work: &Work, arm: Arm) {
    let began = bench::seconds();
    let record = scenario.run_arm(work, arm, &|_| true).expect("a valid scenario runs");
    let took = bench::seconds() - began;
    let name = match arm {
        Arm::OneLedger => "one ledger".to_owned(),
        Arm::Cells { interval, loss, absent } => {
            format!("{interval}, loss {loss}{}", if absent { ", away" } else { "" })
        }
    };
    let Summary { core, racks, hot, rejected, crossed, counts, .. } = Summary::of(&record);
    println!(
        "{name:<22} {:>8.3} {:>8.3} {:>8.3} {hot:>8.4} {rejected:>8.4} {crossed:>8.3} {:>9} {took:>8.1} {:>8.2}",
        core.fullest,
        core.p98,
        racks.p98,
        counts.placed,
        peak_gigabytes()
    );
    let hosts = f64::from(scenario.geometry().all_hosts());
    bench::record(
        &format!("{name}, {hosts} hosts"),
        "simulated s/s",
        scenario.horizon().as_secs_f64() / took,
    );
}

/// Largest memory of the process so far, in GB; NaN where the system does not tell.
fn peak_gigabytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse::<f64>().ok());
    kilobytes.map_or(f64::NAN, |kilobytes| kilobytes / 1e6)
}
