//! Properties of runs: cells of one are one ledger, nothing is lost or counted twice, a cell that is away stops no
//! other, and with present knowledge cells are nearly as good as one ledger.

use leeward_cells::{Arm, Counts, Residue, RunRecord, Summary};
use proptest::prelude::*;

use crate::support::{is_absent, runs};

const POLICIES: [&str; 3] = ["uniform", "sinbad", "leeward"];

/// Runs of cells.
fn of_cells(runs: &[RunRecord]) -> &[RunRecord] {
    &runs[1..]
}

/// Number of blocks whose fate is decided.
fn decided(counts: &Counts) -> u64 {
    counts.placed + counts.refused + counts.unplaced
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn cells_of_one_are_one_ledger_bit_by_bit(
        seed in 0..1000_u64,
        policy in prop::sample::select(POLICIES.to_vec()),
        choice in prop::sample::select(vec!["best", "two", "random"]),
    ) {
        let runs = runs(&format!(
            "cells: 1\npolicy: {policy}\nchoice: {choice}\nseed: {seed}\nhorizon: 8s\nwrites: {{load: 600}}\n\
             exchange: {{intervals: [0s, 1s], losses: [0, 0.5]}}"
        ));
        prop_assert_eq!(runs.len(), 5);
        prop_assert!(runs[0].counts.placed > 50);
        for run in of_cells(&runs) {
            prop_assert_eq!(RunRecord { arm: Arm::OneLedger, ..run.clone() }, runs[0].clone());
        }
    }

    #[test]
    fn a_run_repeats(seed in 0..1000_u64) {
        let change = format!(
            "seed: {seed}\nhorizon: 6s\nexchange: {{losses: [0.2], timeout: 20ms}}\n\
             absent: [{{cell: 1, from: 2s, until: 4s}}]"
        );
        prop_assert_eq!(runs(&change), runs(&change));
        let other = runs(&change.replace(&format!("seed: {seed}"), &format!("seed: {}", seed + 1)));
        prop_assert_ne!(runs(&change)[0].samples.clone(), other[0].samples.clone());
    }

    #[test]
    fn load_is_conserved_whatever_is_lost(
        seed in 0..1000_u64,
        policy in prop::sample::select(POLICIES.to_vec()),
        loss in 0.0..1.0_f64,
        lease in 1..30_u64,
    ) {
        let runs = runs(&format!(
            "policy: {policy}\nseed: {seed}\nhorizon: 8s\n\
             exchange: {{losses: [{loss}], timeout: 20ms, lease: {lease}s}}\n\
             absent: [{{cell: 0, from: 2s, until: 5s}}, {{cell: 2, from: 3s, until: 30s}}]"
        ));
        for run in &runs {
            prop_assert_eq!(run.residue, Residue::default());
            for sample in &run.samples {
                // All traffic out of a pod enters another one.
                prop_assert_eq!(sample.placed_up_bps, sample.placed_down_bps);
            }
            let most = decided(&runs[0].counts);
            prop_assert!(decided(&run.counts) <= most);
            // Requests that wait for an answer at the end are undecided.
            prop_assert!(decided(&run.counts) + 60 >= most, "{:?} of {most}", run.counts);
        }
    }

    #[test]
    fn a_cell_that_is_away_stops_no_other(
        seed in 0..1000_u64,
        policy in prop::sample::select(POLICIES.to_vec()),
        cell in 0..4_u32,
    ) {
        let runs = runs(&format!(
            "policy: {policy}\nseed: {seed}\nhorizon: 12s\nexchange: {{timeout: 20ms}}\n\
             absent: [{{cell: {cell}, from: 3s, until: 9s}}]"
        ));
        let away = runs.iter().find(|run| is_absent(run)).expect("a run with an absence");
        // Every block is placed: those of the cell by their writers, and those of others by cells that are there.
        prop_assert_eq!((away.counts.refused, away.counts.unplaced), (0, 0));
        prop_assert!(away.counts.without_controller > 0);
        prop_assert!(away.counts.placed + 20 >= runs[0].counts.placed);
        // No request waits longer than all cells may be asked.
        let longest = away.waits.iter().copied().fold(0.0, f32::max);
        prop_assert!(longest <= 3.0 * 2.0 * 0.02 + 0.02, "{longest} s");
    }

    #[test]
    fn with_present_knowledge_cells_are_within_a_tenth_of_one_ledger(
        seed in 0..1000_u64,
        policy in prop::sample::select(POLICIES.to_vec()),
    ) {
        let runs = runs(&format!(
            "policy: {policy}\nseed: {seed}\nchoice: best\nmargin: 0\nwarmup: 4s\n\
             exchange: {{intervals: [0s], delay: 0s, jitter: 0s}}"
        ));
        let [one, cells] = [&runs[0], &runs[1]].map(Summary::of);
        prop_assert_eq!(cells.rejected, 0.0);
        prop_assert!(cells.core.fullest <= 1.1 * one.core.fullest + 0.05, "{cells:?}\n{one:?}");
        prop_assert!(cells.core.p98 <= 1.1 * one.core.p98 + 0.05, "{cells:?}\n{one:?}");
        prop_assert!(cells.racks.p98 <= 1.1 * one.racks.p98 + 0.05, "{cells:?}\n{one:?}");
    }
}

#[test]
fn without_any_message_only_blocks_for_other_cells_fail() {
    let runs = runs("exchange: {losses: [1], intervals: [500ms]}\nwarmup: 4s");
    let counts = runs[1].counts;
    // Digests of the start are too old by then.
    assert_eq!((counts.refused, counts.crossed, counts.stayed), (0, 0, 0));
    assert!(counts.unplaced > 0);
    assert_eq!(counts.lost, counts.messages);
    let placed = counts.placed as f64 / decided(&counts) as f64;
    // A fifth of all files are for other cells.
    assert!((0.6..0.95).contains(&placed), "{counts:?}");
}

#[test]
fn lost_messages_cost_repetitions_and_leases_clean_up() {
    let of =
        |loss: f64| runs(&format!("exchange: {{losses: [{loss}], timeout: 20ms, lease: 3s}}"))[1].clone();
    let [none, some, many] = [0.0, 0.1, 0.4].map(of);
    assert_eq!((none.counts.lost, none.counts.repeated, none.counts.cancelled), (0, 0, 0));
    assert!(none.counts.repeated < some.counts.repeated && some.counts.repeated < many.counts.repeated);
    assert!(many.counts.expired > some.counts.expired && some.counts.expired > none.counts.expired);
    let wait = |run: &RunRecord| Summary::of(run).wait_mean;
    assert!(wait(&none) < wait(&some) && wait(&some) < wait(&many));
}
