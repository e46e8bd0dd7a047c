//! The ledger's code and the conformance vectors in `docs/reference/ledger-vectors.json` agree.
//! `LEEWARD_UPDATE=1 cargo test -p leeward-ledger --test it conformance` rewrites the file.

use std::path::PathBuf;
use std::sync::OnceLock;

use leeward_fabric::Nanos;

use crate::vectors::format::{File, Numbers, Step, Vector};
use crate::vectors::replay::{Replayed, replay};
use crate::vectors::scripts::all;

const UPDATE_COMMAND: &str = "LEEWARD_UPDATE=1 cargo test --release -p leeward-ledger --test it conformance";

fn path() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "../../docs/reference/ledger-vectors.json"].iter().collect()
}

/// The expected file: one line per step.
fn expected_text() -> String {
    let line = |value: &dyn Fn() -> serde_json::Result<String>| value().expect("vectors are plain data");
    let mut text = String::from(
        "{\"about\": \"Conformance vectors of the ledger; see ledger-vectors.md\",\n\"vectors\": [",
    );
    for (index, vector) in all().iter().enumerate() {
        let expect = replay(vector).expect;
        let bare = Vector { steps: Vec::new(), ..vector.clone() };
        let head = line(&|| serde_json::to_string(&bare)).replace("\"steps\":[]}", "\"steps\": [");
        let head = head.replace(",\"settings\"", ",\n\"settings\"").replace(",\"cluster\"", ",\n\"cluster\"");
        text += &format!("{}\n{head}", if index > 0 { "," } else { "" });
        for (index, (step, expect)) in vector.steps.iter().zip(expect).enumerate() {
            let step = Step { expect, ..step.clone() };
            text += &format!(
                "{}\n  {}",
                if index > 0 { "," } else { "" },
                line(&|| serde_json::to_string(&step))
            );
        }
        text += "]}";
    }
    text + "]}\n"
}

/// The committed file. An update rewrites the file first, so that no test reads half of it.
fn committed() -> &'static str {
    static FILE: OnceLock<String> = OnceLock::new();
    FILE.get_or_init(|| {
        if std::env::var_os("LEEWARD_UPDATE").is_some() {
            std::fs::write(path(), expected_text()).expect("the file can be written");
        }
        std::fs::read_to_string(path())
            .unwrap_or_else(|error| panic!("{error}; to write it: {UPDATE_COMMAND}"))
    })
}

#[test]
fn the_committed_file_matches_the_ledger() {
    let same = committed() == expected_text();
    assert!(same, "{} differs from the ledger; if that is intended: {UPDATE_COMMAND}", path().display());
}

/// Reads only the file, as a client in another language does.
#[test]
fn a_replay_of_the_committed_file_gives_its_numbers() {
    let file: File = serde_json::from_str(committed()).expect("the file is in its format");
    for vector in &file.vectors {
        let found = replay(vector).expect;
        assert_eq!(vector.steps.len(), found.len());
        for ((step, found), index) in vector.steps.iter().zip(&found).zip(0..) {
            assert_eq!(step.expect.len(), vector.read.len());
            for (expected, found) in step.expect.iter().zip(found) {
                let same = is_close(expected, found, vector.tolerance_bps);
                assert!(same, "{} step {index}: expected {expected:?}, found {found:?}", vector.name);
            }
        }
    }
}

/// Compares a client's numbers with the file's numbers, with the tolerance from `docs/reference/ledger-vectors.md`.
fn is_close(a: &Numbers, b: &Numbers, tolerance_bps: f64) -> bool {
    let rate = |a: Option<i64>, b: Option<i64>| match (a, b) {
        (Some(a), Some(b)) => a.abs_diff(b) as f64 <= tolerance_bps,
        (a, b) => a == b,
    };
    let utilization = match (a.utilization, b.utilization) {
        (Some(a), Some(b)) => (a - b).abs() <= 1e-9,
        (a, b) => a == b,
    };
    utilization
        && rate(a.measured_bps, b.measured_bps)
        && rate(a.expected_capacity_bps, b.expected_capacity_bps)
        && rate(Some(a.residual_bps), Some(b.residual_bps))
        && rate(Some(a.share_bps), Some(b.share_bps))
        && rate(a.unreserved_bps, b.unreserved_bps)
        && (a.resource, a.derived, a.hot_since_ns) == (b.resource, b.derived, b.hot_since_ns)
}

// ---- the semantics behind the vectors ----------------------------------------------------------------

const CAPACITY: i64 = 2_000_000_000;
const MBPS: i64 = 1_000_000;

fn vector(name: &str) -> (Vector, Replayed) {
    let vector = all().into_iter().find(|vector| vector.name == name).expect("a vector of this name");
    let replayed = replay(&vector);
    (vector, replayed)
}

/// The downlink's numbers after each step.
fn numbers(name: &str) -> Vec<Numbers> {
    vector(name).1.expect.into_iter().map(|mut read| read.remove(0)).collect()
}

fn load(numbers: &Numbers) -> f64 {
    numbers.utilization.expect("the link is seen") * CAPACITY as f64
}

fn assert_near(found: f64, expected: f64, relative: f64) {
    assert!((found - expected).abs() <= relative * expected.abs(), "expected {expected}, found {found}");
}

#[test]
fn a_block_fills_a_link_for_sinbad_and_takes_its_cap_from_best_effort() {
    let [before, placed, after] = &numbers("pressure_is_not_load")[..] else { panic!("three steps") };
    assert_eq!(before.expected_capacity_bps, Some(1600 * MBPS));
    assert_eq!((placed.expected_capacity_bps, placed.residual_bps), (Some(0), 1200 * MBPS));
    assert_eq!(after.expected_capacity_bps, Some(1600 * MBPS));
}

#[test]
fn measured_plus_pending_of_a_steady_stream_is_constant() {
    for step in &numbers("steady_stream")[1..] {
        assert_near(load(step), 400e6, 1e-12);
    }
}

#[test]
fn a_reservation_costs_best_effort_its_mean_and_admission_its_rate() {
    for step in &numbers("reservation")[1..] {
        assert_near(step.residual_bps as f64, 1900e6, 1e-12);
        assert_eq!(step.unreserved_bps, Some(CAPACITY - 300 * MBPS));
    }
}

#[test]
fn a_move_counts_at_once_and_stays_counted() {
    for step in &numbers("work_that_leaves")[1..] {
        assert_near(load(step), 700e6, 1e-12);
    }
}

#[test]
fn two_orders_of_commits_and_releases_end_in_the_same_bytes() {
    let [one, another] = ["one_order", "another_order"].map(vector);
    assert_eq!(one.1.ledger.sums_bytes(), another.1.ledger.sums_bytes());
    assert_eq!(one.1.expect.last(), another.1.expect.last());
}

#[test]
fn a_report_sent_before_a_commit_clears_no_pending_load() {
    let steps = numbers("late_report");
    assert_eq!(steps[1].residual_bps, 1500 * MBPS);
    assert_eq!(steps[2], steps[1]);
    assert_eq!(steps[3].residual_bps, 1800 * MBPS);
    assert_eq!(steps[4], steps[3]);
}

#[test]
fn a_start_reported_late_counts_from_its_own_time() {
    let steps = numbers("started_late");
    // The window before the late message saw half of the start, which therefore counts twice. The next window removes
    // 10 of 410.
    assert_near(load(&steps[3]), 410e6, 1e-9);
    // 0.7 of the next window lie after the start, and the window shows all of that work. Only 0.2 s of the window are
    // new.
    let weight = 1.0 - 0.8f64.powf(0.2);
    assert_near(load(&steps[4]), 410e6 - weight * 10e6, 1e-9);
    assert_near(load(&steps[5]), 0.8 * load(&steps[4]) + 0.2 * 400e6, 1e-9);
}

#[test]
fn a_silent_link_is_unknown_under_strict_and_fills_up_under_sinbad() {
    let strict = numbers("missing_strict");
    assert_eq!((strict[1].measured_bps, strict[2].measured_bps), (Some(500 * MBPS), None));
    assert_eq!((strict[2].residual_bps, strict[2].expected_capacity_bps), (0, None));
    // A gap of five intervals: 1 - 0.8^5 of the new load.
    let after = 800e6 + (500e6 - 800e6) * 0.8f64.powi(5);
    assert_near(strict[3].measured_bps.expect("seen") as f64, after, 1e-8);

    let sinbad = numbers("missing_sinbad");
    let measured = |step: usize| sinbad[step].measured_bps.expect("never unknown") / MBPS;
    assert_eq!([3, 4, 5].map(measured), [500, 800, 1040]);
    // The late report replaces the first missing report; the second one still counts.
    assert_eq!(measured(6), (2000 * 20 + (500 * 80 + 550 * 20) * 80 / 100) / 100);
    // Pressure ends with the report it waits for.
    assert_eq!(sinbad[4].expected_capacity_bps, Some(1200 * MBPS));
}

#[test]
fn sinbads_estimate_starts_at_zero() {
    let measured: Vec<_> = numbers("initial_zero").iter().map(|n| n.measured_bps).collect();
    assert_eq!(measured, [0, 200, 360, 360 + 328].map(|mbps| Some(mbps * MBPS)));
}

#[test]
fn gaps_and_overlaps_keep_the_sum_of_measured_and_pending_load() {
    numbers("gaps_in_time")[1..].iter().for_each(|step| assert_near(load(step), 500e6, 1e-12));
    numbers("windows_that_overlap")[1..].iter().for_each(|step| assert_near(load(step), 400e6, 1e-12));
    numbers("several_in_one_window")[5..].iter().for_each(|step| assert_near(load(step), 360e6, 1e-12));
    numbers("release_of_started_work")[5..].iter().for_each(|step| assert_near(load(step), 500e6, 1e-12));
}

#[test]
fn a_sum_counts_silent_hosts_as_full_and_down_hosts_as_idle() {
    let steps = numbers("sum_of_hosts");
    assert!(steps.iter().all(|step| step.derived));
    let measured = |step: usize| steps[step].measured_bps.map(|bps| bps / MBPS);
    assert_eq!([0, 1, 2].map(measured), [Some(1300), Some(500), Some(500)]);
    // After both reports of a second, the pressure of the block is gone, and the stream's sum is right.
    assert!(steps[5].expected_capacity_bps < Some(1000 * MBPS));
    assert_eq!(steps[6].expected_capacity_bps, Some(CAPACITY - 510 * MBPS));
    assert_near(load(&steps[6]), 600e6, 1e-12);
    let silent = steps[9].measured_bps.expect("seen") - steps[8].measured_bps.expect("seen");
    assert_eq!(silent, 800 * MBPS);
    let down = steps[9].measured_bps.expect("seen") - steps[10].measured_bps.expect("seen");
    assert_eq!(down, 1000 * MBPS);
    // The resource is silent from coming up until its first report.
    assert_eq!(steps[12].measured_bps.map(|bps| bps - 1000 * MBPS), steps[11].measured_bps);
}

#[test]
fn a_counter_replaces_the_sum_for_good() {
    let steps = numbers("counter_takes_over");
    assert_eq!(
        steps.iter().map(|step| step.derived).collect::<Vec<_>>(),
        [true, true, true, false, false, false, false, false]
    );
    assert_near(load(&steps[3]), 300e6, 1e-12);
    assert_near(load(&steps[5]), 300e6, 1e-12);
    assert_eq!(steps[7].measured_bps, None);
}

#[test]
fn leaving_work_stops_at_zero_and_new_work_does_not_offset_it() {
    numbers("relief_is_floored")[2..]
        .iter()
        .for_each(|step| assert_eq!(step.residual_bps, CAPACITY - 300 * MBPS));
}

#[test]
fn a_transfer_leaves_at_its_expected_end() {
    let steps = numbers("face_values_and_their_end");
    // A flow alone expects the whole link; a flow beside another one expects half.
    assert_eq!([0, 1, 2].map(|step| steps[step].share_bps), [CAPACITY, CAPACITY / 2, 666_666_667]);
    // 256 MiB take 1.0737 s at 2 Gb/s, and 21.5 s at 100 Mb/s.
    assert_eq!(load(&steps[4]), load(&steps[3]));
    assert_near(load(&steps[4]) - load(&steps[5]), 2000e6, 1e-12);
    // The flow itself stays until release.
    assert_eq!([5, 6, 7].map(|step| steps[step].share_bps), [666_666_667, 666_666_667, CAPACITY / 2]);
}

#[test]
fn work_that_never_starts_is_dropped() {
    let steps = numbers("never_started");
    let loads = [600, 600, 600, 300, 300].map(|mbps| CAPACITY - mbps * MBPS);
    assert_eq!(steps[1..].iter().map(|step| step.residual_bps).collect::<Vec<_>>(), loads);
}

#[test]
fn a_quiet_reservation_counts_its_mean_with_class_counters() {
    let steps = numbers("reservations_with_class_counters");
    let loads: Vec<_> = steps.iter().map(|step| (load(step) / 1e6).round() as i64).collect();
    // Measured in classes: 0, 0, 0, then 0.2 and 0.36 of 400. Pending part of the mean: 100, 80, 64, 51.2, 40.96.
    assert_eq!(loads, [600, 700, 700, 700, 600 + 80 + 51, 600 + 144 + 41, 600 + 144 + 41 + 50]);
}

#[test]
fn a_view_adds_and_removes_work_and_leaves_the_ledger_unchanged() {
    let steps = numbers("what_if");
    let residuals: Vec<_> = steps.iter().map(|step| step.residual_bps / MBPS).collect();
    assert_eq!(residuals, [1600, 1300, 1100, 1000, 600, 1500, 1100, 1000, 1000, 1600]);
    // 256 MiB within the quarter of a second until the next report exceed the link's capacity.
    assert_eq!(
        (steps[4].expected_capacity_bps, steps[5].expected_capacity_bps),
        (Some(0), Some(1600 * MBPS))
    );
    assert_eq!(steps[7], Numbers { ..steps[3].clone() });
}

#[test]
fn a_held_peak_stays_above_the_measured_load() {
    let loads: Vec<_> = numbers("peak_held").iter().map(|step| (load(step) / 1e6).round() as i64).collect();
    assert_eq!(loads, [300, 550, 550, 550, 550, 300, 300, 300]);
}

#[test]
fn a_new_capacity_applies_to_every_number_at_once() {
    let steps = numbers("belief");
    assert_eq!((steps[3].unreserved_bps, steps[4].unreserved_bps), (Some(500 * MBPS), Some(-500 * MBPS)));
    assert_eq!((steps[4].residual_bps, steps[4].expected_capacity_bps), (0, Some(0)));
    let hot: Vec<_> = steps.iter().map(|step| step.hot_since_ns.map(|ns| Nanos(ns.0))).collect();
    let second = |s: u64| Some(Nanos(s * 1_000_000_000));
    assert_eq!(hot, [second(0), None, None, None, None, second(3), second(3), second(3), None]);
}
