//! Properties of the generated hour: it is valid on any cluster, a longer run begins like a shorter one, and its parts do not
//! depend on each other.

use std::collections::BTreeMap;

use leeward_testing::clusters::cluster;
use leeward_workloads::{Background, Facebook, Factor, FileWrite, Phases, Workload, Writers};
use proptest::prelude::*;

use crate::support::{check, tree};

proptest! {
    #[test]
    fn the_generated_hour_is_valid_on_any_cluster(
        racks in 1usize..12, hosts in 1usize..12, shape in 0..3, flows in any::<bool>(), load in 0.0..20.0,
        seed in any::<u64>(),
    ) {
        let cluster = match shape {
            0 => tree(racks, hosts),
            1 => cluster(&format!("{{shape: hose, hosts: {}, nic: 1Gbps}}", racks * hosts)),
            _ => cluster(&format!("{{racks: {racks}, hosts_per_rack: {hosts}, nic: 1Gbps, rack_link: 1Gbps, kind: disk}}")),
        };
        let background = if flows { Background::Flows } else { Background::Rates };
        let settings = Facebook { load: Factor::new(load).unwrap(), background, ..Facebook::default() };
        let loaded = settings.generate(&cluster, seed, 300.0).unwrap();
        check(&loaded.workload, &cluster, 300.0);
        prop_assert_eq!(&loaded, &settings.generate(&cluster, seed, 300.0).unwrap());
    }

    #[test]
    fn phases_leave_generated_files_unchanged(load in 0.1..20.0, seed in any::<u64>()) {
        let cluster = tree(6, 5);
        let load = Factor::new(load).unwrap();
        let without = Facebook { load, ..Facebook::default() };
        let with = Facebook { phases: Some(Phases::default()), ..without.clone() };
        let (without, with) = (without.generate(&cluster, seed, 900.0).unwrap(), with.generate(&cluster, seed, 900.0).unwrap());
        check(&with.workload, &cluster, 900.0);
        let of = |workload: &Workload| {
            let name = |file: &FileWrite| workload.jobs[file.job.unwrap() as usize].name.clone();
            let files = workload.files.iter().map(|file| (name(file), file.writer, file.bytes));
            let mut files: Vec<_> = files.collect();
            files.sort();
            files
        };
        // Tasks that begin to fetch within the run may write after its end.
        let (before, after) = (of(&without.workload), of(&with.workload));
        let mut rest = after.iter();
        prop_assert!(before.iter().all(|file| rest.any(|other| other == file)));
        for file in &with.workload.files {
            let job = &with.workload.jobs[file.job.unwrap() as usize];
            prop_assert!(file.fetches.is_empty() || !job.name.starts_with("bin5"));
        }
        // Shuffles of jobs replace the shuffles of the background, and the reads stay.
        prop_assert!(with.workload.rates.len() <= without.workload.rates.len());
    }
}

#[test]
fn a_run_with_phases_begins_as_a_longer_one_does() {
    let cluster = tree(6, 5);
    let settings =
        Facebook { load: Factor::new(10.0).unwrap(), phases: Some(Phases::default()), ..Facebook::default() };
    // A shuffle alone takes up to half an hour.
    let (short, long) = (600.0, 6000.0);
    let tasks = |horizon: f64| {
        let workload = settings.generate(&cluster, 3, horizon).unwrap().workload;
        let name = |file: &FileWrite| workload.jobs[file.job.unwrap() as usize].name.clone();
        let begun = workload.files.iter().filter(|file| file.start < short);
        begun.map(|file| (name(file), FileWrite { job: None, ..file.clone() })).collect::<Vec<_>>()
    };
    let (short, long) = (tasks(short), tasks(long));
    assert!(short.iter().any(|(_, file)| !file.fetches.is_empty()));
    assert_eq!(short, long);
}

#[test]
fn a_longer_run_begins_like_a_shorter_one() {
    let cluster = tree(30, 20);
    let kinds = [
        (Background::Rates, false, Writers::Waves),
        (Background::Flows, false, Writers::Waves),
        (Background::Rates, true, Writers::Waves),
        (Background::Rates, false, Writers::Paced),
        (Background::Rates, true, Writers::Paced),
    ];
    for (background, phases, writers) in kinds {
        let phases = phases.then(Phases::default);
        let shuffles = phases.is_none();
        let settings = Facebook { background, phases, writers, ..Facebook::default() };
        let (short, long) =
            (settings.generate(&cluster, 5, 605.0).unwrap(), settings.generate(&cluster, 5, 1800.0).unwrap());
        let (short, long) = (short.workload, long.workload);
        // A job that crosses the end has more files in the longer run, so job numbers may differ.
        let named = |workload: &Workload| {
            let files = workload.files.iter().filter(|file| file.start < 605.0);
            let name = |file: &FileWrite| workload.jobs[file.job.unwrap() as usize].name.clone();
            files.map(|file| (file.start, file.writer, file.bytes, name(file))).collect::<Vec<_>>()
        };
        assert_eq!(named(&short), named(&long));
        assert!(!short.files.is_empty() && (!shuffles || short.rates.len() + short.flows.len() > 100));
        let rates = long.rates.into_iter().filter(|change| change.at < 605.0);
        assert_eq!(short.rates, rates.collect::<Vec<_>>());
        let flows = long.flows.into_iter().filter(|flow| flow.start < 605.0);
        assert_eq!(short.flows, flows.collect::<Vec<_>>());
    }
}

#[test]
fn background_changes_leave_the_writes_unchanged() {
    let cluster = tree(30, 20);
    let writes = |background| {
        let settings = Facebook { background, ..Facebook::default() };
        let workload = settings.generate(&cluster, 5, 600.0).unwrap().workload;
        (workload.files, workload.jobs)
    };
    assert_eq!(writes(Background::Rates), writes(Background::Flows));
    assert_eq!(writes(Background::Rates), writes(Background::None));
    let alone = Facebook { writers: Writers::None, ..Facebook::default() };
    let beside_files = Facebook::default().generate(&cluster, 5, 600.0).unwrap().workload;
    let alone = alone.generate(&cluster, 5, 600.0).unwrap().workload;
    assert_eq!(alone, Workload { rates: beside_files.rates, ..Workload::default() });
}

#[test]
fn paced_writers_of_a_job_write_its_blocks_at_once_over_one_time() {
    let cluster = tree(30, 20);
    let files = |writers| {
        let settings = Facebook { writers, ..Facebook::default() };
        let workload = settings.generate(&cluster, 7, 3600.0).unwrap().workload;
        let mut jobs = BTreeMap::<String, Vec<FileWrite>>::new();
        for file in workload.files {
            jobs.entry(workload.jobs[file.job.unwrap() as usize].name.clone()).or_default().push(file);
        }
        jobs
    };
    let (waves, paced) = (files(Writers::Waves), files(Writers::Paced));
    let blocks = |files: &[FileWrite]| {
        let of = |file: &FileWrite| {
            let (full, rest) = (file.bytes.0 / file.block.0, file.bytes.0 % file.block.0);
            let full = std::iter::repeat_n(file.block.0, full as usize);
            full.chain((rest > 0).then_some(rest)).collect::<Vec<u64>>()
        };
        let mut blocks: Vec<u64> = files.iter().flat_map(of).collect();
        blocks.sort_unstable();
        blocks
    };
    let (mut jobs, mut whole) = (0, 0);
    for (name, files) in paced.iter().filter(|(_, files)| files[0].start > 0.0) {
        let seconds = |file: &FileWrite| file.bytes.0 as f64 / file.pace;
        for file in files {
            assert!(file.bytes <= file.block, "a writer has one block");
            assert_eq!(file.start, files[0].start, "the writers of {name} start together");
            // Blocks of jobs that take seconds are limited by a disk.
            let ratio = seconds(file) / seconds(&files[0]);
            assert!((ratio - 1.0).abs() < 1e-9 || seconds(file) < 5.4, "and end together");
        }
        // In waves, late writers of a job may start after the run.
        jobs += 1;
        whole += usize::from(waves.get(name).is_some_and(|same| blocks(same) == blocks(files)));
    }
    assert!(jobs > 100 && whole * 10 > jobs * 8, "{whole} of {jobs} jobs have the same blocks in waves");
}

#[test]
fn files_that_began_before_the_run_continue_if_writers_are_paced() {
    let cluster = tree(150, 20);
    let writing = |at: f64| {
        let of_seed = |seed| {
            let settings = Facebook { writers: Writers::Paced, ..Facebook::default() };
            let workload = settings.generate(&cluster, seed, 1801.0).unwrap().workload;
            let is_open =
                |file: &&FileWrite| file.start <= at && at < file.start + file.bytes.0 as f64 / file.pace;
            workload.files.iter().filter(is_open).count()
        };
        (0..8).map(of_seed).sum::<usize>() as f64
    };
    let (first, later) = (writing(0.0), writing(1800.0));
    assert!((first / later - 1.0).abs() < 0.4, "{first} files at the start, {later} after half an hour");
}
