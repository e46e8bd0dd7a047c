//! Scenario files: their defaults, and errors that name the field.

use std::path::Path;

use leeward_cells::{Arm, RunError, Scenario};
use leeward_fabric::Nanos;

use crate::support::{scenario, text};

fn error(change: &str) -> String {
    match Scenario::from_text("a.yaml", &text(change), Path::new("")) {
        Ok(_) => panic!("accepted: {change}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_scenario_has_a_run_of_one_ledger_and_one_for_each_interval_loss_and_absence() {
    let default = scenario("seed: 1");
    assert_eq!(default.name(), "cells");
    assert_eq!(default.geometry().all_hosts(), 128);
    let cells =
        |seconds: u64, loss, absent| Arm::Cells { interval: Nanos(seconds * 1_000_000_000), loss, absent };
    assert_eq!(default.arms(), [Arm::OneLedger, cells(1, 0.0, false)]);
    let several = scenario(
        "exchange: {intervals: [0s, 2s], losses: [0, 0.5]}\nabsent: [{cell: 3, from: 1s, until: 2s}]",
    );
    let expected: Vec<Arm> = [false, true]
        .into_iter()
        .flat_map(|absent| [(0, 0.0), (0, 0.5), (2, 0.0), (2, 0.5)].map(|(s, loss)| cells(s, loss, absent)))
        .collect();
    assert_eq!(several.arms()[0], Arm::OneLedger);
    assert_eq!(several.arms()[1..], expected);
}

#[test]
fn invalid_fields_are_named() {
    for (change, expected) in [
        ("cells: 0", "a.yaml: cells: 0: expected 1 to 1000"),
        ("cells: 1001", "a.yaml: cells: 1001"),
        ("cluster: none.yaml", "a.yaml: cluster: no such file"),
        ("cluster: {racks: 8, hosts_per_rack: 4, nic: 1Gbps}", "a.yaml: cluster.pods: missing"),
        (
            "cluster: {racks: [{name: a}], hosts_per_rack: 4, pods: 2}",
            "a.yaml: cluster.racks: a list: expected a count",
        ),
        ("cluster: {racks: 8, hosts_per_rack: 4, pods: 3}", "a.yaml: cluster.pods: 8 racks cannot"),
        (
            "cluster: {racks: 8, hosts_per_rack: 4, pods: 2, nic: 1Gbps, oversubscription: 2}",
            "a.yaml: cluster.pod_oversubscription: missing",
        ),
        ("cluster: {racks: 8, hosts_per_rack: 4, pods: 2, shape: hose, nic: 1Gbps}", "a.yaml: cluster"),
        (
            "cluster: {racks: 100000, hosts_per_rack: 20, pods: 2}",
            "a.yaml: cluster.racks: 8000000 hosts in 4 cells",
        ),
        ("policy: nearest", "a.yaml: policy: unknown policy `nearest`"),
        ("policy: sinbad:remote_racks=0", "a.yaml: policy"),
        ("choice: worst", "a.yaml:"),
        ("rate: 0bps", "a.yaml: rate: 0bps"),
        ("elsewhere: 0.8", "a.yaml: anywhere: 1.1 together with `elsewhere`"),
        ("writes: {coding: 6+3}", "a.yaml: writes.coding"),
        ("writes: {writers: none}", "a.yaml: writes.writers"),
        ("background: {racks: 4}", "a.yaml: background.racks: 4"),
        ("background: {period: 0s}", "a.yaml: background.period: 0s"),
        ("ledger: {interval: 0s}", "a.yaml: ledger.interval: 0s"),
        ("ledger: {alpha: 2}", "a.yaml: ledger: alpha: 2"),
        ("exchange: {intervals: []}", "a.yaml: exchange.intervals: an empty list"),
        ("exchange: {intervals: [1ns]}", "a.yaml: exchange.intervals: 20000000000 in a run"),
        ("exchange: {losses: [2]}", "a.yaml:"),
        ("exchange: {unknown_after: 0.5}", "a.yaml: exchange.unknown_after: 0.5"),
        ("exchange: {timeout: 0s}", "a.yaml: exchange.timeout: 0s"),
        ("exchange: {tries: 0}", "a.yaml: exchange.tries: 0"),
        ("absent: [{cell: 4, from: 1s, until: 2s}]", "a.yaml: absent[0].cell: 4"),
        ("absent: [{cell: 1, from: 2s, until: 2s}]", "a.yaml: absent[0].until: 2s"),
        (
            "absent: [{cell: 1, from: 4s, until: 9s}, {cell: 1, from: 2s, until: 5s}]",
            "a.yaml: absent: cell 1 is away twice at 4s",
        ),
        ("horizon: 1s", "a.yaml: horizon: 1s"),
        ("horizon: 2d", "a.yaml: horizon: 2d"),
        ("warmup: 20s", "a.yaml: warmup: 20s"),
    ] {
        let found = error(change);
        assert!(found.starts_with(expected), "{change}\n{found}\n{expected}");
    }
}

#[test]
fn without_devices_a_rate_is_required_and_with_devices_it_is_theirs() {
    let without_rate = |cluster: &str| text(cluster).replace("rate: 2Gbps\n", "");
    let read = |text: &str| Scenario::from_text("a.yaml", text, Path::new(""));
    let error = read(&without_rate("seed: 1")).err().map(|error| error.to_string());
    assert!(error.is_some_and(|error| error.starts_with("a.yaml: rate: missing")));
    let disks = "cluster: {racks: 8, hosts_per_rack: 4, pods: 2, nic: 10Gbps, oversubscription: 2, \
                 pod_oversubscription: 2, devices: [{read: 250MB/s, write: 250MB/s}]}";
    let with_disks = read(&without_rate(disks)).expect("a valid scenario");
    let with_rate = read(&text(disks)).expect("a valid scenario");
    let run = |scenario: &Scenario| scenario.run(&|_| true).expect("a run");
    assert_eq!(run(&with_disks), run(&with_rate));
}

#[test]
fn a_caller_may_stop_the_runs() {
    let scenario = scenario("seed: 1");
    assert_eq!(scenario.run(&|share| share < 0.6), Err(RunError::Stopped));
}

#[test]
fn progress_grows_to_the_whole() {
    let shares = std::cell::RefCell::new(vec![0.0]);
    let scenario = scenario("seed: 1");
    let run = scenario.run(&|share| {
        shares.borrow_mut().push(share);
        true
    });
    assert!(run.is_ok());
    let shares = shares.into_inner();
    assert!(shares.is_sorted());
    assert_eq!(shares.last(), Some(&1.0));
}
