//! Workloads that come, change and go while requests wait, and requests that disappear.

use leeward_fabric::Nanos;
use leeward_shaping::{Arrival, Caps, Order, OverLimit, Server, ShapingError, Ticket, Workload, WorkloadId};

use crate::support::{limit, read, starts, workload};

const ONE: Caps = Caps { outstanding: 1, ..Caps::NONE };

/// A server with one request in service, so that all others wait.
fn busy(workloads: &[Workload]) -> (Server<&'static str>, Vec<WorkloadId>, Ticket) {
    let mut server = Server::new(Order::Priority, ONE).unwrap();
    let first = server.add(&workload(0)).unwrap();
    server.arrive(Nanos(0), first, read(1), "first").unwrap();
    let start = server.poll(Nanos(0)).unwrap();
    let ids = workloads.iter().map(|workload| server.add(workload).unwrap()).collect();
    (server, ids, start.ticket)
}

fn arrive(server: &mut Server<&'static str>, now: u64, id: WorkloadId, payload: &'static str) -> Arrival {
    server.arrive(Nanos(now), id, read(4), payload).unwrap()
}

/// Payloads in the order of service, one request at a time.
fn served(server: &mut Server<&'static str>, now: u64, mut last: Ticket) -> Vec<&'static str> {
    let mut payloads = Vec::new();
    loop {
        assert!(server.complete(last));
        let Some(start) = server.poll(Nanos(now)) else { return payloads };
        payloads.push(start.payload);
        last = start.ticket;
    }
}

#[test]
fn a_new_priority_moves_waiting_requests_to_their_places_in_order_of_arrival() {
    let (mut server, ids, first) = busy(&[workload(1), workload(7)]);
    for (id, payload) in [(ids[0], "a"), (ids[1], "b"), (ids[0], "c"), (ids[1], "d")] {
        arrive(&mut server, 1, id, payload);
    }
    let mut again = server.clone();
    assert_eq!(served(&mut again, 2, first), ["a", "c", "b", "d"]);
    server.change(Nanos(1), ids[1], &workload(1)).unwrap();
    let mut equal = server.clone();
    assert_eq!(served(&mut equal, 2, first), ["a", "b", "c", "d"]);
    server.change(Nanos(1), ids[1], &workload(0)).unwrap();
    assert_eq!(served(&mut server, 2, first), ["b", "d", "a", "c"]);
}

#[test]
fn limits_of_a_change_apply_to_the_requests_that_wait() {
    let slow = Workload { limits: vec![limit(0.001, 4.0)], ..workload(1) };
    let (mut server, ids, first) = busy(std::slice::from_ref(&slow));
    assert!(!arrive(&mut server, 0, ids[0], "a").waits);
    assert!(arrive(&mut server, 0, ids[0], "b").waits);
    assert_eq!(server.next_poll(), Some(Nanos(4000)));
    // The same limits again give no tokens.
    server.change(Nanos(0), ids[0], &slow).unwrap();
    assert_eq!(server.next_poll(), Some(Nanos(4000)));
    // Ten times the rate: the bucket still contains four.
    server.change(Nanos(0), ids[0], &Workload { limits: vec![limit(0.01, 4.0)], ..slow.clone() }).unwrap();
    assert_eq!(server.next_poll(), Some(Nanos(400)));
    // Without limits, the request passes at once.
    server.change(Nanos(10), ids[0], &workload(1)).unwrap();
    assert_eq!(server.next_poll(), Some(Nanos(10)));
    assert_eq!(served(&mut server, 10, first), ["a", "b"]);
    assert_eq!(server.next_poll(), None);
}

#[test]
fn requests_over_a_limit_start_on_an_idle_server_once_the_workload_may_be_demoted() {
    let held = Workload { limits: vec![limit(0.001, 4.0)], ..workload(1) };
    let demoted = Workload { over: OverLimit::Demoted, ..held.clone() };
    let (mut server, ids, first) = busy(&[held.clone(), workload(9)]);
    for (id, payload) in [(ids[0], "a"), (ids[0], "b"), (ids[0], "c"), (ids[1], "d")] {
        arrive(&mut server, 0, id, payload);
    }
    let mut changed = server.clone();
    changed.change(Nanos(0), ids[0], &demoted).unwrap();
    assert_eq!(served(&mut changed, 0, first), ["a", "d", "b", "c"]);
    changed.change(Nanos(0), ids[0], &held).unwrap();
    assert!(changed.is_empty());
    server.change(Nanos(0), ids[0], &demoted).unwrap();
    server.change(Nanos(0), ids[0], &held).unwrap();
    assert_eq!(served(&mut server, 0, first), ["a", "d"]);
    assert_eq!((server.len(), server.next_poll()), (2, Some(Nanos(4000))));
}

#[test]
fn a_removed_workload_is_served_to_its_end_and_takes_no_more_requests() {
    let (mut server, ids, first) = busy(&[workload(1)]);
    arrive(&mut server, 0, ids[0], "a");
    assert!(server.remove(ids[0]) && !server.remove(ids[0]));
    assert_eq!(server.arrive(Nanos(0), ids[0], read(1), "late"), Err("late"));
    assert_eq!(server.arrive_demoted(Nanos(0), ids[0], read(1), "late"), Err("late"));
    assert_eq!(server.change(Nanos(0), ids[0], &workload(2)), Err(ShapingError::Workload));
    assert_eq!(server.set_weight(ids[0], 2.0), Err(ShapingError::Workload));
    // A workload that comes now does not get the name of the old one.
    let new = server.add(&workload(0)).unwrap();
    assert_eq!((server.len_of(ids[0]), server.len_of(new)), (0, 0));
    arrive(&mut server, 0, new, "b");
    assert_eq!(served(&mut server, 0, first), ["b", "a"]);
    let newer = server.add(&workload(3)).unwrap();
    assert!(newer != ids[0] && newer != new);
    assert_eq!(server.arrive(Nanos(0), ids[0], read(1), "late"), Err("late"));
}

#[test]
fn requests_of_a_suspended_workload_are_best_effort_and_its_buckets_stay() {
    let limited = Workload { limits: vec![limit(0.001, 4.0)], ..workload(1) };
    let best_effort = Workload::best_effort();
    for over in [OverLimit::Held, OverLimit::Demoted] {
        let limited = Workload { over, ..limited.clone() };
        let (mut server, ids, first) = busy(&[limited.clone(), best_effort.clone(), workload(7)]);
        let names = [(ids[0], "a"), (ids[1], "b"), (ids[0], "c"), (ids[0], "d"), (ids[2], "e")];
        for (id, payload) in names {
            arrive(&mut server, 0, id, payload);
        }
        assert!(server.suspend(Nanos(10), ids[0]));
        arrive(&mut server, 10, ids[0], "f");
        // Those that had tokens keep their places in order of arrival; the others follow.
        assert_eq!(served(&mut server, 10, first), ["e", "a", "b", "c", "d", "f"]);
        // Four units of work left the bucket full until 4000, whatever passed meanwhile.
        server.change(Nanos(20), ids[0], &limited).unwrap();
        assert!(arrive(&mut server, 20, ids[0], "g").waits);
        assert_eq!(server.next_poll(), Some(Nanos(4000)));
        assert!(server.remove(ids[0]) && !server.suspend(Nanos(20), ids[0]));
    }
}

#[test]
fn a_cancelled_request_makes_way_and_gives_no_tokens_back() {
    let limited = Workload { limits: vec![limit(0.001, 4.0)], ..workload(1) };
    let (mut server, ids, first) = busy(&[limited]);
    let a = arrive(&mut server, 0, ids[0], "a");
    let b = arrive(&mut server, 0, ids[0], "b");
    let c = server.arrive(Nanos(0), ids[0], read(2), "c").unwrap();
    assert_eq!((a.waits, b.waits, c.waits), (false, true, true));
    assert_eq!(server.cancel(Nanos(0), a.ticket), Some("a"));
    assert_eq!(server.next_poll(), Some(Nanos(4000)));
    assert_eq!(server.cancel(Nanos(0), b.ticket), Some("b"));
    // A request of half the work needs half of the tokens.
    assert_eq!(server.next_poll(), Some(Nanos(2000)));
    assert_eq!(server.cancel(Nanos(0), first), None);
    assert_eq!(served(&mut server, 2000, first), ["c"]);
    assert_eq!(server.cancel(Nanos(2000), c.ticket), None);
    assert!(!server.complete(c.ticket) && server.put_back(c.ticket, 1.0, "c") == Err("c"));
}

#[test]
fn a_connection_with_thousands_of_requests_may_close() {
    let mut server = Server::new(Order::Priority, ONE).unwrap();
    let limited = Workload { limits: vec![limit(0.001, 4.0)], over: OverLimit::Demoted, ..workload(1) };
    let ids = [server.add(&limited).unwrap(), server.add(&workload(2)).unwrap()];
    let mut tickets = Vec::new();
    for number in 0..10_000 {
        let arrival = server.arrive(Nanos(number), ids[(number % 2) as usize], read(4), number).unwrap();
        tickets.push((number, arrival.ticket));
    }
    let start = server.poll(Nanos(10_000)).unwrap();
    let others = tickets.iter().filter(|(number, _)| *number != start.payload);
    for (number, ticket) in others {
        assert_eq!(server.cancel(Nanos(10_000), *ticket), Some(*number));
    }
    assert_eq!((server.len(), server.next_poll(), server.waits()), (1, None, false));
    assert!(server.complete(start.ticket) && server.is_empty());
}

#[test]
fn invalid_settings_change_nothing() {
    let (mut server, ids, first) = busy(&[workload(1)]);
    arrive(&mut server, 0, ids[0], "a");
    let never = leeward_calculus::TokenBucket::new(0.0, 1.0).unwrap();
    let invalid = [
        (Workload { priority: u32::MAX, ..workload(0) }, ShapingError::Priority),
        (Workload { weight: 0.0, ..workload(0) }, ShapingError::Weight(0.0)),
        (Workload { weight: f64::INFINITY, ..workload(0) }, ShapingError::Weight(f64::INFINITY)),
        (Workload { limits: vec![never], ..workload(0) }, ShapingError::Rate(0.0)),
    ];
    for (settings, error) in invalid {
        assert_eq!(server.add(&settings), Err(error));
        assert_eq!(server.change(Nanos(0), ids[0], &settings), Err(error));
    }
    assert!(server.set_weight(ids[0], f64::NAN).is_err());
    assert_eq!(served(&mut server, 0, first), ["a"]);
    for caps in [Caps { outstanding: 0, ..ONE }, Caps { reads: 0, ..ONE }, Caps { writes: 0, ..ONE }] {
        assert!(matches!(Server::<()>::new(Order::Fifo, caps), Err(ShapingError::Cap { .. })));
    }
}

#[test]
fn an_order_without_priorities_ignores_them() {
    let mut server = Server::new(Order::Fifo, Caps::NONE).unwrap();
    let ids = [9, 1, 5].map(|priority| server.add(&workload(priority)).unwrap());
    for (id, payload) in ids.into_iter().zip(["a", "b", "c"]) {
        server.arrive(Nanos(0), id, read(1), payload).unwrap();
    }
    server.change(Nanos(0), ids[2], &workload(0)).unwrap();
    assert_eq!(starts(&mut server, 0), ["a", "b", "c"]);
}
