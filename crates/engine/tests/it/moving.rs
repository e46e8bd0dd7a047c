//! Moves by the last window, and moves of tasks with transfers and excluded hosts.

use std::collections::BTreeMap;

use leeward_engine::{
    Advice, Availability, Engine, HistorySettings, Input, Output, PastMove, Policies, Rates, Ruling,
};
use leeward_fabric::{Bytes, Cpus, DomainId, HostId, Load, Nanos, ResourceId};
use leeward_ledger::{LedgerSettings, Sample, Scratch};
use leeward_moves::{self as moves, HotLoad, HotTest, Stays};
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
    engine_with(racks, 10, None)
}

fn engine_with(racks: u32, cooldown: u64, history: Option<HistorySettings>) -> Engine {
    let text = format!("racks: {racks}\nhosts_per_rack: 4\nnic: 1Gbps\nrack_link: 1Gbps\ncpus: 16\n");
    let settings = LedgerSettings { interval: INTERVAL, ..LedgerSettings::default() };
    let policies = Policies {
        tasks: tasks::REGISTRY.make("borg", "").ok(),
        moves: moves::REGISTRY.make("utp", "").ok(),
        cooldown: Nanos(INTERVAL.0 * cooldown),
        history,
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

/// Restores a running app of one task that excludes racks, as if its request had excluded only these.
fn exclude(engine: &mut Engine, now: Nanos, id: u64, racks: &[u32]) {
    let host = engine.host_of(TaskId { app: id, index: 0 }).expect("a running app");
    let excluded_domains = racks.iter().copied().map(DomainId).collect();
    let constraints = Constraints { excluded_domains, ..Constraints::default() };
    let request = AppRequest { constraints, ..app(id, 1, 0, 1) };
    let entries: Vec<_> =
        engine.entries_of(id).iter().filter_map(|&entry| engine.ledger().entry(entry).cloned()).collect();
    engine.handle(now, Input::Ended(id), &mut Vec::new());
    let entries = entries.into_iter().map(|entry| (Some(0), entry)).collect();
    engine.resume_app(now, &request, &[host], entries).expect("a host of the fabric");
}

/// The moves that a further report at the same time brings.
fn report_again(engine: &mut Engine, now: Nanos) -> Vec<Advice> {
    let mut out = Vec::new();
    engine.report(now, &[], &mut out);
    advice_of(out)
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
    advice_of(out)
}

/// The moves among outputs.
fn advice_of(out: Vec<Output>) -> Vec<Advice> {
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
    assert_eq!(engine.stays(advice[0].task), Some(Stays::Moving));
    // The executor needs three intervals. The link still carries 950 Mb/s in the windows.
    for round in 5..8 {
        assert_eq!(interval(&mut engine, &sent, &hosts, at(round)), [], "round {round}");
    }
    engine.handle(at(7), Input::TaskRestarted(advice[0].task), &mut Vec::new());
    hosts.insert(advice[0].task, advice[0].to);
    assert_eq!(engine.stays(advice[0].task), Some(Stays::Cooling));
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
    let tasks = engine.task_entries(5);
    let ids = engine.entries_of(5);
    let stored = ids.iter().map(|id| tasks.get(id).copied()).zip(stored).collect();
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
    // An earlier version stored no tasks with the entries.
    let traffic = traffic.into_iter().map(|entry| (None, entry)).collect();
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
        (Constraints { incomplete: true, ..Constraints::default() }, true, Some(Stays::Forgotten)),
        (Constraints { excluded_hosts: vec![HostId(3)], ..Constraints::default() }, true, None),
    ];
    for (constraints, tolerant, reason) in cases {
        let mut request = bound(constraints);
        request.tasks[0].tolerant = tolerant;
        place(&mut engine, at(1), request);
        assert_eq!(engine.stays(TaskId { app: 1, index: 0 }), reason);
    }
    let availability = Availability { down: Some(0), evictions_per_hour: None };
    engine.handle(at(1), Input::Job(JobId(1), availability), &mut Vec::new());
    assert_eq!(engine.stays(TaskId { app: 1, index: 0 }), Some(Stays::Budget));
    assert_eq!(engine.stays(TaskId { app: 9, index: 0 }), None, "it does not run");
}

/// Places tasks of these rates in the first rack, and frees them for other racks than the second. Returns their rates and
/// hosts.
fn three_tasks(engine: &mut Engine, racks: u32) -> (BTreeMap<TaskId, u64>, BTreeMap<TaskId, HostId>) {
    let (mut sent, mut hosts) = (BTreeMap::new(), BTreeMap::new());
    for (id, mbps) in [(0, 400), (1, 300), (2, 250)] {
        let task = TaskId { app: id, index: 0 };
        hosts.insert(task, place(engine, at(1), app(id, 1, 0, racks))[0]);
        exclude(engine, at(1), id, &[1]);
        sent.insert(task, mbps);
    }
    (sent, hosts)
}

#[test]
fn a_further_report_of_the_same_window_moves_no_second_task_of_a_job_with_a_history() {
    for history in [None, Some(HistorySettings { window: Nanos(3_600_000_000_000), percentile: 0.98 })] {
        let mut engine = engine_with(4, 10, history);
        let (sent, hosts) = three_tasks(&mut engine, 4);
        // The first task states 100 Mb/s and sends 400.
        let advice = interval(&mut engine, &sent, &hosts, at(4));
        assert_eq!(advice.iter().map(|one| one.task.app).collect::<Vec<_>>(), [0], "{history:?}");
        for _ in 0..3 {
            assert_eq!(report_again(&mut engine, at(4)), [], "{history:?}");
        }
    }
}

#[test]
fn a_task_on_its_way_counts_once_at_its_destination() {
    let mut engine = engine(3);
    let (mut sent, mut hosts) = three_tasks(&mut engine, 3);
    let advice = interval(&mut engine, &sent, &hosts, at(4));
    assert_eq!(advice.iter().map(|one| one.task.app).collect::<Vec<_>>(), [0]);
    assert_eq!(engine.ledger().fabric().rack_of(advice[0].to), DomainId(2));
    // The second rack becomes hot by two tasks. The smaller one may leave it, to the third rack: 400 + 250 Mb/s.
    for (id, mbps) in [(3, 250), (4, 520)] {
        let task = TaskId { app: id, index: 0 };
        hosts.insert(task, place(&mut engine, at(4), app(id, 1, 1, 3))[0]);
        sent.insert(task, mbps);
    }
    exclude(&mut engine, at(4), 3, &[0]);
    let advice = interval(&mut engine, &sent, &hosts, at(5));
    assert_eq!(advice.iter().map(|one| (one.task.app, one.to.0 / 4)).collect::<Vec<_>>(), [(3, 2)]);
}

#[test]
fn a_task_whose_move_is_not_carried_out_is_not_moved_again() {
    let mut engine = engine_with(4, 1, None);
    let (mut sent, mut hosts) = three_tasks(&mut engine, 4);
    let first = interval(&mut engine, &sent, &hosts, at(4))[0];
    // The cooldown passes, and the rack where the task will run becomes hot.
    let (heavy, rack) = (TaskId { app: 9, index: 0 }, engine.ledger().fabric().rack_of(first.to).0);
    hosts.insert(heavy, place(&mut engine, at(5), app(9, 1, rack, 4))[0]);
    sent.insert(heavy, 800);
    for round in 6..10 {
        let advice = interval(&mut engine, &sent, &hosts, at(round));
        assert!(advice.iter().all(|one| one.task != first.task), "{advice:?}");
    }
    assert_eq!(engine.stays(first.task), Some(Stays::Moving));
}

#[test]
fn an_engine_that_continues_with_an_open_move_moves_no_further_task() {
    let availability = Availability { down: Some(1), evictions_per_hour: Some(1) };
    for past in [PastMove::Undone, PastMove::Done, PastMove::Open(HostId(0))] {
        let mut engine = engine(4);
        let (sent, mut hosts) = three_tasks(&mut engine, 4);
        let first = TaskId { app: 0, index: 0 };
        // As restored: the ledger counts the task at its destination, and its links report it where it was.
        let from = hosts[&first];
        let to = HostId(12);
        engine.handle(at(3), Input::Ended(0), &mut Vec::new());
        let request = AppRequest { constraints: Constraints::default(), ..app(0, 1, 0, 4) };
        let place = if past == PastMove::Undone { from } else { to };
        let entries = tasks::traffic(engine.ledger().fabric(), &request, &[place], at(3));
        let entries = entries.into_iter().map(|entry| (Some(0), entry)).collect();
        engine.resume_app(at(3), &request, &[place], entries).expect("a host of the fabric");
        engine.handle(at(3), Input::Job(JobId(0), availability), &mut Vec::new());
        let past = if let PastMove::Open(_) = past { PastMove::Open(from) } else { past };
        engine.resume_move(first, at(3), past);
        if past == PastMove::Done {
            hosts.insert(first, to);
        }
        let advice = interval(&mut engine, &sent, &hosts, at(4));
        let moved: Vec<u64> = advice.iter().map(|one| one.task.app).collect();
        match past {
            // The task itself may not be moved again so soon.
            PastMove::Undone => assert_eq!(moved, [1]),
            PastMove::Done | PastMove::Open(_) => assert!(moved.is_empty(), "{past:?}: {moved:?}"),
        }
        let is_open = matches!(past, PastMove::Open(_));
        let reason = if is_open { Stays::Moving } else { Stays::Cooling };
        assert_eq!(engine.stays(first), Some(reason));
        if is_open {
            engine.handle(at(4), Input::MoveCancelled(first, from), &mut Vec::new());
            assert_eq!(engine.host_of(first), Some(from));
            assert_eq!(engine.entries_of(0).len(), 1, "its stated demand counts there again");
            assert_eq!(engine.stays(first), Some(Stays::Cooling));
        }
        // The eviction counts until an hour has passed, unless the task stayed.
        let later = Nanos(at(3).0 + 3_599_000_000_000);
        engine.handle(later, Input::Wake, &mut Vec::new());
        let expected = (past == PastMove::Done).then_some(Stays::Budget);
        assert_eq!(engine.stays(first), expected, "{past:?}");
    }
}
