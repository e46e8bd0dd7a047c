//! Delay bounds and shapers against values of the thesis' released code (`golden/qos`).

use std::collections::BTreeMap;

use leeward_calculus::{ArrivalCurve, Flow, Network, Packets, TokenBucket, Unbounded};
use leeward_testing::golden;
use leeward_testing::golden::{array, buckets, close, number};
use serde_json::Value;

fn text(value: &Value) -> &str {
    value.as_str().expect("a name")
}

fn bucket(shaper: &Value) -> TokenBucket {
    TokenBucket::new(number(&shaper["r"]), number(&shaper["b"])).unwrap()
}

/// An analysis: delay of each flow over its queues, in the order of the file, without the delays of shapers.
type Analysis = fn(&Network) -> Vec<Result<f64, Unbounded>>;

#[test]
fn flows_and_clients_are_delayed_as_in_the_released_code() {
    let Some(folder) = golden::folder("qos") else { return };
    let mut compared = 0;
    for path in golden::files(&folder.join("dnc"), |name| name.ends_with(".in.json")) {
        let (name, input) = (golden::name(&path), golden::json(&path));
        let output = golden::json(&folder.join("dnc").join(name.replace(".in.", ".out.")));
        let queues: BTreeMap<&str, usize> = array(&input["queues"])
            .iter()
            .enumerate()
            .map(|(index, queue)| (text(&queue["name"]), index))
            .collect();
        let capacities = array(&input["queues"]).iter().map(|queue| number(&queue["bandwidth"])).collect();
        let flows =
            array(&input["clients"]).iter().flat_map(|client| array(&client["flows"])).map(|flow| Flow {
                arrivals: bucket(&flow["shaper"]).into(),
                priority: number(&flow["priority"]) as u32,
                path: array(&flow["queues"]).iter().map(|queue| queues[text(queue)]).collect(),
                packet: 0.0,
            });
        let network = Network::new(capacities, flows.collect(), Packets::Fluid).unwrap();
        let analyses: [(&str, Analysis); 2] =
            [("aggregate", Network::aggregate), ("hop_by_hop", Network::hop_by_hop)];
        for (analysis, run) in analyses {
            let mut delays = run(&network).into_iter();
            for (client, expected) in array(&input["clients"]).iter().zip(array(&output[analysis]["clients"]))
            {
                let label = format!("{name} {analysis} {}", text(&client["name"]));
                let mut sum = 0.0;
                for (flow, expected) in array(&client["flows"]).iter().zip(array(&expected["flows"])) {
                    let alpha = ArrivalCurve::new(&buckets(&flow["arrivalInfo"])).unwrap();
                    let shaped = alpha.shaper_delay(bucket(&flow["shaper"])).unwrap_or(f64::INFINITY);
                    close(shaped, number(&expected["shaper_latency_s"]), &label);
                    let delay = shaped + delays.next().unwrap().unwrap_or(f64::INFINITY);
                    close(delay, number(&expected["latency_s"]), &label);
                    sum += delay;
                    compared += 1;
                }
                close(sum, number(&expected["latency_s"]), &label);
            }
        }
    }
    println!("{compared} bounds of flows");
    assert!(compared > 50);
}

#[test]
fn shapers_delay_as_in_the_released_code() {
    let Some(folder) = golden::folder("qos") else { return };
    let (mut compared, mut overloads) = (0, 0);
    for path in golden::files(&folder.join("rb"), |name| name.ends_with("json")) {
        let (name, expected) = (golden::name(&path), golden::json(&path));
        if name == "profileSSD.json" {
            continue;
        }
        let alpha = ArrivalCurve::new(&buckets(&expected["arrival_curve_pruned12"])).unwrap();
        for case in array(&expected["shaper_latency"]) {
            let (shaper, label) = (bucket(case), format!("{name}: {case}"));
            match alpha.shaper_delay(shaper) {
                Ok(delay) => close(delay, number(&case["shaper_latency_s"]), &label),
                // The released code looks only at the vertices. It gives a number even if the shaper is slower than the
                // last line of the curve.
                Err(_) => {
                    assert!(shaper.rate() < alpha.rate(), "{label}");
                    overloads += 1;
                }
            }
            compared += 1;
        }
    }
    println!("{compared} shapers, {overloads} of them slower than the curve");
    assert!(compared - overloads > 100);
}
