//! `utp` with the balance of hosts beside that of links: no objective of equal or higher rank is lost.

use crate::support::World;
use leeward_fabric::{Bytes, Cpus, HostId, ResourceId};
use leeward_placement::tasks::{AppRequest, Task, Traffic};
use leeward_placement::{Considered, JobId, Objectives, Verdict};
use proptest::prelude::*;

/// Steps of load of the policies' default.
const STEP: f64 = 0.02;

/// A cell of racks with four hosts of 16 processors and uplinks of 1 Gb/s.
fn cell(racks: u32) -> World {
    World::new(&format!("racks: {racks}\nhosts_per_rack: 4\nnic: 1Gbps\nrack_link: 1Gbps\ncpus: 16\n"))
}

fn task(mbps: u64) -> AppRequest {
    let mut task = Task { cpus: Cpus(1000), ..Task::default() };
    task.egress[0] = Traffic::steady(mbps * 1_000_000);
    AppRequest { id: 3, job: JobId(1), tasks: vec![task], ..AppRequest::default() }
}

/// Objectives of the chosen host, in steps: spread, links, hosts.
fn steps(why: &[Considered], world: &World) -> [u64; 3] {
    let chosen = why.iter().find(|one| one.verdict == Verdict::Chosen).expect("a choice");
    let Objectives { in_rack, balance, left, .. } = chosen.objectives.expect("the host was ranked");
    let cpus = world.fabric.cpus(HostId(0)).expect("hosts have processors").0 as f64;
    // Hosts have no memory in this cell.
    let fill = 1.0 - left as f64 / cpus;
    [u64::from(in_rack), (balance / STEP) as u64, (fill / STEP) as u64]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn host_balance_costs_neither_spread_nor_the_balance_of_links(
        loads in prop::collection::vec(0_u32..100, 12), taken in prop::collection::vec(0_u64..16, 24),
        there in prop::collection::vec(0_u32..24, 0..4), mbps in 1_u64..300,
    ) {
        let mut world = cell(6);
        for (host, &cpus) in (0..).zip(&taken) {
            world.pool.occupy(HostId(host), JobId(9), Cpus(cpus * 1000), Bytes(0));
        }
        let room = |host: u32| taken[host as usize] < 15;
        for &host in there.iter().filter(|&&host| room(host)) {
            world.pool.occupy(HostId(host), JobId(1), Cpus(0), Bytes(0));
        }
        prop_assume!((0..24).any(room));
        let first = world.fabric.out_of_domain(leeward_fabric::DomainId(0)).expect("a tree").0;
        world.report(|resource: ResourceId| {
            resource.0.checked_sub(first).map_or(0.0, |at| f64::from(loads[at as usize % 12]) / 100.0)
        });
        for policy in ["utp", "utp-proactive"] {
            let plain = world.decide(policy, "spread: 0", &task(mbps)).expect("enough room");
            let both = world.decide(policy, "{spread: 0, host_balance: true}", &task(mbps)).expect("enough room");
            let (plain, with) = (steps(&plain.why, &world), steps(&both.why, &world));
            prop_assert_eq!(plain[..2].to_vec(), with[..2].to_vec(), "spread and links are as without it");
            prop_assert!(with[2] <= plain[2], "{} instead of {}", with[2], plain[2]);
            let chosen = both.why.iter().find(|one| one.verdict == Verdict::Chosen).expect("a choice");
            prop_assert!(chosen.objectives.is_some_and(|objectives| objectives.hosts.is_some()));
        }
    }
}

#[test]
fn a_task_goes_to_the_empty_host_of_a_rack_and_not_to_its_full_neighbor() {
    let mut world = cell(2);
    world.report(|_| 0.1);
    world.pool.occupy(HostId(0), JobId(9), Cpus(14_000), Bytes(0));
    world.pool.occupy(HostId(4), JobId(9), Cpus(14_000), Bytes(0));
    let host = |settings: &str| world.decide("utp", settings, &task(10)).expect("enough room").choice[0].0;
    assert!([0, 4].contains(&host("")), "packing decides");
    assert!(![0, 4].contains(&host("host_balance: true")), "balance decides");
}

#[test]
fn a_policy_that_balances_hosts_only_refuses_the_setting() {
    for policy in ["borg", "utp-reactive"] {
        let error = leeward_placement::tasks::REGISTRY.make(policy, "host_balance: true").err();
        let error = error.expect("a setting without effect").to_string();
        assert!(error.contains("host_balance"), "{error}");
    }
}
