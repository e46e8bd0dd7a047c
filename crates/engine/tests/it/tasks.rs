//! Tasks in the engine: placement, moves and ends, on cells whose tasks change their rates arbitrarily.

use std::collections::BTreeMap;

use leeward_engine::{
    Advice, Availability, Engine, HistorySettings, Input, MoveRule, Output, Policies, Rates, Ruling,
};
use leeward_fabric::{BITS_PER_BYTE, Bytes, Cpus, DomainId, Fabric, Hop, HostId, Load, Nanos, ResourceId};
use leeward_ledger::{Demand, Entry, Fade, LedgerSettings, Owner, OwnerKind, Sample, Scratch, Sign};
use leeward_moves as moves;
use leeward_placement::tasks::{AppRequest, Task, TaskId, Traffic};
use leeward_placement::{Explain, JobId, Refusal, tasks};
use leeward_testing::clusters::{cluster, ledger, ledger_with};
use proptest::prelude::*;

const INTERVAL: Nanos = Nanos(30_000_000_000);
const MBPS: u64 = 1_000_000;

/// Racks of four hosts with 4 processors and links of 1 Gb/s.
fn engine(racks: u32, policy: &str, cooldown: Nanos) -> Engine {
    engine_with(racks, policy, cooldown, None)
}

fn engine_with(racks: u32, policy: &str, cooldown: Nanos, history: Option<HistorySettings>) -> Engine {
    let text = format!("racks: {racks}\nhosts_per_rack: 4\nnic: 1Gbps\nrack_link: 1Gbps\ncpus: 4\n");
    let cluster = cluster(&text);
    let settings = LedgerSettings { interval: INTERVAL, ..LedgerSettings::default() };
    let ledger = ledger_with(&cluster, &settings);
    let task_policy = tasks::REGISTRY.make(policy, "").expect("a policy of the registry");
    let move_policy = task_policy.move_policy();
    let policies = Policies {
        moves: move_policy.map(|name| moves::REGISTRY.make(name, "").expect("a policy of the registry")),
        tasks: Some(task_policy),
        cooldown,
        history,
        ..Policies::default()
    };
    Engine::new(ledger, policies, 7, Explain::Off)
}

/// One task of one processor.
fn task(id: u64, job: u64, mbps: u64) -> AppRequest {
    let mut task = Task { cpus: Cpus(1000), tolerant: true, ..Task::default() };
    task.egress[0] = Traffic { mean_bps: mbps * MBPS, peak_bps: mbps * MBPS };
    AppRequest { id, job: JobId(job), tasks: vec![task], ..AppRequest::default() }
}

/// Loads of racks' links in the interval that ends at `at`, given the rates of tasks in Mb/s.
fn samples(engine: &Engine, sent: &BTreeMap<u64, u64>, at: Nanos) -> Vec<Sample> {
    let fabric: &Fabric = engine.ledger().fabric();
    let mut loads: BTreeMap<ResourceId, i64> = BTreeMap::new();
    for rack in fabric.all_racks() {
        let links = [fabric.out_of_domain(rack), fabric.into_domain(rack)];
        loads.extend(links.into_iter().flatten().map(|link| (link, 0)));
    }
    for (&app, mbps) in sent {
        let host = engine.host_of(TaskId { app, index: 0 }).expect("a running app");
        let link = fabric.out_of_domain(fabric.rack_of(host)).expect("a tree");
        *loads.get_mut(&link).expect("a rack's link") += (mbps * MBPS) as i64;
    }
    let window = (Nanos(at.0 - INTERVAL.0), at);
    let sample = |(resource, load)| Sample { resource, window, load: Load(load), guaranteed: None };
    loads.into_iter().map(sample).collect()
}

fn place(engine: &mut Engine, at: Nanos, request: AppRequest) -> Result<HostId, Refusal> {
    engine.place_app(at, request, Ruling::default(), &mut Vec::new()).map(|placed| placed.decision.choice[0])
}

/// Reports rates and loads; returns the advised moves.
fn interval(engine: &mut Engine, sent: &BTreeMap<u64, u64>, at: Nanos) -> Vec<Advice> {
    let rate = |(&app, mbps): (&u64, &u64)| {
        (TaskId { app, index: 0 }, Rates { egress_bps: mbps * MBPS, ingress_bps: 0 })
    };
    let rates: Vec<(TaskId, Rates)> = sent.iter().map(rate).collect();
    let mut out = Vec::new();
    engine.handle(at, Input::Rates(&rates), &mut out);
    let samples = samples(engine, sent, at);
    engine.report(at, &samples, &mut out);
    let advice = out.into_iter().filter_map(|output| match output {
        Output::MovesAdvised(advice) => Some(advice),
        _ => None,
    });
    advice.flatten().collect()
}

fn at(interval: u64) -> Nanos {
    Nanos(INTERVAL.0 * interval)
}

/// Runs a random cell; fails if a task is moved again too soon or a budget is exceeded.
fn churn(
    rates: &[Vec<u64>],
    down: Option<u32>,
    evictions_per_hour: Option<u32>,
) -> Result<usize, TestCaseError> {
    let tasks = rates[0].len() as u64;
    let mut engine = engine(5, "utp", Nanos(INTERVAL.0 * 10));
    interval(&mut engine, &BTreeMap::new(), at(1));
    for id in 0..tasks {
        let availability = Availability { down, evictions_per_hour };
        engine.handle(at(1), Input::Job(JobId(id % 3), availability), &mut Vec::new());
        place(&mut engine, at(1), task(id, id % 3, 100)).expect("enough room");
    }
    let mut moved: BTreeMap<u64, u64> = BTreeMap::new();
    let mut by_job: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut count = 0;
    for (round, rates) in (2..).zip(rates) {
        let sent: BTreeMap<u64, u64> = (0..).zip(rates.iter().copied()).collect();
        let advice = interval(&mut engine, &sent, at(round));
        let mut now_down: BTreeMap<u64, u32> = BTreeMap::new();
        for Advice { task, from, to, .. } in &advice {
            prop_assert_eq!(engine.host_of(*task), Some(*to));
            prop_assert!(engine.ledger().fabric().rack_of(*from) != engine.ledger().fabric().rack_of(*to));
            if let Some(before) = moved.insert(task.app, round) {
                prop_assert!(round - before >= 10, "task {} in rounds {before} and {round}", task.app);
            }
            *now_down.entry(task.app % 3).or_default() += 1;
            by_job.entry(task.app % 3).or_default().push(round);
            count += 1;
        }
        if let Some(most) = down {
            prop_assert!(now_down.values().all(|&down| down <= most));
        }
        if let Some(most) = evictions_per_hour {
            // 120 intervals of 30 s.
            let within = |rounds: &Vec<u64>| rounds.iter().filter(|&&at| at + 120 > round).count();
            prop_assert!(by_job.values().all(|rounds| within(rounds) <= most as usize));
        }
        for Advice { task, .. } in advice {
            engine.handle(at(round), Input::TaskRestarted(task), &mut Vec::new());
        }
    }
    Ok(count)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(
        std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1000)
    ))]

    #[test]
    fn no_task_moves_twice_in_ten_intervals_and_budgets_hold(
        bases in prop::collection::vec(0_u64..300, 16),
        noise in prop::collection::vec(prop::collection::vec(0_u64..100, 16), 1..60),
        down in prop::option::of(0_u32..3), evictions in prop::option::of(0_u32..4),
    ) {
        // Every few intervals tasks swap their rates, so that other racks become hot.
        let rates = |(round, noise): (usize, &Vec<u64>)| {
            let base = |task| bases[(task + round / 8) % bases.len()];
            noise.iter().enumerate().map(|(task, noise)| base(task) + noise).collect()
        };
        churn(&noise.iter().enumerate().map(rates).collect::<Vec<_>>(), down, evictions)?;
    }
}

#[test]
fn the_move_property_covers_real_moves() {
    let rate = |round: u64, task: u64| (task + round / 8) * 93 % 300 + (task * 37 + round * 91) % 100;
    let rates: Vec<Vec<u64>> = (0..60).map(|round| (0..16).map(|task| rate(round, task)).collect()).collect();
    let moves = churn(&rates, None, None).expect("the property holds");
    assert!(moves > 5, "{moves}");
    assert_eq!(churn(&rates, Some(0), None).expect("the property holds"), 0);
}

/// Expected load of the uplink of a host's rack, in Mb/s.
fn expected_above(engine: &Engine, host: HostId, now: Nanos) -> f64 {
    let fabric = engine.ledger().fabric();
    let link = fabric.out_of_domain(fabric.rack_of(host)).expect("a tree");
    let mut scratch = Scratch::default();
    let utilization = engine.ledger().view(now, &mut scratch).utilization_with(link, Load(0));
    utilization.expect("a reported load") * 1000.0
}

#[test]
fn a_task_counts_at_least_the_recent_measured_rate_of_its_job() {
    let history = HistorySettings { window: Nanos(INTERVAL.0 * 80), percentile: 1.0 };
    for (history, stated, round, least, most) in [
        (None, 0, 42, 0.0, 0.0),
        (Some(history), 0, 42, 400.0, 425.0),
        (Some(history), 300, 42, 400.0, 425.0),
        (Some(history), 500, 42, 500.0, 500.0),
        (Some(history), 0, 82, 0.0, 0.0),
    ] {
        let mut engine = engine_with(3, "utp-proactive", Nanos(0), history);
        interval(&mut engine, &BTreeMap::new(), at(1));
        place(&mut engine, at(1), task(0, 5, 0)).expect("enough room");
        place(&mut engine, at(1), task(1, 6, 0)).expect("enough room");
        interval(&mut engine, &BTreeMap::from([(0, 400), (1, 100)]), at(2));
        for app in [0, 1] {
            engine.handle(at(2), Input::Ended(app), &mut Vec::new());
        }
        // Forty reports later, only the history of these tasks remains.
        for round in 3..=round {
            interval(&mut engine, &BTreeMap::new(), at(round));
        }
        let host = place(&mut engine, at(round), task(2, 5, stated)).expect("enough room");
        let expected = expected_above(&engine, host, at(round));
        assert!((least - 1.0..=most + 1.0).contains(&expected), "{stated} stated: {expected}");
    }
}

#[test]
fn cancelled_moves_leave_the_engine_as_one_that_advises_none() {
    let mut advising = engine(3, "utp", Nanos(INTERVAL.0 * 10));
    let mut reference = engine_with(3, "borg", Nanos(0), None);
    let loaded = |engine: &Engine, now: Nanos| -> Vec<i64> {
        let (mut scratch, fabric) = (Scratch::default(), engine.ledger().fabric().clone());
        let view = engine.ledger().view(now, &mut scratch);
        let links = fabric.all_racks().filter_map(|rack| fabric.out_of_domain(rack));
        let shares = links.filter_map(|link| view.utilization_with(link, Load(0)));
        shares.map(|share| (share * 1e6).round() as i64).collect()
    };
    let free_cpus = |engine: &Engine| -> Vec<Option<Cpus>> {
        let fabric = engine.ledger().fabric();
        fabric.all_hosts().map(|host| engine.pool().cpus_left(host)).collect()
    };
    for engine in [&mut advising, &mut reference] {
        interval(engine, &BTreeMap::new(), at(1));
        for id in 0..6 {
            // The task must run in the first rack; the policy may prefer another.
            let (request, host) = (task(id, id, 100), HostId(id as u32 % 4));
            let fabric = engine.ledger().fabric().clone();
            let out = [fabric.egress(host), fabric.out_of_domain(fabric.rack_of(host))];
            let entry = Entry {
                owner: Owner { kind: OwnerKind::App, id },
                hops: out
                    .into_iter()
                    .flatten()
                    .map(|resource| Hop { resource, work: BITS_PER_BYTE })
                    .collect(),
                demand: Demand::Stream { mean_bps: 100 * MBPS, peak_bps: 100 * MBPS },
                sign: Sign::Adds,
                fade: Fade::WithEstimator,
                starts: Some(at(1)),
            };
            engine
                .resume_app(at(1), &request, &[host], vec![(Some(0), entry)])
                .expect("a host of the fabric");
        }
    }
    let sent: BTreeMap<u64, u64> = (0..6).map(|id| (id, 150)).collect();
    let mut cancelled = 0;
    for round in 2..30 {
        assert_eq!(interval(&mut reference, &sent, at(round)), Vec::new());
        for Advice { task, from, .. } in interval(&mut advising, &sent, at(round)) {
            advising.handle(at(round), Input::MoveCancelled(task, from), &mut Vec::new());
            assert_eq!(advising.host_of(task), Some(from));
            cancelled += 1;
        }
        assert_eq!(free_cpus(&advising), free_cpus(&reference), "round {round}");
        assert_eq!(loaded(&advising, at(round)), loaded(&reference, at(round)), "round {round}");
    }
    assert!(cancelled > 0, "no move was advised");
}

#[test]
fn an_ended_app_frees_its_room() {
    let mut engine = engine(1, "borg", Nanos(0));
    interval(&mut engine, &BTreeMap::new(), at(1));
    for id in 0..16 {
        place(&mut engine, at(1), task(id, 0, 10)).expect("there are 16 processors");
    }
    let refused = place(&mut engine, at(1), task(16, 0, 10)).expect_err("all processors are taken");
    assert!(matches!(refused, Refusal::NoHost { task: 0, .. }), "{refused}");
    engine.handle(at(1), Input::Ended(3), &mut Vec::new());
    place(&mut engine, at(1), task(17, 0, 10)).expect("one processor is free again");
    assert_eq!(engine.host_of(TaskId { app: 3, index: 0 }), None);
    assert_eq!(engine.pool().racks_of(JobId(0)), [(DomainId(0), 16)]);
    assert_eq!(engine.pool().memory_left(HostId(0)), None::<Bytes>);
}

#[test]
fn an_app_with_a_running_id_replaces_the_running_app() {
    let mut engine = engine(1, "borg", Nanos(0));
    interval(&mut engine, &BTreeMap::new(), at(1));
    for mbps in 1..=40 {
        let host = place(&mut engine, at(1), task(0, 5, mbps)).expect("there are 16 processors");
        assert_eq!(engine.pool().racks_of(JobId(5)), [(DomainId(0), 1)]);
        assert_eq!(expected_above(&engine, host, at(1)), mbps as f64);
    }
    engine.handle(at(1), Input::Ended(0), &mut Vec::new());
    assert_eq!(engine.pool().racks_of(JobId(5)), []);
    assert_eq!(expected_above(&engine, HostId(0), at(1)), 0.0);
}

#[test]
fn a_request_without_a_policy_is_refused() {
    let ledger = ledger(&cluster("racks: 1\nhosts_per_rack: 1\nnic: 1Gbps\noversubscription: 1"));
    let mut engine = Engine::new(ledger, Policies::default(), 1, Explain::Off);
    assert_eq!(place(&mut engine, Nanos(0), task(0, 0, 1)), Err(Refusal::NoPolicy { kind: "tasks" }));
}

/// Four racks; the tasks of one of them send so much that its uplink stays hot. Returns the engine, and the advised and
/// the considered moves of each round.
fn hot_rack(rule: MoveRule) -> (Engine, Vec<[Vec<Advice>; 2]>) {
    let mut engine = engine(4, "utp", Nanos(INTERVAL.0 * 20));
    engine.handle(at(1), Input::MoveRule(rule), &mut Vec::new());
    interval(&mut engine, &BTreeMap::new(), at(1));
    for id in 0..16 {
        place(&mut engine, at(1), task(id, id, 100)).expect("enough room");
    }
    let fabric = engine.ledger().fabric().clone();
    let rack = |id: u64| engine.host_of(TaskId { app: id, index: 0 }).map(|host| fabric.rack_of(host));
    let count = (0..16).filter(|&id| rack(id) == rack(0)).count() as u64;
    let rate = |id| if rack(id) == rack(0) { 960 / count } else { 10 };
    let sent: BTreeMap<u64, u64> = (0..16).map(|id| (id, rate(id))).collect();
    let rounds = (2..18).map(|round| {
        let (mut out, samples) = (Vec::new(), samples(&engine, &sent, at(round)));
        engine.report(at(round), &samples, &mut out);
        let (mut advised, mut considered) = (Vec::new(), Vec::new());
        for output in out {
            match output {
                Output::MovesAdvised(moves) => advised.extend(moves),
                Output::MovesConsidered(moves) => considered.extend(moves),
                _ => {}
            }
        }
        [advised, considered]
    });
    let rounds = rounds.collect();
    (engine, rounds)
}

#[test]
fn moves_follow_their_rule() {
    let first = |rounds: &[[Vec<Advice>; 2]], at: usize| {
        rounds.iter().map(|round| round[at].clone()).find(|moves| !moves.is_empty()).unwrap_or_default()
    };
    let count =
        |rounds: &[[Vec<Advice>; 2]], at: usize| rounds.iter().filter(|round| !round[at].is_empty()).count();
    let (on, rounds) = hot_rack(MoveRule::On);
    let advised = first(&rounds, 0);
    assert!(!advised.is_empty() && count(&rounds, 1) == 0, "{rounds:?}");
    assert!(advised.iter().all(|advice| on.host_of(advice.task) == Some(advice.to)));

    let (off, rounds) = hot_rack(MoveRule::Off);
    assert_eq!((count(&rounds, 0), count(&rounds, 1)), (0, 0));

    let (shadow, rounds) = hot_rack(MoveRule::Shadow);
    assert_eq!((count(&rounds, 0), first(&rounds, 1)), (0, advised.clone()), "the same moves are chosen");
    assert_eq!(count(&rounds, 1), 1, "the rack stays hot, and is considered once in each cooldown");
    for advice in &advised {
        assert_eq!(shadow.host_of(advice.task), Some(advice.from), "nothing moves");
    }
    assert_eq!(shadow.ledger().sums_bytes(), off.ledger().sums_bytes());

    let moves = |share| count(&hot_rack(MoveRule::Canary(share)).1, 0) > 0;
    let shares: Vec<bool> = (0..=10).map(|tenth| moves(tenth * 1_000)).collect();
    assert!(!shares[0] && shares[10] && shares.is_sorted(), "{shares:?}");
}
