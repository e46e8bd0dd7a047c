//! Stripes of erasure codes: new ones, and damaged ones whose missing chunks are placed again, under every policy.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{World, request};
use leeward_fabric::{Bytes, FaultDomainId, HostId};
use leeward_ledger::{Demand, Scratch};
use leeward_placement::replicas::{self, ReplicaRequest, ReplicasSpec, objections, set_source};
use leeward_placement::{Candidate, Constraint, Constraints, Decision, Refusal, Verdict};
use leeward_testing::clusters::RACKS_WITH_SMALL_DISKS as SMALL;
use proptest::prelude::*;

/// Request for the missing chunks of a block of 600 MB in the code 6+3, on six racks of four hosts.
fn stripe(world: &World, id: u64, existing: &[u32], preferred: &[u32]) -> ReplicaRequest {
    let names = |hosts: &[u32]| -> Vec<String> {
        hosts.iter().map(|&host| world.fabric.host_name(HostId(host)).to_owned()).collect()
    };
    let coding: replicas::Coding = "6+3".parse().expect("a code");
    let spec = ReplicasSpec {
        coding: Some(coding),
        replicas: coding.missing(existing.len()),
        existing: names(existing),
        prefer: names(preferred),
        ..ReplicasSpec::new(Bytes(600_000_000))
    };
    let mut request = spec.request(&world.fabric, id).expect("a valid request");
    let mut scratch = Scratch::default();
    if !existing.is_empty() {
        set_source(&mut request, &world.pool, &world.ledger.view(crate::support::NOW, &mut scratch), 7);
    }
    request
}

/// Number of chunks in each fault domain.
fn held(world: &World, hosts: &[HostId]) -> BTreeMap<FaultDomainId, usize> {
    let mut held = BTreeMap::new();
    for &host in hosts {
        *held.entry(world.fabric.fault_domain(world.fabric.rack_of(host))).or_default() += 1;
    }
    held
}

proptest! {
    /// Any chunks that are left, also several in one rack, and any preferred hosts.
    #[test]
    fn chunks_are_on_hosts_of_their_own_and_new_ones_leave_no_rack_with_more_than_the_parity(
        left in prop::option::of(prop::collection::btree_set(0_u32..24, 6..9)),
        preferred in prop::collection::btree_set(0_u32..24, 0..5), id in any::<u64>(),
    ) {
        let mut world = World::new(SMALL);
        world.report(|_| 0.1);
        let left: Vec<u32> = left.into_iter().flatten().collect();
        let preferred: Vec<u32> = preferred.into_iter().collect();
        let request = stripe(&world, id, &left, &preferred);
        prop_assert_eq!((request.size, request.fault_domains), (Bytes(100_000_000), 1));
        let existing: Vec<HostId> = left.iter().map(|&host| HostId(host)).collect();
        let before = held(&world, &existing);
        for registration in replicas::REGISTRY {
            let name = registration.name;
            let decision = world.place_one(name, "", &request);
            prop_assert!(decision.is_ok(), "{}: {:?}", name, decision);
            let Decision { choice, basis, .. } = decision.expect("a decision");
            let all = [existing.as_slice(), &choice].concat();
            let distinct: BTreeSet<HostId> = all.iter().copied().collect();
            prop_assert_eq!((all.len(), distinct.len()), (9, 9), "{}: {:?}", name, all);
            for (domain, chunks) in held(&world, &all) {
                let most = before.get(&domain).copied().unwrap_or(0).max(3);
                prop_assert!(chunks <= most, "{}: {:?}", name, all);
            }
            prop_assert_eq!(basis.source, None, "several hosts send chunks");
        }
    }
}

#[test]
fn a_new_stripe_is_spread_as_evenly_as_the_racks_allow() {
    let mut world = World::new(SMALL);
    world.report(|_| 0.1);
    for registration in replicas::REGISTRY {
        for id in 0..20 {
            let decision = world.place_one(registration.name, "", &stripe(&world, id, &[], &[]));
            let mut counts: Vec<usize> =
                held(&world, &decision.expect("all is open").choice).into_values().collect();
            counts.sort_unstable();
            assert_eq!(counts, [1, 1, 1, 2, 2, 2], "{}", registration.name);
        }
    }
}

#[test]
fn the_host_of_the_first_missing_chunk_reads_six_chunks_and_sends_the_others() {
    let mut world = World::new(SMALL);
    // The uplink of the first rack is busy, so one of its chunks is the last choice.
    let busy = world.fabric.out_of_domain(leeward_fabric::DomainId(0)).expect("a tree");
    world.report(|resource| if resource == busy { 0.9 } else { 0.1 });
    world.pool.set_up(HostId(4), false);
    let left = [0, 4, 8, 9, 12, 13, 16, 20];
    for registration in replicas::REGISTRY {
        let request = stripe(&world, 1, &left, &[]);
        let decision = world.place_one(registration.name, "", &request).expect("seven chunks are up");
        let [rebuilder] = decision.choice[..] else { panic!("one chunk is missing: {:?}", decision.choice) };
        let ingress = world.fabric.ingress(rebuilder).expect("a tree");
        let sources: BTreeSet<HostId> = decision
            .change
            .add
            .iter()
            .filter(|entry| entry.hops.iter().any(|hop| hop.resource == ingress))
            .filter_map(|entry| world.fabric.host_of(entry.hops[0].resource))
            .collect();
        let fastest = [8, 9, 12, 13, 16, 20].map(HostId);
        // A policy that charges only the links that it ranks counts less.
        if registration.name != "sinbad" && registration.name != "sinbad-file" {
            assert_eq!(sources, BTreeSet::from(fastest), "{}", registration.name);
        }
        let traffic = replicas::traffic(&world.fabric, &request, &decision.choice, crate::support::NOW);
        assert_eq!(traffic.len(), 7, "six chunks are read, and one is written");
        for entry in traffic {
            assert!(matches!(entry.demand, Demand::Elastic { bytes: Bytes(100_000_000), .. }), "{entry:?}");
        }
    }
}

#[test]
fn a_stripe_with_too_few_chunks_that_are_up_is_refused() {
    let mut world = World::new(SMALL);
    world.report(|_| 0.1);
    world.pool.set_up(HostId(4), false);
    let request = stripe(&world, 1, &[0, 4, 8, 12, 16, 20], &[]);
    for registration in replicas::REGISTRY {
        let refusal = world.place_one(registration.name, "", &request).expect_err("a chunk is missing");
        assert_eq!(refusal, Refusal::TooFewChunks { up: 5, needed: 6 }, "{}", registration.name);
    }
    let text = Refusal::TooFewChunks { up: 5, needed: 6 }.to_string();
    assert_eq!(text, "5 hosts in `existing` are up, and 6 chunks are needed to rebuild the others");
}

#[test]
fn preferred_hosts_and_hosts_of_the_caller_are_checked_against_the_parity() {
    let mut world = World::new(SMALL);
    world.report(|_| 0.1);
    let request = stripe(&world, 1, &[], &[0, 1, 2, 3]);
    for registration in replicas::REGISTRY {
        let decision = world.place_one(registration.name, "", &request).expect("all is open");
        assert_eq!(decision.choice[..3], [0, 1, 2].map(HostId), "{}", registration.name);
        let at = Candidate::Host(HostId(3));
        let verdict = decision.why.iter().find(|one| one.candidate == at).map(|one| one.verdict);
        assert_eq!(verdict, Some(Verdict::Refused(Constraint::FaultDomain)), "{}", registration.name);
    }
    let chosen = [0, 1, 2, 3, 4, 8, 12, 16, 20].map(HostId);
    let expected = [3].map(|at| (at, Some(Constraint::FaultDomain)));
    let found: Vec<_> = objections(&world.pool, &stripe(&world, 1, &[], &[]), &chosen)
        .into_iter()
        .enumerate()
        .filter(|(_, objection)| objection.is_some())
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn collocation_limits_the_hosts_of_chunks() {
    let mut world = World::new(SMALL);
    world.report(|_| 0.1);
    let related: Vec<HostId> = (0..24).filter(|host| host % 2 == 0).map(HostId).collect();
    for registration in replicas::REGISTRY {
        let constraints = Constraints { collocated: related.clone(), ..Constraints::default() };
        let request = ReplicaRequest { constraints, ..stripe(&world, 1, &[], &[]) };
        let decision = world.place_one(registration.name, "", &request).expect("twelve hosts are related");
        assert!(decision.choice.iter().all(|host| related.contains(host)), "{}", registration.name);
    }
}

#[test]
fn invalid_stripes_are_rejected_by_field() {
    let world = World::new(SMALL);
    let names = |count: u32| -> Vec<String> {
        (0..count).map(|host| world.fabric.host_name(HostId(host)).to_owned()).collect()
    };
    let valid = ReplicasSpec { coding: "6+3".parse().ok(), replicas: 9, ..ReplicasSpec::new(Bytes(600)) };
    assert!(valid.request(&world.fabric, 0).is_ok());
    let damaged = ReplicasSpec { existing: names(7), replicas: 2, ..valid.clone() };
    assert!(damaged.request(&world.fabric, 0).is_ok());
    let writer = Some(names(9).remove(8));
    for (spec, field, part) in [
        (ReplicasSpec { replicas: 3, ..valid.clone() }, "replicas", "9 chunks to place"),
        (ReplicasSpec { existing: names(9), replicas: 0, ..valid.clone() }, "existing", "none is missing"),
        (ReplicasSpec { existing: names(5), replicas: 4, ..valid.clone() }, "existing", "needs 6 chunks"),
        (ReplicasSpec { writer, ..damaged.clone() }, "writer", "rebuilds"),
    ] {
        let error = spec.request(&world.fabric, 0).expect_err(part);
        assert_eq!(error.field.as_deref(), Some(field), "{error}");
        assert!(error.message.contains(part), "{error}");
    }
}

#[test]
fn a_chain_still_begins_at_the_writer_of_its_request() {
    let mut world = World::new(SMALL);
    world.report(|_| 0.1);
    let decision = world.place_one("leeward", "", &request(1, 5)).expect("all is open");
    assert_eq!((decision.choice[0], decision.change.add.len()), (HostId(5), 1));
}
