//! Requests for more copies of a block that has some, with preferred hosts and types of storage, under every policy.

use std::collections::BTreeSet;

use crate::support::{World, request};
use leeward_fabric::{Bytes, DomainId, HostId, ResourceKind};
use leeward_ledger::Scratch;
use leeward_placement::replicas::{self, Layout, ReplicaRequest, ReplicasSpec, set_source};
use leeward_placement::{Candidate, Constraint, Constraints, Refusal, Verdict};
use leeward_testing::clusters::RACKS_WITH_SMALL_DISKS as SMALL;
use proptest::prelude::*;

/// Six racks of four hosts; each host has an SSD and a disk.
const TIERS: &str = "racks: 6\nhosts_per_rack: 4\nnic: 10Gbps\noversubscription: 4\ndevices:\n  \
                     - {name: ssd, type: ssd, read: 500MB/s, write: 500MB/s, capacity: 64GiB}\n  \
                     - {name: disk, type: archive, read: 100MB/s, write: 100MB/s, capacity: 64GiB}\n";

fn with(id: u64, writer: Option<u32>, replicas: u8, constraints: Constraints) -> ReplicaRequest {
    ReplicaRequest { writer: writer.map(HostId), replicas, constraints, ..request(id, 0) }
}

proptest! {
    /// New copies are on other hosts than existing ones. All copies together are in the required fault domains, or the
    /// request is refused because the new copies are too few for them.
    #[test]
    fn new_copies_keep_the_rules_against_existing_ones(
        existing in prop::collection::btree_set(0_u32..24, 1..5), replicas in 1_u8..4, fault_domains in 0_u8..3,
        preferred in prop::collection::vec(0_u32..24, 0..4), id in any::<u64>(),
    ) {
        let mut world = World::new(SMALL);
        world.report(|_| 0.1);
        let mut preferred: Vec<HostId> = preferred.into_iter().map(HostId).collect();
        preferred.dedup();
        let existing: Vec<HostId> = existing.into_iter().map(HostId).collect();
        let constraints = Constraints { existing: existing.clone(), preferred, ..Constraints::default() };
        let block = ReplicaRequest { fault_domains, ..with(id, Some(existing[0].0), replicas, constraints) };
        let racks = |hosts: &[HostId]| -> BTreeSet<DomainId> {
            hosts.iter().map(|&host| world.fabric.rack_of(host)).collect()
        };
        let held = racks(&existing).len();
        for registration in replicas::REGISTRY {
            match world.place_one(registration.name, "", &block) {
                Ok(decision) => {
                    prop_assert_eq!(decision.choice.len(), usize::from(replicas), "{}", registration.name);
                    let all = [existing.as_slice(), &decision.choice].concat();
                    let distinct: BTreeSet<HostId> = all.iter().copied().collect();
                    prop_assert_eq!(distinct.len(), all.len(), "{}: {:?}", registration.name, all);
                    prop_assert!(racks(&all).len() > usize::from(fault_domains), "{}: {:?}", registration.name, all);
                    prop_assert_eq!(decision.basis.source, Some(existing[0]));
                }
                Err(refusal) => {
                    prop_assert_eq!(refusal, Refusal::TooFewCopies { replicas, fault_domains });
                    prop_assert!(held + usize::from(replicas) <= usize::from(fault_domains));
                }
            }
        }
    }
}

#[test]
fn the_holder_with_the_most_capacity_left_sends_the_copies() {
    let mut world = World::new(SMALL);
    let busy = world.fabric.out_of_domain(DomainId(1)).expect("a tree");
    let slow = world.fabric.device(HostId(9), 0).expect("a device");
    let fabric = world.fabric.clone();
    world.report(|resource| match resource {
        _ if resource == busy || resource == slow => 0.9,
        _ if fabric.kind(resource) == ResourceKind::Device => 0.1,
        _ => 0.2,
    });
    let constraints = Constraints { existing: [4, 9, 16].map(HostId).to_vec(), ..Constraints::default() };
    let block = with(1, None, 1, constraints);
    let source = |world: &World| {
        let mut scratch = Scratch::default();
        let (mut block, view) = (block.clone(), world.ledger.view(crate::support::NOW, &mut scratch));
        set_source(&mut block, &world.pool, &view, 7);
        block.writer
    };
    assert_eq!(source(&world), Some(HostId(16)), "host 4 has a busy uplink, and host 9 a busy disk");
    world.pool.set_draining(HostId(16), true);
    assert_eq!(source(&world), Some(HostId(16)), "a host that leaves the cluster sends its copies");
    world.pool.set_up(HostId(16), false);
    assert!([Some(HostId(4)), Some(HostId(9))].contains(&source(&world)));
    [4, 9].into_iter().for_each(|host| world.pool.set_up(HostId(host), false));
    assert_eq!(source(&world), None);
    for registration in replicas::REGISTRY {
        let refusal = world.place_one(registration.name, "", &block).expect_err("no host can send");
        assert_eq!(refusal, Refusal::NoSource, "{}", registration.name);
    }
}

#[test]
fn the_copy_leaves_the_disk_of_the_holder() {
    let mut world = World::new(SMALL);
    world.report(|_| 0.1);
    let constraints = Constraints { existing: vec![HostId(5)], ..Constraints::default() };
    let decision = world.place_one("leeward", "", &with(1, Some(5), 1, constraints)).expect("all is open");
    let hops: Vec<_> = decision.change.add[0].hops.iter().map(|hop| hop.resource).collect();
    assert!(world.fabric.device(HostId(5), 0).is_some_and(|device| hops.contains(&device)));
    assert!(world.fabric.egress(HostId(5)).is_some_and(|link| hops.contains(&link)));
}

#[test]
fn preferred_hosts_come_first_if_they_fit_and_keep_the_fault_domains() {
    let mut world = World::new(SMALL);
    world.report(|_| 0.1);
    world.pool.set_up(HostId(9), false);
    let preferred = [9, 13, 14, 15].map(HostId).to_vec();
    let constraints = Constraints { preferred, ..Constraints::default() };
    for registration in replicas::REGISTRY {
        let decision = world.place_one(registration.name, "", &with(1, Some(0), 3, constraints.clone()));
        let decision = decision.expect("all but one are open");
        assert_eq!(decision.choice[..2], [HostId(13), HostId(14)], "{}", registration.name);
        assert_ne!(world.fabric.rack_of(decision.choice[2]), DomainId(3), "{}", registration.name);
        let verdict = |host: u32| {
            let at = Candidate::Host(HostId(host));
            decision.why.iter().find(|one| one.candidate == at).map(|one| one.verdict)
        };
        assert_eq!(verdict(13), Some(Verdict::Preferred), "{}", registration.name);
        assert_eq!(verdict(9), Some(Verdict::Refused(Constraint::Down)), "{}", registration.name);
        assert_eq!(verdict(15), Some(Verdict::Refused(Constraint::FaultDomain)), "{}", registration.name);
    }
    let all = Constraints { preferred: [1, 5, 9].map(HostId).to_vec(), ..Constraints::default() };
    world.pool.set_up(HostId(9), true);
    for registration in replicas::REGISTRY {
        let decision = world.place_one(registration.name, "", &with(1, Some(0), 3, all.clone()));
        assert_eq!(decision.expect("all are open").choice, all.preferred, "{}", registration.name);
    }
}

#[test]
fn copies_go_to_devices_of_the_required_type() {
    let mut world = World::new(TIERS);
    // The SSDs are busy, so a block of any type would avoid them.
    let ssds: BTreeSet<_> =
        world.fabric.all_hosts().filter_map(|host| world.fabric.device(host, 0)).collect();
    world.report(|resource| if ssds.contains(&resource) { 0.6 } else { 0.1 });
    for registration in replicas::REGISTRY {
        for id in 0..20 {
            let constraints = Constraints { storage: Some("ssd".into()), ..Constraints::default() };
            let block = with(id, Some(0), 3, constraints);
            let decision = world.place_one(registration.name, "", &block).expect("every host has an SSD");
            for entry in replicas::traffic(&world.fabric, &block, &decision.choice, crate::support::NOW) {
                let devices = entry.hops.iter().map(|hop| hop.resource);
                let mut devices = devices.filter(|&at| world.fabric.kind(at) == ResourceKind::Device);
                assert!(devices.all(|device| ssds.contains(&device)), "{}", registration.name);
            }
        }
    }
}

#[test]
fn a_host_without_the_type_takes_no_copy_and_an_unknown_type_is_an_error() {
    let text =
        format!("{TIERS}racks: [{{count: 5}}, {{devices: [{{name: d, read: 1GB/s, write: 1GB/s}}]}}]\n");
    let mut world = World::new(&text.replace("racks: 6\n", ""));
    world.report(|_| 0.1);
    let constraints = Constraints { storage: Some("archive".into()), ..Constraints::default() };
    for registration in replicas::REGISTRY.into_iter().filter(|one| one.name != "ccp") {
        for id in 0..40 {
            let block =
                ReplicaRequest { layout: Layout::Chain, ..with(id, Some(20), 3, constraints.clone()) };
            let copies = world.place_one(registration.name, "", &block).expect("five racks have one").choice;
            assert!(copies.iter().all(|host| host.0 < 20), "{}: {copies:?}", registration.name);
        }
    }
    let spec = ReplicasSpec { storage: Some("tape".to_owned()), ..ReplicasSpec::new(Bytes(1)) };
    let error = spec.request(&world.fabric, 0).expect_err("no device has this type");
    assert_eq!((error.field.as_deref(), &*error.message), (Some("storage"), "no device has the type `tape`"));
}
