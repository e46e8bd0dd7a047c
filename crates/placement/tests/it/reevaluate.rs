//! Re-evaluation of running apps: the conditions for a move, and the constraints it keeps.

use std::collections::BTreeMap;

use crate::support::{NOW, World};
use leeward_fabric::{Bytes, Cpus, HostId, Load, Nanos};
use leeward_ledger::{Demand, Entry, Fade, Owner, OwnerKind, Scratch, Sign, Transaction};
use leeward_placement::tasks::{self, Alternative, AppRequest, Task, Transfer, Worth, reevaluate};
use leeward_placement::{Context, Explain, JobId, Refusal};
use proptest::prelude::*;

const APP: u64 = 3;

/// An app of tasks, each with thousandths of a processor and MB of memory, and a matrix in MB.
fn app(tasks: &[(u64, u64)], transfers: &[(u32, u32, u64)]) -> AppRequest {
    let task = |&(cpus, mb)| Task { cpus: Cpus(cpus), memory: Bytes(mb * 1_000_000), ..Task::default() };
    let transfer = |&(from, to, mb)| Transfer { from, to, bytes: Bytes(mb * 1_000_000), phase: 0 };
    AppRequest {
        id: APP,
        tasks: tasks.iter().map(task).collect(),
        transfers: transfers.iter().map(transfer).collect(),
        ..AppRequest::default()
    }
}

fn decide(
    world: &World,
    policy: &str,
    left: &AppRequest,
    hosts: &[HostId],
    pause: Nanos,
) -> Result<Alternative, Refusal> {
    let policy = tasks::REGISTRY.make(policy, "").expect("a policy of the registry");
    let mut scratch = Scratch::default();
    let view = &mut world.ledger.view(NOW, &mut scratch);
    let mut context = Context { view, pool: &world.pool, seed: 7, explain: Explain::Off };
    reevaluate(policy.as_ref(), left, hosts, &Worth { pause, ..Worth::default() }, &mut context)
}

fn hose(cpus: u64) -> World {
    World::new(&format!("shape: hose\nhosts: 4\nnic: {{up: 800Mbps, down: 100Gbps}}\ncpus: {cpus}\n"))
}

/// Sets the capacity of a host's outbound link in the ledger.
fn set_egress_capacity(world: &mut World, host: u32, mbps: i64) {
    let link = world.fabric.egress(HostId(host)).expect("a hose has it");
    world.ledger.set_capacity(link, Load(mbps * 1_000_000), NOW);
}

#[test]
fn an_app_moves_if_the_gain_exceeds_memory_pause_and_margin() {
    let mut world = hose(1);
    (0..3).for_each(|host| set_egress_capacity(&mut world, host, 400));
    let hosts = [HostId(0), HostId(1)];
    // 1 GB at 50 MB/s takes 20 s, and at 100 MB/s 10 s; a memory of 200 MB takes 4 s.
    let left = app(&[(1000, 200), (1000, 200)], &[(0, 1, 1000)]);
    let moves = decide(&world, "choreo", &left, &hosts, Nanos::SECOND).expect("enough room");
    assert_eq!((moves.stays, moves.moves, moves.cost, moves.moved), (20.0, 10.0, 5.0, 1));
    assert_eq!(moves.decision.choice[0], HostId(3));
    assert!(moves.is_worth(0.1) && moves.is_worth(0.24) && !moves.is_worth(0.25) && !moves.is_worth(1.0));
    let long = decide(&world, "choreo", &left, &hosts, Nanos(6_000_000_000)).expect("enough room");
    assert!(!long.is_worth(0.0), "a pause of six seconds uses up the gain");
}

#[test]
fn reevaluation_uses_the_model_of_the_policy() {
    let world = World::new("shape: hose\nhosts: 4\nnic: {up: 800Mbps, down: 100Mbps}\ncpus: 1\n");
    let left = app(&[(1000, 0), (1000, 0)], &[(0, 1, 1000)]);
    for (settings, seconds) in [("", 10.0), ("into_hosts: true", 80.0)] {
        let policy = tasks::REGISTRY.make("choreo-exact", settings).expect("a policy of the registry");
        let mut scratch = Scratch::default();
        let view = &mut world.ledger.view(NOW, &mut scratch);
        let mut context = Context { view, pool: &world.pool, seed: 7, explain: Explain::Off };
        let alternative =
            reevaluate(policy.as_ref(), &left, &[HostId(0), HostId(1)], &Worth::default(), &mut context);
        assert!((alternative.expect("enough room").stays - seconds).abs() < 1e-6, "{settings}");
    }
}

#[test]
fn the_load_of_an_app_does_not_count_against_itself() {
    let mut world = hose(1);
    let mut hops = Vec::new();
    let [from, to] = [HostId(0), HostId(1)];
    world.fabric.path(&[from, to].map(leeward_fabric::Endpoint::Host), &mut hops);
    let demand = Demand::Elastic { bytes: Bytes(1 << 30), flows: 9, cap_bps: None };
    let owner = Owner { kind: OwnerKind::App, id: APP };
    let entry = Entry { owner, hops, demand, sign: Sign::Adds, fade: Fade::WithEstimator, starts: Some(NOW) };
    world
        .ledger
        .commit(Transaction { add: vec![entry], ..Transaction::default() }, NOW)
        .expect("the transaction commits");
    let left = app(&[(1000, 0), (1000, 0)], &[(0, 1, 1000)]);
    let stays = decide(&world, "choreo", &left, &[from, to], Nanos(0)).expect("enough room");
    assert_eq!(stays.stays, 10.0, "the app's own nine flows do not count as other flows");
    assert!(!stays.is_worth(0.0));
}

#[test]
fn an_app_on_a_dead_link_moves_if_its_memory_can_leave() {
    let mut world = hose(1);
    set_egress_capacity(&mut world, 0, 0);
    let hosts = [HostId(0), HostId(1)];
    let light = app(&[(1000, 0), (1000, 0)], &[(0, 1, 100)]);
    let moves = decide(&world, "choreo", &light, &hosts, Nanos::SECOND).expect("enough room");
    assert_eq!((moves.stays, moves.cost), (f64::INFINITY, 1.0));
    assert!(moves.is_worth(0.1));
    let heavy = app(&[(1000, 1), (1000, 0)], &[(0, 1, 100)]);
    let stuck = decide(&world, "choreo", &heavy, &hosts, Nanos::SECOND).expect("enough room");
    assert_eq!(stuck.cost, f64::INFINITY);
    assert!(!stuck.is_worth(0.0));
}

#[test]
fn tasks_without_remaining_transfers_stay() {
    let mut world = hose(2);
    set_egress_capacity(&mut world, 0, 80);
    let left = app(&[(2000, 0), (2000, 0), (1000, 0), (1000, 0)], &[(0, 1, 1000)]);
    let hosts = [HostId(0), HostId(1), HostId(2), HostId(2)];
    // One policy without load information, and two with it.
    for policy in ["random", "choreo", "leeward"] {
        let moves = decide(&world, policy, &left, &hosts, Nanos(0)).expect("enough room");
        let next = &moves.decision.choice;
        let busy = [next[0], next[1]];
        let stay = next[2..] == hosts[2..];
        assert!(stay || busy.contains(&HostId(2)), "{policy}: {next:?}");
    }
}

fn hosts(count: usize) -> impl Strategy<Value = Vec<HostId>> {
    prop::collection::vec((0_u32..6).prop_map(HostId), count)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_move_respects_room_and_constraints_and_is_predicted_faster(
        shape in 0_usize..3, needs in prop::collection::vec((0_u64..2000, 0_u64..2000), 5), now in hosts(5),
        transfers in prop::collection::btree_map((0_u32..5, 0_u32..5), 1_u64..3000, 0..8),
        slow in prop::collection::btree_map(0_u32..6, 0_u64..1000, 0..6), occupied in hosts(3),
        down in prop::option::of(0_u32..6), draining in prop::option::of(0_u32..6), excluded in prop::option::of(0_u32..6),
        // The exact program takes too long for this number of cases.
        policy in prop::sample::select(
            tasks::REGISTRY.names().filter(|&name| name != "choreo-exact").collect::<Vec<_>>()
        ),
        margin in 0.0_f64..=1.0, pause in 0_u64..20,
    ) {
        let head = ["racks: 3\nhosts_per_rack: 2\nnic: 1Gbps\noversubscription: 2", "shape: hose\nracks: 3\nhosts_per_rack: 2\nnic: 1Gbps",
            "shape: pipe\nracks: 3\nhosts_per_rack: 2\npair: 1Gbps"][shape];
        let mut world = World::new(&format!("{head}\ncpus: 4\nmemory: 8GB\n"));
        for (&host, &mbps) in &slow {
            if let Some(link) = world.fabric.egress(HostId(host)) {
                world.ledger.set_capacity(link, Load(mbps as i64 * 1_000_000), NOW);
            }
        }
        for &host in &occupied {
            world.pool.occupy(host, JobId(99), Cpus(1000), Bytes(1_000_000_000));
        }
        down.into_iter().for_each(|host| world.pool.set_up(HostId(host), false));
        draining.into_iter().for_each(|host| world.pool.set_draining(HostId(host), true));
        let transfers: Vec<_> = transfers.into_iter().filter(|((f, t), _)| f != t).map(|((f, t), mb)| (f, t, mb)).collect();
        let mut left = app(&needs, &transfers);
        left.constraints.excluded_hosts.extend(excluded.map(HostId));
        let answer = decide(&world, policy, &left, &now, Nanos(pause * 1_000_000_000));
        let Ok(alternative) = answer else {
            // If a host has room for the whole app, it has room for each task that is left, wherever the others are. Only
            // policies that need the load of racks' links may refuse then. Links without capacity are a reason too.
            let (cpus, memory) = needs.iter().fold((0, 0), |sum, need| (sum.0 + need.0, sum.1 + need.1 * 1_000_000));
            let is_roomy = world.fabric.all_hosts().any(|host| {
                world.pool.is_up(host)
                    && !world.pool.is_draining(host)
                    && Some(host.0) != excluded
                    && world.pool.cpus_left(host).is_some_and(|left| left.0 >= cpus)
                    && world.pool.memory_left(host).is_some_and(|left| left.0 >= memory)
            });
            let has_rates = slow.values().all(|&mbps| mbps > 0);
            // Without transfers, `leeward` ranks racks on a tree as `utp` does.
            let as_utp = policy == "leeward" && transfers.is_empty() && shape == 0;
            let needs_loads = as_utp || ["utp", "utp-proactive"].contains(&policy);
            prop_assert!(!is_roomy || !has_rates || needs_loads, "{policy}");
            return Ok(());
        };
        prop_assert!(!alternative.stays.is_nan() && !alternative.moves.is_nan() && !alternative.cost.is_nan());
        prop_assert!(alternative.cost >= pause as f64);
        let next = &alternative.decision.choice;
        prop_assert_eq!(alternative.moved as usize, next.iter().zip(&now).filter(|(a, b)| a != b).count());
        if alternative.is_worth(margin) {
            prop_assert!(alternative.moves + alternative.cost < alternative.stays && alternative.moved > 0);
        }
        let mut taken: BTreeMap<HostId, (u64, u64)> = BTreeMap::new();
        for (task, &host) in left.tasks.iter().zip(next) {
            prop_assert!(world.pool.is_up(host) && !world.pool.is_draining(host) && Some(host.0) != excluded);
            let (cpus, memory) = taken.entry(host).or_default();
            (*cpus, *memory) = (*cpus + task.cpus.0, *memory + task.memory.0);
            prop_assert!(*cpus <= world.pool.cpus_left(host).map_or(u64::MAX, |cpus| cpus.0));
            prop_assert!(*memory <= world.pool.memory_left(host).map_or(u64::MAX, |memory| memory.0));
        }
        // The ledger entries belong to the app.
        for entry in &alternative.decision.change.add {
            prop_assert_eq!(entry.owner, Owner { kind: OwnerKind::App, id: APP });
        }
    }
}
