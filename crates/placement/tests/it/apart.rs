//! Tasks that stay apart, and labels of hosts, under every policy for tasks.

use std::collections::BTreeSet;

use crate::support::World;
use crate::support::every::check_policies;
use leeward_fabric::{Bytes, Cpus, DomainId, HostId};
use leeward_moves::Stays;
use leeward_placement::tasks::{self, AppRequest, Task, Transfer};
use leeward_placement::{Apart, ApartGroup, Constraint, Constraints, JobId, LabelValues, Pool, Refusal};
use leeward_testing::clusters::cluster;
use proptest::prelude::*;

const CLUSTER: &str = "{racks: 4, hosts_per_rack: 3, nic: 1Gbps, oversubscription: 2, cpus: 8}";

fn app(count: usize, transfers: bool, constraints: Constraints) -> AppRequest {
    let task = Task { cpus: Cpus(1000), ..Task::default() };
    let ring = (0..count as u32).filter(|_| transfers && count > 1);
    let transfer =
        |at: u32| Transfer { from: at, to: (at + 1) % count as u32, bytes: Bytes(1 << 20), phase: 0 };
    AppRequest {
        id: 5,
        job: JobId(1),
        tasks: vec![task; count],
        transfers: ring.map(transfer).collect(),
        constraints,
        ..AppRequest::default()
    }
}

fn world() -> World {
    let mut world = World::new(CLUSTER);
    world.report(|_| 0.1);
    world
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// No two tasks share a host or a rack. If there are fewer places than tasks, the request is refused.
    #[test]
    fn tasks_are_apart(count in 2_usize..6, transfers in any::<bool>(), racks in any::<bool>()) {
        let world = world();
        let apart = Some(if racks { Apart::Rack } else { Apart::Host });
        let request = app(count, transfers, Constraints { apart, ..Constraints::default() });
        for registration in tasks::REGISTRY {
            // The program of the exact policy grows fast.
            if registration.name == "choreo-exact" && count > 3 {
                continue;
            }
            match world.assign(registration.name, "", &request) {
                Ok(hosts) => {
                    let place = |&host: &HostId| if racks { world.fabric.rack_of(host).0 } else { host.0 };
                    let places: BTreeSet<u32> = hosts.iter().map(place).collect();
                    prop_assert_eq!(places.len(), count, "{}: {:?}", registration.name, hosts);
                }
                Err(refusal) => {
                    prop_assert!(racks && count > 4, "{}: {}", registration.name, refusal);
                }
            }
        }
    }
}

/// True if the hosts have room for these tasks of a processor, and the groups of the request are apart.
fn obeys(world: &World, request: &AppRequest, hosts: &[HostId]) -> bool {
    let tasks_on = |host: HostId| hosts.iter().filter(|&&at| at == host).count();
    let has_room = hosts.iter().all(|&host| tasks_on(host) <= 2);
    let is_apart = |group: &ApartGroup| {
        let place = |&task: &u32| {
            let host = hosts[task as usize];
            if group.level == Apart::Rack { world.fabric.rack_of(host).0 } else { host.0 }
        };
        group.tasks.iter().map(place).collect::<BTreeSet<u32>>().len() == group.tasks.len()
    };
    has_room && request.constraints.apart_groups.iter().all(is_apart)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Every policy keeps groups apart, and the exact policy finds the best placement that does.
    #[test]
    fn groups_are_apart_under_every_policy(
        count in 2_usize..5,
        transfers in prop::collection::btree_map((0_u32..4, 0_u32..4), 1_u64..100, 0..5),
        groups in prop::collection::vec((prop::collection::btree_set(0_u32..4, 2..4), any::<bool>()), 1..3),
    ) {
        let mut world = World::new("{racks: 2, hosts_per_rack: 2, nic: 1Gbps, oversubscription: 2, cpus: 2}");
        world.report(|_| 0.1);
        let is_task = |&task: &u32| (task as usize) < count;
        let group = |(tasks, racks): (BTreeSet<u32>, bool)| ApartGroup {
            tasks: tasks.into_iter().filter(is_task).collect(),
            level: if racks { Apart::Rack } else { Apart::Host },
        };
        let apart_groups = groups.into_iter().map(group).collect();
        let mut request = app(count, false, Constraints { apart_groups, ..Constraints::default() });
        let pairs = transfers.into_iter().filter(|((from, to), _)| from != to && is_task(from) && is_task(to));
        request.transfers =
            pairs.map(|((from, to), mb)| Transfer { from, to, bytes: Bytes(mb * 1_000_000), phase: 0 }).collect();
        check_policies(&world, &request, |hosts| obeys(&world, &request, hosts))?;
    }
}

#[test]
fn hosts_and_racks_of_other_tasks_are_avoided_with_the_reason() {
    let world = world();
    let constraints = Constraints {
        occupied_hosts: vec![HostId(0)],
        occupied_racks: [1, 2, 3].map(DomainId).to_vec(),
        avoids_jobs: true,
        ..Constraints::default()
    };
    assert_eq!(Stays::bound(&constraints), Some(Stays::Apart), "such a task does not move");
    for policy in ["random", "choreo", "round-robin", "minimum-machines"] {
        let hosts =
            world.assign(policy, "", &app(1, false, constraints.clone())).expect("two hosts are left");
        assert!([1, 2].contains(&hosts[0].0), "{policy}: {hosts:?}");
    }
    let all = Constraints { occupied_racks: (0..4).map(DomainId).collect(), ..Constraints::default() };
    let refusal = world.assign("random", "", &app(1, false, all)).expect_err("no host is left");
    let expected = Refusal::NoHost {
        task: 0,
        alone: true,
        far_from: None,
        by_constraint: vec![(Constraint::Apart, 12)],
    };
    assert_eq!(refusal, expected);
    assert!(refusal.to_string().ends_with("12 hosts (a task from which it must stay apart is there)"));
}

#[test]
fn the_pool_knows_the_hosts_of_a_job() {
    let mut pool = Pool::new(cluster(CLUSTER).fabric);
    for host in [4, 1, 4] {
        pool.occupy(HostId(host), JobId(7), Cpus(1), Bytes(1));
    }
    assert_eq!(pool.hosts_of(JobId(7)), [(HostId(1), 1), (HostId(4), 2)]);
    assert_eq!(pool.of_job(JobId(7)).hosts_of(JobId(7)).len(), 2);
    pool.vacate(HostId(4), JobId(7), Cpus(1), Bytes(1));
    pool.vacate(HostId(1), JobId(7), Cpus(1), Bytes(1));
    assert_eq!(pool.hosts_of(JobId(7)), [(HostId(4), 1)]);
    assert_eq!(pool.racks_of(JobId(7)), [(DomainId(1), 1)]);
    pool.vacate(HostId(4), JobId(7), Cpus(1), Bytes(1));
    assert_eq!(pool.hosts_of(JobId(7)), []);
}

#[test]
fn labels_require_one_of_their_values() {
    let text = "racks: [{labels: {zone: a, gpu: 'no'}}, {labels: {zone: b}}, {labels: {zone: c}, hosts: \
                [{name: x, labels: {gpu: v100, zone: d}}, {name: y}]}]\nhosts_per_rack: 2\nnic: 1Gbps\noversubscription: 1\n";
    let fabric = cluster(text).fabric;
    let pool = Pool::new(fabric.clone());
    let allowed = |labels: &[(&str, &[&str])]| -> Result<Vec<&str>, String> {
        let texts = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect::<Vec<_>>();
        let labels: LabelValues =
            labels.iter().map(|&(key, values)| (key.to_owned(), texts(values))).collect();
        let mut constraints = Constraints::default();
        constraints.require_labels(&fabric, &labels).map_err(|error| error.to_string())?;
        let request = app(1, false, constraints);
        let fits = |&host: &HostId| tasks::still_fits(&pool, &request, &[host]);
        Ok(fabric.all_hosts().filter(fits).map(|host| fabric.host_name(host)).collect())
    };
    assert_eq!(allowed(&[("zone", &["a"])]), Ok(vec!["r0h0", "r0h1"]));
    assert_eq!(allowed(&[("zone", &["b", "c", "nowhere"])]), Ok(vec!["r1h0", "r1h1", "y"]));
    // The label of a host replaces that of its rack.
    assert_eq!(allowed(&[("zone", &["d"]), ("gpu", &["v100"])]), Ok(vec!["x"]));
    assert_eq!(allowed(&[("zone", &["a"]), ("gpu", &["v100"])]), Ok(vec![]));
    let error = allowed(&[("zone", &["nowhere"])]).expect_err("no host has it");
    assert!(error.contains("labels.zone") && error.contains("no host has the label `zone`"), "{error}");
}
