//! Decisions by either policy, and comparisons.

use leeward_engine::{Comparison, Decider, Engine, Input, Policies, Ruling};
use leeward_fabric::{Bytes, Cpus, HostId, Load, Nanos, ResourceId, ResourceKind};
use leeward_ledger::Sample;
use leeward_placement::replicas::{self, Chain, Layout, ReplicaRequest};
use leeward_placement::tasks::{self, AppRequest, Task, Traffic};
use leeward_placement::{Constraints, Explain, JobId, PathLoad};
use leeward_testing::clusters::{cluster, ledger, racks_of_four};
use proptest::prelude::*;

const SECOND: Nanos = Nanos::SECOND;
/// Disks so fast that the links limit every write.
const DISK: &str = "[{read: 50GB/s, write: 50GB/s}]";

fn engine(own: &str, default: Option<&str>) -> Engine {
    let ledger = ledger(&cluster(&racks_of_four(6, DISK)));
    let policy = |name: &str| replicas::REGISTRY.make(name, "").ok();
    let policies =
        Policies { replicas: policy(own), default_replicas: default.and_then(policy), ..Policies::default() };
    Engine::new(ledger, policies, 7, Explain::Off)
}

/// Reports a share of its capacity for every link, by rack. Devices are idle.
fn report(engine: &mut Engine, at: Nanos, share: impl Fn(u32) -> f64) {
    let fabric = engine.ledger().fabric().clone();
    let window = (Nanos(at.0 - SECOND.0), at);
    let sample = |resource: ResourceId| {
        let rack = match fabric.host_of(resource) {
            Some(host) => fabric.rack_of(host).0,
            None => fabric.domain_of_link(resource).map_or(0, |domain| domain.0),
        };
        let mut scratch = leeward_ledger::Scratch::default();
        let capacity = engine.ledger().view(at, &mut scratch).capacity(resource).0 as f64;
        let share = if fabric.kind(resource) == ResourceKind::Device { 0.0 } else { share(rack) };
        Sample { resource, window, load: Load((capacity * share) as i64), guaranteed: None }
    };
    let samples: Vec<Sample> = fabric.all_resources().map(sample).collect();
    engine.report(at, &samples, &mut Vec::new());
}

fn block(id: u64) -> ReplicaRequest {
    ReplicaRequest {
        id,
        file: id,
        writer: Some(HostId(0)),
        size: Bytes(256 << 20),
        replicas: 3,
        layout: Layout::Chain,
        blocks_left: 1,
        job: None,
        fault_domains: 1,
        constraints: Constraints::default(),
    }
}

fn place(engine: &mut Engine, id: u64, ruling: Ruling) -> (Chain, Option<Comparison<Chain>>) {
    let answer = engine.place_replicas(SECOND, id, block(id), ruling, &mut Vec::new());
    let placed = answer.expect("decided at once").expect("enough room");
    (placed.decision.choice, placed.comparison)
}

proptest! {
    /// Either policy decides as an engine that has it as its only policy, a comparison changes nothing, and both
    /// comparisons of one state have the same two loads.
    #[test]
    fn a_comparison_changes_no_decision_and_is_the_same_from_both_sides(
        shares in prop::array::uniform6(0_u32..95), ids in prop::collection::vec(1_u64..1_000, 1..6),
    ) {
        let share = |rack: u32| f64::from(shares[rack as usize % 6]) / 100.0;
        let both = || {
            let mut engine = engine("leeward", Some("uniform"));
            report(&mut engine, SECOND, share);
            engine
        };
        for by in [Decider::Own, Decider::Default] {
            let name = if by == Decider::Own { "leeward" } else { "uniform" };
            let mut alone = engine(name, None);
            report(&mut alone, SECOND, share);
            let (mut comparing, mut silent) = (both(), both());
            for &id in &ids {
                let (expected, none) = place(&mut alone, id, Ruling::default());
                let (chosen, comparison) = place(&mut comparing, id, Ruling { by, compare: true });
                let (same, nothing) = place(&mut silent, id, Ruling { by, compare: false });
                prop_assert!(none.is_none() && nothing.is_none());
                prop_assert_eq!(&chosen, &expected);
                prop_assert_eq!(&chosen, &same);
                let comparison = comparison.expect("there is another policy");
                let (_, load) = comparison.other.expect("enough room");
                prop_assert_eq!((load.unknown, comparison.committed.unknown), (0, 0));
            }
            prop_assert_eq!(comparing.ledger().sums_bytes(), silent.ledger().sums_bytes());
            prop_assert_eq!(alone.ledger().sums_bytes(), silent.ledger().sums_bytes());
        }
        let (mut own, mut default) = (both(), both());
        let (chosen, mine) = place(&mut own, ids[0], Ruling { by: Decider::Own, compare: true });
        let (other, theirs) = place(&mut default, ids[0], Ruling { by: Decider::Default, compare: true });
        let (mine, theirs) = (mine.expect("two policies"), theirs.expect("two policies"));
        prop_assert_eq!(mine.other.clone(), Ok((other, theirs.committed)));
        prop_assert_eq!(theirs.other, Ok((chosen, mine.committed)));
    }
}

/// An engine that places tasks.
fn task_engine(own: &str, default: Option<&str>) -> Engine {
    let text = "racks: 6\nhosts_per_rack: 4\nnic: 1Gbps\nrack_link: 1Gbps\ncpus: 8\n";
    let policy = |name: &str| tasks::REGISTRY.make(name, "").expect("a policy of the registry");
    let policies =
        Policies { tasks: Some(policy(own)), default_tasks: default.map(policy), ..Policies::default() };
    Engine::new(ledger(&cluster(text)), policies, 7, Explain::Off)
}

/// Tasks of one processor that send.
fn app(id: u64, count: usize) -> AppRequest {
    let mut task = Task { cpus: Cpus(1_000), ..Task::default() };
    task.egress[0] = Traffic { mean_bps: 100_000_000, peak_bps: 100_000_000 };
    AppRequest { id, job: JobId(id), tasks: vec![task; count], ..AppRequest::default() }
}

proptest! {
    /// Beside decisions of the own policy, the default policy chooses what it would have chosen if it had placed all
    /// tasks, wherever they really run.
    #[test]
    fn a_compared_default_policy_has_its_own_earlier_tasks(
        steps in prop::collection::vec((1_usize..5, prop::option::of(0_usize..30)), 1..30),
    ) {
        let (mut engine, mut alone) = (task_engine("leeward", Some("borg")), task_engine("borg", None));
        for engine in [&mut engine, &mut alone] {
            report(engine, SECOND, |rack| f64::from(rack % 3) / 4.0);
        }
        let compared = Ruling { by: Decider::Own, compare: true };
        for (id, &(count, ends)) in (1..).zip(&steps) {
            let place = |engine: &mut Engine, ruling| {
                engine.place_app(SECOND, app(id, count), ruling, &mut Vec::new()).expect("enough processors")
            };
            let other = place(&mut engine, compared).comparison.and_then(|comparison| comparison.other.ok());
            let expected = place(&mut alone, Ruling::default()).decision.choice;
            prop_assert_eq!(other.map(|(hosts, _)| hosts), Some(expected));
            if let Some(ends) = ends {
                for engine in [&mut engine, &mut alone] {
                    engine.handle(SECOND, Input::Ended(ends as u64), &mut Vec::new());
                }
            }
        }
    }
}

#[test]
fn a_comparison_counts_the_hot_links_of_both_choices() {
    let mut avoided = 0;
    for id in 1..20 {
        let mut engine = engine("sinbad", Some("uniform"));
        // All racks but two are hot.
        report(&mut engine, SECOND, |rack| if rack < 2 { 0.1 } else { 0.9 });
        let (chosen, comparison) = place(&mut engine, id, Ruling { by: Decider::Own, compare: true });
        let comparison = comparison.expect("there is another policy");
        assert!(chosen.iter().all(|host| host.0 < 8), "{chosen:?}");
        assert_eq!(comparison.committed.hot, 0);
        let (hosts, load): (Chain, PathLoad) = comparison.other.expect("enough room");
        let crosses_hot = hosts.iter().any(|host| host.0 >= 8);
        assert_eq!(load.hot > 0, crosses_hot, "{hosts:?}: {load:?}");
        avoided += u32::from(crosses_hot);
    }
    assert!(avoided > 5, "{avoided}: the default policy rarely chose a hot rack");
}

#[test]
fn without_a_default_policy_there_is_no_comparison_and_no_default_decision() {
    let mut engine = engine("leeward", None);
    report(&mut engine, SECOND, |_| 0.1);
    assert!(place(&mut engine, 1, Ruling { by: Decider::Own, compare: true }).1.is_none());
    let ruling = Ruling { by: Decider::Default, compare: true };
    let answer = engine.place_replicas(SECOND, 2, block(2), ruling, &mut Vec::new());
    assert!(answer.is_some_and(|answer| answer.is_err()));
}
