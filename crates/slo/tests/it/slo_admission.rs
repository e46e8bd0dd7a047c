//! Admission never promises an SLO without a bound, and promises continue to hold.

use crate::support::systems;
use std::sync::Arc;

use crate::support::systems::{curve, demand, draws, model, promise, queue, three_stages};
use leeward_slo::admit::{Admission, AdmissionError, Arrival, Outcome, REGISTRY, without_own_rates};
use leeward_slo::bound::{BoundSettings, Method, Unbounded, Unit, bounds};
use leeward_slo::{Demand, Promise, Slo, System};
use leeward_traces::Stage;
use proptest::prelude::*;

/// The queues of a system without promises, and its promises as arrivals.
fn split(system: System) -> (System, Vec<Arrival>) {
    let arrivals = system
        .promises
        .into_iter()
        .map(|Promise { workload, route, .. }| Arrival { workload, route })
        .collect();
    (System { queues: system.queues, promises: Vec::new() }, arrivals)
}

fn admission(name: &str) -> Box<dyn Admission> {
    REGISTRY.make(name, "").unwrap()
}

/// Admits all promises one after another: the final system, and the refusals.
fn admit_all(policy: &dyn Admission, system: System) -> (System, Vec<Option<AdmissionError>>) {
    let (mut system, arrivals) = split(system);
    let mut refused = Vec::new();
    for arrival in arrivals {
        let outcome = policy.arrive(&system, arrival).unwrap();
        assert_eq!(outcome.system.promises.len(), system.promises.len() + 1);
        // A workload does not run if other workloads cannot even wait for one of its requests.
        if outcome.disturbed.is_empty() {
            system = outcome.system;
        }
        refused.push(outcome.refused);
    }
    (system, refused)
}

/// Number of SLOs that the bounds of a policy do not keep, over all promises.
fn misses(system: &System, method: Method, settings: BoundSettings) -> usize {
    let bounds = bounds(system, method, settings);
    let misses = system.promises.iter().zip(bounds).filter(|(promise, bound)| {
        promise
            .workload
            .slo
            .is_some_and(|slo| !bound.as_ref().is_ok_and(|bound| bound.seconds <= slo.latency))
    });
    misses.count()
}

fn paced() -> BoundSettings {
    BoundSettings { unit: Unit::Frames, frame: 1500.0, paced: true, ..BoundSettings::default() }
}

/// Networks of 1 Gb/s: two clients, two servers, work in bytes.
fn networks(draws: &[systems::Draw]) -> System {
    let names = ["c0-up", "c1-up", "s0-down", "s1-down", "s0-up", "s1-up", "c0-down", "c1-down"];
    let queues = names.iter().map(|name| queue(name, 125e6)).collect();
    let promises = draws.iter().enumerate().map(|(at, draw)| {
        let (client, server) = (draw.path % 2, draw.path / 2 % 2);
        let stage = |stage, route: Vec<usize>, weight: f64| {
            let of =
                systems::Draw { rate: draw.rate * weight, burst: draw.burst * weight * 1e5, ..draw.clone() };
            let arrivals = of.curve(8e6);
            let largest = draw.packet * arrivals.burst();
            let rate = of.rate * 8e6 / (largest / 2.0);
            (Demand { model: Some(model(rate, largest / 2.0)), ..demand(stage, arrivals, largest) }, route, 0)
        };
        let stages = vec![
            stage(Stage::NetworkIn, vec![client, 2 + server], 0.2),
            stage(Stage::NetworkOut, vec![4 + server, 6 + client], 1.0),
        ];
        promise(&format!("w{at}"), Some(Slo { percentile: 99.0, latency: draw.latency / 100.0 }), stages)
    });
    System { queues, promises: promises.collect() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn admitted_workloads_meet_their_slos_by_the_bound_of_the_policy(draws in draws(7, true)) {
        let table = [
            ("snc", Method::Snc, BoundSettings::default()),
            ("dnc", Method::Dnc, BoundSettings::default()),
            ("best", Method::Best, BoundSettings::default()),
            ("silo++", Method::Dnc, paced()),
            ("qjump++", Method::Dnc, paced()),
        ];
        for (name, method, settings) in table {
            let systems = [three_stages(&draws, 1.2), networks(&draws)];
            for system in systems {
                let offered = system.promises.len();
                let (system, refused) = admit_all(&*admission(name), system);
                let promised = system.promises.iter().filter(|promise| promise.workload.slo.is_some()).count();
                prop_assert_eq!(promised, refused.iter().filter(|refused| refused.is_none()).count());
                prop_assert_eq!(refused.len(), offered);
                prop_assert_eq!(misses(&system, method, settings), 0, "{}", name);
            }
        }
    }

    #[test]
    fn a_refusal_leaves_the_system_unchanged(draws in draws(7, true)) {
        for registration in REGISTRY {
            let policy = (registration.make)("").unwrap();
            let (mut system, arrivals) = split(three_stages(&draws, 1.5));
            for arrival in arrivals {
                let Outcome { system: after, refused, .. } = policy.arrive(&system, arrival).unwrap();
                if refused.is_some() {
                    let (last, others) = after.promises.split_last().unwrap();
                    prop_assert_eq!(others, system.promises.as_slice());
                    prop_assert_eq!(last.workload.slo, None);
                    let lowest = last.priorities.iter().min();
                    prop_assert!(others.iter().flat_map(|promise| &promise.priorities).max() <= lowest);
                }
                system = after;
            }
        }
    }

    #[test]
    fn the_search_never_admits_fewer_than_the_order_of_slos_at_the_next_arrival(draws in draws(6, true)) {
        let (mut system, arrivals) = split(three_stages(&draws, 1.0));
        let plain = REGISTRY.make("dnc", "search: false").unwrap();
        for arrival in arrivals {
            let with = admission("dnc").arrive(&system, arrival.clone()).unwrap();
            let without = plain.arrive(&system, arrival).unwrap();
            prop_assert!(with.admitted() || !without.admitted());
            system = with.system;
        }
    }
}

/// An arrival at one link of 1 Gb/s, with work in bytes.
fn arrival(name: &str, rate: f64, burst: f64, latency: f64) -> Arrival {
    let mut of = demand(Stage::NetworkIn, curve(&[(rate, burst)]), burst / 10.0);
    of.model = Some(model(rate / (burst / 20.0), burst / 20.0));
    let promise = promise(name, Some(Slo { percentile: 99.0, latency }), vec![(of, vec![0], 0)]);
    Arrival { workload: promise.workload, route: promise.route }
}

fn link() -> System {
    System { queues: vec![queue("link", 125e6)], promises: Vec::new() }
}

fn outcome(system: &System, policy: &str, arrival: &Arrival) -> Outcome {
    admission(policy).arrive(system, arrival.clone()).unwrap()
}

#[test]
fn every_policy_admits_an_easy_workload_and_all_but_none_refuse_a_hard_one() {
    let easy = arrival("easy", 1e6, 1e4, 0.1);
    let hard = arrival("hard", 1e6, 1e7, 0.001);
    let heavy = arrival("heavy", 2e8, 1e4, 0.1);
    for registration in REGISTRY {
        let name = registration.name;
        let system = outcome(&link(), name, &easy);
        assert!(system.admitted(), "{name}: {:?}", system.refused);
        for refused in [&hard, &heavy] {
            let outcome = outcome(&system.system, name, refused);
            assert_eq!(outcome.admitted(), name == "none", "{name} {}", refused.workload.name);
        }
    }
}

#[test]
fn policies_without_own_rates_leave_the_limits_of_others() {
    let (present, other) = (arrival("a", 1e6, 1e5, 1.0), arrival("b", 1e6, 1e5, 2.0));
    let keeps_limits = |policy: &dyn Admission| {
        let one = policy.arrive(&link(), present.clone()).unwrap().system;
        let both = policy.arrive(&one, other.clone()).unwrap().system;
        both.promises.iter().all(|promise| promise.limits[0] == promise.workload.demands[0].arrivals)
    };
    let without: Vec<&str> = without_own_rates().map(|entry| entry.name).collect();
    for registration in REGISTRY {
        let policy = (registration.make)("").expect("a policy with default settings");
        assert_eq!(keeps_limits(&*policy), !policy.sets_rates(), "{}", registration.name);
        assert_eq!(without.contains(&registration.name), !policy.sets_rates(), "{}", registration.name);
    }
}

#[test]
fn refusals_name_workload_stage_and_queue() {
    let mut table = Vec::new();
    let mut note = |policy: &str, outcome: Outcome| {
        let reason = outcome.refused.map_or("admitted".into(), |refused| refused.to_string());
        table.push(format!("{policy}: {reason}"));
    };
    let easy = outcome(&link(), "dnc", &arrival("easy", 1e6, 1e5, 0.001)).system;
    for policy in ["snc", "dnc", "best", "silo++", "qjump++"] {
        note(policy, outcome(&easy, policy, &arrival("heavy", 2e8, 1e4, 0.1)));
    }
    note("dnc", outcome(&easy, "dnc", &arrival("large", 1e6, 1e7, 0.0009)));
    let mut unknown = arrival("unknown", 1e6, 1e4, 0.1);
    Arc::make_mut(&mut unknown.workload).demands[0].model = None;
    note("snc", outcome(&easy, "snc", &unknown));
    note("best", outcome(&easy, "best", &unknown));
    let mut slow = arrival("slow", 1e6, 1e4, 0.1);
    Arc::make_mut(&mut slow.workload).demands[0].unloaded = 0.2;
    note("dnc", outcome(&easy, "dnc", &slow));
    let mut stored = arrival("stored", 1e6, 1e4, 0.1);
    Arc::make_mut(&mut stored.workload).demands[0].stage = Stage::Storage;
    note("silo++", outcome(&easy, "silo++", &stored));
    let small = REGISTRY.make("silo++", "buffer: 2000").unwrap();
    let one = small.arrive(&link(), arrival("one", 1e6, 1e4, 0.1)).unwrap().system;
    note("silo++", small.arrive(&one, arrival("two", 1e6, 1e4, 0.1)).unwrap());
    insta::assert_snapshot!(table.join("\n"));
}

#[test]
fn an_overload_is_a_refusal_even_where_only_the_last_priority_has_no_bound() {
    let first = outcome(&link(), "snc", &arrival("first", 5e7, 1e4, 0.05)).system;
    // The workload has the last priority, so only this workload has no bound.
    let outcome = outcome(&first, "snc", &arrival("second", 8e7, 1e4, 10.0));
    assert!(
        matches!(outcome.refused, Some(AdmissionError::Unbounded(Unbounded::Overload { .. }))),
        "{outcome:?}"
    );
}

#[test]
fn a_changed_workload_is_decided_again_in_place() {
    for policy in ["snc", "dnc", "best"] {
        let system = outcome(&link(), policy, &arrival("a", 1e6, 1e4, 0.01)).system;
        let system = outcome(&system, policy, &arrival("b", 1e6, 1e4, 0.02)).system;
        let policy = admission(policy);
        let same = policy.changed(&system, 0, arrival("a", 2e6, 2e4, 0.01).workload).unwrap();
        assert!(same.admitted() && same.system.promises.len() == 2);
        let worse = policy.changed(&system, 0, arrival("a", 2e8, 2e4, 0.01).workload).unwrap();
        assert!(!worse.admitted());
        let slos: Vec<bool> =
            worse.system.promises.iter().map(|promise| promise.workload.slo.is_some()).collect();
        assert_eq!(slos, [true, false]);
    }
}

#[test]
fn invalid_arrivals_and_systems_are_errors_and_settings_are_checked() {
    let valid = arrival("w", 1e6, 1e4, 0.1);
    for registration in REGISTRY {
        let policy = (registration.make)("").unwrap();
        let system = policy.arrive(&link(), valid.clone()).unwrap().system;
        assert!(policy.arrive(&system, valid.clone()).is_err(), "two of one name");
        assert!(policy.arrive(&link(), Arrival { route: vec![vec![3]], ..valid.clone() }).is_err());
        assert!(policy.arrive(&link(), Arrival { route: vec![], ..valid.clone() }).is_err());
        assert!((registration.make)("nonsense: 1").is_err());
        assert_eq!(policy.name(), registration.name);
        assert!((registration.schema)().is_object());
    }
    let bad = [
        ("snc", "levels: 0"),
        ("dnc", "method: snc"),
        ("best", "bounds: {frame: -1}"),
        ("silo++", "burst: 0"),
        ("silo++", "burst: 63"),
        ("silo++", "multiple: 0.5"),
        ("silo++", "multiple: .nan"),
        ("qjump++", "burst: 63"),
        ("qjump++", "rates: []"),
        ("qjump++", "rates: [-1]"),
        ("nobody", ""),
    ];
    for (name, settings) in bad {
        assert!(REGISTRY.make(name, settings).is_err(), "{name} {settings}");
    }
}

#[test]
fn a_promise_that_best_effort_delays_too_long_is_named() {
    let first = outcome(&link(), "dnc", &arrival("first", 1e6, 1e5, 0.0009)).system;
    let mut effort = arrival("effort", 1e6, 1e5, 0.1);
    Arc::make_mut(&mut effort.workload).slo = None;
    // The first workload's 1e5 bytes take 0.0008 s. One more request of 1e4 bytes fits; one of 2e4 does not.
    let runs = outcome(&first, "dnc", &effort);
    assert!(runs.disturbed.is_empty() && runs.admitted());
    Arc::make_mut(&mut effort.workload).demands[0].largest = 2e4;
    let does_not = outcome(&first, "dnc", &effort);
    assert_eq!(does_not.disturbed, [0]);
    assert!(!does_not.admitted(), "a workload that may not run is not admitted");
    // A percentile includes this wait as well.
    let first = outcome(&link(), "snc", &arrival("first", 1e6, 1e5, 0.1)).system;
    assert!(outcome(&first, "snc", &effort).admitted());
    Arc::make_mut(&mut effort.workload).demands[0].largest = 2e7;
    assert_eq!(outcome(&first, "snc", &effort).disturbed, [0]);
}

#[test]
fn best_effort_is_always_admitted_at_the_last_priority() {
    let mut of = arrival("effort", 1e9, 1e9, 0.1);
    Arc::make_mut(&mut of.workload).slo = None;
    for registration in REGISTRY {
        let policy = (registration.make)("").unwrap();
        let system = policy.arrive(&link(), of.clone()).unwrap();
        assert!(system.admitted());
        let outcome = policy.arrive(&system.system, arrival("easy", 1e6, 1e4, 10.0)).unwrap();
        // Whole requests of a hundred megabytes cause waits, frames do not.
        assert!(outcome.admitted(), "{}: {:?}", registration.name, outcome.refused);
        assert!(outcome.system.promises[1].priorities < outcome.system.promises[0].priorities);
    }
}

#[test]
fn a_refusal_names_the_own_miss_before_the_misses_of_others() {
    let of = |name: &str, burst: f64, latency: f64| systems::simple(name, 0, &[(2.0, burst)], 0.0, latency);
    let promises = vec![of("mail", 6.0, 0.7), of("index", 5.0, 0.4)];
    // Without other traffic, `index` may take 5 / 10 s. The search puts it before `mail`, because `mail` misses by
    // less.
    let (_, refused) = admit_all(&*admission("dnc"), System { queues: vec![queue("link", 10.0)], promises });
    assert_eq!(refused[0], None);
    let Some(AdmissionError::Miss { workload, slo, .. }) = &refused[1] else { panic!("{refused:?}") };
    assert_eq!((workload.as_str(), *slo), ("index", 0.4));
}

#[test]
fn an_admission_reports_how_priorities_were_merged() {
    for policy in ["dnc", "none"] {
        let policy = REGISTRY.make(policy, "levels: 2").unwrap();
        let mut system = link();
        for (at, merged) in [(1, None), (2, None), (3, Some(3)), (4, Some(4))] {
            let arrival = arrival(&format!("w{at}"), 1e6, 1e4, f64::from(at) * 0.1);
            let outcome = policy.arrive(&system, arrival).unwrap();
            assert!(outcome.admitted() && !outcome.searched);
            assert_eq!(outcome.merged, merged);
            system = outcome.system;
        }
    }
    // Behind the tight workload, which takes more of the link, the loose workload is late. Behind the loose workload,
    // neither is late.
    let of = |name: &str, rate: f64, latency: f64| {
        let promise = systems::simple(name, 0, &[(rate, 1.0)], 0.0, latency);
        Arrival { workload: promise.workload, route: promise.route }
    };
    let empty = System { queues: vec![queue("link", 10.0)], promises: Vec::new() };
    let first = outcome(&empty, "dnc", &of("tight", 6.0, 0.3));
    assert!(first.admitted() && !first.searched);
    let second = outcome(&first.system, "dnc", &of("loose", 1.0, 0.45));
    assert!(second.admitted() && second.searched, "{second:?}");
}
