//! Bounds of systems, compared with the bounds of the thesis' released code (`golden/qos/dnc`).

use crate::support::systems::{curve, demand, promise, queue};
use leeward_calculus::ArrivalCurve;
use leeward_slo::System;
use leeward_slo::bound::{BoundSettings, Method, Unit, bounds};
use leeward_testing::golden;
use leeward_testing::golden::{array, buckets, close, number};
use leeward_traces::Stage;
use serde_json::Value;

fn text(value: &Value) -> &str {
    value.as_str().expect("a name")
}

/// A client is a promise, its flows are stages, and its shapers the limits.
fn system(input: &Value) -> System {
    let queues: Vec<_> = (array(&input["queues"]).iter())
        .map(|input| queue(text(&input["name"]), number(&input["bandwidth"])))
        .collect();
    let promises = array(&input["clients"]).iter().map(|client| {
        let flows = array(&client["flows"]);
        let stages = flows.iter().map(|flow| {
            let alpha = ArrivalCurve::new(&buckets(&flow["arrivalInfo"])).unwrap();
            let at = |name: &Value| queues.iter().position(|queue| queue.name == text(name)).unwrap();
            let route = array(&flow["queues"]).iter().map(at).collect();
            (demand(Stage::NetworkIn, alpha, 0.0), route, number(&flow["priority"]) as u32)
        });
        let mut promise = promise(text(&client["name"]), None, stages.collect());
        for (limits, flow) in promise.limits.iter_mut().zip(flows) {
            *limits = curve(&[(number(&flow["shaper"]["r"]), number(&flow["shaper"]["b"]))]);
        }
        promise
    });
    let promises = promises.collect();
    System { queues, promises }
}

#[test]
fn curves_equal_the_lesser_released_analysis_and_the_program_is_finite_with_them() {
    let Some(folder) = golden::folder("qos") else { return };
    let settings = BoundSettings { unit: Unit::Fluid, ..BoundSettings::default() };
    let (mut compared, mut above, mut worst) = (0, 0, 0.0f64);
    for path in golden::files(&folder.join("dnc"), |name| name.ends_with(".in.json")) {
        let (name, input) = (golden::name(&path), golden::json(&path));
        let output = golden::json(&folder.join("dnc").join(name.replace(".in.", ".out.")));
        let system = system(&input);
        let curves = bounds(&system, Method::Dnc, settings);
        let program = bounds(&system, Method::PriorityMeister, settings);
        let released = |analysis: &str| array(&output[analysis]["clients"]).to_vec();
        let expected = released("aggregate").into_iter().zip(released("hop_by_hop"));
        for (at, (aggregate, hop_by_hop)) in expected.enumerate() {
            let flows = array(&aggregate["flows"]).iter().zip(array(&hop_by_hop["flows"]));
            let least: f64 = flows.map(|(a, b)| number(&a["latency_s"]).min(number(&b["latency_s"]))).sum();
            let label = format!("{name} {}", system.promises[at].workload.name);
            let found = curves[at].as_ref().map_or(f64::INFINITY, |bound| bound.seconds);
            close(found, least, &label);
            let program = program[at].as_ref().map_or(f64::INFINITY, |bound| bound.seconds);
            assert_eq!(program.is_finite(), least.is_finite(), "{label}");
            if least.is_finite() {
                above += usize::from(program > least * (1.0 + 1e-5));
                worst = worst.max(program / least);
            }
            compared += 1;
        }
    }
    println!(
        "{compared} clients; the program is above the curves for {above}, at most by a factor of {worst}"
    );
    assert!(compared > 30);
}
