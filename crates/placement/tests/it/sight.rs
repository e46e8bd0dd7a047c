//! Policies that use telemetry: behaviour without it, and explanation of every candidate, in one table.

use std::collections::BTreeSet;

use crate::support::{World, request};
use leeward_fabric::{DomainId, HostId, Nanos, ResourceId, ResourceKind};
use leeward_placement::replicas::{self, ReplicaRequest};
use leeward_placement::{Candidate, Constraint, Constraints, Note, Refusal, Verdict};
use leeward_testing::clusters::RACKS_WITH_SMALL_DISKS as TREE;

/// The policies that ignore load: `uniform` draws hosts at random, `ccp` ranks racks by the class of their uplinks, and
/// `rehdfs` takes the next rack.
const BLIND: [&str; 3] = ["uniform", "ccp", "rehdfs"];

/// The policies that rank candidates by their load.
fn ranking() -> impl Iterator<Item = &'static str> {
    replicas::REGISTRY.names().filter(|name| !BLIND.contains(name))
}

const HOSE: &str = "shape: hose\nhosts: 6\nnic: 1Gbps\ndevices: [{read: 5GB/s, write: 5GB/s}]\n";
const PIPE: &str = "shape: pipe\nhosts: 6\npair: 1Gbps\ndevices: [{read: 5GB/s, write: 5GB/s}]\n";

/// A minute after the first report.
const LATER: Nanos = Nanos(60_000_000_000);

/// A report of the second before [`LATER`], after a minute of silence.
fn report_later(world: &mut World, share: impl Fn(ResourceId) -> Option<f64>) {
    world.ledger.advance(LATER);
    world.report_at(LATER, (Nanos(LATER.0 - 1_000_000_000), LATER), share);
}

#[test]
fn all_policies_but_the_blind_ones_need_telemetry() {
    let world = World::new(TREE);
    for name in replicas::REGISTRY.names() {
        let blind = world.place_one(name, "", &request(1, 0));
        let reads = matches!(blind, Err(Refusal::NoTelemetry { .. }));
        assert_eq!(reads, !BLIND.contains(&name), "{name}");
    }
}

#[test]
fn silent_hosts_are_unknown_and_the_refusal_reports_it() {
    for policy in ranking() {
        let mut world = World::new(TREE);
        world.report(|_| 0.3);
        let fabric = world.fabric.clone();
        report_later(&mut world, |r| (fabric.kind(r) == ResourceKind::RackDownlink).then_some(0.0));
        let refusal = world.place_at(LATER, policy, &request(1, 0)).unwrap_err();
        assert!(matches!(refusal, Refusal::NoTelemetry { newest: Some(_) }), "{policy}: {refusal}");
    }
}

#[test]
fn a_silent_host_is_not_preferred_to_a_reporting_one() {
    for policy in ranking() {
        for what in [ResourceKind::HostIngress, ResourceKind::Device] {
            if policy != "leeward" && what == ResourceKind::Device {
                continue; // The policy uses no disk loads.
            }
            let mut world = World::new(TREE);
            world.report(|_| 0.3);
            let fabric = world.fabric.clone();
            // Two hosts of each rack stop reporting, the others are busy.
            let silent = |r| fabric.kind(r) == what && fabric.host_of(r).is_some_and(|host| host.0 % 4 >= 2);
            report_later(&mut world, |r| (!silent(r)).then_some(0.9));
            for id in 0..20 {
                let decision =
                    world.place_at(LATER, policy, &request(id, 0)).expect("half of the hosts are seen");
                assert!(
                    decision.choice[1..].iter().all(|host| host.0 % 4 < 2),
                    "{policy}: {:?}",
                    decision.choice
                );
                let silent =
                    decision.why.iter().filter(|c| matches!(c.candidate, Candidate::Host(h) if h.0 % 4 >= 2));
                let unknown = Verdict::Refused(Constraint::Unknown);
                assert_eq!(silent.map(|c| c.verdict).collect::<Vec<_>>(), [unknown; 2], "{policy}");
            }
        }
    }
}

#[test]
fn with_switch_counters_only_hosts_are_chosen_by_placed_load() {
    for policy in ranking() {
        let mut world = World::new(TREE);
        let fabric = world.fabric.clone();
        let switch = [ResourceKind::RackUplink, ResourceKind::RackDownlink];
        world.report_some(|r| switch.contains(&fabric.kind(r)).then_some(0.3));
        let decision = world.place_one(policy, "", &request(1, 0)).expect("all is open");
        assert_eq!(decision.choice.len(), 3, "{policy}");
    }
}

#[test]
fn candidates_behind_a_silent_link_are_not_chosen() {
    let pods =
        "racks: 6\nhosts_per_rack: 4\npods: 3\nnic: 1Gbps\noversubscription: 1\npod_oversubscription: 1\n";
    let mut world = World::new(pods);
    world.report(|_| 0.1);
    let fabric = world.fabric.clone();
    // Links into pods 1 and 2: pod 1 is idle but stopped reporting; pod 2 is busy and reports.
    let pods: Vec<DomainId> = fabric.children(None).collect();
    let into = |pod: usize| fabric.into_domain(pods[pod]).expect("a tree");
    report_later(&mut world, |r| match r {
        r if r == into(1) => None,
        r if r == into(2) => Some(0.9),
        _ => Some(0.1),
    });
    for id in 0..20 {
        // In pod 0, one rack is the writer's and the other is excluded.
        let constraints = Constraints { excluded_domains: vec![DomainId(1)], ..Constraints::default() };
        let request = ReplicaRequest { writer: Some(HostId(0)), constraints, ..request(id, 0) };
        let decision = world.place_at(LATER, "leeward", &request).expect("pod 2 is seen");
        let pod = |host: HostId| fabric.parent(fabric.rack_of(host));
        let remote = &decision.choice[1..];
        assert!(remote.iter().all(|&host| pod(host) == Some(pods[2])), "{:?}", decision.choice);
    }
}

#[test]
fn on_a_mesh_placements_need_telemetry_unless_set_otherwise() {
    for policy in ranking() {
        for shape in [HOSE, PIPE] {
            let mut world = World::new(shape);
            let refusal = world.place_one(policy, "", &request(1, 0)).unwrap_err();
            assert_eq!(refusal, Refusal::NoTelemetry { newest: None }, "{policy} on {shape}");
            let blind = world
                .place_one(policy, "without_telemetry: default", &request(1, 0))
                .expect("the setting allows it");
            assert_eq!(blind.basis.note, Some(Note::NoTelemetry), "{policy} on {shape}");
            assert_eq!(blind.basis.oldest, None);
            world.report(|_| 0.5);
            let seen = world.place_one(policy, "", &request(1, 0)).expect("all loads are known");
            assert_eq!(seen.basis.oldest, Some(Nanos::SECOND), "{policy} on {shape}");
        }
    }
}

#[test]
fn on_a_mesh_hosts_are_chosen_by_the_links_into_them() {
    for policy in ranking() {
        for shape in [HOSE, PIPE] {
            let mut world = World::new(shape);
            let fabric = world.fabric.clone();
            let idle = [HostId(2), HostId(4)];
            // The links into two hosts have room; one host with idle links was never reported.
            world.report_some(|r| {
                let into = match fabric.hosts_of_pair(r) {
                    Some((_, to)) => to,
                    None => fabric.host_of(r)?,
                };
                (into != HostId(5)).then_some(if idle.contains(&into) { 0.1 } else { 0.9 })
            });
            let decision = world.place_one(policy, "", &request(1, 0)).expect("all loads but one are known");
            let remote: BTreeSet<_> = decision.choice[1..].iter().copied().collect();
            assert_eq!(remote, BTreeSet::from(idle), "{policy} on {shape}");
        }
    }
}

#[test]
fn an_explanation_lists_each_candidate_once_with_the_unseen_ones() {
    for policy in ranking() {
        let mut world = World::new(TREE);
        let fabric = world.fabric.clone();
        let unseen = [DomainId(2), DomainId(4)].map(|rack| fabric.into_domain(rack));
        let hidden = |host: HostId| [2, 4].contains(&fabric.rack_of(host).0);
        // No counters exist for the switches of racks 2 and 4 or their hosts, so no sum can replace them.
        world.report_some(|r| {
            let blind = unseen.contains(&Some(r)) || fabric.host_of(r).is_some_and(hidden);
            (!blind).then(|| (r.index() % 11) as f64 / 12.0)
        });
        for id in 0..20 {
            let decision = world.place_one(policy, "", &request(id, 0)).expect("three racks are open");
            // The writer is the first entry.
            let why = &decision.why[1..];
            let names: BTreeSet<Candidate> = why.iter().map(|c| c.candidate).collect();
            assert_eq!((why.len(), names.len()), (6 + 4, 6 + 4), "{policy}: six racks, and the hosts of one");
            let count = |verdict| why.iter().filter(|c| c.verdict == verdict).count();
            assert_eq!(count(Verdict::Chosen), 3, "{policy}: a rack and two of its hosts");
            assert_eq!(count(Verdict::Refused(Constraint::Unknown)), 2, "{policy}");
            // The search refuses the writer's rack if it comes before the best one.
            let met = count(Verdict::Refused(Constraint::FaultDomain));
            assert!(met <= 1, "{policy}");
            assert_eq!(met + count(Verdict::Outranked), 3 + 2, "{policy}: three racks, two hosts");
        }
    }
}

#[test]
fn a_refusal_counts_excluded_and_unseen_hosts_separately() {
    for (policy, settings) in ranking().map(|policy| (policy, "")).chain([("leeward", "sample: 1")]) {
        let mut world = World::new(TREE);
        let fabric = world.fabric.clone();
        // Everything in racks 0 and 1 reports; the others never did.
        world.report_some(|r| {
            let rack = fabric.host_of(r).map(|host| fabric.rack_of(host)).or(fabric.domain_of_link(r));
            let near = rack.is_some_and(|rack| rack.0 < 2);
            near.then_some(0.1)
        });
        let constraints = Constraints { excluded_domains: vec![DomainId(1)], ..Constraints::default() };
        for id in 0..20 {
            let request = ReplicaRequest { constraints: constraints.clone(), ..request(id, 0) };
            let refusal = world.place_one(policy, settings, &request).unwrap_err();
            let Refusal::NoCandidate { by_constraint } = refusal else { panic!("{policy}: {refusal}") };
            let counts =
                |constraint| by_constraint.iter().find(|(c, _)| *c == constraint).map_or(0, |(_, n)| *n);
            assert_eq!(counts(Constraint::Excluded), 4, "{policy}: {by_constraint:?}");
            assert_eq!(counts(Constraint::Unknown), 16, "{policy}: {by_constraint:?}");
            assert_eq!(by_constraint.iter().map(|(_, n)| n).sum::<u32>(), 24, "every host counts once");
        }
    }
}
