//! Hosts of tasks: those from which a task chooses, and those on which a task that failed runs again.

use std::collections::BTreeSet;

use leeward_fabric::{Cluster, DomainId, HostId};
use leeward_workloads::{Facebook, Factor, Faults, FileWrite, HostChoices, Share, Source};
use proptest::prelude::*;

use crate::support::tree;

const SEED: u64 = 3;

/// Returns a source of files, and its files.
fn files(cluster: &Cluster, down: f64) -> (Source, Vec<FileWrite>) {
    let factor = Factor::new(20.0).expect("a factor");
    let settings = Facebook { load: factor, down: Share::new(down).expect("a share"), ..Facebook::default() };
    let files = settings.generate(cluster, SEED, 600.0).expect("valid settings").workload.files;
    (Source::Facebook(settings), files)
}

fn draws(files: &[FileWrite]) -> Vec<Vec<HostId>> {
    files.iter().map(|file| file.choices.as_ref().expect("it chooses").draw(file.writer)).collect()
}

/// Lets the tasks of a source choose their hosts.
fn assign(files: &mut [FileWrite], count: u16, hosts: Vec<HostId>, seed: u64) {
    let choices = HostChoices::of_source(count, hosts, seed);
    files.iter_mut().zip(choices).for_each(|(file, choices)| file.choices = Some(choices));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_task_chooses_among_the_set_number_of_hosts_with_its_named_one(count in 2u16..40, seed in any::<u64>()) {
        let cluster = tree(6, 5);
        // The hosts of the last racks run no tasks, but may be named.
        let hosts: Vec<HostId> = cluster.fabric.all_hosts().take(20).collect();
        let (_, mut files) = files(&cluster, 0.0);
        assign(&mut files, count, hosts.clone(), seed);
        for (file, drawn) in files.iter().zip(draws(&files)) {
            let named_runs_tasks = hosts.contains(&file.writer);
            let most = hosts.len() + usize::from(!named_runs_tasks);
            let different: BTreeSet<HostId> = drawn.iter().copied().collect();
            prop_assert_eq!((drawn.len(), different.len()), (usize::from(count).min(most), drawn.len()));
            prop_assert!(drawn.contains(&file.writer));
            prop_assert!(drawn.iter().all(|host| *host == file.writer || hosts.contains(host)));
        }
        // The choices of a file depend on its position and the seed alone.
        let mut first = files[..files.len() / 2].to_vec();
        assign(&mut first, count, hosts, seed);
        let (whole, part) = (draws(&files), draws(&first));
        prop_assert_eq!(&part[..], &whole[..part.len()]);
    }
}

#[test]
fn all_other_hosts_are_drawn_equally_often() {
    let cluster = tree(2, 4);
    let (_, files) = files(&cluster, 0.0);
    let named = FileWrite { writer: HostId(2), ..files[0].clone() };
    let mut files = vec![named; 7_000];
    assign(&mut files, 3, cluster.fabric.all_hosts().collect(), SEED);
    let mut counts = [0; 8];
    draws(&files).into_iter().flatten().for_each(|host| counts[host.index()] += 1);
    // Two of seven others: 2,000 of 7,000 draws each, with a standard deviation of 38.
    for (host, count) in counts.into_iter().enumerate() {
        let is_expected = if host == 2 { count == 7_000 } else { (1_850..2_150).contains(&count) };
        assert!(is_expected, "{counts:?}");
    }
}

#[test]
fn no_attempt_of_a_task_is_in_a_rack_that_was_down() {
    let cluster = tree(6, 5);
    let (source, mut files) = files(&cluster, 0.5);
    let hosts = source.task_hosts(&cluster, SEED).expect("valid settings");
    let racks: BTreeSet<DomainId> = hosts.iter().map(|&host| cluster.fabric.rack_of(host)).collect();
    assert_eq!((hosts.len(), racks.len()), (15, 3));
    let faults = Faults { failures: Share::new(1.0).expect("a share"), ..Faults::default() };
    faults.apply(&mut files, &hosts, SEED);
    assign(&mut files, 15, hosts.clone(), SEED);
    for (file, drawn) in files.iter().zip(draws(&files)) {
        assert!(hosts.contains(&file.writer) && hosts.contains(&file.failure.expect("it fails").host));
        assert_eq!(drawn, hosts);
    }
}

#[test]
fn a_share_of_racks_that_rounds_to_none_is_rejected() {
    let settings = Facebook { down: Share::new(0.05).expect("a share"), ..Facebook::default() };
    let error = settings.generate(&tree(6, 5), SEED, 600.0).expect_err("no rack is down");
    assert_eq!(error.to_string(), "facebook: down: 0.05: less than half a rack of 6; leave it out");
    let half = Facebook { down: Share::new(0.5).expect("a share"), ..Facebook::default() };
    let loaded = half.generate(&tree(6, 5), SEED, 600.0).expect("valid settings");
    assert!(loaded.provenance.contains("; 3 racks down; "), "{}", loaded.provenance);
}
