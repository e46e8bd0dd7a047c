//! `sinbad` against the pseudocode of its paper, and its behaviour beyond the paper.

use crate::support::{Answer, BLOCK, NOW, World, request};
use leeward_fabric::{Bytes, DomainId, HostId, Nanos, ResourceId, ResourceKind};
use leeward_ledger::Scratch;
use leeward_placement::replicas::ReplicaRequest;
use leeward_placement::{Note, Refusal, Verdict};
use leeward_testing::clusters::{RACKS_WITH_FAST_DISKS as FAST, RACKS_WITH_SMALL_DISKS as SMALL};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn sinbad_matches_its_pseudocode(
        loads in prop::collection::vec(0.0f64..0.999, 60), writer in 0u32..24, remote_racks in 1u8..3,
        blocks in 1usize..5,
    ) {
        let mut world = World::new(FAST);
        // Different loads everywhere, so that no tie hides a wrong order.
        world.report(|r| loads[r.index() % 60] * (1.0 - r.index() as f64 * 1e-6));
        let batch: Vec<ReplicaRequest> = (0..blocks as u64).map(|id| request(id, writer)).collect();
        let settings = format!("{{remote_racks: {remote_racks}}}");
        let answers = world.place("sinbad", &settings, &batch);
        let cap = 5e9 * 8.0;
        let mut reference = Reference::new(&world, cap);
        for answer in answers {
            let decision = answer.expect("every host is open");
            let groups: &[usize] = if remote_racks == 1 { &[2] } else { &[1, 1] };
            reference.check(&decision.choice, groups);
        }
    }
}

/// Reference implementation of pseudocode 2: sorts everything, and adds the increments as the paper prints
/// them.
struct Reference<'w> {
    world: &'w World,
    estimate: Vec<f64>,
    cap: f64,
}

impl<'w> Reference<'w> {
    fn new(world: &'w World, cap: f64) -> Self {
        let mut scratch = Scratch::default();
        let view = world.ledger.view(NOW, &mut scratch);
        let resources = (0..world.fabric.resource_count() as u32).map(ResourceId);
        let estimate = resources.map(|r| view.measured(r).map_or(0.0, |load| load.0 as f64)).collect();
        Reference { world, estimate, cap }
    }

    fn capacity(&self, r: ResourceId) -> f64 {
        self.world.ledger.view(NOW, &mut Scratch::default()).capacity(r).0 as f64
    }

    fn value(&self, r: ResourceId) -> f64 {
        (self.capacity(r) - self.estimate[r.index()]).min(self.cap)
    }

    /// Checks that the chosen link is one of the best (ties may differ), then charges it.
    fn take(&mut self, chosen: ResourceId, candidates: &[ResourceId]) {
        let best = candidates.iter().map(|&r| self.value(r)).fold(f64::MIN, f64::max);
        assert!(self.value(chosen) >= best - 1.0, "chose {} where {best} was available", self.value(chosen));
        // I(B, d) = min(Cap - v, Size / d); the reports ended at 1 s and come each second, so d is 0.5 s.
        let increment =
            (BLOCK.0 as f64 * 8.0 / 0.5).min(self.capacity(chosen) - self.estimate[chosen.index()]);
        self.estimate[chosen.index()] += increment;
    }

    fn check(&mut self, copies: &[HostId], groups: &[usize]) {
        let fabric = self.world.fabric.clone();
        let into = |rack| fabric.into_domain(rack).expect("a tree");
        let mut used = vec![fabric.rack_of(copies[0])];
        let mut rest = copies[1..].iter();
        for &size in groups {
            let group: Vec<HostId> = rest.by_ref().take(size).copied().collect();
            let rack = fabric.rack_of(group[0]);
            let racks: Vec<_> = fabric.all_racks().filter(|r| !used.contains(r)).map(into).collect();
            assert!(!used.contains(&rack), "the rack holds a copy already");
            self.take(into(rack), &racks);
            let mut left: Vec<HostId> = fabric.hosts(rack).map(HostId).collect();
            for host in group {
                assert_eq!(fabric.rack_of(host), rack, "a group stays in its rack");
                let links: Vec<_> = left.iter().filter_map(|&h| fabric.ingress(h)).collect();
                self.take(fabric.ingress(host).expect("a tree"), &links);
                left.retain(|&h| h != host);
            }
            used.push(rack);
        }
    }
}

#[test]
fn tied_racks_share_the_blocks_evenly() {
    let mut world = World::new("racks: 50\nhosts_per_rack: 4\nnic: 1Gbps\noversubscription: 2\n");
    world.report(|_| 0.1);
    let mut chosen = [0u32; 50];
    for id in 0..5_000 {
        let decision = world.place_one("sinbad", "", &request(id, 0)).expect("all is open");
        chosen[world.fabric.rack_of(decision.choice[1]).index()] += 1;
    }
    // 49 racks share 5,000 blocks: 102 each, standard deviation 10.
    assert_eq!(chosen[0], 0, "rack 0 is the writer's");
    assert!(chosen[1..].iter().all(|&n| (52..152).contains(&n)), "{chosen:?}");
}

#[test]
fn best_fit_takes_the_link_with_the_least_room_that_a_disk_does_not_exceed() {
    let mut world = World::new(SMALL);
    let fabric = world.fabric.clone();
    let into = |rack: u32| fabric.into_domain(DomainId(rack));
    // A disk writes 400 Mb/s. The links into racks 3 and 4 have 500 and 200 Mb/s left, the others 1.8 Gb/s.
    world.report(|r| match Some(r) {
        link if link == into(3) => 0.75,
        link if link == into(4) => 0.9,
        _ => 0.1,
    });
    let blocks = |settings: &str| {
        let mut blocks = [0u32; 6];
        for id in 0..100 {
            let decision = world.place_one("sinbad", settings, &request(id, 0)).expect("all is open");
            blocks[fabric.rack_of(decision.choice[1]).index()] += 1;
        }
        blocks
    };
    assert_eq!(blocks("best_fit: true"), [0, 0, 0, 100, 0, 0]);
    let ties = blocks("");
    assert!([1, 2, 3, 5].iter().all(|&rack| ties[rack] > 10), "{ties:?}");
    assert_eq!([ties[0], ties[4]], [0, 0]);
}

#[test]
fn without_telemetry_sinbad_refuses_unless_a_default_is_set() {
    let mut world = World::new(SMALL);
    let refusal = world.place_one("sinbad", "", &request(1, 0)).unwrap_err();
    assert_eq!(refusal, Refusal::NoTelemetry { newest: None });
    let placed = world.place_one("sinbad", "without_telemetry: default", &request(1, 0)).unwrap();
    let uniform = world.place_one("uniform", "", &request(1, 0)).unwrap();
    assert_eq!(placed.choice, uniform.choice);
    assert_eq!(placed.basis.note, Some(Note::NoTelemetry));
    world.report(|_| 0.5);
    assert!(world.place_one("sinbad", "", &request(1, 0)).is_ok());
}

#[test]
fn small_blocks_are_placed_by_default_and_charge_no_link() {
    let mut world = World::new(SMALL);
    world.report(|r| (r.index() % 7) as f64 / 10.0);
    let small = ReplicaRequest { size: Bytes(255 << 20), ..request(1, 0) };
    let decision = world.place_one("sinbad", "", &small).unwrap();
    assert_eq!(decision.choice, world.place_one("uniform", "", &small).unwrap().choice);
    assert_eq!(decision.basis.note, Some(Note::Small));
    assert!(decision.change.add[0].hops.is_empty());
}

#[test]
fn an_explanation_lists_all_candidates_with_the_chosen_first() {
    let mut world = World::new(SMALL);
    world.report(|r| (r.index() % 11) as f64 / 12.0);
    world.pool.set_up(HostId(23), false);
    let decision = world.place_one("sinbad", "", &request(1, 0)).unwrap();
    let chosen = decision.why.iter().filter(|c| c.verdict == Verdict::Chosen).count();
    assert_eq!(chosen, 4, "the writer, one rack and two of its hosts");
    assert_eq!(decision.why.len(), 1 + 6 + 4, "the writer, six racks, and the hosts of one");
    let basis = decision.basis;
    assert_eq!((basis.oldest, basis.policy), (Some(Nanos::SECOND), "sinbad"));
}

/// Reports only from the switches of racks (or pods), at a third of each capacity.
fn only(world: &mut World, kinds: &[ResourceKind]) {
    let fabric = world.fabric.clone();
    world.report_some(|resource| kinds.contains(&fabric.kind(resource)).then_some(0.3));
}

#[test]
fn with_switch_counters_only_a_down_host_does_not_close_its_rack() {
    let mut world = World::new(SMALL);
    only(&mut world, &[ResourceKind::RackUplink, ResourceKind::RackDownlink]);
    for rack in 0..6 {
        let host = HostId(rack * 4);
        world.pool.set_up(host, false);
        world.ledger.set_health(host, false, NOW);
    }
    let copies =
        world.place_one("sinbad", "", &request(1, 1)).expect("three hosts of each rack are up").choice;
    assert!(copies.iter().all(|host| host.0 % 4 != 0), "{copies:?}");
}

#[test]
fn with_pod_counters_only_a_group_still_stays_in_one_rack() {
    let text =
        "racks: 12\nhosts_per_rack: 4\npods: 3\nnic: 1Gbps\noversubscription: 2\npod_oversubscription: 2\n";
    let mut world = World::new(text);
    only(&mut world, &[ResourceKind::PodUplink, ResourceKind::PodDownlink]);
    for id in 0..50 {
        let copies = world.place_one("sinbad", "", &request(id, 0)).expect("all is open").choice;
        assert_eq!(world.fabric.rack_of(copies[1]), world.fabric.rack_of(copies[2]), "{copies:?}");
    }
}

#[test]
fn a_failed_attempt_charges_no_link() {
    // Racks of one host: two copies never fit in one, so the first attempt always fails.
    let mut world = World::new("racks: 8\nhosts_per_rack: 1\nnic: 1Gbps\noversubscription: 1\n");
    world.report(|r| (r.index() % 7) as f64 / 10.0);
    let batch: Vec<ReplicaRequest> = (0..3).map(|id| request(id, 0)).collect();
    let grouped = world.place("sinbad", "remote_racks: 1", &batch);
    let alone = world.place("sinbad", "remote_racks: 2", &batch);
    let choices = |answers: Vec<Answer>| -> Vec<_> {
        answers.into_iter().map(|answer| answer.expect("all is open").choice).collect()
    };
    assert_eq!(choices(grouped), choices(alone));
}
