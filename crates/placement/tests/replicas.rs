//! What every policy for replicas holds, on random clusters, loads and requests.

use std::sync::Arc;

use leeward_fabric::{Bytes, Cluster, DomainId, Fabric, HostId, Load, Nanos, ResourceId};
use leeward_ledger::{Ledger, LedgerSettings, Sample, Scratch};
use leeward_placement::replicas::{self, Chain, REGISTRY, ReplicaRequest};
use leeward_placement::{Constraints, Context, Decision, Explain, Pool, Refusal, Verdict};
use proptest::prelude::*;

const NOW: Nanos = Nanos(1_500_000_000);
const BLOCK: Bytes = Bytes(256 << 20);

/// A cluster with the state that a policy reads.
struct World {
    fabric: Arc<Fabric>,
    ledger: Ledger,
    pool: Pool,
}

impl World {
    fn new(cluster: &str) -> World {
        let cluster = Cluster::from_text("test", cluster).expect("the test writes a right cluster");
        let settings = LedgerSettings::default();
        let ledger = Ledger::new(cluster.fabric.clone(), &cluster.capacities, settings).expect("defaults");
        World { pool: Pool::new(cluster.fabric.clone()), fabric: cluster.fabric, ledger }
    }

    /// Every link carries the share of its capacity that `share` says.
    fn report(&mut self, share: impl Fn(ResourceId) -> f64) {
        let resources = (0..self.fabric.resource_count() as u32).map(ResourceId);
        let capacity = |r| self.ledger.view(NOW, &mut Scratch::default()).capacity(r).0;
        let samples: Vec<Sample> = resources
            .map(|resource| {
                let load = Load((capacity(resource) as f64 * share(resource)) as i64);
                Sample { resource, window: (Nanos(0), Nanos::SECOND), load, guaranteed: None }
            })
            .collect();
        self.ledger.report(&samples, NOW);
    }

    fn place(&self, policy: &str, settings: &str, batch: &[ReplicaRequest]) -> Vec<Answer> {
        let policy = replicas::make(policy, settings).expect("a policy of the registry");
        let mut scratch = Scratch::default();
        let view = &mut self.ledger.view(NOW, &mut scratch);
        let mut context = Context { view, pool: &self.pool, seed: 7, explain: Explain::All };
        policy.place(batch, &mut context)
    }

    fn place_one(&self, policy: &str, settings: &str, request: &ReplicaRequest) -> Answer {
        self.place(policy, settings, std::slice::from_ref(request)).remove(0)
    }
}

type Answer = Result<Decision<Chain>, Refusal>;

fn request(id: u64, writer: u32) -> ReplicaRequest {
    ReplicaRequest {
        id,
        file: id,
        writer: Some(HostId(writer)),
        size: BLOCK,
        replicas: 3,
        fault_domains: 1,
        constraints: Constraints::default(),
    }
}

const SMALL: &str = "racks: 6\nhosts_per_rack: 4\nnic: 1Gbps\noversubscription: 2\n\
    devices: [{read: 50MB/s, write: 50MB/s, capacity: 1GiB}]\n";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn fault_domains_are_held_and_no_closed_host_is_chosen(
        racks in 2u32..8, hosts in 1u32..6, power in 1u32..4, replicas in 1u8..5, faults in 0u8..3,
        remote_racks in 1u8..3, writer in 0u32..6, ids in prop::collection::vec(any::<u64>(), 1..6),
        state in prop::collection::vec((0u32..40, 0u8..4), 0..20), loads in prop::collection::vec(0f64..1.2, 1..9),
        excluded in prop::collection::vec(0u32..40, 0..4), excluded_rack in prop::option::of(0u32..8),
    ) {
        let mut text = "nic: 1Gbps\noversubscription: 2\ndevices: [{read: 50MB/s, write: 50MB/s, capacity: 1GiB}]\n\
            hosts_per_rack: ".to_owned() + &hosts.to_string() + "\nracks:\n";
        for rack in 0..racks {
            text += &format!("  - {{fault_domain: power{}}}\n", rack % (power + 1));
        }
        let mut world = World::new(&text);
        world.report(|r| loads[r.index() % loads.len()]);
        let count = racks * hosts;
        for (host, what) in state {
            let host = HostId(host % count);
            match what {
                0 => world.pool.set_up(host, false),
                1 => world.pool.set_draining(host, true),
                2 => world.pool.set_stored(host, Bytes(1 << 30)),
                _ => world.pool.set_stored(host, Bytes(900 << 20)),
            }
        }
        let constraints = Constraints {
            excluded_hosts: excluded.iter().map(|host| HostId(host % count)).collect(),
            excluded_domains: excluded_rack.iter().map(|rack| DomainId(rack % racks)).collect(),
            tags: 0,
        };
        let batch: Vec<ReplicaRequest> = ids.iter().map(|&id| {
            let base = request(id, writer % count);
            ReplicaRequest { replicas, fault_domains: faults, constraints: constraints.clone(), ..base }
        }).collect();
        for registration in REGISTRY {
            let has_remote_racks = (registration.schema)()["properties"].get("remote_racks").is_some();
            let settings = if has_remote_racks { format!("remote_racks: {remote_racks}") } else { String::new() };
            for answer in world.place(registration.name, &settings, &batch) {
                let Ok(decision) = answer else { continue };
                let copies = decision.choice;
                prop_assert_eq!(copies.len(), usize::from(replicas.max(1)));
                let mut distinct = copies.clone();
                distinct.sort();
                distinct.dedup();
                prop_assert_eq!(distinct.len(), copies.len(), "two copies on one host");
                for &host in &copies {
                    prop_assert!(world.pool.is_open(host) && world.pool.fits(host, BLOCK));
                    prop_assert!(!constraints.excluded_hosts.contains(&host));
                    prop_assert!(!constraints.excluded_domains.contains(&world.fabric.rack_of(host)));
                }
                let domain = |host| world.fabric.fault_domain(world.fabric.rack_of(host));
                let mut others: Vec<_> = copies.iter().map(|&host| domain(host)).collect();
                others.sort();
                others.dedup();
                let wanted = usize::from(faults.min(replicas.max(1) - 1));
                prop_assert!(others.len() > wanted, "{} fault domains for f = {faults}", others.len());
            }
        }
    }

    #[test]
    fn sinbad_chooses_as_the_pseudocode_does(
        loads in prop::collection::vec(0.0f64..0.999, 60), writer in 0u32..24, remote_racks in 1u8..3,
        blocks in 1usize..5,
    ) {
        let mut world = World::new(SMALL);
        // Different loads everywhere, so that no tie hides a wrong order; fast disks, so that none is capped.
        world.report(|r| loads[r.index() % 60] * (1.0 - r.index() as f64 * 1e-6));
        let batch: Vec<ReplicaRequest> = (0..blocks as u64).map(|id| request(id, writer)).collect();
        let settings = format!("{{remote_racks: {remote_racks}}}");
        let answers = world.place("sinbad", &settings, &batch);
        let cap = 50e6 * 8.0;
        let mut literal = Literal::new(&world, cap);
        for answer in answers {
            let decision = answer.expect("every host is open");
            let groups: &[usize] = if remote_racks == 1 { &[2] } else { &[1, 1] };
            literal.check(&decision.choice, groups);
        }
    }
}

/// Pseudocode 2, written down plainly: sort everything, add the increments as the paper prints them.
struct Literal<'w> {
    world: &'w World,
    estimate: Vec<f64>,
    cap: f64,
}

impl<'w> Literal<'w> {
    fn new(world: &'w World, cap: f64) -> Self {
        let mut scratch = Scratch::default();
        let view = world.ledger.view(NOW, &mut scratch);
        let resources = (0..world.fabric.resource_count() as u32).map(ResourceId);
        let estimate = resources.map(|r| view.measured(r).map_or(0.0, |load| load.0 as f64)).collect();
        Literal { world, estimate, cap }
    }

    fn capacity(&self, r: ResourceId) -> f64 {
        self.world.ledger.view(NOW, &mut Scratch::default()).capacity(r).0 as f64
    }

    fn value(&self, r: ResourceId) -> f64 {
        (self.capacity(r) - self.estimate[r.index()]).min(self.cap)
    }

    /// Whatever was chosen must have been a best one (ties may go either way), and is then charged.
    fn take(&mut self, chosen: ResourceId, candidates: &[ResourceId]) {
        let best = candidates.iter().map(|&r| self.value(r)).fold(f64::MIN, f64::max);
        assert!(self.value(chosen) >= best - 1.0, "chose {} where {best} was to be had", self.value(chosen));
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
fn ties_do_not_herd() {
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
fn uniform_draws_every_remote_host_as_often() {
    let world = World::new("racks: 5\nhosts_per_rack: 4\nnic: 1Gbps\noversubscription: 2\n");
    let mut second = [0u32; 20];
    for id in 0..16_000 {
        let copies = world.place_one("uniform", "", &request(id, 1)).expect("all is open").choice;
        assert_eq!(copies[0], HostId(1));
        assert_eq!(world.fabric.rack_of(copies[1]), world.fabric.rack_of(copies[2]));
        second[copies[1].index()] += 1;
    }
    assert!(second[..4].iter().all(|&n| n == 0));
    // 16 hosts share 16,000: 1,000 each, standard deviation 31.
    assert!(second[4..].iter().all(|&n| (845..1155).contains(&n)), "{second:?}");
}

#[test]
fn without_telemetry_sinbad_refuses_unless_told_to_place_by_default() {
    let mut world = World::new(SMALL);
    let refusal = world.place_one("sinbad", "", &request(1, 0)).unwrap_err();
    assert_eq!(refusal, Refusal::NoTelemetry { newest: None });
    let placed = world.place_one("sinbad", "without_telemetry: default", &request(1, 0)).unwrap();
    let uniform = world.place_one("uniform", "", &request(1, 0)).unwrap();
    assert_eq!(placed.choice, uniform.choice);
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
    assert!(decision.change.add[0].hops.is_empty());
}

#[test]
fn an_explanation_has_every_candidate_of_a_level_and_what_was_chosen_first() {
    let mut world = World::new(SMALL);
    world.report(|r| (r.index() % 11) as f64 / 12.0);
    world.pool.set_up(HostId(23), false);
    let decision = world.place_one("sinbad", "", &request(1, 0)).unwrap();
    let chosen = decision.why.iter().filter(|c| c.verdict == Verdict::Chosen).count();
    assert_eq!(chosen, 3, "one rack and two hosts");
    assert_eq!(decision.why.len(), 6 + 4, "six racks, and the hosts of one");
    let basis = decision.basis;
    assert_eq!((basis.oldest, basis.policy), (Some(Nanos::SECOND), "sinbad"));
}

#[test]
fn a_full_cluster_is_refused_with_the_reason() {
    let mut world = World::new(SMALL);
    world.report(|_| 0.0);
    for host in world.fabric.clone().all_hosts() {
        world.pool.set_stored(host, Bytes(1 << 30));
    }
    let refusal = world.place_one("uniform", "", &request(1, 0)).unwrap_err();
    assert_eq!(refusal.to_string(), "no candidate may take it: 24: the block does not fit");
}

#[test]
fn unknown_policies_and_settings_are_named() {
    let make = |name, settings| replicas::make(name, settings).err().expect("an error").to_string();
    assert_eq!(make("best", ""), "unknown policy `best` for replicas; there are: uniform, sinbad");
    let field = make("sinbad", "remote_rack: 2");
    assert!(field.starts_with("settings of sinbad:1:1: remote_rack: unknown field"), "{field}");
    let unit = make("sinbad", "interval: 10");
    assert!(unit.starts_with("settings of sinbad:1:11: interval: `10`: the unit is missing"), "{unit}");
}
