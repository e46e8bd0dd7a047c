//! The engine from the outside: inputs with times in, answers out.

use leeward_engine::{CommittedDecision, Engine, Input, Output, Ruling};
use leeward_fabric::{Bytes, HostId, Load, Nanos, ResourceId};
use leeward_ledger::Sample;
use leeward_placement::replicas::{self, Chain, Layout, ReplicaRequest};
use leeward_placement::{Constraints, Explain, Refusal};
use leeward_testing::clusters::{cluster, ledger, racks_of_four};
use proptest::prelude::*;

const BLOCK: Bytes = Bytes(256 << 20);
const SECOND: Nanos = Nanos::SECOND;

fn engine(racks: u32, devices: &str, policy: &str, settings: &str) -> Engine {
    let ledger = ledger(&cluster(&racks_of_four(racks, devices)));
    let policy = replicas::REGISTRY.make(policy, settings).expect("a policy of the registry");
    Engine::new(ledger, policy, 7, Explain::Off)
}

fn idle(engine: &Engine, until: Nanos) -> Vec<Sample> {
    let window = (Nanos(until.0 - SECOND.0), until);
    let resources = 0..engine.ledger().fabric().resource_count() as u32;
    let sample = |r| Sample { resource: ResourceId(r), window, load: Load(0), guaranteed: None };
    resources.map(sample).collect()
}

fn block(id: u64) -> ReplicaRequest {
    ReplicaRequest {
        id,
        file: id,
        writer: Some(HostId(0)),
        size: BLOCK,
        replicas: 3,
        layout: Layout::Chain,
        blocks_left: 1,
        job: None,
        fault_domains: 1,
        constraints: Constraints::default(),
    }
}

fn report(engine: &mut Engine, at: Nanos, out: &mut Vec<Output>) {
    let samples = idle(engine, at);
    engine.report(at, &samples, out);
}

/// Places a block. If the engine answers at once, the answer becomes the next output.
fn place(engine: &mut Engine, at: Nanos, request: ReplicaRequest, out: &mut Vec<Output>) {
    let (number, mut later) = (request.id, Vec::new());
    let answer = engine.place_replicas(at, number, request, Ruling::default(), &mut later);
    out.extend(answer.map(|answer| Output::ReplicasPlaced(number, answer)));
    out.append(&mut later);
}

fn answers(out: &[Output]) -> Vec<(u64, Result<CommittedDecision<Chain>, Refusal>)> {
    let answer = |output: &Output| match output {
        Output::ReplicasPlaced(id, answer) => Some((*id, answer.clone())),
        _ => None,
    };
    out.iter().filter_map(answer).collect()
}

const DISK: &str = "[{read: 50MB/s, write: 50MB/s}]";

#[test]
fn waiting_requests_are_answered_at_the_end_of_their_interval() {
    let mut engine = engine(6, DISK, "sinbad", "interval: 2s");
    let mut out = Vec::new();
    report(&mut engine, SECOND, &mut out);
    for (id, at) in [(1, 1_100), (2, 1_500), (3, 1_999)] {
        place(&mut engine, Nanos(at * 1_000_000), block(id), &mut out);
    }
    assert!(answers(&out).is_empty());
    let wake = out.iter().rev().find_map(|output| match output {
        Output::WakeAt(at) => Some(*at),
        _ => None,
    });
    assert!(wake.is_some_and(|at| at <= Nanos(2 * SECOND.0)), "{wake:?}");
    out.clear();
    engine.handle(Nanos(2 * SECOND.0), Input::Wake, &mut out);
    assert_eq!(answers(&out).iter().map(|answer| answer.0).collect::<Vec<_>>(), [1, 2, 3]);
    // A batch is decided jointly: no two blocks go to one rack while five are free.
    let rack = |chain: &Chain| chain[1].0 / 4;
    let mut racks: Vec<u32> =
        answers(&out).iter().map(|(_, a)| rack(&a.as_ref().unwrap().decision.choice)).collect();
    racks.sort();
    racks.dedup();
    assert_eq!(racks.len(), 3);
}

#[test]
fn a_batch_of_the_caller_is_decided_at_once_and_in_its_order() {
    // The same blocks wait under the policy, and are then decided together.
    let mut waiting = engine(6, DISK, "sinbad", "interval: 2s");
    let mut out = Vec::new();
    report(&mut waiting, SECOND, &mut out);
    (1..4).for_each(|id| place(&mut waiting, SECOND, block(id), &mut out));
    out.clear();
    report(&mut waiting, Nanos(2 * SECOND.0), &mut out);
    let mut at_once = engine(6, DISK, "sinbad", "interval: 2s");
    report(&mut at_once, SECOND, &mut Vec::new());
    report(&mut at_once, Nanos(2 * SECOND.0), &mut Vec::new());
    let placed = at_once.place_batch(Nanos(2 * SECOND.0), (1..4).map(block).collect(), &mut Vec::new());
    let hosts = |answer: &Result<CommittedDecision<Chain>, Refusal>| {
        answer.as_ref().expect("hosts are free").decision.choice.clone()
    };
    let expected: Vec<Chain> = answers(&out).iter().map(|(_, answer)| hosts(answer)).collect();
    assert_eq!(placed.iter().map(hosts).collect::<Vec<_>>(), expected);
    let many = at_once.place_batch(Nanos(2 * SECOND.0), Vec::new(), &mut Vec::new());
    assert!(many.is_empty());
}

#[test]
fn small_blocks_do_not_wait() {
    let mut engine = engine(6, DISK, "sinbad", "interval: 2s");
    let mut out = Vec::new();
    let small = ReplicaRequest { size: Bytes(1), ..block(1) };
    place(&mut engine, SECOND, small, &mut out);
    assert_eq!(answers(&out).len(), 1);
}

#[test]
fn a_batch_never_fills_a_host_beyond_its_room() {
    // A host has room for one and a half blocks.
    let devices = "[{read: 50MB/s, write: 50MB/s, capacity: 384MiB}]";
    let mut engine = engine(3, devices, "sinbad", "interval: 2s");
    let mut out = Vec::new();
    report(&mut engine, SECOND, &mut out);
    for id in 0..8 {
        place(&mut engine, SECOND, block(id), &mut out);
    }
    report(&mut engine, Nanos(2 * SECOND.0), &mut out);
    let answers = answers(&out);
    let placed: Vec<HostId> =
        answers.iter().filter_map(|(_, a)| a.as_ref().ok()).flat_map(|p| p.decision.choice.clone()).collect();
    for host in engine.pool().fabric().all_hosts() {
        let count = placed.iter().filter(|&&chosen| chosen == host).count();
        assert!(count <= 1, "{count} blocks on {host:?}");
        assert_eq!(engine.pool().stored(host), Bytes(count as u64 * BLOCK.0));
    }
    assert_eq!(answers.len(), 8);
    assert!(!placed.is_empty() && answers.iter().any(|(_, answer)| answer.is_err()), "room for four at most");
}

#[test]
fn drained_and_failed_hosts_get_no_copies() {
    let mut engine = engine(2, DISK, "uniform", "");
    let mut out = Vec::new();
    for host in 4..8 {
        let input =
            if host == 4 { Input::Health(HostId(host), false) } else { Input::Drain(HostId(host), true) };
        engine.handle(SECOND, input, &mut out);
    }
    place(&mut engine, SECOND, block(1), &mut out);
    let (_, refused) = answers(&out).remove(0);
    assert!(matches!(refused, Err(Refusal::NoCandidate { .. })), "no host of the other rack is left");
    engine.handle(SECOND, Input::Drain(HostId(5), false), &mut out);
    engine.handle(SECOND, Input::Drain(HostId(7), false), &mut out);
    place(&mut engine, SECOND, block(2), &mut out);
    let (_, placed) = answers(&out).remove(1);
    let mut hosts = placed.expect("two hosts are left").decision.choice;
    hosts.sort();
    assert_eq!(hosts, [HostId(0), HostId(5), HostId(7)]);
}

proptest! {
    #[test]
    fn simultaneous_requests_spread_as_sequential_ones(count in 1u64..60) {
        let spread = |together: bool| {
            let mut engine = engine(8, DISK, "sinbad", "");
            let mut out = Vec::new();
            report(&mut engine, SECOND, &mut out);
            for id in 0..count {
                let later = if together { 0 } else { id };
                place(&mut engine, Nanos(SECOND.0 + later), block(id), &mut out);
            }
            let mut racks = [0u32; 8];
            for (_, answer) in answers(&out) {
                racks[answer.expect("all is open").decision.choice[1].0 as usize / 4] += 1;
            }
            racks.sort();
            racks
        };
        prop_assert_eq!(spread(true), spread(false));
    }

    #[test]
    fn the_same_inputs_give_the_same_outputs(ids in prop::collection::vec(any::<u64>(), 1..20)) {
        let run = || {
            let mut engine = engine(5, DISK, "sinbad", "interval: 1s");
            let mut out = Vec::new();
            report(&mut engine, SECOND, &mut out);
            for (i, &id) in ids.iter().enumerate() {
                place(&mut engine, Nanos(SECOND.0 + i as u64 * 300_000_000), block(id), &mut out);
            }
            engine.handle(Nanos(10 * SECOND.0), Input::Wake, &mut out);
            out
        };
        prop_assert_eq!(run(), run());
    }
}
