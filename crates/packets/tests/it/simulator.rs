//! The packet simulator conserves bytes, ends flows, repeats runs, follows demand with its weeks, and reproduces
//! figures of the Etalon paper.

use std::sync::Mutex;

use leeward_circuits::schedulers::rotor_schedule;
use leeward_circuits::switch::{Resize, Via};
use leeward_circuits::{Day, Matching, Schedule};
use leeward_fabric::Nanos;
use leeward_packets::workload::lists::{Transfer, listed, long};
use leeward_packets::workload::{Flow, Place};
use leeward_packets::{Demand, Plan, Settings, Simulator, SimulatorError};
use leeward_tcp::control::Control;
use proptest::prelude::*;

const MS: u64 = 1_000_000;

/// Days of 180 us after nights of 20 us; on day k rack i sends to rack i + k (Etalon, figure 4).
fn strobe(racks: usize) -> Schedule {
    rotor_schedule(racks, Nanos(20_000), Nanos(180_000)).expect("a schedule")
}

/// A day with circuits from rack i to rack i + step.
fn ring(racks: usize, step: usize, length: u64) -> Day {
    let sources = (0..racks).map(|to| Some(((to + racks - step) % racks) as u32)).collect();
    Day { matching: Matching::new(sources).expect("a matching"), length: Nanos(length) }
}

/// A small network: 4 racks of 2 hosts.
fn small() -> Settings {
    Settings { hosts_per_rack: 2, ..Settings::etalon(4) }
}

fn place(host: u32) -> Place {
    Place { rack: host / 2, host: host % 2 }
}

fn transfers(flows: &[(u32, u32, u64, u64)]) -> leeward_packets::workload::Workload {
    let transfers: Vec<Transfer> = flows
        .iter()
        .map(|&(source, destination, start, bytes)| Transfer {
            flow: Flow { source: place(source), destination: place(destination), class: 0 },
            start: Nanos(start),
            bytes,
        })
        .collect();
    listed(4, 2, &transfers).expect("a valid workload")
}

fn flow() -> impl Strategy<Value = (u32, u32, u64, u64)> {
    (0_u32..8, 1_u32..8, 0..2 * MS, prop_oneof![1_u64..10_000, 1_u64..500_000])
        .prop_map(|(source, step, start, bytes)| (source, (source + step) % 8, start, bytes))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn bytes_sent_are_delivered_queued_or_dropped_and_every_flow_ends(
        flows in prop::collection::vec(flow(), 1..30),
        voq in 1_u32..20,
        loss in 0_u32..6,
        control in prop::sample::select(vec![Control::Reno, Control::Cubic, Control::Dctcp, Control::RETCP]),
        divisions in 1_u8..3,
        early in prop::option::of(0_u64..700),
        jitter in 0_u64..2000,
        moments in prop::collection::vec(1_u64..300_000, 1..20),
        circuits: bool,
    ) {
        let mut settings = small();
        settings.switch.voq_capacity = voq;
        settings.switch.loss_capacity = loss;
        settings.switch.mark_at = Some(8);
        settings.switch.resize = early.map(|us| Resize::new(voq, voq + 20, Nanos(us * 1000)).expect("small is at most big"));
        settings.switch.circuit_marks = early.map(|us| Nanos(us * 1000));
        settings.tcp.control = control;
        settings.tcp.divisions = divisions;
        settings.jitter = Nanos(jitter);
        let plan = if circuits { Plan::Fixed(strobe(4)) } else { Plan::Packets };
        let mut simulator = Simulator::new(settings, plan, transfers(&flows)).expect("a valid setup");
        let mut now = 0;
        for step in moments.into_iter().chain([20_000 * MS]) {
            now += step;
            simulator.run(Nanos(now)).expect("a valid run");
            let held = simulator.in_switch();
            let records = simulator.records();
            let [packet, circuit] = records.delivered;
            prop_assert_eq!(
                records.sent.bytes,
                packet.bytes + circuit.bytes + records.local.bytes + records.dropped.bytes + held
            );
            prop_assert_eq!(
                records.latency(Via::Packet).total() + records.latency(Via::Circuit).total() <= records.data_packets,
                true
            );
        }
        prop_assert!(simulator.is_finished(), "20 s are enough");
        let records = simulator.records();
        prop_assert_eq!(records.delivered[Via::Circuit as usize].bytes > 0 && !circuits, false);
        for (record, &(.., start, bytes)) in records.flows.iter().zip(&flows) {
            prop_assert_eq!((record.written, record.delivered), (bytes, bytes));
            prop_assert_eq!(record.began, Some(Nanos(start)));
            // The bytes need at least this time to pass a NIC.
            prop_assert!(record.finished.is_some_and(|at| at.0 >= start + bytes * 8 / 10));
            prop_assert!(record.segments >= bytes.div_ceil(8948));
        }
    }

    #[test]
    fn runs_of_one_seed_are_identical(flows in prop::collection::vec(flow(), 5..20), seed: u64) {
        let run = |seed| {
            let settings = Settings { seed, jitter: Nanos(1000), ..small() };
            let mut simulator =
                Simulator::new(settings, Plan::Fixed(strobe(4)), transfers(&flows)).expect("a valid setup");
            simulator.run(Nanos(100 * MS)).expect("a valid run");
            simulator.records().clone()
        };
        prop_assert_eq!(run(seed), run(seed));
    }
}

#[test]
fn seeds_differ_where_hosts_jitter() {
    let run = |seed| {
        let settings = Settings { seed, jitter: Nanos(1000), ..small() };
        let flows = [(0, 2, 0, 1 << 22), (1, 3, 0, 1 << 22), (4, 2, 0, 1 << 22)];
        let mut simulator =
            Simulator::new(settings, Plan::Fixed(strobe(4)), transfers(&flows)).expect("a valid setup");
        simulator.run(Nanos(100 * MS)).expect("a valid run");
        simulator.records().flows.iter().map(|flow| flow.finished).collect::<Vec<_>>()
    };
    assert_ne!(run(1), run(2));
}

#[test]
fn a_lone_flow_takes_the_sum_of_its_link_times() {
    // A segment with 948 bytes of payload takes 0.8 us on each of three links of 10 Gb/s. Propagation on two of these
    // links takes 10 us in total.
    let mut simulator =
        Simulator::new(small(), Plan::Packets, transfers(&[(0, 2, 500, 948)])).expect("a valid setup");
    simulator.run(Nanos(MS)).expect("a valid run");
    assert_eq!(simulator.records().flows[0].finished, Some(Nanos(500 + 3 * 800 + 10_000)));
    // On a circuit: two links, and 30 us of propagation.
    let always = Schedule::new(4, Nanos(0), vec![ring(4, 1, MS)]).expect("a schedule");
    let mut simulator =
        Simulator::new(small(), Plan::Fixed(always), transfers(&[(0, 2, 500, 948)])).expect("a valid setup");
    simulator.run(Nanos(MS)).expect("a valid run");
    assert_eq!(simulator.records().flows[0].finished, Some(Nanos(500 + 800 + 100 + 30_000)));
    // In a rack: one link.
    let mut simulator =
        Simulator::new(small(), Plan::Packets, transfers(&[(0, 1, 0, 948)])).expect("a valid setup");
    simulator.run(Nanos(10 * MS)).expect("a valid run");
    let records = simulator.records();
    assert_eq!(records.flows[0].finished, Some(Nanos(800)));
    // The data and its acknowledgement, which is delayed by 2 ms.
    assert_eq!((records.local.packets, records.delivered[0].packets), (2, 0));
}

#[test]
fn a_week_follows_demand_and_starts_when_the_previous_one_ends() {
    for demand in [Demand::Queues, Demand::Adus, Demand::Sockets, Demand::Oracle] {
        let demands = Mutex::new(Vec::new());
        let planner = Box::new(|bytes: &[u64]| {
            demands.lock().expect("no thread panics").push(bytes[1]);
            // A long day if there is demand; otherwise a short day without circuits.
            let length = if bytes[1] > 0 { 480_000 } else { 180_000 };
            let none =
                Day { matching: Matching::new(vec![None; 4]).expect("a matching"), length: Nanos(length) };
            let day = if bytes[1] > 0 { ring(4, 1, length) } else { none };
            Ok(Schedule::new(4, Nanos(20_000), vec![day]).expect("a schedule"))
        });
        let plan = Plan::Weekly { demand, ahead: Nanos(1000), planner };
        // Two hosts send from 0.3 ms on, so they queue. The flow within the rack is no demand.
        let flows = [(0, 2, 300_000, 2_000_000), (1, 3, 300_000, 2_000_000), (4, 5, 0, 1_000_000)];
        let mut simulator = Simulator::new(small(), plan, transfers(&flows)).expect("a valid setup");
        simulator.run(Nanos(20 * MS)).expect("a valid run");
        assert!(simulator.is_finished());
        let days: Vec<(u64, u64)> = simulator
            .records()
            .days
            .iter()
            .filter(|day| (day.source, day.destination) == (0, 1))
            .map(|day| (day.began.0, day.ended.0))
            .collect();
        drop(simulator);
        let demands = demands.into_inner().expect("no thread panics");
        // No demand at 0 and at 199 us, so two weeks of 200 us; then weeks of 500 us.
        assert_eq!(demands[..2], [0, 0], "{demand:?}");
        assert!(demands[2] > 0, "{demand:?}: {demands:?}");
        assert_eq!(days[0], (420_000, 900_000), "{demand:?}");
        assert_eq!(demands.last(), Some(&0), "{demand:?}");
        match demand {
            // At 399 us the switch has seen at most 99 us of two hosts' 10 Gb/s.
            Demand::Adus => assert!((3_740_000..4_000_000).contains(&demands[2]), "{demands:?}"),
            Demand::Queues => assert!(demands[2] <= 21 * 9000, "{demands:?}"),
            Demand::Sockets | Demand::Oracle => {
                assert!((3_740_000..=4_000_000).contains(&demands[2]), "{demands:?}")
            }
        }
    }
}

#[test]
fn samples_record_queues_and_delivered_bytes() {
    let settings = Settings { sample_every: Some(Nanos(100_000)), sampled: vec![(0, 1), (2, 3)], ..small() };
    let flows = [(0, 2, 0, 10_000_000), (1, 3, 0, 10_000_000)];
    let mut simulator =
        Simulator::new(settings, Plan::Fixed(strobe(4)), transfers(&flows)).expect("a valid setup");
    simulator.run(Nanos(50 * MS)).expect("a valid run");
    let samples = &simulator.records().samples;
    assert_eq!(samples.len(), 2 * 501);
    let pair: Vec<_> = samples.iter().filter(|sample| sample.source == 0).collect();
    assert!(
        pair.windows(2)
            .all(|two| two[1].at.0 - two[0].at.0 == 100_000 && two[0].delivered <= two[1].delivered)
    );
    assert!(pair.iter().any(|sample| sample.packets > 0) && pair.iter().all(|sample| sample.packets <= 21));
    assert_eq!(pair.last().map(|sample| sample.delivered), Some(20_000_000));
    assert!(samples.iter().filter(|sample| sample.source == 2).all(|sample| sample.delivered == 0));
}

#[test]
fn invalid_setups_are_named() {
    let problem_of = |settings, plan, workload| {
        let problem = |simulator: Result<Simulator, SimulatorError>| match simulator {
            Err(error) => error.to_string(),
            Ok(mut simulator) => simulator.run(Nanos(MS)).expect_err("an invalid setup").to_string(),
        };
        problem(Simulator::new(settings, plan, workload))
    };
    let flows = || transfers(&[(0, 2, 0, 100)]);
    assert_eq!(
        problem_of(Settings { hosts_per_rack: 0, ..small() }, Plan::Packets, flows()),
        "hosts_per_rack: 0: must be above 0"
    );
    let mut settings = small();
    settings.switch.racks = 0;
    assert_eq!(problem_of(settings, Plan::Packets, flows()), "switch: 0 racks: must be 1 to 1024");
    let mut settings = small();
    settings.tcp.mss = 0;
    assert_eq!(problem_of(settings, Plan::Packets, flows()), "tcp: mss: 0: must be above 0");
    assert_eq!(
        problem_of(Settings { sampled: vec![(0, 4)], ..small() }, Plan::Packets, flows()),
        "sampled: pair 0 to 4 does not exist: the network has 4 racks, numbered from 0"
    );
    assert_eq!(problem_of(small(), Plan::Fixed(strobe(8)), flows()), "schedule of 8 racks: must be of 4");
    assert_eq!(
        problem_of(Settings::etalon(4), Plan::Packets, flows()),
        "workload for 4 racks of 2 hosts: expected 4 racks of 16"
    );
    let planner = Box::new(|_: &[u64]| Err("no matching".to_owned()));
    assert_eq!(
        problem_of(small(), Plan::Weekly { demand: Demand::Adus, ahead: Nanos(0), planner }, flows()),
        "schedule request at 0 ns: no matching"
    );
}

/// Figures 6a, 7a and 9 for queues of one size.
struct Static {
    utilization: f64,
    p99_us: f64,
    packet_median_us: f64,
}

fn figure_6(voq: u32, early: Option<u64>) -> Static {
    let mut settings = Settings::etalon(8);
    settings.switch.voq_capacity = voq;
    settings.switch.resize =
        early.map(|us| Resize::new(voq, 128, Nanos(us * 1000)).expect("small is at most big"));
    let flows = long(8, 16, [0, 1], 16, 1 << 40).expect("a valid workload");
    let mut simulator = Simulator::new(settings, Plan::Fixed(strobe(8)), flows).expect("a valid setup");
    simulator.run(Nanos(2_000 * MS)).expect("a valid run");
    let records = simulator.records();
    let us = |quantile: Option<Nanos>| quantile.expect("packets").0 as f64 / 1e3;
    Static {
        utilization: 100.0 * records.circuit_utilization(0, 1, 80e9, Nanos(0)).expect("days"),
        p99_us: us(records.all_latencies().quantile(0.99)),
        packet_median_us: us(records.latency(Via::Packet).quantile(0.5)),
    }
}

#[test]
fn larger_queues_use_circuits_and_cost_latency_as_in_figures_6_7_and_9() {
    // Queue size in packets, and the paper's circuit utilization in percent, 99th percentile of latency in us, and
    // median latency over the packet switch in us.
    let paper = [
        (4, 16.0, 55.7, 42.1),
        (8, 25.0, 84.1, 70.9),
        (16, 39.0, 140.8, 128.1),
        (32, 61.0, 257.8, 236.0),
        (64, 92.0, 485.0, 453.1),
        (128, 99.0, 944.0, 590.1),
    ];
    let ours = paper.map(|(voq, ..)| figure_6(voq, None));
    assert!(ours.windows(2).all(|two| two[0].utilization < two[1].utilization));
    for ((voq, utilization, p99, median), ours) in paper.into_iter().zip(&ours) {
        println!(
            "{voq:>4}: utilization {:5.1}, paper {utilization:5.1}; p99 {:6.1}, paper {p99:6.1}; median {:6.1}, paper {median:6.1}",
            ours.utilization, ours.p99_us, ours.packet_median_us
        );
        assert!((ours.utilization - utilization).abs() < 16.0, "queue of {voq}");
        assert!((ours.p99_us - p99).abs() < 0.05 * p99, "queue of {voq}");
        // The smallest queues are empty more often here than in the paper.
        assert!(voq <= 8 || (ours.packet_median_us - median).abs() < 0.03 * median, "queue of {voq}");
    }
}

#[test]
fn the_earlier_queues_grow_the_more_circuits_are_used_as_in_figure_6b() {
    let paper = [
        (0, 39.0),
        (200, 52.0),
        (400, 56.0),
        (600, 65.0),
        (800, 79.0),
        (1000, 88.0),
        (1200, 100.0),
        (1400, 100.0),
    ];
    for (early, utilization) in paper {
        let ours = figure_6(16, Some(early)).utilization;
        println!("{early:>5} us: {ours:5.1}, paper {utilization:5.1}");
        assert!((ours - utilization).abs() < 16.0, "{early} us early");
    }
}
