//! Properties of every read, from scenario file to record, and effects of degraded reads.

use std::collections::BTreeSet;

use leeward_fabric::HostId;
use leeward_fabric::input::read_yaml;
use leeward_placement::replicas;
use leeward_scenarios::record::{Block, Read, Record};
use leeward_scenarios::scenario::Scenario;
use leeward_scenarios::summary::{Comparison, ReadSummary, Summary};
use leeward_testing::clusters::cluster;
use leeward_workloads::{Inputs, Source};
use proptest::prelude::*;

use crate::support::runs::{folder, run};

const CLUSTER: &str = "racks: 4\nhosts_per_rack: 4\nnic: 1Gbps\noversubscription: 4\n\
    devices: [{read: 100MB/s, write: 50MB/s}]\n";
const DISK: f64 = 100e6;

/// Creates a scenario in its own folder. From the first second on, one file of the given bytes is written every second,
/// by one host after another. `blocks` are further settings of the writes, `more` begins with further workloads.
fn scenario(name: &str, files: &[u64], blocks: &str, more: &str) -> Scenario {
    let folder = folder("reads", name);
    let line = |(at, bytes): (usize, &u64)| format!("{},{},{bytes}\n", at + 1, at * 5 % 16);
    let list: String = files.iter().enumerate().map(line).collect();
    for (file, text) in [
        ("cluster.yaml", CLUSTER.to_owned()),
        ("blocks.csv", format!("t_arrival_s,writer,size_bytes\n{list}")),
        ("rates.csv", "t_s,link,rate_bps\n0,r0:downlink,600e6\n".to_owned()),
    ] {
        std::fs::write(folder.join(file), text).expect("the folder of the test can be written to");
    }
    let text =
        format!("cluster: cluster.yaml\nworkloads:\n  - blocks: {{file: blocks.csv, {blocks}}}\n{more}");
    Scenario::from_text("scenario.yaml", &text, &folder, None).expect("the scenario of the test is valid")
}

fn summary(record: &Record, warmup: f64) -> ReadSummary {
    ReadSummary::of(record, warmup).expect("a run with reads")
}

fn block<'a>(record: &'a Record, read: &Read) -> &'a Block {
    &record.blocks[read.block as usize]
}

/// Returns the bits of a transfer that cross into a rack.
fn crossing(from: HostId, to: HostId, bytes: u64) -> f64 {
    if from.0 / 4 == to.0 / 4 { 0.0 } else { bytes as f64 * 8.0 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_read_fetches_an_existing_block_or_stripe_from_its_holders(
        files in prop::collection::vec(1u64..100 << 20, 1..20),
        (blocks, data) in prop::sample::select(vec![
            ("replicas: 3", 0), ("replicas: 1", 0), ("coding: 3+2", 3), ("coding: 1+1", 1),
        ]),
        (readers, within) in prop::sample::select(vec![
            ("all", 0..16u32), ("r2", 8..12), ("[r1h1, r1h2]", 5..7), ("[r0, r1h0, r0h3]", 0..5),
        ]),
        (size, per_second, skew) in (1u64..30 << 20, 0.5f64..20.0, 0.0f64..2.0),
        degraded in prop::sample::select(vec!["", "degraded: {after: 200ms}"]),
        events in prop::sample::select(vec![
            "",
            "events: [{at: 15s, host: r0h1, state: down}, {at: 25s, rack: r2, state: down}, \
                {at: 40s, rack: r2, state: up}, {at: 50s, host: r0h1, state: up}]",
            "events: [{at: 10s, link: \"r3:uplink\", capacity: 1Mbps, told: false}, \
                {at: 40s, link: \"r3:uplink\", capacity: 1Gbps, told: false}]",
        ]),
        // With its default threshold, `sinbad` places these small blocks as `uniform` does.
        policy in prop::sample::select(
            replicas::REGISTRY.names().chain(["sinbad:threshold=1MB"]).collect::<Vec<_>>()
        ),
    ) {
        let more = format!(
            "  - reads: {{per_second: {per_second}, size: {size}B, readers: {readers}, skew: {skew}, start: 5s, \
                duration: 55s, {degraded}}}\nhorizon: 3min\n{events}\n"
        );
        let scenario = scenario("every", &files, &format!("block: 16MiB, {blocks}"), &more);
        let record = run(&scenario, policy);
        prop_assert!(record.reads.is_sorted_by(|a, b| a.number < b.number && a.asked <= b.asked));
        let (mut least, mut most) = (0.0, 0.0);
        for read in &record.reads {
            let block = block(&record, read);
            prop_assert!(block.finished.is_some_and(|finished| finished <= read.asked));
            prop_assert!((5.0..60.0).contains(&read.asked) && within.contains(&read.reader.0));
            let piece = if data == 0 { block.bytes.0 } else { block.bytes.0.div_ceil(data as u64) };
            prop_assert_eq!(read.bytes.0, piece.min(size));
            let holders = if data == 0 { &block.copies[..] } else { &block.copies[..data] };
            prop_assert!(read.holder.is_none_or(|holder| holders.contains(&holder)));
            let others: BTreeSet<HostId> = read.chunks.iter().copied().collect();
            prop_assert!(others.iter().all(|host| block.copies.contains(host) && read.holder != Some(*host)));
            if read.is_degraded() {
                prop_assert!(!degraded.is_empty());
                prop_assert_eq!((read.chunks.len(), others.len()), (data, data));
            }
            prop_assert!(!events.is_empty() || (read.finished.is_some() && !read.lost));
            prop_assert!(!read.lost || read.finished.is_none());
            if let Some(seconds) = read.duration() {
                prop_assert!(seconds >= read.bytes.0 as f64 / DISK * (1.0 - 1e-9), "{seconds} s: {read:?}");
                let of = |from: &HostId| crossing(*from, read.reader, read.bytes.0);
                let from = read.chunks.iter().chain(read.holder.iter().filter(|_| !read.is_degraded()));
                least += from.map(of).sum::<f64>();
                prop_assert_eq!(read.fetched().0, read.bytes.0 * read.chunks.len().max(1) as u64);
            }
            most += read.wasted.0 as f64 * 8.0;
        }
        // Traffic into racks is the data written and read there, plus at most the data of abandoned
        // transfers.
        for written in &record.blocks {
            let mut hosts = written.copies.clone();
            match data {
                0 => least += hosts.windows(2).map(|pair| crossing(pair[0], pair[1], written.bytes.0)).sum::<f64>(),
                _ => hosts.drain(..).for_each(|host| {
                    least += crossing(written.writer, host, written.bytes.0.div_ceil(data as u64));
                }),
            }
        }
        let resource = |name| scenario.cluster.fabric.resource(name);
        let downlinks = ["r0:downlink", "r1:downlink", "r2:downlink", "r3:downlink"].map(resource);
        let downlinks = record.links.iter().filter(|link| downlinks.contains(&Some(link.resource)));
        let seen: f64 = downlinks.map(|link| link.load * 10.0).sum();
        let mut ends =
            record.blocks.iter().map(|block| block.finished).chain(record.reads.iter().map(|read| read.finished));
        let all_within = ends.all(|end| end.is_some_and(|end| end < 180.0));
        if all_within && record.blocks.iter().all(|block| block.retries == 0) {
            // Abandoned bytes are recorded as whole numbers.
            let (rounding, count) = (1e-6 * (least + 1.0), record.reads.len() as f64);
            prop_assert!(seen >= least - rounding, "{seen} bits seen, {least} sent");
            prop_assert!(seen <= least + most + 64.0 * count + rounding, "{seen} bits, {least} and {most} sent");
        }
    }
}

const AFTERWARDS: &str =
    "  - reads: {rate: 400Mbps, size: 4MB, start: 60s, degraded: {after: 500ms}}\nhorizon: 3min\n";

#[test]
fn all_policies_see_the_same_reads() {
    let scenario = scenario("same", &[40 << 20; 30], "coding: 3+2, block: 16MiB", AFTERWARDS);
    let [uniform, sinbad] = ["uniform", "sinbad:threshold=1MB"].map(|policy| run(&scenario, policy));
    let requests = |record: &Record| -> Vec<_> {
        let of = |read: &Read| {
            let block = block(record, read);
            (read.number, read.asked.to_bits(), read.reader, block.file, block.index, read.bytes)
        };
        record.reads.iter().map(of).collect()
    };
    // All blocks are written by then, so reads do not depend on the write speed of a policy.
    assert!(requests(&uniform) == requests(&sinbad));
    let holders = |record: &Record| -> Vec<_> { record.reads.iter().map(|read| read.holder).collect() };
    assert!(holders(&uniform) != holders(&sinbad), "the policies place differently");
    assert!(run(&scenario, "uniform") == uniform, "a run repeats to the last bit");
    // 400 Mb/s in reads of 4 MB are 12.5 per second, for two minutes: a Poisson number of mean 1500.
    let count = uniform.reads.len() as f64;
    assert!((count - 1500.0).abs() < 4.0 * 1500f64.sqrt(), "{count} reads");
    let compared = Comparison::of(&uniform, &uniform, 90.0).reads.expect("both have reads");
    let summed = summary(&uniform, 90.0);
    assert_eq!((compared.factor, compared.same, compared.count), (1.0, 1.0, summed.finished));
    assert!(summed.finished < uniform.reads.len() as u64, "reads of the warm-up are left out");
}

#[test]
fn reads_before_the_first_write_are_counted_as_skipped() {
    let more = "  - reads: {per_second: 10, size: 1MB, readers: r3}\nhorizon: 20s\nevents: [{at: 10s, rack: r3, state: down}]\n";
    let record = run(&scenario("before", &[20_000_000], "replicas: 2", more), "uniform");
    let written = record.blocks[0].finished.unwrap();
    let skipped = record.skipped_reads.unwrap();
    assert!((1.0..2.0).contains(&written) && record.reads.iter().all(|read| read.asked >= written));
    assert!((1..40).contains(&skipped.without_data) && skipped.reader_down > 50, "{skipped:?}");
    let all = record.reads.len() as u64 + skipped.without_data + skipped.reader_down;
    assert!((all as f64 - 200.0).abs() < 4.0 * 200f64.sqrt());
    let none = scenario("none", &[1], "replicas: 2", "horizon: 20s\n");
    let record = run(&none, "uniform");
    assert_eq!((record.skipped_reads, record.reads.len()), (None, 0));
    let summary = Summary::of(&record, &none.cluster.fabric, 0.75, 0.0);
    assert!(summary.reads.is_none() && Comparison::of(&record, &record, 0.0).reads.is_none());
}

#[test]
fn a_host_reads_its_own_copy_from_its_disk_alone() {
    let more = "  - reads: {per_second: 2, size: 10MB, readers: r0h0, start: 10s}\nhorizon: 5min\n";
    let record = run(&scenario("local", &[10_000_000], "replicas: 2", more), "uniform");
    let (local, remote): (Vec<&Read>, Vec<&Read>) = record.reads.iter().partition(|read| read.is_local());
    // The writer keeps a copy, and the other copy is read equally often.
    assert!(local.len() > 200 && remote.len() > 200, "{} and {}", local.len(), remote.len());
    assert!(local.iter().all(|read| read.holder == Some(HostId(0))));
    let least =
        |reads: &[&Read]| reads.iter().filter_map(|read| read.duration()).fold(f64::INFINITY, f64::min);
    assert!((least(&local) - 0.1).abs() < 1e-9, "10 MB at 100 MB/s, not {} s", least(&local));
    let crossed: f64 =
        record.links.iter().filter(|link| link.start >= 10.0).map(|link| link.load * 10.0).sum();
    let sent: f64 =
        remote.iter().map(|read| 2.0 * crossing(read.holder.unwrap(), read.reader, 10_000_000)).sum();
    assert!((crossed - sent).abs() <= 1e-6 * sent + 1.0, "{crossed} bits on racks' links, {sent} sent");
}

#[test]
fn data_of_a_failed_host_is_read_from_a_copy_or_its_stripe_if_possible() {
    let outcome = |blocks: &str, degraded: &str| {
        let more = format!(
            "  - reads: {{per_second: 20, size: 4MB, readers: [r1, r2, r3], start: 30s, {degraded}}}\nhorizon: 1min\n\
                events: [{{at: 40s, host: r0h0, state: down}}]\n"
        );
        let record = run(&scenario("fails", &[40 << 20; 8], blocks, &more), "uniform");
        let of_failed_host =
            |read: &&Read| read.asked >= 40.0 && block(&record, read).copies.contains(&HostId(0));
        assert!(record.reads.iter().filter(of_failed_host).count() > 20);
        let from_it =
            record.reads.iter().filter(of_failed_host).filter(|read| read.holder == Some(HostId(0)));
        (from_it.count() as u64, summary(&record, 0.0))
    };
    let (from_it, copies) = outcome("replicas: 2", "");
    assert_eq!((from_it, copies.lost, copies.unfinished, copies.degraded_share), (0, 0, 0, Some(0.0)));
    let (from_it, stripes) = outcome("coding: 3+2", "");
    assert!(stripes.lost >= from_it && from_it > 10 && stripes.unfinished == 0, "{from_it}: {stripes:?}");
    let (from_it, degraded) = outcome("coding: 3+2", "degraded: {after: 1h}");
    let share = degraded.degraded_share.unwrap() * degraded.finished as f64;
    assert!(degraded.lost == 0 && degraded.unfinished == 0 && share >= from_it as f64 && from_it > 10);
    assert_eq!(degraded.fetched - degraded.bytes, 2 * 4_000_000 * share.round() as u64);
    let (_, gone) = outcome("replicas: 1", "");
    assert!(gone.lost > 0 && gone.unfinished == 0, "{gone:?}");
}

/// Returns the mean utilization of the downlink of rack 0 after all writes, and the summary of reads.
fn downlink(name: &str, rates: &str, reads: &str, events: &str) -> (f64, ReadSummary) {
    let more = format!("{rates}  - reads: {{{reads}}}\nhorizon: 4min\nwarmup: 1min\n{events}");
    let scenario = scenario(name, &[60 << 20; 30], "coding: 3+2, block: 30MiB", &more);
    let record = run(&scenario, "uniform");
    let link = scenario.cluster.fabric.resource("r0:downlink").unwrap();
    let intervals =
        || record.links.iter().filter(|interval| interval.resource == link && interval.start >= 60.0);
    let mean = intervals().map(|interval| interval.utilization).sum::<f64>() / intervals().count() as f64;
    (mean, summary(&record, 60.0))
}

#[test]
fn degraded_reads_make_the_hot_rack_of_their_clients_hotter() {
    // Other traffic takes 600 of 1000 Mb/s into the rack of all readers. The readers request 300 Mb/s more, partly from
    // each other.
    let reads = "rate: 300Mbps, size: 8MB, readers: r0, start: 60s";
    let rates = "  - rates: {file: rates.csv}\n";
    let (before, patient) = downlink("patient", rates, reads, "");
    let (after, hasty) = downlink("hasty", rates, &format!("{reads}, degraded: {{after: 300ms}}"), "");
    assert!(before > 0.75 && after > before + 0.05, "utilization {before}, with degraded reads {after}");
    assert!(hasty.degraded_share > Some(0.1) && hasty.fetched > patient.fetched, "{hasty:?}");
    assert!(hasty.time_s.mean > 1.5 * patient.time_s.mean, "{:?} and {:?}", hasty.time_s, patient.time_s);
}

#[test]
fn degraded_reads_go_around_a_single_slow_host() {
    let reads = "rate: 300Mbps, size: 8MB, start: 60s";
    let slow = "events: [{at: 50s, link: \"r2h1:egress\", capacity: 20Mbps, told: false}]\n";
    let (_, patient) = downlink("slow", "", reads, slow);
    let (_, hasty) = downlink("around", "", &format!("{reads}, degraded: {{after: 1s}}"), slow);
    // 8 MB at 20 Mb/s take 3.2 s for a single read.
    assert!(patient.time_s.p99 > 3.2 && hasty.time_s.p99 < 2.5, "{:?}, {:?}", patient.time_s, hasty.time_s);
    assert!(hasty.time_s.mean < patient.time_s.mean);
    let share = hasty.degraded_share.unwrap();
    assert!((0.005..0.15).contains(&share), "about the sixteenth that the host has, not {share}");
}

#[test]
fn skewed_reads_request_the_first_file_most() {
    let share = |skew: f64| {
        let more =
            format!("  - reads: {{per_second: 20, size: 1MB, start: 60s, skew: {skew}}}\nhorizon: 3min\n");
        let record = run(&scenario("skew", &[1_000_000; 20], "replicas: 2", &more), "uniform");
        let first = record.reads.iter().filter(|read| block(&record, read).file == 0).count();
        first as f64 / record.reads.len() as f64
    };
    // Shares of the first block: 1 of 20, and 1 of 1 + 1/2 + ... + 1/20 = 3.598; about 2400 reads.
    let (even, skewed) = (share(0.0), share(1.0));
    assert!((even - 0.05).abs() < 0.018 && (skewed - 0.278).abs() < 0.037, "{even}, {skewed}");
}

#[test]
fn invalid_read_settings_are_rejected_with_the_expected_values() {
    let cluster = cluster(
        "racks: [{name: a, hosts: 2, tags: [ssd]}, {name: b, hosts: 2, tags: [b]}]\nnic: 1Gbps\noversubscription: 1\n",
    );
    let mut table = String::new();
    for settings in [
        "{rate: 1Gbps, size: 8MiB}",
        "{per_second: 2, size: 8MiB, readers: [ssd, bh1], skew: 0.9, start: 10s, duration: 20s, degraded: {after: 2s}}",
        "{rate: 0bps, size: 8MiB}",
        "{size: 8MiB}",
        "{rate: 1Gbps}",
        "{rate: 1Gbps, per_second: 1, size: 8MiB}",
        "{rate: 1Gbps, size: 0B}",
        "{rate: 1Gbps, size: 8}",
        "{rate: 10, size: 8MiB}",
        "{per_second: -1, size: 8MiB}",
        "{rate: 1Tbps, size: 1B}",
        "{per_second: 1e6, size: 1B}",
        "{rate: 1Gbps, size: 8MiB, readers: c}",
        "{rate: 1Gbps, size: 8MiB, readers: b}",
        "{rate: 1Gbps, size: 8MiB, readers: []}",
        "{rate: 1Gbps, size: 8MiB, readers: 3}",
        "{rate: 1Gbps, size: 8MiB, readers: {rack: a}}",
        "{rate: 1Gbps, size: 8MiB, skew: 5}",
        "{rate: 1Gbps, size: 8MiB, degraded: true}",
        "{rate: 1Gbps, size: 8MiB, degraded: {}}",
        "{rate: 1Gbps, size: 8MiB, degraded: {after: 0s}}",
        "{rate: 1Gbps, size: 8MiB, degraded: {after: 2}}",
        "{rate: 1Gbps, size: 8MiB, reader: a}",
    ] {
        let read = read_yaml::<Source>("settings", &format!("reads: {settings}"));
        let loaded = read.and_then(|source| source.load(&cluster, &Inputs::default(), 1, 600.0));
        let outcome = loaded.map_or_else(|error| error.to_string(), |loaded| loaded.provenance);
        table += &format!("{settings}\n    {outcome}\n");
    }
    insta::assert_snapshot!(table);
}
