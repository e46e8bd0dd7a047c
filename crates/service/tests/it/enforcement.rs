//! Promises in force: acknowledgements of enforcers, leases and versions, before and after a restart.

use leeward_fabric::Nanos;
use leeward_promises::{
    AcknowledgeError, AcknowledgedWorkload, Acknowledgement, Latency, PlaceState, PromiseState,
    PromiseStatus, RequestCounters,
};
use leeward_records::{AppliedState, Change, Enforcer, EnforcerKind, PromisesVersion};
use leeward_service::{Coordinator, EnforcerError, EnforcerReply, NoEnforcer};
use leeward_store::{Database, Leadership, Sqlite, Store, Updates};
use leeward_testing::postgres;
use leeward_testing::workloads::form;

use crate::persistence::{Shared, as_leader};
use crate::support::Numbers;
use crate::workloads::{SECOND, coordinator, place_and_run_jobs, placed_record, placement};

/// Length of the leases of these tests.
const TTL: Nanos = Nanos(15 * SECOND.0);

/// Name, kind and host of the enforcers of a workload whose client is `r0h0` and whose server is `r1h1`.
const ENFORCERS: [(&str, EnforcerKind, &str); 3] = [
    ("net@r0h0", EnforcerKind::Net, "r0h0"),
    ("net@r1h1", EnforcerKind::Net, "r1h1"),
    ("nfs@r1h1", EnforcerKind::Nfs, "r1h1"),
];

fn seconds(count: u64) -> Nanos {
    Nanos(count * SECOND.0)
}

/// Grants the SLO of a workload at `r1h1`.
fn promise(coordinator: &mut Coordinator<Numbers>, name: &str, millis: u64) {
    placed_record(place_and_run_jobs(coordinator, placement(&form(name, Some("r1h1"), millis, 10), None), 0));
}

/// An acknowledgement of one of the enforcers that applies these workloads.
fn acknowledgement(at: usize, applied: Option<PromisesVersion>, workloads: &[&str]) -> Acknowledgement {
    let (name, kind, host) = ENFORCERS[at];
    let workload = |name: &&str| AcknowledgedWorkload {
        name: (*name).to_owned(),
        state: AppliedState::Applied,
        counters: RequestCounters::default(),
        latencies: Vec::new(),
    };
    Acknowledgement {
        name: name.to_owned(),
        kind,
        host: host.to_owned(),
        device: None,
        instance: None,
        addresses: Vec::new(),
        ttl: TTL,
        applied,
        workloads: workloads.iter().map(workload).collect(),
    }
}

/// All enforcers apply the present version.
fn enforce(coordinator: &mut Coordinator<Numbers>, now: Nanos, workloads: &[&str]) {
    for at in 0..ENFORCERS.len() {
        let version = coordinator.promises_version();
        let reply = coordinator.acknowledge(now, acknowledgement(at, Some(version), workloads));
        assert_eq!(reply.expect("a valid acknowledgement").unknown, Vec::<String>::new());
    }
}

fn status(coordinator: &mut Coordinator<Numbers>, now: Nanos, name: &str) -> PromiseStatus {
    coordinator.workload(now, name).expect("a workload").status.expect("a promise")
}

fn state(coordinator: &mut Coordinator<Numbers>, now: Nanos, name: &str) -> PromiseState {
    status(coordinator, now, name).state
}

fn records(coordinator: &mut Coordinator<Numbers>, now: Nanos) -> Vec<Enforcer> {
    let replies = coordinator.enforcers(now, None, 100);
    replies.iter().map(|reply| Enforcer::clone(&reply.state.record)).collect()
}

#[test]
fn a_promise_is_decided_then_enforced_then_seen_and_unenforced_after_silence() {
    let mut coordinator: Coordinator<Numbers> = coordinator();
    assert_eq!(coordinator.promises_version(), PromisesVersion::default());
    promise(&mut coordinator, "a", 50);
    let version = PromisesVersion { set: SECOND.0, number: 1 };
    assert_eq!(coordinator.promises_version(), version);
    let decided = status(&mut coordinator, SECOND, "a");
    assert_eq!((decided.version, decided.state), (1, PromiseState::Decided));
    let places: Vec<(EnforcerKind, &str, PlaceState)> =
        decided.places.iter().map(|one| (one.place.kind, one.place.host.as_str(), one.state)).collect();
    let absent =
        [ENFORCERS[0], ENFORCERS[2], ENFORCERS[1]].map(|(_, kind, host)| (kind, host, PlaceState::Absent));
    assert_eq!(places, absent, "requests, service, replies; no enforcer is no error of the decision");
    // Registered, and then one after the other has applied the promise.
    for at in 0..3 {
        coordinator.acknowledge(SECOND, acknowledgement(at, None, &[])).expect("a registration");
    }
    assert_eq!(status(&mut coordinator, SECOND, "a").places[0].state, PlaceState::Pending);
    let expected = [PromiseState::Partial, PromiseState::Partial, PromiseState::Enforced];
    for (at, expected) in expected.into_iter().enumerate() {
        let reply = coordinator.acknowledge(SECOND, acknowledgement(at, Some(version), &["a", "gone"]));
        let reply = reply.expect("a valid acknowledgement");
        assert_eq!((reply.current, reply.unknown), (1, vec!["gone".to_owned()]));
        assert_eq!(state(&mut coordinator, SECOND, "a"), expected);
    }
    let mut seen = acknowledgement(2, Some(version), &["a"]);
    seen.workloads[0].latencies = vec![Latency { percentile: 99.0, seconds: 0.02 }];
    coordinator.acknowledge(seconds(2), seen).expect("a valid acknowledgement");
    let known = status(&mut coordinator, seconds(2), "a");
    assert_eq!(known.state, PromiseState::Seen);
    let seen = known.seen.expect("a latency");
    assert_eq!((seen.seconds, seen.enforcer.as_deref()), (0.02, Some("nfs@r1h1")));
    // A lease that is renewed without a difference is no change to store.
    coordinator.changes().for_each(drop);
    enforce(&mut coordinator, seconds(10), &["a"]);
    assert_eq!(coordinator.changes().count(), 0);
    assert!(coordinator.wakes_at().is_some_and(|at| at <= seconds(25)), "the leases end then");
    coordinator.wake(Nanos(seconds(25).0 - 1));
    assert_eq!(state(&mut coordinator, Nanos(seconds(25).0 - 1), "a"), PromiseState::Seen);
    coordinator.wake(seconds(25));
    let ran_out = |change| match change {
        Change::Enforcer(enforcer) => enforcer.expired && enforcer.since == seconds(25),
        _ => false,
    };
    assert_eq!(coordinator.changes().map(ran_out).collect::<Vec<_>>(), [true; 3]);
    let silent = status(&mut coordinator, seconds(25), "a");
    assert_eq!(silent.state, PromiseState::Unenforced);
    assert!(silent.places.iter().all(|place| place.state == PlaceState::Expired), "{silent:?}");
    enforce(&mut coordinator, seconds(26), &["a"]);
    assert_eq!(state(&mut coordinator, seconds(26), "a"), PromiseState::Seen);
    assert_eq!(coordinator.promises_version(), version, "enforcement changes no promise");
}

#[test]
fn a_drift_and_a_refusal_are_shown_with_their_reason() {
    let mut coordinator: Coordinator<Numbers> = coordinator();
    promise(&mut coordinator, "a", 50);
    enforce(&mut coordinator, SECOND, &["a"]);
    for (applied, expected) in [
        (AppliedState::Drifted("rate 1mbit".to_owned()), PlaceState::Drifted),
        (AppliedState::Refused("no HTB".to_owned()), PlaceState::Refused),
    ] {
        let version = coordinator.promises_version();
        let mut wrong = acknowledgement(0, Some(version), &["a"]);
        wrong.workloads[0].state = applied.clone();
        coordinator.acknowledge(SECOND, wrong).expect("a valid acknowledgement");
        let status = status(&mut coordinator, SECOND, "a");
        assert_eq!((status.state, status.places[0].state), (PromiseState::Unenforced, expected));
        let (AppliedState::Drifted(text) | AppliedState::Refused(text)) = applied else { continue };
        assert_eq!(status.places[0].detail, Some(text));
    }
    // Another enforcer of the same host may apply what the first refuses.
    let mut second = acknowledgement(0, Some(coordinator.promises_version()), &["a"]);
    second.name = "net2@r0h0".to_owned();
    coordinator.acknowledge(SECOND, second).expect("a valid acknowledgement");
    assert_eq!(state(&mut coordinator, SECOND, "a"), PromiseState::Enforced);
    assert!(coordinator.remove_enforcer(SECOND, "net2@r0h0").is_ok());
    assert_eq!(state(&mut coordinator, SECOND, "a"), PromiseState::Unenforced);
    let gone = Err(NoEnforcer("net2@r0h0".to_owned()));
    assert_eq!(coordinator.remove_enforcer(SECOND, "net2@r0h0"), gone);
}

#[test]
fn an_earlier_version_does_not_count_and_a_later_one_is_an_error() {
    let mut coordinator: Coordinator<Numbers> = coordinator();
    promise(&mut coordinator, "slow", 200);
    enforce(&mut coordinator, SECOND, &["slow"]);
    let first = coordinator.promises_version();
    promise(&mut coordinator, "fast", 40);
    let second = coordinator.promises_version();
    assert_eq!(second, PromisesVersion { number: 2, ..first });
    // The other promise has another priority now, so all of its enforcers are behind.
    let slow = status(&mut coordinator, SECOND, "slow");
    assert_eq!((slow.version, slow.state), (2, PromiseState::Decided));
    let reply = coordinator.acknowledge(SECOND, acknowledgement(0, Some(first), &["slow", "fast"]));
    let EnforcerReply { current, state: enforcer, .. } = reply.expect("the version was applied");
    assert_eq!((current, enforcer.record.applied), (2, Some(1)));
    assert_eq!(state(&mut coordinator, SECOND, "fast"), PromiseState::Decided);
    enforce(&mut coordinator, SECOND, &["slow", "fast"]);
    assert_eq!(state(&mut coordinator, SECOND, "slow"), PromiseState::Enforced);
    let before = records(&mut coordinator, SECOND);
    coordinator.changes().for_each(drop);
    let rejected = |change: &dyn Fn(&mut Acknowledgement)| {
        let mut wrong = acknowledgement(0, Some(second), &["slow", "fast"]);
        change(&mut wrong);
        wrong
    };
    let cases = [
        (
            rejected(&|wrong| wrong.applied = Some(first)),
            EnforcerError::Rejected(AcknowledgeError::OlderVersion { acknowledged: 1, before: 2 }),
        ),
        (
            rejected(&|wrong| wrong.applied = Some(PromisesVersion { number: 3, ..second })),
            EnforcerError::Rejected(AcknowledgeError::FutureVersion { acknowledged: 3, present: 2 }),
        ),
        (
            rejected(&|wrong| wrong.applied = Some(PromisesVersion { set: 1, number: 1 })),
            EnforcerError::Rejected(AcknowledgeError::OtherSet(second)),
        ),
        (
            rejected(&|wrong| wrong.host = "r0h1".to_owned()),
            EnforcerError::Rejected(AcknowledgeError::NameTaken(EnforcerKind::Net, "r0h0".to_owned())),
        ),
        (
            rejected(&|wrong| wrong.host = "elsewhere".to_owned()),
            EnforcerError::UnknownHost("elsewhere".to_owned()),
        ),
        (
            rejected(&|wrong| wrong.device = Some("r1h1:ssd".to_owned())),
            EnforcerError::UnknownDevice("r1h1:ssd".to_owned()),
        ),
    ];
    for (wrong, expected) in cases {
        assert_eq!(coordinator.acknowledge(seconds(2), wrong), Err(expected));
        assert_eq!(records(&mut coordinator, seconds(2)), before, "nothing has changed");
    }
    assert_eq!(coordinator.changes().count(), 0);
    // After a restart, an enforcer has applied nothing, and may then acknowledge the present version again.
    coordinator.acknowledge(SECOND, acknowledgement(0, None, &[])).expect("a restart");
    assert_eq!(state(&mut coordinator, SECOND, "slow"), PromiseState::Partial);
    enforce(&mut coordinator, SECOND, &["slow", "fast"]);
    assert_eq!(state(&mut coordinator, SECOND, "slow"), PromiseState::Enforced);
}

#[test]
fn enforcers_get_their_promises_and_the_addresses_of_peers() {
    let mut coordinator: Coordinator<Numbers> = coordinator();
    promise(&mut coordinator, "a", 50);
    enforce(&mut coordinator, SECOND, &["a"]);
    let (set, before) = (coordinator.promises_version().set.to_string(), 1);
    let mut server = acknowledgement(1, Some(coordinator.promises_version()), &["a"]);
    server.addresses = vec!["10.0.0.2".parse().expect("an address")];
    coordinator.acknowledge(SECOND, server).expect("a valid acknowledgement");
    let client = coordinator.enforcer_promises(SECOND, "net@r0h0").expect("an enforcer");
    assert_eq!((&client.set, client.version), (&set, before + 1), "its filters name the addresses");
    let [requests] = client.net.as_slice() else { panic!("{client:?}") };
    assert_eq!((requests.stage.as_str(), requests.peer.as_str()), ("network-in", "r1h1"));
    assert_eq!((&*requests.peer_addresses, requests.priority), (&["10.0.0.2".to_owned()][..], 0));
    assert!(!requests.limits.is_empty() && client.nfs.is_empty());
    let server = coordinator.enforcer_promises(SECOND, "nfs@r1h1").expect("an enforcer");
    let [volume] = server.nfs.as_slice() else { panic!("{server:?}") };
    assert_eq!(volume.client, "r0h0");
    assert!(server.net.is_empty() && volume.slo.latency_s == 0.05);
    // A restart of the server's enforcer is no change for the client's one, and its end is one after a lease.
    let version = |coordinator: &mut Coordinator<Numbers>| coordinator.promises_version().number;
    let present = version(&mut coordinator);
    let mut server = acknowledgement(1, None, &[]);
    server.addresses = vec!["10.0.0.2".parse().expect("an address")];
    coordinator.remove_enforcer(SECOND, "net@r1h1").expect("an enforcer");
    coordinator.acknowledge(seconds(2), server).expect("a restart");
    assert_eq!(version(&mut coordinator), present);
    coordinator.remove_enforcer(seconds(3), "net@r1h1").expect("an enforcer");
    let peers = |coordinator: &mut Coordinator<Numbers>, now: Nanos| {
        let client = coordinator.enforcer_promises(now, "net@r0h0").expect("an enforcer");
        client.net[0].peer_addresses.len()
    };
    assert_eq!(peers(&mut coordinator, Nanos(seconds(18).0 - 1)), 1);
    assert_eq!((peers(&mut coordinator, seconds(18)), version(&mut coordinator)), (0, present + 1));
    // The end of the promise reaches its enforcers, and no others.
    let other =
        Acknowledgement { name: "net@r0h1".into(), host: "r0h1".into(), ..acknowledgement(0, None, &[]) };
    let now = seconds(18);
    coordinator.acknowledge(now, other).expect("a registration");
    let version = |coordinator: &mut Coordinator<Numbers>, name: &str| {
        coordinator.enforcer_promises(now, name).expect("an enforcer").version
    };
    assert_eq!(version(&mut coordinator, "net@r0h1"), 0);
    let id = coordinator.workload(now, "a").expect("a workload").record.id;
    coordinator.release(now, id).expect("a decision");
    let versions = (version(&mut coordinator, "net@r0h0"), version(&mut coordinator, "net@r0h1"));
    assert_eq!(versions, (present + 2, 0));
    assert_eq!(coordinator.enforcer_promises(now, "net@r0h0").expect("an enforcer").net, []);
    assert_eq!(coordinator.workload(now, "a").expect("a workload").status, None);
}

/// Asserts that a restart keeps versions and enforcers, and that their leases start again. `shared` is the store of a
/// follower, if the store can be shared; otherwise the follower gets the changes themselves.
fn check_restart(mut store: Box<dyn Store>, mut shared: Option<Box<dyn Store>>) {
    let mut before: Coordinator<Numbers> = coordinator();
    let mut following = coordinator::<Numbers>().into_follower();
    if let Some(shared) = &mut shared {
        let state = shared.load(100, 100).expect("the store is readable");
        following.resume(state, SECOND).expect("the state fits the cluster");
    }
    let mut kept = Vec::new();
    let mut keep = |coordinator: &mut Coordinator<Numbers>| {
        let changes: Vec<Change> = coordinator.changes().collect();
        store.apply(&changes).expect("the store accepts the changes");
        kept.extend(changes);
    };
    promise(&mut before, "a", 50);
    enforce(&mut before, seconds(2), &["a"]);
    let mut gone = acknowledgement(0, None, &[]);
    gone.name = "gone".to_owned();
    before.acknowledge(seconds(2), gone).expect("a registration");
    keep(&mut before);
    before.remove_enforcer(seconds(3), "gone").expect("an enforcer");
    let mut wrong = acknowledgement(1, Some(before.promises_version()), &["a"]);
    wrong.workloads[0].state = AppliedState::Refused("π\u{0} \"".to_owned());
    before.acknowledge(seconds(3), wrong).expect("a valid acknowledgement");
    keep(&mut before);
    let updates = match shared.map(|mut shared| shared.renew_lease("there")) {
        None => kept,
        Some(Ok(Leadership::Follower { updates: Updates::Changes(changes), .. })) => changes,
        Some(_) => panic!("not a follower"),
    };
    for change in updates {
        following.follow(seconds(3), change).expect("the state fits the cluster");
    }
    // A follower has the versions and enforcers of the leader, and leaves leases to it.
    following.wake(seconds(100));
    assert_eq!(following.changes().count(), 0);
    assert_eq!(following.wakes_at().filter(|&at| at < seconds(100)), None);
    assert_eq!(following.promises_version(), before.promises_version());
    assert_eq!(records(&mut following, seconds(100)), records(&mut before, seconds(3)));
    assert_eq!(status(&mut following, seconds(100), "a").places, status(&mut before, seconds(3), "a").places);
    // A service that begins later renews the leases once.
    let mut after: Coordinator<Numbers> = coordinator();
    let state = store.load(100, 100).expect("the store is readable");
    after.resume(state, seconds(100)).expect("the state fits the cluster");
    assert_eq!(after.promises_version(), before.promises_version());
    after.wake(Nanos(seconds(115).0 - 1));
    assert_eq!(records(&mut after, Nanos(seconds(115).0 - 1)), records(&mut before, seconds(3)));
    assert_eq!(status(&mut after, Nanos(seconds(115).0 - 1), "a").version, 1);
    after.wake(seconds(115));
    let expired = records(&mut after, seconds(115));
    assert!(expired.len() == 3 && expired.iter().all(|enforcer| enforcer.expired), "{expired:?}");
    promise(&mut after, "b", 200);
    let PromisesVersion { set, number } = before.promises_version();
    assert_eq!(after.promises_version(), PromisesVersion { set, number: number + 1 });
    // The new service does not know what changed before, so all enforcers read their promises once.
    let other =
        Acknowledgement { name: "net@r0h1".into(), host: "r0h1".into(), ..acknowledgement(0, None, &[]) };
    let reply = after.acknowledge(seconds(116), other).expect("a registration");
    assert_eq!(reply.current, number);
}

#[test]
fn versions_and_enforcers_survive_a_restart_with_a_file() {
    check_restart(as_leader(Box::new(Sqlite::in_memory().expect("an in-memory store opens"))), None);
}

#[test]
fn versions_and_enforcers_survive_a_restart_with_postgres() {
    let Some(server) = postgres::Server::shared() else { return };
    let shared = Shared(Database::read(&server.url(&server.database()), None).expect("a valid URL"));
    check_restart(as_leader(shared.store()), Some(shared.store()));
}
