//! Enforcers of one name, and addresses of enforcers that ended.

use leeward_fabric::Nanos;
use leeward_promises::{AcknowledgeError, Acknowledgement, Enforcement, RequestCounters};
use leeward_records::EnforcerKind;

use crate::support::{acknowledgement, grant};

const TTL: Nanos = Nanos(15);

/// An acknowledgement of `nfs@s` by this instance, with this number of requests.
fn acknowledged(instance: Option<&str>, requests: u64) -> Acknowledgement {
    let counters = RequestCounters { requests, late: requests / 2, ..RequestCounters::default() };
    let sent = acknowledgement(EnforcerKind::Nfs, "s", TTL, None, &[("a", counters)]);
    Acknowledgement { instance: instance.map(str::to_owned), ..sent }
}

fn acknowledge(
    enforcement: &mut Enforcement,
    now: u64,
    sent: Acknowledgement,
) -> Result<(), AcknowledgeError> {
    enforcement.expire(Nanos(now));
    enforcement.acknowledge(sent, Nanos(now), &|_: &str| true).map(drop)
}

fn requests(enforcement: &Enforcement) -> u64 {
    enforcement.status(&grant("a", "c", "s", [0; 3]), 1, None, Nanos(0)).total.requests
}

#[test]
fn two_enforcers_of_a_name_never_take_turns_and_count_nothing_twice() {
    let mut enforcement = Enforcement::default();
    acknowledge(&mut enforcement, 0, acknowledged(Some("one"), 1_000)).expect("it is the first");
    for round in 1..10 {
        let other = acknowledge(&mut enforcement, round, acknowledged(Some("other"), 10));
        assert_eq!(other, Err(AcknowledgeError::OtherInstance(Nanos(round - 1 + TTL.0))));
        acknowledge(&mut enforcement, round, acknowledged(Some("one"), 1_000 + round))
            .expect("it has the lease");
    }
    assert_eq!(requests(&enforcement), 9);
    // One that states no instance is somebody's own request.
    acknowledge(&mut enforcement, 10, acknowledged(None, 1_010)).expect("no instance");
    assert!(acknowledge(&mut enforcement, 10, acknowledged(Some("other"), 10)).is_err());
    // The same program after a restart goes on at once.
    acknowledge(&mut enforcement, 11, acknowledged(Some("one"), 3)).expect("the same instance");
    assert_eq!(requests(&enforcement), 13);
    // Without its lease, the name is free.
    acknowledge(&mut enforcement, 11 + TTL.0, acknowledged(Some("other"), 10)).expect("the lease ran out");
    assert_eq!(requests(&enforcement), 13, "it is unknown since when it counts");
    assert!(acknowledge(&mut enforcement, 12 + TTL.0, acknowledged(Some("one"), 4)).is_err());
    // So is it after a removal.
    assert!(enforcement.end_enforcer("nfs@s", Nanos(13 + TTL.0)).is_some());
    acknowledge(&mut enforcement, 14 + TTL.0, acknowledged(Some("one"), 4)).expect("it was removed");
}

#[test]
fn a_name_belongs_to_its_host_until_the_lease_runs_out() {
    let mut enforcement = Enforcement::default();
    let at = |host: &str, address: &str| Acknowledgement {
        name: "net@h2".to_owned(),
        addresses: vec![address.parse().expect("an address")],
        ..acknowledgement(EnforcerKind::Net, host, TTL, None, &[])
    };
    acknowledge(&mut enforcement, 0, at("h1", "10.0.0.1")).expect("it is the first");
    let taken = AcknowledgeError::NameTaken(EnforcerKind::Net, "h1".to_owned());
    assert_eq!(acknowledge(&mut enforcement, TTL.0 - 1, at("h2", "10.0.0.2")), Err(taken));
    enforcement.expire(TTL);
    let acknowledged =
        enforcement.acknowledge(at("h2", "10.0.0.2"), TTL, &|_: &str| true).expect("it is free");
    assert_eq!(acknowledged.moved, ["h2", "h1"]);
    assert_eq!(enforcement.enforcers().addresses("h1").len(), 0);
    assert_eq!(enforcement.enforcers().get("net@h2").map(|state| state.record.host.as_str()), Some("h2"));
}

#[test]
fn the_addresses_of_an_enforcer_that_ended_count_for_a_lease() {
    let mut enforcement = Enforcement::default();
    let at = |address: &str| Acknowledgement {
        addresses: vec![address.parse().expect("an address")],
        ..acknowledgement(EnforcerKind::Net, "h1", TTL, None, &[])
    };
    let count = |enforcement: &Enforcement| enforcement.enforcers().addresses("h1").len();
    acknowledge(&mut enforcement, 0, at("10.0.0.1")).expect("it is the first");
    assert!(enforcement.end_enforcer("net@h1", Nanos(5)).is_some());
    assert_eq!((count(&enforcement), enforcement.due()), (1, Some(Nanos(20))));
    // A restart changes nothing for others.
    let again = enforcement.acknowledge(at("10.0.0.1"), Nanos(6), &|_: &str| true).expect("it is free");
    assert_eq!(again.moved, [""; 0]);
    assert_eq!(enforcement.forget_addresses(Nanos(20)), [""; 0]);
    // Without one, the host has no addresses in the end.
    assert!(enforcement.end_enforcer("net@h1", Nanos(7)).is_some());
    assert_eq!(enforcement.forget_addresses(Nanos(21)), [""; 0]);
    assert_eq!(enforcement.forget_addresses(Nanos(22)), ["h1"]);
    assert_eq!((count(&enforcement), enforcement.due()), (0, None));
    // One that moved replaces its former address at once.
    acknowledge(&mut enforcement, 30, at("10.0.0.1")).expect("it is free");
    assert!(enforcement.end_enforcer("net@h1", Nanos(31)).is_some());
    let moved = enforcement.acknowledge(at("10.0.0.7"), Nanos(32), &|_: &str| true).expect("it is free");
    assert_eq!((moved.moved, count(&enforcement)), (vec!["h1".to_owned()], 1));
}
