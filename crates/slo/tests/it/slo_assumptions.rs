//! Workload files whose traces break an assumption of stochastic bounds: the pairs and notes that follow.

use std::fmt::Write;

use leeward_fabric::input::Text;
use leeward_slo::file::Workloads;
use leeward_testing::clusters::cluster;

use crate::support::workload_file::{CLUSTER, files};

/// Numbers in 0..1 that look random.
fn uniform(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Ten minutes of reads of 8 KiB at 10 a second, with 60 bursts of 40 in a second. The times of the bursts are of the seed
/// `bursts`. From 300 s on there are `growth` times as many reads.
fn trace(seed: u64, bursts: u64, growth: f64) -> String {
    let (mut draw, mut begin) = (uniform(seed), uniform(bursts));
    let mut times: Vec<f64> = Vec::new();
    let mut at = 0.0_f64;
    while at < 600.0 {
        times.push(at);
        at -= (1.0 - draw()).ln() / if at < 300.0 { 10.0 } else { 10.0 * growth };
    }
    for _ in 0..60 {
        let first = 599.0 * begin();
        times.extend((0..40).map(|at| first + 0.025 * f64::from(at)));
    }
    times.sort_by(f64::total_cmp);
    let mut text = String::from("seconds,kind,size\n");
    for at in times {
        writeln!(text, "{at:.6},read,8192").unwrap();
    }
    text
}

/// Reads a file of workloads: pairs of a name with further fields, and a trace `SEED-BURSTS-GROWTH`.
fn read(workloads: &[(&str, &str)], others: Option<&Workloads>) -> Workloads {
    let open = |name: &str| {
        let numbers: Vec<f64> = name.split('-').map(|number| number.parse().unwrap()).collect();
        Text::from_bytes(name, trace(numbers[0] as u64, numbers[1] as u64, numbers[2]))
    };
    let mut text = String::from("stages: [network-in]\nworkloads:\n");
    for (name, trace) in workloads {
        writeln!(text, "  - {{name: {name}, client: r0h0, server: r1h1, trace: {trace}}}").unwrap();
    }
    Workloads::from_text("w.yaml", &text, &cluster(CLUSTER), &files(), &open, others).unwrap()
}

fn pairs(workloads: &Workloads) -> Vec<[&str; 2]> {
    workloads.dependent.iter().map(|pair| pair.workloads.each_ref().map(String::as_str)).collect()
}

#[test]
fn traces_that_burst_together_are_named_unless_they_depend_on_each_other() {
    let traces = [("a", "1-100-1"), ("b", "2-200-1"), ("c", "3-100-1"), ("d", "4-100-1")];
    let workloads = read(&traces, None);
    assert_eq!(pairs(&workloads), [["a", "c"], ["a", "d"], ["c", "d"]]);
    assert!(workloads.dependent.iter().all(|pair| pair.correlation > 0.3 && pair.p < 0.01));
    assert_eq!(
        workloads.doubts(),
        ["a: its bursts coincide with those of c, d; without `depends_on`, bounds by snc may be too low"]
    );
    let known = [("a", "1-100-1"), ("b", "2-200-1"), ("c", "3-100-1, depends_on: [a]"), ("d", "4-100-1")];
    assert_eq!(pairs(&read(&known, None)), [["a", "d"], ["c", "d"]]);
    let known = [("a", "1-100-1"), ("c", "3-100-1, depends_on: [a, d]"), ("d", "4-100-1")];
    let workloads = read(&known, None);
    assert!(workloads.dependent.is_empty() && workloads.doubts().is_empty());
}

#[test]
fn one_trace_of_several_workloads_is_no_dependence() {
    let workloads = read(&[("a", "1-100-1"), ("b", "1-100-1"), ("c", "1-100-1")], None);
    assert!(workloads.dependent.is_empty(), "{:?}", pairs(&workloads));
}

#[test]
fn arrivals_are_tested_with_existing_workloads_but_not_with_those_that_they_replace() {
    let existing = read(&[("a", "1-100-1"), ("b", "2-200-1"), ("c", "3-100-1")], None);
    assert_eq!(pairs(&existing), [["a", "c"]]);
    let arriving = read(&[("d", "4-200-1"), ("a", "5-200-1")], Some(&existing));
    // The pair of existing workloads is not repeated.
    let mut found = pairs(&arriving);
    found.sort_unstable();
    assert_eq!(found, [["b", "a"], ["b", "d"], ["d", "a"]]);
}

#[test]
fn a_trace_whose_load_grows_is_named() {
    let workloads = read(&[("calm", "1-100-1"), ("grows", "2-200-2")], None);
    assert_eq!(
        workloads.doubts(),
        ["grows: the load of its trace changes over time; bounds by snc assume that it does not"]
    );
    let tested = |at: usize| workloads.entries[at].traced.as_ref().unwrap().stationarity.unwrap();
    assert!(!tested(0).is_rejected() && tested(1).is_rejected());
    let [first, second] = tested(1).halves;
    assert!((1.2..2.2).contains(&(second / first)), "{first} {second}");
}
