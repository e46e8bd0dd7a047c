//! Behaviour of `leeward` and `rehdfs` on a network of circuits: each rack has one partner rack at a time, and has
//! every other rack as its partner once in a round.

use std::collections::BTreeSet;

use crate::support::{NOW, World, request};
use leeward_fabric::{DomainId, HostId, Nanos, ResourceKind};
use leeward_placement::replicas::{self, ReplicaRequest};
use proptest::prelude::*;

const TURN: Nanos = Nanos(700_000_000);

fn cluster(racks: u32, hosts: u32) -> String {
    format!("racks: {racks}\nhosts_per_rack: {hosts}\nnic: 10Gbps\nrack_link: 90Gbps\n")
}

/// Rack of each copy besides the first, for a block written from one rack at time `now`.
fn partner_racks(world: &World, settings: &str, now: Nanos, request: &ReplicaRequest) -> Vec<DomainId> {
    let policy = replicas::REGISTRY.make("leeward", settings).expect("right settings");
    let copies = world.place_with(&*policy, now, request).expect("all is open").choice;
    copies[1..].iter().map(|&host| world.fabric.rack_of(host)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn each_turn_is_a_matching_and_a_round_pairs_every_rack_with_all(
        racks in 2u32..12, hosts in 2u32..5, begin in 0u64..20, id in any::<u64>(),
        loads in prop::collection::vec(0f64..0.9, 1..7),
    ) {
        let mut world = World::new(&cluster(racks, hosts));
        let text = format!("circuit_turn: {}ms", TURN.0 / 1_000_000);
        let mut met = vec![BTreeSet::new(); racks as usize];
        for turn in begin..begin + u64::from(racks) - 1 {
            let now = Nanos(NOW.0 + turn * TURN.0 + TURN.0 / 3);
            world.report_at(now, (Nanos(now.0 - 1_000_000_000), now), |r| Some(loads[r.index() % loads.len()]));
            let partners: Vec<DomainId> = (0..racks)
                .map(|rack| {
                    let copies = partner_racks(&world, &text, now, &request(id, rack * hosts));
                    assert!(copies.iter().all(|&other| other == copies[0]), "{copies:?}");
                    copies[0]
                })
                .collect();
            prop_assert_eq!(partners.iter().collect::<BTreeSet<_>>().len(), racks as usize, "{:?}", partners);
            for (rack, partner) in partners.into_iter().enumerate() {
                prop_assert!(partner.index() != rack && met[rack].insert(partner), "{} again", partner.0);
            }
        }
        prop_assert!(met.iter().all(|met| met.len() == racks as usize - 1));
    }
}

#[test]
fn a_partner_without_room_for_the_copies_is_skipped() {
    let mut world = World::new(&cluster(6, 2));
    world.report(|_| 0.1);
    let partner = partner_racks(&world, "circuit_turn: 1s", NOW, &request(1, 0))[0];
    assert_eq!(partner, DomainId(2), "1.5 s is in the second turn");
    let others = |world: &World| partner_racks(world, "circuit_turn: 1s", NOW, &request(1, 0))[0];
    world.pool.set_draining(HostId(4), true);
    assert_ne!(others(&world), partner, "the partner has one host for two copies");
    world.pool.set_draining(HostId(4), false);
    // Links with unknown load take no copies, with or without circuits.
    let silent = world.fabric.into_domain(partner).expect("a tree");
    let mut world = World::new(&cluster(6, 2));
    let fabric = world.fabric.clone();
    let counted = |link| matches!(fabric.kind(link), ResourceKind::RackUplink | ResourceKind::RackDownlink);
    world.report_some(|link| (counted(link) && link != silent).then_some(0.1));
    assert_ne!(others(&world), partner);
}

#[test]
fn circuits_need_their_setting_and_sampling_never_hides_the_partner() {
    let mut world = World::new(&cluster(12, 3));
    world.report(|_| 0.1);
    let racks = |settings: &str| -> BTreeSet<DomainId> {
        (0..50).map(|id| partner_racks(&world, settings, NOW, &request(id, 0))[0]).collect()
    };
    assert!(racks("").len() > 5);
    assert_eq!(racks("{circuit_turn: 1h, sample: 1}"), BTreeSet::from([DomainId(1)]));
    let error = replicas::REGISTRY.make("leeward", "circuit_turn: 0s").err().expect("an error").to_string();
    assert_eq!(error, "settings of leeward: circuit_turn: 0s: expected more than nothing");
}
