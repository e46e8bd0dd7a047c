//! The state machine of promises in force, against a model of it.

use std::collections::BTreeMap;

use leeward_agreements::Grant;
use leeward_fabric::Nanos;
use leeward_promises::{AcknowledgeError, Enforcement, PlaceState, PromiseState, RequestCounters};
use leeward_records::{Enforcer, EnforcerKind, PromisesVersion};
use proptest::prelude::*;

use crate::support::{acknowledgement, grant};

const SECOND: u64 = Nanos::SECOND.0;

/// Kinds and hosts of the enforcers, which are the places of the promise in their order.
const ENFORCERS: [(EnforcerKind, &str); 3] =
    [(EnforcerKind::Net, "c"), (EnforcerKind::Nfs, "s"), (EnforcerKind::Net, "s")];

/// An operation or event.
#[derive(Clone, Debug)]
enum Step {
    Wait(u64),
    /// The priorities of the promise change.
    Change,
    /// The promise of another host changes.
    OtherChange,
    /// An acknowledgement of a version, relative to the present one.
    Acknowledge {
        at: usize,
        ttl: u64,
        version: Option<i64>,
        names_workload: bool,
    },
    Remove(usize),
    /// The service starts again.
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let acknowledge = (0_usize..3, 1_u64..30, prop::option::of(-3_i64..2), prop::bool::weighted(0.9));
    prop_oneof![
        3 => (0_u64..20).prop_map(Step::Wait),
        1 => Just(Step::Change),
        1 => Just(Step::OtherChange),
        6 => acknowledge.prop_map(|(at, ttl, version, names_workload)| Step::Acknowledge {
            at, ttl, version, names_workload
        }),
        1 => (0_usize..3).prop_map(Step::Remove),
        1 => Just(Step::Restart),
    ]
}

/// An enforcer in the model.
#[derive(Clone, Copy, Debug)]
struct Known {
    ends: u64,
    ttl: u64,
    applied: Option<u64>,
    names_workload: bool,
}

/// The model: enforcers by index, and the version of the promise.
#[derive(Default)]
struct Model {
    enforcers: BTreeMap<usize, Known>,
    promise: u64,
}

impl Model {
    fn place(&self, at: usize, now: u64) -> PlaceState {
        match self.enforcers.get(&at) {
            None => PlaceState::Absent,
            Some(known) if known.ends <= now => PlaceState::Expired,
            Some(known)
                if known.names_workload && known.applied.is_some_and(|applied| applied >= self.promise) =>
            {
                PlaceState::Applied
            }
            Some(_) => PlaceState::Pending,
        }
    }
}

fn records(enforcement: &Enforcement) -> Vec<Enforcer> {
    enforcement.enforcers().after(None).map(|state| Enforcer::clone(&state.record)).collect()
}

fn promise() -> Grant {
    grant("a", "c", "s", [0, 0, 0])
}

proptest! {
    /// A promise is enforced exactly where an enforcer with a lease has applied its version or a later one. Versions
    /// never go back, and a rejected acknowledgement changes nothing.
    #[test]
    fn places_are_enforced_exactly_while_a_lease_and_a_version_hold(
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let (mut enforcement, mut model, mut now) = (Enforcement::default(), Model::default(), 7);
        model.promise = enforcement.advance(["c", "s"], Nanos(now)).number;
        for step in steps {
            let (before, version) = (records(&enforcement), enforcement.version());
            match step {
                Step::Wait(seconds) => now += seconds * SECOND,
                Step::Change => model.promise = enforcement.advance(["c", "s"], Nanos(now)).number,
                Step::OtherChange => {
                    enforcement.advance(["other"], Nanos(now));
                }
                Step::Remove(at) => {
                    let (kind, host) = ENFORCERS[at];
                    let removed = enforcement.remove(&format!("{}@{host}", kind.name()));
                    prop_assert_eq!(removed.is_some(), model.enforcers.remove(&at).is_some());
                }
                Step::Restart => {
                    let stored = records(&enforcement);
                    enforcement = Enforcement::default();
                    enforcement.restore(Some(version), stored, Nanos(now));
                    for known in model.enforcers.values_mut().filter(|known| known.ends > now) {
                        known.ends = now + known.ttl;
                    }
                }
                Step::Acknowledge { at, ttl, version: relative, names_workload } => {
                    let applied = relative.and_then(|relative| version.number.checked_add_signed(relative));
                    let applied = applied.map(|number| PromisesVersion { number, ..version });
                    let ((kind, host), ttl) = (ENFORCERS[at], ttl * SECOND);
                    let workloads = [("a", RequestCounters::default()), ("ended", RequestCounters::default())];
                    let workloads = if names_workload { &workloads[..] } else { &workloads[1..] };
                    let sent = acknowledgement(kind, host, Nanos(ttl), applied, workloads);
                    let result = enforcement.acknowledge(sent, Nanos(now), &|name: &str| name == "a");
                    let number = applied.map(|applied| applied.number);
                    let last = model.enforcers.get(&at).and_then(|known| known.applied);
                    let is_older = number.is_some_and(|number| last.is_some_and(|last| number < last));
                    match result {
                        Ok(acknowledged) => {
                            prop_assert!(!is_older && number.is_none_or(|number| number <= version.number));
                            prop_assert_eq!(acknowledged.unknown, ["ended"]);
                            let known = Known { ends: now + ttl, ttl, applied: number, names_workload };
                            model.enforcers.insert(at, known);
                        }
                        Err(error) => {
                            let is_later = number.is_some_and(|number| number > version.number);
                            prop_assert_eq!(matches!(error, AcknowledgeError::FutureVersion { .. }), is_later);
                            prop_assert_eq!(matches!(error, AcknowledgeError::OlderVersion { .. }), !is_later);
                            prop_assert!(is_older || is_later);
                            prop_assert_eq!(records(&enforcement), before);
                        }
                    }
                }
            }
            // The order of a lease's end and of an operation at the same time is that of the service.
            let expired = enforcement.expire(Nanos(now));
            prop_assert!(expired.iter().all(|enforcer| enforcer.expired));
            prop_assert!(enforcement.due().is_none_or(|due| due.0 > now));
            prop_assert!(enforcement.version().number >= version.number);
            prop_assert_eq!(enforcement.version().set, 7);
            let status = enforcement.status(&promise(), model.promise, None, Nanos(now));
            let places: Vec<PlaceState> = status.places.iter().map(|place| place.state).collect();
            let expected: Vec<PlaceState> = (0..3).map(|at| model.place(at, now)).collect();
            prop_assert_eq!(&places, &expected);
            let applied = places.iter().filter(|&&place| place == PlaceState::Applied).count();
            let state = match (places.contains(&PlaceState::Expired), applied) {
                (true, _) => PromiseState::Unenforced,
                (false, 0) => PromiseState::Decided,
                (false, 3) => PromiseState::Enforced,
                (false, _) => PromiseState::Partial,
            };
            prop_assert_eq!(status.state, state);
            // Each host's promises have a version that its enforcers can acknowledge.
            prop_assert!(enforcement.version_of("c") <= enforcement.version().number);
            prop_assert!(enforcement.version_of("c") >= model.promise);
        }
    }

    /// Counters of all enforcers add up over restarts of enforcers, and the first counters are only a start.
    #[test]
    fn counters_count_what_was_added_since_the_first_acknowledgement(
        growths in prop::collection::vec((0_u64..1_000, 0_u64..1_000, prop::bool::weighted(0.2)), 1..40),
    ) {
        let mut enforcement = Enforcement::default();
        let version = enforcement.advance(["c", "s"], Nanos(1));
        let (mut counters, mut expected) = (RequestCounters::default(), (0, 0));
        for (at, (requests, late, restarts)) in growths.into_iter().enumerate() {
            let late = late.min(requests);
            if restarts {
                counters = RequestCounters::default();
            }
            // A restart whose counters are as high as before is not visible.
            let grown = RequestCounters { requests: counters.requests + requests, late: counters.late + late, ..counters };
            let sent = acknowledgement(ENFORCERS[1].0, "s", Nanos(SECOND), Some(version), &[("a", grown)]);
            let before = enforcement.status(&promise(), 1, None, Nanos(at as u64)).total;
            enforcement.acknowledge(sent, Nanos(at as u64), &|_: &str| true).expect("a valid acknowledgement");
            let total = enforcement.status(&promise(), 1, None, Nanos(at as u64)).total;
            if at > 0 && !restarts {
                expected = (expected.0 + requests, expected.1 + late);
                prop_assert_eq!((total.requests, total.late), (before.requests + requests, before.late + late));
            }
            prop_assert!(total.requests >= expected.0 && total.late >= expected.1);
            prop_assert!(total.late <= total.requests);
            counters = grown;
        }
    }
}

#[test]
fn a_burning_promise_has_rates_and_alerts_until_the_short_window_is_clean() {
    let mut enforcement = Enforcement::default();
    let version = enforcement.advance(["c", "s"], Nanos(1));
    let mut counters = RequestCounters::default();
    let mut minute = |enforcement: &mut Enforcement, at: u64, late: u64| {
        counters.requests += 100;
        counters.late += late;
        let sent =
            acknowledgement(ENFORCERS[1].0, "s", Nanos(90 * SECOND), Some(version), &[("a", counters)]);
        let now = Nanos(at * 60 * SECOND);
        enforcement.acknowledge(sent, now, &|_: &str| true).expect("a valid acknowledgement");
        enforcement.status(&promise(), 1, None, now)
    };
    let first = minute(&mut enforcement, 0, 50);
    assert_eq!((first.total.requests, first.rates), (0, [None; 5]), "it is unknown since when it counts");
    assert_eq!(first.counted_since, Some(Nanos(0)));
    for at in 1..=60 {
        // One of a hundred may be late: this is exactly what is permitted.
        let status = minute(&mut enforcement, at, 1);
        assert!(status.rates.iter().flatten().all(|rate| (rate - 1.0).abs() < 1e-9), "{:?}", status.rates);
    }
    let names =
        |alerts: &[leeward_promises::BurnAlert]| alerts.iter().map(|alert| alert.name()).collect::<Vec<_>>();
    let mut burning = first;
    for at in 61..=120 {
        burning = minute(&mut enforcement, at, 50);
    }
    assert_eq!(names(&burning.alerts), ["fast", "slow", "lasting"], "{:?}", burning.rates);
    let mut clean = burning;
    for at in 121..=127 {
        clean = minute(&mut enforcement, at, 0);
    }
    assert_eq!(clean.rates[0], Some(0.0));
    assert_eq!(names(&clean.alerts), ["slow", "lasting"], "{:?}", clean.rates);
}
