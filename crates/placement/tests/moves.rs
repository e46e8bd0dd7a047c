//! Which tasks leave hot racks: what holds on random cells, and each reason to stay.

mod world;

use leeward_fabric::{Bytes, Cpus, DomainId, HostId, ResourceId};
use leeward_ledger::Scratch;
use leeward_placement::moves::{self, Budget, MoveRequest, Moves, Running, Stays};
use leeward_placement::tasks::{Task, TaskId, Traffic};
use leeward_placement::{Context, Explain};
use proptest::prelude::*;
use world::{NOW, World};

const MBPS: u64 = 1_000_000;

/// Racks with four hosts of 8 processors and links of 1 Gb/s.
fn cell(racks: u32) -> World {
    World::new(&format!("racks: {racks}\nhosts_per_rack: 4\nnic: 1Gbps\nrack_link: 1Gbps\ncpus: 8\n"))
}

/// A task of one processor that sends so much, all the time.
fn task(number: u64, host: u32, mbps: u64) -> Running {
    let mut demand = Task { cpus: Cpus(1000), tolerant: true, ..Task::default() };
    demand.egress[0] = Traffic { mean_bps: mbps * MBPS, peak_bps: mbps * MBPS };
    let egress_bps = mbps * MBPS;
    Running {
        task: TaskId { app: number, index: 0 },
        host: HostId(host),
        job: 0,
        demand,
        egress_bps,
        ingress_bps: 0,
        tags: 0,
        cooling: false,
    }
}

/// A cell that carries what its tasks send, with these moves left to their one job.
fn running(mut world: World, tasks: &[Running], moves: u32) -> (World, MoveRequest) {
    let mut sent = vec![0; world.fabric.rack_count()];
    for task in tasks {
        world.pool.occupy(task.host, 5, task.demand.cpus, Bytes(0));
        sent[world.fabric.rack_of(task.host).index()] += task.egress_bps;
    }
    let uplinks: Vec<ResourceId> =
        world.fabric.all_racks().filter_map(|rack| world.fabric.out_of_domain(rack)).collect();
    world.report(|resource| {
        let rack = uplinks.iter().position(|&link| link == resource);
        rack.map_or(0.0, |rack| sent[rack] as f64 / 1e9)
    });
    let budgets = vec![Budget { job: 5, moves }];
    (world, MoveRequest { id: 1, running: tasks.to_vec(), budgets })
}

fn decide(world: &World, settings: &str, request: &MoveRequest) -> Moves {
    let policy = moves::make("utp", settings).expect("a policy of the registry");
    let mut scratch = Scratch::default();
    let view = &mut world.ledger.view(NOW, &mut scratch);
    let mut context = Context { view, pool: &world.pool, seed: 7, explain: Explain::Off };
    policy
        .place(std::slice::from_ref(request), &mut context)
        .remove(0)
        .expect("moves are never refused")
        .choice
}

/// What each rack sends after the moves, in Mb/s.
fn after(world: &World, request: &MoveRequest, moves: &Moves) -> Vec<u64> {
    let mut sent = vec![0; world.fabric.rack_count()];
    for (at, task) in (0..).zip(&request.running) {
        let moved = moves.moves.iter().find(|one| one.at == at);
        let host = moved.map_or(task.host, |one| one.to);
        sent[world.fabric.rack_of(host).index()] += task.egress_bps / MBPS;
    }
    sent
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn no_rack_becomes_hot_and_no_budget_is_overdrawn(
        tasks in prop::collection::vec((0_u32..24, 1_u64..500, any::<bool>(), any::<bool>()), 1..40),
        budget in 0_u32..6,
    ) {
        let tasks: Vec<Running> = (0..).zip(&tasks).map(|(number, &(host, mbps, tolerant, cooling))| {
            let mut task = task(number, host, mbps);
            task.demand.tolerant = tolerant;
            Running { cooling, ..task }
        }).collect();
        let (world, request) = running(cell(6), &tasks, budget);
        let moves = decide(&world, "", &request);
        prop_assert_eq!(&moves, &decide(&world, "", &request));
        prop_assert!(moves.moves.len() <= budget as usize);
        let before = after(&world, &request, &Moves::default());
        for one in &moves.moves {
            let task = &request.running[one.at as usize];
            prop_assert!(task.demand.tolerant && !task.cooling);
            let rack = world.fabric.rack_of(task.host);
            prop_assert_eq!(world.fabric.out_of_domain(rack), Some(one.link));
            prop_assert!(before[rack.index()] > 750);
            prop_assert!(world.fabric.rack_of(one.to) != rack);
        }
        let mut moved: Vec<u32> = moves.moves.iter().map(|one| one.at).collect();
        moved.sort_unstable();
        moved.dedup();
        prop_assert_eq!(moved.len(), moves.moves.len(), "no task twice");
        for (before, after) in before.iter().zip(after(&world, &request, &moves)) {
            prop_assert!(after <= 700 || after <= *before);
        }
        for kept in &moves.kept {
            let rack = world.fabric.domain_of_link(kept.link).expect("a rack's link");
            prop_assert!(after(&world, &request, &moves)[rack.index()] > 750);
        }
    }
}

#[test]
fn the_largest_leaves_first_and_no_more_than_are_needed() {
    let tasks = [task(0, 0, 200), task(1, 1, 400), task(2, 2, 300)];
    let (world, request) = running(cell(3), &tasks, 9);
    let moves = decide(&world, "", &request);
    assert_eq!(moves.moves.iter().map(|one| one.at).collect::<Vec<_>>(), [1]);
    assert!(moves.kept.is_empty());
}

#[test]
fn what_stays_on_a_link_that_stays_hot_says_why() {
    let mut tasks = [task(0, 0, 100), task(1, 1, 200), task(2, 2, 300), task(3, 3, 350)];
    tasks[3].demand.tolerant = false;
    tasks[2].cooling = true;
    let (world, request) = running(cell(3), &tasks, 1);
    let moves = decide(&world, "", &request);
    assert_eq!(moves.moves.iter().map(|one| one.at).collect::<Vec<_>>(), [1]);
    let (world, request) = running(cell(3), &tasks, 0);
    let why: Vec<_> = decide(&world, "", &request).kept.iter().map(|kept| (kept.at, kept.why)).collect();
    let expected = [(3, Stays::Sensitive), (2, Stays::Cooling), (1, Stays::Budget), (0, Stays::Budget)];
    assert_eq!(why, expected);
    let everywhere: Vec<Running> = (0..12).map(|host| task(host.into(), host, 200)).collect();
    let (world, request) = running(cell(3), &everywhere, 9);
    let moves = decide(&world, "", &request);
    assert!(moves.moves.is_empty() && moves.kept.iter().all(|kept| kept.why == Stays::NoHost));
    assert_eq!(moves.kept.len(), 12);
}

#[test]
fn a_rack_that_was_hot_and_is_relieved_in_the_ledger_is_left_alone() {
    let tasks = [task(0, 0, 400), task(1, 1, 400)];
    let (mut world, request) = running(cell(2), &tasks, 9);
    let first = decide(&world, "", &request);
    assert_eq!(first.moves.len(), 1);
    // Committed, but telemetry does not show it yet.
    let policy = moves::make("utp", "").expect("a policy of the registry");
    let mut scratch = Scratch::default();
    let view = &mut world.ledger.view(NOW, &mut scratch);
    let mut context = Context { view, pool: &world.pool, seed: 7, explain: Explain::Off };
    let decision =
        policy.place(std::slice::from_ref(&request), &mut context).remove(0).expect("never refused");
    let mut change = decision.change;
    let rack = world.fabric.rack_of(HostId(0));
    assert_eq!(rack, DomainId(0));
    let relief = change.add.iter().map(|entry| {
        let mut relief = entry.clone();
        relief.sign = leeward_ledger::Sign::Relieves;
        let out = |domain| world.fabric.out_of_domain(domain).expect("a tree");
        for hop in relief.hops.iter_mut().filter(|hop| hop.resource == out(DomainId(1))) {
            hop.resource = out(rack);
        }
        relief
    });
    let relief: Vec<_> = relief.collect();
    change.add.extend(relief);
    world.ledger.commit(change, NOW).expect("best effort");
    let left = MoveRequest { running: vec![tasks[1 - first.moves[0].at as usize]], ..request };
    assert_eq!(decide(&world, "", &left), Moves::default());
}

#[test]
fn tasks_that_leave_in_one_round_share_the_room_there_is() {
    let mut world = cell(2);
    // Of the other rack one processor is left.
    for host in 4..8 {
        world.pool.occupy(HostId(host), 9, Cpus(if host == 4 { 7000 } else { 8000 }), Bytes(0));
    }
    let tasks: Vec<Running> = (0..10).map(|i| task(i, i as u32 % 4, 85)).collect();
    let (world, request) = running(world, &tasks, 9);
    let moves = decide(&world, "", &request);
    assert_eq!(moves.moves.iter().map(|one| one.to).collect::<Vec<_>>(), [HostId(4)]);
    assert!(moves.kept.iter().all(|kept| kept.why == Stays::NoHost), "{:?}", moves.kept);
}

#[test]
fn a_task_goes_only_to_hosts_with_its_tags() {
    let racks = "racks: [{count: 4}, {count: 1, tags: [fast]}]";
    let world = World::new(&format!("{racks}\nhosts_per_rack: 4\nnic: 1Gbps\nrack_link: 1Gbps\ncpus: 8\n"));
    let tags = world.fabric.tag_mask("fast").expect("a rack has it");
    let tasks: Vec<Running> = (0..4).map(|i| Running { tags, ..task(i, i as u32, 200) }).collect();
    let (world, request) = running(world, &tasks, 9);
    let moves = decide(&world, "", &request);
    assert_eq!(moves.moves.iter().map(|one| one.to.0 / 4).collect::<Vec<_>>(), [4]);
}
