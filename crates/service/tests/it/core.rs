//! Tests of the coordinator's public methods, with artificial times, and without sockets and clocks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::support::{
    Numbers, PlaceReplies, U32, decision_of, labels, place, place_now, place_replies, samples,
};
use leeward_engine::Engine;
use leeward_fabric::{Bytes, HostId, Load, Nanos, ResourceId};
use leeward_ledger::{Ledger, Scratch};
use leeward_placement::{Explain, Refusal, replicas};
use leeward_records::{Caller, Change, DecisionId, PlacementSpec, ReplicasSpec, WorkloadSpec};
use leeward_service::{
    Addresses, Coordinator, DecisionError, DecisionLookup, HostReport, InvalidReport, InvalidReportReason,
    Limits, LinkState, NetworkSnapshot, PlaceError, Placement, ReleaseError, Report, ReportPart,
    ReportSummary, Skipped,
};
use leeward_testing::clusters::{self, cluster, racks_of_four};
use proptest::prelude::*;

const SECOND: Nanos = Nanos::SECOND;

/// A ledger of twenty hosts with a disk each.
fn ledger() -> Ledger {
    clusters::ledger(&cluster(&racks_of_four(5, "[{read: 50MB/s, write: 50MB/s}]")))
}

/// A coordinator with these settings of its policy for blocks, and with these limits.
fn coordinator<A: Addresses>(settings: &str, limits: Limits) -> Coordinator<A> {
    let policy = replicas::REGISTRY.make("sinbad", settings).expect("a policy of the registry");
    Coordinator::new(Engine::new(ledger(), policy, 7, Explain::Top(8)), labels(), limits)
}

fn at(millis: u64) -> Nanos {
    Nanos(millis * 1_000_000)
}

/// A report of every link as idle for a second.
fn idle(until: Nanos) -> Report {
    let links = ledger().fabric().resource_count() - ledger().fabric().host_count();
    Report {
        window: (Nanos(until.0 - SECOND.0), until),
        loads: samples(
            (Nanos(until.0 - SECOND.0), until),
            (0..links as u32).map(|link| (ResourceId(link), Load(0))),
        ),
        ..Report::default()
    }
}

fn block(caller: Option<(&str, u64)>) -> Placement {
    block_of_size(256 << 20, caller)
}

fn block_of_size(bytes: u64, caller: Option<(&str, u64)>) -> Placement {
    let writer = Some("r0h0".to_owned());
    let spec = ReplicasSpec { size: Bytes(bytes), replicas: 3, writer, ..ReplicasSpec::default() };
    Placement {
        spec: PlacementSpec::Replicas(spec),
        caller: caller.map(|(client, sequence)| Caller::Client { client: Arc::from(client), sequence }),
        lasts: None,
        reference: None,
        digest: None,
    }
}

fn snapshot(coordinator: &mut Coordinator<Numbers>, now: Nanos) -> NetworkSnapshot {
    coordinator.wake(now);
    coordinator.snapshot()
}

/// Parts of a snapshot that operations change.
fn observable_state(
    coordinator: &mut Coordinator<Numbers>,
    now: Nanos,
) -> impl PartialEq + std::fmt::Debug + use<> {
    let NetworkSnapshot { epoch, links, hosts, clients, counts, .. } = snapshot(coordinator, now);
    (epoch, links, hosts, clients, counts)
}

/// Links of a snapshot, with their loads.
fn loads(coordinator: &mut Coordinator<Numbers>, now: Nanos) -> Vec<LinkState> {
    snapshot(coordinator, now).links
}

/// A coordinator that has seen all links idle, at second 1.
fn coordinator_with_idle_links<A: Addresses>(settings: &str, limits: Limits) -> Coordinator<A> {
    let mut coordinator: Coordinator<A> = coordinator(settings, limits);
    assert!(coordinator.report(SECOND, idle(SECOND)).is_ok());
    coordinator
}

#[test]
fn a_placement_records_hosts_limit_and_age_of_telemetry() {
    let mut coordinator: Coordinator<Numbers> = coordinator_with_idle_links("", Limits::default());
    let (record, repeated) = decision_of(place_now(&mut coordinator, at(1_400), block(None)));
    assert!(!repeated);
    assert_eq!((record.at, record.age()), (at(1_400), Some(at(400))));
    assert_eq!(record.details.hosts.len(), 3);
    let limit = record.details.limit.as_ref().expect("sinbad looks at loads");
    assert!(limit.at.is_some());
    assert_eq!(limit.value_bps, 400_000_000, "the disk is narrower than any idle link");
    assert_eq!(coordinator.decision(at(1_500), DecisionId(0)), Ok(DecisionLookup::InMemory(record)));
    assert_eq!(coordinator.decision(at(1_500), DecisionId(1)), Err(DecisionError::NotFound(DecisionId(1))));
}

#[test]
fn a_repeated_sequence_returns_the_same_decision_and_commits_nothing() {
    let mut coordinator: Coordinator<Numbers> = coordinator_with_idle_links("", Limits::default());
    let (first, _) = decision_of(place_now(&mut coordinator, at(1_100), block(Some(("a", 7)))));
    let before = observable_state(&mut coordinator, at(1_200));
    let (again, repeated) = decision_of(place_now(&mut coordinator, at(1_200), block(Some(("a", 7)))));
    assert_eq!((again, repeated), (first, true));
    assert_eq!(observable_state(&mut coordinator, at(1_200)), before);
    // Sequences are per client.
    let (other, repeated) = decision_of(place_now(&mut coordinator, at(1_200), block(Some(("b", 7)))));
    assert_eq!((other.id, repeated), (DecisionId(1), false));
}

#[test]
fn an_older_sequence_is_rejected() {
    let mut coordinator: Coordinator<Numbers> = coordinator_with_idle_links("", Limits::default());
    decision_of(place_now(&mut coordinator, SECOND, block(Some(("a", 7)))));
    let result = place_now(&mut coordinator, SECOND, block(Some(("a", 6))));
    assert_eq!(result, Err(PlaceError::Superseded { last: 7 }));
}

#[test]
fn a_rejected_block_may_be_retried_with_its_sequence() {
    let mut coordinator: Coordinator<Numbers> = coordinator("", Limits::default());
    let result = place_now(&mut coordinator, SECOND, block(Some(("a", 1))));
    assert_eq!(result, Err(PlaceError::Rejected(Refusal::NoTelemetry { newest: None })));
    assert!(coordinator.report(SECOND, idle(SECOND)).is_ok());
    let (_, repeated) = decision_of(place_now(&mut coordinator, SECOND, block(Some(("a", 1)))));
    assert!(!repeated);
}

#[test]
fn all_callers_of_a_batched_block_get_its_reply_when_the_batch_is_due() {
    let mut coordinator: Coordinator<Numbers> =
        coordinator_with_idle_links("interval: 2s", Limits::default());
    assert_eq!(place(&mut coordinator, at(1_100), block(Some(("a", 1))), 1), []);
    assert_eq!(place(&mut coordinator, at(1_200), block(None), 2), []);
    assert_eq!(place(&mut coordinator, at(1_300), block(Some(("a", 1))), 3), []);
    assert!(coordinator.wakes_at().is_some_and(|at| at <= Nanos(2 * SECOND.0)));
    coordinator.wake(Nanos(2 * SECOND.0 - 1));
    assert_eq!(place_replies(&mut coordinator), []);
    coordinator.wake(Nanos(2 * SECOND.0));
    let replies: Vec<_> =
        place_replies(&mut coordinator).into_iter().map(|(to, reply)| (to, decision_of(reply))).collect();
    assert_eq!(replies.iter().map(|(to, _)| *to).collect::<Vec<_>>(), [1, 3, 2]);
    assert_eq!(replies.iter().map(|(_, (_, repeated))| *repeated).collect::<Vec<_>>(), [false, true, false]);
    assert_eq!(replies[0].1.0, replies[1].1.0);
    assert_ne!(replies[0].1.0.id, replies[2].1.0.id);
}

#[test]
fn a_snapshot_counts_a_client_up_to_its_first_block_that_waits() {
    let mut coordinator: Coordinator<Numbers> =
        coordinator_with_idle_links("interval: 2s", Limits::default());
    let small = |sequence| block_of_size(1, Some(("a", sequence)));
    let counted = |coordinator: &mut Coordinator<Numbers>, now| {
        snapshot(coordinator, now).clients.first().map(|(_, last)| *last)
    };
    place(&mut coordinator, at(1_100), block(Some(("a", 0))), 0);
    assert_eq!(counted(&mut coordinator, at(1_100)), None);
    decision_of(place_now(&mut coordinator, at(1_200), small(1)));
    assert_eq!(counted(&mut coordinator, at(1_200)), None, "the second is decided, and the first waits");
    coordinator.wake(Nanos(2 * SECOND.0));
    assert_eq!(counted(&mut coordinator, Nanos(2 * SECOND.0)), Some(1));
    place(&mut coordinator, at(2_100), block(Some(("a", 5))), 0);
    decision_of(place_now(&mut coordinator, at(2_200), small(6)));
    assert_eq!(counted(&mut coordinator, at(2_200)), Some(4));
}

#[test]
fn a_release_restores_the_loads_and_is_idempotent() {
    let mut coordinator: Coordinator<Numbers> = coordinator_with_idle_links("", Limits::default());
    let before = loads(&mut coordinator, at(1_100));
    let (record, _) = decision_of(place_now(&mut coordinator, at(1_100), block(Some(("a", 1)))));
    assert_ne!(loads(&mut coordinator, at(1_100)), before);
    for now in [1_200, 1_300] {
        let released = coordinator.release(at(now), record.id);
        let Ok(DecisionLookup::InMemory(released)) = released else { panic!("{released:?}") };
        assert_eq!((&released.details, released.released), (&record.details, Some(at(1_200))));
        assert_eq!(loads(&mut coordinator, at(1_100)), before);
    }
    // A late copy of the request gets the decision and places nothing.
    let (late, repeated) = decision_of(place_now(&mut coordinator, at(1_400), block(Some(("a", 1)))));
    assert_eq!((late.released, repeated), (Some(at(1_200)), true));
    assert_eq!(coordinator.release(at(1_400), DecisionId(9)), Err(ReleaseError::NotFound(DecisionId(9))));
}

#[test]
fn evicted_decisions_still_count_in_the_loads() {
    let mut all: Coordinator<Numbers> = coordinator_with_idle_links("", Limits::default());
    let mut coordinator: Coordinator<Numbers> =
        coordinator_with_idle_links("", Limits { decisions: 2, ..Limits::default() });
    for sequence in 1..=5 {
        for coordinator in [&mut all, &mut coordinator] {
            decision_of(place_now(coordinator, at(1_100), block(Some(("a", sequence)))));
        }
    }
    assert_eq!(loads(&mut coordinator, at(1_100)), loads(&mut all, at(1_100)));
    for id in 0..3 {
        assert_eq!(
            coordinator.decision(at(1_100), DecisionId(id)),
            Ok(DecisionLookup::Evicted(DecisionId(id)))
        );
    }
    assert_eq!(coordinator.decision(at(1_100), DecisionId(5)), Err(DecisionError::NotFound(DecisionId(5))));
    for id in [3, 4] {
        assert!(coordinator.release(at(1_100), DecisionId(id)).is_ok());
    }
    (0..5).for_each(|id| assert!(all.release(at(1_100), DecisionId(id)).is_ok()));
    assert_ne!(loads(&mut coordinator, at(1_100)), loads(&mut all, at(1_100)), "three of them still count");
    // The next windows contain the load of the three placements; later their entries are gone.
    for seconds in 2..30 {
        let now = Nanos(seconds * SECOND.0);
        for coordinator in [&mut all, &mut coordinator] {
            assert!(coordinator.report(now, idle(now)).is_ok());
        }
        assert_eq!(loads(&mut coordinator, now), loads(&mut all, now));
    }
    assert_eq!(released_early(&mut coordinator, at(30_000)), 0);
}

#[test]
fn a_release_of_an_evicted_decision_restores_the_loads() {
    let mut coordinator: Coordinator<Numbers> =
        coordinator_with_idle_links("", Limits { decisions: 2, ..Limits::default() });
    let before = loads(&mut coordinator, at(1_100));
    for _ in 0..5 {
        decision_of(place_now(&mut coordinator, at(1_100), block(None)));
    }
    let _ = coordinator.changes();
    for id in 0..5 {
        let result = coordinator.release(at(1_200), DecisionId(id));
        assert_eq!(result == Ok(DecisionLookup::Evicted(DecisionId(id))), id < 3, "{result:?}");
        let ended = Change::Ended { id: DecisionId(id), released: Some(at(1_200)) };
        assert_eq!(coordinator.changes().collect::<Vec<Change>>(), [ended]);
    }
    assert_eq!(loads(&mut coordinator, at(1_200)), before);
    // A repeated end returns the same answer; an unknown decision is an error.
    assert!(coordinator.release(at(1_200), DecisionId(0)).is_ok());
    assert_eq!(coordinator.release(at(1_200), DecisionId(5)), Err(ReleaseError::NotFound(DecisionId(5))));
    assert_eq!(loads(&mut coordinator, at(1_200)), before);
}

#[test]
fn a_repeat_of_an_evicted_decision_is_not_placed_twice() {
    let mut coordinator: Coordinator<Numbers> =
        coordinator_with_idle_links("", Limits { decisions: 1, ..Limits::default() });
    decision_of(place_now(&mut coordinator, at(1_100), block(Some(("a", 1)))));
    decision_of(place_now(&mut coordinator, at(1_100), block(Some(("b", 1)))));
    let again = place_now(&mut coordinator, at(1_100), block(Some(("a", 1))));
    assert_eq!(again, Ok(DecisionLookup::Evicted(DecisionId(0))), "the store has the decision");
}

#[test]
fn a_sequence_reused_for_another_kind_while_waiting_is_rejected() {
    let mut coordinator: Coordinator<Numbers> =
        coordinator_with_idle_links("interval: 2s", Limits::default());
    let first = block(Some(("a", 1)));
    let spec = PlacementSpec::Workload(WorkloadSpec { workload: serde_json::Map::new() });
    let other = Placement { spec, caller: first.caller.clone(), lasts: None, reference: None, digest: None };
    let reused = PlaceError::KeyReused(first.caller.clone().expect("a caller"), "replicas");
    assert_eq!(place(&mut coordinator, at(1_100), first, 0), []);
    assert_eq!(place(&mut coordinator, at(1_200), other, 1), [(1, Err(reused))]);
    coordinator.wake(Nanos(2 * SECOND.0));
    let mut replies = place_replies(&mut coordinator);
    let (to, reply) = replies.remove(0);
    assert_eq!((to, decision_of(reply).0.details.spec.kind(), replies.len()), (0, "replicas", 0));
}

fn released_early(coordinator: &mut Coordinator<Numbers>, now: Nanos) -> u64 {
    snapshot(coordinator, now).counts.released_early
}

#[test]
fn early_expiries_over_the_eviction_limit_are_counted() {
    let mut coordinator: Coordinator<Numbers> =
        coordinator_with_idle_links("", Limits { decisions: 1, evicted: 2, ..Limits::default() });
    let before = loads(&mut coordinator, at(1_100));
    for count in 1..=6_u64 {
        decision_of(place_now(&mut coordinator, at(1_100), block(None)));
        assert_eq!(released_early(&mut coordinator, at(1_100)), count.saturating_sub(3));
    }
    assert_ne!(loads(&mut coordinator, at(1_100)), before);
    // The entries that were not evicted expire on their own, and do not count as released early.
    assert_eq!(released_early(&mut coordinator, at(60_000)), 3);
}

#[test]
fn eviction_follows_the_order_of_decisions_not_of_ids() {
    let mut coordinator: Coordinator<Numbers> =
        coordinator_with_idle_links("interval: 2s", Limits { decisions: 1, ..Limits::default() });
    assert_eq!(place(&mut coordinator, at(1_100), block(None), 0), []);
    let (small, _) = decision_of(place_now(&mut coordinator, at(1_200), block_of_size(1, None)));
    assert_eq!(small.id, DecisionId(1));
    coordinator.wake(Nanos(2 * SECOND.0));
    let (waited, _) = decision_of(place_replies(&mut coordinator).remove(0).1);
    assert_eq!(waited.id, DecisionId(0));
    assert_eq!(coordinator.decision(at(2_100), DecisionId(0)), Ok(DecisionLookup::InMemory(waited)));
    assert_eq!(coordinator.decision(at(2_100), DecisionId(1)), Ok(DecisionLookup::Evicted(DecisionId(1))));
}

#[test]
fn a_record_omits_long_constraint_lists() {
    let mut coordinator: Coordinator<Numbers> = coordinator_with_idle_links("", Limits::default());
    let mut placement = block(None);
    let PlacementSpec::Replicas(spec) = &mut placement.spec else { panic!("it is a block") };
    spec.exclude = vec!["r4h3".to_owned(); 100];
    let (record, _) = decision_of(place_now(&mut coordinator, at(1_100), placement));
    assert!(!record.details.hosts.contains(&"r4h3".to_owned()));
    let stored = serde_json::to_string(&record.details.spec).expect("the record serializes");
    assert!(stored.len() < 200, "{stored}");
    // The name of the mark in stored records and in the schema never changes.
    assert!(stored.contains(r#""forgotten":true"#), "{stored}");
    let schema = serde_json::to_string(&schemars::schema_for!(PlacementSpec)).expect("a schema is JSON");
    assert_eq!(schema.matches(r#""forgotten":"#).count(), 2, "{schema}");
    assert!(!schema.contains("truncated"), "{schema}");
}

#[test]
fn repeats_count_as_activity_of_a_client() {
    let mut coordinator: Coordinator<Numbers> =
        coordinator_with_idle_links("", Limits { clients: 2, ..Limits::default() });
    for (client, sequence) in [("a", 2), ("b", 1), ("a", 2)] {
        decision_of(place_now(&mut coordinator, at(1_100), block(Some((client, sequence)))));
    }
    let older = place_now(&mut coordinator, at(1_100), block(Some(("a", 1))));
    assert_eq!(older, Err(PlaceError::Superseded { last: 2 }));
    decision_of(place_now(&mut coordinator, at(1_100), block(Some(("c", 1)))));
    let known = snapshot(&mut coordinator, at(1_100)).clients;
    assert_eq!(known, [(Arc::from("a"), 2), (Arc::from("c"), 1)]);
}

#[test]
fn callers_of_one_block_are_limited_and_disconnected_ones_do_not_count() {
    fn send<A: U32>(coordinator: &mut Coordinator<A>, to: u32) -> PlaceReplies {
        place(coordinator, at(1_100), block(Some(("a", 1))), to)
    }
    let mut coordinator: Coordinator<Numbers> =
        coordinator_with_idle_links("interval: 2s", Limits::default());
    (0..16).for_each(|to| assert_eq!(send(&mut coordinator, to), []));
    assert_eq!(send(&mut coordinator, 16), [(16, Err(PlaceError::Busy))]);
    // Only every tenth of these callers is still connected.
    enum EveryTenth {}
    impl Addresses for EveryTenth {
        type To<T> = u32;

        fn is_open<T>(to: &u32) -> bool {
            to.is_multiple_of(10)
        }
    }
    let mut coordinator: Coordinator<EveryTenth> =
        coordinator_with_idle_links("interval: 2s", Limits::default());
    (0..100).for_each(|to| assert_eq!(send(&mut coordinator, to), []));
    coordinator.wake(Nanos(2 * SECOND.0));
    let callers: Vec<u32> = place_replies(&mut coordinator).into_iter().map(|(to, _)| to).collect();
    assert_eq!(callers, [0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 99]);
}

#[test]
fn the_least_recently_active_client_is_forgotten() {
    let mut coordinator: Coordinator<Numbers> =
        coordinator_with_idle_links("", Limits { clients: 2, ..Limits::default() });
    for (client, sequence) in [("a", 1), ("b", 1), ("a", 2), ("c", 1)] {
        decision_of(place_now(&mut coordinator, at(1_100), block(Some((client, sequence)))));
    }
    let known = snapshot(&mut coordinator, at(1_100)).clients;
    assert_eq!(known, [(Arc::from("a"), 2), (Arc::from("c"), 1)]);
}

#[test]
fn the_number_of_waiting_blocks_is_limited() {
    let mut coordinator: Coordinator<Numbers> =
        coordinator_with_idle_links("interval: 2s", Limits { waiting: 1, ..Limits::default() });
    assert_eq!(place(&mut coordinator, at(1_100), block(None), 0), []);
    assert_eq!(place_now(&mut coordinator, at(1_200), block(None)), Err(PlaceError::Busy));
    assert_eq!(place(&mut coordinator, at(2_000), block(None), 1).len(), 1);
}

#[test]
fn an_invalid_report_is_rejected_by_field_and_changes_nothing() {
    use InvalidReportReason::{Duplicate, EmptyWindow, FutureWindow, HealthWithLoads, NegativeLoad};
    let mut coordinator: Coordinator<Numbers> = coordinator_with_idle_links("", Limits::default());
    let before = observable_state(&mut coordinator, at(2_000));
    let window = (SECOND, Nanos(2 * SECOND.0));
    let valid = Report { loads: samples(window, [(ResourceId(8), Load(1))]), ..idle(Nanos(2 * SECOND.0)) };
    let (up, drained) = (
        HostReport { up: Some(true), ..host_report(0) },
        HostReport { draining: Some(true), ..host_report(0) },
    );
    let load = |link, load| samples(window, [(ResourceId(8), Load(1)), (ResourceId(link), Load(load))]);
    let cases = [
        (Report { window: (SECOND, SECOND), ..valid.clone() }, ReportPart::Window, EmptyWindow),
        (Report { window: (at(2_000), at(1_900)), ..valid.clone() }, ReportPart::Window, EmptyWindow),
        (Report { window: (SECOND, at(3_001)), ..valid.clone() }, ReportPart::Window, FutureWindow),
        (Report { loads: load(9, -1), ..valid.clone() }, ReportPart::Load(1), NegativeLoad),
        (Report { loads: load(8, 1), ..valid.clone() }, ReportPart::Load(1), Duplicate),
        (Report { hosts: vec![up], ..valid.clone() }, ReportPart::Host(0), HealthWithLoads),
        (Report { hosts: vec![drained, drained], ..valid.clone() }, ReportPart::Host(1), Duplicate),
    ];
    for (report, part, reason) in cases {
        let result = coordinator.report(at(2_000), report.clone());
        assert_eq!(result, Err(InvalidReport { part, reason }), "{report:?}");
        assert_eq!(observable_state(&mut coordinator, at(2_000)), before, "{report:?}");
    }
    assert_eq!(accepted_and_skipped(&mut coordinator, at(2_000), valid), (1, Skipped::default()));
}

/// An empty report of one host.
fn host_report(host: u32) -> HostReport {
    HostReport { host: HostId(host), up: None, draining: None, stored: None, storage: None }
}

/// A report of hosts over a window of half a second.
fn report_of_hosts(until: Nanos, hosts: Vec<HostReport>) -> Report {
    Report { window: (Nanos(until.0 - SECOND.0 / 2), until), hosts, ..Report::default() }
}

/// Number of accepted links of a report, and the number of skipped ones.
fn accepted_and_skipped(
    coordinator: &mut Coordinator<Numbers>,
    now: Nanos,
    report: Report,
) -> (u64, Skipped) {
    match coordinator.report(now, report) {
        Ok(ReportSummary { links, skipped, .. }) => (links, skipped),
        other => panic!("not accepted: {other:?}"),
    }
}

#[test]
fn a_repeated_report_is_applied_once_and_answered_twice() {
    let mut coordinator: Coordinator<Numbers> = coordinator_with_idle_links("", Limits::default());
    let (all, none) = (idle(SECOND).loads.len() as u64, Skipped::default());
    let report =
        Report { hosts: vec![HostReport { draining: Some(true), ..host_report(3) }], ..idle(at(2_000)) };
    assert_eq!(accepted_and_skipped(&mut coordinator, at(2_000), report.clone()), (all, none));
    let before = loads(&mut coordinator, at(2_000));
    assert_eq!(
        accepted_and_skipped(&mut coordinator, at(2_000), report),
        (0, Skipped { stale: all + 1, ..none })
    );
    assert_eq!(loads(&mut coordinator, at(2_000)), before);
}

#[test]
fn links_of_a_host_that_is_down_or_just_up_are_skipped() {
    let mut coordinator: Coordinator<Numbers> = coordinator_with_idle_links("", Limits::default());
    let (all, none) = (idle(SECOND).loads.len() as u64, Skipped::default());
    let up = |up| vec![HostReport { up: Some(up), ..host_report(0) }];
    let ingress = ledger().fabric().ingress(HostId(0)).expect("a tree");
    let until = |coordinator: &mut Coordinator<Numbers>, now| {
        loads(coordinator, now).into_iter().find(|state| state.link == ingress).expect("a link").until
    };
    assert_eq!(
        accepted_and_skipped(&mut coordinator, at(1_500), report_of_hosts(at(1_500), up(false))),
        (0, none)
    );
    assert_eq!(
        accepted_and_skipped(&mut coordinator, at(2_000), idle(at(2_000))),
        (all - 2, Skipped { down: 2, ..none })
    );
    assert_eq!(until(&mut coordinator, at(2_000)), Some(SECOND));
    assert_eq!(
        accepted_and_skipped(&mut coordinator, at(3_100), report_of_hosts(at(2_500), up(true))),
        (0, none)
    );
    assert_eq!(until(&mut coordinator, at(3_100)), None, "the host came back without a report since");
    assert_eq!(
        accepted_and_skipped(&mut coordinator, at(3_200), idle(at(3_000))),
        (all - 2, Skipped { stale: 2, ..none })
    );
    assert_eq!(accepted_and_skipped(&mut coordinator, at(4_000), idle(at(4_000))), (all, none));
    assert_eq!(until(&mut coordinator, at(4_000)), Some(at(4_000)));
}

#[test]
fn the_latest_window_wins_in_any_order_of_arrival() {
    // Availability of the only rack besides the writer's at three times. The reports arrive in every order.
    let truth = [(at(1_200), true), (at(1_400), false), (at(1_600), true)];
    let rack = |until, open: bool, drain: bool| {
        let host = |host| match drain {
            true => HostReport { draining: Some(!open), ..host_report(host) },
            false => HostReport { up: Some(open), ..host_report(host) },
        };
        report_of_hosts(until, (4..20).map(host).collect())
    };
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        for (last, drain) in [(2, true), (1, true), (2, false), (1, false)] {
            let mut coordinator: Coordinator<Numbers> = coordinator_with_idle_links("", Limits::default());
            for (until, open) in order.into_iter().filter(|&place| place <= last).map(|place| truth[place]) {
                accepted_and_skipped(&mut coordinator, at(1_700), rack(until, open, drain));
            }
            if !drain {
                let window = (at(1_700), at(2_000));
                let loads = samples(
                    window,
                    idle(at(2_000)).loads.iter().map(|sample| (sample.resource, sample.load)),
                );
                let seen = Report { window, loads, ..Report::default() };
                accepted_and_skipped(&mut coordinator, at(2_000), seen);
            }
            let answer = place_now(&mut coordinator, at(2_000), block(None));
            assert_eq!(answer.is_ok(), truth[last].1, "{order:?} {last} {drain}: {answer:?}");
        }
    }
}

#[test]
fn hosts_that_are_down_draining_or_full_get_no_copies() {
    let mut coordinator = small_disks();
    // All racks except the writer's and the last are unusable, each for one of three reasons.
    let hosts = (4..16).map(|host| match host % 3 {
        0 => HostReport { up: Some(false), ..host_report(host) },
        1 => HostReport { draining: Some(true), ..host_report(host) },
        _ => HostReport { stored: Some(Bytes(900 << 20)), ..host_report(host) },
    });
    assert!(coordinator.report(at(1_500), report_of_hosts(at(1_500), hosts.collect())).is_ok());
    for _ in 0..4 {
        let (record, _) = decision_of(place_now(&mut coordinator, at(1_600), block(None)));
        assert!(
            record.details.hosts[1..].iter().all(|host| host.starts_with("r4")),
            "{:?}",
            record.details.hosts
        );
    }
}

/// A coordinator with hosts that store 1 GiB each; all links were reported idle.
fn small_disks() -> Coordinator<Numbers> {
    let cluster = cluster(&racks_of_four(5, "[{read: 50MB/s, write: 50MB/s, capacity: 1GiB}]"));
    let policy = replicas::REGISTRY.make("sinbad", "").expect("a policy of the registry");
    let mut coordinator = Coordinator::new(
        Engine::new(clusters::ledger(&cluster), policy, 7, Explain::Top(8)),
        labels(),
        Limits::default(),
    );
    assert!(coordinator.report(SECOND, idle(SECOND)).is_ok());
    coordinator
}

#[test]
fn placements_after_a_storage_report_add_to_it() {
    // Four blocks fill the writer's own host, which takes the first copy while it has room.
    let first = |coordinator: &mut Coordinator<Numbers>, now| {
        decision_of(place_now(coordinator, now, block(None))).0.details.hosts[0] == "r0h0"
    };
    let stores = |until, stored: u64| {
        report_of_hosts(until, vec![HostReport { stored: Some(Bytes(stored << 20)), ..host_report(0) }])
    };
    let mut coordinator = small_disks();
    assert!(first(&mut coordinator, at(1_200)) && first(&mut coordinator, at(1_400)));
    // The count includes the first block, but not the second.
    assert!(coordinator.report(at(1_500), stores(at(1_300), 256)).is_ok());
    assert!(first(&mut coordinator, at(1_500)) && first(&mut coordinator, at(1_600)));
    assert!(!first(&mut coordinator, at(1_700)), "four blocks fill it");
    // An older count is ignored. A newer one below the placed total frees capacity.
    let older = accepted_and_skipped(&mut coordinator, at(1_700), stores(at(1_250), 0));
    assert_eq!(older, (0, Skipped { stale: 1, ..Skipped::default() }));
    assert!(!first(&mut coordinator, at(1_700)));
    accepted_and_skipped(&mut coordinator, at(1_800), stores(at(1_750), 768));
    assert!(first(&mut coordinator, at(1_800)) && !first(&mut coordinator, at(1_800)));
    // All blocks placed after the count still use capacity.
    accepted_and_skipped(&mut coordinator, at(1_900), stores(at(1_760), 0));
    assert!((0..3).all(|_| first(&mut coordinator, at(1_900))) && !first(&mut coordinator, at(1_900)));
}

#[test]
fn time_never_goes_backward() {
    let mut coordinator: Coordinator<Numbers> = coordinator_with_idle_links("", Limits::default());
    decision_of(place_now(&mut coordinator, at(1_500), block(None)));
    let (record, _) = decision_of(place_now(&mut coordinator, at(100), block(None)));
    assert_eq!(record.at, at(1_500));
}

/// Arbitrary reports, most of them nearly valid.
fn reports() -> impl Strategy<Value = Vec<(Nanos, Report)>> {
    let load = (0u32..44, -1i64..3).prop_map(|(link, load)| (ResourceId(link), Load(load * 100_000_000)));
    let host = (0u32..4, prop::option::of(any::<bool>()), prop::option::of(any::<bool>()));
    let host = host.prop_map(|(host, up, draining)| HostReport {
        host: HostId(host),
        up,
        draining,
        stored: None,
        storage: None,
    });
    let report = (0u64..6, 0u64..6, prop::collection::vec(load, 0..4), prop::collection::vec(host, 0..2));
    let report = report.prop_map(|(from, until, loads, hosts)| Report {
        window: (at(from * 500), at(until * 500)),
        loads: samples((at(from * 500), at(until * 500)), loads),
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
    fn skipped_samples_are_exactly_those_the_ledger_ignores(reports in reports()) {
        let (mut coordinator, mut ledger) = (coordinator::<Numbers>("", Limits::default()), ledger());
        let mut last_windows = BTreeMap::new();
        for (now, report) in reports {
            let result = coordinator.report(now, report.clone());
            let is_mixed = !report.loads.is_empty() && report.hosts.iter().any(|state| state.up.is_some());
            let hosts: BTreeSet<HostId> = report.hosts.iter().map(|state| state.host).collect();
            let links: BTreeSet<ResourceId> = report.loads.iter().map(|sample| sample.resource).collect();
            let (from, until) = report.window;
            let is_invalid = is_mixed
                || hosts.len() < report.hosts.len()
                || links.len() < report.loads.len()
                || report.loads.iter().any(|sample| sample.load.0 < 0)
                || from >= until
                || until > now.plus(SECOND);
            if is_invalid {
                prop_assert!(matches!(result, Err(InvalidReport { .. })), "{result:?} {report:?}");
                continue;
            }
            let mut stale = 0;
            for state in &report.hosts {
                let mut is_newer = |field, is_reported: bool| {
                    let last = last_windows.entry((state.host, field)).or_insert(Nanos(0));
                    let new = until > *last;
                    stale += u64::from(is_reported && !new);
                    *last = if is_reported { until.max(*last) } else { *last };
                    is_reported && new
                };
                is_newer("draining", state.draining.is_some());
                if is_newer("up", state.up.is_some()) {
                    state.up.iter().for_each(|&up| ledger.set_health(state.host, up, now));
                }
            }
            let samples = report.loads.clone();
            let discarded = ledger.report(&samples, now);
            let Ok(ReportSummary { links, skipped, .. }) = result else { panic!("{result:?} {report:?}") };
            let expected = Skipped { stale: discarded.stale + stale, down: discarded.down, unknown: 0 };
            prop_assert_eq!(skipped, expected);
            prop_assert_eq!(links, samples.len() as u64 - discarded.total());
            let mut scratch = Scratch::default();
            let view = ledger.view(now, &mut scratch);
            for state in loads(&mut coordinator, now) {
                prop_assert_eq!(state.measured, view.measured(state.link));
            }
        }
    }
}
