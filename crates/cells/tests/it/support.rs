//! A small network of cells, and its runs.

use std::path::Path;

use leeward_cells::{Arm, RunRecord, Scenario};

/// Four cells of 32 hosts in 8 racks and 2 pods, with the fields of `change` added or replaced. A change is a line for
/// each field.
pub fn text(change: &str) -> String {
    let base = [
        "cells: 4",
        "cluster: {racks: 8, hosts_per_rack: 4, pods: 2, nic: 10Gbps, oversubscription: 2, pod_oversubscription: 2}",
        "rate: 2Gbps",
        "writes: {load: 250}",
        "background: {period: 4s}",
        "exchange: {delay: 2ms, jitter: 4ms, timeout: 20ms}",
        "horizon: 20s",
    ];
    let name = |line: &str| line.split(':').next().map(str::to_owned);
    let changed: Vec<_> = change.lines().map(name).collect();
    let kept = base.iter().copied().filter(|line| !changed.contains(&name(line)));
    kept.chain(change.lines()).collect::<Vec<_>>().join("\n")
}

/// The scenario of [`text`].
pub fn scenario(change: &str) -> Scenario {
    Scenario::from_text("a.yaml", &text(change), Path::new("")).unwrap_or_else(|error| panic!("{error}"))
}

/// All runs of the scenario of [`text`].
pub fn runs(change: &str) -> Vec<RunRecord> {
    scenario(change).run(&|_| true).expect("a valid scenario runs")
}

/// A run of cells.
pub fn is_absent(run: &RunRecord) -> bool {
    matches!(run.arm, Arm::Cells { absent: true, .. })
}
