//! The coordinator from the outside, with artificial times: no sockets, no clocks.

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use leeward_controller::{
    Caller, Change, Desk, HostReport, Left, Limits, Message, Part, Placement, Record, Refused, ReplicasWish,
    Replies, Reply, Report, Request, Skipped, Wish, WorkloadWish, World, Wrong,
};
use leeward_engine::Engine;
use leeward_fabric::{Bytes, Cluster, HostId, Load, Nanos, ResourceId};
use leeward_ledger::{Ledger, LedgerSettings, Sample, Scratch};
use leeward_placement::replicas;
use leeward_placement::{Explain, Refusal};
use proptest::prelude::*;
use support::labels;

const SECOND: Nanos = Nanos::SECOND;

fn cluster() -> Cluster {
    let text = "racks: 5\nhosts_per_rack: 4\nnic: 1Gbps\noversubscription: 2\n\
                devices: [{read: 50MB/s, write: 50MB/s}]\n";
    Cluster::from_text("test", text).expect("the test writes a right cluster")
}

fn ledger() -> Ledger {
    ledger_of(cluster())
}

fn ledger_of(Cluster { fabric, capacities }: Cluster) -> Ledger {
    Ledger::new(fabric, &capacities, LedgerSettings::default()).expect("defaults are right")
}

/// A coordinator whose reply addresses are numbers.
fn desk(settings: &str, limits: Limits) -> Desk<u32> {
    let policy = replicas::REGISTRY.make("sinbad", settings).expect("a policy of the registry");
    Desk::new(Engine::new(ledger(), policy, 7, Explain::Top(8)), labels(), limits)
}

fn at(millis: u64) -> Nanos {
    Nanos(millis * 1_000_000)
}

/// A report of every link as idle for a second.
fn idle(until: Nanos) -> Report {
    let links = ledger().fabric().resource_count() - ledger().fabric().host_count();
    Report {
        window: (Nanos(until.0 - SECOND.0), until),
        loads: (0..links as u32).map(|link| (ResourceId(link), Load(0))).collect(),
        ..Report::default()
    }
}

fn block(caller: Option<(&str, u64)>) -> Placement {
    sized(256 << 20, caller)
}

fn sized(bytes: u64, caller: Option<(&str, u64)>) -> Placement {
    let writer = Some("r0h0".to_owned());
    let wish = ReplicasWish { size: Bytes(bytes), replicas: 3, writer, ..ReplicasWish::default() };
    Placement {
        request: Request::Replicas(wish.request(ledger().fabric(), 0).expect("a right request")),
        wish: Wish::Replicas(wish),
        caller: caller.map(|(client, sequence)| Caller::Client { client: Arc::from(client), sequence }),
        lasts: None,
    }
}

fn tell(desk: &mut Desk<u32>, now: Nanos, message: Message, asker: u32) -> Replies<u32> {
    let mut out = Replies::new();
    desk.handle(now, message, asker, &mut out);
    out
}

/// Sends a message that gets exactly one immediate reply, and returns it.
fn ask(desk: &mut Desk<u32>, now: Nanos, message: Message) -> Result<Reply, Refused> {
    let mut replies = tell(desk, now, message, 0);
    assert_eq!(replies.len(), 1, "{replies:?}");
    replies.remove(0).1
}

fn placed(reply: Result<Reply, Refused>) -> (Arc<Record>, bool) {
    match reply {
        Ok(Reply::Placed { record, repeated }) => (record, repeated),
        other => panic!("not placed: {other:?}"),
    }
}

fn snapshot(desk: &mut Desk<u32>, now: Nanos) -> World {
    desk.wake(now, &mut Replies::new());
    desk.world()
}

/// The mutable part of a snapshot.
fn known(desk: &mut Desk<u32>, now: Nanos) -> impl PartialEq + std::fmt::Debug + use<> {
    let World { epoch, links, hosts, clients, counts, .. } = snapshot(desk, now);
    (epoch, links, hosts, clients, counts)
}

/// The links of a snapshot: everything about loads except its time and epoch.
fn loads(desk: &mut Desk<u32>, now: Nanos) -> Vec<leeward_controller::LinkState> {
    snapshot(desk, now).links
}

/// A coordinator that has seen all links idle, at second 1.
fn informed(settings: &str, limits: Limits) -> Desk<u32> {
    let mut desk = desk(settings, limits);
    assert!(ask(&mut desk, SECOND, Message::Report(idle(SECOND))).is_ok());
    desk
}

#[test]
fn a_placement_says_where_why_and_on_how_old_a_view() {
    let mut desk = informed("", Limits::default());
    let (record, repeated) = placed(ask(&mut desk, at(1_400), Message::Place(block(None))));
    assert!(!repeated);
    assert_eq!((record.at, record.age()), (at(1_400), Some(at(400))));
    assert_eq!(record.shown.hosts.len(), 3);
    let limit = record.shown.limit.as_ref().expect("sinbad looks at loads");
    assert!(limit.at.is_some());
    assert_eq!(limit.value_bps, 400_000_000, "the disk is narrower than any idle link");
    assert_eq!(ask(&mut desk, at(1_500), Message::Decision(0)), Ok(Reply::Decision(record)));
    assert_eq!(ask(&mut desk, at(1_500), Message::Decision(1)), Err(Refused::NoDecision(1)));
}

#[test]
fn a_repeated_sequence_returns_the_same_decision_and_commits_nothing() {
    let mut desk = informed("", Limits::default());
    let (first, _) = placed(ask(&mut desk, at(1_100), Message::Place(block(Some(("a", 7))))));
    let before = known(&mut desk, at(1_200));
    let (again, repeated) = placed(ask(&mut desk, at(1_200), Message::Place(block(Some(("a", 7))))));
    assert_eq!((again, repeated), (first, true));
    assert_eq!(known(&mut desk, at(1_200)), before);
    // Sequences are per client.
    let (other, repeated) = placed(ask(&mut desk, at(1_200), Message::Place(block(Some(("b", 7))))));
    assert_eq!((other.id, repeated), (1, false));
}

#[test]
fn an_older_sequence_is_refused() {
    let mut desk = informed("", Limits::default());
    placed(ask(&mut desk, SECOND, Message::Place(block(Some(("a", 7))))));
    let refused = ask(&mut desk, SECOND, Message::Place(block(Some(("a", 6)))));
    assert_eq!(refused, Err(Refused::Superseded { last: 7 }));
}

#[test]
fn a_refused_block_may_be_asked_for_again_with_its_sequence() {
    let mut desk = desk("", Limits::default());
    let refused = ask(&mut desk, SECOND, Message::Place(block(Some(("a", 1)))));
    assert_eq!(refused, Err(Refused::Placement(Refusal::NoTelemetry { newest: None })));
    assert!(ask(&mut desk, SECOND, Message::Report(idle(SECOND))).is_ok());
    let (_, repeated) = placed(ask(&mut desk, SECOND, Message::Place(block(Some(("a", 1))))));
    assert!(!repeated);
}

#[test]
fn a_block_that_waits_is_answered_in_its_time_to_all_who_asked_for_it() {
    let mut desk = informed("interval: 2s", Limits::default());
    assert_eq!(tell(&mut desk, at(1_100), Message::Place(block(Some(("a", 1)))), 1), []);
    assert_eq!(tell(&mut desk, at(1_200), Message::Place(block(None)), 2), []);
    assert_eq!(tell(&mut desk, at(1_300), Message::Place(block(Some(("a", 1)))), 3), []);
    assert!(desk.wakes_at().is_some_and(|at| at <= Nanos(2 * SECOND.0)));
    let mut out = Replies::new();
    desk.wake(Nanos(2 * SECOND.0 - 1), &mut out);
    assert_eq!(out, []);
    desk.wake(Nanos(2 * SECOND.0), &mut out);
    let told: Vec<_> = out.into_iter().map(|(asker, reply)| (asker, placed(reply))).collect();
    assert_eq!(told.iter().map(|(asker, _)| *asker).collect::<Vec<_>>(), [1, 3, 2]);
    assert_eq!(told.iter().map(|(_, (_, repeated))| *repeated).collect::<Vec<_>>(), [false, true, false]);
    assert_eq!(told[0].1.0, told[1].1.0);
    assert_ne!(told[0].1.0.id, told[2].1.0.id);
}

#[test]
fn a_snapshot_counts_a_client_up_to_its_first_block_that_waits() {
    let mut desk = informed("interval: 2s", Limits::default());
    let small = |sequence| Message::Place(sized(1, Some(("a", sequence))));
    let counted = |desk: &mut Desk<u32>, now| snapshot(desk, now).clients.first().map(|(_, last)| *last);
    tell(&mut desk, at(1_100), Message::Place(block(Some(("a", 0)))), 0);
    assert_eq!(counted(&mut desk, at(1_100)), None);
    placed(ask(&mut desk, at(1_200), small(1)));
    assert_eq!(counted(&mut desk, at(1_200)), None, "the second is counted in and the first is not");
    desk.wake(Nanos(2 * SECOND.0), &mut Replies::new());
    assert_eq!(counted(&mut desk, Nanos(2 * SECOND.0)), Some(1));
    tell(&mut desk, at(2_100), Message::Place(block(Some(("a", 5)))), 0);
    placed(ask(&mut desk, at(2_200), small(6)));
    assert_eq!(counted(&mut desk, at(2_200)), Some(4));
}

#[test]
fn what_is_released_leaves_the_links_as_they_were_and_may_be_released_again() {
    let mut desk = informed("", Limits::default());
    let before = loads(&mut desk, at(1_100));
    let (record, _) = placed(ask(&mut desk, at(1_100), Message::Place(block(Some(("a", 1))))));
    assert_ne!(loads(&mut desk, at(1_100)), before);
    for now in [1_200, 1_300] {
        let released = ask(&mut desk, at(now), Message::Release(record.id));
        let Ok(Reply::Decision(released)) = released else { panic!("{released:?}") };
        assert_eq!((&released.shown, released.released), (&record.shown, Some(at(1_200))));
        assert_eq!(loads(&mut desk, at(1_100)), before);
    }
    // A late copy of the request finds the decision and places nothing.
    let (late, repeated) = placed(ask(&mut desk, at(1_400), Message::Place(block(Some(("a", 1))))));
    assert_eq!((late.released, repeated), (Some(at(1_200)), true));
    assert_eq!(ask(&mut desk, at(1_400), Message::Release(9)), Err(Refused::NoDecision(9)));
}

#[test]
fn decisions_are_kept_up_to_a_number_and_what_leaves_goes_on_counting() {
    let mut all = informed("", Limits::default());
    let mut desk = informed("", Limits { decisions: 2, ..Limits::default() });
    for sequence in 1..=5 {
        for desk in [&mut all, &mut desk] {
            placed(ask(desk, at(1_100), Message::Place(block(Some(("a", sequence))))));
        }
    }
    assert_eq!(loads(&mut desk, at(1_100)), loads(&mut all, at(1_100)));
    for id in 0..3 {
        assert_eq!(ask(&mut desk, at(1_100), Message::Decision(id)), Ok(Reply::Left(Left::Decision(id))));
    }
    assert_eq!(ask(&mut desk, at(1_100), Message::Decision(5)), Err(Refused::NoDecision(5)));
    for id in [3, 4] {
        assert!(ask(&mut desk, at(1_100), Message::Release(id)).is_ok());
    }
    (0..5).for_each(|id| assert!(ask(&mut all, at(1_100), Message::Release(id)).is_ok()));
    assert_ne!(loads(&mut desk, at(1_100)), loads(&mut all, at(1_100)), "three of them still count");
    // The next windows contain the load of the three; later none of their entries remains.
    for seconds in 2..30 {
        let now = Nanos(seconds * SECOND.0);
        for desk in [&mut all, &mut desk] {
            assert!(ask(desk, now, Message::Report(idle(now))).is_ok());
        }
        assert_eq!(loads(&mut desk, now), loads(&mut all, now));
    }
    assert_eq!(early(&mut desk, at(30_000)), 0);
}

#[test]
fn the_end_of_what_left_is_its_end_too() {
    let mut desk = informed("", Limits { decisions: 2, ..Limits::default() });
    let before = loads(&mut desk, at(1_100));
    for _ in 0..5 {
        placed(ask(&mut desk, at(1_100), Message::Place(block(None))));
    }
    let _ = desk.changes();
    for id in 0..5 {
        let told = ask(&mut desk, at(1_200), Message::Release(id));
        assert_eq!(told == Ok(Reply::Left(Left::Ended(id))), id < 3, "{told:?}");
        let ended = Change::Ended { id, released: Some(at(1_200)) };
        assert_eq!(desk.changes().collect::<Vec<Change>>(), [ended]);
    }
    assert_eq!(loads(&mut desk, at(1_200)), before);
    // A repeated end returns the same answer; an unknown decision is an error.
    assert!(ask(&mut desk, at(1_200), Message::Release(0)).is_ok());
    assert_eq!(ask(&mut desk, at(1_200), Message::Release(5)), Err(Refused::NoDecision(5)));
    assert_eq!(loads(&mut desk, at(1_200)), before);
}

#[test]
fn a_last_block_of_which_the_decision_is_not_kept_any_more_is_not_placed_twice() {
    let mut desk = informed("", Limits { decisions: 1, ..Limits::default() });
    placed(ask(&mut desk, at(1_100), Message::Place(block(Some(("a", 1))))));
    placed(ask(&mut desk, at(1_100), Message::Place(block(Some(("b", 1))))));
    let again = ask(&mut desk, at(1_100), Message::Place(block(Some(("a", 1)))));
    assert_eq!(again, Ok(Reply::Left(Left::Placed(0))), "the store knows it");
    assert_eq!(Left::Placed(0).answer(None), Err(Refused::Forgotten(0)), "or nobody does");
}

#[test]
fn what_is_asked_under_the_number_of_another_kind_that_waits_does_not_wait_with_it() {
    let mut desk = informed("interval: 2s", Limits::default());
    let first = block(Some(("a", 1)));
    let wish = Wish::Workload(WorkloadWish { workload: serde_json::Map::new() });
    let other = Placement { request: Request::Workload, wish, caller: first.caller.clone(), lasts: None };
    let reused = Refused::Reused(first.caller.clone().expect("it has one"), "replicas");
    assert_eq!(tell(&mut desk, at(1_100), Message::Place(first), 0), []);
    assert_eq!(tell(&mut desk, at(1_200), Message::Place(other), 1), [(1, Err(reused))]);
    let mut out = Replies::new();
    desk.wake(Nanos(2 * SECOND.0), &mut out);
    let (asker, answer) = out.remove(0);
    assert_eq!((asker, placed(answer).0.shown.wish.kind(), out.len()), (0, "replicas", 0));
}

fn early(desk: &mut Desk<u32>, now: Nanos) -> u64 {
    snapshot(desk, now).counts.released_early
}

#[test]
fn what_stops_counting_before_its_time_because_there_is_too_much_is_counted() {
    let mut desk = informed("", Limits { decisions: 1, unkept: 2, ..Limits::default() });
    let before = loads(&mut desk, at(1_100));
    for count in 1..=6_u64 {
        placed(ask(&mut desk, at(1_100), Message::Place(block(None))));
        assert_eq!(early(&mut desk, at(1_100)), count.saturating_sub(3));
    }
    assert_ne!(loads(&mut desk, at(1_100)), before);
    // The entries that were not evicted expire on their own and do not count as early.
    assert_eq!(early(&mut desk, at(60_000)), 3);
}

#[test]
fn what_was_decided_first_leaves_first_however_it_was_numbered() {
    let mut desk = informed("interval: 2s", Limits { decisions: 1, ..Limits::default() });
    assert_eq!(tell(&mut desk, at(1_100), Message::Place(block(None)), 0), []);
    let (small, _) = placed(ask(&mut desk, at(1_200), Message::Place(sized(1, None))));
    assert_eq!(small.id, 1);
    let mut out = Replies::new();
    desk.wake(Nanos(2 * SECOND.0), &mut out);
    let (waited, _) = placed(out.remove(0).1);
    assert_eq!(waited.id, 0);
    assert_eq!(ask(&mut desk, at(2_100), Message::Decision(0)), Ok(Reply::Decision(waited)));
    assert_eq!(ask(&mut desk, at(2_100), Message::Decision(1)), Ok(Reply::Left(Left::Decision(1))));
}

#[test]
fn a_record_keeps_nothing_of_long_lists_of_constraints() {
    let mut desk = informed("", Limits::default());
    let mut placement = block(None);
    let Request::Replicas(request) = &mut placement.request else { panic!("it is a block") };
    request.constraints.excluded_hosts = vec![HostId(19)];
    let (record, _) = placed(ask(&mut desk, at(1_100), Message::Place(placement)));
    assert!(!record.shown.hosts.contains(&"r4h3".to_owned()));
    let kept = serde_json::to_string(&record.shown.wish).expect("it is written");
    assert!(kept.len() < 200, "{kept}");
}

#[test]
fn a_client_that_only_repeats_is_not_silent() {
    let mut desk = informed("", Limits { clients: 2, ..Limits::default() });
    for (client, sequence) in [("a", 2), ("b", 1), ("a", 2)] {
        placed(ask(&mut desk, at(1_100), Message::Place(block(Some((client, sequence))))));
    }
    let older = ask(&mut desk, at(1_100), Message::Place(block(Some(("a", 1)))));
    assert_eq!(older, Err(Refused::Superseded { last: 2 }));
    placed(ask(&mut desk, at(1_100), Message::Place(block(Some(("c", 1))))));
    let known = snapshot(&mut desk, at(1_100)).clients;
    assert_eq!(known, [(Arc::from("a"), 2), (Arc::from("c"), 1)]);
}

#[test]
fn no_more_ask_for_one_block_than_there_is_room_for_and_those_who_left_make_room() {
    let ask =
        |desk: &mut Desk<u32>, asker| tell(desk, at(1_100), Message::Place(block(Some(("a", 1)))), asker);
    let mut desk = informed("interval: 2s", Limits::default());
    (0..16).for_each(|asker| assert_eq!(ask(&mut desk, asker), []));
    assert_eq!(ask(&mut desk, 16), [(16, Err(Refused::Busy))]);
    // Of these callers, only every tenth still listens.
    let mut desk = informed("interval: 2s", Limits::default()).with_listening(|asker| asker % 10 == 0);
    (0..100).for_each(|asker| assert_eq!(ask(&mut desk, asker), []));
    let mut out = Replies::new();
    desk.wake(Nanos(2 * SECOND.0), &mut out);
    let told: Vec<u32> = out.into_iter().map(|(asker, _)| asker).collect();
    assert_eq!(told, [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 99]);
}

#[test]
fn the_client_that_was_silent_longest_is_forgotten() {
    let mut desk = informed("", Limits { clients: 2, ..Limits::default() });
    for (client, sequence) in [("a", 1), ("b", 1), ("a", 2), ("c", 1)] {
        placed(ask(&mut desk, at(1_100), Message::Place(block(Some((client, sequence))))));
    }
    let known = snapshot(&mut desk, at(1_100)).clients;
    assert_eq!(known, [(Arc::from("a"), 2), (Arc::from("c"), 1)]);
}

#[test]
fn no_more_blocks_wait_than_there_is_room_for() {
    let mut desk = informed("interval: 2s", Limits { waiting: 1, ..Limits::default() });
    assert_eq!(tell(&mut desk, at(1_100), Message::Place(block(None)), 0), []);
    assert_eq!(ask(&mut desk, at(1_200), Message::Place(block(None))), Err(Refused::Busy));
    assert_eq!(tell(&mut desk, at(2_000), Message::Place(block(None)), 1).len(), 1);
}

#[test]
fn a_wrong_report_is_refused_with_its_place_and_changes_nothing() {
    let mut desk = informed("", Limits::default());
    let before = known(&mut desk, at(2_000));
    let right = Report { loads: vec![(ResourceId(8), Load(1))], ..idle(Nanos(2 * SECOND.0)) };
    let (mixed, drained) =
        (HostReport { up: Some(true), ..of(0) }, HostReport { draining: Some(true), ..of(0) });
    let load = |link, load| vec![(ResourceId(8), Load(1)), (ResourceId(link), Load(load))];
    let cases = [
        (Report { window: (SECOND, SECOND), ..right.clone() }, Part::Window, Wrong::Empty),
        (Report { window: (at(2_000), at(1_900)), ..right.clone() }, Part::Window, Wrong::Empty),
        (Report { window: (SECOND, at(3_001)), ..right.clone() }, Part::Window, Wrong::Ahead),
        (Report { loads: load(9, -1), ..right.clone() }, Part::Load(1), Wrong::Negative),
        (Report { loads: load(8, 1), ..right.clone() }, Part::Load(1), Wrong::Twice),
        (Report { hosts: vec![mixed], ..right.clone() }, Part::Host(0), Wrong::Mixed),
        (Report { hosts: vec![drained, drained], ..right.clone() }, Part::Host(1), Wrong::Twice),
    ];
    for (report, part, wrong) in cases {
        let refused = ask(&mut desk, at(2_000), Message::Report(report.clone()));
        assert_eq!(refused, Err(Refused::Report(part, wrong)), "{report:?}");
        assert_eq!(known(&mut desk, at(2_000)), before, "{report:?}");
    }
    assert_eq!(reported(&mut desk, at(2_000), right), (1, Skipped::default()));
}

/// An empty report of one host.
fn of(host: u32) -> HostReport {
    HostReport { host: HostId(host), up: None, draining: None, stored: None }
}

/// A report of hosts over a window of half a second.
fn said(until: Nanos, hosts: Vec<HostReport>) -> Report {
    Report { window: (Nanos(until.0 - SECOND.0 / 2), until), hosts, ..Report::default() }
}

/// Number of accepted links of a report, and the skipped ones.
fn reported(desk: &mut Desk<u32>, now: Nanos, report: Report) -> (u64, Skipped) {
    match ask(desk, now, Message::Report(report)) {
        Ok(Reply::Reported { links, skipped, .. }) => (links, skipped),
        other => panic!("not taken in: {other:?}"),
    }
}

#[test]
fn a_report_that_comes_twice_is_taken_in_once_and_answered_twice() {
    let mut desk = informed("", Limits::default());
    let (all, none) = (idle(SECOND).loads.len() as u64, Skipped::default());
    let report = Report { hosts: vec![HostReport { draining: Some(true), ..of(3) }], ..idle(at(2_000)) };
    assert_eq!(reported(&mut desk, at(2_000), report.clone()), (all, none));
    let before = loads(&mut desk, at(2_000));
    assert_eq!(reported(&mut desk, at(2_000), report), (0, Skipped { stale: all + 1, ..none }));
    assert_eq!(loads(&mut desk, at(2_000)), before);
}

#[test]
fn links_of_a_host_that_is_down_or_just_up_are_passed_over_and_the_others_taken_in() {
    let mut desk = informed("", Limits::default());
    let (all, none) = (idle(SECOND).loads.len() as u64, Skipped::default());
    let up = |up| vec![HostReport { up: Some(up), ..of(0) }];
    let ingress = ledger().fabric().ingress(HostId(0)).expect("a tree");
    let until = |desk: &mut Desk<u32>, now| {
        loads(desk, now).into_iter().find(|state| state.link == ingress).expect("a link").until
    };
    assert_eq!(reported(&mut desk, at(1_500), said(at(1_500), up(false))), (0, none));
    assert_eq!(reported(&mut desk, at(2_000), idle(at(2_000))), (all - 2, Skipped { down: 2, ..none }));
    assert_eq!(until(&mut desk, at(2_000)), Some(SECOND));
    assert_eq!(reported(&mut desk, at(3_100), said(at(2_500), up(true))), (0, none));
    assert_eq!(until(&mut desk, at(3_100)), None, "it came back, and nothing of it is known since");
    assert_eq!(reported(&mut desk, at(3_200), idle(at(3_000))), (all - 2, Skipped { stale: 2, ..none }));
    assert_eq!(reported(&mut desk, at(4_000), idle(at(4_000))), (all, none));
    assert_eq!(until(&mut desk, at(4_000)), Some(at(4_000)));
}

#[test]
fn of_what_hosts_say_the_window_decides_and_not_the_order_of_arrival() {
    // Availability of the only rack besides the writer's at three times. The reports arrive in every order.
    let truth = [(at(1_200), true), (at(1_400), false), (at(1_600), true)];
    let rack = |until, open: bool, drain: bool| {
        let host = |host| match drain {
            true => HostReport { draining: Some(!open), ..of(host) },
            false => HostReport { up: Some(open), ..of(host) },
        };
        said(until, (4..20).map(host).collect())
    };
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        for (last, drain) in [(2, true), (1, true), (2, false), (1, false)] {
            let mut desk = informed("", Limits::default());
            for (until, open) in order.into_iter().filter(|&place| place <= last).map(|place| truth[place]) {
                reported(&mut desk, at(1_700), rack(until, open, drain));
            }
            if !drain {
                let seen = Report { window: (at(1_700), at(2_000)), ..idle(at(2_000)) };
                reported(&mut desk, at(2_000), seen);
            }
            let answer = ask(&mut desk, at(2_000), Message::Place(block(None)));
            assert_eq!(answer.is_ok(), truth[last].1, "{order:?} {last} {drain}: {answer:?}");
        }
    }
}

#[test]
fn hosts_that_are_down_draining_or_full_take_nothing() {
    let mut desk = small_disks();
    // All racks except the writer's and the last are unusable, each for one of three reasons.
    let hosts = (4..16).map(|host| match host % 3 {
        0 => HostReport { up: Some(false), ..of(host) },
        1 => HostReport { draining: Some(true), ..of(host) },
        _ => HostReport { stored: Some(Bytes(900 << 20)), ..of(host) },
    });
    assert!(ask(&mut desk, at(1_500), Message::Report(said(at(1_500), hosts.collect()))).is_ok());
    for _ in 0..4 {
        let (record, _) = placed(ask(&mut desk, at(1_600), Message::Place(block(None))));
        assert!(
            record.shown.hosts[1..].iter().all(|host| host.starts_with("r4")),
            "{:?}",
            record.shown.hosts
        );
    }
}

/// A coordinator with hosts that store 1 GiB each; all links were reported idle.
fn small_disks() -> Desk<u32> {
    let text = "racks: 5\nhosts_per_rack: 4\nnic: 1Gbps\noversubscription: 2\n\
                devices: [{read: 50MB/s, write: 50MB/s, capacity: 1GiB}]\n";
    let cluster = Cluster::from_text("test", text).expect("the test writes a right cluster");
    let policy = replicas::REGISTRY.make("sinbad", "").expect("a policy of the registry");
    let mut desk =
        Desk::new(Engine::new(ledger_of(cluster), policy, 7, Explain::Top(8)), labels(), Limits::default());
    assert!(ask(&mut desk, SECOND, Message::Report(idle(SECOND))).is_ok());
    desk
}

#[test]
fn what_was_placed_after_what_a_host_stores_was_counted_is_added_to_it() {
    // Four blocks fill the writer's own host, which always takes the first copy while it has room.
    let first = |desk: &mut Desk<u32>, now| {
        placed(ask(desk, now, Message::Place(block(None)))).0.shown.hosts[0] == "r0h0"
    };
    let stores =
        |until, stored: u64| said(until, vec![HostReport { stored: Some(Bytes(stored << 20)), ..of(0) }]);
    let mut desk = small_disks();
    assert!(first(&mut desk, at(1_200)) && first(&mut desk, at(1_400)));
    // The count includes the first block, but not the second.
    assert!(ask(&mut desk, at(1_500), Message::Report(stores(at(1_300), 256))).is_ok());
    assert!(first(&mut desk, at(1_500)) && first(&mut desk, at(1_600)));
    assert!(!first(&mut desk, at(1_700)), "four blocks fill it");
    // An older count is ignored. A newer one below the placed total makes room.
    let older = reported(&mut desk, at(1_700), stores(at(1_250), 0));
    assert_eq!(older, (0, Skipped { stale: 1, ..Skipped::default() }));
    assert!(!first(&mut desk, at(1_700)));
    reported(&mut desk, at(1_800), stores(at(1_750), 768));
    assert!(first(&mut desk, at(1_800)) && !first(&mut desk, at(1_800)));
    // All blocks placed since the count remain accounted for.
    reported(&mut desk, at(1_900), stores(at(1_760), 0));
    assert!((0..3).all(|_| first(&mut desk, at(1_900))) && !first(&mut desk, at(1_900)));
}

#[test]
fn a_time_before_the_last_one_counts_as_the_last_one() {
    let mut desk = informed("", Limits::default());
    placed(ask(&mut desk, at(1_500), Message::Place(block(None))));
    let (record, _) = placed(ask(&mut desk, at(100), Message::Place(block(None))));
    assert_eq!(record.at, at(1_500));
}

/// Arbitrary reports, most of them nearly valid.
fn reports() -> impl Strategy<Value = Vec<(Nanos, Report)>> {
    let load = (0u32..44, -1i64..3).prop_map(|(link, load)| (ResourceId(link), Load(load * 100_000_000)));
    let host = (0u32..4, prop::option::of(any::<bool>()), prop::option::of(any::<bool>()));
    let host =
        host.prop_map(|(host, up, draining)| HostReport { host: HostId(host), up, draining, stored: None });
    let report = (0u64..6, 0u64..6, prop::collection::vec(load, 0..4), prop::collection::vec(host, 0..2));
    let report = report.prop_map(|(from, until, loads, hosts)| Report {
        window: (at(from * 500), at(until * 500)),
        loads,
        hosts,
        ..Report::default()
    });
    prop::collection::vec(((0u64..3_000).prop_map(at), report), 0..12).prop_map(|mut reports| {
        reports.sort_by_key(|(now, _)| *now);
        reports
    })
}

proptest! {
    #[test]
    fn of_a_right_report_exactly_that_is_skipped_which_the_ledger_leaves_out(reports in reports()) {
        let (mut desk, mut ledger) = (desk("", Limits::default()), ledger());
        let mut heard = BTreeMap::new();
        for (now, report) in reports {
            let taken = ask(&mut desk, now, Message::Report(report.clone()));
            let mixed = !report.loads.is_empty() && report.hosts.iter().any(|said| said.up.is_some());
            let hosts: BTreeSet<HostId> = report.hosts.iter().map(|said| said.host).collect();
            let links: BTreeSet<ResourceId> = report.loads.iter().map(|&(link, _)| link).collect();
            let (from, until) = report.window;
            let wrong = mixed
                || hosts.len() < report.hosts.len()
                || links.len() < report.loads.len()
                || report.loads.iter().any(|&(_, load)| load.0 < 0)
                || from >= until
                || until > now.plus(SECOND);
            if wrong {
                prop_assert!(matches!(taken, Err(Refused::Report(..))), "{taken:?} {report:?}");
                continue;
            }
            let mut stale = 0;
            for said in &report.hosts {
                let mut news = |what, known: bool| {
                    let last = heard.entry((said.host, what)).or_insert(Nanos(0));
                    let new = until > *last;
                    (stale, *last) = (stale + u64::from(known && !new), if known { until.max(*last) } else { *last });
                    known && new
                };
                news("draining", said.draining.is_some());
                if news("up", said.up.is_some()) {
                    said.up.iter().for_each(|&up| ledger.set_health(said.host, up, now));
                }
            }
            let sample = |&(resource, load)| Sample { resource, window: report.window, load, guaranteed: None };
            let samples: Vec<Sample> = report.loads.iter().map(sample).collect();
            let left = ledger.report(&samples, now);
            let Ok(Reply::Reported { links, skipped, .. }) = taken else { panic!("{taken:?} {report:?}") };
            prop_assert_eq!(skipped, Skipped { stale: left.stale + stale, down: left.down, unknown: 0 });
            prop_assert_eq!(links, samples.len() as u64 - left.total());
            let mut scratch = Scratch::default();
            let view = ledger.view(now, &mut scratch);
            for state in loads(&mut desk, now) {
                prop_assert_eq!(state.measured, view.measured(state.link));
            }
        }
    }
}
