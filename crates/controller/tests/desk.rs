//! The desk from the outside, with made-up times: no sockets, no clocks.

use std::sync::Arc;

use leeward_controller::{
    Caller, Desk, HostReport, Limits, Message, Part, Placement, Record, Refused, Replies, Reply, Report,
    Snapshot, Wrong,
};
use leeward_engine::Engine;
use leeward_fabric::{Bytes, Cluster, HostId, Load, Nanos, ResourceId};
use leeward_ledger::{Ledger, LedgerSettings, Sample};
use leeward_placement::replicas::{self, Form};
use leeward_placement::{Explain, Refusal};
use proptest::prelude::*;

const SECOND: Nanos = Nanos::SECOND;

fn cluster() -> Cluster {
    let text = "racks: 5\nhosts_per_rack: 4\nnic: 1Gbps\noversubscription: 2\n\
                devices: [{read: 50MB/s, write: 50MB/s}]\n";
    Cluster::from_text("test", text).expect("the test writes a right cluster")
}

fn ledger() -> Ledger {
    let Cluster { fabric, capacities } = cluster();
    Ledger::new(fabric, &capacities, LedgerSettings::default()).expect("defaults are right")
}

/// A desk whose askers are numbers.
fn desk(settings: &str, limits: Limits) -> Desk<u32> {
    let policy = replicas::make("sinbad", settings).expect("a policy of the registry");
    Desk::new(Engine::new(ledger(), policy, 7, Explain::Top(8)), limits)
}

fn at(millis: u64) -> Nanos {
    Nanos(millis * 1_000_000)
}

/// Every link of the cluster idle over a second.
fn idle(until: Nanos) -> Report {
    let links = ledger().fabric().resource_count() - ledger().fabric().host_count();
    Report {
        window: (Nanos(until.0 - SECOND.0), until),
        loads: (0..links as u32).map(|link| (ResourceId(link), Load(0))).collect(),
        hosts: Vec::new(),
    }
}

fn block(caller: Option<(&str, u64)>) -> Placement {
    sized(256 << 20, caller)
}

fn sized(bytes: u64, caller: Option<(&str, u64)>) -> Placement {
    let form = Form { writer: Some("r0h0"), ..Form::of(Bytes(bytes)) };
    Placement {
        request: form.request(ledger().fabric(), 0).expect("a right request"),
        caller: caller.map(|(client, sequence)| Caller { client: Arc::from(client), sequence }),
    }
}

fn tell(desk: &mut Desk<u32>, now: Nanos, message: Message, asker: u32) -> Replies<u32> {
    let mut out = Replies::new();
    desk.handle(now, message, asker, &mut out);
    out
}

/// The one reply to a message that is answered at once.
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

fn snapshot(desk: &mut Desk<u32>, now: Nanos) -> Snapshot {
    match ask(desk, now, Message::Snapshot) {
        Ok(Reply::Snapshot(snapshot)) => snapshot,
        other => panic!("no snapshot: {other:?}"),
    }
}

/// What a snapshot says of loads: all but the moment and the count of changes.
fn loads(desk: &mut Desk<u32>, now: Nanos) -> Vec<leeward_controller::LinkState> {
    snapshot(desk, now).links
}

/// A desk that has seen all links idle, a second after its beginning.
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
    assert_eq!(record.decision.choice.len(), 3);
    let (limit, value) = record.limit().expect("sinbad looks at loads");
    assert!(limit.limit.is_some());
    assert_eq!(value, Load(400_000_000), "the disk is narrower than any idle link");
    assert_eq!(ask(&mut desk, at(1_500), Message::Decision(0)), Ok(Reply::Decision(record)));
    assert_eq!(ask(&mut desk, at(1_500), Message::Decision(1)), Err(Refused::NoDecision(1)));
}

#[test]
fn a_repeated_sequence_returns_the_same_decision_and_commits_nothing() {
    let mut desk = informed("", Limits::default());
    let (first, _) = placed(ask(&mut desk, at(1_100), Message::Place(block(Some(("a", 7))))));
    let before = snapshot(&mut desk, at(1_200));
    let (again, repeated) = placed(ask(&mut desk, at(1_200), Message::Place(block(Some(("a", 7))))));
    assert_eq!((again, repeated), (first, true));
    assert_eq!(snapshot(&mut desk, at(1_200)), before);
    // Another client counts for itself.
    let (other, repeated) = placed(ask(&mut desk, at(1_200), Message::Place(block(Some(("b", 7))))));
    assert_eq!((other.request.id, repeated), (1, false));
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
    assert_ne!(told[0].1.0.request.id, told[2].1.0.request.id);
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
    tell(&mut desk, Nanos(2 * SECOND.0), Message::Health, 0);
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
        let released = ask(&mut desk, at(now), Message::Release(record.request.id));
        let Ok(Reply::Decision(released)) = released else { panic!("{released:?}") };
        assert_eq!((&released.decision, released.released), (&record.decision, Some(at(1_200))));
        assert_eq!(loads(&mut desk, at(1_100)), before);
    }
    // A late copy of the request finds the decision and places nothing.
    let (late, repeated) = placed(ask(&mut desk, at(1_400), Message::Place(block(Some(("a", 1))))));
    assert_eq!((late.released, repeated), (Some(at(1_200)), true));
    assert_eq!(ask(&mut desk, at(1_400), Message::Release(9)), Err(Refused::NoDecision(9)));
}

#[test]
fn decisions_are_kept_up_to_a_number_and_what_leaves_is_released() {
    let mut desk = informed("", Limits { decisions: 2, ..Limits::default() });
    let before = loads(&mut desk, at(1_100));
    for sequence in 1..=5 {
        placed(ask(&mut desk, at(1_100), Message::Place(block(Some(("a", sequence))))));
    }
    for id in [0, 2] {
        assert_eq!(ask(&mut desk, at(1_100), Message::Decision(id)), Err(Refused::NoDecision(id)));
    }
    for id in [3, 4] {
        assert!(ask(&mut desk, at(1_100), Message::Release(id)).is_ok());
    }
    assert_eq!(loads(&mut desk, at(1_100)), before);
    // A client's last block whose decision has left is not placed twice.
    let mut desk = informed("", Limits { decisions: 1, ..Limits::default() });
    placed(ask(&mut desk, at(1_100), Message::Place(block(Some(("a", 1))))));
    placed(ask(&mut desk, at(1_100), Message::Place(block(Some(("b", 1))))));
    assert_eq!(ask(&mut desk, at(1_100), Message::Place(block(Some(("a", 1))))), Err(Refused::Forgotten));
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
    let down = HostReport { host: HostId(0), up: Some(false), draining: None, stored: None };
    let off = Report { window: (SECOND, at(1_500)), hosts: vec![down], ..Report::default() };
    assert!(ask(&mut desk, at(1_500), Message::Report(off)).is_ok());
    let before = snapshot(&mut desk, at(2_000));
    let right = Report { loads: vec![(ResourceId(8), Load(1))], ..idle(Nanos(2 * SECOND.0)) };
    let (mixed, drained) =
        (HostReport { up: Some(true), ..down }, HostReport { up: None, draining: Some(true), ..down });
    let load = |link, load| vec![(ResourceId(8), Load(1)), (ResourceId(link), Load(load))];
    let cases = [
        (Report { window: (SECOND, SECOND), ..right.clone() }, Part::Window, Wrong::Empty),
        (Report { window: (at(2_000), at(1_900)), ..right.clone() }, Part::Window, Wrong::Empty),
        (Report { window: (SECOND, at(3_001)), ..right.clone() }, Part::Window, Wrong::Ahead),
        (Report { window: (at(500), SECOND), ..right.clone() }, Part::Load(0), Wrong::Stale(SECOND)),
        (Report { loads: load(9, -1), ..right.clone() }, Part::Load(1), Wrong::Negative),
        (Report { loads: load(8, 1), ..right.clone() }, Part::Load(1), Wrong::Twice),
        (Report { loads: load(1, 1), ..right.clone() }, Part::Load(1), Wrong::Down(HostId(0))),
        (Report { hosts: vec![mixed], ..right.clone() }, Part::Host(0), Wrong::Mixed),
        (Report { hosts: vec![drained, drained], ..right.clone() }, Part::Host(1), Wrong::Twice),
    ];
    for (report, part, wrong) in cases {
        let refused = ask(&mut desk, at(2_000), Message::Report(report.clone()));
        assert_eq!(refused, Err(Refused::Report(part, wrong)), "{report:?}");
        assert_eq!(snapshot(&mut desk, at(2_000)), before, "{report:?}");
    }
    let taken = ask(&mut desk, at(2_000), Message::Report(right));
    assert!(matches!(taken, Ok(Reply::Reported { links: 1, .. })), "{taken:?}");
}

#[test]
fn hosts_that_are_down_draining_or_full_take_nothing() {
    let mut desk = informed("", Limits::default());
    let said = |host, up, draining| HostReport { host: HostId(host), up, draining, stored: None };
    // All racks but the writer's and the last are out of it, one way or the other.
    let hosts = (4..16).map(|host| match host % 2 {
        0 => said(host, Some(false), None),
        _ => said(host, None, Some(true)),
    });
    let report = Report { window: (SECOND, at(1_500)), hosts: hosts.collect(), ..Report::default() };
    assert!(ask(&mut desk, at(1_500), Message::Report(report)).is_ok());
    for _ in 0..10 {
        let (record, _) = placed(ask(&mut desk, at(1_600), Message::Place(block(None))));
        assert!(record.decision.choice[1..].iter().all(|host| host.0 >= 16), "{:?}", record.decision.choice);
    }
}

#[test]
fn a_time_before_the_last_one_counts_as_the_last_one() {
    let mut desk = informed("", Limits::default());
    placed(ask(&mut desk, at(1_500), Message::Place(block(None))));
    let (record, _) = placed(ask(&mut desk, at(100), Message::Place(block(None))));
    assert_eq!(record.at, at(1_500));
}

/// Reports of any kind, most of them nearly right.
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
    });
    prop::collection::vec(((0u64..3_000).prop_map(at), report), 0..12).prop_map(|mut reports| {
        reports.sort_by_key(|(now, _)| *now);
        reports
    })
}

proptest! {
    #[test]
    fn a_report_is_taken_whole_exactly_where_the_ledger_leaves_nothing_of_it_out(reports in reports()) {
        let (mut desk, mut ledger) = (desk("", Limits::default()), ledger());
        for (now, report) in reports {
            let taken = ask(&mut desk, now, Message::Report(report.clone()));
            let mixed = !report.loads.is_empty() && report.hosts.iter().any(|said| said.up.is_some());
            let mut hosts: Vec<HostId> = report.hosts.iter().map(|said| said.host).collect();
            hosts.sort();
            hosts.dedup();
            let (from, until) = report.window;
            let wrong = mixed
                || hosts.len() < report.hosts.len()
                || from >= until
                || until > now.plus(SECOND);
            let sample = |&(resource, load)| Sample { resource, window: report.window, load, guaranteed: None };
            let samples: Vec<Sample> = report.loads.iter().map(sample).collect();
            let mut next = ledger.clone();
            if next.report(&samples, now) != Default::default() || wrong {
                prop_assert!(matches!(taken, Err(Refused::Report(..))), "{taken:?} {report:?}");
            } else {
                prop_assert!(taken.is_ok(), "{taken:?} {report:?}");
                for said in &report.hosts {
                    said.up.iter().for_each(|&up| next.health(said.host, up, now));
                }
                ledger = next;
            }
        }
    }
}
