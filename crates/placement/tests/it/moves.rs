//! Moves from hot racks: properties on random cells, and each reason to stay.

use crate::support::{NOW, World};
use leeward_fabric::{Bytes, Cpus, DomainId, HostId, Nanos, ResourceId};
use leeward_ledger::{Demand, Scratch};
use leeward_moves::{self as moves, Budget, Fleet, HotLoad, HotTest, MoveRequest, Moves, Running, Stays};
use leeward_placement::tasks::{self, Task, TaskId, Traffic};
use leeward_placement::{Constraints, Context, Explain, JobId};
use proptest::prelude::*;

const MBPS: u64 = 1_000_000;

/// Racks with four hosts of 8 processors and links of 1 Gb/s.
fn cell(racks: u32) -> World {
    World::new(&format!("racks: {racks}\nhosts_per_rack: 4\nnic: 1Gbps\nrack_link: 1Gbps\ncpus: 8\n"))
}

/// A task of one processor with constant outbound traffic.
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
        constraints: None,
        cooling: false,
    }
}

/// Runs tasks of one job in a cell, and reports their traffic. Returns the cell, and a request in which the job has
/// `moves` moves left.
fn run_tasks(mut world: World, tasks: &[Running], moves: u32) -> (World, MoveRequest) {
    for task in tasks {
        world.pool.occupy(task.host, JobId(5), task.demand.cpus, Bytes(0));
    }
    let budgets = vec![Budget { job: JobId(5), moves }];
    let request = MoveRequest { id: 1, running: tasks.to_vec(), budgets, ..MoveRequest::default() };
    let carried = traffic_after(&world, &request, &Moves::default());
    let links: Vec<[ResourceId; 2]> = world.fabric.all_racks().map(|rack| links(&world, rack)).collect();
    world.report(|resource| {
        let both = links.iter().zip(&carried).flat_map(|(links, carried)| links.iter().zip(carried));
        both.filter(|(link, _)| **link == resource).map(|(_, &mbps)| mbps as f64 / 1e3).sum()
    });
    (world, request)
}

fn decide(world: &World, settings: &str, request: &MoveRequest) -> Moves {
    let policy = moves::REGISTRY.make("utp", settings).expect("a policy of the registry");
    let mut scratch = Scratch::default();
    let view = &mut world.ledger.view(NOW, &mut scratch);
    let mut context = Context { view, pool: &world.pool, seed: 7, explain: Explain::Off };
    policy
        .place(std::slice::from_ref(request), &mut context)
        .remove(0)
        .expect("moves are never refused")
        .choice
}

/// Links out of a rack and into it.
fn links(world: &World, rack: DomainId) -> [ResourceId; 2] {
    let links = [world.fabric.out_of_domain(rack), world.fabric.into_domain(rack)];
    links.map(|link| link.expect("a tree"))
}

/// Measured traffic of each rack after the moves, in Mb/s.
fn traffic_after(world: &World, request: &MoveRequest, moves: &Moves) -> Vec<[u64; 2]> {
    let mut carried = vec![[0; 2]; world.fabric.rack_count()];
    for (at, task) in (0..).zip(&request.running) {
        let moved = moves.moves.iter().find(|planned| planned.at == at);
        let host = moved.map_or(task.host, |planned| planned.to);
        let [sent, received] = &mut carried[world.fabric.rack_of(host).index()];
        *sent += task.egress_bps / MBPS;
        *received += task.ingress_bps / MBPS;
    }
    carried
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn moves_never_heat_a_rack_or_exceed_a_budget(
        tasks in prop::collection::vec(
            (0_u32..24, 1_u64..500, any::<bool>(), any::<bool>(), 0_u64..500, 0_u64..300), 1..40,
        ),
        budget in 0_u32..6,
    ) {
        let drawn = (0..).zip(&tasks).map(|(number, &(host, stated, tolerant, cooling, sent, received))| {
            let mut task = task(number, host, stated);
            task.demand.tolerant = tolerant;
            Running { cooling, egress_bps: sent * MBPS, ingress_bps: received * MBPS, ..task }
        });
        let tasks: Vec<Running> = drawn.collect();
        let (world, request) = run_tasks(cell(6), &tasks, budget);
        let moves = decide(&world, "", &request);
        prop_assert_eq!(&moves, &decide(&world, "", &request));
        prop_assert!(moves.moves.len() <= budget as usize);
        let before = traffic_after(&world, &request, &Moves::default());
        let now = traffic_after(&world, &request, &moves);
        for planned in &moves.moves {
            let task = &request.running[planned.at as usize];
            prop_assert!(task.demand.tolerant && !task.cooling);
            let rack = world.fabric.rack_of(task.host);
            let side = links(&world, rack).iter().position(|&link| link == planned.link);
            prop_assert!(before[rack.index()][side.expect("a link of its rack")] > 750);
            let to = world.fabric.rack_of(planned.to);
            prop_assert!(to != rack);
            prop_assert!(now[to.index()].iter().all(|&mbps| mbps <= 700), "{:?}", now);
        }
        let mut moved: Vec<u32> = moves.moves.iter().map(|planned| planned.at).collect();
        moved.sort_unstable();
        moved.dedup();
        prop_assert_eq!(moved.len(), moves.moves.len(), "no task twice");
        for (before, now) in before.iter().flatten().zip(now.iter().flatten()) {
            prop_assert!(*now <= 700 || now <= before);
        }
        for kept in &moves.kept {
            let rack = world.fabric.domain_of_link(kept.link).expect("a rack's link");
            let side = links(&world, rack).iter().position(|&link| link == kept.link);
            prop_assert!(now[rack.index()][side.expect("a link of its rack")] > 750);
        }
    }
}

#[test]
fn a_task_above_its_stated_rate_moves_only_where_its_real_rate_fits() {
    let mut tasks = vec![task(0, 0, 1), task(1, 1, 300), task(2, 4, 300)];
    tasks[0].egress_bps = 600 * MBPS;
    let (world, request) = run_tasks(cell(2), &tasks, 9);
    let moves = decide(&world, "", &request);
    // 600 Mb/s would bring the other rack to 90 %, 300 Mb/s to 60 %.
    assert_eq!(moves.moves.iter().map(|planned| planned.at).collect::<Vec<_>>(), [1]);
    let policy = moves::REGISTRY.make("utp", "").expect("a policy of the registry");
    let (world, request) = run_tasks(cell(3), &tasks, 9);
    let mut scratch = Scratch::default();
    let view = &mut world.ledger.view(NOW, &mut scratch);
    let mut context = Context { view, pool: &world.pool, seed: 7, explain: Explain::Off };
    let decision =
        policy.place(std::slice::from_ref(&request), &mut context).remove(0).expect("never refused");
    assert_eq!(decision.choice.moves.iter().map(|planned| planned.at).collect::<Vec<_>>(), [0]);
    let measured = Demand::Stream { mean_bps: 600 * MBPS, peak_bps: 600 * MBPS };
    assert_eq!(decision.change.add.iter().map(|entry| entry.demand.clone()).collect::<Vec<_>>(), [measured]);
    assert_eq!(request.running[0].assumed_demand().entry_count(), 1);
    assert_eq!(decision.basis.oldest, Some(Nanos::SECOND));
}

#[test]
fn a_task_without_a_target_does_not_affect_another_rack() {
    let with = |number, host, sends, receives, cpus| {
        let mut task = task(number, host, sends);
        task.demand.ingress[0] = Traffic { mean_bps: receives * MBPS, peak_bps: receives * MBPS };
        task.demand.cpus = Cpus(cpus);
        Running { ingress_bps: receives * MBPS, ..task }
    };
    let mut world = cell(3);
    // Outside the first rack, no host has room for another large task.
    (4..12).for_each(|host| {
        world.pool.occupy(HostId(host), JobId(9), Cpus(if host == 4 { 4000 } else { 7000 }), Bytes(0))
    });
    let large = [with(0, 0, 250, 0, 4000), with(4, 4, 250, 0, 4000)];
    let small = [with(1, 1, 240, 0, 1000), with(2, 2, 200, 400, 1000), with(3, 3, 190, 400, 1000)];
    let mut stays = with(5, 5, 510, 0, 1000);
    stays.demand.tolerant = false;
    let tasks = [large[0], small[0], small[1], small[2], large[1], stays];
    let (world, request) = run_tasks(world, &tasks, 9);
    let moves = decide(&world, "", &request);
    // The large task of the first rack finds no host. After small tasks have left the first rack, the large task of the
    // second rack moves there.
    let moved: Vec<(u32, u32)> = moves.moves.iter().map(|planned| (planned.at, planned.to.0 / 4)).collect();
    assert_eq!(moved, [(1, 2), (2, 2), (4, 0)]);
    assert!(moves.kept.is_empty(), "{:?}", moves.kept);
}

#[test]
fn tasks_stay_if_the_loads_of_all_other_racks_are_unknown() {
    let tasks: Vec<Running> = (0..4).map(|i| task(i, i as u32, 200)).collect();
    let (_, request) = run_tasks(cell(3), &tasks, 9);
    let mut world = cell(3);
    let [out, into] = links(&world, DomainId(0));
    world.report_some(|link| (link == out).then_some(0.8).or((link == into).then_some(0.0)));
    let moves = decide(&world, "", &request);
    assert!(moves.moves.is_empty());
    assert!(moves.kept.iter().all(|kept| kept.why == Stays::Unseen), "{:?}", moves.kept);
    assert_eq!(moves.kept.len(), 4);
}

#[test]
fn the_largest_task_moves_first_and_no_more_than_needed() {
    let tasks = [task(0, 0, 200), task(1, 1, 400), task(2, 2, 300)];
    let (world, request) = run_tasks(cell(3), &tasks, 9);
    let moves = decide(&world, "", &request);
    assert_eq!(moves.moves.iter().map(|planned| planned.at).collect::<Vec<_>>(), [1]);
    assert!(moves.kept.is_empty());
}

#[test]
fn tasks_that_stay_on_a_hot_link_have_a_reason() {
    let mut tasks = [task(0, 0, 100), task(1, 1, 200), task(2, 2, 300), task(3, 3, 350)];
    tasks[3].demand.tolerant = false;
    tasks[2].cooling = true;
    let (world, request) = run_tasks(cell(3), &tasks, 1);
    let moves = decide(&world, "", &request);
    assert_eq!(moves.moves.iter().map(|planned| planned.at).collect::<Vec<_>>(), [1]);
    let (world, request) = run_tasks(cell(3), &tasks, 0);
    let why: Vec<_> = decide(&world, "", &request).kept.iter().map(|kept| (kept.at, kept.why)).collect();
    let expected = [(3, Stays::Sensitive), (2, Stays::Cooling), (1, Stays::Budget), (0, Stays::Budget)];
    assert_eq!(why, expected);
    let everywhere: Vec<Running> = (0..12).map(|host| task(host.into(), host, 200)).collect();
    let (world, request) = run_tasks(cell(3), &everywhere, 9);
    let moves = decide(&world, "", &request);
    assert!(moves.moves.is_empty() && moves.kept.iter().all(|kept| kept.why == Stays::NoHost));
    assert_eq!(moves.kept.len(), 12);
}

#[test]
fn no_more_tasks_leave_a_hot_rack_that_the_ledger_already_relieves() {
    let tasks = [task(0, 0, 400), task(1, 1, 400)];
    let (mut world, request) = run_tasks(cell(2), &tasks, 9);
    let first = decide(&world, "", &request);
    assert_eq!(first.moves.len(), 1);
    // Commit the first move. Telemetry does not show it yet.
    let policy = moves::REGISTRY.make("utp", "").expect("a policy of the registry");
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
fn moves_of_one_round_share_the_free_capacity() {
    let mut world = cell(2);
    // The other rack has one processor left.
    for host in 4..8 {
        world.pool.occupy(HostId(host), JobId(9), Cpus(if host == 4 { 7000 } else { 8000 }), Bytes(0));
    }
    let tasks: Vec<Running> = (0..10).map(|i| task(i, i as u32 % 4, 85)).collect();
    let (world, request) = run_tasks(world, &tasks, 9);
    let moves = decide(&world, "", &request);
    assert_eq!(moves.moves.iter().map(|planned| planned.to).collect::<Vec<_>>(), [HostId(4)]);
    assert!(moves.kept.iter().all(|kept| kept.why == Stays::NoHost), "{:?}", moves.kept);
}

#[test]
fn a_task_moves_only_to_hosts_with_its_tags() {
    let racks = "racks: [{count: 4}, {count: 1, tags: [fast]}]";
    let world = World::new(&format!("{racks}\nhosts_per_rack: 4\nnic: 1Gbps\nrack_link: 1Gbps\ncpus: 8\n"));
    let tags = world.fabric.tag_mask("fast").expect("a rack has it");
    let tasks: Vec<Running> = (0..4).map(|i| Running { tags, ..task(i, i as u32, 200) }).collect();
    let (world, request) = run_tasks(world, &tasks, 9);
    let moves = decide(&world, "", &request);
    assert_eq!(moves.moves.iter().map(|planned| planned.to.0 / 4).collect::<Vec<_>>(), [4]);
}

#[test]
fn a_task_moves_with_the_hosts_that_its_request_excludes() {
    for (excluded, expected) in [(vec![1], Some(2)), (vec![2], Some(1)), (vec![1, 2], None)] {
        let constraints = Constraints {
            excluded_domains: excluded.into_iter().map(DomainId).collect(),
            ..Constraints::default()
        };
        assert_eq!(Stays::bound(&constraints), None);
        let tasks: Vec<Running> =
            (0..4).map(|i| Running { constraints: Some(0), ..task(i, i as u32, 200) }).collect();
        let (world, mut request) = run_tasks(cell(3), &tasks, 9);
        request.constraints = vec![constraints.into()];
        let moves = decide(&world, "", &request);
        let racks: Vec<u32> = moves.moves.iter().map(|planned| planned.to.0 / 4).collect();
        assert_eq!(racks, Vec::from_iter(expected));
        assert!(expected.is_some() || moves.kept.iter().all(|kept| kept.why == Stays::NoHost));
    }
}

#[test]
fn a_file_of_running_tasks_names_excluded_racks() {
    let world = cell(3);
    let read = |exclude: &str| {
        let task = "{name: t0, egress: {mean: 900Mbps}, tolerant: true}";
        let text = format!("tasks: [{{host: r0h0, exclude: [{exclude}], task: {task}}}]\n");
        Fleet::from_text("running.yaml", &text, &world.fabric)
    };
    let fleet = read("r1, r2h0").expect("a valid file");
    assert_eq!(fleet.request.running[0].constraints, Some(0));
    assert_eq!(fleet.request.constraints[0].excluded_domains, [DomainId(1)]);
    assert_eq!(fleet.request.constraints[0].excluded_hosts, [HostId(8)]);
    assert_eq!(read("").expect("a valid file").request.running[0].constraints, None);
    let error = read("r9").expect_err("no such rack");
    assert_eq!(error.field.as_deref(), Some("tasks[0].exclude"));
}

#[test]
fn a_link_is_hot_at_the_first_window_by_its_mean_and_later_by_the_estimate() {
    let tasks: Vec<Running> = (0..4).map(|i| task(i, i as u32, 225)).collect();
    let (mut world, mut request) = run_tasks(cell(3), &[], 9);
    request.running = tasks;
    let hot = world.fabric.out_of_domain(DomainId(0));
    let mut count = |seconds: u64, windows: u32, load: HotLoad| {
        let at = |seconds: u64| Nanos(seconds * Nanos::SECOND.0);
        let share = |resource| Some(if Some(resource) == hot { 0.9 } else { 0.1 });
        world.report_at(at(seconds), (at(seconds - 1), at(seconds)), share);
        request.test = HotTest { load, windows };
        let policy = moves::REGISTRY.make("utp", "").expect("a policy of the registry");
        let mut scratch = Scratch::default();
        let view = &mut world.ledger.view(at(seconds), &mut scratch);
        let mut context = Context { view, pool: &world.pool, seed: 7, explain: Explain::Off };
        policy.place_one(&request, &mut context).expect("moves are never refused").choice.moves.len()
    };
    // 900 Mb/s less a task of 225 are 675.
    assert_eq!(count(2, 1, HotLoad::Window), 1, "the first hot window");
    assert_eq!(count(3, 3, HotLoad::Window), 0, "the second of three");
    assert_eq!(count(4, 3, HotLoad::Window), 1);
    // 0.9 (1 - 0.8^n) exceeds 0.75 for the first time at n = 9; three windows have passed.
    let by_estimate: Vec<usize> = (5..=10).map(|second| count(second, 1, HotLoad::Estimate)).collect();
    assert_eq!(by_estimate, [0, 0, 0, 0, 0, 1]);
}

#[test]
fn each_task_policy_names_a_registered_move_policy() {
    let mut named = 0;
    for registration in tasks::REGISTRY {
        let policy = tasks::REGISTRY.make(registration.name, "").expect("a policy of the registry");
        let Some(name) = policy.move_policy() else { continue };
        assert!(moves::REGISTRY.names().any(|known| known == name), "{}: {name}", registration.name);
        named += 1;
    }
    assert!(named > 0);
}
