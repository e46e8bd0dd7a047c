//! The section `moves` of scenarios with a cell: the settings that the service has for moves of tasks.

use std::collections::BTreeMap;

use leeward_scenarios::record::Record;
use leeward_scenarios::scenario::Scenario;

use crate::support::cell::{STEP, uneven};
use crate::support::runs::{folder, run};

/// Moves of tasks under these settings, on racks that are often hot: the rates of tasks change every five minutes.
fn moves(name: &str, section: &str) -> Record {
    let text = format!(
        "workloads: [{{cell: {{network: 0.6, spread: 1.5, peak: 3, batch: 1h}}}}]\ntelemetry: {{interval: 30s}}\n\
         horizon: 4h\nwarmup: 10min\nsample: 5min\n{section}"
    );
    run(&uneven(&format!("moves-{name}"), &text), "utp-reactive")
}

/// Shortest time between two moves of one task, in telemetry intervals; infinite if no task moves twice.
fn shortest_gap(record: &Record) -> f64 {
    let (mut last, mut shortest) = (BTreeMap::new(), f64::INFINITY);
    for moved in &record.moves {
        if let Some(before) = last.insert(moved.task, moved.at) {
            shortest = shortest.min((moved.at - before) / STEP);
        }
    }
    shortest
}

#[test]
fn a_moved_task_stays_for_the_cooldown_of_the_scenario() {
    let gaps = ["", "moves: {cooldown: 2}\n", "moves: {cooldown: 40}\n"];
    let gaps = gaps.map(|section| shortest_gap(&moves("cooldown", section)));
    println!("shortest gaps, in intervals: {gaps:?}");
    assert!((10.0..40.0).contains(&gaps[0]), "ten intervals by default: {gaps:?}");
    assert!((2.0..10.0).contains(&gaps[1]), "{gaps:?}");
    assert!(gaps[2] >= 40.0, "{gaps:?}");
}

#[test]
fn tasks_move_by_the_last_window_earlier_than_by_the_estimate_and_later_after_more_windows() {
    // The rates of tasks change at each multiple of this time, in seconds.
    const CHANGE: f64 = 300.0;
    let measure = |name: &str, section: &str| {
        let record = moves(name, section);
        let after_change: Vec<f64> = record.moves.iter().map(|moved| moved.at % CHANGE).collect();
        let count = after_change.len();
        let first = record.moves.first().map_or(f64::INFINITY, |moved| moved.at);
        (first, after_change.iter().sum::<f64>() / count as f64, count)
    };
    let estimate = measure("estimate", "");
    let window = measure("window", "moves: {load: window}\n");
    let patient = measure("patient", "moves: {load: window, windows: 5}\n");
    println!(
        "first move and mean time after a change in s, moves: {estimate:?}, window {window:?}, 5 windows {patient:?}"
    );
    assert_eq!(measure("default", "moves: {load: estimate, windows: 1, cooldown: 10}\n"), estimate);
    assert!(window.1 < estimate.1 && window.2 > estimate.2);
    assert!(patient.0 >= window.0 + 4.0 * STEP && patient.2 < window.2);
}

#[test]
fn a_section_of_moves_without_tasks_or_with_bad_values_is_rejected() {
    let folder = folder("cell", "bad-moves");
    std::fs::write(
        folder.join("cluster.yaml"),
        "racks: 2\nhosts_per_rack: 2\nnic: 10Gbps\noversubscription: 2\n",
    )
    .expect("the folder of the test can be written to");
    for (text, expected) in [
        ("workloads: [{facebook: {}}]\nmoves: {}\n", "moves: applies to the tasks of a cell"),
        ("workloads: [{cell: {}}]\nmoves: {windows: 0}\n", "windows"),
        ("workloads: [{cell: {}}]\nmoves: {load: mean}\n", "load"),
    ] {
        let text = format!("cluster: cluster.yaml\n{text}");
        let error = Scenario::from_text("bad.yaml", &text, &folder, None).expect_err("an error").to_string();
        assert!(error.starts_with("bad.yaml:3:") && error.contains(expected), "{error}");
    }
}
