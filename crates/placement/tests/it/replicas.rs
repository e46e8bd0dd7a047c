//! Documented behaviour of replica policies, case by case.

use crate::support::{Answer, World, request};
use leeward_fabric::{Bytes, DomainId, HostId, Nanos, ResourceKind};
use leeward_placement::replicas::{self, JobLeft, Layout, ReplicaRequest};
use leeward_placement::{Candidate, Constraints, Limit, Refusal};
use leeward_testing::clusters::RACKS_WITH_SMALL_DISKS as SMALL;

#[test]
fn uniform_draws_every_remote_host_equally_often() {
    let world = World::new("racks: 5\nhosts_per_rack: 4\nnic: 1Gbps\noversubscription: 2\n");
    let mut second = [0u32; 20];
    for id in 0..16_000 {
        let copies = world.place_one("uniform", "", &request(id, 1)).expect("all is open").choice;
        assert_eq!(copies[0], HostId(1));
        assert_eq!(world.fabric.rack_of(copies[1]), world.fabric.rack_of(copies[2]));
        second[copies[1].index()] += 1;
    }
    assert!(second[..4].iter().all(|&n| n == 0));
    // 16 hosts share 16,000 copies: 1,000 each, standard deviation 31.
    assert!(second[4..].iter().all(|&n| (845..1155).contains(&n)), "{second:?}");
}

#[test]
fn a_full_cluster_is_refused_with_the_reason() {
    let mut world = World::new(SMALL);
    world.report(|_| 0.0);
    for host in world.fabric.clone().all_hosts() {
        world.pool.set_stored(host, Bytes(1 << 30));
    }
    let refusal = world.place_one("uniform", "", &request(1, 0)).unwrap_err();
    assert_eq!(refusal.to_string(), "no candidate may take it: 24 hosts (the block does not fit)");
}

#[test]
fn unknown_policies_and_settings_are_named() {
    let make = |name, settings| replicas::REGISTRY.make(name, settings).err().expect("an error").to_string();
    assert_eq!(
        make("best", ""),
        "unknown policy `best` for replicas; there are: uniform, sinbad, sinbad-file, ccp, rehdfs, leeward"
    );
    assert!(!make("a\nb", "").contains('\n'), "an error is one line for any policy name");
    let field = make("sinbad", "remote_rack: 2");
    assert!(field.starts_with("settings of sinbad:1:1: remote_rack: unknown field"), "{field}");
    let unit = make("sinbad", "interval: 10");
    assert!(unit.starts_with("settings of sinbad:1:11: interval: `10`: the unit is missing"), "{unit}");
}

#[test]
fn sinbad_file_serves_the_file_with_the_least_remaining_first() {
    let mut world = World::new(SMALL);
    // One rack is far better than the others; the first served request gets it.
    let best = world.fabric.into_domain(DomainId(4)).expect("a tree");
    world.report(|r| if r == best { 0.0 } else { 0.9 });
    let batch: Vec<ReplicaRequest> = [9, 2, 5]
        .iter()
        .zip(0..)
        .map(|(&left, id)| ReplicaRequest { blocks_left: left, ..request(id, 0) })
        .collect();
    let rack = |answer: &Answer| world.fabric.rack_of(answer.as_ref().expect("all is open").choice[1]);
    let by_file = world.place("sinbad-file", "", &batch);
    assert_eq!(rack(&by_file[1]), DomainId(4), "two blocks left");
    let by_arrival = world.place("sinbad", "", &batch);
    assert_eq!(rack(&by_arrival[0]), DomainId(4));
    assert_ne!(rack(&by_file[0]), DomainId(4));
    let waits =
        |name, settings| replicas::REGISTRY.make(name, settings).expect("a policy").batching_delay(&batch[0]);
    assert_eq!((waits("sinbad-file", ""), waits("sinbad", "")), (Nanos::SECOND, Nanos(0)));
}

/// Requests with blocks left, and jobs with the blocks left of their longest writers.
fn batch(rows: &[(u64, Option<(u64, u64)>)]) -> Vec<ReplicaRequest> {
    let mut requests = Vec::new();
    for (&(blocks_left, job), id) in rows.iter().zip(0..) {
        let job = job.map(|(job, blocks)| JobLeft { job, blocks });
        requests.push(ReplicaRequest { blocks_left, job, ..request(id, 0) });
    }
    requests
}

#[test]
fn with_makespan_the_longest_writer_of_the_shortest_job_is_served_first() {
    let mut world = World::new(SMALL);
    let best = world.fabric.into_domain(DomainId(4)).expect("a tree");
    world.report(|r| if r == best { 0.0 } else { 0.9 });
    // Two jobs: writers with 9 and 2 blocks left, and writers with 5 and 4; a writer of no job has 6.
    let batch =
        batch(&[(9, Some((0, 9))), (2, Some((0, 9))), (5, Some((1, 5))), (4, Some((1, 5))), (6, None)]);
    let first = |settings: &str, batch: &[ReplicaRequest]| {
        let answers = world.place("sinbad-file", settings, batch);
        let rack = |answer: &Answer| world.fabric.rack_of(answer.as_ref().expect("all is open").choice[1]);
        answers.iter().position(|answer| rack(answer) == DomainId(4)).expect("the best rack is taken")
    };
    assert_eq!(first("", &batch), 1, "two blocks left");
    assert_eq!(first("makespan: true", &batch), 2, "the longest writer of the shorter job");
    let without_jobs: Vec<ReplicaRequest> =
        batch.iter().map(|request| ReplicaRequest { job: None, ..request.clone() }).collect();
    assert_eq!(first("makespan: true", &without_jobs), 1, "without jobs, files are ordered");
    let refused = replicas::REGISTRY.make("sinbad", "makespan: true").err().expect("no order in sinbad");
    assert!(refused.to_string().contains("makespan: `sinbad` serves blocks as they came"), "{refused}");
    let refused = replicas::REGISTRY.make("sinbad-file", "interval: 0s\nmakespan: true");
    let refused = refused.err().expect("nothing waits").to_string();
    assert!(refused.contains("makespan: nothing waits with `interval: 0s`"), "{refused}");
}

#[test]
fn with_makespan_jobs_are_served_whole() {
    let mut world = World::new(SMALL);
    let best = world.fabric.into_domain(DomainId(4)).expect("a tree");
    world.report(|r| if r == best { 0.0 } else { 0.9 });
    // The block that is served first takes the best rack from the others.
    let first = |rows: &[(u64, Option<(u64, u64)>)]| {
        let answers = world.place("sinbad-file", "makespan: true", &batch(rows));
        let rack = |answer: &Answer| world.fabric.rack_of(answer.as_ref().expect("all is open").choice[1]);
        answers.iter().position(|answer| rack(answer) == DomainId(4)).expect("the best rack is taken")
    };
    // Without the number of the job, the longest writers of both jobs would come first.
    let two_jobs = [(1, Some((7, 5))), (4, Some((8, 5))), (5, Some((8, 5)))];
    assert_eq!(first(&two_jobs), 0, "the first of the equal jobs, though its longest writer does not wait");
    // Its longest writer went from 5 to 4 blocks between the requests of job 7.
    let between = [(1, Some((7, 4))), (5, Some((7, 5))), (5, Some((8, 5)))];
    assert_eq!(first(&between), 1, "the longest writer of the whole job");
}

/// Six racks with the same disks: two with half the uplink, two with the average, two with more.
const UPLINKS: &str = "nic: 1Gbps\noversubscription: 2\nhosts_per_rack: 4\nracks:\n\
    - {link: 1Gbps}\n- {link: 1Gbps}\n- {link: 2Gbps}\n- {link: 2Gbps}\n- {link: 3Gbps}\n- {link: 3Gbps}\n\
    devices: [{read: 50MB/s, write: 50MB/s, capacity: 100GiB}]\n";

#[test]
fn ccp_prefers_racks_with_much_uplink_per_stored_byte() {
    let world = World::new(UPLINKS);
    let mut chosen = [0; 6];
    for id in 0..600 {
        let copies = world.place_one("ccp", "", &request(id, 0)).expect("all is open").choice;
        chosen[world.fabric.rack_of(copies[1]).index()] += 1;
    }
    // A sample of 16 of 24 hosts misses both racks once in 650 times.
    assert!(chosen[..4].iter().sum::<i32>() < 8, "{chosen:?}");
    // Two racks share 600 copies: 300 each, standard deviation 12.
    assert!((240..360).contains(&chosen[4]), "{chosen:?}");
    // All uplinks exceed this guideline, so they are equal.
    let generous: Vec<_> = (0..600)
        .map(|id| {
            world.place_one("ccp", "uplink_per_tb: 1Mbps", &request(id, 0)).expect("all is open").choice[1]
        })
        .collect();
    assert!((1..6).all(|rack| generous.iter().any(|&host| world.fabric.rack_of(host).0 == rack)));
}

#[test]
fn ccp_avoids_a_rack_fuller_than_the_others_by_more_than_its_bound() {
    let mut world = World::new(UPLINKS);
    for host in 16..24 {
        world.pool.set_stored(HostId(host), Bytes(40 << 30));
    }
    // The average is 13 %, the racks with the most uplink are at 40 %.
    let rack = |settings| {
        let copies = world.place_one("ccp", settings, &request(1, 0)).expect("all is open").choice;
        world.fabric.rack_of(copies[1]).0
    };
    assert!((2..4).contains(&rack("balance: 0.1")), "{}", rack("balance: 0.1"));
    assert!((4..6).contains(&rack("balance: 0.5")));
}

#[test]
fn ccp_rejects_a_cluster_without_device_capacities() {
    let world = World::new("racks: 6\nhosts_per_rack: 4\nnic: 1Gbps\noversubscription: 2\n");
    assert_eq!(world.place_one("ccp", "", &request(1, 0)).unwrap_err(), Refusal::NoStorage);
}

#[test]
fn rehdfs_goes_from_rack_i_to_rack_i_plus_k_with_k_on_a_schedule() {
    let world = World::new(SMALL);
    let policy = replicas::REGISTRY.make("rehdfs", "{offsets: [1, 3], period: 10s}").expect("right settings");
    let racks = |seconds: u64, writer: u32| {
        let copies = world.place_with(&*policy, Nanos(seconds * 1_000_000_000), &request(7, writer));
        copies
            .expect("all is open")
            .choice
            .iter()
            .map(|&host| world.fabric.rack_of(host).0)
            .collect::<Vec<_>>()
    };
    assert_eq!(racks(1, 0), [0, 1, 1]);
    assert_eq!(racks(12, 0), [0, 3, 3]);
    assert_eq!(racks(25, 23), [5, 0, 0], "the ring closes");
    assert!(replicas::REGISTRY.make("rehdfs", "offsets: []").is_err());
    assert!(replicas::REGISTRY.make("rehdfs", "period: 0s").is_err());
}

#[test]
fn leeward_considers_every_bottleneck_of_the_chain() {
    let mut world = World::new(SMALL);
    let fabric = world.fabric.clone();
    let idle = |rack: u32| fabric.into_domain(DomainId(rack)).expect("a tree");
    // Only the downlink of rack 2 has room, but the disks of its hosts 8 and 9 are busy.
    let disk = |host: u32| fabric.device(HostId(host), 0).expect("one disk each");
    let kind = |r| fabric.kind(r);
    world.report(|r| match r {
        r if r == idle(2) => 0.0,
        r if r == disk(8) || r == disk(9) || kind(r) == ResourceKind::RackDownlink => 0.95,
        _ => 0.1,
    });
    let decision = world.place_one("leeward", "", &request(1, 0)).expect("all is open");
    let mut remote = decision.choice[1..].to_vec();
    remote.sort();
    assert_eq!(remote, [HostId(10), HostId(11)]);
}

#[test]
fn leeward_skips_an_idle_rack_whose_disks_are_all_busy() {
    let mut world = World::new(SMALL);
    let fabric = world.fabric.clone();
    let into = |rack: u32| fabric.into_domain(DomainId(rack));
    // Rack 2 is idle except for its disks. Rack 4 has less left on its link and more on its disks. The others are worse
    // at both.
    world.report(|r| match (fabric.kind(r), fabric.host_of(r).map(|host| fabric.rack_of(host).0)) {
        (ResourceKind::Device, Some(2)) => 0.9,
        (ResourceKind::Device, Some(4)) => 0.0,
        (ResourceKind::Device, _) => 0.95,
        (ResourceKind::RackDownlink, _) if Some(r) == into(2) => 0.0,
        (ResourceKind::RackDownlink, _) if Some(r) == into(4) => 0.7,
        (ResourceKind::RackDownlink, _) => 0.8,
        _ => 0.0,
    });
    for id in 0..50 {
        let decision = world.place_one("leeward", "", &request(id, 0)).expect("all is open");
        assert!(decision.choice[1..].iter().all(|&host| fabric.rack_of(host) == DomainId(4)));
        // The bottleneck of rack 2 is one of its disks, at a tenth of its rate.
        let rack = |c: &&leeward_placement::Considered| c.candidate == Candidate::Domain(DomainId(2));
        let considered = decision.why.iter().find(rack).expect("every rack is explained");
        let Some(Limit::Resource(limit)) = considered.limit else { panic!("{considered:?}") };
        assert_eq!(fabric.host_of(limit).map(|host| fabric.rack_of(host)), Some(DomainId(2)));
        let value = considered.value.expect("a known load").0;
        assert!((39_000_000..=41_000_000).contains(&value), "a tenth of 400 Mb/s: {value}");
    }
}

#[test]
fn leeward_counts_the_links_out_of_the_previous_copy() {
    // Two pods of three racks; pod 1 holds the second copy, and its uplink is busy.
    let pods = "racks: 6\nhosts_per_rack: 4\npods: 2\nnic: 1Gbps\noversubscription: 1\npod_oversubscription: 1\n\
        devices: [{read: 50MB/s, write: 50MB/s}]\n";
    let mut world = World::new(pods);
    let fabric = world.fabric.clone();
    let pods: Vec<DomainId> = fabric.children(None).collect();
    let (best, out) = (fabric.into_domain(DomainId(4)), fabric.out_of_domain(pods[1]));
    let next = fabric.into_domain(DomainId(1));
    world.report(|r| match Some(r) {
        link if link == best => 0.0,
        link if link == out => 0.99,
        link if link == next => 0.86,
        _ if fabric.kind(r) == ResourceKind::RackDownlink => 0.88,
        _ => 0.0,
    });
    let racks = |layout| {
        let request = ReplicaRequest { layout, ..request(1, 0) };
        let decision = world.place_one("leeward", "remote_racks: 2", &request).expect("all is open");
        decision.choice.iter().map(|&host| fabric.rack_of(host).0).collect::<Vec<_>>()
    };
    // The third copy would come out of pod 1, so it stays there, although a rack of pod 0 has more capacity left.
    let chain = racks(Layout::Chain);
    assert_eq!(chain[1], 4);
    assert!([3, 5].contains(&chain[2]), "{chain:?}");
    // A chunk comes from the writer, next to that rack.
    assert_eq!(racks(Layout::Stripe { parity: 1 })[1..], [4, 1]);
}

#[test]
fn leeward_needs_telemetry_and_extends_a_sample_without_candidates() {
    let mut world = World::new(UPLINKS);
    assert_eq!(
        world.place_one("leeward", "", &request(1, 0)).unwrap_err(),
        Refusal::NoTelemetry { newest: None }
    );
    assert!(world.place_one("leeward", "without_telemetry: default", &request(1, 0)).is_ok());
    world.report(|_| 0.1);
    for id in 0..50 {
        // Five of six racks are excluded, so the first sampled rack usually is.
        let excluded_domains = (0..6).filter(|&rack| rack != 4).map(DomainId).collect();
        let constraints = Constraints { excluded_domains, ..Constraints::default() };
        let request = ReplicaRequest { fault_domains: 0, constraints, ..request(id, 0) };
        let copies = world.place_one("leeward", "sample: 1", &request).expect("rack 4 is open").choice;
        assert!(copies.iter().all(|&host| world.fabric.rack_of(host) == DomainId(4)), "{copies:?}");
    }
}

#[test]
fn leeward_avoids_a_hot_rack_also_if_the_link_of_the_writer_is_the_bottleneck() {
    let mut world = World::new(UPLINKS);
    let fabric = world.fabric.clone();
    let (egress, hot) = (fabric.egress(HostId(0)), fabric.into_domain(DomainId(3)));
    world.report(|r| match Some(r) {
        link if link == egress => 1.0,
        link if link == hot => 0.95,
        _ => 0.1,
    });
    // The hot rack is the emptiest.
    for host in fabric.all_hosts() {
        let stored = if fabric.rack_of(host).0 == 3 { 10 } else { 20 };
        world.pool.set_stored(host, Bytes(stored << 30));
    }
    for id in 0..50 {
        let copies = world.place_one("leeward", "", &request(id, 0)).expect("all is open").choice;
        assert_ne!(fabric.rack_of(copies[1]), DomainId(3));
    }
}

#[test]
fn leeward_fills_the_emptier_of_equal_racks() {
    let mut world = World::new(UPLINKS);
    world.report(|_| 0.1);
    for host in world.fabric.clone().all_hosts() {
        let stored = if world.fabric.rack_of(host).0 == 3 { 10 } else { 20 };
        world.pool.set_stored(host, Bytes(stored << 30));
    }
    for id in 0..50 {
        let copies = world.place_one("leeward", "", &request(id, 0)).expect("all is open").choice;
        assert_eq!(world.fabric.rack_of(copies[1]), DomainId(3));
    }
}

#[test]
fn a_request_may_exclude_hosts_much_fuller_than_the_mean() {
    let mut world = World::new(UPLINKS);
    world.report(|_| 0.1);
    for host in 4..20 {
        world.pool.set_stored(HostId(host), Bytes(50 << 30));
    }
    let constraints = Constraints { max_imbalance: Some(0.1), ..Constraints::default() };
    for registration in replicas::REGISTRY {
        for id in 0..20 {
            let request = ReplicaRequest { constraints: constraints.clone(), ..request(id, 0) };
            let copies =
                world.place_one(registration.name, "", &request).expect("racks 0 and 5 are empty").choice;
            assert!(
                copies.iter().all(|host| !(4..20).contains(&host.0)),
                "{}: {copies:?}",
                registration.name
            );
        }
    }
}

#[test]
fn chunks_of_a_stripe_are_spread_as_evenly_as_racks_allow() {
    let mut world = World::new(UPLINKS);
    world.report(|_| 0.1);
    let stripe = ReplicaRequest { replicas: 9, layout: Layout::Stripe { parity: 3 }, ..request(1, 0) };
    for registration in replicas::REGISTRY {
        let decision = world.place_one(registration.name, "", &stripe).expect("24 hosts in six racks");
        let mut held = [0; 6];
        decision.choice.iter().for_each(|&host| held[world.fabric.rack_of(host).index()] += 1);
        assert!(held.iter().all(|&chunks| (1..=2).contains(&chunks)), "{}: {held:?}", registration.name);
        let lost = ReplicaRequest { fault_domains: 4, ..stripe.clone() };
        let refusal = world.place_one(registration.name, "", &lost).unwrap_err();
        assert_eq!(refusal, Refusal::TooFewCopies { replicas: 9, fault_domains: 4 }, "{}", registration.name);
    }
}
