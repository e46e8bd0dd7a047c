//! Hybrid switch: bytes are conserved, order is kept, rates and times are exact.

use leeward_circuits::schedulers::rotor_schedule;
use leeward_circuits::switch::{
    Ecn, Event, Full, Output, Packet, Resize, Settings, SettingsError, Switch, SwitchError, Via,
};
use leeward_circuits::{Day, Matching, Schedule};
use leeward_fabric::{Bandwidth, Nanos};
use proptest::prelude::*;

const MTU: u32 = 9000;

/// Days of 180 us after nights of 20 us; on day k rack i sends to rack i + k (Etalon, figure 4).
fn strobe(racks: usize) -> Schedule {
    rotor_schedule(racks, Nanos(20_000), Nanos(180_000)).expect("a schedule")
}

fn packet(payload: u64, source: u32, destination: u32, bytes: u32) -> Packet<u64> {
    Packet { payload, source, destination, bytes, ecn: Ecn::Incapable, entered: Nanos(0) }
}

fn step(switch: &mut Switch<u64>, now: u64, event: Event<u64>) -> Vec<Output<u64>> {
    let mut out = Vec::new();
    switch.step(Nanos(now), event, &mut out).expect("a valid event");
    out.retain(|output| !matches!(output, Output::Circuit { .. }));
    out
}

/// Sends a packet of a pair whenever its queue has room, until `until`, so that the queue is never empty. Returns all
/// outputs.
fn saturate(switch: &mut Switch<u64>, source: u32, destination: u32, until: u64) -> Vec<Output<u64>> {
    let (mut out, mut now, mut sent) = (Vec::new(), 0, 0);
    while now < until {
        let (source_rack, destination_rack) = (source as usize, destination as usize);
        while switch.queued(source_rack, destination_rack).0 < switch.capacity(source_rack, destination_rack)
        {
            out.extend(step(switch, now, Event::Arrive(packet(sent, source, destination, MTU))));
            sent += 1;
        }
        now = switch.wake_at().map_or(until, |at| at.0.min(until));
        out.extend(step(switch, now, Event::Wake));
    }
    out
}

/// Sorted latencies in ns of the packets that one of the switches delivered.
fn latencies(out: &[Output<u64>], by: Via) -> Vec<u64> {
    let mut latencies: Vec<u64> = out
        .iter()
        .filter_map(|output| match output {
            Output::Deliver { packet, at, via, .. } if *via == by => Some(at.0 - packet.entered.0),
            _ => None,
        })
        .collect();
    latencies.sort_unstable();
    latencies
}

#[test]
fn days_weeks_and_rates_are_those_of_table_1_exactly() {
    let mut switch = Switch::new(Settings::etalon(8)).expect("valid settings");
    assert!(step(&mut switch, 0, Event::NewWeek(strobe(8))).is_empty());
    // The queue is never empty for 20 weeks.
    let weeks = 20;
    let out = saturate(&mut switch, 0, 1, weeks * 1_400_000);
    let circuit: Vec<u64> = out
        .iter()
        .filter_map(|output| match output {
            Output::Deliver { at, via: Via::Circuit, .. } => Some(at.0),
            _ => None,
        })
        .collect();
    // 180 us of 80 Gb/s are 200 packets of 9000 bytes: the first is complete 0.9 us into the day and leaves the circuit
    // 30 us later.
    assert_eq!(circuit.len() as u64, weeks * 200);
    for (week, day) in circuit.chunks(200).enumerate() {
        let began = week as u64 * 1_400_000 + 20_000;
        let expected: Vec<u64> = (1..=200).map(|sent| began + sent * 900 + 30_000).collect();
        assert_eq!(day, expected);
    }
    // The packet switch serves the pair for the other 1200 us, with consecutive packets of 7.2 us; the last packet
    // begins in this time.
    let packets: Vec<u64> = out
        .iter()
        .filter_map(|output| match output {
            Output::Deliver { at, via: Via::Packet, .. } => Some(at.0),
            _ => None,
        })
        .collect();
    let second: Vec<u64> = packets.iter().copied().filter(|at| (200_000..1_600_000).contains(at)).collect();
    assert!(second.windows(2).all(|pair| pair[1] - pair[0] == 7_200), "10 Gb/s");
    // Two links of 5 us, and a packet of 7.2 us on each.
    assert_eq!(second.first(), Some(&(200_000 + 2 * 7_200 + 2 * 5_000)));
    assert_eq!(second.len(), 1_200_000_usize.div_ceil(7_200));
    let balance = switch.balance();
    assert_eq!(
        balance.entered,
        balance.by_packet + balance.by_circuit + balance.dropped + switch.buffered_bytes()
    );
    assert_eq!(balance.dropped, 0);
    assert_eq!(switch.sent_bytes(0, 1, Via::Circuit), weeks * 1_800_000);
}

#[test]
fn a_full_queue_drains_in_its_length_over_the_packet_rate() {
    // Delay of a packet at the end of a full queue. It includes the packet that was on the uplink at its arrival, the
    // packets before it, its own time on two links, and the delays of both links. Etalon's queues are nearly always
    // full at the 99th percentile (figure 9), and one to four packets shorter at the median (figure 7a).
    for (capacity, p99, median) in [(16_u32, 140_800_u64, 128_100_u64), (64, 485_000, 453_100)] {
        let mut switch =
            Switch::new(Settings { voq_capacity: capacity, ..Settings::etalon(8) }).expect("valid settings");
        let out = saturate(&mut switch, 0, 1, 20_000_000);
        let latencies = latencies(&out, Via::Packet);
        let latency = latencies[latencies.len() / 2];
        assert_eq!(latency, (u64::from(capacity) + 2) * 7_200 + 10_000);
        assert!(latency.abs_diff(p99) * 100 <= p99, "{latency} ns, paper {p99}");
        assert!((1..=5).contains(&((latency - median) / 7_200)), "{latency} ns, paper {median}");
    }
}

#[test]
fn a_circuit_alone_takes_its_delay_and_the_packet() {
    let mut switch = Switch::new(Settings::etalon(8)).expect("valid settings");
    step(&mut switch, 0, Event::NewWeek(strobe(8)));
    step(&mut switch, 50_000, Event::Arrive(packet(1, 0, 1, MTU)));
    let out = step(&mut switch, 1_000_000, Event::Wake);
    let [Output::Deliver { at, via: Via::Circuit, circuit_mark: false, .. }] = out[..] else {
        panic!("{out:?}")
    };
    assert_eq!(at, Nanos(50_000 + 900 + 30_000));
}

#[test]
fn no_packet_starts_on_a_circuit_that_would_end_in_the_night() {
    let mut switch = Switch::new(Settings::etalon(2)).expect("valid settings");
    step(&mut switch, 0, Event::NewWeek(strobe(2)));
    // The packet takes 900 ns and would end 1 ns after the day's end at 200 us, so it leaves after the night.
    step(&mut switch, 200_000 - 899, Event::Arrive(packet(1, 0, 1, MTU)));
    let out = step(&mut switch, 1_000_000, Event::Wake);
    let [Output::Deliver { at, via: Via::Circuit, .. }] = out[..] else { panic!("{out:?}") };
    assert_eq!(at, Nanos(220_000 + 900 + 30_000));
}

#[test]
fn packets_sent_back_go_first_and_are_lost_beyond_five() {
    // Seven racks send to one: its downlink carries a seventh of the arrivals, and each pair has 3 places in the packet
    // switch.
    let mut switch =
        Switch::new(Settings { voq_capacity: 64, ..Settings::etalon(8) }).expect("valid settings");
    let mut out = Vec::new();
    for sent in 0..64 {
        for source in 1..8 {
            out.extend(step(&mut switch, 0, Event::Arrive(packet(sent, source, 0, MTU))));
        }
    }
    out.extend(step(&mut switch, 100_000_000, Event::Wake));
    let delivered = latencies(&out, Via::Packet);
    assert_eq!(delivered.len(), 7 * 64, "large packets are few enough on the uplink for five places");
    assert_eq!(switch.buffered_bytes(), 0);

    // An uplink holds many small packets. The night holds all packets that come back.
    for sent in 0..64 {
        for source in 1..8 {
            step(&mut switch, 100_000_000, Event::Arrive(packet(sent, source, 0, 52)));
        }
    }
    let day = Day {
        matching: Matching::new(vec![Some(1), None, None, None, None, None, None, None]).expect("a matching"),
        length: Nanos(180_000),
    };
    let week = Schedule::new(8, Nanos(20_000), vec![day]).expect("a schedule");
    let mut out = step(&mut switch, 100_005_000, Event::NewWeek(week));
    out.extend(step(&mut switch, 200_000_000, Event::Wake));
    let lost: Vec<u32> = out
        .iter()
        .filter_map(|output| match output {
            Output::Drop { packet, by: Full::Loss, .. } => Some(packet.source),
            _ => None,
        })
        .collect();
    assert!(!lost.is_empty() && lost.iter().all(|&source| source == 1), "{lost:?}");
    let circuit: Vec<u64> = out
        .iter()
        .filter_map(|output| match output {
            Output::Deliver { packet, via: Via::Circuit, .. } => Some(packet.payload),
            _ => None,
        })
        .collect();
    assert_eq!(circuit.len(), 5, "the loss queue");
}

#[test]
fn queues_grow_ahead_of_a_day_and_circuits_are_announced() {
    let resize = Resize::new(16, 128, Nanos(600_000)).expect("small is at most big");
    let settings =
        Settings { resize: Some(resize), circuit_marks: Some(Nanos(100_000)), ..Settings::etalon(8) };
    let mut switch = Switch::new(settings).expect("valid settings");
    step(&mut switch, 0, Event::NewWeek(strobe(8)));
    let mut seen = Vec::new();
    let mut marks = Vec::new();
    for now in (0..2_800_000).step_by(10_000) {
        // Day 5 leads from rack 0 to rack 5, from 820 us to 1000 us of each week.
        let mut out = step(&mut switch, now, Event::Wake);
        let capacity = switch.capacity(0, 5);
        if seen.last().is_none_or(|&(_, last)| last != capacity) {
            seen.push((now, capacity));
        }
        // Packets in the opposite direction carry the announcement.
        out.extend(step(&mut switch, now, Event::Arrive(packet(now, 5, 0, 52))));
        for output in out {
            let Output::Deliver { at, circuit_mark, .. } = output else { panic!("{output:?}") };
            if marks.last().is_none_or(|&(_, last)| last != circuit_mark) {
                marks.push((at.0 / 10_000 * 10, circuit_mark));
            }
        }
    }
    assert_eq!(seen, [(0, 16), (220_000, 128), (1_000_000, 16), (1_620_000, 128), (2_400_000, 16)]);
    assert_eq!(marks, [(10, false), (720, true), (1_000, false), (2_120, true), (2_400, false)]);
}

#[test]
fn queues_without_time_to_grow_before_a_day_stay_small() {
    let resize = Resize::new(16, 128, Nanos(0)).expect("small is at most big");
    let settings = Settings { resize: Some(resize), ..Settings::etalon(8) };
    let mut switch = Switch::new(settings).expect("valid settings");
    step(&mut switch, 0, Event::NewWeek(strobe(8)));
    for now in (0..2_800_000).step_by(10_000) {
        step(&mut switch, now, Event::Wake);
        assert_eq!(switch.capacity(0, 5), 16, "at {now} ns");
    }
}

#[test]
fn packets_are_marked_above_a_queue_length_if_ecn_capable() {
    let mut switch =
        Switch::new(Settings { mark_at: Some(2), ..Settings::etalon(2) }).expect("valid settings");
    for sent in 0..6 {
        let ecn = if sent == 5 { Ecn::Incapable } else { Ecn::Capable };
        step(&mut switch, 0, Event::Arrive(Packet { ecn, ..packet(sent, 0, 1, MTU) }));
    }
    let out = step(&mut switch, 1_000_000, Event::Wake);
    let marked: Vec<bool> = out
        .iter()
        .filter_map(|output| match output {
            Output::Deliver { packet, .. } => Some(packet.ecn == Ecn::Congested),
            Output::Drop { .. } | Output::Circuit { .. } => None,
        })
        .collect();
    // The first packet is on its link at once; the next two find 0 and 1 waiting.
    assert_eq!(marked, [false, false, false, true, true, false]);
}

#[test]
fn a_new_schedule_starts_when_the_week_ends() {
    let mut switch = Switch::<u64>::new(Settings::etalon(4)).expect("valid settings");
    step(&mut switch, 0, Event::NewWeek(strobe(4)));
    let always = Day {
        matching: Matching::new(vec![Some(3), None, None, None]).expect("a matching"),
        length: Nanos(580_000),
    };
    let fixed = Schedule::new(4, Nanos(20_000), vec![always]).expect("a schedule");
    step(&mut switch, 30_000, Event::NewWeek(fixed));
    step(&mut switch, 599_999, Event::Wake);
    assert!(switch.has_circuit(1, 0), "day 3 of the first week");
    step(&mut switch, 619_999, Event::Wake);
    assert!(!switch.has_circuit(3, 0) && !switch.has_circuit(1, 0), "night");
    step(&mut switch, 620_000, Event::Wake);
    assert!(switch.has_circuit(3, 0));
    step(&mut switch, 1_200_000, Event::Wake);
    assert!(!switch.has_circuit(3, 0), "the week repeats, with its night");
}

#[test]
fn invalid_settings_and_events_are_rejected() {
    let good = Settings::etalon(8);
    let with = |settings| Switch::<u64>::new(settings).expect_err("invalid settings").to_string();
    assert_eq!(with(Settings { racks: 0, ..good.clone() }), "0 racks: must be 1 to 1024");
    assert_eq!(
        with(Settings { packet_rate: Bandwidth(0), ..good.clone() }),
        "packet_rate of 0 bit/s: must be above 0"
    );
    assert_eq!(
        Switch::<u64>::new(Settings { circuit_rate: Bandwidth(0), ..good.clone() }).expect_err("no rate"),
        SettingsError::Rate { field: "circuit_rate" }
    );
    assert_eq!(
        with(Settings { voq_capacity: 0, ..good.clone() }),
        "voq_capacity of 0 packets: must be at least 1"
    );

    let mut switch = Switch::new(good).expect("valid settings");
    let mut out = Vec::new();
    let mut error =
        |now, event| switch.step(Nanos(now), event, &mut out).expect_err("an invalid event").to_string();
    assert_eq!(
        error(0, Event::Arrive(packet(0, 8, 1, MTU))),
        "source rack 8: there are 8 racks, numbered from 0"
    );
    assert_eq!(
        error(0, Event::Arrive(packet(0, 1, 9, MTU))),
        "destination rack 9: there are 8 racks, numbered from 0"
    );
    assert_eq!(
        error(0, Event::SetCapacity { source: 0, destination: 1, packets: 0 }),
        "capacity from rack 0 to 1 of 0 packets: must be at least 1"
    );
    assert_eq!(error(0, Event::NewWeek(strobe(4))), "schedule of 4 racks: must be of 8");
    let empty = Schedule::new(8, Nanos(20_000), Vec::new()).expect("a schedule");
    assert_eq!(error(10, Event::NewWeek(empty)), "schedule without days: must have at least one");
    assert_eq!(
        switch.step(Nanos(9), Event::Wake, &mut out),
        Err(SwitchError::Backwards { now: Nanos(9), before: Nanos(10) })
    );
    assert!(out.is_empty() && switch.buffered_bytes() == 0 && switch.balance().entered == 0);
}

#[derive(Clone, Debug)]
enum Operation {
    Send { source: u32, destination: u32, bytes: u32 },
    Wait(u64),
    Capacity { source: usize, destination: usize, packets: u32 },
    Week(Vec<(u64, Vec<u32>)>),
}

fn operations(racks: u32) -> impl Strategy<Value = Vec<Operation>> {
    let bytes = prop_oneof![Just(MTU), Just(52), 1_u32..10_000];
    let day = (1_000_u64..300_000, Just((0..racks).collect::<Vec<u32>>()).prop_shuffle());
    prop::collection::vec(
        prop_oneof![
            20 => (0..racks, 0..racks, bytes).prop_map(|(source, destination, bytes)| Operation::Send { source, destination, bytes }),
            8 => prop_oneof![0_u64..20_000, 0_u64..200].prop_map(Operation::Wait),
            1 => (0..racks as usize, 0..racks as usize, 1_u32..20)
                .prop_map(|(source, destination, packets)| Operation::Capacity { source, destination, packets }),
            1 => prop::collection::vec(day, 1..4).prop_map(Operation::Week),
        ],
        1..400,
    )
}

fn week(racks: usize, days: &[(u64, Vec<u32>)]) -> Schedule {
    let days = days.iter().map(|(length, order)| Day {
        matching: Matching::new(order.iter().map(|&rack| (rack % 3 > 0).then_some(rack)).collect())
            .expect("a permutation"),
        length: Nanos(*length),
    });
    Schedule::new(racks, Nanos(20_000), days.collect()).expect("a schedule")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn bytes_in_are_delivered_queued_or_dropped_at_every_moment(operations in operations(5), seed_rate in 1_u64..3, resizing: bool) {
        let settings = Settings {
            packet_rate: Bandwidth(10_000_000_000 / seed_rate + 7),
            resize: resizing.then(|| Resize::new(4, 12, Nanos(50_000)).expect("small is at most big")),
            ..Settings::etalon(5)
        };
        let mut switch = Switch::new(settings.clone()).expect("valid settings");
        // Largest permitted queue length: the capacity, or the length when the capacity shrank.
        let mut most = [[settings.voq_capacity; 5]; 5];
        let (mut now, mut sent, mut delivered, mut dropped, mut entered) = (0, 0, 0_u64, 0_u64, 0_u64);
        let mut last_at = 0;
        let mut circuits = [[false; 5]; 5];
        let mut out = Vec::new();
        for operation in operations {
            let event = match operation {
                Operation::Send { source, destination, bytes } => {
                    sent += 1;
                    entered += u64::from(bytes);
                    Event::Arrive(packet(sent, source, destination, bytes))
                }
                Operation::Wait(time) => {
                    now += time;
                    Event::Wake
                }
                Operation::Capacity { source, destination, packets } => Event::SetCapacity { source, destination, packets },
                Operation::Week(days) => Event::NewWeek(week(5, &days)),
            };
            out.clear();
            switch.step(Nanos(now), event, &mut out).expect("a valid event");
            for output in &out {
                let at = match *output {
                    Output::Deliver { packet, at, .. } => {
                        delivered += u64::from(packet.bytes);
                        prop_assert!(packet.entered < at);
                        at.0
                    }
                    Output::Drop { packet, at, .. } => {
                        dropped += u64::from(packet.bytes);
                        at.0
                    }
                    Output::Circuit { source, destination, up, at } => {
                        prop_assert_eq!(std::mem::replace(&mut circuits[source as usize][destination as usize], up), !up);
                        at.0
                    }
                };
                prop_assert!(last_at <= at && at <= now, "by time");
                last_at = at;
            }
            let balance = switch.balance();
            prop_assert_eq!(balance.entered, entered);
            prop_assert_eq!(balance.by_packet + balance.by_circuit, delivered);
            prop_assert_eq!(balance.dropped, dropped);
            prop_assert_eq!(entered, delivered + dropped + switch.buffered_bytes());
            prop_assert!(switch.wake_at().is_none_or(|at| at.0 > now), "no event is due");
            for (source, circuits) in circuits.iter().enumerate() {
                for (destination, &up) in circuits.iter().enumerate() {
                    prop_assert_eq!(switch.has_circuit(source, destination), up);
                }
                prop_assert!(circuits.iter().filter(|&&up| up).count() <= 1, "a port has one circuit");
            }
            for (source, most) in most.iter_mut().enumerate() {
                for (destination, most) in most.iter_mut().enumerate() {
                    let capacity = switch.capacity(source, destination);
                    let queued = switch.queued(source, destination).0;
                    *most = capacity.max((*most).min(queued.max(capacity)));
                    prop_assert!(queued <= *most + settings.loss_capacity);
                }
            }
        }
    }

    /// Each rack sends to one other rack, so nothing waits in the packet switch, and packets arrive all the time.
    #[test]
    fn no_packet_on_a_circuit_overtakes_one_of_its_pair(
        shift in 1_u32..5,
        every in 500_u64..9_000,
        sizes in prop::collection::vec(prop_oneof![Just(MTU), Just(52), 1000_u32..9_000], 300),
    ) {
        let overtaken = |packet_path_off: bool| {
            let settings = Settings { packet_path_off, voq_capacity: 1000, ..Settings::etalon(5) };
            let mut switch = Switch::new(settings).expect("valid settings");
            let mut out = step(&mut switch, 0, Event::NewWeek(strobe(5)));
            for (sent, &bytes) in sizes.iter().enumerate() {
                for source in 0..5 {
                    let packet = packet(sent as u64, source, (source + shift) % 5, bytes);
                    out.extend(step(&mut switch, sent as u64 * every, Event::Arrive(packet)));
                }
            }
            out.extend(step(&mut switch, 100_000_000, Event::Wake));
            assert_eq!(switch.buffered_bytes(), 0);
            let mut next = [0; 5];
            let mut overtaken = 0;
            // A packet of the packet switch was overtaken if it arrives after a higher number that came by circuit.
            for output in &out {
                let Output::Deliver { packet, via, .. } = output else { continue };
                let next = &mut next[packet.source as usize];
                match via {
                    Via::Circuit => *next = packet.payload.max(*next),
                    Via::Packet => overtaken += u64::from(packet.payload < *next),
                }
            }
            overtaken
        };
        prop_assert_eq!(overtaken(true), 0);
    }
}

#[test]
fn with_the_packet_path_on_in_a_day_circuits_overtake() {
    let settings = Settings {
        packet_path_off: false,
        voq_capacity: 100,
        uplink_delay: Nanos(50_000),
        ..Settings::etalon(2)
    };
    let mut switch = Switch::new(settings).expect("valid settings");
    step(&mut switch, 0, Event::NewWeek(strobe(2)));
    let mut out = Vec::new();
    for sent in 0..50 {
        out.extend(step(&mut switch, sent * 500, Event::Arrive(packet(sent, 0, 1, MTU))));
    }
    out.extend(step(&mut switch, 10_000_000, Event::Wake));
    let order: Vec<u64> = out
        .iter()
        .filter_map(|output| match output {
            Output::Deliver { packet, .. } => Some(packet.payload),
            Output::Drop { .. } | Output::Circuit { .. } => None,
        })
        .collect();
    assert!(!order.is_sorted());
}
