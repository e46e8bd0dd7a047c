//! Demand estimates: bytes that each source of knowledge counts, and bytes that it does not.

use leeward_circuits::estimate::{Adus, EstimateError, of_flows, of_queues};
use leeward_circuits::switch::{Ecn, Event, Packet, Settings, Switch};
use leeward_fabric::Nanos;
use proptest::prelude::*;

const RACKS: usize = 4;
const FLOWS: usize = 6;

/// An operation on a flow.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Write(u64),
    /// Sends a range of the written bytes, for the first time or again, starting `back` bytes before the highest byte
    /// sent.
    Send {
        back: u64,
        bytes: u64,
    },
    Close,
    Open(usize, usize),
}

fn operation() -> impl Strategy<Value = (usize, Operation)> {
    let operation = prop_oneof![
        (1_u64..100_000).prop_map(Operation::Write),
        (0_u64..30_000, 1_u64..9_000).prop_map(|(back, bytes)| Operation::Send { back, bytes }),
        Just(Operation::Close),
        (0..RACKS, 0..RACKS).prop_map(|(source, destination)| Operation::Open(source, destination)),
    ];
    (0..FLOWS, operation)
}

/// Reference model of a flow: its bytes written and sent.
#[derive(Clone, Copy)]
struct Plain {
    source: usize,
    destination: usize,
    written: u64,
    sent: u64,
}

proptest! {
    #[test]
    fn the_rest_is_written_minus_seen_despite_retransmissions_and_closes(
        operations in prop::collection::vec(operation(), 1..300),
    ) {
        let mut adus = Adus::new(RACKS);
        let mut plain: [Option<Plain>; FLOWS] = [None; FLOWS];
        for (flow, operation) in operations {
            match (operation, &mut plain[flow]) {
                (Operation::Open(source, destination), plain @ None) => {
                    adus.open(flow, source, destination).expect("a flow that is closed");
                    *plain = Some(Plain { source, destination, written: 0, sent: 0 });
                }
                (Operation::Open(source, destination), Some(_)) => {
                    prop_assert_eq!(adus.open(flow, source, destination), Err(EstimateError::Open { flow }));
                }
                (Operation::Write(bytes), Some(plain)) => {
                    adus.write(flow, bytes).expect("an open flow");
                    plain.written += bytes;
                }
                (Operation::Write(bytes), None) => {
                    prop_assert_eq!(adus.write(flow, bytes), Err(EstimateError::NotOpen { flow }));
                }
                (Operation::Send { back, bytes }, Some(plain)) => {
                    let start = plain.sent.saturating_sub(back);
                    let end = (start + bytes).min(plain.written);
                    adus.seen(flow, end);
                    plain.sent = plain.sent.max(end);
                }
                (Operation::Send { bytes, .. }, None) => adus.seen(flow, bytes),
                (Operation::Close, plain) => {
                    adus.close(flow);
                    *plain = None;
                }
            }
            let left = plain.iter().flatten().map(|plain| (plain.source, plain.destination, plain.written - plain.sent));
            prop_assert_eq!(&adus.demand(), &of_flows(RACKS, left.clone()).expect("racks that are there"));
            for source in 0..RACKS {
                for destination in 0..RACKS {
                    let of = left.clone().filter(|flow| (flow.0, flow.1) == (source, destination));
                    prop_assert_eq!(adus.of_pair(source, destination), of.map(|flow| flow.2).sum::<u64>());
                }
            }
        }
    }

    #[test]
    fn queue_estimates_are_limited_by_queue_contents(sends in prop::collection::vec((0..RACKS as u32, 0..RACKS as u32), 1..200)) {
        let mut switch = Switch::new(Settings::etalon(RACKS)).expect("right settings");
        let mut out = Vec::new();
        for (source, destination) in sends {
            let packet = Packet { payload: (), source, destination, bytes: 9000, ecn: Ecn::Incapable, entered: Nanos(0) };
            switch.step(Nanos(0), Event::Arrive(packet), &mut out).expect("a right packet");
        }
        let demand = of_queues(&switch);
        for source in 0..RACKS {
            for destination in 0..RACKS {
                let told = demand[source * RACKS + destination];
                if source == destination {
                    prop_assert_eq!(told, 0);
                } else {
                    prop_assert_eq!(told, switch.queued(source, destination).1);
                    prop_assert!(told <= 16 * 9000);
                }
            }
        }
    }
}

#[test]
fn bytes_seen_before_they_are_written_count_once() {
    let mut adus = Adus::new(2);
    adus.open(3, 0, 1).expect("a flow");
    adus.seen(3, 500);
    assert_eq!(adus.of_pair(0, 1), 0);
    adus.write(3, 800).expect("an open flow");
    assert_eq!(adus.of_pair(0, 1), 300);
}

#[test]
fn missing_racks_are_rejected() {
    assert_eq!(
        Adus::new(2).open(0, 0, 2).expect_err("no rack").to_string(),
        "destination rack 2 of 2, numbered from 0"
    );
    assert!(of_flows(2, [(5, 0, 1)]).is_err());
}
