//! Goals of apps besides the completion time: bounds on round-trip times, costs of hosts, and phases, checked against all
//! placements of small apps.

use crate::support::World;
use crate::support::every::{check_policies, is_about, placements};
use leeward_fabric::input::Files;
use leeward_fabric::{Bytes, Cost, Cpus, HostId, Nanos};
use leeward_placement::tasks::{self, App, AppRequest, Assignment, Goal, Task, Transfer};
use leeward_placement::{JobId, LatencyBound};
use proptest::prelude::*;

const NEAR: &str = "{racks: 2, hosts_per_rack: 2, nic: 1Gbps, oversubscription: 2, cpus: 2, rtt: {rack: 100us, network: 500us}}";
const PRICED: &str = "{shape: hose, cpus: 2, nic: 1Gbps, hosts: [{name: a, cost: 3}, {name: b, cost: 1, nic: 200Mbps}, \
                      {name: c, cost: 1, nic: 500Mbps}, {name: d, cost: 0.5, nic: 100Mbps}]}";

fn world(cluster: &str) -> World {
    let mut world = World::new(cluster);
    world.report(|_| 0.0);
    world
}

/// An app of tasks with a processor each, and transfers of (from, to, megabytes, phase).
fn app(tasks: usize, transfers: &[(u32, u32, u64, u32)]) -> AppRequest {
    let transfer = |&(from, to, mb, phase): &_| Transfer { from, to, bytes: Bytes(mb * 1_000_000), phase };
    let mut transfers: Vec<Transfer> = transfers.iter().map(transfer).collect();
    transfers.sort_by_key(|transfer| (transfer.phase, transfer.from, transfer.to));
    transfers.dedup_by_key(|transfer| (transfer.phase, transfer.from, transfer.to));
    let task = Task { cpus: Cpus(1000), ..Task::default() };
    AppRequest { id: 5, job: JobId(1), tasks: vec![task; tasks], transfers, ..AppRequest::default() }
}

/// True if the hosts have room for the tasks, and the bounds are met.
fn obeys(world: &World, request: &AppRequest, hosts: &[HostId]) -> bool {
    let has_room = hosts.iter().all(|host| hosts.iter().filter(|&other| other == host).count() <= 2);
    let is_met = |bound: &LatencyBound| {
        let [one, other] = [bound.tasks.0, bound.tasks.1].map(|task| hosts[task as usize]);
        world.fabric.round_trip(one, other).is_some_and(|time| time <= bound.max)
    };
    has_room && request.constraints.latency.iter().all(is_met)
}

/// All placements that obey the constraints.
fn all_placements<'a>(world: &'a World, request: &'a AppRequest) -> impl Iterator<Item = Assignment> + 'a {
    placements(world, request, move |hosts| obeys(world, request, hosts))
}

fn traffic() -> impl Strategy<Value = Vec<(u32, u32, u64, u32)>> {
    let transfer = (0_u32..4, 0_u32..4, 1_u64..100, 0_u32..3);
    let is_real = |transfer: &(u32, u32, u64, u32)| transfer.0 != transfer.1;
    prop::collection::vec(transfer, 0..7).prop_map(move |mut all| {
        all.retain(is_real);
        all
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Every policy meets the bounds, and the exact policy finds the best placement that does.
    #[test]
    fn bounds_on_round_trip_times_are_met(
        traffic in traffic(),
        bounds in prop::collection::btree_map((0_u32..3, 1_u32..4), prop_oneof![Just(50), Just(100), Just(500)], 1..4),
    ) {
        let world = world(NEAR);
        let mut request = app(4, &traffic);
        let bounds = bounds.into_iter().filter(|((one, other), _)| one < other);
        let bound = |(tasks, max): (_, u64)| LatencyBound { tasks, max: Nanos(max * 1000) };
        request.constraints.latency = bounds.map(bound).collect();
        check_policies(&world, &request, |hosts| obeys(&world, &request, hosts))?;
    }

    /// The exact policy finds the best placement by the first goal, and among these the best by the other goal. The greedy
    /// policies with the goal `cost` never pay more for their slower hosts.
    #[test]
    fn costs_and_times_are_minimised_in_the_order_of_the_goal(traffic in traffic(), is_cost in any::<bool>()) {
        let world = world(PRICED);
        let goal = if is_cost { Goal::Cost } else { Goal::Time };
        let request = AppRequest { goal, ..app(4, &traffic) };
        let score = |hosts: &[HostId]| (world.seconds(&request, hosts), world.fabric.cost_of(hosts));
        let all: Vec<(f64, Cost)> = all_placements(&world, &request).map(|hosts| score(&hosts)).collect();
        let (fastest, cheapest) = (
            all.iter().map(|score| score.0).fold(f64::INFINITY, f64::min),
            all.iter().map(|score| score.1).min().expect("a placement"),
        );
        let of_fastest = all.iter().filter(|score| is_about(score.0, fastest)).map(|score| score.1).min();
        let of_cheapest =
            all.iter().filter(|score| score.1 == cheapest).map(|score| score.0).fold(f64::INFINITY, f64::min);
        let (time, cost) = if is_cost { (of_cheapest, cheapest) } else { (fastest, of_fastest.expect("it is one")) };
        let found = score(&world.assign("choreo-exact", "", &request).expect("there is room"));
        prop_assert!(is_about(found.0, time) && found.1 == cost, "{found:?}, but {time} s at {cost}");
        for policy in ["choreo", "leeward"] {
            let score = score(&world.assign(policy, "", &request).expect("there is room"));
            prop_assert!(score.0 >= fastest && score.1 >= cheapest);
            if is_cost && policy == "leeward" {
                let plain = world.assign(policy, "", &app(4, &traffic)).expect("there is room");
                prop_assert!(score.1 <= world.fabric.cost_of(&plain));
            }
        }
    }

    /// Each gap of a search that stops early is at least the distance to the best placement by its goal.
    #[test]
    fn gaps_reach_to_the_best_placement_in_each_goal(
        traffic in traffic(), is_cost in any::<bool>(), nodes in 1..20_u32,
    ) {
        let world = world(PRICED);
        let request = AppRequest { goal: if is_cost { Goal::Cost } else { Goal::Time }, ..app(4, &traffic) };
        let decision = world.decide("choreo-exact", &format!("nodes: {nodes}"), &request).expect("there is room");
        prop_assert!(tasks::still_fits(&world.pool, &request, &decision.choice));
        let score = |hosts: &[HostId]| (world.seconds(&request, hosts), world.fabric.cost_of(hosts).0 as f64);
        let ours = score(&decision.choice);
        let all: Vec<(f64, f64)> = all_placements(&world, &request).map(|hosts| score(&hosts)).collect();
        let least = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::INFINITY, f64::min);
        let (time, cost) = if is_cost {
            let same_cost = all.iter().filter(|one| one.1 <= ours.1);
            (least(&mut same_cost.map(|one| one.0)), least(&mut all.iter().map(|one| one.1)))
        } else {
            let as_fast = all.iter().filter(|one| one.0 <= ours.0);
            (least(&mut all.iter().map(|one| one.0)), least(&mut as_fast.map(|one| one.1)))
        };
        let gaps = decision.basis.gaps.expect("the policy knows them");
        let cost_gap = gaps.cost.expect("hosts have costs");
        prop_assert!(time >= ours.0 * (1.0 - gaps.time - 1e-6), "{time} s is possible, not {} s: {gaps:?}", ours.0);
        prop_assert!(cost >= ours.1 * (1.0 - cost_gap - 1e-6), "{cost} is possible, not {}: {gaps:?}", ours.1);
        prop_assert_eq!(gaps.proven(), gaps.time == 0.0 && cost_gap == 0.0);
    }

    /// Phases follow each other, and the exact policy finds the placement with the least sum.
    #[test]
    fn phases_are_forecast_one_after_another_and_placed_together(traffic in traffic()) {
        let world = world(NEAR);
        let request = app(4, &traffic);
        let least = all_placements(&world, &request).map(|hosts| world.seconds(&request, &hosts)).fold(f64::INFINITY, f64::min);
        let exact = world.assign("choreo-exact", "", &request).expect("there is room");
        prop_assert!(is_about(world.seconds(&request, &exact), least));
        for policy in ["choreo", "leeward", "random"] {
            let hosts = world.assign(policy, "", &request).expect("there is room");
            let alone = |phase: u32| {
                let of_phase = request.transfers.iter().filter(|transfer| transfer.phase == phase);
                let transfers = of_phase.map(|transfer| Transfer { phase: 0, ..*transfer }).collect();
                world.seconds(&AppRequest { transfers, ..request.clone() }, &hosts)
            };
            let sum: f64 = (0..3).map(alone).sum();
            let together = world.seconds(&request, &hosts);
            prop_assert!((together - sum).abs() <= 1e-9 * sum, "{policy}: {together} s, but {sum} s");
        }
        let search = world.assign("leeward", "", &request).expect("there is room");
        let greedy = world.assign("choreo", "", &request).expect("there is room");
        prop_assert!(world.seconds(&request, &search) <= world.seconds(&request, &greedy) * (1.0 + 1e-9));
    }
}

#[test]
fn a_bound_that_cannot_be_met_is_named_with_both_tasks() {
    let text = "tasks: [{name: web, cpus: 2}, {name: cache, cpus: 2}]\n\
                transfers: [{from: web, to: cache, bytes: 1MB}]\nlatency: [{from: cache, to: web, max: 90us}]\n";
    let app = App::from_text("app.yaml", text, &Files::default()).expect("a valid app");
    assert_eq!(app.request.constraints.latency, [LatencyBound { tasks: (0, 1), max: Nanos(90_000) }]);
    let refusal = |cluster: &str, policy: &str| {
        world(cluster)
            .assign(policy, "", &app.request)
            .expect_err("no two hosts are near")
            .with_task_names(&app.names)
    };
    for policy in ["choreo", "leeward", "random", "utp"] {
        let text = refusal(NEAR, policy);
        assert_eq!(
            text,
            "found no placement: task cache has no host left: 1 host (too few processors are left), 3 hosts (its \
             round-trip time to a task exceeds the bound or is unknown); too far from task web",
            "{policy}"
        );
    }
    let exact = refusal(NEAR, "choreo-exact");
    assert!(exact.ends_with("meets the bound on the round-trip time between cache and web"), "{exact}");
    // Without a time in the cluster file, only one host is known to be near.
    let unknown = "{racks: 2, hosts_per_rack: 2, nic: 1Gbps, oversubscription: 2, cpus: 2}";
    assert!(refusal(unknown, "choreo").ends_with("too far from task web"));
    let one =
        AppRequest { tasks: vec![Task { cpus: Cpus(500), ..Task::default() }; 2], ..app.request.clone() };
    let hosts = world(unknown).assign("choreo", "", &one).expect("one host takes both");
    assert_eq!(hosts[0], hosts[1]);
}

#[test]
fn phases_bounds_and_goals_are_read_and_mistakes_are_named() {
    let tasks = "tasks: [{name: a, count: 2}, {name: b}]\n";
    let read = |text: &str| App::from_text("app.yaml", &format!("{tasks}{text}"), &Files::default());
    let app = read(
        "goal: cost\nlatency: [{from: a, to: b, max: 1ms}, {from: b, to: a0, max: 2ms}]\nphases:\n  \
         - transfers: [{from: a, to: b, bytes: 1B}]\n  - transfers: [{from: b, to: a1, bytes: 2B}]\n",
    )
    .expect("a valid app");
    let transfers: Vec<_> =
        app.request.transfers.iter().map(|one| (one.phase, one.from, one.to, one.bytes.0)).collect();
    assert_eq!(transfers, [(0, 0, 2, 1), (0, 1, 2, 1), (1, 2, 1, 2)]);
    assert_eq!((app.request.goal, app.request.phases()), (Goal::Cost, 2));
    let bounds: Vec<_> = app.request.constraints.latency.iter().map(|one| (one.tasks, one.max.0)).collect();
    assert_eq!(bounds, [((0, 2), 1_000_000), ((1, 2), 1_000_000)]);
    for (text, expected) in [
        ("goal: money", "goal: `money`: expected one of time, cost"),
        ("latency: [{from: a, to: c, max: 1ms}]", "latency[0].to: `c`: no task has this name"),
        ("latency: [{from: b, to: b, max: 1ms}]", "latency[0].to: `b`: expected another task"),
        (
            "latency: [{from: a, to: b, max: 1ms}, {from: b, to: b, max: 1ms}]",
            "latency[1].to: `b`: expected another task",
        ),
        ("latency: [{from: a, to: b, max: 1}]", "latency[0].max: `1`"),
        ("phases: [{}]", "phases[0]: expected `transfers` or `matrix`"),
        (
            "phases: [{transfers: [{from: a, to: a0, bytes: 1B}, {from: a1, to: a0, bytes: 1B}]}]",
            "phases[0].transfers[1].to: the transfer from a1 to a0 is given twice",
        ),
        (
            "transfers: [{from: a, to: b, bytes: 1B}]\nphases: [{matrix: x.csv}]",
            "phases: give `phases`, or `transfers`, or `matrix`",
        ),
        (
            "phases: [{matrix: x.csv, transfers: [{from: a, to: b, bytes: 1B}]}]",
            "phases[0].matrix: give `transfers` or `matrix`, not both",
        ),
    ] {
        let error = read(text).expect_err("invalid").to_string();
        assert!(error.contains(expected), "{error}");
    }
    let many = format!("phases: [{}]", vec!["{transfers: [{from: a, to: b, bytes: 1B}]}"; 21].join(", "));
    assert!(read(&many).expect_err("too many").to_string().contains("phases: 21: expected at most 20"));
    let far = "tasks: [{name: a, count: 60}]\nlatency: [{from: a, to: a, max: 1ms}]\n";
    let error = App::from_text("app.yaml", far, &Files::default()).expect_err("too many").to_string();
    assert!(error.contains("latency[0].to: expected at most 1000 pairs of tasks in all bounds"), "{error}");
}
