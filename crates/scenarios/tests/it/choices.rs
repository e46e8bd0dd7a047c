//! Hosts of tasks that choose their own, and the order of the blocks of jobs, from scenario file to record.

use std::collections::BTreeSet;

use leeward_fabric::HostId;
use leeward_scenarios::scenario::Scenario;
use leeward_workloads::FileWrite;

use crate::support::files::{BLOCK, rack, with_lists};
use crate::support::runs::run;

/// Text of a list with a file of some blocks of 16 MiB every ten seconds, by one host after another.
fn list(files: usize, blocks: u64) -> String {
    let line = |at: usize| format!("{},{},{}\n", at * 10, at * 5 % 24, blocks * BLOCK);
    format!("t_arrival_s,writer,size_bytes\n{}", (0..files).map(line).collect::<String>())
}

fn scenario(name: &str, more: &str) -> Scenario {
    let lists = [("blocks.csv", list(60, 3)), ("others.csv", list(30, 1))];
    let blocks = "  - blocks: {file: blocks.csv, block: 16MiB}\n";
    with_lists("choices", name, &lists, &format!("{blocks}{more}horizon: 11min\n"))
}

#[test]
fn a_task_that_fails_runs_again_on_another_host_also_if_it_chooses() {
    for choices in ["", "writer_choices: 2\n", "writer_choices: 24\n"] {
        let record = run(&scenario("again", &format!("faults: {{failures: 1}}\n{choices}")), "uniform");
        let writers = |file: usize, deleted: bool| -> BTreeSet<HostId> {
            let blocks = record.blocks.iter().filter(|block| block.file as usize == file);
            let blocks = blocks.filter(|block| block.deleted.is_some() == deleted);
            blocks.map(|block| block.writer).collect()
        };
        for (number, file) in record.files.iter().enumerate() {
            assert_eq!((file.attempts, file.finished.is_some()), (2, true), "{choices}{file:?}");
            let (first, second) = (writers(number, true), writers(number, false));
            assert_eq!((first.len(), &second), (1, &BTreeSet::from([file.writer])), "{choices}{file:?}");
            assert!(first.is_disjoint(&second), "{choices}{file:?}");
        }
    }
}

#[test]
fn tasks_choose_no_host_that_is_down_though_the_ledger_does_not_know() {
    let events = "events: [{at: 5s, rack: r2, state: down, told: false}]\n";
    let files = |choices: &str| run(&scenario("down", &format!("{events}{choices}")), "uniform").files;
    // Ten of the 60 files have their writers in this rack.
    assert_eq!(files("").iter().filter(|file| file.finished.is_none()).count(), 10);
    let chosen = files("writer_choices: 24\n");
    assert!(chosen.iter().all(|file| file.finished.is_some() && rack(file.writer) != 2));
}

#[test]
fn choices_do_not_depend_on_other_sources() {
    let draws = |more: &str| {
        let more = format!("{more}writer_choices: 4\n");
        let workload = scenario("sources", &more).arrivals(1).expect("a valid scenario").workload;
        let draw = |file: &FileWrite| {
            let choices = file.choices.as_ref().expect("it chooses");
            (file.start.to_bits(), choices.draw(file.writer))
        };
        let three_blocks = |file: &&FileWrite| file.bytes.0 == 3 * BLOCK;
        workload.files.iter().filter(three_blocks).map(draw).collect::<Vec<_>>()
    };
    let alone = draws("");
    assert!(alone.len() == 60 && alone.iter().all(|(_, hosts)| hosts.len() == 4));
    assert_eq!(alone, draws("  - blocks: {file: others.csv, block: 16MiB}\n"));
}

#[test]
fn with_makespan_a_job_waits_behind_a_shorter_one_for_the_sake_of_its_longest_writer() {
    // Rack 3 has the most room, for one block more than the others. Job a has a writer in progress, with seven blocks left
    // of eight when the other two files wait for one decision.
    const FULL: u64 = 256 << 20;
    let blocks = format!(
        "t_arrival_s,job,writer,size_bytes,replicas\n10,a,r0h1,{},1\n20.2,a,r0h0,{FULL},3\n20.5,b,r0h2,{},3\n",
        8 * FULL,
        3 * FULL
    );
    let busy = [("r1", 700), ("r2", 700), ("r3", 500), ("r4", 700), ("r5", 700)];
    let lines: String =
        busy.iter().map(|(rack, percent)| format!("0,{rack}:downlink,{percent}e6\n")).collect();
    let lists = [("blocks.csv", blocks), ("rates.csv", format!("t_s,link,rate_bps\n{lines}"))];
    let text = "  - blocks: {file: blocks.csv}\n  - rates: {file: rates.csv}\nhorizon: 2min\n";
    let scenario = with_lists("choices", "makespan", &lists, text);
    let takes_best_rack = |policy: &str| {
        let record = run(&scenario, policy);
        let first = |file: u32| {
            let block = record.blocks.iter().find(|block| block.file == file && block.index == 0);
            let block = block.expect("every file has a block");
            assert_eq!(block.placed, Some(21.0), "{policy}: {block:?}");
            rack(block.copies[1]) == 3
        };
        [first(1), first(2)]
    };
    assert_eq!(takes_best_rack("sinbad-file:interval=1s"), [true, false], "the file with one block left");
    assert_eq!(takes_best_rack("sinbad-file:interval=1s:makespan=true"), [false, true], "the shorter job");
}
