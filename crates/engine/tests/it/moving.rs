//! Moves by the last window, and moves of tasks with transfers and excluded hosts.

use std::collections::BTreeMap;

use leeward_engine::{Advice, Engine, Input, Output, Policies, Rates, Ruling};
use leeward_fabric::{Bytes, Cpus, DomainId, HostId, Load, Nanos, ResourceId};
use leeward_ledger::{LedgerSettings, Sample, Scratch};
use leeward_placement::moves::{self, HotLoad, HotTest, Stays};
use leeward_placement::tasks::{self, AppRequest, Task, TaskId, Traffic, Transfer};
use leeward_placement::{Constraints, Explain, JobId};
use leeward_testing::clusters::{cluster, ledger_with};

const INTERVAL: Nanos = Nanos(30_000_000_000);
const MBPS: u64 = 1_000_000;

fn at(interval: u64) -> Nanos {
    Nanos(INTERVAL.0 * interval)
}

/// Racks of four hosts with 16 processors and links of 1 Gb/s. Tasks are placed as by `borg`, and move by windows.
fn engine(racks: u32) -> Engine {
    let text = format!("racks: {racks}\nhosts_per_rack: 4\nnic: 1Gbps\nrack_link: 1Gbps\ncpus: 16\n");
    let settings = LedgerSettings { interval: INTERVAL, ..LedgerSettings::default() };
    let policies = Policies {
        tasks: tasks::REGISTRY.make("borg", "").ok(),
        moves: moves::REGISTRY.make("utp", "").ok(),
        cooldown: Nanos(INTERVAL.0 * 10),
        hot_test: HotTest { load: HotLoad::Window, windows: 1 },
        ..Policies::default()
    };
    Engine::new(ledger_with(&cluster(&text), &settings), policies, 7, Explain::Off)
}

/// An app of tolerant tasks of one processor, that states a rate of 100 Mb/s for each task.
fn app(id: u64, tasks: usize, rack: u32, racks: u32) -> AppRequest {
    let mut task = Task { cpus: Cpus(1000), tolerant: true, ..Task::default() };
    task.egress[0] = Traffic::steady(100 * MBPS);
    let excluded_domains = (0..racks).filter(|&other| other != rack).map(DomainId).collect();
    AppRequest {
        id,
        job: JobId(id),
        tasks: vec![task; tasks],
        constraints: Constraints { excluded_domains, ..Constraints::default() },
        ..AppRequest::default()
    }
}

fn place(engine: &mut Engine, now: Nanos, request: AppRequest) -> Vec<HostId> {
    let placed = engine.place_app(now, request, Ruling::default(), &mut Vec::new());
    placed.expect("enough room").decision.choice
}

/// Reports rates of tasks (out of their racks, in Mb/s) and loads of racks. `hosts` has where the tasks really run.
/// Returns the advised moves.
fn interval(
    engine: &mut Engine,
    sent: &BTreeMap<TaskId, u64>,
    hosts: &BTreeMap<TaskId, HostId>,
    now: Nanos,
) -> Vec<Advice> {
    let rate = |(&task, mbps): (&TaskId, &u64)| (task, Rates { egress_bps: mbps * MBPS, ingress_bps: 0 });
    let rates: Vec<(TaskId, Rates)> = sent.iter().map(rate).collect();
    let mut out = Vec::new();
    engine.handle(now, Input::Rates(&rates), &mut out);
    let fabric = engine.ledger().fabric().clone();
    let mut loads: BTreeMap<ResourceId, i64> = BTreeMap::new();
    for rack in fabric.all_racks() {
        let links = [fabric.out_of_domain(rack), fabric.into_domain(rack)];
        loads.extend(links.into_iter().flatten().map(|link| (link, 0)));
    }
    for (task, mbps) in sent {
        let link = fabric.out_of_domain(fabric.rack_of(hosts[task])).expect("a tree");
        *loads.get_mut(&link).expect("a rack's link") += (mbps * MBPS) as i64;
    }
    let window = (now.since(INTERVAL), now);
    let sample = |(resource, load)| Sample { resource, window, load: Load(load), guaranteed: None };
    let samples: Vec<Sample> = loads.into_iter().map(sample).collect();
    engine.report(now, &samples, &mut out);
    let advice = out.into_iter().filter_map(|output| match output {
        Output::MovesAdvised(advice) => Some(advice),
        _ => None,
    });
    advice.flatten().collect()
}

#[test]
fn the_largest_tolerant_task_leaves_at_the_first_hot_window_and_no_other_follows_until_it_has_left() {
    let mut engine = engine(4);
    let (mut sent, mut hosts) = (BTreeMap::new(), BTreeMap::new());
    for (id, mbps) in [(0, 400), (1, 300), (2, 250)] {
        let task = TaskId { app: id, index: 0 };
        hosts.insert(task, place(&mut engine, at(1), app(id, 1, 0, 4))[0]);
        sent.insert(task, mbps);
    }
    let quiet: BTreeMap<TaskId, u64> = sent.keys().map(|&task| (task, 10)).collect();
    assert_eq!(interval(&mut engine, &quiet, &hosts, at(2)), []);
    // Their requests exclude all other racks, so nothing moves from a link with 95 %.
    assert_eq!(interval(&mut engine, &sent, &hosts, at(3)), []);

    // The same tasks with another excluded rack: they may go to racks 2 and 3.
    for (id, task) in (0..3).zip(sent.keys().copied().collect::<Vec<_>>()) {
        let free = Constraints { excluded_domains: vec![DomainId(1)], ..Constraints::default() };
        let request = AppRequest { constraints: free, ..app(id, 1, 0, 4) };
        engine.handle(at(3), Input::Ended(id), &mut Vec::new());
        engine.resume_app(at(3), &request, &[hosts[&task]], Vec::new()).expect("a host of the fabric");
    }
    let advice = interval(&mut engine, &sent, &hosts, at(4));
    assert_eq!(advice.iter().map(|one| one.task.app).collect::<Vec<_>>(), [0], "the largest, and only it");
    let to = engine.ledger().fabric().rack_of(advice[0].to);
    assert!([DomainId(2), DomainId(3)].contains(&to), "{to:?} is excluded");
    assert_eq!(engine.stays(advice[0].task), Some(Stays::Cooling));
    // The executor needs three intervals. The link still carries 950 Mb/s in the windows.
    for round in 5..8 {
        assert_eq!(interval(&mut engine, &sent, &hosts, at(round)), [], "round {round}");
    }
    engine.handle(at(7), Input::TaskRestarted(advice[0].task), &mut Vec::new());
    hosts.insert(advice[0].task, advice[0].to);
    for round in 8..12 {
        assert_eq!(interval(&mut engine, &sent, &hosts, at(round)), [], "round {round}");
    }
    // More load heats the link again, and now the second task leaves.
    let more: BTreeMap<TaskId, u64> = sent.iter().map(|(&task, &mbps)| (task, mbps + 130)).collect();
    let advice = interval(&mut engine, &more, &hosts, at(12));
    assert_eq!(advice.iter().map(|one| one.task.app).collect::<Vec<_>>(), [1]);
}

/// Flows on each link.
fn flows(engine: &Engine, now: Nanos) -> Vec<f64> {
    let mut scratch = Scratch::default();
    let view = engine.ledger().view(now, &mut scratch);
    let links = (0..engine.ledger().fabric().resource_count() as u32).map(ResourceId);
    links.map(|link| view.flows(link)).collect()
}

#[test]
fn transfers_follow_a_moved_task_and_come_back_if_the_move_fails() {
    let mut engine = engine(2);
    let transfer = |from, to, phase| Transfer { from, to, bytes: Bytes(1 << 30), phase };
    let transfers = vec![transfer(0, 1, 0), transfer(1, 2, 0), transfer(2, 0, 1), transfer(0, 2, 1)];
    let request =
        AppRequest { transfers: transfers.clone(), constraints: Constraints::default(), ..app(5, 3, 0, 2) };
    let in_rack = AppRequest { transfers: transfers.clone(), ..app(5, 3, 0, 2) };
    let hosts = place(&mut engine, at(1), in_rack);
    // Restored without the constraint that put the tasks into the first rack.
    let stored: Vec<_> =
        engine.entries_of(5).iter().filter_map(|&id| engine.ledger().entry(id).cloned()).collect();
    engine.handle(at(1), Input::Ended(5), &mut Vec::new());
    engine.resume_app(at(1), &request, &hosts, stored).expect("hosts of the fabric");
    let before = flows(&engine, at(1));
    assert!(before.iter().sum::<f64>() > 0.0);

    let task = |index| TaskId { app: 5, index };
    let sent = BTreeMap::from([(task(0), 500), (task(1), 300), (task(2), 100)]);
    let real: BTreeMap<TaskId, HostId> = (0..).map(task).zip(hosts.iter().copied()).collect();
    let advice = interval(&mut engine, &sent, &real, at(2));
    assert_eq!(advice.iter().map(|one| one.task).collect::<Vec<_>>(), [task(0)]);
    let moved = [advice[0].to, hosts[1], hosts[2]];
    // As if an app had been placed there.
    let mut reference = self::engine(2);
    let traffic = tasks::traffic(engine.ledger().fabric(), &request, &moved, at(2));
    reference.resume_app(at(2), &request, &moved, traffic).expect("hosts of the fabric");
    assert_eq!(flows(&engine, at(2)), flows(&reference, at(2)));
    assert_eq!(engine.entries_of(5).len(), reference.entries_of(5).len());

    engine.handle(at(2), Input::MoveCancelled(task(0), advice[0].from), &mut Vec::new());
    assert_eq!(flows(&engine, at(2)), before);
    engine.handle(at(3), Input::Ended(5), &mut Vec::new());
    assert!(flows(&engine, at(3)).iter().all(|&flows| flows == 0.0));
    assert_eq!(engine.entries_of(5), []);
}

#[test]
fn each_task_that_never_moves_says_why() {
    let mut engine = engine(2);
    let bound = |constraints: Constraints| AppRequest { constraints, ..app(1, 1, 0, 2) };
    let cases = [
        (Constraints::default(), true, None),
        (Constraints::default(), false, Some(Stays::Sensitive)),
        (Constraints { avoids_jobs: true, ..Constraints::default() }, true, Some(Stays::Apart)),
        (Constraints { excluded_hosts: vec![HostId(3)], ..Constraints::default() }, true, None),
    ];
    for (constraints, tolerant, reason) in cases {
        let mut request = bound(constraints);
        request.tasks[0].tolerant = tolerant;
        place(&mut engine, at(1), request);
        assert_eq!(engine.stays(TaskId { app: 1, index: 0 }), reason);
    }
    let availability = leeward_engine::Availability { down: Some(0), evictions_per_hour: None };
    engine.handle(at(1), Input::Job(JobId(1), availability), &mut Vec::new());
    assert_eq!(engine.stays(TaskId { app: 1, index: 0 }), Some(Stays::Budget));
    assert_eq!(engine.stays(TaskId { app: 9, index: 0 }), None, "it does not run");
}
