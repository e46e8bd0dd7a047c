//! Coflows as results: under disciplines that are compared, and as background of placements.

use leeward_scenarios::record::{Coflow, Record};
use leeward_scenarios::scenario::Scenario;
use leeward_scenarios::summary::{Comparison, Summary};
use leeward_testing::trace_folder;

use crate::support::runs::{folder, run, runs};

/// Four racks with 8 MiB/s into and out of each.
const TREE: &str = "racks: 4\nhosts_per_rack: 2\nnic: 33554432bps\noversubscription: 1\n";

/// Coflow a has 8 MiB from rack 0 to rack 3, and b has 12 MiB from each of racks 1 and 2 to rack 3. Coflow c is within
/// rack 2. Of d, a pair of 4 MiB is within rack 0, and another goes to rack 2.
const TRACE: &str = "4 4\na 0 1 0 1 3:8\nb 0 2 1 2 1 3:24\nc 500 1 2 1 2:5\nd 20000 1 0 2 0:4 2:4\n";

fn read(name: &str, trace: &str, text: &str) -> Result<Scenario, String> {
    let folder = folder("coflows", name);
    std::fs::write(folder.join("cluster.yaml"), TREE).expect("the folder of the test can be written to");
    std::fs::write(folder.join("trace.txt"), trace).expect("the folder of the test can be written to");
    std::fs::write(folder.join("blocks.csv"), "t_arrival_s,writer,size_bytes\n")
        .expect("the folder of the test can be written to");
    let text = format!("cluster: cluster.yaml\n{text}");
    Scenario::from_text("scenario.yaml", &text, &folder, None).map_err(|error| error.to_string())
}

fn scenario(name: &str, trace: &str, text: &str) -> Scenario {
    read(name, trace, text).expect("the scenario of the test is valid")
}

fn times(record: &Record) -> Vec<(&str, Option<f64>)> {
    let rounded = |coflow: &Coflow| coflow.completion_time().map(|time| (time * 1e6).round() / 1e6);
    record.coflows.iter().map(|coflow| (&*coflow.arrival.id, rounded(coflow))).collect()
}

#[test]
fn a_run_compares_fair_sharing_with_smallest_bottleneck_first() {
    let scenario = scenario("compare", TRACE, "workloads: [{coflow: {file: trace.txt}}]\nhorizon: 1min\n");
    assert_eq!(scenario.policies.iter().map(|policy| &*policy.label).collect::<Vec<_>>(), ["fair", "sebf"]);
    let done = runs(&scenario, &["fair", "sebf"], 2);
    let [fair, sebf] = [&done[0].record, &done[1].record];
    // Rack 3 receives 32 MiB at 8 MiB/s, so the last of both ends at 4 s. Fair sharing gives each of the three flows a
    // third until a ends.
    assert_eq!(times(fair), [("a", Some(3.0)), ("b", Some(4.0)), ("c", Some(0.0)), ("d", Some(0.5))]);
    assert_eq!(times(sebf), [("a", Some(1.0)), ("b", Some(4.0)), ("c", Some(0.0)), ("d", Some(0.5))]);
    let bounds: Vec<f64> = sebf.coflows.iter().map(|coflow| coflow.bound).collect();
    assert_eq!(bounds, [1.0, 3.0, 0.0, 0.5]);
    let facts = |coflow: &Coflow| {
        let arrival = &coflow.arrival;
        (arrival.flows, arrival.senders, arrival.receivers, arrival.bytes >> 20, arrival.local_pairs)
    };
    let facts: Vec<_> = sebf.coflows.iter().map(facts).collect();
    assert_eq!(facts, [(1, 1, 1, 8, 0), (2, 2, 1, 24, 0), (0, 1, 1, 0, 1), (1, 1, 2, 4, 1)]);
    let summary = Summary::of(sebf, &scenario.cluster.fabric, 0.75, 0.0).coflows.expect("coflows arrived");
    assert_eq!((summary.count, summary.finished, summary.unfinished, summary.local), (3, 3, 0, 1));
    assert_eq!((summary.local_pairs, summary.local_bytes >> 20), (2, 9));
    assert!((summary.completion_s.mean - 5.5 / 3.0).abs() < 1e-9);
    assert_eq!(
        (summary.classes.short_narrow.completion_s.count, summary.classes.long_narrow.slowdown.count),
        (1, 2)
    );
    let compared = Comparison::of(sebf, fair, 0.0).coflows.expect("coflows arrived");
    assert_eq!((compared.count, compared.faster, compared.slower), (3, 1.0 / 3.0, 0.0));
    assert!((compared.factor - 7.5 / 5.5).abs() < 1e-9);
    // The warm-up leaves out all that arrived in it.
    let late = Summary::of(sebf, &scenario.cluster.fabric, 0.75, 10.0).coflows.expect("coflows arrived");
    assert_eq!((late.count, late.local, late.local_pairs), (1, 0, 1));
}

#[test]
fn coflows_beside_placements_share_links_fairly_and_have_the_same_times() {
    let coflow = "{coflow: {file: trace.txt}}";
    let alone = scenario("alone", TRACE, &format!("workloads: [{coflow}]\nhorizon: 1min\n"));
    let beside = scenario(
        "beside",
        TRACE,
        &format!(
            "workloads: [{coflow}, {{blocks: {{file: blocks.csv}}}}]\nhorizon: 1min\nfault_domains: 0\n"
        ),
    );
    assert_eq!((alone.kind().name(), beside.kind().name()), ("coflows", "replicas"));
    let (fair, uniform) = (run(&alone, "fair"), run(&beside, "uniform"));
    assert_eq!(times(&fair), times(&uniform));
    assert_eq!(fair.links, uniform.links);
}

#[test]
fn unfinished_coflows_are_counted_and_named() {
    let text = "workloads: [{coflow: {file: trace.txt}}]\nhorizon: 30s\nsample: 1s\n\
                events: [{at: 1s, link: 'r3:downlink', capacity: 0bps}, {at: 2s, host: r0h0, state: down}]\n";
    let scenario = scenario("unfinished", TRACE, text);
    let ended = [Some(1.0), None, Some(0.0), Some(0.5)];
    for (policy, expected, ids, flows) in
        [("fair", [None, None, Some(0.0), Some(0.5)], vec!["a", "b"], 3), ("sebf", ended, vec!["b"], 2)]
    {
        let record = run(&scenario, policy);
        assert_eq!(
            times(&record).into_iter().map(|(_, time)| time).collect::<Vec<_>>(),
            expected,
            "{policy}"
        );
        let summary =
            Summary::of(&record, &scenario.cluster.fabric, 0.75, 0.0).coflows.expect("coflows arrived");
        assert_eq!((summary.unfinished, summary.unfinished_ids.join(" ")), (ids.len() as u64, ids.join(" ")));
        assert_eq!(record.flows, (4 - flows, flows));
    }
}

#[test]
fn repeated_coflows_have_the_number_of_their_round() {
    let text = "workloads: [{coflow: {file: trace.txt, every: 30s}}]\nhorizon: 45s\n";
    let record = run(&scenario("every", TRACE, text), "sebf");
    let ids: Vec<&str> = times(&record).into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, ["a", "b", "c", "d", "a/1", "b/1", "c/1"]);
    assert!(record.coflows.iter().all(|coflow| coflow.finished.is_some()));
}

#[test]
fn lines_of_equal_arrival_may_have_any_order() {
    let shuffled = "4 4\nb 0 2 1 2 1 3:24\na 0 1 0 1 3:8\nc 500 1 2 1 2:5\nd 20000 1 0 2 0:4 2:4\n";
    let text = "workloads: [{coflow: {file: trace.txt}}]\nhorizon: 1min\n";
    for policy in ["fair", "sebf"] {
        let by_id = |name, trace| {
            let record = run(&scenario(name, trace, text), policy);
            let mut times: Vec<(String, Option<f64>)> =
                times(&record).into_iter().map(|(id, time)| (id.to_owned(), time)).collect();
            times.sort_by(|a, b| a.0.cmp(&b.0));
            times
        };
        assert_eq!(by_id("ordered", TRACE), by_id("shuffled", shuffled));
    }
}

#[test]
fn settings_without_effect_on_coflows_are_rejected() {
    let error = |text: &str| {
        read("errors", TRACE, &format!("workloads: [{{coflow: {{file: trace.txt}}}}]\n{text}")).unwrap_err()
    };
    let policy = error("policies: [uniform]\n");
    assert!(policy.ends_with("unknown policy `uniform` for coflows; there are: fair, sebf"), "{policy}");
    let telemetry = error("telemetry: {interval: 2s}\n");
    assert!(telemetry.contains("telemetry: nothing is placed by telemetry"), "{telemetry}");
    assert!(error("fault_domains: 1\n").contains("fault_domains: applies to copies of blocks"));
}

/// Varys reports for its trace, by simulation, that fair sharing takes 5.53 times as long on average. The port of a
/// rack has 1 Gb/s, as in CoflowSim.
#[test]
fn the_coflow_hour_is_faster_by_smallest_bottleneck_first() {
    let Some(data) = trace_folder("fb2010-coflow") else { return };
    let folder = folder("coflows", "hour");
    let cluster = "racks: 150\nhosts_per_rack: 1\nnic: 1Gbps\noversubscription: 1\n";
    std::fs::write(folder.join("cluster.yaml"), cluster).expect("the folder of the test can be written to");
    let text = "cluster: cluster.yaml\nworkloads: [{coflow: {file: 'data:fb2010-coflow/FB2010-1Hr-150-0.txt'}}]\nhorizon: 3h\nsample: 1min\n";
    let scenario =
        Scenario::from_text("scenario.yaml", text, &folder, data.parent()).expect("a valid scenario");
    let done = runs(&scenario, &["fair", "sebf"], 2);
    let summary = |at: usize| {
        Summary::of(&done[at].record, &scenario.cluster.fabric, 0.75, 0.0).coflows.expect("coflows arrived")
    };
    let (fair, sebf) = (summary(0), summary(1));
    println!("fair {fair:?}\nsebf {sebf:?}\n{:?}", Comparison::of(&done[1].record, &done[0].record, 0.0));
    assert_eq!((fair.count + fair.local, fair.unfinished, sebf.unfinished), (526, 0, 0));
    assert!(fair.completion_s.mean > 2.0 * sebf.completion_s.mean);
    assert!(sebf.slowdown.p50 < 1.5, "{:?}", sebf.slowdown);
    for record in [&done[0].record, &done[1].record] {
        assert!(record.links.iter().all(|link| link.utilization <= 1.0 + 1e-6));
        assert!(
            record
                .coflows
                .iter()
                .all(|coflow| coflow.slowdown().is_none_or(|slowdown| slowdown > 1.0 - 1e-6))
        );
        assert_eq!(record.flows, (701_486, 0));
    }
}
