//! Numbers from outside: no size, work or time makes the server fail or lose a request.

use leeward_fabric::Nanos;
use leeward_shaping::{Batch, Caps, Order, OverLimit, Request, Server, StartCaps, Workload};
use leeward_traces::Kind;
use proptest::prelude::*;

use crate::support::{cases, limit, workload};

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(u64::MAX), Just(1 << 53), any::<u64>()]
}

fn request() -> impl Strategy<Value = Request> {
    let work = prop_oneof![
        Just(f64::NAN),
        Just(f64::INFINITY),
        Just(f64::NEG_INFINITY),
        Just(-0.0),
        any::<f64>(),
        0.0..1e3f64
    ];
    (any::<bool>(), number(), prop::option::of(number()), work, number()).prop_map(
        |(reads, size, offset, work, deadline)| Request {
            kind: if reads { Kind::Read } else { Kind::Write },
            size,
            offset,
            work,
            deadline: Nanos(deadline),
            number: 0,
        },
    )
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn requests_with_absurd_numbers_are_all_served(
        order in prop_oneof![
            Just(Order::Priority), Just(Order::Fifo), Just(Order::Shares), Just(Order::Deadline)
        ],
        requests in prop::collection::vec((number(), request(), 0usize..3), 1..40),
    ) {
        let caps = Caps {
            outstanding: 2,
            read_bytes: 1 << 20,
            behind: Some(StartCaps { requests: 0, bytes: u64::MAX }),
            batch: Some(Batch { bytes: u64::MAX, gap: u64::MAX }),
            ..Caps::NONE
        };
        let mut server = Server::new(order, caps).unwrap();
        let limited = |over| Workload { limits: vec![limit(1e-3, 100.0)], over, ..workload(1) };
        let ids = [limited(OverLimit::Held), limited(OverLimit::Demoted), workload(0)]
            .map(|settings| server.add(&settings).unwrap());
        for (number, (at, request, of)) in requests.iter().enumerate() {
            let request = Request { number: number as u64, ..*request };
            // Times go back and forth.
            server.arrive(Nanos(*at), ids[*of], request, number).unwrap();
        }
        let mut left: Vec<usize> = (0..requests.len()).collect();
        let mut in_service = Vec::new();
        while !server.is_empty() {
            while let Some(start) = server.poll(Nanos(u64::MAX)) {
                let at = left.iter().position(|number| *number == start.payload);
                prop_assert!(at.is_some(), "{} starts twice", start.payload);
                left.swap_remove(at.unwrap_or_default());
                in_service.push(start.ticket);
            }
            prop_assert!(!in_service.is_empty(), "{} requests wait at the end of time", server.len());
            prop_assert!(server.complete(in_service.swap_remove(0)));
        }
        prop_assert!(left.is_empty() && in_service.is_empty());
    }
}
