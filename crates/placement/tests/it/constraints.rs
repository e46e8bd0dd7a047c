//! Properties of every replica policy on random clusters, loads and requests: the policy answers if an answer exists,
//! and the answer satisfies the request.

use std::collections::BTreeMap;

use crate::support::{BLOCK, World, request};
use leeward_fabric::{Bytes, DomainId, HostId};
use leeward_placement::Constraints;
use leeward_placement::replicas::{Layout, REGISTRY, ReplicaRequest, best_by_scores, check_answer};
use proptest::prelude::*;

/// Reference implementation of a host's eligibility.
fn is_eligible(world: &World, host: HostId, constraints: &Constraints) -> bool {
    let rack = world.fabric.rack_of(host);
    let pool = &world.pool;
    pool.is_up(host)
        && !pool.is_draining(host)
        && pool.stored(host).0 + BLOCK.0 <= 1 << 30
        && !constraints.excluded_hosts.contains(&host)
        && !constraints.excluded_domains.contains(&rack)
        && (constraints.collocated.is_empty() || constraints.collocated.contains(&host))
        && world.fabric.tags(host) & constraints.tags == constraints.tags
}

/// True if any layout satisfies the request.
fn feasible(world: &World, request: &ReplicaRequest) -> bool {
    let mut domains: BTreeMap<_, usize> = BTreeMap::new();
    for host in world.fabric.all_hosts().filter(|&host| is_eligible(world, host, &request.constraints)) {
        *domains.entry(world.fabric.fault_domain(world.fabric.rack_of(host))).or_default() += 1;
    }
    let (copies, faults) = (usize::from(request.replicas), usize::from(request.fault_domains));
    match request.layout {
        Layout::Chain => {
            faults < copies && domains.values().sum::<usize>() >= copies && domains.len() > faults
        }
        Layout::Stripe { parity } => {
            let most = usize::from(parity).checked_div(faults).unwrap_or(copies);
            domains.values().map(|&hosts| hosts.min(most)).sum::<usize>() >= copies
        }
    }
}

/// Checks that copies satisfy a request, and that the check of answers accepts them.
fn satisfies(
    world: &World,
    request: &ReplicaRequest,
    name: &str,
    copies: &[HostId],
) -> Result<(), TestCaseError> {
    prop_assert_eq!(copies.len(), usize::from(request.replicas));
    let mut distinct = copies.to_vec();
    distinct.sort();
    distinct.dedup();
    prop_assert_eq!(distinct.len(), copies.len(), "{}: two copies on one host", name);
    prop_assert!(copies.iter().all(|&host| is_eligible(world, host, &request.constraints)));
    let mut domains: BTreeMap<_, usize> = BTreeMap::new();
    for &host in copies {
        *domains.entry(world.fabric.fault_domain(world.fabric.rack_of(host))).or_default() += 1;
    }
    let faults = usize::from(request.fault_domains);
    match request.layout {
        Layout::Chain => prop_assert!(domains.len() > faults, "{}", name),
        Layout::Stripe { parity } => {
            // Any `faults` domains may be lost, and at most `parity` chunks go with them.
            let mut held: Vec<usize> = domains.into_values().collect();
            held.sort_by(|a, b| b.cmp(a));
            let lost: usize = held.iter().take(faults).sum();
            prop_assert!(lost <= usize::from(parity), "{}: {:?}", name, held);
        }
    }
    prop_assert_eq!(check_answer(&world.pool, request, copies), Ok(()), "{}", name);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_block_is_placed_within_constraints_and_refused_only_if_none_fit(
        racks in 2u32..8, hosts in 1u32..6, power in 1u32..6, replicas in 1u8..6, faults in 0u8..4,
        parity in prop::option::of(1u8..3), remote_racks in 1u8..3, writer in 0u32..6,
        ids in prop::collection::vec(any::<u64>(), 1..4),
        state in prop::collection::vec((0u32..40, 0u8..4), 0..20), loads in prop::collection::vec(0f64..1.2, 1..9),
        excluded in prop::collection::vec(0u32..40, 0..4), excluded_rack in prop::option::of(0u32..8),
        collocated in prop::collection::vec(0u32..40, 0..9), tag in any::<bool>(), turn in 1u64..4000,
        scores in prop::collection::vec(-1f64..1.0, 1..9),
    ) {
        let mut text = "nic: 1Gbps\noversubscription: 2\ndevices: [{read: 50MB/s, write: 50MB/s, capacity: 1GiB}]\n\
            hosts_per_rack: ".to_owned() + &hosts.to_string() + "\nracks:\n";
        for rack in 0..racks {
            let tags = if rack % 3 == 1 { ", tags: [fast]" } else { "" };
            text += &format!("  - {{fault_domain: power{}{tags}}}\n", rack % (power + 1));
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
            tags: world.fabric.tag_mask("fast").filter(|_| tag).unwrap_or(0),
            collocated: collocated.iter().map(|host| HostId(host % count)).collect(),
            max_imbalance: None,
            ..Constraints::default()
        };
        let layout = match parity {
            Some(parity) if parity < replicas => Layout::Stripe { parity },
            _ => Layout::Chain,
        };
        let batch: Vec<ReplicaRequest> = ids.iter().map(|&id| {
            let base = request(id, writer % count);
            ReplicaRequest { replicas, layout, fault_domains: faults, constraints: constraints.clone(), ..base }
        }).collect();
        let possible = feasible(&world, &batch[0]);
        let policies = REGISTRY.iter().map(|registration| {
            let has_remote_racks = (registration.schema)()["properties"].get("remote_racks").is_some();
            let settings = if has_remote_racks { format!("remote_racks: {remote_racks}") } else { String::new() };
            (registration.name, settings)
        });
        let circuits = ("leeward", format!("{{remote_racks: {remote_racks}, circuit_turn: {turn}ms}}"));
        for (name, settings) in policies.chain([circuits]) {
            let answers = world.place(name, &settings, &batch);
            prop_assert_eq!(&answers, &world.place(name, &settings, &batch), "{} is not deterministic", name);
            for (answer, request) in answers.into_iter().zip(&batch) {
                prop_assert_eq!(answer.is_ok(), possible, "{}: {:?}", name, answer);
                let Ok(decision) = answer else { continue };
                satisfies(&world, request, name, &decision.choice)?;
            }
        }
        let scores: Vec<f64> = (0..count as usize).map(|host| scores[host % scores.len()]).collect();
        for request in &batch {
            let answer = best_by_scores(&world.pool, request, &scores, 7);
            prop_assert_eq!(&answer, &best_by_scores(&world.pool, request, &scores, 7));
            prop_assert_eq!(answer.is_ok(), possible, "scores: {:?}", answer);
            let Ok(copies) = answer else { continue };
            satisfies(&world, request, "scores", &copies)?;
        }
    }
}
