//! Bounds, compared with the bounds of the authors' released code (`golden/qos/snc`, `mmbp` and `bench`). With the same
//! models, the bounds here are never above the released bounds. No bound exists if the released code has none.

use crate::support::{STEP, model, network};
use leeward_calculus::mmpp::Sigma;
use leeward_calculus::snc::{Analysis, Expressions, Latency};
use leeward_testing::golden;
use serde_json::Value;

/// No bound exceeds the published bound by more than this relative tolerance.
const TOLERANCE: f64 = 1e-6;

/// Compares every stage of every workload. Returns a summary: their number, and the ratio of our bounds to theirs.
fn compare(name: &str, input: &Value, output: &Value, lyapunov: bool) -> String {
    let mut network = network(input);
    network.set_lyapunov(lyapunov);
    let (mut compared, mut least, mut logarithms) = (0, 1.0f64, 0.0);
    let analyses = [
        ("aggregate", Analysis::Bipartite),
        ("hop_by_hop", Analysis::HopByHop),
        ("convolution", Analysis::Convolution),
    ];
    for (key, analysis) in analyses {
        let Some(clients) = output[key]["clients"].as_array() else { continue };
        for (index, client) in clients.iter().enumerate() {
            let percentile = client["SLOpercentile"].as_f64().unwrap();
            for (stage, flow) in client["flows"].as_array().unwrap().iter().enumerate() {
                let label = format!("{name} {key} {}", flow["name"]);
                // The released code divides by the number of flows known so far, which is one for the first flow.
                let percentile = 100.0 - (100.0 - percentile) / (stage + 1) as f64;
                let ours = network.stage_bound(index, stage, percentile, analysis).unwrap();
                compared += 1;
                match (ours, flow["latency_s"].as_f64()) {
                    (Latency::Bounded(ours), Some(theirs)) => {
                        let share = ours.seconds / theirs;
                        assert!(share <= 1.0 + TOLERANCE, "{label}: {} above {theirs}", ours.seconds);
                        least = least.min(share);
                        logarithms += share.ln();
                    }
                    (Latency::Unstable(_), None) => {}
                    (ours, theirs) => panic!("{label}: {ours:?} against {theirs:?}"),
                }
            }
        }
    }
    assert!(compared > 0, "{name}: nothing to compare");
    let mean = (logarithms / f64::from(compared)).exp();
    format!("{compared} bounds; ratio to the published bound: geometric mean {mean:.4}, least {least:.4}")
}

#[test]
fn networks_are_bounded_no_worse_than_published() {
    let Some(folder) = golden::folder("qos/snc") else { return };
    for path in golden::files(&folder, |name| name.ends_with(".in.json")) {
        let name = path.file_name().unwrap().to_str().unwrap().replace(".in.json", "");
        let output = golden::json(&folder.join(format!("{name}.out.json")));
        for lyapunov in [false, true] {
            let summary = compare(&name, &golden::json(&path), &output, lyapunov);
            println!("{name}, lyapunov {lyapunov}: {summary}");
        }
    }
}

#[test]
fn the_inputs_of_the_timing_runs_are_bounded_no_worse_than_published() {
    let Some(folder) = golden::folder("qos/bench") else { return };
    for (input, output) in [
        ("snc_10.in.json", "snc_10.out.json"),
        ("snc_10_dep.in.json", "snc_10_dep.out.json"),
        ("snc_50.in.json", "snc_50.out.json"),
        ("snc_180.in.json.gz", "snc_180.out.json"),
    ] {
        for lyapunov in [false, true] {
            let summary = compare(
                input,
                &golden::json(&folder.join(input)),
                &golden::json(&folder.join(output)),
                lyapunov,
            );
            println!("{input}, lyapunov {lyapunov}: {summary}");
        }
    }
}

#[test]
fn a_single_queue_is_bounded_no_worse_than_published() {
    let Some(folder) = golden::folder("qos/mmbp") else { return };
    for path in golden::files(&folder, |name| name.ends_with(".json")) {
        let theirs = golden::json(&path);
        for case in theirs["single_queue_latency"].as_array().unwrap() {
            let mut arena = Expressions::new(STEP, 1).unwrap();
            let model = arena.model(&model(&theirs["arrivalInfo"], Sigma::Zero)).unwrap();
            let arrivals = arena.arrivals(model, 0).unwrap();
            let server = arena.server(case["bandwidth_Bps"].as_f64().unwrap()).unwrap();
            let percentile = case["percentile"].as_f64().unwrap();
            let ours = arena.latency(arrivals, server, percentile).unwrap().seconds();
            let theirs = case["latency_s"].as_f64();
            assert_eq!(ours.is_some(), theirs.is_some(), "{}: {case}", path.display());
            if let (Some(ours), Some(theirs)) = (ours, theirs) {
                let share = ours / theirs;
                assert!(share <= 1.0 + TOLERANCE, "{}: {ours} above {case}", path.display());
                assert!(share >= 1.0 - 1e-3, "{}: {ours} far below {case}", path.display());
            }
        }
    }
}
