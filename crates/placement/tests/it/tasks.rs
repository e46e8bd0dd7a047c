//! Task policies: properties on random clusters and apps, and results shown in the papers.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::support::{NOW, World};
use leeward_fabric::{Bytes, Cpus, HostId, Load, Nanos};
use leeward_ledger::Scratch;
use leeward_placement::tasks::{
    AppRequest, Assignment, Estimate, REGISTRY, Task, TaskPolicy, Traffic, Transfer, completion,
};
use leeward_placement::{Considered, Constraint, Decision, JobId, Refusal, Verdict};
use leeward_registry::Registration;
use proptest::prelude::*;

/// Policies that rank racks by their links. They place nothing on a mesh, which has no such links.
static PROACTIVE: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let mesh = World::new("shape: hose\nhosts: 4\nnic: 1Gbps\n");
    REGISTRY.names().filter(|name| mesh.assign(name, "", &sender(1)) == Err(Refusal::NoRackLinks)).collect()
});

/// An app of tasks, each with thousandths of a processor, and a matrix in MB.
fn app(cpus: &[u64], transfers: &[(u32, u32, u64)]) -> AppRequest {
    let task = |&cpus| Task { cpus: Cpus(cpus), ..Task::default() };
    let transfer = |&(from, to, mb)| Transfer { from, to, bytes: Bytes(mb * 1_000_000), phase: 0 };
    AppRequest {
        id: 3,
        tasks: cpus.iter().map(task).collect(),
        transfers: transfers.iter().map(transfer).collect(),
        ..AppRequest::default()
    }
}

/// A pipe mesh of hosts with `cpus` processors each, and the rate of each ordered pair in Mb/s.
fn pipe(hosts: usize, cpus: u64, rate: impl Fn(usize, usize) -> u64) -> World {
    let mut text = format!("shape: pipe\nhosts: {hosts}\ncpus: {cpus}\npairs:\n");
    for from in 0..hosts {
        for to in (0..hosts).filter(|&to| to != from) {
            text += &format!("  - {{from: h{from}, to: h{to}, rate: {}Mbps}}\n", rate(from, to));
        }
    }
    World::new(&text)
}

/// Choreo's figure 9: a ring of four machines, each with room for one task.
fn figure_9() -> (World, AppRequest) {
    // TL, TR, BL, BR. The diagonals are so slow here that no policy takes them.
    let rates = [[0, 1000, 10_000, 1], [1000, 0, 1, 8000], [10_000, 1, 0, 9000], [1, 8000, 9000, 0]];
    (pipe(4, 1, |from, to| rates[from][to]), app(&[1000; 4], &[(0, 1, 100), (0, 2, 50), (1, 3, 50)]))
}

/// Reference implementation of algorithm 1: examines every path of every transfer, in a fixed order of hosts.
fn reference(world: &World, app: &AppRequest, cpus: u64) -> Option<Assignment> {
    let hosts: Vec<HostId> = world.fabric.all_hosts().collect();
    let mut scratch = Scratch::default();
    let view = world.ledger.view(NOW, &mut scratch);
    let mut placed: BTreeMap<u32, HostId> = BTreeMap::new();
    let mut on_path: BTreeMap<(HostId, HostId), u64> = BTreeMap::new();
    let mut transfers = app.transfers.clone();
    transfers.sort_by_key(|transfer| (std::cmp::Reverse(transfer.bytes), transfer.from, transfer.to));
    for Transfer { from, to, .. } in transfers {
        let mut best: Option<(f64, HostId, HostId)> = None;
        for &m in hosts.iter().filter(|&&m| placed.get(&from).is_none_or(|&at| at == m)) {
            for &n in hosts.iter().filter(|&&n| placed.get(&to).is_none_or(|&at| at == n)) {
                let mut trial = placed.clone();
                trial.insert(from, m);
                trial.insert(to, n);
                let used = |host| {
                    let on = trial.iter().filter(|&(_, &at)| at == host);
                    on.map(|(&task, _)| app.tasks[task as usize].cpus.0).sum::<u64>()
                };
                if used(m) > cpus || used(n) > cpus {
                    continue;
                }
                let rate = match world.fabric.pair(m, n) {
                    None => f64::INFINITY,
                    Some(pair) => {
                        view.capacity(pair).0 as f64 / (1 + on_path.get(&(m, n)).copied().unwrap_or(0)) as f64
                    }
                };
                if best.is_none_or(|(most, ..)| rate > most) {
                    best = Some((rate, m, n));
                }
            }
        }
        let (_, m, n) = best?;
        placed.insert(from, m);
        placed.insert(to, n);
        *on_path.entry((m, n)).or_default() += 1;
    }
    for (task, needs) in (0..).zip(&app.tasks) {
        if !placed.contains_key(&task) {
            let used = |host: &HostId| {
                let on = placed.iter().filter(|&(_, at)| at == host);
                on.map(|(&task, _)| app.tasks[task as usize].cpus.0).sum::<u64>()
            };
            let host = hosts.iter().find(|host| used(host) + needs.cpus.0 <= cpus)?;
            placed.insert(task, *host);
        }
    }
    Some(placed.into_values().collect())
}

/// Random matrices in which each pair of tasks appears once.
fn transfers(tasks: u32) -> impl Strategy<Value = Vec<(u32, u32, u64)>> {
    let pairs = prop::collection::btree_map((0..tasks, 0..tasks), 0_u64..1000, 0..20);
    pairs.prop_map(|pairs| {
        pairs.into_iter().filter(|((from, to), _)| from != to).map(|((f, t), mb)| (f, t, mb)).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn greedy_is_algorithm_1_by_the_letter(
        cpus in prop::collection::vec(1_u64..=4, 2..7), rates in prop::collection::vec(1_u64..6, 30),
        transfers in transfers(6),
    ) {
        let world = pipe(6, 2, |from, to| rates[from * 5 + to - usize::from(to > from)]);
        let tasks = cpus.len() as u32;
        let transfers: Vec<_> = transfers.into_iter().filter(|&(f, t, mb)| f < tasks && t < tasks && mb > 0).collect();
        let cpus: Vec<u64> = cpus.iter().map(|halves| halves * 500).collect();
        let app = app(&cpus, &transfers);
        let ours = world.assign("choreo", "ties: lowest", &app);
        prop_assert_eq!(ours.ok(), reference(&world, &app, 2000));
    }

    #[test]
    fn every_policy_respects_room_and_constraints_and_is_deterministic(
        shape in 0_usize..3, cpus in prop::collection::vec(0_u64..3000, 1..9),
        memory in prop::collection::vec(0_u64..3, 9), transfers in transfers(8),
        down in prop::option::of(0_u32..6), draining in prop::option::of(0_u32..6),
        excluded in prop::option::of(0_u32..6), rack in prop::option::of(0_u32..3), occupied in 0_u64..4000,
    ) {
        let head = ["racks: 3\nhosts_per_rack: 2\nnic: 1Gbps\noversubscription: 2", "shape: hose\nracks: 3\nhosts_per_rack: 2\nnic: 1Gbps",
            "shape: pipe\nracks: 3\nhosts_per_rack: 2\npair: 1Gbps"][shape];
        let mut world = World::new(&format!("{head}\ncpus: 4\nmemory: 4GiB\n"));
        let tasks = cpus.len() as u32;
        let transfers: Vec<_> = transfers.into_iter().filter(|&(f, t, _)| f < tasks && t < tasks).collect();
        let mut app = app(&cpus, &transfers);
        for (task, gib) in app.tasks.iter_mut().zip(memory) {
            task.memory = Bytes(gib << 30);
        }
        app.constraints.excluded_hosts = excluded.map(HostId).into_iter().collect();
        app.constraints.excluded_domains = rack.map(leeward_fabric::DomainId).into_iter().collect();
        if let Some(host) = down {
            world.pool.set_up(HostId(host), false);
        }
        if let Some(host) = draining {
            world.pool.set_draining(HostId(host), true);
        }
        world.report(|_| 0.5);
        world.pool.occupy(HostId(1), JobId(9), Cpus(occupied), Bytes(1 << 30));
        let here = |one: &&Registration<dyn TaskPolicy>| shape == 0 || !PROACTIVE.contains(&one.name);
        for registration in REGISTRY.iter().filter(here) {
            let answer = world.assign(registration.name, "", &app);
            prop_assert_eq!(&answer, &world.assign(registration.name, "", &app), "{}", registration.name);
            let hosts = match answer {
                Ok(hosts) => hosts,
                Err(Refusal::NotTogether { .. }) if registration.name == "choreo-exact" => continue,
                Err(Refusal::NoHost { task, by_constraint, .. }) => {
                    let refused: u32 = by_constraint.iter().map(|(_, count)| count).sum();
                    prop_assert!(refused == 6 && task < tasks, "{}: {by_constraint:?}", registration.name);
                    continue;
                }
                Err(other) => return Err(TestCaseError::fail(format!("{}: {other}", registration.name))),
            };
            prop_assert_eq!(hosts.len(), app.tasks.len());
            for host in world.fabric.all_hosts() {
                let on = || app.tasks.iter().zip(&hosts).filter(|(_, at)| **at == host).map(|(task, _)| task);
                let taken = if host == HostId(1) { (occupied, 1 << 30) } else { (0, 0) };
                if on().next().is_some() {
                    prop_assert!(taken.0 + on().map(|task| task.cpus.0).sum::<u64>() <= 4000);
                    prop_assert!(taken.1 + on().map(|task| task.memory.0).sum::<u64>() <= 4 << 30);
                    prop_assert!(![down, draining, excluded].contains(&Some(host.0)));
                    prop_assert!(rack != Some(world.fabric.rack_of(host).0));
                }
            }
        }
    }

    #[test]
    fn leeward_is_never_slower_than_greedy(
        cpus in prop::collection::vec(1_u64..=4, 2..9), rates in prop::collection::vec(1_u64..6, 30),
        transfers in transfers(8),
    ) {
        let world = pipe(6, 2, |from, to| rates[from * 5 + to - usize::from(to > from)]);
        let tasks = cpus.len() as u32;
        let transfers: Vec<_> = transfers.into_iter().filter(|&(f, t, _)| f < tasks && t < tasks).collect();
        let cpus: Vec<u64> = cpus.iter().map(|halves| halves * 500).collect();
        let app = app(&cpus, &transfers);
        let (greedy, ours) = (world.assign("choreo", "", &app), world.assign("leeward", "", &app));
        prop_assert!(ours.is_ok() || greedy.is_err());
        if let (Ok(greedy), Ok(ours)) = (greedy, ours) {
            prop_assert!(world.seconds(&app, &ours) <= world.seconds(&app, &greedy) * (1.0 + 1e-9));
        }
    }
}

#[test]
fn figure_9_traps_greedy_and_not_leeward() {
    let (world, app) = figure_9();
    let greedy = world.assign("choreo", "", &app).expect("enough room");
    let ours = world.assign("leeward", "", &app).expect("enough room");
    // Bytes are in MB and rates in Mb/s. The figure's unit of time is therefore 8 s here, and a rate of 1 in the figure
    // is 1000.
    let units = |hosts: &[HostId]| world.seconds(&app, hosts) * 1000.0 / 8.0;
    assert!((units(&greedy) - 50.0).abs() < 1e-9, "the greedy policy must use the link of rate 1");
    assert!((units(&ours) - 100.0 / 9.0).abs() < 1e-9);
}

#[test]
fn a_refusal_counts_hosts_by_constraint() {
    let mut world = World::new("shape: hose\nhosts: 4\nnic: 1Gbps\ncpus: 2\nmemory: 4GiB\n");
    world.pool.set_up(HostId(0), false);
    world.pool.occupy(HostId(1), JobId(1), Cpus(0), Bytes(4 << 30));
    let mut app = app(&[2000, 1000, 1000, 1000], &[(0, 1, 5)]);
    app.tasks.iter_mut().for_each(|task| task.memory = Bytes(1 << 30));
    let refusal = world.assign("choreo", "", &app).expect_err("there are four processors for five");
    let counts = vec![(Constraint::Down, 1), (Constraint::Cpus, 2), (Constraint::Memory, 1)];
    assert_eq!(refusal, Refusal::NoHost { task: 3, alone: false, far_from: None, by_constraint: counts });
    assert_eq!(
        refusal.to_string(),
        "found no placement: task 3 has no host left: 1 host (the host is down), 2 hosts (too few processors are left), \
         1 host (too little memory is left)"
    );
}

#[test]
fn the_program_decides_feasibility_where_greedy_fails() {
    let world = World::new("shape: hose\nhosts: 2\nnic: 1Gbps\ncpus: 10\n");
    for transfers in [&[][..], &[(0, 1, 5), (2, 3, 7)]] {
        let app = app(&[6000, 5000, 3000, 2000, 2000, 2000], transfers);
        let decision = world.decide("choreo-exact", "", &app).expect("6 + 2 + 2 and 5 + 3 + 2");
        for host in world.fabric.all_hosts() {
            let on = app.tasks.iter().zip(&decision.choice).filter(|(_, at)| **at == host);
            assert_eq!(on.map(|(task, _)| task.cpus.0).sum::<u64>(), 10_000);
        }
        assert_eq!(decision.basis.gaps.map(|gaps| gaps.time), Some(0.0));
    }
    let greedy = world.assign("leeward", "", &app(&[6000, 5000, 3000, 2000, 2000, 2000], &[]));
    let greedy = greedy.expect_err("placing the largest first leaves gaps");
    assert!(greedy.to_string().starts_with("found no placement: task 5 has no host left"), "{greedy}");
    let none = world.assign("choreo-exact", "", &app(&[6000, 6000, 6000], &[]));
    assert_eq!(none, Err(Refusal::NotTogether { far: None }));
    let none =
        world.assign("choreo-exact", "", &app(&[6000, 11_000], &[])).expect_err("hosts have 10 processors");
    assert_eq!(none.to_string(), "task 1 fits nowhere: 2 hosts (too few processors are left)");
}

#[test]
fn with_dead_links_the_optimality_gap_is_infinite() {
    let mut world = World::new("shape: hose\nhosts: 2\nnic: 1Gbps\ncpus: 1\n");
    for host in world.fabric.all_hosts() {
        let link = world.fabric.egress(host).expect("a hose has it");
        world.ledger.set_capacity(link, Load(0), NOW);
    }
    let decision = world.decide("choreo-exact", "", &app(&[1000, 1000], &[(0, 1, 5)])).expect("enough room");
    assert_eq!(decision.basis.gaps.map(|gaps| gaps.time), Some(f64::INFINITY));
}

#[test]
fn a_decision_names_its_model_and_telemetry_windows() {
    let mut world = World::new("shape: hose\nhosts: 3\nnic: {up: 800Mbps, down: 100Mbps}\ncpus: 1\n");
    let app = app(&[1000, 1000], &[(0, 1, 100)]);
    world.report(|_| 0.0);
    // The policies with an estimate of completion.
    for policy in ["choreo", "leeward", "choreo-exact"] {
        for (settings, into_hosts, flows_only, seconds) in [
            ("", false, false, 1.0),
            ("into_hosts: true", true, false, 8.0),
            ("flows_only: true", false, true, 1.0),
        ] {
            let Decision { basis, choice, .. } = world.decide(policy, settings, &app).expect("enough room");
            let estimate = basis.estimate.expect("an estimate of the model");
            assert_eq!(estimate, Estimate { into_hosts, flows_only });
            let mut scratch = Scratch::default();
            let view = world.ledger.view(NOW, &mut scratch);
            assert!((completion(&view, &app.transfers, &choice, estimate).seconds - seconds).abs() < 1e-6);
            assert_eq!(basis.oldest, (!flows_only).then_some(Nanos::SECOND), "{policy} {settings}");
        }
    }
    let basis = world.decide("random", "", &app).expect("enough room").basis;
    assert_eq!((basis.estimate, basis.oldest), (None, None));
    let mut world = World::new("racks: 2\nhosts_per_rack: 2\nnic: 1Gbps\nrack_link: 1Gbps\ncpus: 2\n");
    world.report(|_| 0.2);
    let single = AppRequest { transfers: Vec::new(), ..app };
    for (policy, oldest) in [("borg", None), ("utp", Some(Nanos::SECOND)), ("leeward", Some(Nanos::SECOND))] {
        let basis = world.decide(policy, "", &single).expect("enough room").basis;
        assert_eq!((basis.oldest, basis.estimate), (oldest, None), "{policy}");
    }
}

#[test]
fn tasks_without_transfers_spread_over_hosts_by_request_id() {
    let world = World::new("shape: hose\nhosts: 50\nnic: 1Gbps\ncpus: 1\n");
    for registration in REGISTRY.iter().filter(|one| !PROACTIVE.contains(&one.name)) {
        let placed = |id| {
            let one = AppRequest { id, ..app(&[1000], &[]) };
            world.assign(registration.name, "", &one).expect("enough room")[0]
        };
        let mut hosts: Vec<HostId> = (0..40).map(placed).collect();
        hosts.sort();
        hosts.dedup();
        assert!(hosts.len() > 15, "{}: {hosts:?}", registration.name);
    }
}

/// A cell of racks with four hosts of 8 processors and uplinks of 1 Gb/s.
fn cell(racks: u32) -> World {
    World::new(&format!(
        "racks: {racks}\nhosts_per_rack: 4\nnic: 1Gbps\nrack_link: 1Gbps\ncpus: 8\nmemory: 32GiB\n"
    ))
}

/// One task of one processor with a peak rate.
fn sender(peak_mbps: u64) -> AppRequest {
    let mut app = app(&[1000], &[]);
    app.tasks[0].egress[0] = Traffic { mean_bps: peak_mbps * 500_000, peak_bps: peak_mbps * 1_000_000 };
    app
}

fn in_rack(considered: &Considered) -> u32 {
    considered.objectives.expect("the rack was considered").in_rack
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn utp_preserves_higher_ranks_and_picks_the_least_loaded_rack(
        loads in prop::collection::vec(0_u32..100, 12), there in prop::collection::vec(0_u32..24, 0..8),
        peak in 1_u64..500, spread in prop::sample::select(vec![0.0, 0.05, 0.3, 1.0]),
    ) {
        let mut world = cell(6);
        for &host in &there {
            world.pool.occupy(HostId(host), JobId(0), Cpus(1000), Bytes(0));
        }
        let fabric = world.fabric.clone();
        let first = fabric.out_of_domain(leeward_fabric::DomainId(0)).expect("a tree").0;
        let load = |resource: leeward_fabric::ResourceId| {
            resource.0.checked_sub(first).map_or(0.0, |at| f64::from(loads[at as usize % 12]) / 100.0)
        };
        world.report(load);
        let task = sender(peak);
        // Number of the job's tasks per step of spread, this one included.
        let step = (((there.len() + 1) as f64 * spread) as u32).max(1);
        let settings = format!("{{step: 0.001, spread: {spread}}}");
        for policy in PROACTIVE.iter() {
            let decision = world.decide(policy, &settings, &task).expect("enough room");
            let chosen = decision.why.iter().find(|one| one.verdict == Verdict::Chosen).expect("a choice");
            let least = decision.why.iter().map(in_rack).min().expect("hosts were considered") / step;
            prop_assert_eq!(in_rack(chosen) / step, least);
            let settings = format!("spread: {spread}");
            let borg = world.decide("borg", &settings, &task).expect("enough room");
            let of_borg = borg.why.iter().find(|one| one.verdict == Verdict::Chosen).expect("a choice");
            prop_assert_eq!(in_rack(of_borg) / step, least);
            // Recomputed from the reported loads.
            let busier = |rack: u32| {
                let up = f64::from(loads[2 * rack as usize]) / 100.0 + peak as f64 / 1000.0;
                up.max(f64::from(loads[2 * rack as usize + 1]) / 100.0)
            };
            let racks = (0..6).filter(|&rack| {
                there.iter().filter(|&&host| host / 4 == rack).count() as u32 / step == least
            });
            let best = racks.map(busier).fold(f64::INFINITY, f64::min);
            let ours = busier(fabric.rack_of(decision.choice[0]).0);
            prop_assert!(ours < best + 0.0011, "{ours} instead of {best}");
        }
    }
}

#[test]
fn utp_counts_placements_not_yet_in_telemetry() {
    let mut world = cell(2);
    world.report(|_| 0.0);
    let mut racks = Vec::new();
    for id in 0..6 {
        let task = AppRequest { id, job: JobId(id), ..sender(100) };
        let decision = world.decide("utp", "", &task).expect("enough room");
        racks.push(world.fabric.rack_of(decision.choice[0]).0);
        world.ledger.commit(decision.change, NOW).expect("best effort");
    }
    assert_eq!(racks.iter().filter(|&&rack| rack == 0).count(), 3, "{racks:?}");
}

#[test]
fn utp_refuses_without_telemetry_and_on_a_mesh() {
    let world = cell(2);
    assert_eq!(world.assign("utp", "", &sender(1)), Err(Refusal::NoTelemetry { newest: None }));
    assert!(PROACTIVE.contains(&"utp"));
}

#[test]
fn an_unseen_rack_is_not_chosen() {
    let mut world = cell(2);
    let hidden = world.fabric.out_of_domain(leeward_fabric::DomainId(0)).expect("a tree");
    world.report_some(|resource| {
        let silent = is_silent(resource, hidden);
        (!silent).then_some(0.9)
    });
    let decision = world.decide("utp", "", &sender(1)).expect("the load of the other rack is known");
    assert_eq!(world.fabric.rack_of(decision.choice[0]).0, 1);
    assert!(decision.why.iter().any(|one| one.verdict == Verdict::Refused(Constraint::Unknown)));
}

/// True for the hidden link, and for a host's link that its load could be derived from.
fn is_silent(resource: leeward_fabric::ResourceId, hidden: leeward_fabric::ResourceId) -> bool {
    resource == hidden || resource.0 < 8
}

/// Best result by exhaustive search.
fn best_seconds(world: &World, app: &AppRequest, cpus: u64) -> Option<f64> {
    let (hosts, tasks) = (world.fabric.host_count() as u32, app.tasks.len() as u32);
    let placements = (0..hosts.pow(tasks)).map(|number| {
        let host = |task| HostId(number / hosts.pow(task) % hosts);
        (0..tasks).map(host).collect::<Vec<HostId>>()
    });
    let fits = |placement: &Vec<HostId>| {
        world.fabric.all_hosts().all(|host| {
            let on = app.tasks.iter().zip(placement).filter(|(_, at)| **at == host);
            on.map(|(task, _)| task.cpus.0).sum::<u64>() <= cpus
        })
    };
    placements.filter(fits).map(|placement| world.seconds(app, &placement)).min_by(f64::total_cmp)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn the_exact_policy_is_optimal(
        cpus in prop::collection::vec(1_u64..=4, 2..5), rates in prop::collection::vec(1_u64..6, 12),
        transfers in transfers(4), hose in any::<bool>(),
    ) {
        let world = match hose {
            false => pipe(4, 2, |from, to| rates[from * 3 + to - usize::from(to > from)]),
            true => {
                let host = |at: usize| format!("  - {{name: h{at}, nic: {}Mbps}}\n", rates[at]);
                World::new(&format!("shape: hose\ncpus: 2\nhosts:\n{}", (0..4).map(host).collect::<String>()))
            }
        };
        let tasks = cpus.len() as u32;
        let transfers: Vec<_> = transfers.into_iter().filter(|&(f, t, _)| f < tasks && t < tasks).collect();
        let cpus: Vec<u64> = cpus.iter().map(|halves| halves * 500).collect();
        let app = app(&cpus, &transfers);
        match (world.decide("choreo-exact", "", &app), best_seconds(&world, &app, 2000)) {
            (Ok(decision), Some(best)) => {
                let ours = world.seconds(&app, &decision.choice);
                prop_assert!(ours <= best * (1.0 + 1e-6), "{ours} instead of {best}");
                prop_assert_eq!(decision.basis.gaps.map(|gaps| gaps.time), Some(0.0));
            }
            // If greedy and largest-first both fail, a placement may still exist.
            (Err(_), _) => {}
            (Ok(_), None) => return Err(TestCaseError::fail("there is no room")),
        }
    }
}

#[test]
fn the_program_finds_the_optimum_of_figure_9() {
    let (world, app) = figure_9();
    let decision = world.decide("choreo-exact", "", &app).expect("enough room");
    let seconds = world.seconds(&app, &decision.choice);
    assert!((seconds * 1000.0 / 8.0 - 100.0 / 9.0).abs() < 1e-9);
    assert_eq!(decision.basis.gaps.map(|gaps| gaps.time), Some(0.0));
}

#[test]
fn a_program_above_the_size_limit_is_refused() {
    let world = World::new("shape: hose\nhosts: 400\nnic: 1Gbps\ncpus: 1\n");
    let chain: Vec<(u32, u32, u64)> = (0..9).map(|task| (task, task + 1, 5)).collect();
    let refused = world.assign("choreo-exact", "", &app(&[1000; 10], &chain));
    assert_eq!(refused, Err(Refusal::TooLarge { variables: 1 + 4000 + 9 * 160_000, most: 500_000 }));
}
