//! Losses of copies, case by case: when a copy counts as lost, which block is repaired first, from where and to where.

use std::collections::BTreeSet;

use leeward_fabric::HostId;
use leeward_scenarios::record::{Block, Record};
use leeward_scenarios::scenario::Scenario;

use crate::support::files::{BLOCK, many, name, rack, with_lists};
use crate::support::runs::run;

fn scenario(name: &str, files: &[u64], more: &str) -> Scenario {
    crate::support::files::scenario("losses", name, files, "", more)
}

/// Hosts of the first block's copies, in a run without failures.
fn hosts_of_first_block(test: &str) -> Vec<HostId> {
    let whole = run(&scenario(test, &many(), "horizon: 10min\n"), "uniform");
    whole.blocks[0].copies.clone()
}

/// Background on the links of racks from the start on, in percent of their capacity.
fn rates(links: &[(String, u32)]) -> String {
    let line = |(link, percent): &(String, u32)| format!("0,{link},{percent}0e6\n");
    format!("t_s,link,rate_bps\n{}", links.iter().map(line).collect::<String>())
}

#[test]
fn a_dead_host_that_fails_again_with_its_rack_is_used_once_it_is_up() {
    let events = "repair: {after: 10s}\nhorizon: 5min\nevents:\n  \
        - {at: 30s, host: r2h0, state: down, told: false}\n  \
        - {at: 60s, rack: r2, state: down, told: false}\n  \
        - {at: 90s, rack: r2, state: up, told: false}\n";
    let record = run(&scenario("again", &[BLOCK; 200], events), "uniform");
    let new_copies = |host: u32, from: f64| {
        let placed = |block: &&Block| block.placed.is_some_and(|at| at > from);
        record.blocks.iter().filter(placed).filter(|block| block.copies.contains(&HostId(host))).count()
    };
    assert!(new_copies(8, 100.0) > 5 && new_copies(9, 100.0) > 5, "both hosts are known to be up");
}

#[test]
fn a_dead_host_that_is_up_before_the_decision_gets_no_second_copy() {
    // Only rack 2 has much room, so most blocks have two copies there, and new ones would go there.
    let busy = [0, 1, 3, 4, 5].map(|rack| (format!("r{rack}:downlink"), 95));
    let lines: String = (0..40).map(|at| format!("{},{},{BLOCK}\n", at + 1, at * 5 % 24)).collect();
    let lists =
        [("rates.csv", rates(&busy)), ("blocks.csv", format!("t_arrival_s,writer,size_bytes\n{lines}"))];
    let text = "  - blocks: {file: blocks.csv, block: 16MiB}\n  - rates: {file: rates.csv}\n\
        repair: {after: 10s, every: 1s}\nhorizon: 5min\nevents:\n  \
        - {at: 61s, rack: r2, state: down}\n  - {at: 73s, rack: r2, state: up}\n";
    let scenario = with_lists("losses", "second", &lists, text);
    let record = run(&scenario, "sinbad:threshold=1MB:interval=10s:disk_write_cap=100Mbps");
    let back: Vec<_> = record
        .repairs
        .iter()
        .filter(|repair| repair.started >= 80.0 && repair.to.iter().any(|&host| rack(host) == 2))
        .collect();
    assert!(back.len() > 5, "{} repairs into the rack that was dead", back.len());
    for block in record.blocks.iter().filter(|block| block.finished.is_some()) {
        let hosts: BTreeSet<HostId> = block.copies.iter().copied().collect();
        assert_eq!(hosts.len(), 3, "{block:?}");
    }
    assert!(record.repairs.iter().all(|repair| !repair.to.iter().any(|host| repair.missing.contains(host))));
}

#[test]
fn a_copy_that_is_lost_during_a_repair_is_lost_from_then_on() {
    let copies = hosts_of_first_block("during");
    let events = format!(
        "repair: {{after: 10s, rate: 4Mbps}}\nhorizon: 10min\nevents:\n  \
            - {{at: 50s, host: {}, state: down}}\n  - {{at: 55s, host: {}, state: down}}\n",
        name(copies[1]),
        name(copies[2])
    );
    let record = run(&scenario("during", &many(), &events), "uniform");
    let rows: Vec<_> = record.repairs.iter().filter(|repair| repair.block == 0).collect();
    let [first, second] = rows[..] else { panic!("a repair for each host: {rows:?}") };
    assert_eq!((&*first.missing, first.lost), (&copies[1..2], 60.0));
    assert_eq!((&*second.missing, second.lost), (&copies[2..], 65.0));
    assert!(first.finished.is_some_and(|at| at > 90.0 && at <= second.started), "{first:?}");
}

#[test]
fn stripes_without_redundancy_are_repaired_before_blocks_with_two_copies() {
    let list = |from: usize| {
        let line = |at: usize| format!("{},{},{BLOCK}\n", from + at / 4, at * 5 % 24);
        format!("t_arrival_s,writer,size_bytes\n{}", (0..80).map(line).collect::<String>())
    };
    let lists = [("copies.csv", list(1)), ("stripes.csv", list(30))];
    let text = "  - blocks: {file: copies.csv, block: 16MiB}\n  \
        - blocks: {file: stripes.csv, block: 16MiB, coding: 2+1}\n\
        repair: {after: 10s, streams: 4}\nhorizon: 10min\nevents: [{at: 80s, host: r2h0, state: down}]\n";
    let record = run(&with_lists("losses", "stripes", &lists, text), "uniform");
    let first: Vec<bool> = record
        .repairs
        .iter()
        .filter(|repair| repair.started == 90.0)
        .map(|repair| repair.from.len() == 1)
        .collect();
    assert!(first.contains(&true) && first.contains(&false), "both kinds in the first round: {first:?}");
    assert!(first.is_sorted(), "copies before stripes: {first:?}");
}

#[test]
fn hosts_do_not_count_as_dead_after_the_horizon() {
    let unrepaired = |last: u64| {
        let files: Vec<u64> = [BLOCK; 10].into_iter().chain([last]).collect();
        let more = "repair: {after: 10s}\nhorizon: 2min\nevents: [{at: 115s, rack: r4, state: down}]\n";
        let record = run(&scenario("horizon", &files, more), "uniform");
        let end = record.files.iter().filter_map(|file| file.finished).fold(0.0, f64::max);
        (record.unrepaired, end > 130.0)
    };
    assert_eq!(unrepaired(BLOCK), (Some(0), false));
    assert_eq!(unrepaired(7 << 30), (Some(0), true), "the same with a file that ends late");
}

#[test]
fn the_fastest_holder_is_the_one_with_the_free_uplink() {
    let copies = hosts_of_first_block("fastest");
    let lines: String = (0..40).map(|at| format!("{},{},{BLOCK}\n", at + 1, at * 5 % 24)).collect();
    let holder = |busy: HostId| -> Record {
        let lists = [
            ("rates.csv", rates(&[(format!("r{}:uplink", rack(busy)), 99)])),
            ("blocks.csv", format!("t_arrival_s,writer,size_bytes\n{lines}")),
        ];
        let text = format!(
            "  - blocks: {{file: blocks.csv, block: 16MiB}}\n  - rates: {{file: rates.csv}}\n\
                repair: {{after: 10s, source: fastest}}\nhorizon: 10min\n\
                events: [{{at: 5min, host: {}, state: down}}]\n",
            name(copies[2])
        );
        run(&with_lists("losses", "fastest", &lists, &text), "uniform")
    };
    assert_ne!(rack(copies[0]), rack(copies[1]));
    for (busy, free) in [(copies[0], copies[1]), (copies[1], copies[0])] {
        let record = holder(busy);
        let repair = record.repairs.iter().find(|repair| repair.block == 0).expect("a repair of the block");
        assert_eq!(&*repair.from, &[free], "with a busy uplink of {}", name(busy));
    }
}
