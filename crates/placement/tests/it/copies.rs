//! The copy to read, and the copies to delete.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{NOW, World};
use leeward_fabric::{DomainId, HostId};
use leeward_ledger::Scratch;
use leeward_placement::replicas::{Because, RatedCopy, choose_deletions, order_reads};
use leeward_testing::clusters::RACKS_WITH_SMALL_DISKS as SMALL;
use proptest::prelude::*;

fn hosts(ids: &[u32]) -> Vec<HostId> {
    ids.iter().copied().map(HostId).collect()
}

fn reads(world: &World, copies: &[u32], reader: Option<u32>, request: u64) -> Vec<RatedCopy> {
    let (mut scratch, copies) = (Scratch::default(), hosts(copies));
    let view = world.ledger.view(NOW, &mut scratch);
    order_reads(&copies, reader.map(HostId), request, &world.pool, &view, 7)
}

fn deletions(world: &World, copies: &[u32], count: usize) -> Vec<(u32, Because)> {
    let (mut scratch, copies) = (Scratch::default(), hosts(copies));
    let view = world.ledger.view(NOW, &mut scratch);
    let chosen = choose_deletions(&copies, count, 1, &world.pool, &view, 7);
    chosen.into_iter().map(|copy| (copy.host.0, copy.because)).collect()
}

#[test]
fn of_two_drawn_copies_the_one_with_more_capacity_left_is_read() {
    let mut world = World::new(SMALL);
    let fabric = world.fabric.clone();
    // Rack 1 sends little, rack 2 more, rack 3 most.
    let up = |rack| fabric.out_of_domain(DomainId(rack));
    world.report(|resource| match Some(resource) {
        at if at == up(2) => 0.95,
        at if at == up(3) => 0.99,
        _ => 0.1,
    });
    let mut first = BTreeMap::<u32, u32>::new();
    for request in 0..3_000 {
        let order = reads(&world, &[4, 8, 12], Some(20), request);
        assert_eq!(order.len(), 3);
        assert_eq!((order[0].because, order[1].because), (Because::MoreLeft, Because::LessLeft));
        assert_eq!((order[2].because, order[2].path), (Because::NotDrawn, None));
        assert_eq!(
            order,
            reads(&world, &[12, 4, 8], Some(20), request),
            "the same request draws the same copies"
        );
        *first.entry(order[0].host.0).or_default() += 1;
    }
    // Each pair is drawn equally often: 4 wins both of its pairs, 8 one, 12 none.
    assert!((1_850..2_150).contains(&first[&4]) && !first.contains_key(&12), "{first:?}");
}

#[test]
fn a_local_copy_is_first_and_copies_that_are_down_are_left_out() {
    let mut world = World::new(SMALL);
    world.report(|_| 0.5);
    let order = reads(&world, &[4, 8, 12], Some(8), 1);
    assert_eq!((order[0].host, order[0].because), (HostId(8), Because::Local));
    world.pool.set_up(HostId(8), false);
    let left: BTreeSet<u32> = reads(&world, &[4, 8, 12], Some(8), 1).iter().map(|copy| copy.host.0).collect();
    assert_eq!(left, [4, 12].into());
    [4, 12].into_iter().for_each(|host| world.pool.set_up(HostId(host), false));
    assert_eq!(reads(&world, &[4, 8, 12], None, 1), []);
}

#[test]
fn a_copy_whose_load_is_unknown_comes_after_one_that_is_known() {
    let mut world = World::new(SMALL);
    let silent = world.fabric.egress(HostId(4));
    world.report_some(|resource| (Some(resource) != silent).then_some(0.8));
    for request in 0..20 {
        let order = reads(&world, &[4, 8], None, request);
        assert_eq!(order[0].host, HostId(8));
        assert_eq!(order[1].path.map(|path| path.unknown), Some(1));
    }
}

#[test]
fn deletions_keep_the_spread_and_then_relieve_the_most_loaded_way() {
    let mut world = World::new(SMALL);
    let busy = world.fabric.egress(HostId(5));
    world.report(|resource| if Some(resource) == busy { 0.9 } else { 0.2 });
    // Hosts 4 to 7 are rack 1. Host 0 is alone in its rack, and host 16 in its own.
    assert_eq!(deletions(&world, &[0, 4, 5, 16], 1), [(5, Because::SharedDomain)]);
    let two = deletions(&world, &[0, 4, 5, 16], 2);
    assert_eq!((two[0], two[1].1), ((5, Because::SharedDomain), Because::OwnDomain));
    world.pool.set_draining(HostId(16), true);
    world.pool.set_up(HostId(0), false);
    assert_eq!(
        deletions(&world, &[0, 4, 5, 16], 3),
        [(0, Because::Down), (16, Because::Draining), (5, Because::SharedDomain)]
    );
}

proptest! {
    #[test]
    fn deletions_leave_copies_in_as_many_racks_as_possible(
        copies in prop::collection::btree_set(0_u32..24, 1..9), count in 1_usize..9,
    ) {
        let mut world = World::new(SMALL);
        world.report(|_| 0.3);
        let copies: Vec<u32> = copies.into_iter().collect();
        let deleted: BTreeSet<u32> = deletions(&world, &copies, count).into_iter().map(|(host, _)| host).collect();
        prop_assert_eq!(deleted.len(), count.min(copies.len()));
        let racks = |hosts: &mut dyn Iterator<Item = &u32>| -> usize {
            hosts.map(|&host| world.fabric.rack_of(HostId(host))).collect::<BTreeSet<_>>().len()
        };
        let before = racks(&mut copies.iter());
        let after = racks(&mut copies.iter().filter(|host| !deleted.contains(*host)));
        prop_assert_eq!(after, before.min(copies.len() - deleted.len()));
    }
}
