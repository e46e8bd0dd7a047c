//! The request simulator compared with a literal model, nanosecond by nanosecond, and general properties.

use std::collections::BTreeMap;

use leeward_calculus::TokenBucket;
use leeward_fabric::Nanos;
use leeward_requests::{
    Arrival, Batch, Device, Enforced, Observer, OverLimit, RequestEvent, RequestsError, Scheduling, Server,
    Setup, Source, StageLimits, StartCaps, run, run_observed,
};
use leeward_slo::Slo;
use leeward_traces::{Kind, Stage};
use proptest::prelude::*;

use crate::support::cases;
use crate::support::literal::{Literal, Row};

/// Capacity of one unit per nanosecond.
const UNIT: f64 = 1e9;

/// Requests of each workload, and the number of outstanding requests for a closed loop.
type Sends = Vec<(Vec<Arrival>, Option<u32>)>;

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::Read), Just(Kind::Write)]
}

fn order() -> impl Strategy<Value = Scheduling> {
    prop_oneof![4 => Just(Scheduling::Priority), 1 => Just(Scheduling::Fifo), 1 => Just(Scheduling::Deadline)]
}

fn device() -> impl Strategy<Value = Device> {
    let cap = || prop_oneof![1 => 1u64..30, 2 => Just(u64::MAX)];
    let behind =
        prop::option::of((0u32..4, 1u64..40).prop_map(|(requests, bytes)| StartCaps { requests, bytes }));
    let batch = prop::option::of((1u64..40, 0u64..5).prop_map(|(bytes, gap)| Batch { bytes, gap }));
    (1u32..5, cap(), cap(), behind, (0u64..7, 0u64..7, 0u64..4), batch).prop_map(
        |(outstanding, read_bytes, write_bytes, behind, (read, write, turn), batch)| Device {
            outstanding,
            read_bytes,
            write_bytes,
            behind,
            read_latency: Nanos(read),
            write_latency: Nanos(write),
            turn: Nanos(turn),
            batch,
        },
    )
}

/// Limits of a stage: one of these routes, a priority, and up to two limits in quarters of a unit.
fn stage(routes: Vec<Vec<usize>>) -> impl Strategy<Value = StageLimits> {
    let limit = (1u32..9, 1u32..25)
        .prop_map(|(rate, burst)| TokenBucket::new(f64::from(rate) * 0.25e9, f64::from(burst)).unwrap());
    let over = prop_oneof![Just(OverLimit::Held), Just(OverLimit::Demoted)];
    (prop::sample::select(routes), 0u32..3, prop::collection::vec(limit, 0..3), over)
        .prop_map(|(route, priority, limits, over)| StageLimits { route, priority, limits, over })
}

/// Small systems of links 0, 1 and 3 and device 2, in whole numbers.
fn systems() -> impl Strategy<Value = (Setup, Sends)> {
    let work = || prop_oneof![1 => Just(0u32), 4 => 1u32..13];
    let arrival = (0u64..60, kind(), 1u64..12, prop::option::of(0u64..40), work(), work(), work()).prop_map(
        |(at, kind, size, offset, a, b, c)| Arrival {
            at: Nanos(at),
            kind,
            size,
            offset,
            work: [a, b, c].map(f64::from),
        },
    );
    let sends =
        (prop::collection::vec(arrival, 0..14), prop_oneof![5 => Just(None), 1 => (1u32..3).prop_map(Some)]);
    let stages = (
        stage(vec![vec![0], vec![0, 1], vec![1], vec![]]),
        stage(vec![vec![2], vec![2], vec![]]),
        stage(vec![vec![3], vec![0, 3], vec![]]),
    );
    let slo =
        prop::option::of((1u32..60).prop_map(|ns| Slo { percentile: 99.0, latency: f64::from(ns) * 1e-9 }));
    let workload = (stages, slo, sends);
    let packet = prop::option::of((1u32..7).prop_map(f64::from));
    let link_order = || prop_oneof![3 => Just(Scheduling::Priority), 1 => Just(Scheduling::Fifo)];
    let rows = prop::collection::vec(workload, 1..5);
    let latencies = prop_oneof![Just([0; 4]), [0u64..9, 0..9, 0..9, 0..9]];
    (rows, device(), order(), (link_order(), link_order()), packet, latencies).prop_map(
        |(rows, device, order, links, packet, latencies)| {
            let link = |name, order| Server { order, ..Server::link(name, UNIT) };
            let mut servers = vec![
                link("a", links.0),
                link("b", links.1),
                Server { capacity: UNIT, order, ..Server::device("c", device) },
                link("d", Scheduling::Priority),
            ];
            servers.iter_mut().zip(latencies).for_each(|(server, latency)| server.latency = Nanos(latency));
            let (mut workloads, mut all) = (Vec::new(), Vec::new());
            for (index, ((a, b, mut c), slo, (mut arrivals, closed))) in rows.into_iter().enumerate() {
                if a.route.is_empty() && b.route.is_empty() && c.route.is_empty() {
                    c.route = vec![3];
                }
                arrivals.sort_by_key(|arrival| arrival.at);
                if closed.is_some() {
                    // A closed loop does not send requests without work.
                    let works = |arrival: &Arrival| {
                        arrival
                            .work
                            .iter()
                            .zip([&a, &b, &c])
                            .any(|(work, at)| *work > 0.0 && !at.route.is_empty())
                    };
                    arrivals.retain(works);
                }
                workloads.push(Enforced { name: format!("w{index}"), slo, weight: 1.0, stages: [a, b, c] });
                all.push((arrivals, closed));
            }
            (Setup { packet, rows: true, ..Setup::new(servers, workloads) }, all)
        },
    )
}

fn sources(sends: &Sends) -> Vec<Source<'_>> {
    let source = |(arrivals, closed): &(Vec<Arrival>, Option<u32>)| match closed {
        None => Source::open(arrivals.clone()),
        Some(outstanding) => Source::closed(*outstanding, arrivals.clone()),
    };
    sends.iter().map(source).collect()
}

/// Observer that records the data of the properties.
#[derive(Default)]
struct Log {
    passed: BTreeMap<(usize, usize), Vec<(u64, f64)>>,
    /// Work that waits, by server and rank. Valid only for runs without limits.
    waits: BTreeMap<(usize, u32), f64>,
    /// For each server: the last time at which it became free, or at which work arrived while it was idle.
    since: BTreeMap<usize, u64>,
    serves: BTreeMap<usize, bool>,
    faults: Vec<String>,
}

impl Observer for Log {
    fn passed(&mut self, at: Nanos, workload: usize, stage: Stage, work: f64) {
        self.passed.entry((workload, stage as usize)).or_default().push((at.0, work));
    }

    fn arrived(&mut self, at: Nanos, server: usize, event: RequestEvent) {
        if self.waiting(server) == 0.0 && !self.serves.get(&server).is_some_and(|serves| *serves) {
            self.since.insert(server, at.0);
        }
        *self.waits.entry((server, event.rank)).or_default() += event.work;
    }

    fn started(&mut self, at: Nanos, server: usize, event: RequestEvent) {
        for (&(_, rank), &work) in self.waits.range((server, 0)..(server, event.rank)) {
            if work > 0.0 {
                self.faults.push(format!(
                    "{at}: server {server} starts rank {}, and {work} of rank {rank} waits",
                    event.rank
                ));
            }
        }
        *self.waits.get_mut(&(server, event.rank)).unwrap() -= event.work;
        if self.since[&server] != at.0 {
            self.faults.push(format!("{at}: server {server} was idle since {}", self.since[&server]));
        }
        self.serves.insert(server, true);
    }

    fn served(&mut self, at: Nanos, server: usize, _: RequestEvent) {
        self.serves.insert(server, false);
        self.since.insert(server, at.0);
    }
}

impl Log {
    fn waiting(&self, server: usize) -> f64 {
        self.waits.range((server, 0)..=(server, u32::MAX)).map(|(_, work)| work).sum()
    }
}

proptest! {
    #![proptest_config(cases(3000))]

    #[test]
    fn the_simulator_matches_the_literal_reference_to_the_nanosecond((setup, sends) in systems()) {
        let report = run(&setup, sources(&sends)).unwrap();
        let mut literal = Literal::new(&setup, sends);
        let servers = literal.run(report.end.0 + 1);
        let rows = report.rows.unwrap();
        let mut simulated: Vec<Row> = (0..rows.len()).map(|at| (
            rows.workload[at], rows.arrival[at], rows.latency[at],
            [0, 1, 2].map(|stage| rows.stages[stage][at]), rows.demoted[at],
        )).collect();
        simulated.sort_unstable();
        literal.rows.sort_unstable();
        prop_assert_eq!(simulated, literal.rows);
        let simulated: Vec<_> = report.servers.iter().map(|server| (server.busy.0, server.starved.0)).collect();
        prop_assert_eq!(simulated, servers);
    }

    #[test]
    fn every_request_completes_once_and_littles_law_is_exact((setup, sends) in systems()) {
        let report = run(&setup, sources(&sends)).unwrap();
        let rows = report.rows.unwrap();
        prop_assert_eq!(rows.len(), sends.iter().map(|(arrivals, _)| arrivals.len()).sum::<usize>());
        for (workload, (arrivals, closed)) in sends.iter().enumerate() {
            let measured = &report.workloads[workload];
            prop_assert_eq!(measured.latency.count() as usize, arrivals.len());
            prop_assert_eq!(measured.windows.iter().map(|window| window.requests).sum::<u64>(), measured.latency.count());
            prop_assert_eq!(measured.intervals.iter().map(|interval| interval.late).sum::<u64>(), measured.late);
            if closed.is_none() {
                let mut sent: Vec<u64> = rows.arrival.iter().zip(&rows.workload)
                    .filter(|(_, of)| **of as usize == workload).map(|(at, _)| *at).collect();
                sent.sort_unstable();
                prop_assert_eq!(sent, arrivals.iter().map(|arrival| arrival.at.0).collect::<Vec<_>>());
            }
        }
        let latencies: u128 = rows.latency.iter().map(|&latency| u128::from(latency)).sum();
        prop_assert_eq!(report.time_in_system, latencies);
        for at in 0..rows.len() {
            prop_assert_eq!((0..3).map(|stage| rows.stages[stage][at]).sum::<u64>(), rows.latency[at]);
        }
    }

    #[test]
    fn traffic_past_a_limit_conforms_over_every_interval((setup, sends) in systems()) {
        let mut log = Log::default();
        // Capacities and rates that are not round numbers.
        let mut setup = setup;
        setup.servers.iter_mut().for_each(|server| server.capacity *= 0.7);
        for limits in setup.workloads.iter_mut().flat_map(|workload| &mut workload.stages) {
            for bucket in &mut limits.limits {
                *bucket = TokenBucket::new(bucket.rate() / 3.0, bucket.burst() * 1.1).unwrap();
            }
        }
        let largest = sends.iter().map(|(arrivals, _)| {
            [0, 1, 2].map(|stage| arrivals.iter().map(|arrival| arrival.work[stage]).fold(0.0, f64::max))
        }).collect::<Vec<_>>();
        run_observed(&setup, sources(&sends), &mut WithoutOrder(&mut log)).unwrap();
        for ((workload, stage), passed) in &log.passed {
            for bucket in &setup.workloads[*workload].stages[*stage].limits {
                // A request larger than the bucket passes when the bucket is empty.
                let burst = bucket.burst().max(largest[*workload][*stage]);
                for (from, first) in passed.iter().enumerate() {
                    let mut work = 0.0;
                    for last in &passed[from..] {
                        work += last.1;
                        let may = burst + bucket.rate() * (last.0 - first.0) as f64 / 1e9;
                        prop_assert!(work <= may * (1.0 + 1e-8), "{} passed, at most {} may pass", work, may);
                    }
                }
            }
        }
    }

    #[test]
    fn links_are_work_conserving_and_respect_priorities((setup, sends) in systems()) {
        let mut log = Log::default();
        let mut setup = setup;
        // Links only, without limits, so that all arrived work waits within its limits.
        for server in &mut setup.servers {
            (server.device, server.capacity) = (None, server.capacity * 0.3);
            if server.order == Scheduling::Deadline {
                server.order = Scheduling::Priority;
            }
        }
        for limits in setup.workloads.iter_mut().flat_map(|workload| &mut workload.stages) {
            limits.limits.clear();
        }
        // Services of zero duration begin and end at the same time; here every service has some duration.
        let mut sends = sends;
        for arrival in sends.iter_mut().flat_map(|(arrivals, _)| arrivals) {
            arrival.work.iter_mut().for_each(|work| *work += 1.0);
        }
        run_observed(&setup, sources(&sends), &mut log).unwrap();
        prop_assert!(log.faults.is_empty(), "{:?}", log.faults);
        prop_assert_eq!(log.waits.values().sum::<f64>(), 0.0);
    }

    #[test]
    fn a_run_repeats((setup, sends) in systems()) {
        prop_assert_eq!(run(&setup, sources(&sends)).unwrap(), run(&setup, sources(&sends)).unwrap());
    }
}

/// Observer of passing requests only.
struct WithoutOrder<'a>(&'a mut Log);

impl Observer for WithoutOrder<'_> {
    fn passed(&mut self, at: Nanos, workload: usize, stage: Stage, work: f64) {
        self.0.passed(at, workload, stage, work);
    }
}

fn at_storage(name: &str, limits: Vec<TokenBucket>, over: OverLimit) -> Enforced {
    let mut stages: [StageLimits; 3] = Default::default();
    stages[1] = StageLimits { route: vec![0], priority: 0, limits, over };
    Enforced { name: name.into(), slo: None, weight: 1.0, stages }
}

fn read(at: u64, work: f64) -> Arrival {
    Arrival { at: Nanos(at), kind: Kind::Read, size: 4096, offset: None, work: [0.0, work, 0.0] }
}

#[test]
fn invalid_setups_are_rejected_by_name() {
    let ssd = || vec![Server::device("d", Device::ssd(4))];
    let with_workload = |servers, workload| Setup::new(servers, vec![workload]);
    let plain = || at_storage("w", Vec::new(), OverLimit::Held);
    let slo = |percentile, latency| Enforced { slo: Some(Slo { percentile, latency }), ..plain() };
    let link = Server { order: Scheduling::Shares, ..Server::link("l", 1.0) };
    let slow = at_storage("w", vec![TokenBucket::new(0.0, 1.0).unwrap()], OverLimit::Held);
    let arrivals = |rows: &[(u64, f64)]| rows.iter().map(|&(at, work)| read(at, work)).collect::<Vec<_>>();
    let setups = [
        (with_workload(vec![Server { capacity: 0.0, ..ssd().remove(0) }], plain()), arrivals(&[])),
        (with_workload(vec![Server { capacity: f64::NAN, ..ssd().remove(0) }], plain()), arrivals(&[])),
        (with_workload(vec![Server::device("d", Device::ssd(0))], plain()), arrivals(&[])),
        (with_workload(vec![Server { latency: Nanos(u64::MAX), ..ssd().remove(0) }], plain()), arrivals(&[])),
        (with_workload(vec![link], plain()), arrivals(&[])),
        (with_workload(ssd(), slo(100.0, 1.0)), arrivals(&[])),
        (with_workload(ssd(), slo(99.0, f64::NAN)), arrivals(&[])),
        (with_workload(ssd(), Enforced { weight: 0.0, ..plain() }), arrivals(&[])),
        (with_workload(Vec::new(), plain()), arrivals(&[])),
        (with_workload(ssd(), slow), arrivals(&[])),
        (Setup { packet: Some(0.5), ..with_workload(ssd(), plain()) }, arrivals(&[])),
        (Setup { window: Nanos(0), ..with_workload(ssd(), plain()) }, arrivals(&[])),
        (with_workload(ssd(), plain()), arrivals(&[(0, -1.0)])),
        (with_workload(ssd(), plain()), arrivals(&[(0, 1e-6), (9, f64::NAN)])),
        (with_workload(ssd(), plain()), arrivals(&[(9, 0.0), (8, 0.0)])),
        (with_workload(ssd(), plain()), arrivals(&[(u64::MAX, 0.0)])),
        (with_workload(ssd(), plain()), arrivals(&[(0, 1e15)])),
        (
            with_workload(
                ssd(),
                at_storage("w", vec![TokenBucket::new(1e-300, 1.0).unwrap()], OverLimit::Held),
            ),
            arrivals(&[(0, 1.0), (0, 1.0)]),
        ),
    ];
    let mut errors: Vec<String> = setups
        .into_iter()
        .map(|(setup, arrivals)| run(&setup, vec![Source::open(arrivals)]).unwrap_err().to_string())
        .collect();
    let fine = with_workload(ssd(), plain());
    errors.push(run(&fine, Vec::new()).unwrap_err().to_string());
    errors.push(run(&fine, vec![Source::closed(0, arrivals(&[(0, 1.0)]))]).unwrap_err().to_string());
    errors.push(run(&fine, vec![Source::closed(1, arrivals(&[(0, 0.0)]))]).unwrap_err().to_string());
    insta::assert_snapshot!(errors.join("\n"));
}

#[test]
fn a_workload_without_stages_completes_at_once_and_delays_no_other() {
    let nowhere =
        Enforced { stages: Default::default(), ..at_storage("nowhere", Vec::new(), OverLimit::Held) };
    let served = at_storage("served", Vec::new(), OverLimit::Held);
    let mut setup = Setup::new(vec![Server::device("d", Device::ssd(1))], vec![nowhere, served]);
    setup.rows = true;
    let sends = |times: [u64; 3]| Source::open(times.map(|at| read(at, 5e-9)));
    let report = run(&setup, vec![sends([0, 2, 30]), sends([0, 2, 20])]).unwrap();
    let rows = report.rows.unwrap();
    let latencies = |index: u32| -> Vec<(u64, u64)> {
        let all = rows.workload.iter().zip(&rows.arrival).zip(&rows.latency);
        all.filter(|((workload, _), _)| **workload == index)
            .map(|((_, &at), &latency)| (at, latency))
            .collect()
    };
    assert_eq!(latencies(0), [(0, 0), (2, 0), (30, 0)]);
    assert_eq!(latencies(1), [(0, 5), (2, 8), (20, 5)]);
    assert_eq!((report.end, report.time_in_system), (Nanos(30), 18));
}

#[test]
fn an_endless_source_ends_with_the_run() {
    let mut setup = Setup::new(
        vec![Server::device("d", Device::ssd(4))],
        vec![at_storage("w", Vec::new(), OverLimit::Held)],
    );
    setup.until = Some(Nanos::SECOND);
    let report = run(&setup, vec![Source::closed(3, std::iter::repeat(read(0, 1e-3)))]).unwrap();
    assert_eq!(report.workloads[0].latency.count(), 1002);
    let endless = (0..).map(|index| read(index * 2_000_000, 1e-3));
    assert_eq!(run(&setup, vec![Source::open(endless)]).unwrap().workloads[0].latency.count(), 500);
}

#[test]
fn concurrent_requests_at_a_device_overlap_their_latencies() {
    for (outstanding, per_second) in [(1, 10_000), (4, 40_000), (10, 100_000), (32, 100_000)] {
        let device = Device { read_latency: Nanos(90_000), ..Device::ssd(outstanding) };
        let mut setup =
            Setup::new(vec![Server::device("d", device)], vec![at_storage("w", Vec::new(), OverLimit::Held)]);
        setup.until = Some(Nanos::SECOND);
        let report =
            run(&setup, vec![Source::closed(outstanding, std::iter::repeat(read(0, 10e-6)))]).unwrap();
        let count = report.workloads[0].latency.count();
        assert!(count.abs_diff(per_second) <= u64::from(outstanding), "{count} with {outstanding} at once");
    }
}

#[test]
fn shares_are_of_device_time_and_an_idle_workload_gains_no_credit() {
    let weigh = |weight| Enforced { weight, ..at_storage("w", Vec::new(), OverLimit::Held) };
    let server = Server { order: Scheduling::Shares, ..Server::device("d", Device::ssd(1)) };
    let mut setup = Setup::new(vec![server], vec![weigh(1.0), weigh(3.0), weigh(2.0)]);
    setup.until = Some(Nanos::SECOND);
    // The third workload is idle for half the time, and gets at most its share afterwards.
    let late = Source::Closed {
        outstanding: 2,
        from: Nanos(Nanos::SECOND.0 / 2),
        requests: Box::new(std::iter::repeat(read(0, 30e-6))),
    };
    let sources = vec![
        Source::closed(2, std::iter::repeat(read(0, 10e-6))),
        Source::closed(2, std::iter::repeat(read(0, 50e-6))),
        late,
    ];
    let report = run(&setup, sources).unwrap();
    let time = |workload: usize, work: f64| report.workloads[workload].latency.count() as f64 * work;
    let (a, b, c) = (time(0, 10e-6), time(1, 50e-6), time(2, 30e-6));
    assert!((a - (0.125 + 0.5 / 6.0)).abs() < 3e-4, "{a}");
    assert!((b - (0.375 + 1.5 / 6.0)).abs() < 3e-4, "{b}");
    assert!((c - 1.0 / 6.0).abs() < 3e-4, "{c}");
}

#[test]
fn demotion_slows_an_excessive_sender_only_at_a_busy_device() {
    let limits = vec![TokenBucket::new(0.2, 1e-3).unwrap()];
    let greedy = at_storage("greedy", limits, OverLimit::Demoted);
    let setup = |others: Vec<Enforced>| {
        let workloads = [vec![greedy.clone()], others].concat();
        Setup {
            until: Some(Nanos::SECOND),
            ..Setup::new(vec![Server::device("d", Device::ssd(1))], workloads)
        }
    };
    let all = || Source::closed(8, std::iter::repeat(read(0, 100e-6)));
    let alone = run(&setup(Vec::new()), vec![all()]).unwrap();
    assert!(alone.workloads[0].latency.count() >= 10_000);
    // Another workload of the same priority without limits is always busy; the greedy workload keeps its rate.
    let contended =
        run(&setup(vec![at_storage("w", Vec::new(), OverLimit::Held)]), vec![all(), all()]).unwrap();
    let share = contended.workloads[0].latency.count() as f64 * 100e-6;
    assert!((0.19..0.22).contains(&share), "{share}");
}

#[test]
fn feedback_lowers_the_tail_of_a_late_workload() {
    use leeward_requests::Cake;
    let last_tail = |order: Scheduling| {
        let slo = Some(Slo { percentile: 90.0, latency: 2e-3 });
        let workloads = vec![
            Enforced { slo, ..at_storage("w", Vec::new(), OverLimit::Held) },
            at_storage("copy", Vec::new(), OverLimit::Held),
        ];
        let server = Server { order, ..Server::device("d", Device::ssd(1)) };
        let setup =
            Setup { until: Some(Nanos(200 * Nanos::SECOND.0)), ..Setup::new(vec![server], workloads) };
        // A load of half the device, in bursts of twenty requests.
        let bursts = (0..).flat_map(|burst| (0..20).map(move |_| read(burst * 10_000_000, 250e-6)));
        let copy = Source::closed(4, std::iter::repeat(read(0, 250e-6)));
        let report = run(&setup, vec![Source::open(bursts), copy]).unwrap();
        let last = report.workloads[0].windows.last().unwrap().tail;
        last.0
    };
    let (equal, feedback) = (last_tail(Scheduling::Shares), last_tail(Scheduling::Cake(Cake::default())));
    assert!(feedback < equal * 7 / 10, "{feedback} ns with feedback, {equal} ns with equal shares");
}

#[test]
fn an_error_is_at_most_64_bytes() {
    assert!(std::mem::size_of::<RequestsError>() <= 64);
}

mod of_system {
    use std::sync::Arc;

    use leeward_calculus::ArrivalCurve;
    use leeward_slo::bound::BoundSettings;
    use leeward_slo::{Demand, Promise, Queue, System, Workload};

    use super::*;

    fn queue(name: &str, capacity: f64) -> Queue {
        Queue { name: name.into(), capacity, latency: 0.0, resource: None }
    }

    fn promise(name: &str, rows: &[(Stage, usize, f64)]) -> Promise {
        let demand = |&(stage, _, burst): &(Stage, usize, f64)| Demand {
            stage,
            arrivals: TokenBucket::new(burst, burst).unwrap().into(),
            largest: burst,
            model: None,
            unloaded: 0.0,
            outstanding: None,
        };
        let demands: Vec<Demand> = rows.iter().map(demand).collect();
        let limits: Vec<ArrivalCurve> = demands.iter().map(|demand| demand.arrivals.clone()).collect();
        let workload = Workload { name: name.into(), slo: None, demands, dependencies: Vec::new() };
        Promise {
            workload: Arc::new(workload),
            route: rows.iter().map(|row| vec![row.1]).collect(),
            priorities: vec![1; rows.len()],
            limits,
        }
    }

    #[test]
    fn a_setup_of_a_system_enforces_its_promises() {
        let queues = vec![queue("in", 1e6), queue("ssd", 1.0), queue("out", 1e6)];
        let rows = [(Stage::NetworkIn, 0, 1e3), (Stage::Storage, 1, 1e-3), (Stage::NetworkOut, 2, 2e3)];
        let system = System { queues, promises: vec![promise("w", &rows)] };
        let setup =
            Setup::of_system(&system, BoundSettings { outstanding: Some(4), ..BoundSettings::default() })
                .unwrap();
        let devices: Vec<bool> = setup.servers.iter().map(|server| server.device.is_some()).collect();
        assert_eq!(devices, [false, true, false]);
        let over: Vec<OverLimit> = setup.workloads[0].stages.iter().map(|limits| limits.over).collect();
        assert_eq!(over, [OverLimit::Held, OverLimit::Demoted, OverLimit::Held]);
        let arrival = Arrival { work: [1e3, 1e-3, 2e3], ..read(0, 0.0) };
        let report = run(&setup, vec![Source::open([arrival])]).unwrap();
        assert_eq!(report.workloads[0].latency.largest(), Nanos(4_000_000));
        // A latency comes once, after the service; the next request is served meanwhile.
        let mut slower = system.clone();
        slower.queues[1].latency = 5e-3;
        let setup = Setup::of_system(&slower, BoundSettings::default()).unwrap();
        let two = [Arrival { work: [0.0, 1e-3, 0.0], ..read(0, 0.0) }; 2];
        let late = run(&setup, vec![Source::open(two)]).unwrap();
        assert_eq!(late.workloads[0].latency.largest(), Nanos(7_000_000));
        assert_eq!((late.servers[1].busy, late.servers[1].starved), (Nanos(2_000_000), Nanos(0)));
        assert_eq!(
            report.workloads[0].stages.map(|(_, largest)| largest.0),
            [1_000_000, 1_000_000, 2_000_000]
        );
    }

    #[test]
    fn an_inconsistent_system_is_rejected_by_name() {
        let queues = || vec![queue("in", 1e6), queue("ssd", 1.0)];
        let mut short = promise("w", &[(Stage::NetworkIn, 0, 1e3), (Stage::Storage, 1, 1e-3)]);
        short.priorities.pop();
        let twice = promise("w", &[(Stage::Storage, 1, 1e-3), (Stage::Storage, 1, 1e-3)]);
        let both = promise("w", &[(Stage::NetworkIn, 1, 1e3), (Stage::Storage, 1, 1e-3)]);
        let error = |promise| {
            let system = System { queues: queues(), promises: vec![promise] };
            Setup::of_system(&system, BoundSettings { outstanding: Some(4), ..BoundSettings::default() })
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            error(short),
            "workload w: 2 routes, 1 priorities and 2 limits: expected one of each for its 2 demands"
        );
        assert_eq!(error(twice), "workload w: two demands at storage: expected at most one");
        assert_eq!(
            error(both),
            "server ssd: on the routes of both a storage and a network stage: expected one of them"
        );
    }
}
