//! Properties of re-replication: after failures of hosts and racks, blocks have all copies again, at the allowed pace.

use std::collections::BTreeSet;

use leeward_fabric::HostId;
use leeward_placement::replicas;
use leeward_scenarios::record::{Record, Repair};
use leeward_scenarios::scenario::Scenario;
use leeward_scenarios::summary::{RepairSummary, Summary};
use proptest::prelude::*;

use crate::support::files::{BLOCK, DISK, many, name, rack};
use crate::support::runs::{run, runs};

fn scenario(name: &str, files: &[u64], blocks: &str, more: &str) -> Scenario {
    crate::support::files::scenario("repairs", name, files, blocks, more)
}

/// Returns the largest number of repairs for which one host sent at one time.
fn most_streams(record: &Record) -> usize {
    let end = |repair: &Repair| repair.finished.or(repair.abandoned).unwrap_or(f64::INFINITY);
    let sends = |at: f64, host: HostId| {
        let active = record.repairs.iter().filter(|other| other.started <= at && at < end(other));
        active.filter(|other| other.from.contains(&host)).count()
    };
    let starts =
        record.repairs.iter().flat_map(|repair| repair.from.iter().map(|&host| (repair.started, host)));
    starts.map(|(at, host)| sends(at, host)).max().unwrap_or(0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn blocks_on_dead_hosts_get_all_copies_again(
        files in prop::collection::vec(1u64..100 << 20, 1..20),
        (blocks, data, copies) in prop::sample::select(vec![
            ("replicas: 3", 0, 3), ("replicas: 2", 0, 2), ("coding: 3+2", 3, 5),
        ]),
        // With its default threshold, `sinbad` places these small blocks as `uniform` does.
        policy in prop::sample::select(
            replicas::REGISTRY.names().chain(["sinbad:threshold=1MB", "sinbad:threshold=1MB:interval=2s"])
                .collect::<Vec<_>>()
        ),
        (streams, rate) in (1usize..4, prop::sample::select(vec!["", ", rate: 80Mbps"])),
        source in prop::sample::select(vec!["drawn", "fastest"]),
        faults in prop::sample::select(vec!["", "faults: {failures: 0.5}\n"]),
        told in any::<bool>(),
        events in prop::sample::select(vec![
            "{at: 40s, host: r1h1, state: down, told: TOLD}",
            "{at: 40s, rack: r2, state: down, told: TOLD}",
            "{at: 40s, rack: r2, state: down, told: TOLD}, {at: 90s, rack: r2, state: up, told: TOLD}",
            "{at: 40s, host: r1h1, state: down, told: TOLD}, {at: 55s, host: r3h0, state: down, told: TOLD}",
        ]),
    ) {
        let more = format!(
            "repair: {{after: 10s, every: 1s, streams: {streams}, source: {source}{rate}}}\nhorizon: 10min\n\
                {faults}events: [{}]\n",
            events.replace("TOLD", &told.to_string())
        );
        let scenario = scenario("all", &files, blocks, &more);
        let record = run(&scenario, policy);
        let down: BTreeSet<HostId> = if events.contains("up") {
            BTreeSet::new()
        } else {
            let hosts = scenario.cluster.fabric.all_hosts();
            let failed = |host: &HostId| {
                let name = scenario.cluster.fabric.host_name(*host);
                events.contains(&format!("host: {name},")) || events.contains(&format!("rack: r{},", rack(*host)))
            };
            hosts.filter(failed).collect()
        };
        let (mut stored, mut without_holders) = (0, 0);
        for block in record.blocks.iter().filter(|block| block.finished.is_some() && block.deleted.is_none()) {
            let hosts: BTreeSet<HostId> = block.copies.iter().copied().collect();
            prop_assert_eq!(hosts.len(), copies, "copies on different hosts: {:?}", block);
            if hosts.difference(&down).count() < data.max(1) as usize {
                without_holders += 1;
            } else {
                prop_assert!(hosts.is_disjoint(&down), "a copy on a dead host: {block:?}");
            }
            let racks: BTreeSet<u32> = hosts.iter().map(|&host| rack(host)).collect();
            prop_assert!(racks.len() > 1, "all copies in one rack: {block:?}");
            let piece = if data == 0 { block.bytes.0 } else { block.bytes.0.div_ceil(data) };
            stored += piece * copies as u64;
        }
        prop_assert_eq!(record.unrepaired, Some(without_holders));
        prop_assert_eq!(record.hosts.iter().map(|host| host.bytes.0).sum::<u64>(), stored);
        prop_assert!(most_streams(&record) <= streams);
        for repair in &record.repairs {
            // Ten seconds after the failures at 40 s and, of the second host, at 55 s.
            let is_second = |host: &HostId| events.contains("55s") && name(*host) == "r3h0";
            let loss = if repair.missing.iter().all(is_second) { 65.0 } else { 50.0 };
            prop_assert!((repair.lost - loss).abs() < 1e-6, "{repair:?}, lost at {loss} s");
            prop_assert!(repair.started >= repair.lost, "{repair:?}");
            if let Some(deleted) = record.blocks[repair.block as usize].deleted {
                let ended = repair.finished.or(repair.abandoned).unwrap_or(f64::INFINITY);
                prop_assert!(repair.started <= deleted && ended <= deleted, "{repair:?}, deleted at {deleted} s");
            }
            prop_assert_eq!(repair.from.len(), data.max(1) as usize);
            prop_assert_eq!(repair.missing.len(), repair.to.len());
            prop_assert!(repair.finished.is_some() != repair.abandoned.is_some(), "ended once: {repair:?}");
            let Some(seconds) = repair.transfer_time() else { continue };
            let fastest = if rate.is_empty() { DISK } else { 10e6 };
            let least = repair.bytes.0 as f64 / fastest;
            prop_assert!(seconds >= least * (1.0 - 1e-9), "{seconds} s, at least {least} s: {repair:?}");
        }
    }
}

const RACK_FAILS: &str = "horizon: 10min\nevents: [{at: 60s, rack: r2, state: down}]\n";

#[test]
fn repairs_load_the_links_that_they_cross() {
    let scenario = scenario("links", &many(), "", &format!("repair: {{after: 10s}}\n{RACK_FAILS}"));
    let record = run(&scenario, "uniform");
    let crossing = |from: HostId, to: HostId| if rack(from) == rack(to) { 0.0 } else { BLOCK as f64 * 8.0 };
    let chain = |hosts: &[HostId]| hosts.windows(2).map(|pair| crossing(pair[0], pair[1])).sum::<f64>();
    let repaired: f64 =
        record.repairs.iter().map(|repair| chain(&[&repair.from[..], &repair.to[..]].concat())).sum();
    assert!(record.repairs.len() > 5 && record.repairs.iter().all(|repair| repair.finished.is_some()));
    let written: f64 = run(&scenario_without("without-load"), "uniform")
        .blocks
        .iter()
        .map(|block| chain(&block.copies))
        .sum();
    let fabric = &scenario.cluster.fabric;
    let into = |resource| fabric.all_racks().any(|rack| fabric.into_domain(rack) == Some(resource));
    let carried: f64 =
        record.links.iter().filter(|link| into(link.resource)).map(|link| link.load * 10.0).sum();
    let sent = written + repaired;
    assert!((carried / sent - 1.0).abs() < 1e-9, "{carried} bits carried, {sent} sent");
}

/// The scenario without failures, in a folder of this name: tests run at the same time.
fn scenario_without(name: &str) -> Scenario {
    scenario(name, &many(), "", "horizon: 10min\n")
}

#[test]
fn without_the_setting_nothing_is_repaired() {
    let record = run(&scenario("off", &many(), "", RACK_FAILS), "uniform");
    assert_eq!((record.repairs.len(), record.unrepaired), (0, None));
    assert_eq!(record.blocks, run(&scenario_without("without-off"), "uniform").blocks);
    assert!(RepairSummary::of(&record).is_none());
}

#[test]
fn a_host_that_is_up_again_in_time_needs_no_repair() {
    let events = "repair: {after: 30s}\nhorizon: 5min\nevents: [{at: 60s, rack: r2, state: down}, \
        {at: 80s, rack: r2, state: up}]\n";
    let record = run(&scenario("in-time", &many(), "", events), "uniform");
    assert_eq!((record.repairs.len(), record.unrepaired), (0, Some(0)));
}

#[test]
fn fewer_streams_and_lower_rates_repair_later() {
    // Each holder has several blocks to send, and sends one in a round, or four.
    let files = vec![4 * BLOCK; 40];
    let seconds = |settings: &str| {
        let more = format!("repair: {{after: 10s, {settings}}}\n{RACK_FAILS}");
        let scenario = scenario("pace", &files, "", &more);
        let record = run(&scenario, "uniform");
        let summary = Summary::of(&record, &scenario.cluster.fabric, 0.75, 0.0).repairs.expect("a repair");
        assert_eq!((summary.unrepaired, summary.abandoned), (0, 0));
        assert_eq!(
            summary.bytes,
            record.repairs.iter().map(|one| one.bytes.0 * one.to.len() as u64).sum::<u64>()
        );
        summary.time_s.max
    };
    let (quick, one, slow) =
        (seconds("streams: 4"), seconds("streams: 1"), seconds("streams: 1, rate: 4Mbps"));
    assert!(quick < one && one * 2.0 < slow, "{quick} s, {one} s, {slow} s");
}

#[test]
fn a_block_without_a_holder_waits_until_one_is_up() {
    let whole = run(&scenario_without("without-lost"), "uniform");
    let events: String = whole.blocks[0].copies.iter().fold(String::new(), |events, host| {
        events + &format!("{{at: 60s, host: {}, state: down}}, ", name(*host))
    });
    let last = whole.blocks[0].copies[2];
    let up = format!("{{at: 200s, host: {}, state: up}}", name(last));
    let more = |up: &str| format!("repair: {{after: 10s}}\nhorizon: 10min\nevents: [{events}{up}]\n");
    let lost = run(&scenario("lost", &many(), "", &more("")), "uniform");
    assert_eq!(lost.unrepaired, Some(1), "the block with three dead holders");
    let found = run(&scenario("found", &many(), "", &more(&up)), "uniform");
    assert_eq!(found.unrepaired, Some(0));
    let repair = found.repairs.iter().find(|repair| repair.block == 0).expect("a repair of the block");
    assert_eq!((&*repair.from, repair.to.len()), (&[last][..], 2));
    assert!(repair.started >= 200.0);
}

#[test]
fn repairs_are_bit_identical_with_and_without_parallel_runs() {
    let more = format!("repair: {{after: 10s, source: drawn}}\ntelemetry: {{noise: 0.2}}\n{RACK_FAILS}");
    let scenario = scenario("repeats", &many(), "", &more);
    let (alone, together) =
        (runs(&scenario, &["uniform", "leeward"], 1), runs(&scenario, &["uniform", "leeward"], 2));
    for (a, b) in alone.iter().zip(&together) {
        assert!(!a.record.repairs.is_empty());
        assert_eq!(a.record, b.record);
    }
}
