//! Answers of policies outside of the crate: what the checks reject, and how scores become hosts.

use leeward_fabric::{Bytes, Cpus, HostId};
use leeward_placement::replicas::{self, Layout, ReplicaRequest};
use leeward_placement::tasks::{self, AppRequest, Task};
use leeward_placement::{Apart, Constraint, Constraints, Refusal};
use leeward_testing::clusters::RACKS_WITH_SMALL_DISKS as SMALL;

use crate::support::{World, request};

/// Text of the check of an answer for a block, or `right`.
fn check(world: &World, request: &ReplicaRequest, hosts: &[u32]) -> String {
    let hosts: Vec<HostId> = hosts.iter().map(|&host| HostId(host)).collect();
    match replicas::check_answer(&world.pool, request, &hosts) {
        Ok(()) => "right".to_owned(),
        Err(error) => error.text(&world.fabric),
    }
}

#[test]
fn a_wrong_answer_for_a_block_is_named_by_position_and_reason() {
    let mut world = World::new(SMALL);
    world.pool.set_up(HostId(4), false);
    world.pool.set_stored(HostId(8), Bytes(1 << 30));
    let block = request(1, 0);
    let excluded = Constraints { excluded_hosts: vec![HostId(12)], ..Constraints::default() };
    let excluding = ReplicaRequest { constraints: excluded, ..block.clone() };
    let stripe = ReplicaRequest { layout: Layout::Stripe { parity: 1 }, ..block.clone() };
    let rows = [
        (&block, vec![0, 12, 13], "right"),
        (&block, vec![0, 12], "2 hosts: expected 3"),
        (&block, vec![0], "1 host: expected 3"),
        (&block, vec![0, 12, 24], "position 2: expected a host from 0 to 23"),
        (&block, vec![0, 4, 12], "position 1: r1h0: the host is down"),
        (&block, vec![8, 0, 12], "position 0: r2h0: the block does not fit"),
        (&block, vec![0, 12, 12], "position 2: r3h0: it holds a copy already"),
        (&block, vec![0, 1, 2], "position 2: r0h2: it fails together with another copy"),
        (&excluding, vec![0, 12, 13], "position 1: r3h0: excluded by the request"),
        (&stripe, vec![0, 12, 13], "position 2: r3h1: it fails together with another copy"),
        (&stripe, vec![0, 12, 16], "right"),
    ];
    for (request, hosts, expected) in rows {
        assert_eq!(check(&world, request, &hosts), expected, "{hosts:?}");
    }
}

#[test]
fn scores_choose_the_best_hosts_that_keep_the_fault_domains() {
    let mut world = World::new(SMALL);
    world.pool.set_stored(HostId(23), Bytes(1 << 30));
    let scores: Vec<f64> = (0..24).map(f64::from).collect();
    let best = |request: &ReplicaRequest| {
        let hosts = replicas::best_by_scores(&world.pool, request, &scores, 7).expect("hosts are free");
        hosts.into_iter().map(|host| host.0).collect::<Vec<_>>()
    };
    // The writer keeps a copy, and host 23 is full.
    assert_eq!(best(&request(1, 3)), [3, 22, 21]);
    let without_writer = ReplicaRequest { writer: None, ..request(1, 3) };
    assert_eq!(best(&without_writer), [22, 21, 19], "the third copy is in another rack");
    let apart = ReplicaRequest { fault_domains: 2, ..without_writer.clone() };
    assert_eq!(best(&apart), [22, 19, 15]);
    let preferred = Constraints { preferred: vec![HostId(5)], ..Constraints::default() };
    assert_eq!(best(&ReplicaRequest { constraints: preferred, ..request(1, 3) }), [5, 22, 21]);
}

#[test]
fn scores_that_exclude_too_many_hosts_are_a_refusal() {
    let world = World::new(SMALL);
    let mut scores = vec![f64::NAN; 24];
    (scores[0], scores[9]) = (1.0, f64::NEG_INFINITY);
    let refused = replicas::best_by_scores(&world.pool, &request(1, 0), &scores, 7);
    assert_eq!(refused, Err(Refusal::NoCandidate { by_constraint: vec![(Constraint::Used, 1)] }));
    // A writer without a score keeps no copy.
    (scores[0], scores[5], scores[9], scores[10]) = (f64::NAN, 1.0, 0.5, 0.75);
    let chosen = replicas::best_by_scores(&world.pool, &request(1, 0), &scores, 7);
    assert_eq!(chosen, Ok(vec![HostId(5), HostId(10), HostId(9)]));
    let few = ReplicaRequest { fault_domains: 3, ..request(1, 0) };
    let refused = replicas::best_by_scores(&world.pool, &few, &[1.0; 24], 7);
    assert_eq!(refused, Err(Refusal::TooFewCopies { replicas: 3, fault_domains: 3 }));
    let outside = ReplicaRequest { writer: Some(HostId(24)), ..request(1, 0) };
    assert_eq!(replicas::check_request(&world.pool, &outside), Err(Refusal::UnknownWriter));
}

/// An app of tasks with these processors, of which no two share a host.
fn app(cpus: &[u64]) -> AppRequest {
    let task = |&cpus: &u64| Task { cpus: Cpus(1000 * cpus), ..Task::default() };
    let constraints = Constraints { apart: Some(Apart::Host), ..Constraints::default() };
    AppRequest { id: 1, tasks: cpus.iter().map(task).collect(), constraints, ..AppRequest::default() }
}

#[test]
fn a_wrong_answer_for_an_app_is_named_by_position_and_reason() {
    let world = World::new("racks: 2\nhosts_per_rack: 2\nnic: 1Gbps\noversubscription: 2\ncpus: 4\n");
    let rows = [
        (app(&[2, 2]), vec![0, 1], "right"),
        (app(&[2, 2]), vec![0], "1 host: expected 2"),
        (app(&[2, 2]), vec![0, 4], "position 1: expected a host from 0 to 3"),
        (app(&[2, 2]), vec![3, 3], "position 1: r1h1: a task from which it must stay apart is there"),
        (app(&[2, 5]), vec![0, 1], "position 1: r0h1: too few processors are left"),
    ];
    for (request, hosts, expected) in rows {
        let chosen: Vec<HostId> = hosts.iter().map(|&host| HostId(host)).collect();
        let checked = tasks::check_answer(&world.pool, &request, &chosen);
        let text = checked.map_or_else(|error| error.text(&world.fabric), |()| "right".to_owned());
        assert_eq!(text, expected, "{hosts:?}");
    }
}

#[test]
fn scores_of_an_app_are_one_row_or_one_row_for_each_task() {
    let world = World::new("racks: 2\nhosts_per_rack: 2\nnic: 1Gbps\noversubscription: 2\ncpus: 4\n");
    let best = |scores: &[f64]| {
        let hosts = tasks::best_by_scores(&world.pool, &app(&[2, 3]), scores, 7);
        hosts.map(|hosts| hosts.into_iter().map(|host| host.0).collect::<Vec<_>>())
    };
    assert_eq!(best(&[0.0, 3.0, 1.0, 2.0]), Ok(vec![1, 3]), "the second task may not join the first");
    assert_eq!(best(&[0.0, 3.0, 1.0, 2.0, 9.0, 0.0, 0.0, 0.0]), Ok(vec![1, 0]));
    let refused = best(&[f64::NAN, 1.0, f64::NAN, f64::NAN]).expect_err("one host is left for two tasks");
    assert!(matches!(refused, Refusal::NoHost { task: 1, alone: false, .. }), "{refused:?}");
}

#[test]
fn eligible_hosts_are_those_that_the_checks_accept() {
    let mut world = World::new(SMALL);
    world.pool.set_up(HostId(4), false);
    world.pool.set_stored(HostId(8), Bytes(1 << 30));
    let existing = Constraints { existing: vec![HostId(2)], ..Constraints::default() };
    let request = ReplicaRequest { constraints: existing, ..request(1, 0) };
    let refused = |mask: Vec<bool>| (0..24).filter(|&host| !mask[host]).collect::<Vec<_>>();
    assert_eq!(refused(replicas::eligible(&world.pool, &request)), [2, 4, 8]);
    assert_eq!(refused(tasks::eligible(&world.pool, &app(&[1]), 0)), [4]);
}
