//! Properties of every run of files, from scenario file to record, on small clusters.

use leeward_fabric::{Bytes, HostId, ResourceKind};
use leeward_placement::replicas::{self, Chain, ReplicaRequest};
use leeward_placement::{Context, Decision, Policy, Refusal};
use leeward_scenarios::record::Record;
use leeward_scenarios::scenario::{PolicySpec, Scenario};
use leeward_scenarios::summary::{Comparison, Summary};
use leeward_scenarios::{RunError, Task, run_all, run_all_by};
use leeward_testing::clusters::RACKS_4X4_WITH_DISKS;
use proptest::prelude::*;

use crate::support::runs::{folder, run, runs};

const BLOCK: u64 = 256 << 20;
/// Time of a full block at the rate of a disk.
const DISK_SECONDS: f64 = BLOCK as f64 / 50e6;

/// Creates a scenario with jobs of (submission in seconds, bytes written) and additional lines in its file.
fn scenario(name: &str, jobs: &[(u32, u64)], more: &str) -> Scenario {
    let folder = folder("replicas", name);
    std::fs::write(folder.join("cluster.yaml"), RACKS_4X4_WITH_DISKS)
        .expect("the folder of the test can be written to");
    let line = |(i, (at, bytes)): (usize, &(u32, u64))| format!("job{i}\t{at}\t0\t0\t0\t{bytes}\n");
    let trace: String = jobs.iter().enumerate().map(line).collect();
    std::fs::write(folder.join("jobs.tsv"), trace).expect("the folder of the test can be written to");
    let more = if more.contains("workloads:") {
        more.to_owned()
    } else {
        format!("workloads: [{{swim: {{file: jobs.tsv}}}}]\n{more}")
    };
    let text = format!("cluster: cluster.yaml\npolicies: [uniform, sinbad]\n{more}");
    Scenario::from_text("scenario.yaml", &text, &folder, None).expect("the scenario of the test is valid")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_byte_is_written_once_and_stored_once_per_copy(
        jobs in prop::collection::vec((0u32..200, 1u64..3 << 30), 1..12),
        // One policy without telemetry, and one with it, at once and in batches.
        policy in prop::sample::select(vec![
            "uniform", "sinbad", "sinbad:remote_racks=2:interval=2s", "sinbad-file:makespan=true",
        ]),
        loss in 0.0f64..0.5, noise in 0.0f64..0.5, delay in 0u32..3,
    ) {
        let mut jobs = jobs;
        jobs.sort();
        let telemetry = format!(
            "telemetry: {{loss: {loss}, noise: {noise}, delay: {delay}s, jitter: 1s}}\nhorizon: 10min\n"
        );
        let scenario = scenario("bytes", &jobs, &telemetry);
        let record = run(&scenario, policy);
        prop_assert!(record.blocks.iter().all(|block| block.finished.is_some() && block.copies.len() == 3));
        let written: u64 = record.blocks.iter().map(|block| block.bytes.0).sum();
        prop_assert_eq!(written, jobs.iter().map(|job| job.1).sum::<u64>());
        prop_assert_eq!(record.hosts.iter().map(|host| host.bytes.0).sum::<u64>(), 3 * written);
        for block in &record.blocks {
            let seconds = block.finished.unwrap() - block.placed.unwrap();
            let least = block.bytes.0 as f64 / 50e6;
            prop_assert!(seconds >= least * (1.0 - 1e-9), "{seconds} s is faster than a disk, {least} s");
        }
        // Traffic into racks is the data written to a rack other than the writer's, once for each crossing.
        let crossed: f64 = record.blocks.iter().map(|block| {
            let racks: Vec<u32> = block.copies.iter().map(|host| host.0 / 4).collect();
            let into = racks.windows(2).filter(|pair| pair[0] != pair[1]).count();
            into as f64 * block.bytes.0 as f64 * 8.0
        }).sum();
        let downlinks = record.links.iter().filter(|link| link.resource.0 >= 32 && link.resource.0 % 2 == 1);
        let carried: f64 = downlinks.map(|link| link.load * 10.0).sum();
        let last = record.blocks.iter().filter_map(|block| block.finished).fold(0.0, f64::max);
        if last < 600.0 {
            prop_assert!((carried - crossed).abs() <= 1e-6 * crossed, "{carried} bits carried, {crossed} sent");
        }
    }
}

#[test]
fn a_run_is_bit_identical_with_and_without_parallel_runs() {
    let jobs: Vec<(u32, u64)> = (0..40).map(|i| (i * 5, (u64::from(i) + 1) << 26)).collect();
    let more = "telemetry: {loss: 0.1, noise: 0.2, jitter: 500ms}\nhorizon: 5min\n";
    let scenario = scenario("repeats", &jobs, more);
    let alone = runs(&scenario, &["uniform", "sinbad"], 1);
    let together = runs(&scenario, &["uniform", "sinbad"], 2);
    for (a, b) in alone.iter().zip(&together) {
        assert_eq!(a.record, b.record);
    }
    assert_ne!(alone[0].record.blocks, alone[1].record.blocks, "the policies place differently");
}

#[test]
fn a_lone_block_takes_the_time_of_its_disks() {
    let scenario = scenario("lone", &[(3, BLOCK)], "horizon: 1min\n");
    let record = run(&scenario, "uniform");
    let block = &record.blocks[0];
    assert_eq!((block.asked, block.placed, block.full), (3.0, Some(3.0), true));
    let seconds = block.finished.unwrap() - 3.0;
    assert!((seconds - DISK_SECONDS).abs() < 1e-9, "{seconds} s");
    assert_eq!(record.jobs[0].finished, block.finished);
}

#[test]
fn a_block_in_flight_to_a_failed_host_is_written_elsewhere() {
    let whole = run(&scenario("whole", &[(3, BLOCK)], "horizon: 1min\n"), "uniform");
    let failed_host = whole.blocks[0].copies[2];
    for announced in [true, false] {
        let event = format!(
            "horizon: 1min\nevents: [{{at: 5s, host: r{}h{}, state: down, told: {announced}}}]\n",
            failed_host.0 / 4,
            failed_host.0 % 4
        );
        let record = run(&scenario("fails", &[(3, BLOCK)], &event), "uniform");
        let block = &record.blocks[0];
        assert!(!block.copies.contains(&failed_host) && block.retries >= 1);
        assert_eq!(block.placed, Some(5.0));
        assert!((block.finished.unwrap() - 5.0 - DISK_SECONDS).abs() < 1e-9);
        assert_eq!(record.hosts[failed_host.index()].bytes, Bytes(0));
    }
}

#[test]
fn blocks_are_written_after_more_failed_hosts_than_a_short_list_has() {
    let folder = folder("replicas", "large-rack");
    let lines: String = (0..20).map(|writer| format!("5,{writer},{BLOCK}\n")).collect();
    for (file, text) in [
        ("cluster.yaml", RACKS_4X4_WITH_DISKS.replace("hosts_per_rack: 4", "hosts_per_rack: 80")),
        ("blocks.csv", format!("t_arrival_s,writer,size_bytes\n{lines}")),
    ] {
        std::fs::write(folder.join(file), text).expect("the folder of the test can be written to");
    }
    // The last reports of two of the three other racks say that they are idle.
    let text = "cluster: cluster.yaml\nworkloads: [{blocks: {file: blocks.csv}}]\nhorizon: 1min\nevents:\n  \
        - {at: 4500ms, rack: r1, state: down, told: false}\n  - {at: 4500ms, rack: r2, state: down, told: false}\n";
    let scenario = Scenario::from_text("scenario.yaml", text, &folder, None).expect("a valid scenario");
    let record = run(&scenario, "sinbad");
    assert!(record.blocks.iter().any(|block| block.retries > 64));
    for block in &record.blocks {
        assert!(block.finished.is_some() && block.copies.iter().all(|host| [0, 3].contains(&(host.0 / 80))));
    }
}

#[test]
fn a_slow_host_slows_the_blocks_that_it_holds_until_it_is_fast_again() {
    let whole = run(&scenario("fast", &[(3, BLOCK)], "horizon: 2min\n"), "uniform");
    for host in &whole.blocks[0].copies {
        let name = format!("r{}h{}", host.0 / 4, host.0 % 4);
        let seconds = |events: &str| {
            let more = format!("horizon: 2min\nevents: [{events}]\n");
            run(&scenario("slow", &[(3, BLOCK)], &more), "uniform").blocks[0].duration().unwrap()
        };
        let slow = seconds(&format!("{{at: 1s, host: {name}, slowdown: 4}}"));
        assert!((slow - 4.0 * DISK_SECONDS).abs() < 1e-6, "{slow} s");
        let (begin, end) =
            (format!("at: 1s, host: {name}, slowdown: 4"), format!("at: 7s, host: {name}, slowdown: 1"));
        let again = seconds(&format!("{{{begin}}}, {{{end}}}"));
        // In the first four seconds a quarter of a disk's rate, then the whole rate.
        assert!((again - (DISK_SECONDS + 3.0)).abs() < 1e-6, "{again} s");
    }
}

#[test]
fn a_rack_that_is_down_stalls_its_flows_until_it_is_up() {
    let workloads = "workloads:\n  - flows: {file: flows.csv}\nhorizon: 2min\n";
    let flows = "t_arrival_s,src,dst,size_bytes\n0,r0h0,r1h0,625000000\n";
    std::fs::write(folder("replicas", "stalls").join("flows.csv"), flows).unwrap();
    let events = "events:\n  - {at: 2s, rack: r1, state: down}\n  - {at: 52s, rack: r1, state: up}\n";
    let whole = run(&scenario("stalls", &[], workloads), "uniform");
    let stalled = run(&scenario("stalls", &[], &format!("{workloads}{events}")), "uniform");
    let last_busy_interval = |record: &Record| {
        let busy = record.links.iter().filter(|link| link.load > 0.0);
        busy.map(|link| link.start).fold(0.0, f64::max)
    };
    assert_eq!((whole.flows, stalled.flows), ((1, 0), (1, 0)));
    // 625 MB at 1 Gb/s take 5 s; with a stall of 50 s, 55 s.
    assert_eq!((last_busy_interval(&whole), last_busy_interval(&stalled)), (0.0, 50.0));
}

#[test]
fn an_announced_capacity_loss_is_avoided() {
    let jobs: Vec<(u32, u64)> = (0..60).map(|i| (20 + i * 4, BLOCK)).collect();
    let count = |announced: bool| {
        let event = format!(
            "horizon: 10min\nevents: [{{at: 10s, link: \"r2:downlink\", capacity: 100Mbps, told: {announced}}}]\n"
        );
        let record = run(&scenario("told", &jobs, &event), "sinbad");
        let writers_elsewhere = record.blocks.iter().filter(|block| block.writer.0 / 4 != 2);
        writers_elsewhere.filter(|block| block.copies.iter().any(|host| host.0 / 4 == 2)).count()
    };
    let (announced, unannounced) = (count(true), count(false));
    assert!(announced * 4 < unannounced, "{announced} blocks if announced, {unannounced} if not");
}

#[test]
fn without_telemetry_sinbad_places_only_if_configured_to_use_the_default() {
    let silent = scenario("silent", &[(3, BLOCK)], "telemetry: {loss: 1}\nhorizon: 30s\n");
    let refused = run(&silent, "sinbad");
    let summary = Summary::of(&refused, &silent.cluster.fabric, 0.75, 0.0);
    assert_eq!((summary.blocks, summary.blocks_unfinished), (0, 1));
    assert!(refused.blocks[0].retries > 20 && refused.blocks[0].copies.is_empty());
    let placed = run(&silent, "sinbad:without_telemetry=default");
    assert_eq!(placed.blocks[0].retries, 0);
    assert!(placed.blocks[0].finished.is_some());
}

#[test]
fn background_rates_are_seen_by_telemetry_and_avoided() {
    // Racks 1 and 2 have only a quarter of a disk's rate left; only rack 3 is free.
    let workloads = "workloads:\n  - swim: {file: jobs.tsv}\n  - rates: {file: rates.csv}\nhorizon: 5min\n";
    let rates = "t_s,link,rate_bps\n0,r1:downlink,900e6\n0,r2:downlink,900e6\n";
    std::fs::write(folder("replicas", "rates").join("rates.csv"), rates).unwrap();
    let jobs: Vec<(u32, u64)> = (0..20).map(|i| (20 + i * 8, BLOCK)).collect();
    let scenario = scenario("rates", &jobs, workloads);
    let record = run(&scenario, "sinbad");
    let from_rack_0 = record.blocks.iter().filter(|block| block.writer.0 / 4 == 0);
    let remote: Vec<HostId> = from_rack_0.map(|block| block.copies[1]).collect();
    assert!(!remote.is_empty() && remote.iter().all(|host| host.0 / 4 == 3), "{remote:?}");
    let hot = record.hotspots.iter().filter(|hotspot| hotspot.utilization > 0.89).count();
    assert_eq!(hot, 2, "both full links are hotspots from beginning to end");
    assert!(record.hotspots.iter().all(|hotspot| hotspot.end > hotspot.start));
}

#[test]
fn a_run_compared_with_itself_has_factor_1() {
    let jobs: Vec<(u32, u64)> = (0..10).map(|i| (i * 5, 3 << 27)).collect();
    let record = run(&scenario("itself", &jobs, "horizon: 2min\n"), "uniform");
    let comparison = Comparison::of(&record, &record, 0.0);
    for paired in [comparison.blocks, comparison.full_blocks, comparison.files, comparison.jobs] {
        assert_eq!((paired.factor, paired.same, paired.faster, paired.slower), (1.0, 1.0, 0.0, 0.0));
    }
    assert_eq!((comparison.blocks.count, comparison.full_blocks.count), (20, 10));
}

#[test]
fn balance_is_recorded_for_every_tier() {
    let record = run(&scenario("tiers", &[(0, BLOCK)], "horizon: 20s\n"), "uniform");
    let kinds: Vec<ResourceKind> = record.balance.iter().take(4).map(|balance| balance.kind).collect();
    use ResourceKind::{HostEgress, HostIngress, RackDownlink, RackUplink};
    assert_eq!(kinds, [HostEgress, HostIngress, RackUplink, RackDownlink]);
    // One of four downlinks carries all traffic, so the deviation over the mean is sqrt(3).
    let downlinks = &record.balance[3];
    assert!((downlinks.variation.unwrap() - 3f64.sqrt()).abs() < 1e-9, "{downlinks:?}");
}

#[test]
fn a_stopped_run_returns_the_stopped_error() {
    let scenario = scenario("stopped", &[(0, BLOCK)], "horizon: 1min\n");
    let task = Task { policy: "uniform".parse().unwrap(), seed: 1 };
    let stopped = run_all(&scenario, &[task], 1, &|_, share| share < 0.5);
    assert_eq!(stopped.err().map(|error| error.to_string()), Some("stopped".to_owned()));
}

/// A policy outside of the registry: each host has its number as its score.
struct Last;

impl Policy<ReplicaRequest> for Last {
    fn name(&self) -> &'static str {
        "last"
    }

    fn place_one(
        &self,
        request: &ReplicaRequest,
        context: &mut Context<'_, '_>,
    ) -> Result<Decision<Chain>, Refusal> {
        let scores: Vec<f64> = context.pool.fabric().all_hosts().map(|host| f64::from(host.0)).collect();
        let hosts = replicas::best_by_scores(context.pool, request, &scores, context.seed)?;
        let (now, epoch) = (context.view.now(), context.view.epoch());
        Ok(replicas::given(self.name(), request, &hosts, now, epoch, context.pool))
    }
}

#[test]
fn a_policy_of_the_caller_decides_and_its_errors_end_the_runs() {
    let scenario = scenario("caller", &[(0, BLOCK), (1, BLOCK)], "horizon: 1min\n");
    let tasks = ["uniform", "last"].map(|name| Task { policy: PolicySpec::named(name), seed: scenario.seed });
    let runs = run_all_by(&scenario, &tasks, 2, &|_, _| true, &|task| {
        let policy: Box<dyn Policy<ReplicaRequest>> = Box::new(Last);
        if task.policy.name == "last" {
            Ok(policy.into())
        } else {
            Ok(scenario.kind().policies(&task.policy)?)
        }
    });
    let runs = runs.expect("a valid scenario runs");
    assert_eq!(runs[0].record, run(&scenario, "uniform"), "a policy of the registry is not affected");
    assert_eq!(runs[1].policy.label, "last");
    for block in &runs[1].record.blocks {
        let writer = block.writer;
        let others: Vec<HostId> = (0..16).rev().map(HostId).filter(|&host| host != writer).collect();
        assert_eq!((block.copies[0], block.copies[1]), (writer, others[0]), "{block:?}");
    }
    let stopped = run_all_by(&scenario, &tasks, 1, &|_, _| true, &|_| Err(RunError::Stopped));
    assert_eq!(stopped.err(), Some(RunError::Stopped));
}

#[test]
fn bad_scenarios_name_line_and_field() {
    let folder = folder("replicas", "bad");
    std::fs::write(folder.join("cluster.yaml"), RACKS_4X4_WITH_DISKS).unwrap();
    let mut table = String::new();
    for text in [
        "",
        "workloads: []\n",
        "cluster: cluster.yaml\nworkloads: []\nhorizon: 0s\n",
        "cluster: cluster.yaml\nworkloads: []\nhorizon: 10\n",
        "cluster: cluster.yaml\nworkloads: []\nwarmup: 2h\n",
        "cluster: cluster.yaml\nworkloads: []\npolicies: [best]\n",
        "cluster: cluster.yaml\nworkloads: []\npolicies: [{sinbad: {remote_rack: 2}}]\n",
        "cluster: cluster.yaml\nworkloads: []\ntelemetry: {loss: 2}\n",
        "cluster: cluster.yaml\nworkloads: []\ntelemetry: {interval: 0s}\n",
        "cluster: cluster.yaml\nworkloads: []\nledger: {alpha: 0}\n",
        "cluster: cluster.yaml\nworkloads: []\nevents:\n  - {at: 1s, host: r9h9, state: down}\n",
        "cluster: cluster.yaml\nworkloads: []\nevents:\n  - {at: 1s, host: r0h0}\n",
        "cluster: cluster.yaml\nworkloads: []\nevents:\n  - {at: 1s, link: \"r0\", capacity: 1Gbps}\n",
        "cluster: cluster.yaml\nworkloads: []\nevents:\n  - {at: 1s, host: r0h0, slowdown: 0.5}\n",
        "cluster: cluster.yaml\nworkloads: []\nevents:\n  - {at: 1s, rack: r0, slowdown: 2}\n",
        "cluster: cluster.yaml\nworkloads: [{cell: {}}]\nevents:\n  - {at: 1s, host: r0h0, slowdown: 2}\n",
        "cluster: cluster.yaml\nworkloads:\n  - swim: {fil: jobs.tsv}\n",
        "cluster: cluster.yaml\nworkloads: [{swim: {file: jobs.tsv}}]\nwriter_choices: 0\n",
        "cluster: cluster.yaml\nworkloads: [{cell: {}}]\nwriter_choices: 2\n",
        "cluster: cluster.yaml\nworkloads: [{swim: {file: jobs.tsv}}]\nfaults: {}\n",
        "cluster: cluster.yaml\nworkloads: [{swim: {file: jobs.tsv}}]\nfaults: {stragglers: 0.1}\n",
        "cluster: cluster.yaml\nworkloads: [{swim: {file: jobs.tsv}}]\nfaults: {failures: 0.1, slowdown: 2}\n",
        "cluster: cluster.yaml\nworkloads: [{swim: {file: jobs.tsv}}]\nfaults: {stragglers: 0.1, slowdown: 0.5}\n",
        "cluster: cluster.yaml\nworkloads: [{swim: {file: jobs.tsv}}]\nfaults: {failures: 2}\n",
        "cluster: cluster.yaml\nworkloads: [{cell: {}}]\nfaults: {failures: 0.1}\n",
        "cluster: cluster.yaml\nworkloads: [{swim: {file: jobs.tsv}}]\nrepair: {after: 2h}\n",
        "cluster: cluster.yaml\nworkloads: [{swim: {file: jobs.tsv}}]\nrepair: {every: 0s}\n",
        "cluster: cluster.yaml\nworkloads: [{swim: {file: jobs.tsv}}]\nrepair: {streams: 0}\n",
        "cluster: cluster.yaml\nworkloads: [{swim: {file: jobs.tsv}}]\nrepair: {rate: 0bps}\n",
        "cluster: cluster.yaml\nworkloads: [{swim: {file: jobs.tsv}}]\nrepair: {source: best}\n",
        "cluster: cluster.yaml\nworkloads: [{cell: {}}]\nrepair: {}\n",
        "cluster: cluster.yaml\nworkloads: []\nwriter_choices: 2\n",
        "cluster: cluster.yaml\nworkloads: [{flows: {file: flows.csv}}]\nfaults: {failures: 0.1}\n",
        "cluster: cluster.yaml\nworkloads: [{facebook: {writers: none}}]\nrepair: {}\n",
        "cluster: cluster.yaml\nworkload: []\n",
    ] {
        let error = Scenario::from_text("bad.yaml", text, &folder, None).expect_err(text);
        table += &format!("{}\n", error.to_string().replace(&*folder.to_string_lossy(), "FOLDER"));
    }
    insta::assert_snapshot!(table);
}
