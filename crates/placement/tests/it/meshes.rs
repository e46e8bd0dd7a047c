//! Task policies on meshes that state rates of pairs, rates of hosts and shared links together.

use leeward_fabric::{Bytes, Cpus, HostId};
use leeward_ledger::Scratch;
use leeward_placement::tasks::{
    self, AppRequest, Assignment, Estimate, Gain, Task, Transfer, Use, completion,
};
use leeward_placement::{Context, Decision, Explain};
use proptest::prelude::*;

use crate::support::{NOW, World};

fn decide(world: &World, policy: &str, settings: &str, app: &AppRequest) -> Decision<Assignment> {
    let policy = tasks::REGISTRY.make(policy, settings).expect("a policy of the registry");
    let mut scratch = Scratch::default();
    let view = &mut world.ledger.view(NOW, &mut scratch);
    let mut context = Context { view, pool: &world.pool, seed: 7, explain: Explain::All };
    policy.place(std::slice::from_ref(app), &mut context).remove(0).expect("enough room")
}

fn seconds(world: &World, app: &AppRequest, hosts: &[HostId], into_hosts: bool) -> f64 {
    let mut scratch = Scratch::default();
    let estimate = Estimate { into_hosts, ..Estimate::default() };
    completion(&world.ledger.view(NOW, &mut scratch), &app.transfers, hosts, estimate).seconds
}

/// An app of tasks with one processor each, and a matrix in MB.
fn app(tasks: usize, transfers: &[(u32, u32, u64)]) -> AppRequest {
    let transfer = |&(from, to, mb)| Transfer { from, to, bytes: Bytes(mb * 1_000_000), phase: 0 };
    AppRequest {
        id: 3,
        tasks: vec![Task { cpus: Cpus(1000), ..Task::default() }; tasks],
        transfers: transfers.iter().map(transfer).collect(),
        ..AppRequest::default()
    }
}

/// Shortest completion time of all placements, by trying each.
fn shortest(world: &World, app: &AppRequest, cpus: usize, into_hosts: bool) -> f64 {
    let hosts = world.fabric.host_count();
    let mut best = f64::INFINITY;
    for number in 0..hosts.pow(app.tasks.len() as u32) {
        let host = |task: usize| HostId((number / hosts.pow(task as u32) % hosts) as u32);
        let placed: Vec<HostId> = (0..app.tasks.len()).map(host).collect();
        let fits = |host: HostId| placed.iter().filter(|&&at| at == host).count() <= cpus;
        if world.fabric.all_hosts().all(fits) {
            best = best.min(seconds(world, app, &placed, into_hosts));
        }
    }
    best
}

/// Cluster file of a mesh of four hosts. A rate of 0 leaves a pair out.
fn mesh(hose: bool, cpus: usize, nics: &[(u32, u32)], pairs: &[u32], groups: &[(bool, u32, u32)]) -> String {
    let mut text = format!("shape: {}\ncpus: {cpus}\nhosts:\n", if hose { "hose" } else { "pipe" });
    for (host, (up, down)) in nics.iter().enumerate() {
        let nic = if hose { format!(", nic: {{up: {up}Mbps, down: {down}Mbps}}") } else { String::new() };
        text += &format!("  - {{name: h{host}{nic}}}\n");
    }
    text += if hose { "" } else { "pair: 90Mbps\n" };
    text += "shared_links:\n  - {name: up, rate: 60Mbps, out_of: [h0, h1]}\n";
    for (number, (out, bits, rate)) in groups.iter().enumerate() {
        let names: Vec<String> =
            (0..4).filter(|host| bits >> host & 1 == 1).map(|host| format!("h{host}")).collect();
        let key = if *out { "out_of" } else { "into" };
        text += &format!("  - {{name: s{number}, rate: {rate}Mbps, {key}: [{}]}}\n", names.join(", "));
    }
    text += "pairs:\n  - {from: h0, to: h1, rate: 500Mbps, same_machine: true}\n";
    text += "  - {from: h1, to: h0, rate: 500Mbps, same_machine: true}\n";
    for (at, rate) in pairs.iter().enumerate().filter(|(_, rate)| **rate > 0) {
        let (from, to) = (at / 4, at % 4);
        if from != to && from + to > 1 {
            text += &format!("  - {{from: h{from}, to: h{to}, rate: {rate}Mbps}}\n");
        }
    }
    text
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    #[test]
    fn a_proven_placement_is_the_best_of_all(
        hose: bool, into_hosts: bool, cpus in 1_usize..3,
        nics in prop::collection::vec((20_u32..200, 20_u32..200), 4),
        pairs in prop::collection::vec(prop_oneof![Just(0), 10_u32..150], 16),
        groups in prop::collection::vec((any::<bool>(), 1_u32..15, 20_u32..200), 0..3),
        transfers in prop::collection::vec((0_u32..4, 0_u32..4, 1_u64..100), 1..7),
    ) {
        let world = World::new(&mesh(hose, cpus, &nics, &pairs, &groups));
        let transfers: Vec<_> = transfers.into_iter().filter(|(from, to, _)| from != to).collect();
        let app = app(4, &transfers);
        let best = shortest(&world, &app, cpus, into_hosts);
        let settings = format!("into_hosts: {into_hosts}");
        let exact = decide(&world, "choreo-exact", &settings, &app);
        prop_assert_eq!(exact.basis.gaps.map(|gaps| gaps.time), Some(0.0), "small programs are solved to the end");
        let proven = seconds(&world, &app, &exact.choice, into_hosts);
        prop_assert!(proven <= best * (1.0 + 1e-6), "{proven} of {best}");
        let greedy = seconds(&world, &app, &decide(&world, "choreo", &settings, &app).choice, into_hosts);
        let ours = seconds(&world, &app, &decide(&world, "leeward", &settings, &app).choice, into_hosts);
        prop_assert!(best <= ours * (1.0 + 1e-9) && ours <= greedy * (1.0 + 1e-9), "{best} {ours} {greedy}");
    }
}

#[test]
fn a_shared_uplink_keeps_heavy_transfers_in_the_rack() {
    // Paths out of the rack of h0 and h1 are as fast as others alone, and share one uplink.
    let text = |shared: &str| {
        format!(
            "shape: hose\nnic: 60Mbps\ncpus: 1\nracks: [{{name: r0, hosts: [{{name: a}}, {{name: b}}]}}, \
             {{name: r1, hosts: [{{name: c}}, {{name: d}}]}}]\n\
             pairs: [{{from: a, to: b, rate: 40Mbps}}, {{from: b, to: a, rate: 40Mbps}}, \
             {{from: c, to: d, rate: 40Mbps}}, {{from: d, to: c, rate: 40Mbps}}]\n{shared}"
        )
    };
    let app = app(4, &[(0, 1, 20), (2, 3, 20)]);
    let blind = World::new(&text(""));
    let world = World::new(&text(
        "shared_links: [{name: up, rate: 60Mbps, out_of: [r0]}, {name: up1, rate: 60Mbps, out_of: [r1]}]\n",
    ));
    for policy in ["leeward", "choreo-exact"] {
        // Without the shared links the placement out of each rack seems best: 20 MB at 60 Mb/s.
        let alone = decide(&blind, policy, "", &app).choice;
        assert!((seconds(&blind, &app, &alone, false) - 8.0 / 3.0).abs() < 1e-9, "{policy}");
        let aware = decide(&world, policy, "", &app).choice;
        // One transfer out of each rack, so that no uplink carries two.
        assert!((seconds(&world, &app, &aware, false) - 8.0 / 3.0).abs() < 1e-9, "{policy}: {aware:?}");
        let both_out = [0, 2, 1, 3].map(HostId);
        assert!((seconds(&world, &app, &both_out, false) - 16.0 / 3.0).abs() < 1e-9);
    }
}

#[test]
fn short_and_uniform_apps_need_no_measurements() {
    let gain = |world: &World, app: &AppRequest| {
        let mut scratch = Scratch::default();
        let view = &mut world.ledger.view(NOW, &mut scratch);
        Gain::of(app, &world.pool, view, Estimate::default(), 7)
    };
    let worth = |world: &World, app: &AppRequest| {
        let best = decide(world, "leeward", "", app).choice;
        gain(world, app).expect("an app with transfers").measurements(seconds(world, app, &best, false))
    };
    // Six of eight hosts send at a tenth of the rate of the others.
    let hosts: Vec<String> = (0..8)
        .map(|host| {
            format!("{{name: h{host}, nic: {{up: {}Mbps, down: 1Gbps}}}}", if host < 2 { 100 } else { 10 })
        })
        .collect();
    let uneven = World::new(&format!("shape: hose\ncpus: 1\nhosts: [{}]\n", hosts.join(", ")));
    let even = World::new("shape: hose\ncpus: 1\nhosts: 8\nnic: 100Mbps\n");
    let (long, short) = (app(2, &[(0, 1, 1000)]), app(2, &[(0, 1, 10)]));
    assert_eq!(worth(&uneven, &long), Use::Worthwhile, "80 s instead of 800 s");
    assert_eq!(worth(&uneven, &short), Use::Short, "less than the 14 s of a measurement");
    assert_eq!(worth(&even, &long), Use::Uniform, "all hosts are equal");
    // Every task sends as much to every other one, so no placement of one task on each host is better.
    let all: Vec<_> =
        (0..8).flat_map(|i| (0..8).filter(move |&j| j != i).map(move |j| (i, j, 100))).collect();
    assert_eq!(worth(&uneven, &app(8, &all)), Use::Uniform);
    assert_eq!(gain(&even, &app(2, &[])), None);
}
