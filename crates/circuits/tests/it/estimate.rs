//! Demand estimates: bytes that each kind of estimate counts, and bytes that it ignores.

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
    /// Sends at most `bytes` of the written bytes, starting `back` bytes before the highest byte sent. The first `back`
    /// bytes are retransmissions.
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

/// Reference model of a flow: the bytes written, and the highest byte sent.
#[derive(Clone, Copy)]
struct FlowModel {
    source: usize,
    destination: usize,
    written: u64,
    sent: u64,
}

proptest! {
    #[test]
    fn demand_is_the_bytes_written_minus_seen_despite_retransmissions_and_closes(
        operations in prop::collection::vec(operation(), 1..300),
    ) {
        let mut adus = Adus::new(RACKS);
        let mut models: [Option<FlowModel>; FLOWS] = [None; FLOWS];
        for (flow, operation) in operations {
            match (operation, &mut models[flow]) {
                (Operation::Open(source, destination), model @ None) => {
                    adus.open(flow, source, destination).expect("a closed flow");
                    *model = Some(FlowModel { source, destination, written: 0, sent: 0 });
                }
                (Operation::Open(source, destination), Some(_)) => {
                    prop_assert_eq!(adus.open(flow, source, destination), Err(EstimateError::Open { flow }));
                }
                (Operation::Write(bytes), Some(model)) => {
                    adus.write(flow, bytes).expect("an open flow");
                    model.written += bytes;
                }
                (Operation::Write(bytes), None) => {
                    prop_assert_eq!(adus.write(flow, bytes), Err(EstimateError::NotOpen { flow }));
                }
                (Operation::Send { back, bytes }, Some(model)) => {
                    let start = model.sent.saturating_sub(back);
                    let end = (start + bytes).min(model.written);
                    adus.seen(flow, end);
                    model.sent = model.sent.max(end);
                }
                (Operation::Send { bytes, .. }, None) => adus.seen(flow, bytes),
                (Operation::Close, model) => {
                    adus.close(flow);
                    *model = None;
                }
            }
            let left = models.iter().flatten().map(|model| (model.source, model.destination, model.written - model.sent));
            prop_assert_eq!(&adus.demand(), &of_flows(RACKS, left).expect("valid racks"));
        }
    }

    #[test]
    fn queue_estimates_are_the_bytes_in_queues_and_limited_by_queue_capacity(sends in prop::collection::vec((0..RACKS as u32, 0..RACKS as u32), 1..200)) {
        let mut switch = Switch::new(Settings::etalon(RACKS)).expect("valid settings");
        let mut out = Vec::new();
        for (source, destination) in sends {
            let packet = Packet { payload: (), source, destination, bytes: 9000, ecn: Ecn::Incapable, entered: Nanos(0) };
            switch.step(Nanos(0), Event::Arrive(packet), &mut out).expect("a valid packet");
        }
        let demand = of_queues(&switch);
        for source in 0..RACKS {
            for destination in 0..RACKS {
                let estimate = demand[source * RACKS + destination];
                if source == destination {
                    prop_assert_eq!(estimate, 0);
                } else {
                    prop_assert_eq!(estimate, switch.queued(source, destination).1);
                    prop_assert!(estimate <= u64::from(Settings::etalon(RACKS).voq_capacity) * 9000);
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
    assert_eq!(adus.demand(), [0; 4]);
    adus.write(3, 800).expect("an open flow");
    assert_eq!(adus.demand(), [0, 300, 0, 0]);
}

#[test]
fn racks_that_do_not_exist_are_rejected() {
    assert_eq!(
        Adus::new(2).open(0, 0, 2).expect_err("no rack").to_string(),
        "destination rack 2: there are 2 racks, numbered from 0"
    );
    assert!(of_flows(2, [(5, 0, 1)]).is_err());
}
